"""Validated probabilities: whoever gets them by `load` or `values` may trust that they are in [0, 1]."""

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.blocks import Block, StoredEntries, packed_blocks
from abstain._core.kernels import checking
from abstain._core.tables import Matrix, csr_in_order, dense, read_matrix
from abstain._utils.errors import InvalidProbabilities, NoProbabilities


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

    def stored_entries(self, entries: int = 1 << 18) -> Iterator[StoredEntries]:
        """The rows of a sparse table, each in one stretch; stretches of about so many entries."""
        indptr = self.matrix.indptr
        first = 0
        while first < self.n_rows:
            # Of the type of indptr, or all of that would be converted.
            end = indptr.dtype.type(min(int(indptr[first]) + entries, int(indptr[-1])))
            last = max(first + 1, int(np.searchsorted(indptr, end, side="right")) - 1)
            yield StoredEntries(slice(first, last), slice(int(indptr[first]), int(indptr[last])), self.matrix)
            first = last

    def values(self) -> Matrix:
        """Return the whole table with every value checked to be in [0, 1]: the matrix itself, or a copy if rounded."""
        pieces: Iterable[StoredEntries | Block] = self.stored_entries() if self.is_sparse else self.blocks(1 << 18)
        if sum(map(self._is_rounded, pieces)) == 0:
            return self.matrix
        if not self.is_sparse:
            return np.clip(self.matrix, 0, 1)
        return csr_in_order(np.clip(self.matrix.data, 0, 1), self.matrix.indices, self.matrix.indptr, self.matrix.shape)

    def _is_rounded(self, piece: "StoredEntries | Block") -> bool:
        """Whether some values lie outside [0, 1], by no more than rounding explains."""
        part = self.matrix.data[piece.entries] if isinstance(piece, StoredEntries) else self.matrix[piece.rows]
        values = np.ascontiguousarray(part, dtype=np.float64)
        return self._checked(values) is not values

    def load(self, block: Block) -> NDArray[np.float64]:
        """The probabilities of a block: C-contiguous float64 in [0, 1], a view where the data already is that."""
        if block.packed:
            return self._checked(block.pack(self.matrix.data, 0.0, np.float64))
        return self._checked(np.ascontiguousarray(self.matrix[block.rows], dtype=np.float64))

    def load_entries(self, stretch: StoredEntries) -> NDArray[np.floating[Any]]:
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
        pieces: Iterable[StoredEntries | Block] = self.stored_entries() if self.is_sparse else self.blocks(1 << 18)
        for piece in pieces:
            part = self.matrix.data[piece.entries] if isinstance(piece, StoredEntries) else self.matrix[piece.rows]
            values = part.astype(np.float64).ravel()
            bad = np.flatnonzero(~((values >= -slack) & (values <= 1.0 + slack)))
            if len(bad):
                break
        at = int(bad[0])
        if isinstance(piece, StoredEntries):
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
