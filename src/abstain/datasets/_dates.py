"""Dates in the patterns of Java's SimpleDateFormat, which ARFF files declare."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

DEFAULT_DATE: Final = "yyyy-MM-dd'T'HH:mm:ss"

_DATE_NUMBERS: Final = {
    "y": "year",
    "M": "month",
    "d": "day",
    "H": "hour",
    "h": "hour12",
    "m": "minute",
    "s": "second",
    "S": "millisecond",
}
_ZONE: Final = r"(?:Z|UTC|GMT)?(?P<zone>[+-]\d\d:?(?:\d\d)?)?"
_DATE_TEXTS: Final = {"E": r"[A-Za-z]+", "a": r"(?P<half>[AaPp])[Mm]", "z": _ZONE, "Z": _ZONE, "X": _ZONE}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def date_reader(pattern: str) -> Callable[[str], float]:
    """Return a function from texts in a SimpleDateFormat pattern to seconds since 1970-01-01 UTC.

    Times are UTC unless the text has a zone. Raises ValueError for a pattern that is not supported; the function raises
    ValueError for a text that does not match.
    """
    pieces = re.findall(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|([^A-Za-z])", pattern)
    numeric = [letter in _DATE_NUMBERS and not (letter == "M" and len(run) > 2) for _, run, letter, _ in pieces]
    expression = ""
    for i, (quoted, run, letter, other) in enumerate(pieces):
        if not letter:
            expression += re.escape(other or quoted.replace("''", "'") or "'")
        elif numeric[i]:
            # adjacent numbers are separated by their width
            width = f"{{{len(run)}}}" if numeric[i + 1 : i + 2] == [True] else "+"
            expression += rf"(?P<{_DATE_NUMBERS[letter]}>\d{width})"
        elif letter == "M":
            expression += r"(?P<month_name>[A-Za-z]{3})[a-z]*"
        elif letter in _DATE_TEXTS:
            expression += _DATE_TEXTS[letter]
        else:
            raise ValueError(f"the date pattern {pattern!r} is not supported: {letter!r} is not one of yMdHhmsSaEzZX")
    try:
        compiled = re.compile(expression)
    except re.error as reason:
        raise ValueError(f"the date pattern {pattern!r} is not supported: a field comes twice") from reason
    two_digit_years = any(run in ("y", "yy") for _, run, _, _ in pieces)

    def read(text: str) -> float:
        match = compiled.fullmatch(text.strip())
        if match is None:
            raise ValueError(text)
        return _seconds(match.groupdict(), two_digit_years)

    return read


def _seconds(parts: dict[str, str | None], two_digit_years: bool) -> float:
    given = {name: int(digits) for name in _DATE_NUMBERS.values() if (digits := parts.get(name))}
    year = given.get("year", 1970)
    if two_digit_years and len(parts["year"] or "") == 2:
        year += 1900 if year >= 69 else 2000  # POSIX's century; Java's moves with the clock
    month = _MONTHS.index(name.lower()) + 1 if (name := parts.get("month_name")) else given.get("month", 1)
    hour = given.get("hour", given.get("hour12", 0) % 12 + 12 * ((parts.get("half") or "a") in "pP"))
    offset = timedelta()
    if zone := parts.get("zone"):
        digits = zone[1:].replace(":", "").ljust(4, "0")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:])) * (-1 if zone[0] == "-" else 1)
    moment = datetime(
        year, month, given.get("day", 1), hour, given.get("minute", 0), given.get("second", 0), tzinfo=timezone(offset)
    )
    return (moment - _EPOCH).total_seconds() + given.get("millisecond", 0) / 1000
