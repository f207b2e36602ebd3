"""How others decide what to leave open, made to leave open exactly as much as asked.

Three rules of which labels of a test fold a human is to answer:

- *thresholds* (Pillai, Fumera and Roli, 2013): two thresholds for all labels; what is below is answered 0, what is
  above 1, what is between is left open. They are tuned on labelled data to maximise the micro-averaged F of the answers
  under a limit on the manual effort.
- *instances* (Park and Simoff): the instances of greatest entropy are left open whole, the others answered whole.
- *random*: any labels, without looking.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Tuning:
    """Probabilities and labels that thresholds are tuned on, sorted by probability."""

    sorted: Floats
    relevant_before: NDArray[np.int64]

    @classmethod
    def of(cls, probabilities: Floats, labels: NDArray[np.uint8]) -> "Tuning":
        """Sort them once, for every effort."""
        flat = probabilities.ravel()
        order = np.argsort(flat, kind="stable")
        return cls(flat[order], np.concatenate([[0], np.cumsum(labels.ravel()[order], dtype=np.int64)]))

    def lower_threshold(self, effort: float) -> float:
        """Where the window of labels left open begins: the one of greatest F among all that use the effort."""
        n = len(self.sorted)
        width = min(n, round(effort * n))
        starts = np.arange(n - width + 1)
        missed = self.relevant_before[starts]  # relevant, but below the window
        found = self.relevant_before[-1] - self.relevant_before[starts + width]
        predicted = n - width - starts
        denominator = predicted + found + missed  # 2 TP + FP + FN
        f = np.divide(2.0 * found, denominator, out=np.zeros(len(starts)), where=denominator > 0)
        best = int(np.argmax(f))
        return float(self.sorted[best]) if best < n else np.inf


def between_thresholds(probabilities: Floats, lower: float, count: int) -> tuple[Mask, Mask]:
    """Which labels are left open, and which are answered 1: `count` labels from the lower threshold upwards are open.

    Where there are fewer above it, the threshold is lowered until the effort is used.
    """
    flat = probabilities.ravel()
    order = np.argsort(flat, kind="stable")
    start = min(int(np.searchsorted(flat[order], lower)), flat.size - count)
    is_open, is_positive = np.zeros(flat.size, np.bool_), np.zeros(flat.size, np.bool_)
    is_open[order[start : start + count]] = True
    is_positive[order[start + count :]] = True
    return is_open.reshape(probabilities.shape), is_positive.reshape(probabilities.shape)


def whole_instances(probabilities: Floats, count: int) -> Floats:
    """How much of each instance is left open: 1, or 0, or a share of the one with which the effort is used up."""
    n, m = probabilities.shape
    entropy = (entr(probabilities) + entr(1.0 - probabilities)).sum(axis=1)
    share = np.empty(n)
    share[np.argsort(-entropy, kind="stable")] = np.clip(count / m - np.arange(n), 0.0, 1.0)
    return share


def at_random(draws: Floats, count: int) -> Mask:
    """The `count` labels with the smallest draws: what is left open at little effort is so at more effort, too."""
    is_open = np.zeros(draws.size, np.bool_)
    is_open[np.argpartition(draws.ravel(), count - 1)[:count] if count else []] = True
    return is_open.reshape(draws.shape)
