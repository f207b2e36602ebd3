"""From probabilities to results: every loss, penalty and cost from one risk profile, and what others would do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.decision import risk_profile
from abstain._core.losses import as_loss
from abstain._core.penalties import Linear, Penalty
from abstain._core.prediction import ABSTAIN, Prediction
from abstain._core.profile import CostPath, RiskProfile
from abstain._utils.types import Floats
from abstain.experiment._protocol import SCALES, priced
from abstain.experiment._related import Others, Tuning
from abstain.metrics import generalized_loss

COVERAGES = 20
"""Points of a risk–coverage curve between answering nothing and answering everything."""
Row = dict[str, Any]
FREE = Linear(0.0)


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """What a learner says of every instance when its fold is held out, and the truth."""

    probabilities: Floats
    labels: NDArray[np.uint8]
    folds: Sequence[NDArray[np.intp]]
    seed: int

    @cached_property
    def others(self) -> list[Others]:
        """What others would do with each fold."""
        draws = np.random.default_rng(self.seed).random(self.labels.shape)
        found = []
        for rows in self.folds:
            rest = np.setdiff1d(np.arange(len(self.labels)), rows)
            tuning = Tuning.of(self.probabilities[rest], self.labels[rest])
            found.append(Others(self.probabilities[rows], tuning, draws[rows]))
        return found

    def means(self, values: Floats) -> Floats:
        """The mean of each fold."""
        return np.array([values[rows].mean() for rows in self.folds])


@dataclass(frozen=True, eq=False)
class Judge:
    """One loss on one data set: what partial predictions of it cost, fold by fold, in the unit of the results."""

    data: OutOfFold
    loss: str

    @property
    def unit(self) -> float:
        """What one unit of the loss counts."""
        return SCALES[self.loss].unit(self.data.labels.shape[1])

    @cached_property
    def full(self) -> Prediction:
        """The optimal complete prediction."""
        return self.profile.decide("none")

    @cached_property
    def profile(self) -> RiskProfile[Prediction]:
        """All that the decisions need."""
        return risk_profile(self.data.probabilities, loss=self.loss)

    @cached_property
    def full_losses(self) -> Floats:
        """What it costs on each instance."""
        return self._losses(self.full, FREE)

    def _losses(self, prediction: Any, penalty: Penalty) -> Floats:
        return np.asarray(
            generalized_loss(self.data.labels, prediction, loss=self.loss, penalty=penalty, per_instance=True)
        )

    def of(self, prediction: Any, penalty: Penalty) -> Floats:
        """The generalised loss of each fold."""
        return self.unit * self.data.means(self._losses(prediction, penalty))

    def related(self, n_abstained: NDArray[np.intp], penalty: Penalty) -> dict[str, Floats]:
        """The same of what others would answer, had each fold to leave open as many labels."""
        data, m = self.data, self.data.labels.shape[1]
        between, drawn, is_positive = np.empty((3, *data.labels.shape), np.bool_)
        rejected = np.empty(len(data.labels))
        for rows, others in zip(data.folds, data.others, strict=True):
            count = int(n_abstained[rows].sum())
            between[rows], is_positive[rows] = others.between_thresholds(count)
            drawn[rows] = others.at_random(count)
            rejected[rows] = others.whole_instances(count)
        whole = rejected * penalty.bind(m).counts[m] + (1.0 - rejected) * self.full_losses
        return {
            "two_thresholds": self.of(self._answers(is_positive.astype(np.int8), between), penalty),
            "whole_instances": self.unit * data.means(whole),
            "at_random": self.of(self._answers(self.full.codes, drawn), penalty),
        }

    def _answers(self, codes: NDArray[Any], is_open: NDArray[np.bool_]) -> NDArray[Any]:
        """The answers without those left open; of a ranking, what remains of the order by probability."""
        if not as_loss(self.loss).gives_rankings:
            return np.where(is_open, ABSTAIN, codes)
        best_first = np.argsort(np.where(is_open, np.inf, -self.data.probabilities), axis=1, kind="stable")
        positions = np.argsort(best_first, axis=1, kind="stable")
        return np.where(is_open, ABSTAIN, positions)


def outcomes(judge: Judge) -> Iterator[Row]:
    """A row for each penalty, cost and fold."""
    data, m = judge.data, judge.data.labels.shape[1]
    full = judge.unit * data.means(judge.full_losses)
    for name, cost, penalty in priced(judge.loss, m):
        partial = judge.profile.decide(penalty)
        columns = {
            "n_instances": np.array([len(rows) for rows in data.folds]),
            "n_labels": np.full(len(data.folds), m),
            "generalized_loss": judge.of(partial, penalty),
            "abstention": 100.0 * data.means(partial.n_abstained / m),
            "mlc": full,
            "abs": np.full(len(data.folds), judge.unit * penalty.bind(m).counts[m]),
            **judge.related(partial.n_abstained, penalty),
        }
        yield from _by_fold({"penalty": name, "cost": cost}, columns)


def coverages(judge: Judge) -> Iterator[Row]:
    """A row for each of some linear costs and each fold: how much is answered, and how wrong the answers are."""
    data, m = judge.data, judge.data.labels.shape[1]
    for step, cost in enumerate(_spread(judge.profile.path())):
        partial = judge.profile.decide(Linear(float(cost)))
        columns = {
            "coverage": 1.0 - data.means(partial.n_abstained / m),
            "risk": judge.of(partial, FREE),
            **judge.related(partial.n_abstained, FREE),
        }
        yield from _by_fold({"step": step}, columns)


def _spread(path: CostPath) -> Floats:
    """Costs at which about equally many labels more are answered, from the first to the last."""
    steps = path.steps()
    if not len(steps.cost):
        return np.zeros(1)
    order = np.argsort(steps.cost, kind="stable")
    total = np.cumsum(steps.size[order])
    return steps.cost[order][np.searchsorted(total, np.linspace(1, total[-1], COVERAGES + 1))]


def _by_fold(keys: Row, columns: dict[str, NDArray[Any]]) -> Iterator[Row]:
    n_folds = len(next(iter(columns.values())))
    for k in range(n_folds):
        yield {**keys, "fold": k + 1, **{name: values[k].item() for name, values in columns.items()}}


def tables(data: OutOfFold, losses: Sequence[str]) -> tuple[list[Row], list[Row]]:
    """The results and the risk–coverage curves of all losses."""
    results: list[Row] = []
    curves: list[Row] = []
    for loss in losses:
        judge = Judge(data, loss)
        results += ({"loss": loss, **row} for row in outcomes(judge))
        curves += ({"loss": loss, **row} for row in coverages(judge))
    return results, curves
