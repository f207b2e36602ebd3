"""How far chance may have moved a curve: instances drawn anew, with replacement, their decisions kept."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._utils.errors import InvalidLabels
from abstain._utils.threads import one_blas_thread
from abstain._utils.types import Floats
from abstain.curves._break_points import Sweep

POINTS = 200
"""A band is computed at so many points of a curve, or at all of them if there are fewer."""

ROWS = 4096  # instances added up at a time


@dataclass(frozen=True, eq=False)
class Band:
    """Between which values a curve would lie, point by point, had other instances been drawn (percentile bootstrap)."""

    x: Floats
    """Where: costs, or shares of labels; increasing."""
    low: Floats
    high: Floats
    confidence: float
    """The share of the draws inside, at each point by itself."""


@dataclass(frozen=True)
class Bootstrap:
    """Draws of as many instances as there are."""

    n_bootstrap: int = 0
    confidence: float = 0.95
    random_state: Any = None

    def __post_init__(self) -> None:
        count: Any = self.n_bootstrap
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
            raise ValueError(f"n_bootstrap is {count!r}; expected a whole number ≥ 0")
        share: Any = self.confidence
        if not isinstance(share, Real) or not 0 < float(share) < 1:
            raise ValueError(f"confidence is {share!r}; expected a number between 0 and 1")

    def __bool__(self) -> bool:
        return self.n_bootstrap > 0

    def weights(self, n_instances: int) -> NDArray[np.float32]:
        """How often each draw has each instance: draws × instances."""
        if n_instances < 2:
            raise InvalidLabels("n_bootstrap: one instance says nothing about chance; at least two are needed")
        random = np.random.default_rng(self.random_state)
        drawn = (random.integers(n_instances, size=n_instances) for _ in range(self.n_bootstrap))
        return np.array([np.bincount(rows, minlength=n_instances).astype(np.float32) for rows in drawn])

    def means(self, sweep: Sweep, points: NDArray[np.intp], *values: NDArray[Any]) -> list[Floats]:
        """The mean of each value at some points of a curve, in each draw: draws × points."""
        weights, corners = self.weights(len(sweep.outcomes)), sweep.corners(points)
        totals = [np.zeros((self.n_bootstrap, len(points))) for _ in values]
        with one_blas_thread():
            for first in range(0, len(corners), ROWS):
                some = slice(first, first + ROWS)
                for total, each in zip(totals, values, strict=True):
                    total += (weights[:, some] @ each[corners[some]]) / len(corners)
        return totals

    def band(self, x: Floats, draws: Floats) -> Band:
        """The band of curves that were drawn, without those that are not defined."""
        tail = (1.0 - self.confidence) / 2
        known = draws[~np.isnan(draws).any(axis=1)]
        low, high = np.quantile(known, [tail, 1.0 - tail], axis=0) if len(known) else np.full((2, len(x)), np.nan)
        return Band(x, low, high, float(self.confidence))


def spread(x: Floats, n_points: int = POINTS) -> NDArray[np.intp]:
    """Which points to keep of a curve with increasing x: the ends, and between them about evenly spaced ones."""
    if len(x) <= n_points:
        return np.arange(len(x))
    even = np.searchsorted(x, np.linspace(x[0], x[-1], n_points))
    return np.unique(np.append(even, [0, len(x) - 1]))


def on_grid(grid: Floats, shares: Floats, values: Floats) -> Floats:
    """Drawn curves read off at the same shares of answered labels; without any answer their value is 0."""
    zeros = np.zeros((len(shares), 1))
    x, y = np.hstack([zeros, shares]), np.hstack([zeros, values])
    return np.array([np.interp(grid, a, b) for a, b in zip(x, y, strict=True)])
