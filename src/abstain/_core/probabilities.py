"""The door for probabilities: everything behind it may trust that they are float64 in [0, 1].

Rows are worked in blocks of at most a few megabytes, so that nothing of the size of the data is ever copied: a block is
read, converted, checked and decided while it is in the cache.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.kernels import checking, packing
from abstain._core.kernels.quadrature import reaches
from abstain._core.tables import Matrix, dense, read_matrix
from abstain._utils.errors import InvalidProbabilities, NoProbabilities

SPARE_ZEROS = 2  # padding of packed rows: enough that two labels of probability 0 can be ranked or answered


@dataclass(frozen=True)
class Block:
    """Some rows: consecutive ones of a dense table, or rows of similar length of a sparse one, packed."""

    rows: Any  # a slice, or of packed blocks an array of row numbers
    shape: tuple[int, int]
    source: Matrix

    @property
    def packed(self) -> bool:
        """Whether the rows are not where they will be written, but packed."""
        return not isinstance(self.rows, slice)

    @property
    def n_labels(self) -> int:
        """How many labels the table has; of packed rows more than are shown."""
        return int(self.source.shape[1])

    def pack(self, data: NDArray[Any], padding: float, dtype: Any) -> NDArray[Any]:
        """The entries of a packed block, given all entries of the sparse matrix."""
        result = np.empty(self.shape, dtype)
        packing.pack(self.source.indptr, data, self.rows, padding, result)
        return result

    def columns(self) -> NDArray[np.int64]:
        """Which label each packed entry stands for; 0 for padding, which stands for many."""
        return self.pack(self.source.indices, 0, np.int64)

    def places(self, at: NDArray[Any], column: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which row and which label of the table entries of the block are."""
        if not self.packed:
            return at + self.rows.start, column
        return self.rows[at], self.columns()[at, column]

    def per_label(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """One number per label as a table that kernels can use: a single row, or a row for each packed instance.

        A single number (0-dimensional) is that of all labels.
        """
        if vector.ndim == 0:
            return np.full((1, self.shape[1]), vector)
        return vector[self.columns()] if self.packed else vector[np.newaxis]


@dataclass(frozen=True)
class Stretch:
    """Consecutive rows of a sparse table just as they are stored: for what each entry decides by itself."""

    rows: slice
    entries: slice
    source: Matrix

    @property
    def indptr(self) -> NDArray[Any]:
        """Where its rows begin in the whole table, and where the last one ends."""
        return self.source.indptr[self.rows.start : self.rows.stop + 1]

    @property
    def labels(self) -> NDArray[Any]:
        """Which label each of its entries is about."""
        return self.source.indices[self.entries]

    def places(self, at: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which row and which label of the table some of its entries are."""
        row = np.searchsorted(self.indptr, at + self.entries.start, side="right") - 1 + self.rows.start
        return row, self.labels[at].astype(np.int64)


class Probabilities:
    """Validated probabilities of n instances × m labels, dense or sparse, handed out in blocks."""

    def __init__(self, table: Any) -> None:
        self.matrix, self.axes = read_matrix(table, "probabilities", InvalidProbabilities)
        self.n_rows, self.n_labels = self.matrix.shape
        self.is_sparse = sparse.issparse(self.matrix)
        self._numbers: NDArray[np.intp] | None = None

    @property
    def n_entries(self) -> int:
        """How many probabilities are stored."""
        return len(self.matrix.data) if self.is_sparse else self.n_rows * self.n_labels

    @property
    def widest(self) -> int:
        """How many probabilities a row stores at most."""
        return int(np.diff(self.matrix.indptr).max(initial=0)) if self.is_sparse else self.n_labels

    def take(self, rows: NDArray[np.intp]) -> "Probabilities":
        """Some of the rows; errors name them as in the whole table."""
        part = copy(self)
        part.matrix, part.n_rows, part._numbers = self.matrix[rows], len(rows), rows
        return part

    def make_dense(self) -> None:
        """Store every probability, for those who need something of every label."""
        self.matrix, self.is_sparse = dense(self.matrix, "the probabilities"), False

    def blocks(self, entries: int) -> Iterator[Block]:
        """The rows, each in one block; blocks of about so many entries."""
        if self.is_sparse:
            yield from packed_blocks(self.matrix, entries)
        else:
            height = max(1, entries // self.n_labels)
            for first in range(0, self.n_rows, height):
                rows = slice(first, min(first + height, self.n_rows))
                yield Block(rows, (rows.stop - first, self.n_labels), self.matrix)

    def stretches(self, entries: int = 1 << 18) -> Iterator[Stretch]:
        """The rows of a sparse table, each in one stretch; stretches of about so many entries."""
        indptr = self.matrix.indptr
        first = 0
        while first < self.n_rows:
            # Of the type of indptr, or all of that would be converted.
            end = indptr.dtype.type(min(int(indptr[first]) + entries, int(indptr[-1])))
            last = max(first + 1, int(np.searchsorted(indptr, end, side="right")) - 1)
            yield Stretch(slice(first, last), slice(int(indptr[first]), int(indptr[last])), self.matrix)
            first = last

    def check(self) -> None:
        """Look at every value, for those who read the matrix itself."""
        if self.is_sparse:
            for stretch in self.stretches():
                self.load_entries(stretch)
        else:
            for block in self.blocks(1 << 18):
                self.load(block)

    def load(self, block: Block) -> NDArray[np.float64]:
        """The probabilities of a block: C-contiguous float64 in [0, 1], a view where the data already is that."""
        if block.packed:
            return self._checked(block.pack(self.matrix.data, 0.0, np.float64))
        return self._checked(np.ascontiguousarray(self.matrix[block.rows], dtype=np.float64))

    def load_entries(self, stretch: Stretch) -> NDArray[np.floating[Any]]:
        """The probabilities that a stretch stores: a vector in [0, 1], of float32 if they are that, else of float64."""
        values = self.matrix.data[stretch.entries]
        return self._checked(values if values.dtype == np.float32 else values.astype(np.float64, copy=False))

    def _checked(self, values: NDArray[Any]) -> NDArray[Any]:
        if checking.all_inside(values.ravel(), 0.0, 1.0):
            return values
        slack = rounding_slack(self.matrix.dtype)
        if checking.all_inside(values.ravel(), -slack, 1.0 + slack):
            return np.clip(values, 0.0, 1.0)
        raise self._complaint(slack)

    def _complaint(self, slack: float) -> InvalidProbabilities:
        """What is wrong with the first value that is, row by row: blocks are not always in this order."""
        pieces: Iterable[Stretch | Block] = self.stretches() if self.is_sparse else self.blocks(1 << 18)
        for piece in pieces:
            part = self.matrix.data[piece.entries] if isinstance(piece, Stretch) else self.matrix[piece.rows]
            values = part.astype(np.float64).ravel()
            bad = np.flatnonzero(~((values >= -slack) & (values <= 1.0 + slack)))
            if len(bad):
                break
        at = int(bad[0])
        if isinstance(piece, Stretch):
            rows, columns = piece.places(bad)
        else:
            rows, columns = piece.rows.start + bad // self.n_labels, bad % self.n_labels
        i, j = int(rows[0] if self._numbers is None else self._numbers[rows[0]]), int(columns[0])
        return no_probability(
            f"probabilities: {self.axes.row(i)}, {self.axes.label(j)} is {values[at]}",
            hint_at_scale(values[bad], rows, piece.rows.stop - piece.rows.start),
        )


def no_probability(what: str, hint: str) -> InvalidProbabilities:
    """The error that says that something is no probability; with a hint, that it is not just this one."""
    said = f"{what}; a probability is a number from 0 to 1"
    return NoProbabilities(f"{said}; {hint}") if hint else InvalidProbabilities(said)


def hint_at_scale(values: NDArray[Any], rows: NDArray[Any], n_rows: int) -> str:
    """What the numbers outside [0, 1] and the rows they are in look like; nothing if just some of the rows are wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain._core.probabilities import hint_at_scale
    >>> hint_at_scale(np.array([97.0, 12.0]), np.array([0, 1]), 2)
    'are these per cent? divide them by 100'
    >>> hint_at_scale(np.array([2.3, -4.1]), np.array([0, 1]), 2)
    'are these logits or log-odds? apply the sigmoid 1/(1+exp(−x))'
    """
    finite = np.isfinite(values)
    values = values[finite]
    if 2 * len(np.unique(rows[finite])) <= n_rows or np.all(values == -1):  # −1 marks what is missing
        return ""
    if values.min() < 0:
        return "are these logits or log-odds? apply the sigmoid 1/(1+exp(−x))"
    return "are these per cent? divide them by 100" if 2 <= values.max() <= 100 else ""


def rounding_slack(dtype: np.dtype[Any]) -> float:
    """How far outside [0, 1] a value may lie and still be a probability that was rounded."""
    return {2: 1e-3, 4: 1e-6}.get(dtype.itemsize, 1e-9) if dtype.kind == "f" else 0.0


def packed_blocks(matrix: sparse.csr_array, entries: int) -> Iterator[Block]:
    """Rows of a sparse matrix, similar lengths together, so that packing them wastes little."""
    for rows, shape in similar_rows(np.diff(matrix.indptr), matrix.shape[1], entries):
        yield Block(rows, shape, matrix)


def similar_rows(
    lengths: NDArray[Any], n_labels: int, entries: int
) -> Iterator[tuple[NDArray[np.intp], tuple[int, int]]]:
    """Rows of similar length, and the shape of a block that has room for them and for a little padding.

    The same quadrature rule serves all rows of a block, so that none depends on which others it comes with.
    """
    order = np.argsort(lengths, kind="stable")
    width = np.minimum(lengths[order].astype(np.int64) + SPARE_ZEROS, n_labels)
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
