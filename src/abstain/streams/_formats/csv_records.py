"""The records of CSV text: headers, cells and lines, as errors name them, and where records end."""

import csv
import io
import re
from collections.abc import Iterator
from typing import IO, Any

from abstain._utils.errors import InvalidDataset, quoted
from abstain.streams._formats.names import require_unique
from abstain.streams._sizes import SIZES

FRACTION = re.compile(r"\s*-?\d*\.\d+(e-?\d+)?\s*", re.IGNORECASE)


def require_header(cells: list[str], line: bytes) -> None:
    """Raise `InvalidDataset` if a first line does not name columns, all differently, with commas between them."""
    if not cells:
        raise InvalidDataset("there are no columns")
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(cells[0].split(mark)) > len(cells):
            raise InvalidDataset(f"the columns seem to be separated by {name}; expected commas (and points in numbers)")
    # Whoever calls a column 0.5 puts that in quotes, as we do.
    if b'"' not in line and all(FRACTION.fullmatch(cell) for cell in cells[1:] or cells):
        shown = quoted(", ".join(cells[:3]))[1:-1]
        raise InvalidDataset(
            f"the first line ({shown}{', …' if len(cells) > 3 else ''}) looks like data, not like names"
        )
    require_unique(cells)


def records(source: IO[bytes], first_line: int = 1) -> Iterator[tuple[int, list[str]]]:
    """Yield the line where each record ends, and its cells: slow, for the header and for messages."""
    with io.TextIOWrapper(source, encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text)
        try:
            for cells in reader:
                yield first_line - 1 + reader.line_num, cells
        except csv.Error as reason:
            line = first_line - 1 + reader.line_num
            raise InvalidDataset(f"line {line} cannot be read ({reason})") from reason


def require_cells(source: IO[bytes], n_cells: int, reason: Exception | None, first_line: int = 1) -> None:
    """Raise `InvalidDataset` for the first record that does not have the given number of cells."""
    for line, cells in records(source, first_line):
        if cells and len(cells) != n_cells:
            found = f"{len(cells)} cell{'' if len(cells) == 1 else 's'}"
            hint = "; text with a comma needs quotes, numbers have a point" if len(cells) > n_cells else ""
            raise InvalidDataset(f"line {line} has {found}, expected {n_cells}{hint}") from reason


def data_records(source: IO[bytes], n_cells: int, first_line: int = 1) -> Iterator[tuple[int, list[str]]]:
    """Yield the records that are rows: a blank line is a row without its only cell, or else nothing."""
    return ((line, cells) for line, cells in records(source, first_line) if cells or n_cells == 1)


def whole_records(source: Any) -> Iterator[bytes]:
    """Yield a text in chunks that end where records do; lines that only CR ends are ended by LF."""
    rest, only_cr, n_lines = b"", None, 0
    while data := source.read(SIZES.text_chunk_bytes):
        if only_cr is None:
            only_cr = b"\r" in data and b"\n" not in data
        text = rest + (data.replace(b"\r", b"\n") if only_cr else data)
        end = _end_of_last_record(text)
        rest = text[end:]
        n_lines += text.count(b"\n", 0, end)
        if len(rest) > SIZES.longest_record_bytes:
            raise InvalidDataset(
                f"a quote in line {n_lines + 1} has no end within {SIZES.longest_record_bytes >> 20} MB"
            )
        if end:
            yield text[:end]
    if rest:
        yield rest


def _end_of_last_record(text: bytes) -> int:
    """Return the end of the last line that does not end within quotes."""
    end, open_quotes = len(text), text.count(b'"') % 2
    while end:
        start = text.rfind(b"\n", 0, end) + 1
        open_quotes = (open_quotes + text.count(b'"', start, end)) % 2
        if start == 0 or not open_quotes:
            return start
        end = start - 1
    return 0


def end_of_first_record(text: bytes) -> int:
    """Return the end of the first line that does not end within quotes."""
    end = text.find(b"\n") + 1
    while end and text.count(b'"', 0, end) % 2:
        end = text.find(b"\n", end) + 1
    return end or len(text)
