"""Calibration of each label by itself, with scikit-learn's calibrators."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV

from abstain._utils.threads import one_blas_thread

METHODS = ("sigmoid", "isotonic")


class _Scores(ClassifierMixin, BaseEstimator):
    """A classifier that has been asked before: its input is its answer."""

    classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        return self

    def decision_function(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return X[:, 0]

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.intp]:
        return (X[:, 0] > 0).astype(np.intp)


@dataclass(frozen=True)
class Calibrators:
    """One calibrator per label: scores in, probabilities out."""

    fitted: tuple[Any, ...]
    """scikit-learn's sigmoid or isotonic regression of each label; None for one that was constant."""
    frequencies: NDArray[np.float64]
    """How often each label was relevant: for labels that were constant, this is the answer."""

    def __call__(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Calibrated probabilities, n × m."""
        result = np.tile(self.frequencies, (len(scores), 1))
        for j, calibrator in enumerate(self.fitted):
            if calibrator is not None:
                result[:, j] = np.clip(calibrator.predict(scores[:, j]), 0.0, 1.0)
        return result


def fit_calibrators(
    scores: NDArray[np.float64],
    labels: NDArray[np.int8],
    method: str,
    sample_weight: Any = None,
) -> Calibrators:
    """Learn, for each label, the probability that belongs to a score, from scores of models that had not seen it."""
    everything = np.arange(len(labels))

    def fit(j: int) -> Any:
        if labels[:, j].min() == labels[:, j].max():
            return None
        # The scores are given, so that there is nothing to split.
        whole = CalibratedClassifierCV(_Scores(), method=method, cv=[(everything, everything)], ensemble=False)
        whole.fit(scores[:, [j]], labels[:, j], sample_weight=sample_weight)
        return whole.calibrated_classifiers_[0].calibrators[0]  # without the checks of its wrappers at each call

    # Weights are handed on here, whatever the user's routing.
    with one_blas_thread(), config_context(enable_metadata_routing=False):
        return Calibrators(tuple(fit(j) for j in range(labels.shape[1])), labels.mean(axis=0))
