"""A user's script over the core of the library: `test_typing` runs it and checks its types with mypy --strict."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import abstain


class RareIsImportant(abstain.DecomposableLoss):
    """A user's loss."""

    def error_costs(self, n_labels: int) -> tuple[float, float]:
        return 3.0, 1.0


def share_answered(profile: abstain.RiskProfile[abstain.PartialPrediction], cost: float) -> float:
    return float((profile.decide(cost).to_dense() != abstain.ABSTAIN).mean())


def decisions(p: NDArray[np.float64]) -> None:
    prediction = assert_type(abstain.decide(p), abstain.PartialPrediction)
    assert prediction.labels.sum() <= prediction.labels.size
    assert prediction.expected_loss.mean() >= 0.0
    assert prediction.abstained.sum() == prediction.n_abstained.sum()
    assert_type(abstain.decide(p, RareIsImportant(), abstain.Capped(0.1, max_abstained=2)), abstain.PartialPrediction)
    ranking = assert_type(abstain.decide(p, "rank", penalty=0.05), abstain.PartialRanking)
    assert ranking.positions.max() < p.shape[1]
    assert len(ranking.order(0)) <= p.shape[1]
    some_loss: abstain.Loss = abstain.Jaccard()
    either = abstain.decide(p, some_loss, penalty="none")
    assert_type(either, abstain.PartialPrediction | abstain.PartialRanking)
    assert not either.n_abstained.any()
    filled = prediction.fill([{"id": 0, "label": 1, "answer": 0}])
    assert filled.to_dense()[0, 1] == 0


def profiles(p: NDArray[np.float64]) -> None:
    profile = abstain.risk_profile(p, loss=abstain.FMeasure(beta=2))
    assert_type(profile.decide(abstain.Concave(0.2)), abstain.PartialPrediction)
    assert 0.0 <= share_answered(profile, 0.1) <= 1.0
    assert_type(abstain.risk_profile(p, loss="rank").decide(), abstain.PartialRanking)
    path = profile.path()
    assert path.steps().size.sum() == path.at(0.0).sum()
    assert bool(abstain.is_monotone("hamming", 0.3, n_labels=p.shape[1]))


if __name__ == "__main__":
    probabilities = np.array([[0.9, 0.55, 0.1], [0.4, 0.45, 0.97]])
    decisions(probabilities)
    profiles(probabilities)
