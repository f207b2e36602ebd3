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

from abstain._core.tables import dense
from abstain._core.targets import read_target
from abstain._utils.types import Floats
from abstain.calibration._pooled import Observations, fit_pooled
from abstain.learners._folds import fill_gaps, folds_for
from abstain.learners._parts import Part, Task, cross_fit_parts, is_varied
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

    Attributes
    ----------
    classes_ : array of shape (n_classes,), or list of n_labels arrays [0, 1]
    parts_ : list
        The fitted parts.
    blend_ : Blend
        How their log-odds become probabilities.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        As everywhere in scikit-learn.
    """

    def __init__(self, *, cv: Any = 5, random_state: Any = 0, n_jobs: int | None = None, verbose: int = 0) -> None:
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

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
        task = Task(
            X,
            labels[:, columns],
            weight,
            [(train, test) for train, test in counted if len(train) and len(test)],
            int(check_random_state(self.random_state).randint(2**31 - 1)),
            self.n_jobs,
            partial(reported, self.verbose),
        )
        self.parts_, self.blend_ = _fit(task)
        self.classes_ = [np.array([0, 1])] * labels.shape[1] if target.vector is None else target.classes
        self._columns = columns
        self._frequencies = (weight @ labels + 0.5) / (weight.sum() + 1.0)
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
        probabilities = np.tile(self._frequencies, (X.shape[0], 1))
        if self.blend_ is not None:
            for begin in range(0, len(probabilities), ROWS_PER_BLOCK):
                rows = slice(begin, begin + ROWS_PER_BLOCK)
                probabilities[rows, self._columns] = self.blend_([part.log_odds(X[rows]) for part in self.parts_])
        if isinstance(self.classes_, list):
            return probabilities
        return probabilities / probabilities.sum(axis=1, keepdims=True)  # exactly one class is right

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


def _fit(task: Task) -> tuple[list[Part], Blend | None]:
    """Return the parts, and the blend that is learnt from rows that they have not seen; none if there are no labels."""
    if task.labels.shape[1] == 0:
        return [], None
    parts, log_odds = cross_fit_parts(task)
    rows = task.held_out_rows
    with task.reported(f"blend of {task.labels.shape[1]} labels"):
        return parts, Blend.fit(log_odds, task.labels[rows], task.weight[rows])
