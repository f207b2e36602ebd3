"""Blocks of rows, the unit of all work; packed where the table is sparse.

Blocks have at most a few megabytes, so that nothing of the size of the data is ever copied: a block is read, converted,
checked and decided while it is in the cache.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.kernels import packing
from abstain._core.kernels.quadrature import reaches
from abstain._core.tables import Matrix

PADDING_LABELS = 2  # labels of probability 0 in each packed row: enough that two of them can be ranked or answered


@dataclass(frozen=True)
class Block:
    """Some rows: consecutive ones of a dense table, or rows of similar length of a sparse one, packed."""

    rows: Any  # a slice, or of packed blocks an array of row numbers
    shape: tuple[int, int]
    source: Matrix

    @property
    def packed(self) -> bool:
        """Whether the rows are packed copies of sparse rows, not a view of a dense table."""
        return not isinstance(self.rows, slice)

    @property
    def n_labels(self) -> int:
        """How many labels the table has; packed rows hold fewer."""
        return int(self.source.shape[1])

    def pack(self, data: NDArray[Any], padding: float, dtype: Any) -> NDArray[Any]:
        """Return the entries of a packed block, given all entries of the sparse matrix."""
        result = np.empty(self.shape, dtype)
        packing.pack(self.source.indptr, data, self.rows, padding, result)
        return result

    def columns(self) -> NDArray[np.int64]:
        """Return the label of each packed entry; 0 for padding, which stands for all labels that are not stored."""
        return self.pack(self.source.indices, 0, np.int64)

    def places(self, at: NDArray[Any], column: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows and labels in the table of entries at some rows and columns of the block."""
        if not self.packed:
            return at + self.rows.start, column
        return self.rows[at], self.columns()[at, column]

    def per_label(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return one number per label as a table for kernels: a single row, or a row for each packed instance.

        A single number (0-dimensional) holds for all labels.
        """
        if vector.ndim == 0:
            return np.full((1, self.shape[1]), vector)
        return vector[self.columns()] if self.packed else vector[np.newaxis]


@dataclass(frozen=True)
class StoredEntries:
    """The stored entries of consecutive rows of a sparse table, for losses that decide by entry."""

    rows: slice
    entries: slice
    source: Matrix

    @property
    def indptr(self) -> NDArray[Any]:
        """Where the rows begin in the whole table, and where the last one ends."""
        return self.source.indptr[self.rows.start : self.rows.stop + 1]

    @property
    def labels(self) -> NDArray[Any]:
        """The label of each entry."""
        return self.source.indices[self.entries]

    def places(self, at: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows and labels in the table of some of the entries."""
        row = np.searchsorted(self.indptr, at + self.entries.start, side="right") - 1 + self.rows.start
        return row, self.labels[at].astype(np.int64)


def packed_blocks(matrix: sparse.csr_array, entries: int) -> Iterator[Block]:
    """Yield the rows of a sparse matrix in packed blocks of rows of similar length, so that there is little padding."""
    for rows, shape in similar_rows(np.diff(matrix.indptr), matrix.shape[1], entries):
        yield Block(rows, shape, matrix)


def similar_rows(
    lengths: NDArray[Any], n_labels: int, entries: int
) -> Iterator[tuple[NDArray[np.intp], tuple[int, int]]]:
    """Yield the numbers of rows of similar length, and the shape of a block for them and a little padding.

    All rows of a block use the same quadrature rule, so that the result of a row does not depend on the other rows.
    """
    order = np.argsort(lengths, kind="stable")
    width = np.minimum(lengths[order].astype(np.int64) + PADDING_LABELS, n_labels)
    ends = np.unique(np.append(np.searchsorted(width, reaches(), side="right"), len(order)))
    first = 0
    while first < len(order):
        # Widths increase, so the padded area grows with the number of rows: take as many as fit.
        rows_that_fit = bisect_right(
            range(1, len(order) - first + 1), entries, key=lambda count: count * width[first + count - 1]
        )
        last = min(first + max(1, rows_that_fit), int(ends[np.searchsorted(ends, first, side="right")]))
        yield order[first:last], (last - first, int(width[last - 1]))
        first = last
