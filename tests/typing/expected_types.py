"""Which types a type checker must infer: were one of them ``Any``, every use of it would pass, right or wrong."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import abstain
from abstain import PartialPrediction, PartialRanking

Floats = NDArray[np.float64]
p = np.random.default_rng(0).random((200, 3))
y = p > 0.5

assert_type(abstain.decide(p), PartialPrediction)
assert_type(abstain.decide(p, "f1", 0.1), PartialPrediction)
assert_type(abstain.decide(p, abstain.Hamming(), "none"), PartialPrediction)
assert_type(abstain.decide(p, "rank"), PartialRanking)
assert_type(abstain.decide(p, abstain.Rank()), PartialRanking)
assert_type(abstain.decide(p).expected_loss, NDArray[np.float64])
assert_type(abstain.risk_profile(p, loss="jaccard").decide(0.1), PartialPrediction)
assert_type(abstain.risk_profile(p, loss="rank").decide(0.1), PartialRanking)
assert_type(abstain.budget.solve(p, rate=0.1).prediction, PartialPrediction)
assert_type(abstain.budget.solve(p, loss="rank", rate=0.1).prediction, PartialRanking)
assert_type(abstain.budget.solve(p, rate=0.1).price.decide(p), PartialPrediction)
assert_type(abstain.guarantee.control(p, y, target=0.1).decide(p), PartialPrediction)
assert_type(abstain.AbstainingClassifier(loss="rank").fit(p, y).decide(p), PartialRanking)
assert_type(abstain.AbstainingClassifier().fit(p, y).decide(p), PartialPrediction)
assert_type(abstain.metrics.generalized_loss(y, abstain.decide(p), loss="hamming", penalty=0.1), float)
assert_type(abstain.decide(p).fill(y), PartialPrediction)
assert_type(abstain.AbstainingClassifier().fit(p, y).decide(p, loss="rank"), PartialRanking)
assert_type(abstain.AbstainingClassifier(loss="rank").fit(p, y).decide(p, loss=abstain.FMeasure(2)), PartialPrediction)
assert_type(abstain.metrics.generalized_loss(y, abstain.decide(p), loss="f1", penalty=0.1, per_instance=True), Floats)


class MissedIsWorse(abstain.DecomposableLoss):
    """A user's loss."""

    def error_costs(self, n_labels: int) -> tuple[float, float]:
        return 3.0, 1.0


def share_answered(
    profile: abstain.RiskProfile, allocation: abstain.budget.Allocation, rule: abstain.guarantee.Rule
) -> float:
    """Annotations need no arguments: they mean predictions of labels, and one rule for all of them."""
    found = profile.decide(0.1), allocation.price.decide(p), rule.decide(p)
    return float(np.mean([(prediction.to_dense() != abstain.ABSTAIN).mean() for prediction in found]))


some_loss: abstain.Loss = abstain.Jaccard()
assert_type(abstain.decide(p, MissedIsWorse(), abstain.Capped(0.1, max_abstained=2)), PartialPrediction)
assert_type(abstain.decide(p, some_loss), PartialPrediction | PartialRanking)
profile, rule = abstain.risk_profile(p, loss="f1"), abstain.guarantee.control(p, y, target=0.1)
assert 0.0 <= share_answered(profile, abstain.budget.solve(p, rate=0.1), rule) <= 1.0
model: abstain.AbstainingClassifier = abstain.AbstainingClassifier().fit(p, y)
assert_type(model.decide(p), PartialPrediction)
