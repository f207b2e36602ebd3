"""Betting against the hypothesis that a mean is too high: the wealth that is won is evidence that it is not."""

import numpy as np

from abstain._utils.compilation import kernel

MAX_LOSS_SHARE = 0.95
"""The share of the wealth that the highest value (1) takes at the highest stake. Measured: lower shares win less on
small samples, where the highest stake is the best one; with 1, a single such value would end the bet."""
MAX_WEALTH = 1e300


@kernel
def most_wealth(values, bound, level, most):
    """most[k] = the greatest wealth, from 1 on, when betting row by row that column k has a mean below the bound.

    Invariants: values is (n, k) in [0, 1], 0 < bound < 1, 0 < level < 1. The stake on row i depends on rows before i
    only, so that a mean of at least the bound makes the wealth a supermartingale. Stopping at MAX_WEALTH keeps it one.
    """
    n, width = values.shape
    wealth, total, squares = np.ones(width), np.full(width, 0.5), np.full(width, 0.25)
    highest = MAX_LOSS_SHARE / (1.0 - bound)
    most[:] = 1.0
    for i in range(n):
        # The variance is that of the rows before, and of one more with mean ½ and variance ¼ to begin with.
        numerator = 2.0 * np.log(1.0 / level) / n * (i + 1)
        for k in range(width):
            value = values[i, k]
            stake = min(np.sqrt(numerator / squares[k]), highest)
            wealth[k] = min(wealth[k] * (1.0 + stake * (bound - value)), MAX_WEALTH)
            most[k] = max(most[k], wealth[k])
            total[k] += value
            squares[k] += (value - total[k] / (i + 2)) ** 2
