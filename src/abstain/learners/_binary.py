"""Learners of one label, which give P(0) and P(1) even of labels that are constant or too rare to learn."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted, column_or_1d

from abstain._utils.errors import InvalidLabels
from abstain._utils.threads import one_blas_thread
from abstain.learners._newton import NewtonLogisticRegression

PLATT_FOLDS = 5
MAX_SINGLE_THREAD_OPERATIONS = 5e8  # n d² multiplications of a Hessian; it takes more to keep several cores busy
MAX_NEWTON_FEATURES = 1000  # beyond, conjugate gradients are faster than n d² operations a step


class BinaryLearner(ClassifierMixin, BaseEstimator, ABC):
    """Classifier with two columns of probabilities, for 0 and 1, whether or not both were seen in training."""

    @abstractmethod
    def _make_model(self, X: Any, n_rarest: int) -> Any:
        """Return the classifier for these features; None if the rarer class, of n_rarest examples, is too rare."""

    def fit(self, X: Any, y: NDArray[Any], sample_weight: Any = None) -> Self:
        """Learn one label; the probability of one that is constant or too rare is its frequency."""
        y = column_or_1d(y)
        check_consistent_length(X, y)
        self.classes_ = np.array([0, 1])
        if not np.isin(y, self.classes_).all():
            raise InvalidLabels(f"a label is 0 or 1; this one has the values {np.unique(y).tolist()[:5]}")
        n_relevant = int(np.count_nonzero(y))
        n_rarest = min(n_relevant, len(y) - n_relevant)
        self.model_ = self._make_model(X, n_rarest) if n_rarest else None
        self.frequency_ = n_relevant / len(y)
        if self.model_ is not None:
            with self._threads(X):
                self.model_.fit(X, y, sample_weight=sample_weight)
        return self

    def _threads(self, X: Any) -> AbstractContextManager[Any]:
        """Return a context that limits the threads of the solver."""
        return nullcontext()

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return P(0) and P(1), of shape (n_instances, 2)."""
        check_is_fitted(self)
        if self.model_ is None:
            return np.tile([1.0 - self.frequency_, self.frequency_], (_num_samples(X), 1))
        return np.asarray(self.model_.predict_proba(X), dtype=np.float64)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the more probable class; 0 if both are equally probable."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(np.int64)


class BinaryLogisticRegression(BinaryLearner):
    """log p/(1 − p) = w·x + b with an L2 penalty on w: scikit-learn's logistic regression and its defaults, C = 1.

    Only the solver is chosen by the data. On dense features Newton's method with a Cholesky factorisation takes half a
    dozen steps where lbfgs takes hundreds, and ends nearer to the optimum.
    """

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def _make_model(self, X: Any, n_rarest: int) -> NewtonLogisticRegression | LogisticRegression:
        if not sparse.issparse(X) and np.shape(X)[1] <= MAX_NEWTON_FEATURES:
            return NewtonLogisticRegression(self.C)
        return LogisticRegression(C=self.C, solver="newton-cg", tol=1e-6, max_iter=1000)

    def _threads(self, X: Any) -> AbstractContextManager[Any]:
        n, d = np.shape(X)
        return one_blas_thread() if n * d * d < MAX_SINGLE_THREAD_OPERATIONS else nullcontext()


class PlattScaledSVM(BinaryLearner):
    """A support vector machine and the sigmoid of its decision value, fitted to five-fold cross-validated ones.

    `kernel="rbf"` is scikit-learn's `SVC` with its defaults, `kernel="linear"` its `LinearSVC`. A class with fewer than
    five examples gets as many folds as it has; of one example nothing can be held out: the label gets its frequency.
    """

    def __init__(self, kernel: str = "rbf") -> None:
        self.kernel = kernel

    def _make_model(self, X: Any, n_rarest: int) -> CalibratedClassifierCV | None:
        if n_rarest < 2:
            return None
        svm = SVC() if self.kernel == "rbf" else LinearSVC(dual=False)
        return CalibratedClassifierCV(svm, cv=min(PLATT_FOLDS, n_rarest), ensemble=False)
