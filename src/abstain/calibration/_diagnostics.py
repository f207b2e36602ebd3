"""Are the probabilities what they claim? Of those labels given 0.8, are 80 % relevant?

Everything is measured over all entries of the table together (``average="pooled"``), for each label (None), or as the
mean over the labels ("macro"). Decisions need each label to be calibrated: labels that claim too much and labels that
claim too little can make up for each other in a pooled figure.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.isotonic import isotonic_regression

from abstain._core.probabilities import Probabilities
from abstain._core.tables import Matrix
from abstain._core.truth import read_truth_for
from abstain._utils.errors import InvalidLabels, InvalidParameter

Average: TypeAlias = Literal["pooled", "macro"] | None
Strategy: TypeAlias = Literal["quantile", "uniform"]


@dataclass(frozen=True)
class ReliabilityCurve:
    """How often labels were relevant, against their mean probability, bin by bin.

    Attributes
    ----------
    predicted : float array of shape (n_bins,)
        The mean probability in each bin; increasing.
    observed : float array of shape (n_bins,)
        The share of relevant entries.
    count : int array of shape (n_bins,)
        The number of entries.
    label : hashable or None
        The name of the label; None for all entries together.
    """

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    count: NDArray[np.intp]
    label: Hashable | None = None

    @property
    def calibration_error(self) -> float:
        """Σ count · |observed − predicted| / Σ count."""
        return float(np.average(np.abs(self.observed - self.predicted), weights=self.count))

    def interval(self, z: float = 1.96) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the limits of Wilson's interval for each observed share: 95 % by default."""
        n, share = self.count, self.observed
        centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        return np.clip(centre - half, 0.0, share), np.clip(centre + half, share, 1.0)


@dataclass(frozen=True)
class BrierDecomposition:
    """Brier score = miscalibration − discrimination + uncertainty.

    Attributes
    ----------
    miscalibration : float
        The part of the score that isotonic recalibration would save: 0 for perfectly calibrated probabilities.
    discrimination : float
        How much lower the score of the recalibrated probabilities is than that of the constant prevalence.
    uncertainty : float
        Prevalence · (1 − prevalence): the score of the constant prevalence.
    """

    miscalibration: float
    discrimination: float
    uncertainty: float

    @property
    def score(self) -> float:
        """The Brier score."""
        return self.miscalibration - self.discrimination + self.uncertainty


@overload
def reliability_curve(
    y_true: Any,
    probabilities: Any,
    *,
    n_bins: int = 10,
    strategy: Strategy = "quantile",
    min_count: int = 1,
    average: Literal["pooled"] = "pooled",
) -> ReliabilityCurve: ...


@overload
def reliability_curve(
    y_true: Any,
    probabilities: Any,
    *,
    n_bins: int = 10,
    strategy: Strategy = "quantile",
    min_count: int = 1,
    average: None,
) -> list[ReliabilityCurve]: ...


def reliability_curve(
    y_true: Any,
    probabilities: Any,
    *,
    n_bins: int = 10,
    strategy: Strategy = "quantile",
    min_count: int = 1,
    average: Literal["pooled"] | None = "pooled",
) -> ReliabilityCurve | list[ReliabilityCurve]:
    """Mean probability and share of relevant labels, bin by bin.

    Parameters
    ----------
    y_true : array-like of shape (n_instances, n_labels)
        The truth, 0 or 1.
    probabilities : array-like of shape (n_instances, n_labels)
        P(label is relevant), as for `abstain.decide`.
    n_bins : int, default=10
        The largest number of bins. Equal probabilities stay together, and empty bins are left out.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins with about equally many entries, or bins of equal width. Where most probabilities are small, as those of
        rare labels are, quantiles lie close together near 0, and only bins of equal width show the range in which
        decisions are made.
    min_count : int, default=1
        The smallest number of entries in a bin: one with fewer joins the smaller of its neighbours.
    average : "pooled" or None, default="pooled"
        One curve for all entries, or (None) one for each label.

    Returns
    -------
    curve : ReliabilityCurve, or list of them if average is None

    Examples
    --------
    >>> from abstain.calibration import reliability_curve
    >>> curve = reliability_curve([[1, 0], [0, 0], [1, 1], [1, 0]], [[0.8, 0.1], [0.8, 0.1], [0.8, 0.8], [0.8, 0.1]])
    >>> curve.predicted, curve.observed, curve.count
    (array([0.1, 0.8]), array([0. , 0.8]), array([3, 5]))
    """
    if strategy not in ("quantile", "uniform"):
        raise InvalidParameter(f"strategy is {strategy!r}; expected 'quantile' or 'uniform'")
    if not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise InvalidParameter(f"n_bins is {n_bins!r}; expected a whole number ≥ 1")
    if not isinstance(min_count, int | np.integer) or min_count < 1:
        raise InvalidParameter(f"min_count is {min_count!r}; expected a whole number ≥ 1")
    table = _Entries(y_true, probabilities)
    curve = partial(_curve, n_bins=n_bins, strategy=strategy, min_count=min_count)
    if average == "pooled":
        return curve(table.pooled, label=None)
    if average is not None:
        raise InvalidParameter(f"average is {average!r}; a curve is 'pooled' or None (one for each label)")
    return [curve(sample, label=name) for name, sample in zip(table.names, table.labels(), strict=True)]


@overload
def calibration_error(
    y_true: Any,
    probabilities: Any,
    *,
    n_bins: int = 10,
    strategy: Strategy = "quantile",
    average: Literal["pooled", "macro"] = "pooled",
) -> float: ...


@overload
def calibration_error(
    y_true: Any, probabilities: Any, *, n_bins: int = 10, strategy: Strategy = "quantile", average: None
) -> NDArray[np.float64]: ...


def calibration_error(
    y_true: Any,
    probabilities: Any,
    *,
    n_bins: int = 10,
    strategy: Strategy = "quantile",
    average: Average = "pooled",
) -> float | NDArray[np.float64]:
    """Σ_bins share of the bin · |share relevant − mean probability|: how far probabilities are off, on average.

    Also called expected calibration error. It depends on the bins, and is above 0 by chance even for perfect
    probabilities: the more bins and the fewer instances, the more.

    Parameters
    ----------
    y_true : array-like of shape (n_instances, n_labels)
        The truth, 0 or 1.
    probabilities : array-like of shape (n_instances, n_labels)
        P(label is relevant), as for `abstain.decide`.
    n_bins : int, default=10
        The largest number of bins.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins with about equally many entries, or bins of equal width. `ReliabilityDisplay` and `abstain.report` draw
        bins of equal width: a picture needs bins where decisions are made, a mean needs bins where the entries are.
    average : {"pooled", "macro"} or None, default="pooled"
        The error of all entries together, the mean over the labels, or (None) one for each label.

    Returns
    -------
    error : float, or float array of shape (n_labels,) if average is None

    Examples
    --------
    >>> from abstain.calibration import calibration_error
    >>> round(calibration_error([[1, 0], [0, 0], [1, 0]], [[0.6, 0.1], [0.6, 0.1], [0.6, 0.1]]), 4)
    0.0833
    """
    if average == "pooled":
        return reliability_curve(y_true, probabilities, n_bins=n_bins, strategy=strategy).calibration_error
    curves = reliability_curve(y_true, probabilities, n_bins=n_bins, strategy=strategy, average=None)
    return _averaged([curve.calibration_error for curve in curves], average)


@overload
def brier_score_loss(y_true: Any, probabilities: Any, *, average: Literal["pooled", "macro"] = "pooled") -> float: ...


@overload
def brier_score_loss(y_true: Any, probabilities: Any, *, average: None) -> NDArray[np.float64]: ...


def brier_score_loss(y_true: Any, probabilities: Any, *, average: Average = "pooled") -> float | NDArray[np.float64]:
    """Mean of (y − p)²: lower is better. Pooled and macro are the same.

    Parameters
    ----------
    y_true : array-like of shape (n_instances, n_labels)
        The truth, 0 or 1.
    probabilities : array-like of shape (n_instances, n_labels)
        P(label is relevant), as for `abstain.decide`.
    average : {"pooled", "macro"} or None, default="pooled"
        The mean over all entries, or (None) one for each label.

    Returns
    -------
    score : float, or float array of shape (n_labels,) if average is None

    Examples
    --------
    >>> from abstain.calibration import brier_score_loss
    >>> round(brier_score_loss([[1, 0], [0, 0]], [[0.8, 0.1], [0.4, 0.2]]), 4)
    0.0625
    """
    table = _Entries(y_true, probabilities)
    return _brier(table.pooled) if average == "pooled" else _averaged([_brier(j) for j in table.labels()], average)


@overload
def brier_decomposition(
    y_true: Any, probabilities: Any, *, average: Literal["pooled"] = "pooled"
) -> BrierDecomposition: ...


@overload
def brier_decomposition(y_true: Any, probabilities: Any, *, average: None) -> list[BrierDecomposition]: ...


def brier_decomposition(
    y_true: Any, probabilities: Any, *, average: Literal["pooled"] | None = "pooled"
) -> BrierDecomposition | list[BrierDecomposition]:
    """Brier score = miscalibration − discrimination + uncertainty, exactly, and without bins.

    These are Murphy's reliability, resolution and uncertainty, with isotonic regression in the place of bins
    (Dimitriadis, Gneiting & Jordan, PNAS 2021); none of them is negative.

    Parameters
    ----------
    y_true : array-like of shape (n_instances, n_labels)
        The truth, 0 or 1.
    probabilities : array-like of shape (n_instances, n_labels)
        P(label is relevant), as for `abstain.decide`.
    average : "pooled" or None, default="pooled"
        The decomposition of all entries together, or (None) one for each label.

    Returns
    -------
    decomposition : BrierDecomposition, or list of them if average is None

    Examples
    --------
    >>> from abstain.calibration import brier_decomposition
    >>> parts = brier_decomposition([[1], [0], [1], [1]], [[0.6], [0.3], [0.6], [0.6]])
    >>> round(parts.miscalibration, 4), round(parts.discrimination, 4), round(parts.uncertainty, 4)
    (0.1425, 0.1875, 0.1875)
    """
    table = _Entries(y_true, probabilities)
    if average == "pooled":
        return _decompose(table.pooled)
    if average is not None:
        raise InvalidParameter(f"average is {average!r}; a decomposition is 'pooled' or None (one for each label)")
    return [_decompose(label) for label in table.labels()]


@dataclass(frozen=True)
class _Sample:
    """Entries with their probability and truth; `count` says how many equal entries each stands for."""

    p: NDArray[np.float64]
    y: NDArray[np.float64]
    count: NDArray[np.int64]


class _Entries:
    """Truth and probabilities of one table, by label; entries that neither stores are counted, not materialized."""

    def __init__(self, y_true: Any, probabilities: Any) -> None:
        if np.ndim(y_true) == 1:
            raise InvalidLabels("y_true is a vector; of a single label, pass tables of one column")
        table = Probabilities(probabilities)
        values = table.values()
        truth = read_truth_for(table, y_true)
        if truth.shape[0] == 0:
            raise InvalidLabels("y_true has no rows; there is nothing to measure")
        self.names = table.axes.names(table.n_labels)
        is_sparse = sparse.issparse(values) or sparse.issparse(truth)
        as_columns: Callable[[Any], Matrix] = sparse.csc_array if is_sparse else np.asarray
        self._p, self._y = as_columns(values), as_columns(truth)

    def labels(self) -> Iterator[_Sample]:
        """Iterate over the entries of each label."""
        n, m = self._p.shape
        for j in range(m):
            if sparse.issparse(self._p):
                yield _sparse_sample(_stored(self._p, j), _stored(self._y, j), n)
            else:
                p = self._p[:, j].astype(np.float64)
                yield _Sample(p, self._y[:, j].astype(np.float64), np.ones(n, np.int64))

    @cached_property
    def pooled(self) -> _Sample:
        """The entries of all labels."""
        labels = list(self.labels())
        return _Sample(
            p=np.concatenate([label.p for label in labels]),
            y=np.concatenate([label.y for label in labels]),
            count=np.concatenate([label.count for label in labels]),
        )


def _stored(matrix: sparse.csc_array, j: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows and the values of the stored entries of a column."""
    stored = slice(matrix.indptr[j], matrix.indptr[j + 1])
    return matrix.indices[stored], matrix.data[stored]


def _sparse_sample(p: tuple[NDArray[Any], NDArray[Any]], y: tuple[NDArray[Any], NDArray[Any]], n: int) -> _Sample:
    rows = np.union1d(p[0], y[0])
    values = np.zeros((2, len(rows) + 1))  # the last entry stands for all rows where neither is stored
    for line, (stored_rows, stored_values) in zip(values, (p, y), strict=True):
        line[np.searchsorted(rows, stored_rows)] = stored_values
    count = np.append(np.ones(len(rows), np.int64), n - len(rows))
    kept = count > 0
    return _Sample(values[0][kept], values[1][kept], count[kept])


def _curve(sample: _Sample, *, n_bins: int, strategy: str, min_count: int, label: Hashable | None) -> ReliabilityCurve:
    if strategy == "uniform":
        bins = np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], sample.p)
    else:
        values, index = np.unique(sample.p, return_inverse=True)
        mass = np.bincount(index, sample.count, len(values))
        middle = (np.cumsum(mass) - mass / 2) / mass.sum()
        bins = np.floor(middle * n_bins).astype(np.intp)[index]
    bins = _merge_small_bins(np.bincount(bins, sample.count, n_bins), min_count)[bins]
    count = np.bincount(bins, sample.count)
    predicted = np.bincount(bins, sample.count * sample.p) / count
    observed = np.bincount(bins, sample.count * sample.y) / count
    return ReliabilityCurve(predicted, observed, count.astype(np.intp), label)


def _merge_small_bins(count: NDArray[Any], min_count: int) -> NDArray[np.intp]:
    """Return the new number of each bin when small ones join a neighbour; no new bin is empty or below min_count."""
    first = np.flatnonzero(count).tolist()  # the first bin of each group of neighbours
    sizes = count[first].tolist()
    while len(sizes) > 1 and min(sizes) < min_count:
        k = sizes.index(min(sizes))
        left = k > 0 and (k + 1 == len(sizes) or sizes[k - 1] <= sizes[k + 1])
        k -= left
        sizes[k : k + 2] = [sizes[k] + sizes[k + 1]]
        del first[k + 1]
    return np.maximum(np.searchsorted(first, np.arange(len(count)), side="right") - 1, 0)


def _brier(sample: _Sample) -> float:
    return float(np.average((sample.y - sample.p) ** 2, weights=sample.count))


def _decompose(sample: _Sample) -> BrierDecomposition:
    values, index = np.unique(sample.p, return_inverse=True)
    mass = np.bincount(index, sample.count, len(values))
    share = np.bincount(index, sample.count * sample.y, len(values)) / mass
    recalibrated = isotonic_regression(share, sample_weight=mass)[index]
    prevalence = float(np.average(sample.y, weights=sample.count))
    best = _brier(_Sample(recalibrated, sample.y, sample.count))
    uncertainty = prevalence * (1.0 - prevalence)
    return BrierDecomposition(_brier(sample) - best, uncertainty - best, uncertainty)


def _averaged(values: list[float], average: Average) -> float | NDArray[np.float64]:
    if average not in ("macro", None):
        raise InvalidParameter(f"average is {average!r}; expected 'pooled', 'macro' or None (one for each label)")
    return np.array(values) if average is None else float(np.mean(values))
