"""The cost paths of all instances merged into one: the break points of all of them, in the order of their costs."""

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
class MergedPath:
    """The break points of all instances, merged; costs that differ by rounding only are one, as for decisions.

    The corners of the instances' paths lie one after the other in flat arrays. For two instances with break costs
    0.1, 0.3 and 0.2::

        corner          0    1    2  |  3    4         instance 0 has corners 0–2, instance 1 has 3–4
        cost            0   0.1  0.3 |  0   0.2        the first corner of an instance is at cost 0
        sorted changes  1 (0.1), 4 (0.2), 2 (0.3)      all other corners, by cost
        costs           0, 0.1, 0.2, 0.3               the points of a curve
    """

    outcomes: Outcomes

    @cached_property
    def _changes(self) -> NDArray[np.int64]:
        """The corners that are not the first of an instance, sorted by cost."""
        path = self.outcomes.path
        is_first = np.zeros(len(path.flat_costs), np.bool_)
        is_first[path.indptr[:-1]] = True
        later = np.flatnonzero(~is_first)
        return later[np.argsort(path.flat_costs[later], kind="stable")]

    @cached_property
    def _last_changes(self) -> NDArray[np.intp]:
        """The position, among the changes, of the last change at each distinct cost."""
        path = self.outcomes.path
        return last_of_equals(path.flat_costs[self._changes], path.tie_scale)

    @cached_property
    def costs(self) -> Floats:
        """0, then every cost at which a decision changes."""
        return np.append(0.0, self.outcomes.path.flat_costs[self._changes[self._last_changes]])

    def totals(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return, for each cost, the sum over the instances of a value given per corner."""
        wide = values.astype(np.int64) if values.dtype.kind in "iu" else values
        start = wide[self.outcomes.path.indptr[:-1]].sum()
        steps = np.cumsum(wide[self._changes] - wide[self._changes - 1])
        return np.append(start, start + steps[self._last_changes])

    def means(self, values: NDArray[Any]) -> Floats:
        """Return, for each cost, the mean over the instances of a value given per corner."""
        return self.totals(values) / len(self.outcomes)

    def corners_at(self, points: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the corner of each instance at some of the costs: shape (n_instances, n_points).

        `points` are increasing indices into `costs`. An instance is at its first corner plus the number of its own
        changes up to that cost: changes are counted per instance and interval between two points, then accumulated::

            points              0      2        (costs 0 and 0.2 of the example above)
            intervals       ≤ 0 | ≤ 0.2 | later
            instance 0        0 |     1 |     1    accumulated: 0, 1 → corners 0 + 0, 0 + 1
            instance 1        0 |     1 |     0    accumulated: 0, 1 → corners 3 + 0, 3 + 1
        """
        path, n_intervals = self.outcomes.path, len(points) + 1
        n_changes_per_cost = np.diff(self._last_changes, prepend=-1)
        cost_of_change = np.repeat(np.arange(1, len(self.costs)), n_changes_per_cost)  # as an index into `costs`
        instance_of_change = np.searchsorted(path.indptr, self._changes, side="right") - 1
        interval_of_change = np.searchsorted(points, cost_of_change)
        cells = instance_of_change * n_intervals + interval_of_change  # of the table above, flattened
        n_changes = np.bincount(cells, minlength=len(path) * n_intervals).reshape(len(path), n_intervals)
        return path.indptr[:-1, np.newaxis] + np.cumsum(n_changes[:, :-1], axis=1)


def merge_paths(probabilities: Any, y_true: Any, loss: LossLike) -> MergedPath:
    """Return the merged path of all decisions for linear costs, scored if `y_true` is not None."""
    found = outcomes(probabilities, y_true, loss)
    if len(found) == 0:
        raise InvalidProbabilities("probabilities: there are no rows; a curve needs at least one instance")
    return MergedPath(found)


def merge_scored_paths(probabilities: Any, y_true: Any, loss: LossLike, curve: str) -> MergedPath:
    """Return the merged path for a kind of curve that needs the truth; `InvalidLabels` if `y_true` is None."""
    if y_true is None:
        raise InvalidLabels(f"y_true is None; {curve} compares the answers with the truth")
    return merge_paths(probabilities, y_true, loss)


def count_errors(found: Outcomes, curve: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return how many answers are wrong and how many errors are abstained on, per corner; `InvalidLoss` of rankings."""
    if found.wrong is None or found.caught is None:
        raise InvalidLoss(
            f"{curve} counts wrong answers; {found.loss!r} gives rankings, which answer no label. "
            "Cost curves and risk–coverage curves work with it."
        )
    return found.wrong, found.caught
