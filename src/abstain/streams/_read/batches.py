"""Batches: some consecutive rows of a file, and where they were in it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.tables import Matrix, RowSlice, Table
from abstain._utils.errors import quoted
from abstain._utils.numbers import is_number
from abstain.streams._formats.columns import arrow
from abstain.streams._read.ids import Ids


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
        The number of rows in all files before this one.
    numbers : array of row numbers, optional
        The numbers of these rows within the file, if some were left out.
    quote : function of a row (counted from the first one) and a label, optional
        Returns the line and the text of that cell, where the file is text.
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

    @property
    def probabilities(self) -> Any:
        """What is decided from: the table, or intervals."""
        return self.table

    def row(self, i: int, j: int = 0) -> str:
        """Return how an error names row i of the batch; in long tables, the line that lists label j."""
        return self.place(i, j) + ("" if self.ids is None else f" (id {quoted(self.ids[i])})")

    def place(self, i: int, j: int = 0) -> str:
        """Return where row i is in its file."""
        in_file = self._row_in_file(i)
        place = f"row {self.first_row + in_file}" if self.quote is None else f"line {self.quote(in_file, j)[0]}"
        return f"{self.file}: {place}"

    def cell(self, i: int, j: int) -> str | None:
        """Return how the file writes label j of row i, if it is text."""
        if self.quote is None:
            return None
        text = self.quote(self._row_in_file(i), j)[1]
        if not text.strip():
            return "empty"
        return text if is_number(text) else quoted(text)

    def _row_in_file(self, i: int) -> int:
        return i if self.numbers is None else int(self.numbers[i]) - self.first_row

    def as_row_slice(self) -> RowSlice:
        """Return the table as a part of its file, so that errors name rows as in the file."""
        return RowSlice(self.table, self.first_row + self._row_in_file(0) if len(self) else 0)

    def with_values(self, values: Matrix) -> "Batch":
        """Return the same rows with other values."""
        return replace(self, table=Table(values, self.table.label_names, self.ids))

    def take(self, rows: NDArray[np.intp]) -> "Batch":
        """Return some of the rows."""
        ids = None if self.ids is None else self.ids.take(rows)
        numbers = self.first_row + rows if self.numbers is None else self.numbers[rows]
        return replace(self, table=Table(self.table.values[rows], self.table.label_names, ids), numbers=numbers)

    def row_numbers(self) -> Ids:
        """Return the numbers of the rows, counted over all files, to serve as their names."""
        numbers = np.arange(self.first_row, self.first_row + len(self)) if self.numbers is None else self.numbers
        return Ids(arrow().array(numbers + self.rows_before, type=arrow().int64()))
