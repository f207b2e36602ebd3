"""Which labels stand first and which last, where each side is taken by its own end of the intervals."""

import numpy as np

from abstain._core.kernels.codes import ABSTAIN
from abstain._utils.compilation import kernel

FIRST, LAST = 1, 0


@kernel
def take_first(low, high, edge, count, chosen):
    """Choose the `count` labels of greatest low; of equal ones those of greatest high, then by label.

    Invariant: edge is the least low among them.
    """
    n_above = n_within = 0
    for j in range(low.shape[0]):
        chosen[j] = low[j] >= edge
        n_above += low[j] > edge
        n_within += chosen[j]
    if n_within > count:
        equal = np.flatnonzero(low == edge)
        chosen[equal[np.argsort(-high[equal], kind="mergesort")[count - n_above :]]] = False


@kernel
def take_last(low, high, edge, count, chosen):
    """Choose the `count` labels of least high; of equal ones those of least low, then those of greatest number.

    Invariant: edge is the greatest high among them.
    """
    n_below = n_within = 0
    for j in range(low.shape[0]):
        chosen[j] = high[j] <= edge
        n_below += high[j] < edge
        n_within += chosen[j]
    if n_within > count:
        equal = np.flatnonzero(high == edge)
        chosen[equal[np.argsort(-low[equal], kind="mergesort")[: len(equal) - count + n_below]]] = False


@kernel
def _settle_shared(low, high, is_first, is_last, sides):
    """Give each label that is on both sides to one of them, and its place on the other side to the next label."""
    free_first = free_last = 0
    for j in range(low.shape[0]):
        if is_first[j] and is_last[j]:
            if 1.0 - low[j] < high[j]:
                sides[j] = FIRST
                free_last += 1
            else:
                sides[j] = LAST
                free_first += 1
    left = np.flatnonzero(sides == ABSTAIN)
    sides[left[np.argsort(-low[left], kind="mergesort")[:free_first]]] = FIRST
    left = np.flatnonzero(sides == ABSTAIN)
    sides[left[np.argsort(high[left], kind="mergesort")[:free_last]]] = LAST


@kernel
def take_sides(bounds, ranked, start, n_abstained, sides, shared):
    """sides[i, j] = 1 for the start[i] labels of greatest low, 0 for those of least high, n_abstained[i] are left out.

    shared[i] is −1 where no label is on both sides; else it is the one with the widest interval, and sides[i] is a
    choice with as many labels on either side. Invariant: ranked has the rows of bounds, each end sorted decreasing.
    """
    n, m = sides.shape
    is_first, is_last = np.empty(m, np.bool_), np.empty(m, np.bool_)
    for i in range(n):
        low, high = bounds.low[i], bounds.high[i]
        k, end = start[i], start[i] + n_abstained[i]
        take_first(low, high, ranked.low[i, k - 1] if k > 0 else np.inf, k, is_first)
        take_last(low, high, ranked.high[i, end] if end < m else -np.inf, m - end, is_last)
        shared[i] = -1
        for j in range(m):
            sides[i, j] = FIRST if is_first[j] else (LAST if is_last[j] else ABSTAIN)
            is_shared = is_first[j] and is_last[j]
            if is_shared and (shared[i] < 0 or high[j] - low[j] > high[shared[i]] - low[shared[i]]):
                shared[i] = j
        if shared[i] >= 0:
            _settle_shared(low, high, is_first, is_last, sides[i])
