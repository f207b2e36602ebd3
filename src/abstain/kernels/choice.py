"""The best number of abstentions, once the risk profile is known."""

import numpy as np

from abstain.kernels import kernel

TIE = 1e-12
"""Totals closer than this (relative; absolute for losses bounded by 1) are equal: then answer, do not abstain."""


@kernel(fastmath={"nnan", "nsz", "reassoc"})
def choose(values, penalty, unit, n_abstained, expected):
    """For each row, the smallest a whose values[a] + penalty[a] is least.

    Invariants: values is (n, m + 1), penalty (m + 1,), penalty[0] = 0; values may hold +inf where a is not
    allowed, never throughout a row. unit is 1 for losses that are 1 − something, whose rounding errors are absolute.
    """
    n, width = values.shape
    totals = np.empty(width)
    for i in range(n):
        least = np.inf
        for a in range(width):
            totals[a] = values[i, a] + penalty[a]
            least = min(least, totals[a])
        a = 0
        while totals[a] > least + TIE * (unit + abs(least)):
            a += 1
        n_abstained[i] = a
        expected[i] = totals[a]
