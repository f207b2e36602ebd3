"""From out-of-fold probabilities to results: every loss, penalty and cost from one risk profile, and the baselines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.decision import risk_profile
from abstain._core.penalties import Linear, Penalty
from abstain._core.prediction import ABSTAIN, Prediction
from abstain._core.profile import CostPath, RiskProfile
from abstain._utils.types import Floats
from abstain.experiment._baselines import Baselines, ThresholdTuning
from abstain.experiment._protocol import SCALES, penalties_of
from abstain.metrics import generalized_loss

N_COVERAGES = 20
"""Points of a risk–coverage curve between answering nothing and answering everything."""
Row = dict[str, Any]
NO_PENALTY = Linear(0.0)


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """The probabilities of every instance from a learner that has not seen its fold, and the truth."""

    probabilities: Floats
    labels: NDArray[np.uint8]
    folds: Sequence[NDArray[np.intp]]
    """The rows of each fold."""
    random_state: int

    @cached_property
    def baselines(self) -> list[Baselines]:
        """The baselines of each fold."""
        random_numbers = np.random.default_rng(self.random_state).random(self.labels.shape)
        found = []
        for rows in self.folds:
            others = np.setdiff1d(np.arange(len(self.labels)), rows)
            tuning = ThresholdTuning.from_labelled(self.probabilities[others], self.labels[others])
            found.append(Baselines(self.probabilities[rows], tuning, random_numbers[rows]))
        return found

    def means(self, values: Floats) -> Floats:
        """Return the mean of each fold."""
        return np.array([values[rows].mean() for rows in self.folds])


@dataclass(frozen=True, eq=False)
class LossEvaluation:
    """The predictions for one loss on one data set, and their losses fold by fold, in the unit of the results."""

    data: OutOfFold
    loss: str

    @property
    def unit(self) -> float:
        """The factor from the loss to the unit of the results."""
        return SCALES[self.loss].factor(self.data.labels.shape[1])

    @cached_property
    def profile(self) -> RiskProfile[Any]:
        """The risk profile, from which all decisions are made."""
        return risk_profile(self.data.probabilities, loss=self.loss)

    @cached_property
    def complete(self) -> Prediction:
        """The optimal complete prediction."""
        return self.profile.decide("none")

    @cached_property
    def complete_losses(self) -> Floats:
        """The loss of the complete prediction on each instance."""
        return self._losses(self.complete, NO_PENALTY)

    def _losses(self, prediction: Any, penalty: Penalty) -> Floats:
        return np.asarray(
            generalized_loss(self.data.labels, prediction, loss=self.loss, penalty=penalty, per_instance=True)
        )

    def fold_losses(self, prediction: Any, penalty: Penalty) -> Floats:
        """Return the mean generalised loss of a prediction in each fold."""
        return self.unit * self.data.means(self._losses(prediction, penalty))

    def baseline_losses(self, n_abstained: NDArray[np.intp], penalty: Penalty) -> dict[str, Floats]:
        """Return the mean generalised loss of each baseline in each fold, with as many abstentions in the fold."""
        data, m = self.data, self.data.labels.shape[1]
        between, drawn, is_positive = np.empty((3, *data.labels.shape), np.bool_)
        abstained_share = np.empty(len(data.labels))
        for rows, baselines in zip(data.folds, data.baselines, strict=True):
            count = int(n_abstained[rows].sum())
            between[rows], is_positive[rows] = baselines.two_thresholds(count)
            drawn[rows] = baselines.at_random(count)
            abstained_share[rows] = baselines.whole_instances(count)
        whole = abstained_share * penalty.bind(m).counts[m] + (1.0 - abstained_share) * self.complete_losses
        return {
            "two_thresholds": self.fold_losses(self._without(between, is_positive.astype(np.int8)), penalty),
            "whole_instances": self.unit * data.means(whole),
            "at_random": self.fold_losses(self._without(drawn, self.complete.codes), penalty),
        }

    def _without(self, abstained: NDArray[np.bool_], codes: NDArray[Any]) -> NDArray[Any]:
        """Return the answers with these abstentions; of a ranking, the rest of the order by probability."""
        if not SCALES[self.loss].loss.gives_rankings:
            return np.where(abstained, ABSTAIN, codes)
        best_first = np.argsort(np.where(abstained, np.inf, -self.data.probabilities), axis=1, kind="stable")
        positions = np.argsort(best_first, axis=1, kind="stable")
        return np.where(abstained, ABSTAIN, positions)


def result_rows(evaluation: LossEvaluation) -> Iterator[Row]:
    """Iterate over the results: a row for each penalty, cost and fold."""
    data, m = evaluation.data, evaluation.data.labels.shape[1]
    complete = evaluation.unit * data.means(evaluation.complete_losses)
    for name, cost, penalty in penalties_of(evaluation.loss, m):
        partial = evaluation.profile.decide(penalty)
        columns = {
            "n_instances": np.array([len(rows) for rows in data.folds]),
            "n_labels": np.full(len(data.folds), m),
            "generalized_loss": evaluation.fold_losses(partial, penalty),
            "abstention": 100.0 * data.means(partial.n_abstained / m),
            "mlc": complete,
            "abs": np.full(len(data.folds), evaluation.unit * penalty.bind(m).counts[m]),
            **evaluation.baseline_losses(partial.n_abstained, penalty),
        }
        yield from _rows_by_fold({"penalty": name, "cost": cost}, columns)


def coverage_rows(evaluation: LossEvaluation) -> Iterator[Row]:
    """Iterate over points of the risk–coverage curves: a row for each of some linear costs and each fold."""
    data, m = evaluation.data, evaluation.data.labels.shape[1]
    for step, cost in enumerate(_evenly_covering_costs(evaluation.profile.path())):
        partial = evaluation.profile.decide(Linear(float(cost)))
        columns = {
            "coverage": 1.0 - data.means(partial.n_abstained / m),
            "risk": evaluation.fold_losses(partial, NO_PENALTY),
            **evaluation.baseline_losses(partial.n_abstained, NO_PENALTY),
        }
        yield from _rows_by_fold({"step": step}, columns)


def _evenly_covering_costs(path: CostPath) -> Floats:
    """Return costs between which about equally many more labels are answered, from the first to the last."""
    costs = np.concatenate([path.costs(i)[1:] for i in range(len(path))])
    n_answered = np.concatenate([-np.diff(path.n_abstained(i)) for i in range(len(path))])
    if not len(costs):
        return np.zeros(1)
    order = np.argsort(costs, kind="stable")
    total = np.cumsum(n_answered[order])
    return costs[order][np.searchsorted(total, np.linspace(1, total[-1], N_COVERAGES + 1))]


def _rows_by_fold(keys: Row, columns: dict[str, NDArray[Any]]) -> Iterator[Row]:
    n_folds = len(next(iter(columns.values())))
    for k in range(n_folds):
        yield {**keys, "fold": k + 1, **{name: values[k].item() for name, values in columns.items()}}


def evaluate(data: OutOfFold, losses: Sequence[str]) -> tuple[list[Row], list[Row]]:
    """Return the rows of the results and of the risk–coverage curves for all losses."""
    results: list[Row] = []
    curves: list[Row] = []
    for loss in losses:
        evaluation = LossEvaluation(data, loss)
        results += ({"loss": loss, **row} for row in result_rows(evaluation))
        curves += ({"loss": loss, **row} for row in coverage_rows(evaluation))
    return results, curves
