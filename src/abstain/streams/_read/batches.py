"""What streams are made of: some rows of a file, and where they were in it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.tables import Matrix, RowSlice, Table
from abstain._utils.errors import InvalidDataset, quoted
from abstain._utils.numbers import is_number
from abstain.streams._formats.columns import arrow

BATCH_BYTES = 1 << 24
"""About how many bytes a batch holds. What is read at once, or gathered before it is written, is a multiple of it."""
NUMBER_BYTES = 8
"""What a number of a batch counts: whatever it is stored as, it is decided on as float64."""


def batch_height(row_bytes: int) -> int:
    """How many rows of so many bytes make a batch."""
    return max(1, BATCH_BYTES // max(1, row_bytes))


class Ids:
    """The names of rows as an Arrow array, made into Python objects only where one is looked at."""

    def __init__(self, array: Any) -> None:
        kind = id_type(array.type)
        self.array = array if array.type == kind else array.cast(kind)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, at: Any) -> Any:
        return self.array[at].to_pylist() if isinstance(at, slice) else self.array[int(at)].as_py()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array.to_pylist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array.to_pylist(), dtype=object if dtype is None else dtype)

    def equals(self, other: Any) -> bool:
        """Whether both name the same rows in the same order."""
        return isinstance(other, Ids) and len(self) == len(other) and not self.differ(other).any()

    def differ(self, other: "Ids") -> NDArray[np.bool_]:
        """Which rows are not named alike; a number may be written as text."""
        ours, theirs = comparable(self.array, other.array)
        differ: NDArray[np.bool_] = arrow("pyarrow.compute").not_equal(ours, theirs).to_numpy(zero_copy_only=False)
        return differ

    def take(self, rows: NDArray[np.intp]) -> "Ids":
        """The names of some of the rows."""
        return Ids(self.array.take(arrow().array(rows)))


def find_empty(names: Any) -> int | None:
    """The first of some names that is missing, or a text without any character."""
    compute, is_string = arrow("pyarrow.compute"), arrow("pyarrow.types").is_string(names.type)
    empty = compute.fill_null(compute.equal(names, ""), True) if is_string else names.is_null()
    at = compute.index(empty, True).as_py()
    return None if at < 0 else int(at)


def id_type(kind: Any) -> Any:
    """How names of rows of this type are kept: all text alike, and all whole numbers that fit."""
    pa, types = arrow(), arrow("pyarrow.types")
    if types.is_dictionary(kind):
        return id_type(kind.value_type)
    if types.is_nested(kind):
        raise InvalidDataset(f"the names of the rows have type {kind}; expected text or numbers")
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    return pa.int64() if types.is_integer(kind) and kind != pa.uint64() else kind


def comparable(ours: Any, theirs: Any) -> tuple[Any, Any]:
    """Two arrays of names in one type, which is text if they differ."""
    if ours.type == theirs.type:
        return ours, theirs
    return ours.cast(arrow().string()), theirs.cast(arrow().string())


@dataclass(frozen=True)
class Batch:
    """Some consecutive rows of a file.

    Parameters
    ----------
    table : Table
        Their probabilities, dense or CSR, with the names of the labels; its index is `Ids`, or None.
    file : str
        The file as errors name it.
    first_row : int
        The number of the first row within the file, from 0.
    rows_before : int
        How many rows the files before this one have.
    numbers : array of row numbers, optional
        Which rows of the file these are, if some were left out.
    quote : function of a row (counted from the first one) and a label, optional
        The line and the text of that cell, where the file is text.
    """

    table: Table
    file: str
    first_row: int
    rows_before: int = 0
    numbers: NDArray[np.intp] | None = None
    quote: Callable[[int, int], tuple[int, str]] | None = None

    def __len__(self) -> int:
        return len(self.table)

    @property
    def ids(self) -> Ids | None:
        """The names of the rows."""
        ids: Ids | None = self.table.index
        return ids

    def row(self, i: int, j: int = 0) -> str:
        """How an error names row i of the batch; in long tables, the line that lists label j."""
        return self.place(i, j) + ("" if self.ids is None else f" (id {quoted(self.ids[i])})")

    def place(self, i: int, j: int = 0) -> str:
        """Where row i is in its file."""
        within = self._within(i)
        place = f"row {self.first_row + within}" if self.quote is None else f"line {self.quote(within, j)[0]}"
        return f"{self.file}: {place}"

    def cell(self, i: int, j: int) -> str | None:
        """How the file writes label j of row i, if it is text."""
        if self.quote is None:
            return None
        text = self.quote(self._within(i), j)[1]
        if not text.strip():
            return "empty"
        return text if is_number(text) else quoted(text)

    def _within(self, i: int) -> int:
        return i if self.numbers is None else int(self.numbers[i]) - self.first_row

    def as_part(self) -> RowSlice:
        """The table, for those who name rows as in the whole file."""
        return RowSlice(self.table, self.first_row + self._within(0) if len(self) else 0)

    def with_values(self, values: Matrix) -> "Batch":
        """The same rows with other probabilities."""
        return replace(self, table=Table(values, self.table.label_names, self.ids))

    def take(self, rows: NDArray[np.intp]) -> "Batch":
        """Some of the rows."""
        ids = None if self.ids is None else self.ids.take(rows)
        numbers = self.first_row + rows if self.numbers is None else self.numbers[rows]
        return replace(self, table=Table(self.table.values[rows], self.table.label_names, ids), numbers=numbers)

    def row_numbers(self) -> Ids:
        """The numbers of the rows, counted over all files, to serve as their names."""
        within = np.arange(self.first_row, self.first_row + len(self)) if self.numbers is None else self.numbers
        return Ids(arrow().array(within + self.rows_before, type=arrow().int64()))
