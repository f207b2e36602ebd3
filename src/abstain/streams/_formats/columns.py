"""Tables of Arrow columns: which of them hold labels and which the names of rows, as numbers; and back.

CSV, Parquet and Arrow files are all read and written by way of these.
"""

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
from abstain.streams._formats.names import INDEX_NAMES, positions


def arrow(module: str = "pyarrow") -> Any:
    """A module of pyarrow, which not everybody needs."""
    return optional(module, "CSV, Parquet and Arrow files need pyarrow")


def find_index(schema: Any, index: str | None, first_holds_names: Callable[[], bool]) -> int | None:
    """Which column holds the names of the rows: the one asked for, the one that pandas has written, or the first."""
    names = schema.names
    if index is None:  # pandas puts the index last, and says so
        written = (schema.pandas_metadata or {}).get("index_columns", [])
        index = next((name for name in written if name in names), None)
    if index is not None:
        return positions([index], names)[0]
    return 0 if names and (names[0] in INDEX_NAMES or first_holds_names()) else None


def counted_index(schema: Any, index: str | None, n_rows: int | None) -> tuple[str, range] | None:
    """The names of rows that pandas has not written, since they just count: only that it called them something."""
    for written in (schema.pandas_metadata or {}).get("index_columns", []):
        if isinstance(written, dict) and written.get("kind") == "range" and written["name"] is not None:
            rows = range(written["start"], written["stop"], written["step"])
            if index in (None, written["name"]) and len(rows) == n_rows:
                return written["name"], rows
    return None


def label_positions(names: Sequence[str], index_at: int | None, labels: Sequence[str] | None) -> list[int]:
    """Which columns hold labels: those asked for, or all but the names of the rows."""
    if labels is not None and len(set(labels)) < len(labels):
        twice = next(name for k, name in enumerate(labels) if name in labels[:k])
        raise InvalidDataset(f"label {quoted(twice)} is asked for twice")
    taken = [j for j in range(len(names)) if j != index_at] if labels is None else positions(labels, names)
    if not taken:
        raise InvalidDataset("there are no columns of numbers")
    return taken


def holds_names(column: Any) -> bool:
    """Whether a column is text, and not numbers with a slip of the pen."""
    types = arrow("pyarrow.types")
    if not any(is_text(column.type) for is_text in (types.is_string, types.is_large_string, types.is_string_view)):
        return False
    numbers = [text for text in column.to_pylist() if is_number(text)]
    return 2 * len(numbers) <= len(column) and not any("." in str(number) for number in numbers)


def stack(columns: Sequence[Any], cell: Callable[[int, int], str]) -> NDArray[Any]:
    """Columns of numbers as an n × m array, row by row; `cell(j, row)` is how errors quote."""
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
    """What the column with the names of the rows is to be called beside these labels."""
    return next(name for name in (*INDEX_NAMES, uuid4().hex) if name not in labels)


def to_arrow(values: Any, names: list[str] | None, rows: NDArray[Any] | None, left_open: Any) -> Any:
    """A whole table of numbers as Arrow columns, with empty cells where something is left open."""
    pa = arrow()
    dense = values.toarray() if sparse.issparse(values) else values
    labels = [str(j) for j in range(dense.shape[1])] if names is None else names
    empty = left_open.toarray() if sparse.issparse(left_open) else left_open
    columns = [
        pa.array(np.ascontiguousarray(column), mask=None if empty is None else empty[:, j], from_pandas=True)
        for j, column in enumerate(dense.T)
    ]
    if rows is None and labels[0] in INDEX_NAMES:  # or the first label would be taken for the names of the rows
        rows = np.arange(len(dense))
    if rows is not None:
        labels, columns = [index_name(labels), *labels], [pa.array(rows.tolist()), *columns]
    return pa.Table.from_arrays(columns, names=labels)
