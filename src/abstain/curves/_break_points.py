"""The decisions of all instances in one order: by the cost at which they change."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.losses import LossLike
from abstain._core.profile import last_of_equals
from abstain._core.realized_paths import Outcomes, outcomes
from abstain._utils.errors import InvalidLabels, InvalidLoss, InvalidProbabilities
from abstain._utils.types import Floats


@dataclass(frozen=True, eq=False)
class Sweep:
    """The break points of all instances, merged. Costs that differ by rounding only are one: decisions take them so."""

    outcomes: Outcomes

    @cached_property
    def _changes(self) -> NDArray[np.int64]:
        """The corners that are not an instance's first, by their cost."""
        steps = self.outcomes.path.steps()
        return steps.corner[np.argsort(steps.cost, kind="stable")]

    @cached_property
    def _ends(self) -> NDArray[np.intp]:
        """Where in the changes each run of equal costs ends."""
        path = self.outcomes.path
        return last_of_equals(path.flat_costs[self._changes], path.tie_scale)

    @cached_property
    def costs(self) -> Floats:
        """0, then every cost at which a decision changes."""
        return np.append(0.0, self.outcomes.path.flat_costs[self._changes[self._ends]])

    def totals(self, values: NDArray[Any]) -> NDArray[Any]:
        """Σ over the instances of a value that each corner has, from each of the costs on."""
        wide = values.astype(np.int64) if values.dtype.kind in "iu" else values
        start = wide[self.outcomes.path.indptr[:-1]].sum()
        steps = np.cumsum(wide[self._changes] - wide[self._changes - 1])
        return np.append(start, start + steps[self._ends])

    def means(self, values: NDArray[Any]) -> Floats:
        """Their mean over the instances."""
        return self.totals(values) / len(self.outcomes)

    def corners(self, points: NDArray[np.intp]) -> NDArray[np.int64]:
        """The corner of each instance at some of the costs, given by their increasing numbers: n × points."""
        path, n_points = self.outcomes.path, len(points)
        number = np.repeat(np.arange(1, len(self.costs)), np.diff(self._ends, prepend=-1))
        instance = np.searchsorted(path.indptr, self._changes, side="right") - 1
        seen_from = instance * (n_points + 1) + np.searchsorted(points, number)
        passed = np.bincount(seen_from, minlength=len(path) * (n_points + 1)).reshape(len(path), n_points + 1)
        return path.indptr[:-1, np.newaxis] + np.cumsum(passed[:, :-1], axis=1)


def sweep(probabilities: Any, y_true: Any, loss: LossLike) -> Sweep:
    """All decisions for linear costs in order, scored if there is a truth."""
    found = outcomes(probabilities, y_true, loss)
    if len(found) == 0:
        raise InvalidProbabilities("probabilities: there are no rows; a curve needs at least one instance")
    return Sweep(found)


def scored_sweep(probabilities: Any, y_true: Any, loss: LossLike, what: str) -> Sweep:
    """The same where the truth is needed."""
    if y_true is None:
        raise InvalidLabels(f"y_true is None; {what} compares the answers with the truth")
    return sweep(probabilities, y_true, loss)


def require_answers(found: Outcomes, what: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The numbers of wrong and of caught labels at each corner; `InvalidLoss` where there are rankings instead."""
    if found.wrong is None or found.caught is None:
        raise InvalidLoss(
            f"{what} counts wrong answers; {found.loss!r} gives rankings, which answer no label. "
            "Cost curves and risk–coverage curves work with it."
        )
    return found.wrong, found.caught
