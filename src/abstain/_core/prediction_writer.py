"""Where blocks write their answers, and how these become one prediction."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.blocks import Block, StoredEntries
from abstain._core.kernels import packing
from abstain._core.losses import Loss
from abstain._core.prediction import ABSTAIN, PartialPrediction, PartialRanking, Prediction
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Matrix, csr_in_order
from abstain._utils.threads import for_each


class PredictionWriter:
    """Answers for all rows: dense ones are written in place, packed ones are put back where they were stored."""

    def __init__(self, probabilities: Probabilities, loss: Loss) -> None:
        self.probabilities = probabilities
        self.kind: type[Prediction] = PartialRanking if loss.gives_rankings else PartialPrediction
        n, m = probabilities.n_rows, probabilities.n_labels
        size = len(probabilities.matrix.data) if probabilities.is_sparse else (n, m)
        self.codes: NDArray[Any] = np.empty(size, self.kind.code_type)
        self.expected = np.empty(n)
        self.everything = np.zeros(n, np.bool_)

    def buffers(self, block: Block | StoredEntries) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Arrays for the codes and the expected losses of a block, or of the entries of a stretch."""
        if isinstance(block, StoredEntries):
            return self.codes[block.entries], self.expected[block.rows]
        if block.packed:
            return np.empty(block.shape, self.codes.dtype), np.empty(block.shape[0])
        return self.codes[block.rows], self.expected[block.rows]

    def write(self, block: Block, codes: NDArray[Any], expected: NDArray[np.float64]) -> None:
        """Take over what a block has written into its room."""
        if not block.packed:
            return
        packing.unpack(self.probabilities.matrix.indptr, codes, block.rows, self.codes)
        self.expected[block.rows] = expected
        # Padding stands for all labels that are not stored: a row left open throughout is left open on all of them.
        self.everything[block.rows] = (codes == ABSTAIN).all(axis=1)

    def finish(self) -> Prediction:
        codes: Any = self._sparse() if self.probabilities.is_sparse else self.codes
        return self.kind.trusted(codes, self.probabilities.axes, self.expected)

    def _sparse(self) -> sparse.csr_array:
        source, stretches = self.probabilities.matrix, list(self.probabilities.stored_entries())
        # Labels that cannot be relevant follow the ranked ones whether they are stored or not, so they need not be.
        mark, everything = (
            (source.data, np.zeros_like(self.everything))
            if self.kind is PartialRanking
            else (self.codes, self.everything)
        )
        indptr = np.zeros(len(source.indptr), np.int64)

        def count(part: StoredEntries) -> None:
            rows = part.rows.start, part.rows.stop
            packing.count_kept(source.indptr, mark, everything, source.shape[1], *rows, indptr)

        for_each(count, stretches)
        np.cumsum(indptr, out=indptr)
        indices = np.empty(indptr[-1], source.indices.dtype)
        data = np.empty(indptr[-1], self.codes.dtype)

        def keep(part: StoredEntries) -> None:
            rows = part.rows.start, part.rows.stop
            packing.keep_marked(
                source.indptr, source.indices, self.codes, mark, everything, *rows, indptr, indices, data
            )

        for_each(keep, stretches)
        return csr_in_order(data, indices, indptr, source.shape)


def with_rows(codes: Matrix, rows: NDArray[np.intp], other: Matrix) -> Matrix:
    """The same answers, with some rows (increasing) taken from another table; a dense one is changed itself."""
    if not sparse.issparse(codes):
        codes[rows] = other
        return codes
    lengths = np.diff(codes.indptr).astype(np.int64)
    lengths[rows] = np.diff(other.indptr)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices, data = np.empty(indptr[-1], codes.indices.dtype), np.empty(indptr[-1], codes.dtype)
    packing.replace_rows(
        codes.indptr, codes.indices, codes.data, rows, other.indptr, other.indices, other.data, indptr, indices, data
    )
    return csr_in_order(data, indices, indptr, codes.shape)


def overlaid(codes: sparse.csr_array, other: sparse.csr_array) -> sparse.csr_array:
    """The same answers, with others instead where these are stored."""
    counts = np.zeros(len(codes.indptr), np.int64)
    packing.count_together(codes.indptr, codes.indices, other.indptr, other.indices, counts[1:])
    indptr = np.cumsum(counts)
    indices, data = np.empty(indptr[-1], codes.indices.dtype), np.empty(indptr[-1], codes.dtype)
    packing.overlay(
        codes.indptr, codes.indices, codes.data, other.indptr, other.indices, other.data, indptr, indices, data
    )
    return csr_in_order(data, indices, indptr, codes.shape)
