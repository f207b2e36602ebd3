"""Collects the answers of blocks and makes one prediction of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.belief import Belief
from abstain._core.blocks import Block, StoredEntries
from abstain._core.joint import Joint
from abstain._core.kernels import packing
from abstain._core.kernels.packing import CsrArrays
from abstain._core.losses import Loss
from abstain._core.losses.base import BlockAnswers
from abstain._core.prediction import ABSTAIN, Prediction
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Matrix, csr_in_order
from abstain._utils.threads import for_each


class PredictionWriter:
    """The answers for all rows: dense blocks write them in place, packed ones are copied to where they are stored."""

    def __init__(self, probabilities: Belief, loss: Loss) -> None:
        self.probabilities = probabilities
        self.loss = loss
        n, m = probabilities.n_rows, probabilities.n_labels
        size = len(probabilities.matrix.data) if probabilities.is_sparse else (n, m)
        self.codes: NDArray[Any] = np.empty(size, loss.prediction_type.code_type)
        self.expected = np.empty(n)
        self.gap = None if isinstance(probabilities, Probabilities) else np.zeros(n)
        self._is_all_abstained = np.zeros(n, np.bool_)

    def buffers(self, block: Block | StoredEntries) -> BlockAnswers:
        """Return the arrays into which the answers of a block are to be written."""
        if isinstance(block, StoredEntries):
            return BlockAnswers(self.codes[block.entries], self.expected[block.rows])
        gap = None if self.gap is None else self.gap[block.rows]
        if block.packed:
            codes, expected = np.empty(block.shape, self.codes.dtype), np.empty(block.shape[0])
            return BlockAnswers(codes, expected, None if gap is None else np.zeros(block.shape[0]))
        return BlockAnswers(self.codes[block.rows], self.expected[block.rows], gap)

    def write(self, block: Block, answers: BlockAnswers) -> None:
        """Copy the answers of a packed block to where they are stored; a dense block has written them in place."""
        if not block.packed:
            return
        packing.unpack(self.probabilities.matrix.indptr, answers.codes, block.rows, self.codes)
        self.expected[block.rows] = answers.expected
        if self.gap is not None:
            self.gap[block.rows] = answers.gap
        # Padding stands for all labels that are not stored: a packed row that is all abstained is so on these, too.
        self._is_all_abstained[block.rows] = (answers.codes == ABSTAIN).all(axis=1)

    def finish(self) -> Prediction:
        """Return the prediction, once all blocks have been written."""
        codes: Any = self._sparse_codes() if self.probabilities.is_sparse else self.codes
        return self.loss.prediction_type.from_codes(codes, self.probabilities.axes, self.expected, gap=self.gap)

    def _sparse_codes(self) -> sparse.csr_array:
        """Return the codes as CSR, without answers of 0."""
        assert not isinstance(self.probabilities, Joint)  # which is never sparse
        source, parts = self.probabilities.matrix, list(self.probabilities.stored_entries())
        # Labels of probability 0 follow the ranked ones whether they are stored or not, so they need not be.
        mark, is_all_abstained = (
            (source.data, np.zeros_like(self._is_all_abstained))
            if self.loss.gives_rankings
            else (self.codes, self._is_all_abstained)
        )
        indptr = np.zeros(len(source.indptr), np.int64)

        def count(part: StoredEntries) -> None:
            rows = part.rows.start, part.rows.stop
            packing.count_kept(source.indptr, mark, is_all_abstained, source.shape[1], rows, indptr)

        for_each(count, parts)
        np.cumsum(indptr, out=indptr)
        codes = CsrArrays(source.indptr, source.indices, self.codes)
        kept = _empty_csr(indptr, codes)

        def keep(part: StoredEntries) -> None:
            packing.keep_marked(codes, mark, is_all_abstained, (part.rows.start, part.rows.stop), kept)

        for_each(keep, parts)
        return csr_in_order(kept.data, kept.indices, kept.indptr, source.shape)


def _empty_csr(indptr: NDArray[np.int64], like: CsrArrays) -> CsrArrays:
    """Return arrays for a sparse matrix with these row ends, of the types of another one."""
    size = int(indptr[-1])
    return CsrArrays(indptr, np.empty(size, like.indices.dtype), np.empty(size, like.data.dtype))


def with_rows(codes: Matrix, rows: NDArray[np.intp], other: Matrix) -> Matrix:
    """Return answers with some rows (increasing) replaced by another table; dense answers are changed in place."""
    if not sparse.issparse(codes):
        codes[rows] = other
        return codes
    lengths = np.diff(codes.indptr).astype(np.int64)
    lengths[rows] = np.diff(other.indptr)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    out = _empty_csr(indptr, CsrArrays.of(codes))
    packing.replace_rows(CsrArrays.of(codes), rows, CsrArrays.of(other), out)
    return csr_in_order(out.data, out.indices, out.indptr, codes.shape)


def overlaid(codes: sparse.csr_array, other: sparse.csr_array) -> sparse.csr_array:
    """Return answers in which the entries that another table stores are replaced by these."""
    counts = np.zeros(len(codes.indptr), np.int64)
    packing.count_together(codes.indptr, codes.indices, other.indptr, other.indices, counts[1:])
    indptr = np.cumsum(counts)
    out = _empty_csr(indptr, CsrArrays.of(codes))
    packing.overlay(CsrArrays.of(codes), CsrArrays.of(other), out)
    return csr_in_order(out.data, out.indices, out.indptr, codes.shape)
