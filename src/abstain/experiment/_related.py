"""How others decide what to leave open, made to leave open exactly as much as asked.

Three rules of which labels of a test fold a human is to answer:

- *thresholds* (Pillai, Fumera and Roli, 2013): two thresholds for all labels; what is below is answered 0, what is
  above 1, what is between is left open. They are tuned on labelled data to maximise the micro-averaged F of the answers
  under a limit on the manual effort.
- *instances* (Park and Simoff): the instances of greatest entropy are left open whole, the others answered whole.
- *random*: any labels, without looking.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from abstain._utils.types import Floats

Mask = NDArray[np.bool_]
MOST_THRESHOLDS = 1 << 17
"""Thresholds tried: every one there is, or so many, evenly spaced in rank."""


@dataclass(frozen=True)
class Tuning:
    """Labelled probabilities that thresholds are tuned on: the sorted ones, and how many relevant labels are before."""

    thresholds: Floats
    before: NDArray[np.int64]
    relevant_before: NDArray[np.int64]

    @classmethod
    def of(cls, probabilities: Floats, labels: NDArray[np.uint8]) -> "Tuning":
        """Sort them once, for every effort."""
        flat = probabilities.ravel()
        order = np.argsort(flat, kind="stable")
        relevant = np.concatenate([[0], np.cumsum(labels.ravel()[order], dtype=np.int64)])
        places = np.unique(np.linspace(0, flat.size, min(flat.size, MOST_THRESHOLDS) + 1).astype(np.int64))
        return cls(np.append(flat[order], np.inf)[places], places, relevant[places])

    def lower_threshold(self, effort: float) -> float:
        """Where the window of labels left open begins: the one of greatest F among all that use the effort."""
        n = len(self.thresholds) - 1
        width = min(n, round(effort * n))
        missed = self.relevant_before[: n - width + 1]  # relevant, but below the window
        found = self.relevant_before[-1] - self.relevant_before[width:]
        predicted = self.before[-1] - self.before[width:]
        denominator = predicted + found + missed  # 2 TP + FP + FN
        f = np.divide(2.0 * found, denominator, out=np.zeros(len(found)), where=denominator > 0)
        return float(self.thresholds[np.argmax(f)])


@dataclass(frozen=True, eq=False)
class Others:
    """What others would do with the probabilities of a fold: they tune on other folds, and chance has its draws."""

    probabilities: Floats
    tuning: Tuning
    draws: Floats

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return np.argsort(self.probabilities.ravel(), kind="stable")

    @cached_property
    def _drawn(self) -> NDArray[np.intp]:
        return np.argsort(self.draws.ravel(), kind="stable")

    @cached_property
    def _most_uncertain_first(self) -> NDArray[np.intp]:
        entropy = (entr(self.probabilities) + entr(1.0 - self.probabilities)).sum(axis=1)
        return np.argsort(-entropy, kind="stable")

    def between_thresholds(self, count: int) -> tuple[Mask, Mask]:
        """Which labels are left open, `count` of them from the tuned threshold upwards, and which are answered 1.

        Where there are fewer above it, the threshold is lowered until the effort is used.
        """
        size = self.probabilities.size
        lower = self.tuning.lower_threshold(count / size)
        start = min(int(np.searchsorted(self.probabilities.ravel(), lower, sorter=self._order)), size - count)
        return self._mask(self._order[start : start + count]), self._mask(self._order[start + count :])

    def whole_instances(self, count: int) -> Floats:
        """How much of each instance is left open: 1, or 0, or a share of the one with which the effort is used up."""
        n, m = self.probabilities.shape
        share = np.empty(n)
        share[self._most_uncertain_first] = np.clip(count / m - np.arange(n), 0.0, 1.0)
        return share

    def at_random(self, count: int) -> Mask:
        """The `count` labels with the smallest draws: what is left open at little effort is so at more effort, too."""
        return self._mask(self._drawn[:count])

    def _mask(self, places: NDArray[np.intp]) -> Mask:
        mask = np.zeros(self.probabilities.size, np.bool_)
        mask[places] = True
        return mask.reshape(self.probabilities.shape)
