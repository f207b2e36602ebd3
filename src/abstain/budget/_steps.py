"""Steps of the cost paths: reviews of an instance that only pay together."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.kernels.choice import tipped
from abstain._core.prediction import Prediction
from abstain._core.profile import CostPath, RiskProfile

ProfileLookup: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""A function that returns the risk profiles of some instances, given their numbers."""


class Steps(NamedTuple):
    """Steps of cost paths: step k reviews `size[k]` further labels of instance `row[k]`, and saves `cost[k]` for each.

    The review's own cost is not subtracted.
    """

    row: NDArray[np.int64]
    cost: NDArray[np.float64]
    size: NDArray[np.int64]

    def take(self, which: Any) -> "Steps":
        """Return the steps at these places, given by a slice, a mask or numbers."""
        return Steps(self.row[which], self.cost[which], self.size[which])

    def counts(self, n_rows: int) -> NDArray[np.int64]:
        """Return how many reviews each of n_rows instances gets if all steps are taken."""
        return np.bincount(self.row, self.size, n_rows).astype(np.int64)


def steps_above(path: CostPath, cost: float) -> Steps:
    """Return the steps that save more than `cost` for each review, instance by instance, each with increasing cost."""
    steps = path.steps()
    saves = steps.cost > tipped(cost, path.tie_scale)
    return Steps(steps.row[saves], steps.cost[saves], steps.size[saves])


def steps_between(path: CostPath, low: float, high: float = np.inf) -> Steps:
    """Return the steps that save more than `low` for each review and are not taken at the cost `high`, by falling cost.

    Steps of equal cost stay in the order of their instances.
    """
    steps = steps_above(path, low)
    within = np.flatnonzero(steps.cost <= tipped(high, path.tie_scale))
    return steps.take(within[np.argsort(-steps.cost[within], kind="stable")])


def profiles_of(profile: RiskProfile[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the risk profiles of some instances; of sparse ones, up to where they have become 0."""
    values = profile.values[rows]
    if not sparse.issparse(values):
        return np.asarray(values)
    width = int(np.diff(values.indptr).max(initial=0)) + 1
    return np.asarray(values[:, :width].toarray())


def review_counts(profile: RiskProfile[Any], counts: NDArray[np.int64], review: float) -> Prediction:
    """Return the best prediction with so many reviews of each instance; its expected loss includes their cost."""
    prediction = profile.with_n_abstained(counts)
    prediction.expected_loss += review * counts
    return prediction
