"""A game against the hypothesis that a mean is too high: what is won is the evidence that it is not."""

import numpy as np

from abstain._utils.compilation import kernel

WORST = 0.95
"""The share of the wealth that the worst value takes at the highest stake. Measured: lower ones win less on small
samples, where the highest stake is the best one; 1 would let one such value end the game."""
RICH = 1e300


@kernel
def most_wealth(values, bound, level, most):
    """most[k] = the greatest wealth, betting row by row that column k has a mean below the bound, from 1 on.

    Invariants: values is (n, k) in [0, 1], 0 < bound < 1, 0 < level < 1. The stake on row i depends on rows before i
    only, so that a mean of at least the bound makes the wealth a supermartingale. Stopping at RICH keeps it one.
    """
    n, width = values.shape
    wealth, total, squares = np.ones(width), np.full(width, 0.5), np.full(width, 0.25)
    highest = WORST / (1.0 - bound)
    most[:] = 1.0
    for i in range(n):
        # The variance is that of the rows before, and of one more with mean ½ and variance ¼ to begin with.
        aim = 2.0 * np.log(1.0 / level) / n * (i + 1)
        for k in range(width):
            value = values[i, k]
            stake = min(np.sqrt(aim / squares[k]), highest)
            wealth[k] = min(wealth[k] * (1.0 + stake * (bound - value)), RICH)
            most[k] = max(most[k], wealth[k])
            total[k] += value
            squares[k] += (value - total[k] / (i + 2)) ** 2
