"""`BlendedClassifier`: trees and logistic regression, blended and calibrated for each label."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted, validate_data

from abstain._core.joint import Joint, Mixture, Samples
from abstain._core.tables import dense
from abstain._core.targets import read_target
from abstain._utils.errors import InvalidLabels
from abstain._utils.types import Floats
from abstain.calibration._pooled import Observations, fit_pooled
from abstain.learners._folds import fill_gaps, folds_for
from abstain.learners._forest import LabelForest
from abstain.learners._held_out import HeldOut, some_of
from abstain.learners._leaf_vectors import LeafVectors, leaves_of, vectors_of
from abstain.learners._parts import Fold, Part, Task, Trees, cross_fit_parts, is_varied
from abstain.learners._verbose import reported

ROWS_PER_BLOCK = 4096


@dataclass(frozen=True)
class Blend:
    """logit p = Σ slopes · log-odds of the parts + offset, with slopes ≥ 0, for each label.

    Attributes
    ----------
    slopes : float array of shape (n_parts, n_labels)
    offset : float array of shape (n_labels,)
    low, high : float arrays of shape (n_parts, n_labels)
        The range of the log-odds it was learnt from; nothing is extrapolated.
    """

    slopes: Floats
    offset: Floats
    low: Floats
    high: Floats

    @classmethod
    def fit(cls, log_odds: list[Floats], labels: NDArray[np.int8], weight: Floats) -> Self:
        """Learn the slopes of each label, shrunk towards those of the others: the more, the rarer it is.

        Parameters
        ----------
        log_odds : list of float arrays of shape (n_rows, n_labels)
            Of each part, for rows that it has not seen; nan where a label could not be learnt.
        labels : int array of shape (n_rows, n_labels)
        weight : float array of shape (n_rows,)
        """
        n, m = labels.shape
        scores = fill_gaps(np.stack(log_odds, axis=2))
        rows = Observations(
            scores.transpose(1, 0, 2).reshape(n * m, -1),
            np.tile(weight, m),
            (weight[:, np.newaxis] * labels).T.ravel(),
            np.arange(m + 1) * n,
        )
        theta = fit_pooled(rows, identity=np.full(len(log_odds), 1.0 / len(log_odds))).coefficients
        return cls(theta[:, :-1].T.copy(), theta[:, -1], scores.min(axis=0).T.copy(), scores.max(axis=0).T.copy())

    def __call__(self, log_odds: list[Floats]) -> Floats:
        """Return probabilities of shape (n_rows, n_labels)."""
        total = np.tile(self.offset, (len(log_odds[0]), 1))
        for slopes, low, high, scores in zip(self.slopes, self.low, self.high, log_odds, strict=True):
            total += slopes * np.clip(scores, low, high)
        probabilities: Floats = expit(total)
        return probabilities


@dataclass(frozen=True)
class KeptFold:
    """The joint distributions that the trees of a fold give some of the instances held out.

    Attributes
    ----------
    fold : Fold
    places : int array of shape (n_instances,)
        Which of the fold's instances they are.
    joint : Samples
        Of the fold's labels.
    """

    fold: Fold
    places: NDArray[np.intp]
    joint: Samples

    @classmethod
    def of(cls, task: Task, fold: Fold, trees: Trees) -> Self:
        """Let some of the instances that are held out fall into the leaves."""
        places = some_of(len(fold.test), fold.number, len(task.splits))
        leaves = leaves_of(trees.forest, task.X[fold.test[places]])
        return cls(fold, places, vectors_of(trees.forest).distribution(leaves))


class BlendedClassifier(ClassifierMixin, BaseEstimator):
    """Trees and logistic regression, blended and calibrated for each label: what `recommended` returns.

    Parameters
    ----------
    cv : int or splitter, default=5
        The folds of cross-fitting; a number means shuffled folds.
    random_state : int, RandomState or None, default=0
        Draws the trees and the rows that span the kernel map.
    n_jobs : int, default=None
        Trees grown at once, and blocks of labels fitted at once. Results do not depend on it.
    verbose : int, default=0
        If it is not 0, what is done is printed, with the time that it took.
    keep_held_out : bool, default=False
        Whether `held_out_` is kept, for `AbstainingClassifier`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,), or list of n_labels arrays [0, 1]
    parts_ : list
        The fitted parts.
    blend_ : Blend
        How their log-odds become probabilities.
    held_out_ : list of HeldOut
        Joint distributions of instances held out in each fold, with the probabilities that the blend gives them; empty
        unless they are kept.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        As everywhere in scikit-learn.
    """

    def __init__(
        self,
        *,
        cv: Any = 5,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
        keep_held_out: bool = False,
    ) -> None:
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.keep_held_out = keep_held_out

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the parts and the blend.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            Missing values, nan, are accepted in dense features.
        y : array-like or sparse matrix of shape (n_instances, n_labels), or array-like of shape (n_instances,)
            Labels of 0 and 1, or a vector of classes.
        sample_weight : array-like of shape (n_instances,), optional
            Relative to each other: only their ratios matter.
        groups : array-like of shape (n_instances,), optional
            For the splitter.

        Returns
        -------
        self : BlendedClassifier
        """
        X = self._check_features(X, reset=True)
        target = read_target(y)
        check_consistent_length(X, target.labels)
        labels = dense(target.labels, "y")
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        weight = weight / weight.mean()
        counts = weight > 0
        columns = np.flatnonzero(is_varied(labels[counts]))
        splits = folds_for(self.cv, target).split(X, labels if target.vector is None else target.vector, groups)
        counted = [(train[counts[train]], test[counts[test]]) for train, test in splits]
        kept: list[KeptFold] = []
        task = Task(
            X,
            labels[:, columns],
            weight,
            [(train, test) for train, test in counted if len(train) and len(test)],
            int(check_random_state(self.random_state).randint(2**31 - 1)),
            self.n_jobs,
            partial(reported, self.verbose),
            (lambda fold, trees: kept.append(KeptFold.of(task, fold, trees))) if self.keep_held_out else None,
        )
        self.parts_, self.blend_, log_odds = _fit(task)
        self.classes_ = [np.array([0, 1])] * labels.shape[1] if target.vector is None else target.classes
        self._columns = columns
        self._frequencies = (weight @ labels + 0.5) / (weight.sum() + 1.0)
        self._vectors: LeafVectors | None = None
        self.held_out_ = []
        if self.blend_ is not None and self.keep_held_out:
            self.held_out_ = self._held_out(task, kept, self._with_constants(self.blend_(log_odds)))
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return P(label is relevant), or P(class) for a vector of classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)

        Returns
        -------
        probabilities : float array of shape (n_instances, n_labels)
            Labels that were constant in training get (relevant + ½) / (instances + 1).
        """
        check_is_fitted(self)
        X = self._check_features(X, reset=False)
        learnt = np.empty((X.shape[0], len(self._columns)))
        if self.blend_ is not None:
            for begin in range(0, len(learnt), ROWS_PER_BLOCK):
                rows = slice(begin, begin + ROWS_PER_BLOCK)
                learnt[rows] = self.blend_([part.log_odds(X[rows]) for part in self.parts_])
        probabilities = self._with_constants(learnt)
        if isinstance(self.classes_, list):
            return probabilities
        return probabilities / probabilities.sum(axis=1, keepdims=True)  # exactly one class is right

    def label_distribution(self, X: Any) -> Joint:
        """Return the joint distribution of the labels: that of the trees, with the blend's probabilities as marginals.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)

        Returns
        -------
        joint : Samples, or Mixture if no label varied in training
        """
        probabilities = self.predict_proba(X)
        if not isinstance(self.classes_, list):
            raise InvalidLabels(
                "label_distribution is for labels of which several can be relevant; of the classes of a single target, "
                "exactly one is"
            )
        if self.blend_ is None:
            return Mixture(None, probabilities[:, np.newaxis])
        forest = self._forest()
        if self._vectors is None:
            self._vectors = vectors_of(forest)
        X = self._check_features(X, reset=False)
        joint = self._vectors.distribution(leaves_of(forest, X))
        return self._for_all_labels(joint, self._columns).with_marginals(probabilities)

    def _held_out(self, task: Task, kept: "list[KeptFold]", probabilities: Floats) -> list[HeldOut]:
        """Return joint distributions of instances held out, given the probabilities of all of them, fold after fold."""
        known = np.where(np.isnan(probabilities), self._frequencies, probabilities)
        first = np.cumsum([0, *(len(test) for _, test in task.splits)])
        return [
            HeldOut(
                part.fold.test[part.places],
                self._for_all_labels(part.joint, self._columns[part.fold.columns]).with_marginals(
                    known[first[part.fold.number] + part.places]
                ),
            )
            for part in kept
        ]

    def _forest(self) -> LabelForest:
        return next(part.forest for part in self.parts_ if isinstance(part, Trees))

    def _with_constants(self, learnt: Floats) -> Floats:
        """Return probabilities of all labels, with the frequencies of those that were constant in training."""
        probabilities = np.tile(self._frequencies, (len(learnt), 1))
        probabilities[:, self._columns] = learnt
        return probabilities

    def _for_all_labels(self, joint: Samples, columns: NDArray[np.intp]) -> Samples:
        """Return samples of all labels, where those of some are known; the others have their more frequent value."""
        return joint.with_constant_labels(columns, (self._frequencies > 0.5).astype(np.uint8))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return 1 for labels that are more probable than not, else 0; or the most probable class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)

        Returns
        -------
        labels : array of shape (n_instances, n_labels) or (n_instances,)
        """
        probabilities = self.predict_proba(X)
        if isinstance(self.classes_, list):
            return (probabilities > 0.5).astype(np.int64)
        return self.classes_[probabilities.argmax(axis=1)]

    def _check_features(self, X: Any, *, reset: bool) -> Any:
        finite = True if sparse.issparse(X) else "allow-nan"
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=finite, reset=reset)
        return sparse.csr_array(X) if sparse.issparse(X) else X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags


def _fit(task: Task) -> tuple[list[Part], Blend | None, list[Floats]]:
    """Return the parts, the blend (none if there are no labels), and the log-odds of held-out rows, its input."""
    if task.labels.shape[1] == 0:
        return [], None, []
    parts, log_odds = cross_fit_parts(task)
    rows = task.held_out_rows
    with task.reported(f"blend of {task.labels.shape[1]} labels"):
        return parts, Blend.fit(log_odds, task.labels[rows], task.weight[rows]), log_odds
