"""Calibration by a logistic function of the log-odds: temperature, sigmoid and beta."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from abstain._utils.errors import InvalidDataset
from abstain._utils.types import Floats
from abstain._utils.wording import plural
from abstain.calibration._groups import LIMIT, Groups
from abstain.calibration._method import Method
from abstain.calibration._pooled import Observations, PooledFit, fit_common, fit_pooled


@dataclass(frozen=True)
class LogisticMethod(Method):
    """logit p = Σ slopes · features(x) + offset, with slopes ≥ 0, where x are the log-odds.

    Attributes
    ----------
    slopes : float array of shape (n_labels, n_features)
    offset : float array of shape (n_labels,)
    pooled : PooledFit or None
        How the labels were fitted together, to begin a similar fit with; None if it was read from a file.
    """

    slopes: Floats
    offset: Floats
    pooled: PooledFit | None = None

    FIELDS: ClassVar[dict[str, int]] = {**Method.FIELDS, "slopes": 1, "offset": 0}
    identity: ClassVar[tuple[float, ...]] = (1.0,)
    """The slopes that leave the log-odds as they are."""

    @staticmethod
    def features(x: Floats) -> list[Floats]:
        """Return the functions of the log-odds that are weighted by the slopes."""
        return [x]

    @classmethod
    def fit(cls, groups: Groups, start: Self | None = None) -> Self:
        """Learn slopes and offset of each label, shrunk towards those of the others."""
        begin = None if start is None else start.pooled
        pooled = fit_pooled(cls._observations(groups), identity=np.array(cls.identity), start=begin)
        low, high = groups.ranges()
        return cls(low, high, pooled.coefficients[:, :-1], pooled.coefficients[:, -1], pooled)

    @classmethod
    def _observations(cls, groups: Groups) -> Observations:
        features = np.column_stack(cls.features(groups.scores))
        return Observations(features, groups.weight, groups.relevant, groups.indptr)

    def _probabilities(self, x: Floats, labels: NDArray[np.intp]) -> Floats:
        score = self.offset[labels]
        for k, feature in enumerate(self.features(x)):
            score = score + self.slopes[labels, k] * feature
        probabilities: Floats = expit(score)
        return probabilities

    def label_to_dict(self, j: int) -> dict[str, Any]:
        """Return the parameters of one label."""
        return super().label_to_dict(j) | {"slopes": self.slopes[j].tolist(), "offset": float(self.offset[j])}

    @classmethod
    def from_dicts(cls, labels: list[dict[str, Any]]) -> Self:
        """Return the method with the given parameters of each label."""
        low, high = cls._ranges_from(labels)
        slopes = np.array([label["slopes"] for label in labels], np.float64)
        return cls(low, high, slopes, np.array([label["offset"] for label in labels], np.float64))

    @classmethod
    def check_label(cls, label: dict[str, Any], where: str) -> None:
        """Raise `InvalidDataset` if there are too many slopes, or negative ones."""
        if len(label["slopes"]) != len(cls.identity) or min(label["slopes"]) < 0:
            raise InvalidDataset(f"{where}: slopes must be {plural(len(cls.identity), 'number')} ≥ 0")


class Identity(LogisticMethod):
    """The probabilities as they are."""

    name = "none"

    @classmethod
    def fit(cls, groups: Groups, start: Self | None = None) -> Self:
        """Learn nothing."""
        m = groups.n_labels
        return cls(np.full(m, -LIMIT), np.full(m, LIMIT), np.ones((m, 1)), np.zeros(m))


class Temperature(LogisticMethod):
    """logit p = slope · x with one slope for all labels, the inverse of the temperature."""

    name = "temperature"

    @classmethod
    def fit(cls, groups: Groups, start: Self | None = None) -> Self:
        """Learn the slope."""
        slope, m = fit_common(cls._observations(groups), identity=np.array(cls.identity)), groups.n_labels
        low, high = groups.ranges()
        return cls(low, high, np.tile(slope, (m, 1)), np.zeros(m))


class Sigmoid(LogisticMethod):
    """logit p = slope · x + offset for each label (Platt 1999)."""

    name = "sigmoid"


class Beta(LogisticMethod):
    """logit p = a · log q − b · log(1 − q) + offset for each label, where q is the probability (Kull et al. 2017)."""

    name = "beta"
    identity = (1.0, 1.0)

    @staticmethod
    def features(x: Floats) -> list[Floats]:
        """Return log q and −log(1 − q)."""
        return [-np.logaddexp(0.0, -x), np.logaddexp(0.0, x)]
