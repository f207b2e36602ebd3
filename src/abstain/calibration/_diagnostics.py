"""Are the probabilities what they claim? Of those labels given 0.8, are 80 % relevant?

Everything is measured over all entries of the table together (``average="pooled"``), for each label (None), or as the
mean over the labels ("macro"). Decisions need each label to be calibrated: labels that claim too much and labels that
claim too little can make up for each other in a pooled figure.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias, get_args, overload

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.isotonic import isotonic_regression

from abstain._core.probabilities import Probabilities
from abstain._core.tables import Matrix
from abstain._core.truth import read_partial_truth, read_sample_weight
from abstain._utils.errors import InvalidLabels, InvalidParameter

Average: TypeAlias = Literal["pooled", "macro"] | None
Strategy: TypeAlias = Literal["quantile", "uniform", "log-odds"]
LARGEST_LOG_ODDS = float(np.log(999))
"""Bins in log-odds have equal width from p = 0.001 to p = 0.999; the first and the last hold what is beyond, too."""


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
    weight : float array of shape (n_bins,)
        The sum of their weights; `count` without weights.
    effective_count : float array of shape (n_bins,)
        (Σ weight)² / Σ weight²: how many entries of equal weight would say as much; `count` without weights.
    label : hashable or None
        The name of the label; None for all entries together.
    """

    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    count: NDArray[np.intp]
    weight: NDArray[np.float64]
    effective_count: NDArray[np.float64]
    label: Hashable | None = None

    @property
    def calibration_error(self) -> float:
        """Σ weight · |observed − predicted| / Σ weight; nan for a label that is unknown everywhere."""
        return _mean(np.abs(self.observed - self.predicted), self.weight)

    def interval(self, z: float = 1.96) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the limits of Wilson's interval for each observed share, 95 % by default, by the effective count."""
        n, share = self.effective_count, self.observed
        centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        return np.clip(centre - half, 0.0, share), np.clip(centre + half, share, 1.0)


@dataclass(frozen=True)
class BrierDecomposition:
    """Brier score = miscalibration − discrimination + uncertainty; all are nan for a label that is unknown everywhere.

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
    sample_weight: Any = None,
    missing_values: float | None = None,
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
    sample_weight: Any = None,
    missing_values: float | None = None,
) -> list[ReliabilityCurve]: ...


def reliability_curve(
    y_true: Any,
    probabilities: Any,
    *,
    n_bins: int = 10,
    strategy: Strategy = "quantile",
    min_count: int = 1,
    average: Literal["pooled"] | None = "pooled",
    sample_weight: Any = None,
    missing_values: float | None = None,
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
    strategy : {"quantile", "uniform", "log-odds"}, default="quantile"
        Bins with about equally many entries, bins of equal width, or bins of equal width in the log-odds from
        p = 0.001 to 0.999. Where most probabilities are small, as those of rare labels are, quantiles lie close
        together near 0, and the first bin of equal width holds nearly everything; bins in log-odds show small
        probabilities and the range in which decisions are made.
    min_count : int, default=1
        The smallest number of entries in a bin: one with fewer joins the smaller of its neighbours. In bins in
        log-odds an entry counts as 4 p (1 − p), but at least as it does at p = 0.001, so that each bin tells as much
        as so many entries of p = ½: a share of 0.01 takes hundreds of them.
    average : "pooled" or None, default="pooled"
        One curve for all entries, or (None) one for each label.
    sample_weight : array-like of shape (n_instances,) or (n_instances, n_labels), optional
        The weight of each instance or entry, for example 1 / its probability of being drawn for an audit.
    missing_values : None, np.nan or -1, default=None
        What stands for an unknown label in `y_true`: NaN (also None, null and pandas.NA), −1, or (None) nothing, and
        every entry must be 0 or 1. Unknown entries are left out.

    Returns
    -------
    curve : ReliabilityCurve, or list of them if average is None
        Without bins for a label that is unknown everywhere.

    Examples
    --------
    >>> from abstain.calibration import reliability_curve
    >>> curve = reliability_curve([[1, 0], [0, 0], [1, 1], [1, 0]], [[0.8, 0.1], [0.8, 0.1], [0.8, 0.8], [0.8, 0.1]])
    >>> curve.predicted, curve.observed, curve.count
    (array([0.1, 0.8]), array([0. , 0.8]), array([3, 5]))
    """
    if strategy not in get_args(Strategy):
        raise InvalidParameter(f"strategy is {strategy!r}; expected 'quantile', 'uniform' or 'log-odds'")
    if not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise InvalidParameter(f"n_bins is {n_bins!r}; expected a whole number ≥ 1")
    if not isinstance(min_count, int | np.integer) or min_count < 1:
        raise InvalidParameter(f"min_count is {min_count!r}; expected a whole number ≥ 1")
    table = _Entries(y_true, probabilities, sample_weight, missing_values)
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
    sample_weight: Any = None,
    missing_values: float | None = None,
) -> float: ...


@overload
def calibration_error(
    y_true: Any,
    probabilities: Any,
    *,
    n_bins: int = 10,
    strategy: Strategy = "quantile",
    average: None,
    sample_weight: Any = None,
    missing_values: float | None = None,
) -> NDArray[np.float64]: ...


def calibration_error(
    y_true: Any,
    probabilities: Any,
    *,
    n_bins: int = 10,
    strategy: Strategy = "quantile",
    average: Average = "pooled",
    sample_weight: Any = None,
    missing_values: float | None = None,
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
    strategy : {"quantile", "uniform", "log-odds"}, default="quantile"
        As for `reliability_curve`. `ReliabilityDisplay` and `abstain.report` draw bins in log-odds: a picture needs
        bins where decisions are made, a mean needs bins where the entries are.
    average : {"pooled", "macro"} or None, default="pooled"
        The error of all entries together, the mean over the labels, or (None) one for each label. A label that is
        unknown everywhere has nan, and is left out of the mean.
    sample_weight : array-like of shape (n_instances,) or (n_instances, n_labels), optional
        The weight of each instance or entry, for example 1 / its probability of being drawn for an audit.
    missing_values : None, np.nan or -1, default=None
        What stands for an unknown label in `y_true`: NaN (also None, null and pandas.NA), −1, or (None) nothing, and
        every entry must be 0 or 1. Unknown entries are left out.

    Returns
    -------
    error : float, or float array of shape (n_labels,) if average is None

    Examples
    --------
    >>> from abstain.calibration import calibration_error
    >>> round(calibration_error([[1, 0], [0, 0], [1, 0]], [[0.6, 0.1], [0.6, 0.1], [0.6, 0.1]]), 4)
    0.0833
    """
    options: dict[str, Any] = {"sample_weight": sample_weight, "missing_values": missing_values}
    if average == "pooled":
        return reliability_curve(y_true, probabilities, n_bins=n_bins, strategy=strategy, **options).calibration_error
    curves = reliability_curve(y_true, probabilities, n_bins=n_bins, strategy=strategy, average=None, **options)
    return _averaged([curve.calibration_error for curve in curves], average)


@overload
def brier_score_loss(
    y_true: Any,
    probabilities: Any,
    *,
    average: Literal["pooled", "macro"] = "pooled",
    sample_weight: Any = None,
    missing_values: float | None = None,
) -> float: ...


@overload
def brier_score_loss(
    y_true: Any, probabilities: Any, *, average: None, sample_weight: Any = None, missing_values: float | None = None
) -> NDArray[np.float64]: ...


def brier_score_loss(
    y_true: Any,
    probabilities: Any,
    *,
    average: Average = "pooled",
    sample_weight: Any = None,
    missing_values: float | None = None,
) -> float | NDArray[np.float64]:
    """Mean of (y − p)²: lower is better. Pooled and macro are the same if everything is known and has the same weight.

    Parameters
    ----------
    y_true : array-like of shape (n_instances, n_labels)
        The truth, 0 or 1.
    probabilities : array-like of shape (n_instances, n_labels)
        P(label is relevant), as for `abstain.decide`.
    average : {"pooled", "macro"} or None, default="pooled"
        The mean over all entries, the mean over the labels, or (None) one for each label. A label that is
        unknown everywhere has nan, and is left out of the mean.
    sample_weight : array-like of shape (n_instances,) or (n_instances, n_labels), optional
        The weight of each instance or entry, for example 1 / its probability of being drawn for an audit.
    missing_values : None, np.nan or -1, default=None
        What stands for an unknown label in `y_true`: NaN (also None, null and pandas.NA), −1, or (None) nothing, and
        every entry must be 0 or 1. Unknown entries are left out.

    Returns
    -------
    score : float, or float array of shape (n_labels,) if average is None

    Examples
    --------
    >>> from abstain.calibration import brier_score_loss
    >>> round(brier_score_loss([[1, 0], [0, 0]], [[0.8, 0.1], [0.4, 0.2]]), 4)
    0.0625
    """
    table = _Entries(y_true, probabilities, sample_weight, missing_values)
    return _brier(table.pooled) if average == "pooled" else _averaged([_brier(j) for j in table.labels()], average)


@overload
def brier_decomposition(
    y_true: Any,
    probabilities: Any,
    *,
    average: Literal["pooled"] = "pooled",
    sample_weight: Any = None,
    missing_values: float | None = None,
) -> BrierDecomposition: ...


@overload
def brier_decomposition(
    y_true: Any, probabilities: Any, *, average: None, sample_weight: Any = None, missing_values: float | None = None
) -> list[BrierDecomposition]: ...


def brier_decomposition(
    y_true: Any,
    probabilities: Any,
    *,
    average: Literal["pooled"] | None = "pooled",
    sample_weight: Any = None,
    missing_values: float | None = None,
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
    sample_weight : array-like of shape (n_instances,) or (n_instances, n_labels), optional
        The weight of each instance or entry, for example 1 / its probability of being drawn for an audit.
    missing_values : None, np.nan or -1, default=None
        What stands for an unknown label in `y_true`: NaN (also None, null and pandas.NA), −1, or (None) nothing, and
        every entry must be 0 or 1. Unknown entries are left out.

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
    table = _Entries(y_true, probabilities, sample_weight, missing_values)
    if average == "pooled":
        return _decompose(table.pooled)
    if average is not None:
        raise InvalidParameter(f"average is {average!r}; a decomposition is 'pooled' or None (one for each label)")
    return [_decompose(label) for label in table.labels()]


@dataclass(frozen=True)
class _Sample:
    """Entries with their probability and truth; each may stand for several with the same."""

    p: NDArray[np.float64]
    y: NDArray[np.float64]
    count: NDArray[np.float64]
    """How many entries it stands for."""
    weight: NDArray[np.float64]
    """The sum of their weights; all are positive."""
    squares: NDArray[np.float64]
    """The sum of the squares of their weights."""


@dataclass(frozen=True)
class _Weights:
    """The weights of n rows; None if each of them is 1."""

    n: int
    values: NDArray[np.float64] | None

    @cached_property
    def total(self) -> NDArray[np.float64]:
        """The number of positive weights, their sum, and the sum of their squares."""
        return np.full(3, float(self.n)) if self.values is None else self.of(slice(None)).sum(axis=1)

    def of(self, rows: Any) -> NDArray[np.float64]:
        """Return for each of some rows whether its weight is positive, the weight, and its square."""
        if self.values is None:
            return np.broadcast_to(np.ones(len(rows)), (3, len(rows)))
        weight = self.values[rows]
        return np.stack([(weight > 0).astype(np.float64), weight, weight**2])


class _Entries:
    """Truth and probabilities of one table, by label; entries that neither stores are counted, not materialized."""

    def __init__(self, y_true: Any, probabilities: Any, sample_weight: Any, missing_values: float | None) -> None:
        if np.ndim(y_true) == 1:
            raise InvalidLabels("y_true is a vector; of a single label, pass tables of one column")
        table = Probabilities(probabilities)
        values = table.values()
        truth = read_partial_truth(y_true, missing_values, table)
        if table.n_rows == 0:
            raise InvalidLabels("y_true has no rows; there is nothing to measure")
        self.names = table.axes.names(table.n_labels)
        is_sparse = sparse.issparse(values) or sparse.issparse(truth.values)
        as_columns: Callable[[Any], Matrix] = sparse.csc_array if is_sparse else np.asarray
        self._p, self._y = as_columns(values), as_columns(truth.values)
        self._unknown = None if truth.unknown is None else as_columns(truth.unknown)
        self._weight = read_sample_weight(sample_weight, table)
        if not any(len(label.p) for label in self.labels()):
            raise InvalidLabels("y_true: every label is unknown or has weight 0; there is nothing to measure")

    def labels(self) -> Iterator[_Sample]:
        """Iterate over the entries of each label that are known and have a positive weight."""
        n, m = self._p.shape
        weights = _Weights(n, self._weight)
        for j in range(m):
            if self._weight is not None and self._weight.ndim == 2:
                weights = _Weights(n, self._weight[:, j])
            yield self._sparse_sample(j, weights) if sparse.issparse(self._p) else self._dense_sample(j, weights)

    @cached_property
    def pooled(self) -> _Sample:
        """The entries of all labels."""
        labels = list(self.labels())
        names = ("p", "y", "count") if self._weight is None else ("p", "y", "count", "weight", "squares")
        columns = [np.concatenate([getattr(label, name) for label in labels]) for name in names]
        return _Sample(*columns, *columns[2:] * 2) if self._weight is None else _Sample(*columns)

    def _dense_sample(self, j: int, weights: _Weights) -> _Sample:
        n = len(self._p)
        rows = np.arange(n) if self._unknown is None else np.flatnonzero(~self._unknown[:, j])
        return _sample(self._p[rows, j].astype(np.float64), self._y[rows, j].astype(np.float64), weights.of(rows))

    def _sparse_sample(self, j: int, weights: _Weights) -> _Sample:
        """Return the stored entries of a label, and a last one that stands for all rows where neither is stored."""
        stored = [_stored(matrix, j) for matrix in (self._p, self._y)]
        unknown = np.empty(0, np.intp) if self._unknown is None else _stored(self._unknown, j)[0]
        rows = np.union1d(np.union1d(stored[0][0], stored[1][0]), unknown)
        values = np.zeros((2, len(rows) + 1))
        for line, (stored_rows, stored_values) in zip(values, stored, strict=True):
            line[np.searchsorted(rows, stored_rows)] = stored_values
        mass = weights.of(rows)
        others = weights.total - mass.sum(axis=1)
        mass = np.column_stack([mass, others if round(others[0]) else np.zeros(3)])  # rounding leaves no weight behind
        mass[:, np.searchsorted(rows, unknown)] = 0
        return _sample(values[0], values[1], mass)


def _sample(p: NDArray[np.float64], y: NDArray[np.float64], mass: NDArray[np.float64]) -> _Sample:
    """Return the entries that are counted."""
    kept = mass[0] > 0
    return _Sample(p, y, *mass) if kept.all() else _Sample(p[kept], y[kept], *mass[:, kept])


def _stored(matrix: sparse.csc_array, j: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows and the values of the stored entries of a column."""
    stored = slice(matrix.indptr[j], matrix.indptr[j + 1])
    return matrix.indices[stored], matrix.data[stored]


def _curve(sample: _Sample, *, n_bins: int, strategy: str, min_count: int, label: Hashable | None) -> ReliabilityCurve:
    size = sample.count
    if strategy == "uniform":
        bins = np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], sample.p)
    elif strategy == "log-odds":
        edges = expit(np.linspace(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS, n_bins + 1))
        bins, inside = np.searchsorted(edges[1:-1], sample.p), np.clip(sample.p, edges[0], edges[-1])
        size = sample.count * 4 * inside * (1 - inside)
    else:
        values, index = np.unique(sample.p, return_inverse=True)
        mass = np.bincount(index, sample.weight, len(values))
        middle = (np.cumsum(mass) - mass / 2) / mass.sum()
        bins = np.minimum(middle * n_bins, n_bins - 1).astype(np.intp)[index]  # rounding may give n_bins
    bins = _merge_small_bins(np.bincount(bins, sample.count, n_bins), np.bincount(bins, size, n_bins), min_count)[bins]
    count, weight, squares = (
        np.bincount(bins, mass).astype(np.float64) for mass in (sample.count, sample.weight, sample.squares)
    )
    return ReliabilityCurve(
        predicted=np.bincount(bins, sample.weight * sample.p) / weight,
        observed=np.bincount(bins, sample.weight * sample.y) / weight,
        count=count.astype(np.intp),
        weight=weight,
        effective_count=weight**2 / squares,
        label=label,
    )


def _merge_small_bins(count: NDArray[Any], size: NDArray[Any], min_size: int) -> NDArray[np.intp]:
    """Return the new number of each bin when small ones join a neighbour; no new bin is empty or below min_size."""
    first = np.flatnonzero(count).tolist()  # the first bin of each group of neighbours
    sizes = size[first].tolist()
    while len(sizes) > 1 and min(sizes) < min_size:
        k = sizes.index(min(sizes))
        left = k > 0 and (k + 1 == len(sizes) or sizes[k - 1] <= sizes[k + 1])
        k -= left
        sizes[k : k + 2] = [sizes[k] + sizes[k + 1]]
        del first[k + 1]
    return np.maximum(np.searchsorted(first, np.arange(len(count)), side="right") - 1, 0)


def _mean(values: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """Return the weighted mean; nan of nothing."""
    return float(np.average(values, weights=weight)) if len(values) else float("nan")


def _brier(sample: _Sample) -> float:
    return _mean((sample.y - sample.p) ** 2, sample.weight)


def _decompose(sample: _Sample) -> BrierDecomposition:
    if len(sample.p) == 0:
        return BrierDecomposition(np.nan, np.nan, np.nan)
    values, index = np.unique(sample.p, return_inverse=True)
    mass = np.bincount(index, sample.weight, len(values))
    share = np.bincount(index, sample.weight * sample.y, len(values)) / mass
    recalibrated = isotonic_regression(share, sample_weight=mass)[index]
    prevalence = _mean(sample.y, sample.weight)
    best = _mean((sample.y - recalibrated) ** 2, sample.weight)
    uncertainty = prevalence * (1.0 - prevalence)
    return BrierDecomposition(_brier(sample) - best, uncertainty - best, uncertainty)


def _averaged(values: list[float], average: Average) -> float | NDArray[np.float64]:
    if average not in ("macro", None):
        raise InvalidParameter(f"average is {average!r}; expected 'pooled', 'macro' or None (one for each label)")
    return np.array(values) if average is None else float(np.nanmean(values))
