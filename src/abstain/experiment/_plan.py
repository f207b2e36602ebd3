"""The plan of an experiment: an immutable list of fits, made before the first of them is started."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from abstain._utils.errors import InvalidParameter
from abstain._utils.suggestions import did_you_mean
from abstain.experiment import _models
from abstain.experiment._problems import Problem, Unfetched
from abstain.experiment._protocol import LOSSES

LIBRARIES = "abstain", "numpy", "scipy", "scikit-learn"


def versions() -> dict[str, str]:
    """Return the versions of the libraries on which the numbers depend besides the settings."""
    return {name: version(name) for name in LIBRARIES}


def require_known(learners: Sequence[str], losses: Sequence[str]) -> None:
    """Raise `InvalidParameter` if there is no such learner or loss, or one is listed twice."""
    for name in learners:
        _models.require_learner(name)
    for loss in losses:
        if loss not in LOSSES:
            hint = did_you_mean(loss, LOSSES, normalize=str.lower)
            raise InvalidParameter(f"there is no loss {loss!r}{hint} (there are {', '.join(LOSSES)})")
    _require_distinct("learner", learners)
    _require_distinct("loss", losses)


def require_feasible(problems: Sequence[Problem | Unfetched], n_folds: int) -> None:
    """Raise `InvalidParameter` if a data set is listed twice, or has too few instances for so many folds."""
    _require_distinct("data set", [problem.name for problem in problems])
    for problem in problems:
        if n_folds < 2:
            raise InvalidParameter(f"{n_folds} folds: it takes two or more, to learn from some and predict another")
        if n_folds > problem.shape[0]:
            raise InvalidParameter(f"{problem.name} has {problem.shape[0]} instances, too few for {n_folds} folds")


def _require_distinct(what: str, items: Sequence[str]) -> None:
    repeated = {item for item in items if list(items).count(item) > 1}
    if repeated:
        raise InvalidParameter(f"the {what} {min(repeated)!r} is listed twice")
    if not items:
        raise InvalidParameter(f"there is no {what}")


@dataclass(frozen=True, eq=False)
class Fold:
    """A fold of a data set, to be predicted by a learner that has seen the other folds."""

    problem: Problem
    learner: str
    number: int
    n_folds: int
    random_state: int

    @cached_property
    def rows(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The instances to learn from, and those to predict."""
        split = KFold(self.n_folds, shuffle=True, random_state=self.random_state)
        train, test = list(split.split(self.problem.labels))[self.number]
        return train, test

    @property
    def shape(self) -> tuple[int, int, int]:
        """The numbers of instances to learn from, features and labels."""
        return (len(self.rows[0]), *self.problem.shape[1:])

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All settings that determine the probabilities."""
        return {
            "data": self.problem.sha256,
            "learner": self.learner,
            "model": _models.settings(_models.make(self.learner, self.shape, self.random_state)),
            "fold": self.number,
            "folds": self.n_folds,
            "seed": self.random_state,
            "versions": versions(),
        }

    @property
    def name(self) -> str:
        """Data set, learner and fold, and a fingerprint of the settings."""
        fingerprint = hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()
        return f"{self.problem.name}-{self.learner}-{self.number + 1}of{self.n_folds}-{fingerprint[:12]}"

    @property
    def n_fits(self) -> int:
        """How many models of one label, or trees, are fitted."""
        return _models.n_fits(self.learner, self.shape[2])

    @property
    def seconds(self) -> float:
        """Roughly how long the fit takes."""
        return _models.seconds(self.learner, self.shape)

    def __str__(self) -> str:
        return f"{self.problem.name}, {self.learner}, fold {self.number + 1} of {self.n_folds}"


@dataclass(frozen=True, eq=False)
class Plan:
    """Data sets × learners × folds to fit, and the losses to decide for.

    Parameters
    ----------
    problems : sequence of Problem
        The data sets.
    learners : sequence of str
        Names of learners, as `abstain.learners.NAMES`, or ``"trees"``; each also calibrated, as ``"br-lr+sigmoid"``.
    losses : sequence of str, default=all
        Names of losses.
    n_folds : int, default=10
        Number of folds of the cross-validation.
    random_state : int, default=0
        Shuffles the folds, and orders the chains of an ensemble.
    """

    problems: Sequence[Problem]
    _: KW_ONLY
    learners: Sequence[str]
    losses: Sequence[str] = LOSSES
    n_folds: int = 10
    random_state: int = 0

    def __post_init__(self) -> None:
        require_known(self.learners, self.losses)
        require_feasible(self.problems, self.n_folds)

    @property
    def names(self) -> list[str]:
        """The names of the data sets."""
        return [problem.name for problem in self.problems]

    @property
    def pairs(self) -> Iterator[list[Fold]]:
        """The folds of each data set and learner."""
        for problem in self.problems:
            for learner in self.learners:
                yield [Fold(problem, learner, k, self.n_folds, self.random_state) for k in range(self.n_folds)]

    @cached_property
    def folds(self) -> list[Fold]:
        """All folds to be fitted."""
        return [fold for pair in self.pairs for fold in pair]
