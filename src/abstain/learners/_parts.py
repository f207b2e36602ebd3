"""The parts of the recommended learner: trees, and logistic regression on the features and on a kernel map of them.

Each part is cross-fitted: the functions ``cross_fit_…`` return the part, fitted to all rows, and log-odds of the rows
held out in each fold, one fold after the other. These come from models that have not seen the rows. They are nan where
a label was constant among the rows that such a model has seen.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logit

from abstain._utils.types import Floats
from abstain.learners._forest import LabelForest
from abstain.learners._logistic import fit_logistic
from abstain.learners._nystroem import NystroemMap

N_TREES, N_TREES_PER_FOLD = 200, 100
PRIOR_VOTES = 0.1  # what the label's frequency counts for, where the votes of all trees count for 1
STRENGTHS = (0.01, 0.1, 1.0)  # C of logistic regression on scaled features, tried as long as they get better
N_KERNEL_FEATURES = 500
KERNEL_STRENGTH = 100.0

Splits: TypeAlias = list[tuple[NDArray[np.intp], NDArray[np.intp]]]


@dataclass(frozen=True)
class Fold:
    """One split of the rows.

    Attributes
    ----------
    number : int
        0, 1, …
    train, test : int arrays
        The rows to learn from, and the rows held out.
    columns : int array
        The labels that are not constant among the rows to learn from.
    """

    number: int
    train: NDArray[np.intp]
    test: NDArray[np.intp]
    columns: NDArray[np.intp]


@dataclass(frozen=True)
class Task:
    """What is to be learnt.

    Attributes
    ----------
    X : float array, in which nan means missing, or CSR array of shape (n_instances, n_features)
    labels : int array of shape (n_instances, n_labels)
        No label is constant.
    weight : float array of shape (n_instances,)
    splits : list of pairs of int arrays
    seed : int
    n_jobs : int or None
    reported : callable
        Returns a context that says what is done in it.
    keep : callable, optional
        Called with the trees of each fold.
    """

    X: Any
    labels: NDArray[np.int8]
    weight: Floats
    splits: Splits
    seed: int
    n_jobs: int | None
    reported: Callable[[str], AbstractContextManager[None]]
    keep: Callable[["Fold", "Trees"], None] | None = None

    def held_out(self, what: str, learn: Callable[[Fold], Floats]) -> Floats:
        """Return log-odds of the rows held out, where ``learn`` gives those of a fold's rows and labels."""
        tables = []
        for k, (train, test) in enumerate(self.splits):
            fold = Fold(k, train, test, np.flatnonzero(is_varied(self.labels[train])))
            table = np.full((len(test), self.labels.shape[1]), np.nan)
            if len(fold.columns):
                with self.reported(f"{what}, fold {k + 1} of {len(self.splits)}"):
                    table[:, fold.columns] = learn(fold)
            tables.append(table)
        return np.vstack(tables)

    @property
    def held_out_rows(self) -> NDArray[np.intp]:
        """The rows held out in each fold, one fold after the other."""
        return np.concatenate([test for _, test in self.splits])

    def held_out_log_loss(self, scores: Floats) -> float:
        """Return the log loss of log-odds of the rows held out, without those that are nan, in total."""
        rows, known = self.held_out_rows, ~np.isnan(scores)
        scores = np.nan_to_num(scores)
        losses = np.logaddexp(0.0, scores) - self.labels[rows] * scores
        return float((self.weight[rows, np.newaxis] * known * losses).sum())


class Part(Protocol):
    """A fitted model of all labels."""

    def log_odds(self, X: Any) -> Floats:
        """Return log-odds of shape (n_instances, n_labels)."""


def cross_fit_parts(task: Task) -> tuple[list[Part], list[Floats]]:
    """Return the parts, fitted to all rows, and their log-odds of the rows held out.

    Sparse features are mostly counts of words, for which a kernel adds little.
    """
    learners: list[Callable[[Task], tuple[Part, Floats]]] = [cross_fit_trees, cross_fit_linear]
    if not sparse.issparse(task.X):
        learners.append(cross_fit_kernel)
    fitted = [learner(task) for learner in learners]
    return [part for part, _ in fitted], [log_odds for _, log_odds in fitted]


def is_varied(labels: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Return which labels are not constant."""
    varied: NDArray[np.bool_] = labels.min(axis=0) != labels.max(axis=0)
    return varied


@dataclass(frozen=True)
class Trees:
    """Extremely randomised trees.

    Attributes
    ----------
    forest : LabelForest
    frequency : float array of shape (n_labels,)
        How often each label is relevant.
    """

    forest: LabelForest
    frequency: Floats

    @classmethod
    def fit(cls, task: Task, rows: NDArray[np.intp], columns: NDArray[np.intp], n_trees: int, number: int) -> Self:
        """Grow trees for some labels from some rows."""
        labels, weight = task.labels[rows][:, columns], task.weight[rows]
        seed = int(np.random.default_rng([task.seed, number]).integers(2**31))
        forest = LabelForest.fit(task.X[rows], labels, weight, n_trees=n_trees, seed=seed, n_jobs=task.n_jobs)
        return cls(forest, (weight @ labels + 0.5) / (weight.sum() + 1.0))

    def log_odds(self, X: Any) -> Floats:
        """Return log-odds of the votes, none of them infinite: the label's frequency counts as some votes too."""
        odds: Floats = logit((self.forest.votes(X) + PRIOR_VOTES * self.frequency) / (1.0 + PRIOR_VOTES))
        return odds


def cross_fit_trees(task: Task) -> tuple[Trees, Floats]:
    """Grow fewer trees for each fold: the votes of 100 are hardly noisier than those of 200."""

    def learn(fold: Fold) -> Floats:
        trees = Trees.fit(task, fold.train, fold.columns, N_TREES_PER_FOLD, 1 + fold.number)
        if task.keep is not None:
            task.keep(fold, trees)
        return trees.log_odds(task.X[fold.test])

    held_out = task.held_out(f"{N_TREES_PER_FOLD} trees", learn)
    n, m = task.labels.shape
    with task.reported(f"{N_TREES} trees, all instances"):
        return Trees.fit(task, np.arange(n), np.arange(m), N_TREES, 0), held_out


@dataclass(frozen=True)
class Scaling:
    """(x − mean) / scale, with 0 for missing values; x / scale for sparse features, which stay sparse.

    Attributes
    ----------
    mean, scale : float arrays of shape (n_features,)
        The mean and the standard deviation of each feature; 1 where it is constant.
    """

    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, X: Any, weight: Floats) -> Self:
        """Return the scaling that gives each feature a mean of 0 and a standard deviation of 1."""
        if sparse.issparse(X):
            mean = weight @ X / weight.sum()
            variance = weight @ (X * X) / weight.sum() - mean**2
        else:
            known = np.maximum(weight @ ~np.isnan(X), np.finfo(np.float64).tiny)
            mean = weight @ np.nan_to_num(X) / known
            variance = weight @ np.nan_to_num(X - mean) ** 2 / known
        scale = np.sqrt(np.maximum(variance, 0.0))
        return cls(mean, np.where(scale > 1e-9 * np.abs(mean), scale, 1.0))

    def __call__(self, X: Any) -> Any:
        """Return the scaled features."""
        if sparse.issparse(X):
            return sparse.csr_array(X @ sparse.diags_array(1.0 / self.scale))
        return np.nan_to_num((X - self.mean) / self.scale)


@dataclass(frozen=True)
class KernelMap:
    """Scaled features, mapped so that their products are about an RBF kernel's values."""

    scaling: Scaling
    map: NystroemMap

    @classmethod
    def of(cls, X: NDArray[np.float64], weight: Floats, seed: int) -> Self:
        """Return the map that is spanned by some of the rows."""
        scaling = Scaling.of(X, weight)
        return cls(scaling, NystroemMap(N_KERNEL_FEATURES, random_state=seed).fit(scaling(X)))

    def __call__(self, X: NDArray[np.float64]) -> Floats:
        """Return the mapped features."""
        mapped: Floats = self.map.transform(self.scaling(X))
        return mapped


@dataclass(frozen=True)
class Logistic:
    """Logistic regression.

    Attributes
    ----------
    features : callable
        From the features that are given to those that are weighted.
    w : float array of shape (n_weighted_features + 1, n_labels)
        The weights, and the intercept in the last row.
    """

    features: Callable[[Any], Any]
    w: Floats

    def log_odds(self, X: Any) -> Floats:
        """Return w·x + b."""
        return _linear(self.features(X), self.w)


def cross_fit_linear(task: Task) -> tuple[Logistic, Floats]:
    """Fit logistic regression on the scaled features; the strength of its regularisation is chosen."""
    return _cross_fit_logistic(task, Scaling.of(task.X, task.weight), "logistic regression", STRENGTHS)


def cross_fit_kernel(task: Task) -> tuple[Logistic, Floats]:
    """Fit logistic regression on a map of an RBF kernel."""
    features = KernelMap.of(task.X, task.weight, task.seed)
    return _cross_fit_logistic(task, features, "kernel logistic regression", (KERNEL_STRENGTH,))


def _cross_fit_logistic(
    task: Task, features: Callable[[Any], Any], title: str, strengths: tuple[float, ...]
) -> tuple[Logistic, Floats]:
    """Fit with each value of C, from strong to weak regularisation, until the held-out log loss gets worse."""
    X, w, of_folds = features(task.X), None, dict[int, Floats]()
    best: tuple[float, Floats, Floats] | None = None
    for C in strengths:
        what = f"{title}, C = {C:g}"
        with task.reported(f"{what}, all instances"):
            w = fit_logistic(X, task.labels, task.weight, C=C, start=w, n_jobs=task.n_jobs)

        def learn(fold: Fold, C: float = C, start: Floats = w) -> Floats:
            labels, weight = task.labels[fold.train][:, fold.columns], task.weight[fold.train]
            start = of_folds.get(fold.number, start[:, fold.columns])
            of_folds[fold.number] = fit_logistic(X[fold.train], labels, weight, C=C, start=start, n_jobs=task.n_jobs)
            return _linear(X[fold.test], of_folds[fold.number])

        held_out = task.held_out(what, learn)
        loss = task.held_out_log_loss(held_out)
        if best is not None and loss >= best[0]:
            break
        best = loss, w, held_out
    assert best is not None, "there is at least one value of C"
    return Logistic(features, best[1]), best[2]


def _linear(X: Any, w: Floats) -> Floats:
    """Return X w + b, where b is the last row of w."""
    scores: Floats = X @ w[:-1] + w[-1]
    return scores
