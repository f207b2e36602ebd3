"""Features cut into bins at quantiles of the training data."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._utils.types import Floats

FEATURES_PER_BLOCK = 64
ROUNDING = 1e-12


@dataclass(frozen=True)
class QuantileBins:
    """Bin 0 has the values up to the first cut, bin 1 those above it up to the second cut, and so on.

    Attributes
    ----------
    cuts : float array of shape (n_features, n_bins − 1)
        In ascending order, not always distinct: some bins may be empty. No cut is the greatest value of its feature,
        so that the last bin that is not empty also takes greater values.
    """

    cuts: Floats

    @classmethod
    def fit(cls, X: Any, weight: Floats, *, n_bins: int) -> Self:
        """Cut at the weighted quantiles k / n_bins, which are values of the feature; missing values are left out.

        Where a quantile is the greatest value, the cut is at the next smaller one: a feature of two values has two
        bins, however rare one of them is.
        """
        shares = np.arange(1, n_bins) / n_bins
        cuts = np.full((X.shape[1], n_bins - 1), np.inf)
        for columns, block in feature_blocks(X):
            known = ~np.isnan(block)
            usable = known.any(axis=0)
            values = block[:, usable]
            highest = np.nanmax(values, axis=0)
            below = np.where(values < highest, values, -np.inf).max(axis=0)
            quantiles = _quantiles(values, weight, shares)
            found = np.where(quantiles < highest, quantiles, below).T
            found[below == -np.inf] = np.inf  # constant: one bin
            cuts[np.arange(columns.start, columns.stop)[usable]] = found
        return cls(cuts)

    @property
    def n_bins(self) -> int:
        """The number of bins of each feature, with those that are empty."""
        return self.cuts.shape[1] + 1

    def __call__(self, block: Floats, columns: slice) -> NDArray[np.int16]:
        """Return the bin of each value of some features; −1 for missing ones."""
        codes = np.zeros(block.shape, np.int16)
        for cut in self.cuts[columns].T:
            codes += block > cut
        codes[np.isnan(block)] = -1
        return codes

    def indicators(self, X: Any) -> sparse.csr_array:
        """Return a column of 0 and 1 for each bin of each feature: those of feature 0, those of feature 1, …"""
        n, d = X.shape
        dense_rows = X.toarray() if sparse.issparse(X) else X
        codes = self(dense_rows, slice(0, d))
        rows, features = np.nonzero(codes >= 0)
        bins = features * self.n_bins + codes[rows, features]
        indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=n)))
        return sparse.csr_array((np.ones(len(bins)), bins, indptr), (n, d * self.n_bins))


def feature_blocks(X: Any) -> Iterator[tuple[slice, Floats]]:
    """Iterate over the features, some at a time, as dense arrays, with the zeros that a sparse X does not store."""
    d, is_sparse = X.shape[1], sparse.issparse(X)
    table = sparse.csc_array(X) if is_sparse else X
    for begin in range(0, d, FEATURES_PER_BLOCK):
        columns = slice(begin, min(begin + FEATURES_PER_BLOCK, d))
        yield columns, table[:, columns].toarray() if is_sparse else table[:, columns]


def _quantiles(values: Floats, weight: Floats, shares: Floats) -> Floats:
    """Return the least value of each column that has a share of the weight at or below it; missing values have none."""
    order = np.argsort(values, axis=0)  # missing values come last
    ordered = np.take_along_axis(values, order, axis=0)
    reached = np.cumsum(np.where(np.isnan(ordered), 0.0, weight[order]), axis=0)
    wanted = shares[:, np.newaxis] * reached[-1] * (1.0 - ROUNDING)
    positions = np.stack([(reached < share).sum(axis=0) for share in wanted])
    return np.take_along_axis(ordered, positions, axis=0)
