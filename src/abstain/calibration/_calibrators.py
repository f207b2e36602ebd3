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


class _GivenScores(ClassifierMixin, BaseEstimator):
    """A classifier whose only feature is its decision value, computed before."""

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
    """One calibrator per label, from scores to probabilities.

    Attributes
    ----------
    fitted : tuple of length n_labels
        scikit-learn's sigmoid or isotonic regression of each label; None for one that was constant.
    frequencies : float array of shape (n_labels,)
        How often each label was relevant: the probability of labels that were constant.
    """

    fitted: tuple[Any, ...]
    frequencies: NDArray[np.float64]

    def __call__(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return calibrated probabilities of shape (n_instances, n_labels)."""
        result = np.tile(self.frequencies, (len(scores), 1))
        for j, calibrator in enumerate(self.fitted):
            if calibrator is not None:
                result[:, j] = np.clip(calibrator.predict(scores[:, j]), 0.0, 1.0)
        return result


def fit_calibrators(
    scores: NDArray[np.float64], labels: NDArray[np.int8], *, method: str, sample_weight: Any = None
) -> Calibrators:
    """Return a calibrator of each label, learnt from scores of models that had not seen the instances."""
    everything = np.arange(len(labels))

    def fit(j: int) -> Any:
        if labels[:, j].min() == labels[:, j].max():
            return None
        # The scores are out of sample already, so there is nothing to split.
        calibrated = CalibratedClassifierCV(
            _GivenScores(), method=method, cv=[(everything, everything)], ensemble=False
        )
        calibrated.fit(scores[:, [j]], labels[:, j], sample_weight=sample_weight)
        return calibrated.calibrated_classifiers_[0].calibrators[0]  # without the checks of its wrappers at each call

    # The weights are passed on explicitly, so the user's metadata routing must not interfere.
    with one_blas_thread(), config_context(enable_metadata_routing=False):
        return Calibrators(tuple(fit(j) for j in range(labels.shape[1])), labels.mean(axis=0))
