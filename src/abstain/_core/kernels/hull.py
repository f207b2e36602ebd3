"""The lower convex hull of a risk profile: the answer for every linear cost at once."""

import numpy as np

from abstain._core.kernels.choice import SLACK, tipped
from abstain._utils.compilation import kernel


@kernel
def lower_hull(values, tie_scale, breaks, counts, sizes):
    """Find the break costs of each row: where the best number of abstentions changes, and to which number.

    counts[i, 0] is the number of abstentions at cost 0; from breaks[i, j] on, counts[i, j + 1] < counts[i, j] is best.
    They are the corners and slopes of the lower convex hull of values[i]. sizes[i] is the number of break costs. Values
    may be off by `SLACK`, and slopes by twice that: corners that stand out by no more are none.
    """
    n, width = values.shape
    corner, slope = np.empty(width, np.int64), np.empty(width)
    for i in range(n):
        first, lowest = 0, np.inf
        for a in range(width):
            total = values[i, a] + tipped(0.0, tie_scale) * a
            if total < lowest:
                first, lowest = a, total
        corner[0] = first
        last = 0  # of the corners found; slope[j] leads to corner[j]
        for step in range(1, first + 1):
            a = first - step
            if not np.isfinite(values[i, a]):
                continue
            rise = (values[i, a] - values[i, corner[last]]) / (corner[last] - a)
            while last > 0 and rise <= slope[last] + 2.0 * SLACK * (tie_scale + slope[last]):
                last -= 1
                rise = (values[i, a] - values[i, corner[last]]) / (corner[last] - a)
            last += 1
            corner[last], slope[last] = a, rise
        sizes[i] = last
        counts[i, 0] = first
        for j in range(last):
            counts[i, j + 1] = corner[j + 1]
            breaks[i, j] = slope[j + 1]
