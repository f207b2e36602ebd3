"""Baselines of related work: other rules for which labels to abstain on, with a given number of abstentions.

Three rules choose the labels of a test fold that a human is to answer:

- *two thresholds* (Pillai, Fumera and Roli, 2013): the same two thresholds for all labels; labels below are answered 0,
  labels above 1, those between are abstained on. The thresholds are tuned on labelled data to maximise the
  micro-averaged F of the answers under a limit on the number of abstentions.
- *whole instances* (Park and Simoff): all labels of the instances of highest entropy.
- *at random*: any labels.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from abstain._utils.types import Floats

Mask = NDArray[np.bool_]
MAX_THRESHOLDS = 1 << 17
"""Thresholds tried: all distinct ones, or so many, evenly spaced in rank."""


@dataclass(frozen=True)
class ThresholdTuning:
    """Labelled probabilities on which thresholds are tuned, sorted.

    Attributes
    ----------
    thresholds : float array
        The thresholds to try, increasing; the last one is infinite.
    n_below : int array
        How many entries have a probability below each threshold.
    n_relevant_below : int array
        How many of these entries are relevant.
    """

    thresholds: Floats
    n_below: NDArray[np.int64]
    n_relevant_below: NDArray[np.int64]

    @classmethod
    def from_labelled(cls, probabilities: Floats, labels: NDArray[np.uint8]) -> "ThresholdTuning":
        """Sort the probabilities once, for any number of abstentions."""
        flat = probabilities.ravel()
        order = np.argsort(flat, kind="stable")
        n_relevant = np.concatenate([[0], np.cumsum(labels.ravel()[order], dtype=np.int64)])
        ranks = np.unique(np.linspace(0, flat.size, min(flat.size, MAX_THRESHOLDS) + 1).astype(np.int64))
        return cls(np.append(flat[order], np.inf)[ranks], ranks, n_relevant[ranks])

    def lower_threshold(self, abstention_rate: float) -> float:
        """Return the lower threshold of highest F among all windows that contain this share of the entries."""
        n = len(self.thresholds) - 1
        width = min(n, round(abstention_rate * n))
        false_negatives = self.n_relevant_below[: n - width + 1]  # relevant, but below the window
        true_positives = self.n_relevant_below[-1] - self.n_relevant_below[width:]
        predicted = self.n_below[-1] - self.n_below[width:]
        denominator = predicted + true_positives + false_negatives  # 2 TP + FP + FN
        f = np.divide(2.0 * true_positives, denominator, out=np.zeros(len(denominator)), where=denominator > 0)
        return float(self.thresholds[np.argmax(f)])


@dataclass(frozen=True, eq=False)
class Baselines:
    """The abstentions of the three rules in one fold; thresholds are tuned on the other folds."""

    probabilities: Floats
    tuning: ThresholdTuning
    random_numbers: Floats
    """One for each entry: what is abstained on at random."""

    @cached_property
    def _by_probability(self) -> NDArray[np.intp]:
        return np.argsort(self.probabilities.ravel(), kind="stable")

    @cached_property
    def _by_random_number(self) -> NDArray[np.intp]:
        return np.argsort(self.random_numbers.ravel(), kind="stable")

    @cached_property
    def _most_uncertain_first(self) -> NDArray[np.intp]:
        entropy = (entr(self.probabilities) + entr(1.0 - self.probabilities)).sum(axis=1)
        return np.argsort(-entropy, kind="stable")

    def two_thresholds(self, n_abstained: int) -> tuple[Mask, Mask]:
        """Return which labels are abstained on, from the tuned threshold upwards, and which are answered 1.

        Where there are fewer labels above the threshold, it is lowered until there are n_abstained.
        """
        size, order = self.probabilities.size, self._by_probability
        lower = self.tuning.lower_threshold(n_abstained / size)
        start = min(int(np.searchsorted(self.probabilities.ravel(), lower, sorter=order)), size - n_abstained)
        return self._mask(order[start : start + n_abstained]), self._mask(order[start + n_abstained :])

    def whole_instances(self, n_abstained: int) -> Floats:
        """Return the share of each instance that is abstained on: 1 or 0, or a fraction for one last instance."""
        n, m = self.probabilities.shape
        share = np.empty(n)
        share[self._most_uncertain_first] = np.clip(n_abstained / m - np.arange(n), 0.0, 1.0)
        return share

    def at_random(self, n_abstained: int) -> Mask:
        """Return the labels with the smallest random numbers: more abstentions include those of fewer."""
        return self._mask(self._by_random_number[:n_abstained])

    def _mask(self, entries: NDArray[np.intp]) -> Mask:
        mask = np.zeros(self.probabilities.size, np.bool_)
        mask[entries] = True
        return mask.reshape(self.probabilities.shape)
