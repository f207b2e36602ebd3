"""The expected loss of given answers: between what it lies for intervals, and what it is for a joint distribution."""

from dataclasses import dataclass

import numpy as np

from abstain._core.blocks import Block
from abstain._core.intervals import Intervals
from abstain._core.joint import Joint
from abstain._core.losses import Loss
from abstain._core.penalties import BoundPenalty
from abstain._core.prediction import Prediction
from abstain._core.truth import aligned_intervals
from abstain._utils.errors import InvalidLoss, InvalidPenalty, InvalidProbabilities
from abstain._utils.threads import for_each
from abstain._utils.types import Floats

CHANGED = 1e-7
"""What rounding cannot explain: an expected loss that is off by more is one of other intervals."""


@dataclass(frozen=True)
class ExpectedLossBounds:
    """The intervals, loss and penalty of a decision, from which `PartialPrediction.bounds` are computed."""

    intervals: Intervals
    loss: Loss
    costs: BoundPenalty

    def of(self, prediction: Prediction) -> Floats:
        """Return the least and the greatest expected generalised loss of a prediction, (n_instances, 2)."""
        charged = self.costs.charge(prediction.n_abstained, prediction.abstained)
        charged = np.where(np.isinf(charged), 0.0, charged)  # the skeptical rule without a price
        bounds = expected_loss_bounds(self.intervals, self.loss, prediction) + charged[:, np.newaxis]
        share = self.intervals.optimism or 0.0
        decided = share * bounds[:, 0] + (1.0 - share) * bounds[:, 1]
        if not np.allclose(decided, prediction.expected_loss, rtol=CHANGED, atol=CHANGED):
            raise InvalidProbabilities(
                "the arrays of the intervals have been changed since the decision, so that its bounds are no longer "
                "known; ask for prediction.bounds before, or give Intervals copies"
            )
        if self.intervals.rule == "minimax":
            bounds[:, 1] = prediction.expected_loss  # the same sum, added up in another order
            bounds[:, 0] = np.minimum(bounds[:, 0], bounds[:, 1])
        return bounds


def expected_loss_bounds(intervals: Intervals, loss: Loss, prediction: Prediction) -> Floats:
    """Return the least and the greatest expected loss of the answers, without a penalty, (n_instances, 2)."""
    bounds = np.empty((intervals.n_rows, 2))
    for block, ends, codes in aligned_intervals(intervals.ends(), prediction, loss.entries_per_block):
        bounds[block.rows, 0] = loss.expected(block, ends.swapped, codes)
        bounds[block.rows, 1] = loss.expected(block, ends, codes)
    return bounds


def expected_loss_of_joint(joint: Joint, loss: Loss, prediction: Prediction) -> Floats:
    """Return the expected loss of the answers, without a penalty, (n_instances,)."""
    expected = np.empty(joint.n_rows)
    codes = prediction.to_dense()

    def compute(block: Block) -> None:
        expected[block.rows] = loss.expected_of_joint(joint.load(block), codes[block.rows])

    for_each(compute, joint.blocks())
    return expected


def accept_intervals(loss: Loss, intervals: Intervals, costs: BoundPenalty | None) -> None:
    """Raise an error if the rule of the intervals has no meaning for a loss and costs (None for a risk profile)."""
    loss.accept_intervals()
    if intervals.rule == "minimax":
        return
    if not loss.is_decomposable:
        raise InvalidLoss(
            f'rule="{intervals.rule}" judges each label by itself; {loss!r} is not a sum over labels. Use '
            'rule="minimax", or a decomposable loss (Hamming).'
        )
    if intervals.rule == "skeptical" and costs is None:
        raise InvalidLoss(
            'rule="skeptical" has no risk profile: it answers what is best for every probability, and minimises '
            'nothing. Use rule="minimax" for profiles, paths and budgets.'
        )
    if intervals.rule == "skeptical" and costs is not None and costs.slope is None:
        raise InvalidPenalty(
            'rule="skeptical" needs a price for each label by itself: a number, Linear, PerLabel without a counting '
            'penalty, or "none" (no price)'
        )
