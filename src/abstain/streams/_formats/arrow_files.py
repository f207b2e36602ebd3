"""Parquet and Arrow (Feather) files, and Arrow streams."""

from pathlib import Path
from typing import IO, Any

from abstain._utils.errors import quoted
from abstain.streams._formats.columns import (
    arrow,
    counted_index,
    find_index,
    holds_names,
    label_positions,
    stack,
    to_arrow,
)
from abstain.streams._formats.names import labels_called, require_different, rows_called


def read_parquet(file: Path, index: str | None, labels: list[str] | None) -> Any:
    """All of a Parquet file."""
    with arrow("pyarrow.parquet").ParquetFile(file) as source:
        return _read(source.read(), index, labels)


def read_file(file: Path, index: str | None, labels: list[str] | None) -> Any:
    """All of an Arrow file."""
    with arrow("pyarrow.ipc").open_file(file) as source:
        return _read(source.read_all(), index, labels)


def read_stream(file: Path, index: str | None, labels: list[str] | None) -> Any:
    """All of an Arrow stream."""
    with file.open("rb") as stream, arrow("pyarrow.ipc").open_stream(stream) as source:
        return _read(source.read_all(), index, labels)


def _read(table: Any, index: str | None, labels: list[str] | None) -> Any:
    names = table.column_names
    require_different(names)
    counted = counted_index(table.schema, index, len(table))
    at = None if counted else find_index(table.schema, index, lambda: holds_names(table.column(0)))
    taken = label_positions(names, at, labels)

    def quote(j: int, row: int) -> str:
        return f"row {row}, column {taken[j] + 1}: {quoted(table.column(taken[j])[row].as_py())}"

    values = stack([table.column(j) for j in taken], quote)
    rows = None if at is None else table.column(at).to_pylist()
    rows = list(counted[1]) if counted else rows_called(rows, index is not None)
    return values, labels_called([names[j] for j in taken]), rows


def write_parquet(target: IO[bytes], *parts: Any) -> None:
    """A table as Parquet."""
    arrow("pyarrow.parquet").write_table(to_arrow(*parts), target)


def write_file(target: IO[bytes], *parts: Any) -> None:
    """A table as an Arrow file."""
    table = to_arrow(*parts)
    with arrow("pyarrow.ipc").new_file(target, table.schema) as writer:
        writer.write_table(table)


def write_stream(target: IO[bytes], *parts: Any) -> None:
    """A table as an Arrow stream."""
    table = to_arrow(*parts)
    with arrow("pyarrow.ipc").new_stream(target, table.schema) as writer:
        writer.write_table(table)
