"""The tokenizer of ARFF rows: where each field is in the text, which column it belongs to, and its number.

The text consists of complete lines and ends with a line end. So every loop that runs to the end of a word, of a quote
or of a line stops there, and none checks for the end of the text.
"""

import numpy as np

from abstain._utils.compilation import kernel

# Kinds of fields. A NUMBER has its exactly rounded value; TEXT may still be a number that is harder to round.
NUMBER, MISSING, TEXT, QUOTED = range(4)

# Problems of a row.
(
    NO_PROBLEM,
    OTHER_KIND,
    EMPTY_VALUE,
    UNTERMINATED_QUOTE,
    TEXT_AFTER_QUOTE,
    WRONG_COUNT,
    WEIGHT,
    STRAY_BRACE,
    BAD_INDEX,
    INDEX_OUT_OF_RANGE,
    INDEX_NOT_INCREASING,
    NO_VALUE,
    UNCLOSED_ROW,
    TEXT_AFTER_ROW,
) = range(14)

UNKNOWN, DENSE, SPARSE = -1, 0, 1

WORD, BLANK, LINE_END, COMMA, COMMENT, OPEN, CLOSE = range(7)
CLASSES = np.full(256, WORD, np.uint8)
CLASSES[: ord(" ") + 1] = BLANK
for _mark, _class in (("\n", LINE_END), ("\r", LINE_END), (",", COMMA), ("%", COMMENT), ("{", OPEN), ("}", CLOSE)):
    CLASSES[ord(_mark)] = _class

LINE_FEED, CARRIAGE_RETURN, BACKSLASH = ord("\n"), ord("\r"), ord("\\")
SINGLE_QUOTE, DOUBLE_QUOTE, QUESTION_MARK = ord("'"), ord('"'), ord("?")
PLUS, MINUS, POINT, ZERO, NINE, SMALL_E, CAPITAL_E = (ord(mark) for mark in "+-.09eE")

LARGEST_EXACT_INTEGER = 2**53
LARGEST_EXACT_EXPONENT = 22
POWERS = 10.0 ** np.arange(LARGEST_EXACT_EXPONENT + 1)


@kernel
def read_number(text, start, stop):
    """Return the number in text[start:stop], and whether it is one that can be converted exactly here.

    Clinger's fast path: integers up to 2^53 and powers of ten up to 10^22 are doubles, so that their product or
    quotient is rounded once, which is exactly rounded.
    """
    at = start
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += 1
    mantissa = 0
    exponent = 0
    n_digits = 0
    after_point = False
    while at < stop:
        mark = text[at]
        if ZERO <= mark <= NINE:
            mantissa = mantissa * 10 + (mark - ZERO)
            if mantissa > LARGEST_EXACT_INTEGER:
                return 0.0, False
            n_digits += 1
            exponent -= after_point
        elif mark == POINT and not after_point:
            after_point = True
        else:
            break
        at += 1
    if n_digits == 0:
        return 0.0, False
    if at < stop:
        if (text[at] != SMALL_E and text[at] != CAPITAL_E) or at + 1 == stop:
            return 0.0, False
        at += 1
        small = text[at] == MINUS
        if small or text[at] == PLUS:
            at += 1
        if at == stop or stop - at > 4:
            return 0.0, False
        shift = 0
        while at < stop:
            if not ZERO <= text[at] <= NINE:
                return 0.0, False
            shift = shift * 10 + (text[at] - ZERO)
            at += 1
        exponent += -shift if small else shift
    if abs(exponent) > LARGEST_EXACT_EXPONENT:
        return 0.0, False
    number = float(mantissa)
    if exponent < 0:
        number /= POWERS[-exponent]
    else:
        number *= POWERS[exponent]
    return -number if negative else number, True


@kernel
def read_field(text, at):
    """Read the field that begins here; return where it ends, its problem, its kind and its number.

    No output arrays are passed: each of them would cost more than the reading does.
    """
    mark = text[at]
    end = at
    if mark in (SINGLE_QUOTE, DOUBLE_QUOTE):
        end += 1
        while text[end] != mark:
            if CLASSES[text[end]] == LINE_END:
                return at, UNTERMINATED_QUOTE, QUOTED, 0.0
            # an escaped mark does not end the quote, but a line always does
            end += 2 if text[end] == BACKSLASH and CLASSES[text[end + 1]] != LINE_END else 1
        end += 1
        return end, TEXT_AFTER_QUOTE if CLASSES[text[end]] == WORD else NO_PROBLEM, QUOTED, 0.0
    while CLASSES[text[end]] == WORD:
        end += 1
    if mark == QUESTION_MARK and end == at + 1:
        return end, NO_PROBLEM, MISSING, np.nan
    number, exact = read_number(text, at, end)
    return end, NO_PROBLEM, NUMBER if exact else TEXT, number


@kernel
def read_dense_row(text, at, n_columns, slot, start, stop, value, kind, column):
    """Read a row such as `1, 0.5, red`; return where it ends, its problem, and its number of values."""
    found = 0
    after_comma = True
    while True:
        group = CLASSES[text[at]]
        if group == WORD:
            end, problem, kind[slot], value[slot] = read_field(text, at)
            if problem != NO_PROBLEM:
                return end, problem, found
            quotes = kind[slot] == QUOTED
            start[slot], stop[slot], column[slot] = at + quotes, end - quotes, found
            at = end
            slot += 1
            found += 1
            after_comma = False
        elif group == COMMA:
            if after_comma:
                return at, EMPTY_VALUE, found
            after_comma = True
            at += 1
        elif group == BLANK:
            at += 1
        elif group in (OPEN, CLOSE):
            return at, WEIGHT if group == OPEN and found == n_columns else STRAY_BRACE, found
        else:
            return at, NO_PROBLEM if found == n_columns else WRONG_COUNT, found


@kernel
def read_index(text, at, n_columns, last):
    """Read the index of a column; return where it ends, its problem, and the index."""
    index = 0
    end = at
    while ZERO <= text[end] <= NINE:
        index = min(index * 10 + (text[end] - ZERO), n_columns)
        end += 1
    if end == at or CLASSES[text[end]] == WORD:
        return at, BAD_INDEX, index
    if index >= n_columns:
        return at, INDEX_OUT_OF_RANGE, index
    if index <= last:
        return at, INDEX_NOT_INCREASING, index
    while CLASSES[text[end]] == BLANK:
        end += 1
    group = CLASSES[text[end]]
    if group in (LINE_END, COMMENT):
        return end, UNCLOSED_ROW, index
    return end, NO_PROBLEM if group == WORD else NO_VALUE, index


@kernel
def read_sparse_row(text, at, n_columns, slot, start, stop, value, kind, column):
    """Read a row such as `{3 1, 7 0.5}`; return where it ends, its problem, and its number of values.

    Commas between entries count as blanks, as they do in WEKA: published files have rows like `{,3 1}`. Since every
    value has its index, no value can be missing between two commas.
    """
    found = 0
    last = -1
    at += 1
    while CLASSES[text[at]] != CLOSE:
        group = CLASSES[text[at]]
        if group == WORD:
            at, problem, last = read_index(text, at, n_columns, last)
            if problem != NO_PROBLEM:
                return at, problem, last
            end, problem, kind[slot], value[slot] = read_field(text, at)
            if problem != NO_PROBLEM:
                return end, problem, last
            quotes = kind[slot] == QUOTED
            start[slot], stop[slot], column[slot] = at + quotes, end - quotes, last
            at = end
            slot += 1
            found += 1
        elif group in (BLANK, COMMA):
            at += 1
        else:
            return at, STRAY_BRACE if group == OPEN else UNCLOSED_ROW, found
    at += 1
    while CLASSES[text[at]] in (BLANK, COMMA):
        at += 1
    group = CLASSES[text[at]]
    if group in (LINE_END, COMMENT):
        return at, NO_PROBLEM, found
    return at, WEIGHT if group == OPEN else TEXT_AFTER_ROW, found


@kernel
def tokenize(text, line, layout, n_columns, start, stop, value, kind, column, first, lines):
    """Read all rows of the text, up to the first with a problem.

    `line` is the number of the text's first line, `layout` is DENSE, SPARSE or UNKNOWN (the first row decides). Row i
    is on line lines[i] and has the fields first[i] … first[i + 1] − 1. Returns the number of rows and the next line,
    the layout, the problem, its position, and a number that belongs to it (a count or an index).

    Invariants: a field takes at least one byte and is followed by another, so arrays of half the text's length suffice.
    """
    at = 0
    rows = 0
    first[0] = 0
    while at < text.shape[0]:
        group = CLASSES[text[at]]
        if group == BLANK:
            at += 1
            continue
        if group not in (LINE_END, COMMENT):
            here = SPARSE if group == OPEN else DENSE
            if layout == UNKNOWN:
                layout = here
            if here != layout:
                return rows, line, layout, OTHER_KIND, at, 0
            fields = first[rows]
            if layout == SPARSE:
                at, problem, detail = read_sparse_row(text, at, n_columns, fields, start, stop, value, kind, column)
            else:
                at, problem, detail = read_dense_row(text, at, n_columns, fields, start, stop, value, kind, column)
            if problem != NO_PROBLEM:
                return rows, line, layout, problem, at, detail
            lines[rows] = line
            rows += 1
            first[rows] = fields + detail
        while CLASSES[text[at]] != LINE_END:
            at += 1
        if text[at] == CARRIAGE_RETURN and at + 1 < text.shape[0] and text[at + 1] == LINE_FEED:
            at += 1
        at += 1
        line += 1
    return rows, line, layout, NO_PROBLEM, 0, 0


@kernel
def find_unconverted(value, kind, column, takes_numbers, declared_from, declared, unconverted):
    """Collect the fields that are not yet the number they stand for; return how many there are.

    Converted are missing values, and numbers in a column that takes numbers: any number, or one of those declared for
    column j, declared[declared_from[j]:declared_from[j + 1]], if there are any.
    """
    count = 0
    for k in range(value.shape[0]):
        j = column[k]
        converted = kind[k] == MISSING or (kind[k] == NUMBER and takes_numbers[j])
        if converted and kind[k] == NUMBER and declared_from[j] < declared_from[j + 1]:
            converted = False
            for d in range(declared_from[j], declared_from[j + 1]):
                if declared[d] == value[k]:
                    converted = True
                    break
        if not converted:
            unconverted[count] = k
            count += 1
    return count
