"""What a user writes who has a model, a budget and a type checker: it passes ``mypy --strict``, and it runs."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

import abstain
from abstain import AbstainError, AbstainingClassifier, Concave, Hamming, PartialPrediction, budget, curves, metrics
from abstain.streams import Job, decide_files

random = np.random.default_rng(0)
p: NDArray[np.float64] = random.beta(0.3, 1.0, (1000, 5))
y: NDArray[np.bool_] = random.random(p.shape) < p


def share_answered(prediction: PartialPrediction) -> float:
    """Between 0 and 1."""
    return 1.0 - float(prediction.n_abstained.sum()) / prediction.labels.size


# Decisions: labels for most losses, a ranking for the rank loss.
prediction = abstain.decide(p, loss="hamming", penalty=0.2)
print(share_answered(prediction), prediction.labels.sum(axis=0), prediction.expected_loss.mean())
print(share_answered(abstain.decide(p, Hamming(false_negative=5.0), Concave(0.3))))
print(share_answered(abstain.decide(p, "f1", lambda a: 0.02 * a)), share_answered(abstain.decide(p, penalty="none")))
print(abstain.decide(p, "rank", 0.2).order(0), prediction.abstained.any())

# One profile, every penalty.
profile = abstain.risk_profile(p, loss="f1")
print(share_answered(profile.decide(0.05)), profile.path().break_points[:3])

# Budgets and guarantees decide on new instances, too.
allocation = budget.solve(p, rate=0.05, per_instance=2)
print(allocation.bill.total, allocation.gap, share_answered(allocation.prediction))
print(share_answered(allocation.price.decide(p[:10])), share_answered(abstain.decide(p, "hamming", allocation.price)))
rule = abstain.guarantee.control(p, y, target=0.1, confidence=0.9)
print(share_answered(rule.decide(p[:10])) if rule.satisfied else "no guarantee")

# What it is worth.
print(round(metrics.generalized_loss(y, prediction, loss="hamming", penalty=0.2), 3))
print(metrics.answered_error_rate(y, prediction), metrics.abstention_rate(prediction))
print(curves.risk_coverage_curve(y, p, loss="f1").risk.max(), curves.cost_curve(p, y_true=y).costs.max())

# Humans answer the most valuable reviews first.
queue = abstain.review_queue(p, prediction, loss="hamming")
answers = queue.with_answers([int(y[i, j]) for i, j in zip(queue.row, queue.label, strict=True)])
print(len(queue), queue.saves[:3], share_answered(prediction.fill(answers)))

# From features, and from files.
model = AbstainingClassifier(MultiOutputClassifier(LogisticRegression()), loss="hamming", penalty=0.1).fit(p, y)
print(share_answered(model.decide(p)), model.score(p, y), abstain.label_probabilities(model, p).shape)
with TemporaryDirectory() as name:
    folder = Path(name)
    abstain.write_table(abstain.Table(p, ["a", "b", "c", "d", "e"]), folder / "p.npz")
    summary = decide_files(folder / "p.npz", folder / "q.npz", Job("hamming", 0.2, on_error="skip"))
    print(summary.n_rows, summary.abstention_rate, abstain.read_table(folder / "q.npz").shape)

try:
    abstain.decide([[0.5, 1.5]])
except AbstainError as error:
    print(error)
