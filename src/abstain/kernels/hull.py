"""The lower convex hull of a risk profile: the answer for every linear cost at once."""

import numpy as np

from abstain.kernels import kernel
from abstain.kernels.choice import TIE

EPSILON = np.finfo(np.float64).eps


@kernel
def lower_hull(values, unit, breaks, counts, sizes):
    """Break points of the linear cost for each row: where the best number of abstentions changes, and to what.

    counts[i, 0] is the fewest abstentions at cost 0; from breaks[i, j] on, counts[i, j + 1] < counts[i, j] is best.
    They are the corners and slopes of the lower convex hull of values[i]. sizes[i] is the number of break points.
    Corners that stand out by no more than the rounding of the values are none.
    """
    n, width = values.shape
    corner = np.empty(width, np.int64)
    for i in range(n):
        lowest = values[i].min()
        least = 0
        while values[i, least] > lowest + TIE * (unit + lowest):
            least += 1
        size = 0
        for step in range(least + 1):
            a = least - step
            if not np.isfinite(values[i, a]):
                continue
            while size > 1:
                near, far = corner[size - 1], corner[size - 2]
                to_near = (values[i, near] - values[i, far]) * (far - a)
                to_here = (values[i, a] - values[i, far]) * (far - near)
                rounding = 4.0 * EPSILON * (values[i, a] + values[i, near] + values[i, far])
                if to_here > to_near + rounding * (far - a):
                    break
                size -= 1
            corner[size] = a
            size += 1
        sizes[i] = size - 1
        counts[i, 0] = corner[0]
        for j in range(size - 1):
            counts[i, j + 1] = corner[j + 1]
            rise = values[i, corner[j + 1]] - values[i, corner[j]]
            breaks[i, j] = rise / (corner[j] - corner[j + 1])
