"""What credal classifiers share: they give each label an interval of probabilities, and a probability in it."""

from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted, validate_data

from abstain._core.tables import dense
from abstain._core.targets import read_target
from abstain._utils.errors import InvalidLabels, InvalidParameter, quoted
from abstain._utils.types import Floats

DEFAULT_S = 2.0
MAX_ROWS_PER_BLOCK = 4096
MAX_VALUES_PER_BLOCK = 1 << 22  # rows × features


class CredalClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Classifier of a table of labels whose probabilities are imprecise: that of each label is known to an interval.

    The imprecise Dirichlet model (Walley 1996) adds s rows of unknown outcome to the N that were counted: n of N
    become the interval [n / (N + s), (n + s) / (N + s)]. The number s is used when predicting only, so that changing
    it (``set_params``) never fits anything again.
    """

    s: float

    @abstractmethod
    def _fit(self, X: Any, labels: NDArray[np.int8], weight: Floats) -> None:
        """Learn from rows of positive weight. X is a float array, in which nan means missing, or a CSR array."""

    @abstractmethod
    def _point(self, X: Any, s: float) -> Floats:
        """Return the probabilities of some rows."""

    @abstractmethod
    def _intervals(self, X: Any, s: float) -> tuple[Floats, Floats]:
        """Return the lower and the upper probabilities of some rows."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from a table of labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            Missing values, nan, are accepted in dense features.
        y : array-like or sparse matrix of shape (n_instances, n_labels)
            Labels of 0 and 1. A vector of classes is refused: its classes exclude each other, which intervals of
            single labels cannot say.
        sample_weight : array-like of shape (n_instances,), optional
            An instance of weight w counts as w instances do: not only the ratios of weights matter, since s is counted
            in instances.

        Returns
        -------
        self : CredalClassifier
        """
        self._require_s()
        X = self._check_features(X, reset=True)
        target = read_target(y)
        if target.vector is not None:
            raise InvalidLabels(
                f"y is a vector of {len(target.classes)} classes; {type(self).__name__} learns a table of labels of "
                "0 and 1 (n_instances × n_labels): for one label, y.reshape(-1, 1)"
            )
        check_consistent_length(X, target.labels)
        if sample_weight is not None and not np.any(sample_weight):
            raise InvalidParameter("sample_weight: all weights are zero; there is nothing to learn from")
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        counted = weight > 0
        labels = dense(target.labels, "y")
        self.classes_ = [np.array([0, 1])] * labels.shape[1]
        self._fit(X[counted], labels[counted], weight[counted])
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return P(label is relevant), a point of each interval.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)

        Returns
        -------
        probabilities : float array of shape (n_instances, n_labels)
        """
        check_is_fitted(self)
        X, s = self._check_features(X, reset=False), self._require_s()
        return np.vstack([self._point(rows, s) for rows in _blocks(X)])

    def predict_intervals(self, X: Any) -> tuple[Floats, Floats]:
        """Return the least and the greatest P(label is relevant) that the training data allow.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)

        Returns
        -------
        lower, upper : float arrays of shape (n_instances, n_labels)
            0 ≤ lower ≤ upper ≤ 1. ``abstain.Intervals(*model.predict_intervals(X))`` is what `decide` takes.
        """
        check_is_fitted(self)
        X, s = self._check_features(X, reset=False), self._require_s()
        lower, upper = zip(*(self._intervals(rows, s) for rows in _blocks(X)), strict=True)
        return np.vstack(lower), np.vstack(upper)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return 1 for labels that are more probable than not, else 0.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)

        Returns
        -------
        labels : int array of shape (n_instances, n_labels)
        """
        return (self.predict_proba(X) > 0.5).astype(np.int64)

    def _require_s(self) -> float:
        s: Any = self.s  # whatever a user has passed
        if isinstance(s, bool) or not isinstance(s, Real) or not 0 < float(s) < np.inf:
            raise InvalidParameter(f"s is {quoted(s)}; expected a positive number of instances")
        return float(s)

    def _check_features(self, X: Any, *, reset: bool) -> Any:
        finite = True if sparse.issparse(X) else "allow-nan"
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=finite, reset=reset)
        return sparse.csr_array(X) if sparse.issparse(X) else X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


def _blocks(X: Any) -> list[Any]:
    """Return the rows in blocks, so that what is computed of them stays small; one empty block if there are none."""
    n = min(MAX_ROWS_PER_BLOCK, max(1, MAX_VALUES_PER_BLOCK // X.shape[1]))
    return [X[begin : begin + n] for begin in range(0, max(1, X.shape[0]), n)]
