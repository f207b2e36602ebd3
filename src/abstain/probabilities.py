"""The door for probabilities: everything behind it may trust that they are float64 in [0, 1].

Rows are worked in blocks of at most a few megabytes, so that nothing of the size of the data is ever copied: a block is
read, converted, checked and decided while it is in the cache.
"""

from bisect import bisect_right
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain.errors import InvalidProbabilities
from abstain.kernels import checking, packing
from abstain.matrix import Matrix, read_matrix

SPARE_ZEROS = 2  # padding of packed rows: enough that two labels of probability 0 can be ranked or answered


@dataclass(frozen=True)
class Block:
    """Some rows: consecutive ones of a dense table, or rows of similar length of a sparse one, packed."""

    rows: Any  # a slice, or of packed blocks an array of row numbers
    shape: tuple[int, int]
    source: Matrix

    @property
    def packed(self) -> bool:
        return not isinstance(self.rows, slice)

    def pack(self, data: NDArray[Any], padding: float, dtype: Any) -> NDArray[Any]:
        """The entries of a packed block, given all entries of the sparse matrix."""
        result = np.empty(self.shape, dtype)
        packing.pack(self.source.indptr, data, self.rows, padding, result)
        return result

    def labels(self, i: int) -> NDArray[np.intp]:
        """Which label each column of row i stands for (of packed rows, where something is stored)."""
        if not self.packed:
            return np.arange(self.shape[1])
        row = self.rows[i]
        return self.source.indices[self.source.indptr[row] : self.source.indptr[row + 1]].astype(np.intp)

    def per_label(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """One number per label as a table that kernels can use: a single row, or a row for each packed instance."""
        if not self.packed:
            return vector[np.newaxis]
        columns = self.pack(self.source.indices, 0, np.int64)
        return vector[columns]


class Probabilities:
    """Validated probabilities of n instances × m labels, dense or sparse, handed out in blocks."""

    def __init__(self, table: Any) -> None:
        self.matrix, self.axes = read_matrix(table, "probabilities", InvalidProbabilities)
        self.n_rows, self.n_labels = self.matrix.shape
        self.is_sparse = sparse.issparse(self.matrix)
        self._numbers: NDArray[np.intp] | None = None
        if self.is_sparse and np.count_nonzero(self.matrix.data) < len(self.matrix.data):
            self.matrix = self.matrix.copy()
            self.matrix.eliminate_zeros()

    def take(self, rows: NDArray[np.intp]) -> "Probabilities":
        """Some of the rows; errors name them as in the whole table."""
        part = copy(self)
        part.matrix, part.n_rows, part._numbers = self.matrix[rows], len(rows), rows
        return part

    def make_dense(self) -> None:
        """Store every probability, for those who need something of every label."""
        if self.is_sparse:
            self.matrix, self.is_sparse = self.matrix.toarray(), False

    def blocks(self, entries: int) -> Iterator[Block]:
        """The rows, each in one block; blocks of about so many entries."""
        if self.is_sparse:
            yield from packed_blocks(self.matrix, entries)
        else:
            height = max(1, entries // self.n_labels)
            for first in range(0, self.n_rows, height):
                rows = slice(first, min(first + height, self.n_rows))
                yield Block(rows, (rows.stop - first, self.n_labels), self.matrix)

    def check(self) -> None:
        """Look at every value, for those who read the matrix itself."""
        for block in self.blocks(1 << 18):
            self.load(block)

    def load(self, block: Block) -> NDArray[np.float64]:
        """The probabilities of a block: C-contiguous float64 in [0, 1], a view where the data already is that."""
        if block.packed:
            values = block.pack(self.matrix.data, 0.0, np.float64)
        else:
            values = np.ascontiguousarray(self.matrix[block.rows], dtype=np.float64)
        if checking.all_inside(values.ravel(), 0.0, 1.0):
            return values
        slack = rounding_slack(self.matrix.dtype)
        if checking.all_inside(values.ravel(), -slack, 1.0 + slack):
            return np.clip(values, 0.0, 1.0)
        raise InvalidProbabilities(self._complaint(block, values, slack))

    def _complaint(self, block: Block, values: NDArray[np.float64], slack: float) -> str:
        bad = ~((values >= -slack) & (values <= 1.0 + slack))
        rows = np.arange(self.n_rows)[block.rows]
        worst = min(np.flatnonzero(bad.any(axis=1)), key=lambda i: rows[i])
        i, j = int(rows[worst]), int(np.argmax(bad[worst]))
        column = int(self.matrix.indices[self.matrix.indptr[i] + j]) if block.packed else j
        row = i if self._numbers is None else int(self._numbers[i])
        where = f"{self.axes.row(row)}, {self.axes.label(column)}"
        return f"probabilities: {where} is {values[worst, j]}; a probability is a number from 0 to 1"


def rounding_slack(dtype: np.dtype[Any]) -> float:
    """How far outside [0, 1] a value may lie and still be a probability that was rounded."""
    return {2: 1e-3, 4: 1e-6}.get(dtype.itemsize, 1e-9) if dtype.kind == "f" else 0.0


def packed_blocks(matrix: sparse.csr_array, entries: int) -> Iterator[Block]:
    """Rows of a sparse matrix, similar lengths together, so that packing them wastes little."""
    stored = np.diff(matrix.indptr).astype(np.int64)
    order = np.argsort(stored, kind="stable")
    width = np.minimum(stored[order] + SPARE_ZEROS, matrix.shape[1])
    first = 0
    while first < len(order):
        # Widths increase, so the padded area grows with the number of rows: take as many as fit.
        rows_that_fit = bisect_right(
            range(1, len(order) - first + 1), entries, key=lambda count: count * width[first + count - 1]
        )
        last = first + max(1, rows_that_fit)
        yield Block(order[first:last], (last - first, int(width[last - 1])), matrix)
        first = last
