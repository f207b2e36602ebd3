"""Where a number of reviews ends: thresholds, ties, and how many items a budget pays for."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Threshold(NamedTuple):
    """Values above the threshold are taken, and so many of those that are equal to it."""

    value: float
    n_ties: int


def find_threshold(values: NDArray[np.float64], count: int) -> Threshold:
    """Return the threshold at which the `count` largest of some positive values are taken; 0 if these are all."""
    if count >= len(values):
        return Threshold(0.0, 0)
    value = -float(np.partition(-values, count)[count])
    return Threshold(value, count - int(np.count_nonzero(values > value)))


def find_threshold_of_counts(values: NDArray[np.float64], counts: NDArray[np.int64], count: int) -> Threshold:
    """Return the threshold at which `count` values are taken, given different ones in increasing order, and how often
    each occurs; there must be more than `count` in all.
    """
    values, counts = values[::-1], counts[::-1]
    n_above = n_affordable(counts, count)
    return Threshold(float(values[n_above]), count - int(counts[:n_above].sum()))


def n_affordable(sizes: NDArray[np.int64], budget: int) -> int:
    """Return how many items a budget pays for, taken in their order: the first one that does not fit ends it."""
    return int(np.searchsorted(np.cumsum(sizes), budget, side="right"))


def is_among_largest(
    group: NDArray[np.int64], value: NDArray[np.float64], count: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return for each value whether it is among the count[g] largest of its group g; of equal ones the first are."""
    order = np.lexsort((-value, group))
    sizes = np.bincount(group, minlength=len(count))
    place = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_largest = np.empty(len(group), np.bool_)
    is_largest[order] = place < count[group[order]]
    return is_largest
