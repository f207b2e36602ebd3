"""Confidence bands by the bootstrap: instances are drawn with replacement, their decisions are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._utils.errors import InvalidParameter
from abstain._utils.threads import one_blas_thread
from abstain._utils.types import Floats
from abstain.curves._break_points import MergedPath

MAX_BAND_POINTS = 200
"""A band is computed at so many points of a curve, or at all of them if there are fewer."""

INSTANCES_PER_BLOCK = 4096  # added up at a time


@dataclass(frozen=True, eq=False)
class Band:
    """Pointwise confidence band of a curve (percentile bootstrap over the instances).

    Attributes
    ----------
    x : float array of shape (n_points,)
        Costs, or shares of labels; increasing.
    low, high : float arrays of shape (n_points,)
        The band's limits.
    confidence : float
        The share of the draws inside the band, at each point by itself.
    """

    x: Floats
    low: Floats
    high: Floats
    confidence: float


@dataclass(frozen=True)
class Bootstrap:
    """How many bootstrap samples to draw, each of as many instances as there are, and what a band must hold."""

    n_bootstrap: int = 0
    confidence: float = 0.95
    random_state: Any = None

    def __post_init__(self) -> None:
        count: Any = self.n_bootstrap
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
            raise InvalidParameter(f"n_bootstrap is {count!r}; expected a whole number ≥ 0")
        share: Any = self.confidence
        if not isinstance(share, Real) or not 0 < float(share) < 1:
            raise InvalidParameter(f"confidence is {share!r}; expected a number between 0 and 1")

    def __bool__(self) -> bool:
        return self.n_bootstrap > 0

    def weights(self, n_instances: int) -> NDArray[np.float32]:
        """Return how often each sample has each instance: shape (n_bootstrap, n_instances)."""
        if n_instances < 2:
            raise InvalidParameter("n_bootstrap: one instance says nothing about chance; at least two are needed")
        random = np.random.default_rng(self.random_state)
        samples = (random.integers(n_instances, size=n_instances) for _ in range(self.n_bootstrap))
        return np.array([np.bincount(rows, minlength=n_instances).astype(np.float32) for rows in samples])

    def means(
        self, merged: MergedPath, points: NDArray[np.intp], values: Mapping[str, NDArray[Any]]
    ) -> dict[str, Floats]:
        """Return the mean of each value, given per corner, in each sample at some points: (n_bootstrap, n_points)."""
        weights, corners = self.weights(len(merged.outcomes)), merged.corners_at(points)
        means = {name: np.zeros((self.n_bootstrap, len(points))) for name in values}
        with one_blas_thread():
            for first in range(0, len(corners), INSTANCES_PER_BLOCK):
                rows = slice(first, first + INSTANCES_PER_BLOCK)
                for name, per_corner in values.items():
                    means[name] += (weights[:, rows] @ per_corner[corners[rows]]) / len(corners)
        return means

    def band(self, x: Floats, curves: Floats) -> Band:
        """Return the band of the samples' curves, of shape (n_bootstrap, n_points), without undefined ones."""
        tail = (1.0 - self.confidence) / 2
        defined = curves[~np.isnan(curves).any(axis=1)]
        low, high = np.quantile(defined, [tail, 1.0 - tail], axis=0) if len(defined) else np.full((2, len(x)), np.nan)
        return Band(x, low, high, float(self.confidence))


def select_points(x: Floats, n_points: int = MAX_BAND_POINTS) -> NDArray[np.intp]:
    """Return the indices of the first, the last and about evenly spaced points of an increasing x."""
    if len(x) <= n_points:
        return np.arange(len(x))
    even = np.searchsorted(x, np.linspace(x[0], x[-1], n_points))
    return np.unique(np.append(even, [0, len(x) - 1]))


def interpolate_samples(grid: Floats, shares: Floats, values: Floats) -> Floats:
    """Return each sample's values at the shares of labels in the grid; at a share of 0 they are 0."""
    zeros = np.zeros((len(shares), 1))
    x, y = np.hstack([zeros, shares]), np.hstack([zeros, values])
    return np.array([np.interp(grid, a, b) for a, b in zip(x, y, strict=True)])
