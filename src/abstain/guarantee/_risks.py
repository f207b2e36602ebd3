"""What can be kept below (or above) a target: each a share, the bad ones among those that are counted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int32]


class Tally(NamedTuple):
    """Of each instance (or label) at each candidate cost: labels rightly 1, wrongly 1, wrongly 0, and answered."""

    hits: Counts
    false_alarms: Counts
    misses: Counts
    answered: Counts


class Sample(NamedTuple):
    """Of each row (an instance) at each candidate cost (a column): how many are bad of how many that are counted."""

    bad: NDArray[Any]
    counted: NDArray[Any]
    most: int
    """The greatest number that can be counted in a row."""


@dataclass(frozen=True)
class Risk:
    """E[bad] / E[counted] ≤ limit, where 0 ≤ bad ≤ counted, of each instance.

    It is met iff E[bad − limit·counted] ≤ 0: a statement about the mean of one bounded number per instance, which
    needs no independence of an instance's labels.
    """

    bad: Callable[[Tally], Counts]
    counted: Callable[[Tally], Counts] | None
    """None if everything is counted, answered or not: more answers can then only make it worse."""
    is_score: bool = False
    """Whether the target is what must be reached, not what must not be exceeded."""
    of_instances: bool = False
    """Whether instances are bad as a whole, not labels."""
    loss_of: Callable[[Any], Any] = lambda share: share
    """The share of bad ones → 1 minus the score, or the risk itself."""
    share_of: Callable[[float], float] = lambda loss: loss
    """The inverse."""

    @property
    def is_monotone(self) -> bool:
        """Whether more answers can only make it worse."""
        return self.counted is None

    def limit(self, target: float, per_instance: bool) -> float:
        """What the share of bad ones (or the mean loss per instance) must not exceed."""
        loss = 1.0 - target if self.is_score else target
        return loss if per_instance else self.share_of(loss)

    def sample(self, tally: Tally, n_labels: int, per_instance: bool) -> Sample:
        """What is bad and what is counted of each instance; with per_instance, an instance counts once, if at all."""
        bad = self.bad(tally)
        if self.counted is None:
            most = 1 if self.of_instances else n_labels
            return Sample(bad, np.broadcast_to(np.int32(most), bad.shape), most)
        counted = self.counted(tally)
        if not per_instance or n_labels == 1:  # one label is bad or not: its loss is the share itself
            return Sample(bad, counted, n_labels)
        is_counted = counted > 0
        return Sample(self.loss_of(bad / np.maximum(counted, 1)), is_counted.astype(np.int32), 1)

    def estimate(self, bad: float, counted: float, per_instance: bool) -> float:
        """The risk or score of a sample, as the user knows it, given what is bad and counted in all; nan of nothing."""
        if not counted:
            return float("nan")
        loss = bad / counted if per_instance else self.loss_of(bad / counted)
        return float(1.0 - loss if self.is_score else loss)


def _wrong(tally: Tally) -> Counts:
    return tally.false_alarms + tally.misses


RISKS: dict[str, Risk] = {
    "answered_error": Risk(_wrong, lambda tally: tally.answered),
    "overall_error": Risk(_wrong, None),
    "any_error": Risk(lambda tally: (_wrong(tally) > 0).astype(np.int32), None, of_instances=True),
    "precision": Risk(lambda tally: tally.false_alarms, lambda tally: tally.hits + tally.false_alarms, is_score=True),
    "recall": Risk(lambda tally: tally.misses, lambda tally: tally.hits + tally.misses, is_score=True),
    # F1 = 2·hits / (2·hits + wrong): a share q of wrong ones among hits and wrong ones makes it 1 − q / (2 − q).
    "f1": Risk(
        _wrong,
        lambda tally: tally.hits + _wrong(tally),
        is_score=True,
        loss_of=lambda share: share / (2.0 - share),
        share_of=lambda loss: 2.0 * loss / (1.0 + loss),
    ),
}
