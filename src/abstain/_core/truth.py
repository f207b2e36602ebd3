"""The truth, and tables (truth or probabilities) aligned with a prediction: the same rows, the same labels."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.blocks import Block, similar_rows
from abstain._core.kernels import packing
from abstain._core.prediction import PartialRanking, Prediction, require_codes
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Axes, Matrix, read_matrix
from abstain._utils.errors import InvalidLabels


def read_truth(y_true: Any, what: str = "y_true") -> tuple[Matrix, Axes]:
    """Return the truth as a table of 0 and 1, dense or CSR, and the names of its rows and labels."""
    truth, axes = read_matrix(y_true, what, InvalidLabels)
    require_codes(truth, axes, (0, 1), what, "the truth is 0 or 1")
    return truth.astype(np.int8, copy=False), axes


def require_same_table(axes: Axes, matrix: Matrix, partial: Prediction, what: str) -> None:
    """Raise `InvalidLabels` if a table is not about the same rows and labels as a prediction."""
    if matrix.shape != partial.shape:
        raise InvalidLabels(f"{what} has shape {matrix.shape}; the prediction has {partial.shape}")
    partial.axes.require_same(axes, what)


def read_truth_for(table: Probabilities, y_true: Any) -> Matrix:
    """Return the truth, dense or CSR; raise `InvalidLabels` if it is about other rows or labels than a table."""
    truth, axes = read_truth(y_true)
    if truth.shape != table.matrix.shape:
        raise InvalidLabels(f"y_true has shape {truth.shape}; the probabilities have {table.matrix.shape}")
    table.axes.require_same(axes, "y_true")
    return truth


def differ(truth: Matrix, labels: Matrix) -> Matrix:
    """Return where two tables differ: dense, or CSR if either is."""
    if sparse.issparse(truth) or sparse.issparse(labels):
        return sparse.csr_array(truth) != sparse.csr_array(labels)
    return truth != labels


@dataclass(frozen=True)
class SharedBlock(Block):
    """Rows of two sparse matrices, packed together: the labels that either of them stores."""

    labels: NDArray[np.int64]

    def columns(self) -> NDArray[np.int64]:
        """Return the label of each packed entry."""
        return self.labels


def aligned_blocks(
    table: Matrix, partial: Prediction, entries: int
) -> Iterator[tuple[Block, NDArray[Any], NDArray[Any]]]:
    """Yield blocks with the values of a table and the codes of a prediction; sparse ones are packed together."""
    n, m = partial.shape
    if not sparse.issparse(table) and not sparse.issparse(partial.codes):
        height = max(1, entries // m)
        for first in range(0, n, height):
            block = Block(slice(first, first + height), (min(height, n - first), m), table)
            yield block, np.ascontiguousarray(table[block.rows]), np.ascontiguousarray(partial.codes[block.rows])
        return
    ranked = isinstance(partial, PartialRanking)
    left = sparse.csr_array(table.astype(np.float32) if table.dtype == np.float16 else table)
    right = (
        _all_stored(partial.codes) if ranked and not sparse.issparse(partial.codes) else sparse.csr_array(partial.codes)
    )
    lengths = np.empty(n, np.int64)
    packing.count_together(left.indptr, left.indices, right.indptr, right.indices, lengths)
    for rows, shape in similar_rows(lengths, m, entries):
        values, codes = np.zeros(shape, left.dtype), np.full(shape, m if ranked else 0, right.dtype)
        labels = np.zeros(shape, np.int64)
        out = packing.PackedPair(labels, values, codes)
        packing.pack_together(packing.CsrArrays.of(left), packing.CsrArrays.of(right), ranked, rows, out)
        yield SharedBlock(rows, shape, left, labels), values, codes


def _all_stored(codes: NDArray[Any]) -> sparse.csr_array:
    """Return a CSR array that stores every entry, zeros included."""
    n, m = codes.shape
    return sparse.csr_array((codes.ravel(), np.tile(np.arange(m), n), np.arange(n + 1) * m), (n, m))
