"""Where blocks write their answers, and how these become one prediction."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain.kernels import packing
from abstain.losses import Loss
from abstain.prediction import ABSTAIN, PartialPrediction, PartialRanking
from abstain.probabilities import Block, Probabilities


class Assembly:
    """Answers for all rows: dense ones are written in place, packed ones are put back where they were stored."""

    def __init__(self, probabilities: Probabilities, loss: Loss) -> None:
        self.probabilities = probabilities
        self.kind: type[PartialPrediction | PartialRanking] = (
            PartialRanking if loss.gives_rankings else PartialPrediction
        )
        n, m = probabilities.n_rows, probabilities.n_labels
        size = len(probabilities.matrix.data) if probabilities.is_sparse else (n, m)
        self.codes: NDArray[Any] = np.empty(size, self.kind.code_type)
        self.expected = np.empty(n)
        self.everything = np.zeros(n, np.bool_)

    def room(self, block: Block) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Arrays for the codes and the expected losses of a block."""
        if block.packed:
            return np.empty(block.shape, self.codes.dtype), np.empty(block.shape[0])
        return self.codes[block.rows], self.expected[block.rows]

    def store(self, block: Block, codes: NDArray[Any], expected: NDArray[np.float64]) -> None:
        """Take over what a block has written into its room."""
        if not block.packed:
            return
        packing.unpack(self.probabilities.matrix.indptr, codes, block.rows, self.codes)
        self.expected[block.rows] = expected
        # Padding stands for all labels that are not stored: a row left open throughout is left open on all of them.
        self.everything[block.rows] = (codes == ABSTAIN).all(axis=1)

    def finish(self) -> PartialPrediction | PartialRanking:
        codes: Any = self._sparse() if self.probabilities.is_sparse else self.codes
        return self.kind.trusted(codes, self.probabilities.axes, self.expected)

    def _sparse(self) -> sparse.csr_array:
        source = self.probabilities.matrix
        if self.kind is PartialRanking:
            return sparse.csr_array((self.codes, source.indices.copy(), source.indptr.copy()), source.shape)
        indptr = np.empty(len(source.indptr), np.int64)
        m = source.shape[1]
        packing.count_kept(source.indptr, self.codes, self.everything, m, indptr)
        indices = np.empty(indptr[-1], source.indices.dtype)
        data = np.empty(indptr[-1], self.codes.dtype)
        packing.keep_nonzero(source.indptr, source.indices, self.codes, self.everything, m, indptr, indices, data)
        return sparse.csr_array((data, indices, indptr.astype(source.indptr.dtype)), source.shape)
