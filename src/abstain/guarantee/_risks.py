"""Risks and scores that can be controlled: each is a share, of bad ones among those that are counted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int32]


class AnswerCounts(NamedTuple):
    """Numbers of labels for each instance (or label) at each candidate cost, a column each."""

    true_positive: Counts
    false_positive: Counts
    false_negative: Counts
    answered: Counts


class Sample(NamedTuple):
    """Numbers for each instance, a row each, at each candidate cost, a column each."""

    bad: NDArray[Any]
    """How many are bad of those that are counted, or how bad an instance is that counts once."""
    counted: NDArray[Any]
    max_counted: int
    """The greatest number that can be counted in a row."""


@dataclass(frozen=True)
class Risk:
    """E[bad] / E[counted] ≤ limit, where 0 ≤ bad ≤ counted, of each instance.

    It is met iff E[bad − limit·counted] ≤ 0: a statement about the mean of one bounded number per instance, which
    needs no independence of an instance's labels.
    """

    bad: Callable[[AnswerCounts], Counts]
    counted: Callable[[AnswerCounts], Counts] | None
    """None if everything is counted, answered or not: more answers can then only make it worse."""
    is_score: bool = False
    """Whether the target is what must be reached, not what must not be exceeded."""
    of_instances: bool = False
    """Whether instances are bad as a whole, not labels."""
    loss_from_share: Callable[[Any], Any] = lambda share: share
    """Turns the share of bad ones into 1 minus the score, or into the risk itself."""
    share_from_loss: Callable[[float], float] = lambda loss: loss
    """The inverse of `loss_from_share`."""

    @property
    def is_monotone(self) -> bool:
        """Whether more answers can only make it worse."""
        return self.counted is None

    def limit(self, target: float, per_instance: bool) -> float:
        """Return what the share of bad ones (or the mean loss per instance) must not exceed."""
        loss = 1.0 - target if self.is_score else target
        return loss if per_instance else self.share_from_loss(loss)

    def sample(self, counts: AnswerCounts, n_labels: int, per_instance: bool) -> Sample:
        """Return what is bad and counted of each instance; with per_instance, an instance counts once, if at all."""
        bad = self.bad(counts)
        if self.counted is None:
            max_counted = 1 if self.of_instances else n_labels
            return Sample(bad, np.broadcast_to(np.int32(max_counted), bad.shape), max_counted)
        counted = self.counted(counts)
        if not per_instance or n_labels == 1:  # one label is bad or not: its loss is the share itself
            return Sample(bad, counted, n_labels)
        is_counted = counted > 0
        return Sample(self.loss_from_share(bad / np.maximum(counted, 1)), is_counted.astype(np.int32), 1)

    def estimate(self, bad: float, counted: float, per_instance: bool) -> float:
        """Return the risk or score of a sample with so many bad ones and so many counted in all; nan if none is."""
        if not counted:
            return float("nan")
        loss = bad / counted if per_instance else self.loss_from_share(bad / counted)
        return float(1.0 - loss if self.is_score else loss)


def _wrong(counts: AnswerCounts) -> Counts:
    return counts.false_positive + counts.false_negative


RISKS: dict[str, Risk] = {
    "answered_error": Risk(_wrong, lambda counts: counts.answered),
    "overall_error": Risk(_wrong, None),
    "any_error": Risk(lambda counts: (_wrong(counts) > 0).astype(np.int32), None, of_instances=True),
    "precision": Risk(
        lambda counts: counts.false_positive, lambda counts: counts.true_positive + counts.false_positive, is_score=True
    ),
    "recall": Risk(
        lambda counts: counts.false_negative, lambda counts: counts.true_positive + counts.false_negative, is_score=True
    ),
    # F1 = 2·TP / (2·TP + wrong): a share q of wrong ones among true positives and wrong ones makes it 1 − q / (2 − q).
    "f1": Risk(
        _wrong,
        lambda counts: counts.true_positive + _wrong(counts),
        is_score=True,
        loss_from_share=lambda share: share / (2.0 - share),
        share_from_loss=lambda loss: 2.0 * loss / (1.0 + loss),
    ),
}
"""The risks that `abstain.guarantee.control` can keep below a target, by name."""
