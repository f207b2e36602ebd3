"""What a method of calibration is: a non-decreasing function of the log-odds for each label, learnt from groups."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from abstain._utils.types import Floats
from abstain.calibration._groups import LIMIT, Groups

LEAST = float(expit(-LIMIT))  # a probability closer to 0 or 1 is not told apart from it


@dataclass(frozen=True)
class Method(ABC):
    """A function from log-odds to probabilities for each label.

    Attributes
    ----------
    low, high : float arrays of shape (n_labels,)
        The lowest and the highest log-odds seen of each label. Beyond, the function is constant: there is no
        extrapolation.
    """

    low: Floats
    high: Floats

    name: ClassVar[str]
    FIELDS: ClassVar[dict[str, int]] = {"low": 0, "high": 0}
    """The parameters of a label in a file, and how many dimensions each has."""

    @classmethod
    @abstractmethod
    def fit(cls, groups: Groups, start: Self | None = None) -> Self:
        """Learn the functions of all labels; `start` was learnt from similar groups."""

    def probabilities(self, x: Floats, labels: NDArray[np.intp]) -> Floats:
        """Return the calibrated probabilities of log-odds; `labels` are the labels of the entries, or broadcast."""
        p = self._probabilities(np.clip(x, self.low[labels], self.high[labels]), labels)
        return np.clip(p, LEAST, 1.0 - LEAST)

    @abstractmethod
    def _probabilities(self, x: Floats, labels: NDArray[np.intp]) -> Floats:
        """Return the probabilities of log-odds within the range seen."""

    def label_to_dict(self, j: int) -> dict[str, Any]:
        """Return the parameters of one label, of types that JSON has."""
        return {"low": float(self.low[j]), "high": float(self.high[j])}

    @classmethod
    @abstractmethod
    def from_dicts(cls, labels: list[dict[str, Any]]) -> Self:
        """Return the method with the parameters of each label."""

    @classmethod
    def check_label(cls, label: dict[str, Any], where: str) -> None:
        """Raise `InvalidDataset` if the parameters of a label, which are numbers, do not fit each other."""

    @staticmethod
    def _ranges_from(labels: list[dict[str, Any]]) -> tuple[Floats, Floats]:
        """Return `low` and `high` from the parameters of each label."""
        return np.array([label["low"] for label in labels]), np.array([label["high"] for label in labels])
