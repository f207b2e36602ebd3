"""CSV, plain or packed."""

import csv
import gzip
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from abstain._utils.errors import InvalidDataset, quoted
from abstain.streams._formats.columns import arrow, find_index, holds_names, label_positions, stack, to_arrow
from abstain.streams._formats.names import INDEX_NAMES, labels_called, require_different, rows_called

FRACTION = re.compile(r"\s*-?\d*\.\d+(e-?\d+)?\s*", re.IGNORECASE)


def read(file: Path, index: str | None, labels: list[str] | None) -> Any:
    """All of a CSV file."""
    pa, csv_files = arrow(), arrow("pyarrow.csv")
    with _open(file) as source:
        header = next((cells for _, cells in records(source)), [])
    with _open(file) as source:
        require_header(header, source.readline())
    # Row names are read as text: 007 is not 7. A blank line is a row without its only cell, or else nothing.
    text = {name: pa.string() for name in (index, header[0] if header[0] in INDEX_NAMES else None) if name is not None}
    try:
        with _open(file) as source:
            table = csv_files.read_csv(
                source,
                read_options=csv_files.ReadOptions(use_threads=False),
                parse_options=csv_files.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(header) > 1),
                convert_options=csv_files.ConvertOptions(column_types=text),
            )
    except pa.ArrowInvalid as reason:
        with _open(file) as source:
            require_cells(source, len(header), reason)
        raise
    at = find_index(table.schema, index, lambda: holds_names(table.column(0)))
    taken = label_positions(header, at, labels)
    values = stack([table.column(j) for j in taken], lambda j, row: _quote(file, row, taken[j]))
    rows = None if at is None else _row_names(table.column(at).to_pylist())
    return values, labels_called([header[j] for j in taken]), rows_called(rows, index is not None)


def write(target: IO[bytes], *parts: Any) -> None:
    """A table as CSV."""
    arrow("pyarrow.csv").write_csv(to_arrow(*parts), target)


def write_packed(target: IO[bytes], *parts: Any) -> None:
    """A table as CSV, packed."""
    with packed(target) as packing:
        write(packing, *parts)


def packed(target: IO[bytes]) -> Any:
    """A file to write into that is packed on its way: the same bytes from the same table."""
    return gzip.GzipFile(fileobj=target, mode="wb", filename="", mtime=0)


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
    require_different(cells)


def records(source: IO[bytes], first_line: int = 1) -> Iterator[tuple[int, list[str]]]:
    """The lines where records end, and their cells: slow, for the header and for messages."""
    with io.TextIOWrapper(source, encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text)
        try:
            for cells in reader:
                yield first_line - 1 + reader.line_num, cells
        except csv.Error as reason:
            line = first_line - 1 + reader.line_num
            raise InvalidDataset(f"line {line} cannot be read ({reason})") from reason


def require_cells(source: IO[bytes], n_cells: int, reason: Exception | None, first_line: int = 1) -> None:
    """Raise `InvalidDataset` for the first record that has not so many cells."""
    for line, cells in records(source, first_line):
        if cells and len(cells) != n_cells:
            found = f"{len(cells)} cell{'' if len(cells) == 1 else 's'}"
            hint = "; text with a comma needs quotes, numbers have a point" if len(cells) > n_cells else ""
            raise InvalidDataset(f"line {line} has {found}, expected {n_cells}{hint}") from reason


def rows_of(source: IO[bytes], n_cells: int, first_line: int = 1) -> Iterator[tuple[int, list[str]]]:
    """The records that are rows: a blank line is a row without its only cell, or else nothing."""
    return ((line, cells) for line, cells in records(source, first_line) if cells or n_cells == 1)


def _open(file: Path) -> IO[bytes]:
    return gzip.open(file, "rb") if file.name.lower().endswith(".gz") else file.open("rb")  # type: ignore[return-value]


def _quote(file: Path, row: int, column: int) -> str:
    with _open(file) as source:
        header = next(cells for _, cells in records(source))
    with _open(file) as source:
        rows = rows_of(source, len(header))
        line, cells = next(record for i, record in enumerate(rows) if i == row + 1)
        return f"line {line}, column {column + 1}: {quoted(cells[column])}"


def _row_names(column: list[Any]) -> list[Any]:
    """Row names: whole numbers if each of them is written as one, else text."""
    try:
        numbers = [int(name) for name in column]
    except (TypeError, ValueError):
        return ["" if name is None else name for name in column]
    return numbers if [str(number) for number in numbers] == [str(name) for name in column] else column
