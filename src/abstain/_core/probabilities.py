"""Probabilities, validated when they are read: what `load`, `load_entries` and `values` return is in [0, 1]."""

import warnings
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.blocks import Block, StoredEntries, packed_blocks
from abstain._core.kernels import checking
from abstain._core.tables import Matrix, csr_in_order, dense, read_matrix
from abstain._utils.errors import InvalidProbabilities, NoProbabilities, ProbabilityWarning
from abstain._utils.threads import for_each

LARGEST_LOGIT = 20  # of a classifier: numbers up to there, all of them positive, are logits or per cent
SUM_TOLERANCE = 1e-3  # probabilities of half precision add up to 1 as exactly as that


class Probabilities:
    """Probabilities of n instances × m labels, dense or sparse, validated and read block by block."""

    least_per_block = 0
    """Probabilities per block, at least."""

    def __init__(self, table: Any, what: str = "probabilities") -> None:
        self.what = what
        """What they are called in errors."""
        self.matrix, self.axes = read_matrix(table, what, InvalidProbabilities, records=True)
        self.n_rows, self.n_labels = self.matrix.shape
        self.is_sparse = sparse.issparse(self.matrix)
        self._row_numbers: NDArray[np.intp] | None = None

    @property
    def slack(self) -> float:
        """How far outside [0, 1] a value may lie because of rounding."""
        return max(rounding_slack(self.matrix.dtype), self.axes.rounding)

    @property
    def n_entries(self) -> int:
        """How many probabilities are stored."""
        return len(self.matrix.data) if self.is_sparse else self.n_rows * self.n_labels

    @property
    def widest(self) -> int:
        """The greatest number of probabilities that a row stores."""
        return int(np.diff(self.matrix.indptr).max(initial=0)) if self.is_sparse else self.n_labels

    def take(self, rows: NDArray[np.intp]) -> "Probabilities":
        """Return some of the rows; errors name them as in the whole table."""
        part = copy(self)
        part.matrix, part.n_rows, part._row_numbers = self.matrix[rows], len(rows), rows
        return part

    def make_dense(self) -> None:
        """Turn a sparse table into a dense one, in place, for computations that need every label."""
        self.matrix, self.is_sparse = dense(self.matrix, "the probabilities"), False

    def blocks(self, entries: int) -> Iterator[Block]:
        """Yield all rows in blocks of about so many entries."""
        if self.is_sparse:
            yield from packed_blocks(self.matrix, entries)
        else:
            height = max(1, entries // self.n_labels)
            for first in range(0, self.n_rows, height):
                rows = slice(first, min(first + height, self.n_rows))
                yield Block(rows, (rows.stop - first, self.n_labels), self.matrix)

    def stored_entries(self, entries: int = 1 << 18) -> Iterator[StoredEntries]:
        """Yield the stored entries of a sparse table, about so many at a time, in whole rows."""
        indptr = self.matrix.indptr
        first = 0
        while first < self.n_rows:
            # Of the dtype of indptr, or searchsorted would convert all of it.
            end = indptr.dtype.type(min(int(indptr[first]) + entries, int(indptr[-1])))
            last = max(first + 1, int(np.searchsorted(indptr, end, side="right")) - 1)
            yield StoredEntries(slice(first, last), slice(int(indptr[first]), int(indptr[last])), self.matrix)
            first = last

    def values(self) -> Matrix:
        """Return the whole table with every value checked to be in [0, 1]: the matrix itself, or a copy if rounded."""
        pieces: Iterable[StoredEntries | Block] = self.stored_entries() if self.is_sparse else self.blocks(1 << 18)
        is_rounded: list[bool] = []
        for_each(lambda piece: is_rounded.append(self._is_rounded(piece)), pieces)
        if not any(is_rounded):
            return self.matrix
        if not self.is_sparse:
            return np.clip(self.matrix, 0, 1)
        return csr_in_order(np.clip(self.matrix.data, 0, 1), self.matrix.indices, self.matrix.indptr, self.matrix.shape)

    def _is_rounded(self, piece: "StoredEntries | Block") -> bool:
        """Whether some values lie outside [0, 1], by no more than rounding explains."""
        part = self.matrix.data[piece.entries] if isinstance(piece, StoredEntries) else self.matrix[piece.rows]
        values = np.ascontiguousarray(part, dtype=np.float64)
        return self._checked(values) is not values

    def checked(self) -> "Probabilities":
        """Return the same table with every value checked, to be read with `load_unchecked`."""
        whole = copy(self)
        whole.matrix = self.values()
        return whole

    def load(self, block: Block) -> NDArray[np.float64]:
        """Return the probabilities of a block: C-contiguous float64 in [0, 1], a view where the data is that."""
        return self._checked(self.load_unchecked(block))

    def load_unchecked(self, block: Block) -> NDArray[np.float64]:
        """Return the probabilities of a block of a table that has been checked."""
        if block.packed:
            return block.pack(self.matrix.data, 0.0, np.float64)
        return np.ascontiguousarray(self.matrix[block.rows], dtype=np.float64)

    def load_entries(self, stored: StoredEntries) -> NDArray[np.floating[Any]]:
        """Return stored probabilities as a vector in [0, 1], of float32 if they are stored so, else of float64."""
        return self._checked(self.load_entries_unchecked(stored))

    def load_entries_unchecked(self, stored: StoredEntries) -> NDArray[np.floating[Any]]:
        """Return stored probabilities of a table that has been checked."""
        values = self.matrix.data[stored.entries]
        return values if values.dtype == np.float32 else values.astype(np.float64, copy=False)

    def _checked(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values, clipped if rounding has put some outside [0, 1]; raise `InvalidProbabilities` for others."""
        if checking.all_inside(values.ravel(), 0.0, 1.0):
            return values
        if checking.all_inside(values.ravel(), -self.slack, 1.0 + self.slack):
            return np.clip(values, 0.0, 1.0)
        raise self._first_error()

    def _first_error(self) -> InvalidProbabilities:
        """Return the error for the first invalid value, row by row: blocks are not always in this order."""
        pieces: Iterable[StoredEntries | Block] = self.stored_entries() if self.is_sparse else self.blocks(1 << 18)
        for piece in pieces:
            part = self.matrix.data[piece.entries] if isinstance(piece, StoredEntries) else self.matrix[piece.rows]
            values = part.astype(np.float64).ravel()
            bad = np.flatnonzero(~((values >= -self.slack) & (values <= 1.0 + self.slack)))
            if len(bad):
                break
        at = int(bad[0])
        if isinstance(piece, StoredEntries):
            rows, columns = piece.places(bad)
        else:
            rows, columns = piece.rows.start + bad // self.n_labels, bad % self.n_labels
        i, j = int(rows[0] if self._row_numbers is None else self._row_numbers[rows[0]]), int(columns[0])
        return invalid_probability(
            f"{self.what}: {self.axes.row(i)}, {self.axes.label(j)} is {values[at]}",
            hint_at_scale(values[bad], rows, count_rows(self.matrix[piece.rows])),
        )

    def adds_up_to_one(self) -> bool:
        """Whether every one of the first rows adds up to 1."""
        if self.n_labels < 3 or self.n_rows <= 20:
            return False
        with np.errstate(invalid="ignore"):  # what is no number is an error later
            sums = np.asarray(self.matrix[:100].sum(axis=1, dtype=np.float64))
        return bool(np.all(np.abs(sums - 1.0) <= max(SUM_TOLERANCE, self.axes.rounding)))

    def warn_if_softmax(self, *, stacklevel: int = 3) -> None:
        """Warn if every row adds up to 1; the first rows are representative. By default of the caller's caller."""
        if self.adds_up_to_one():
            warnings.warn(
                "probabilities: every row adds up to 1, as a softmax makes it for classes of which exactly one is "
                "right; for labels of which several can be relevant, a model needs a sigmoid for each "
                '(problem_type="multi_label_classification" in Hugging Face\'s models, multi_label=True in their '
                "zero-shot pipelines, textcat_multilabel in spaCy)",
                ProbabilityWarning,
                stacklevel=stacklevel,
            )


def invalid_probability(what: str, hint: str) -> InvalidProbabilities:
    """Return the error for a value that is not a probability; `NoProbabilities` if a hint explains all values."""
    message = f"{what}; a probability is a number from 0 to 1"
    return NoProbabilities(f"{message}; {hint}") if hint else InvalidProbabilities(message)


def hint_at_scale(values: NDArray[Any], rows: NDArray[Any], n_rows: int) -> str:
    """Return a guess what numbers outside [0, 1] are, given the rows they are in; "" if few of the rows are wrong.

    Many values of logits or per cent may lie within [0, 1], and be most of a row. So it is enough that a tenth of the
    rows are wrong, if these are several.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain._core.probabilities import hint_at_scale
    >>> hint_at_scale(np.array([97.0, 12.0]), np.array([0, 1]), 2)
    'are these per cent? divide them by 100'
    >>> hint_at_scale(np.array([2.3, -4.1]), np.array([0, 1]), 2).partition(":")[0]
    'are these logits (log-odds)? apply the sigmoid 1/(1+exp(−x))'
    """
    is_score = np.isfinite(values) & (values != -1)  # −1 marks what is missing
    n_wrong = len(np.unique(rows[is_score]))
    if 2 * n_wrong <= n_rows and not (n_wrong >= 5 and 10 * n_wrong >= n_rows):
        return ""
    lowest, highest = values[is_score].min(), values[is_score].max()
    sigmoid = 'apply the sigmoid 1/(1+exp(−x)): abstain.label_probabilities(x, kind="logit"), or --kind logit'
    if lowest < 0:
        return f"are these logits (log-odds)? {sigmoid}"
    if 2 <= highest <= LARGEST_LOGIT:
        return f"are these per cent? divide them by 100; or logits (log-odds)? {sigmoid}"
    return "are these per cent? divide them by 100" if LARGEST_LOGIT < highest <= 100 else ""


def count_rows(matrix: Matrix) -> int:
    """Return the number of rows; of a sparse table only of those that store something."""
    return int(np.count_nonzero(np.diff(matrix.indptr))) if sparse.issparse(matrix) else len(matrix)


def rounding_slack(dtype: np.dtype[Any]) -> float:
    """Return how far outside [0, 1] a probability may lie because of rounding."""
    return {2: 1e-3, 4: 1e-6}.get(dtype.itemsize, 1e-9) if dtype.kind == "f" else 0.0
