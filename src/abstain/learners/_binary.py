"""Learners of one label: they always give P(0) and P(1), also of labels too rare to learn from."""

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

FOLDS = 5  # of Platt scaling
SMALL_HESSIAN = 5e8  # multiplications; it takes more to keep several cores busy
MOST_COLUMNS_OF_A_HESSIAN = 1000  # n d² operations a step; beyond, conjugate gradients are faster


class BinaryLearner(ClassifierMixin, BaseEstimator, ABC):
    """Two columns of probabilities, for the classes 0 and 1, whether or not both were seen in training."""

    @abstractmethod
    def _learner(self, X: Any, rarest: int) -> Any:
        """The classifier for these features, when the rarer class has so many examples; None if they are too few."""

    def fit(self, X: Any, y: NDArray[Any], sample_weight: Any = None) -> Self:
        """Learn one label; one that is constant or too rare gets its frequency."""
        y = column_or_1d(y)
        check_consistent_length(X, y)
        self.classes_ = np.array([0, 1])
        if not np.isin(y, self.classes_).all():
            raise InvalidLabels(f"a label is 0 or 1; this one has the values {np.unique(y).tolist()[:5]}")
        n_relevant = int(np.count_nonzero(y))
        rarest = min(n_relevant, len(y) - n_relevant)
        self.model_ = self._learner(X, rarest) if rarest else None
        self.frequency_ = n_relevant / len(y)
        if self.model_ is not None:
            with self._threads(X):
                self.model_.fit(X, y, sample_weight=sample_weight)
        return self

    def _threads(self, X: Any) -> AbstractContextManager[Any]:
        """How many threads the solver may use."""
        return nullcontext()

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """P(0) and P(1), n × 2."""
        check_is_fitted(self)
        if self.model_ is None:
            return np.tile([1.0 - self.frequency_, self.frequency_], (_num_samples(X), 1))
        return np.asarray(self.model_.predict_proba(X), dtype=np.float64)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The more probable class; 0 if both are equally so."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(np.int64)


class BinaryLogisticRegression(BinaryLearner):
    """log p/(1 − p) = w·x + b with an L2 penalty on w: scikit-learn's logistic regression and its defaults, C = 1.

    Only the solver is chosen by the data. On dense features Newton's method with a Cholesky factorisation takes half a
    dozen steps where lbfgs takes hundreds, and ends nearer to the optimum.
    """

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def _learner(self, X: Any, rarest: int) -> NewtonLogisticRegression | LogisticRegression:
        if not sparse.issparse(X) and np.shape(X)[1] <= MOST_COLUMNS_OF_A_HESSIAN:
            return NewtonLogisticRegression(self.C)
        return LogisticRegression(C=self.C, solver="newton-cg", tol=1e-6, max_iter=1000)

    def _threads(self, X: Any) -> AbstractContextManager[Any]:
        n, d = np.shape(X)
        return one_blas_thread() if n * d * d < SMALL_HESSIAN else nullcontext()


class PlattScaledSVM(BinaryLearner):
    """A support vector machine and the sigmoid of its decision value, fitted to five-fold cross-validated ones.

    `kernel="rbf"` is scikit-learn's `SVC` with its defaults, `kernel="linear"` its `LinearSVC`. A class with fewer than
    five examples gets as many folds as it has; of one example nothing can be held out: the label gets its frequency.
    """

    def __init__(self, kernel: str = "rbf") -> None:
        self.kernel = kernel

    def _learner(self, X: Any, rarest: int) -> CalibratedClassifierCV | None:
        if rarest < 2:
            return None
        machine = SVC() if self.kernel == "rbf" else LinearSVC(dual=False)
        return CalibratedClassifierCV(machine, cv=min(FOLDS, rarest), ensemble=False)
