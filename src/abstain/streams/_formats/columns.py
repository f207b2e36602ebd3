"""Tables of Arrow columns ↔ numbers with the names of labels and rows: what all formats of columns share."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._utils.errors import InvalidDataset, quoted
from abstain._utils.extras import optional
from abstain._utils.numbers import is_number, number_in
from abstain.streams._formats.names import (
    INDEX_NAMES,
    find_duplicate,
    label_names_from,
    positions,
    require_unique,
    row_names_from,
)


def arrow(module: str = "pyarrow") -> Any:
    """Import a module of pyarrow, which is an optional dependency."""
    return optional(module, "CSV, Parquet and Arrow files need pyarrow")


def find_index(schema: Any, index: str | None, first_holds_names: Callable[[], bool]) -> int | None:
    """Return the column with the names of the rows: the one asked for, the one that pandas wrote, or the first."""
    names = schema.names
    if index is None:  # pandas puts the index last, and says so
        written = (schema.pandas_metadata or {}).get("index_columns", [])
        index = next((name for name in written if name in names), None)
    if index is not None:
        return positions([index], names)[0]
    return 0 if names and (names[0] in INDEX_NAMES or first_holds_names()) else None


def range_index(schema: Any, index: str | None, n_rows: int | None) -> tuple[str, range] | None:
    """Return the name and the entries of an index that pandas has not written as a column, since it is a range."""
    for written in (schema.pandas_metadata or {}).get("index_columns", []):
        if isinstance(written, dict) and written.get("kind") == "range" and written["name"] is not None:
            rows = range(written["start"], written["stop"], written["step"])
            if index in (None, written["name"]) and len(rows) == n_rows:
                return written["name"], rows
    return None


def label_positions(names: Sequence[str], index_at: int | None, labels: Sequence[str] | None) -> list[int]:
    """Return the columns that hold labels: those asked for, or all but the names of the rows."""
    if labels is not None and (duplicate := find_duplicate(labels)) is not None:
        raise InvalidDataset(f"label {quoted(duplicate)} is asked for twice")
    taken = [j for j in range(len(names)) if j != index_at] if labels is None else positions(labels, names)
    if not taken:
        raise InvalidDataset("there are no columns of numbers")
    return taken


def holds_names(column: Any) -> bool:
    """Whether a column is text, and not numbers some of which are misspelt."""
    types = arrow("pyarrow.types")
    if not any(is_text(column.type) for is_text in (types.is_string, types.is_large_string, types.is_string_view)):
        return False
    numbers = [text for text in column.to_pylist() if is_number(text)]
    return 2 * len(numbers) <= len(column) and not any("." in str(number) for number in numbers)


def stack_columns(columns: Sequence[Any], cell: Callable[[int, int], str]) -> NDArray[Any]:
    """Return columns of numbers as an n × m array in C order; `cell(j, row)` is how errors quote an entry."""
    arrays = [_numbers(column, partial(cell, j)) for j, column in enumerate(columns)]
    values = np.empty((len(arrays[0]), len(arrays)), np.result_type(*arrays))
    # A few rows at a time: what is written row by row is still in the cache when the next column comes.
    height = max(64, (1 << 18) // len(arrays))
    for first in range(0, len(values), height):
        part = values[first : first + height]
        for j, array in enumerate(arrays):
            part[:, j] = array[first : first + height]
    return values


def _numbers(column: Any, cell: Callable[[int], str]) -> NDArray[Any]:
    types = arrow("pyarrow.types")
    kind = column.type
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_boolean(kind) and not column.null_count:
        return column.to_numpy(zero_copy_only=False)
    if types.is_boolean(kind):
        return column.cast("int8").to_numpy(zero_copy_only=False)
    if types.is_integer(kind) or types.is_floating(kind):
        return column.to_numpy(zero_copy_only=False)
    for row, value in enumerate(column.to_pylist()):
        if not is_number(value):
            raise InvalidDataset(f"{cell(row)} is not a number (the column has type {kind})")
    return np.array([number_in(value) for value in column.to_pylist()])


def index_name(labels: Sequence[str]) -> str:
    """Return a name for the column with the names of the rows that is none of the labels."""
    return next(name for name in (*INDEX_NAMES, uuid4().hex) if name not in labels)


def from_arrow(table: Any, index: str | None, labels: list[str] | None) -> tuple[NDArray[Any], Any, Any]:
    """Return the values, the label names and the row names of a whole table of Arrow columns."""
    names = table.column_names
    require_unique(names)
    counted = range_index(table.schema, index, len(table))
    at = None if counted else find_index(table.schema, index, lambda: holds_names(table.column(0)))
    taken = label_positions(names, at, labels)

    def quote(j: int, row: int) -> str:
        return f"row {row}, column {taken[j] + 1}: {quoted(table.column(taken[j])[row].as_py())}"

    values = stack_columns([table.column(j) for j in taken], quote)
    rows = None if at is None else table.column(at).to_pylist()
    rows = list(counted[1]) if counted else row_names_from(rows, is_requested=index is not None)
    return values, label_names_from([names[j] for j in taken]), rows


def to_arrow(values: Any, names: Sequence[str] | None, rows: NDArray[Any] | None, abstained: Any) -> Any:
    """Return a whole table of numbers as Arrow columns, with empty cells for abstentions."""
    pa = arrow()
    dense = values.toarray() if sparse.issparse(values) else values
    labels = [str(j) for j in range(dense.shape[1])] if names is None else list(names)
    empty = abstained.toarray() if sparse.issparse(abstained) else abstained
    columns = [
        pa.array(np.ascontiguousarray(column), mask=None if empty is None else empty[:, j], from_pandas=True)
        for j, column in enumerate(dense.T)
    ]
    if rows is None and labels[0] in INDEX_NAMES:  # or the first label would be taken for the names of the rows
        rows = np.arange(len(dense))
    if rows is not None:
        labels, columns = [index_name(labels), *labels], [pa.array(rows.tolist()), *columns]
    return pa.Table.from_arrays(columns, names=labels)
