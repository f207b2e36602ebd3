"""The rank loss: which labels to rank, for every number of them."""

import numpy as np

from abstain._core.kernels.codes import ABSTAIN
from abstain._utils.compilation import kernel


@kernel
def order_equals_by_label(p, order):
    """Make an unstable argsort stable: within each run of equal probabilities, labels in their own order."""
    n, m = p.shape
    for i in range(n):
        first = 0
        while first < m:
            last = first + 1
            while last < m and p[i, order[i, last]] == p[i, order[i, first]]:
                last += 1
            if last - first > 1:
                order[i, first:last].sort()
            first = last


@kernel
def profile_of_ranking(ranked, values, start):
    """Least expected number of wrongly ordered pairs with a labels abstained, and how many ranked ones precede these.

    Invariant: ranked are `Bounds` whose rows decrease. The best set of d labels is the first `left` and the last
    d − left, where the former count with low and the latter with high. With α = Σ (1 − low)
    over the former and β = Σ high over the latter, a further label x between them costs x·α + (1 − x)·β whichever side
    it joins, so the next best set joins it to the side whose own sum stays useful: left iff α < β. One label alone is
    no ranking: d = 1 is allowed only when m = 1.
    """
    low, high = ranked
    n, m = low.shape
    for i in range(n):
        alpha = beta = total = 0.0
        left, right = 0, m
        values[i, m] = 0.0
        start[i, m] = 0
        for d in range(1, m + 1):
            if alpha < beta:
                x = low[i, left]
                total += x * alpha + (1.0 - x) * beta
                alpha += 1.0 - x
                left += 1
            else:
                right -= 1
                x = high[i, right]
                total += x * alpha + (1.0 - x) * beta
                beta += x
            values[i, m - d] = total
            start[i, m - d] = left
        if m > 1:
            values[i, m - 1] = np.inf


@kernel
def positions_around_gap(order, start, n_abstained, positions):
    """Write the positions of the ranked labels, and ABSTAIN for order[start : start + n_abstained]."""
    n, m = order.shape
    for i in range(n):
        end = start[i] + n_abstained[i]
        for j in range(m):
            if j < start[i]:
                positions[i, order[i, j]] = j
            elif j < end:
                positions[i, order[i, j]] = ABSTAIN
            else:
                positions[i, order[i, j]] = j - n_abstained[i]


@kernel
def savings_of_ranking(p, positions, rows, columns, savings):
    """savings[k] = the wrongly ordered pairs that label columns[k] of row rows[k] is expected to add at its best place.

    Between two neighbours, a label of probability x adds x · Σ (1 − p) over those before and (1 − x) · Σ p over those
    after it. Labels of probability 0 that a packed row does not show leave gaps between the positions.

    Invariants: these labels are not ranked; those of a row follow each other.
    """
    m = p.shape[1]
    before, after = np.empty(m + 1), np.empty(m + 1)
    last, size = -1, 0
    for k in range(rows.shape[0]):
        if rows[k] != last:
            last, size = rows[k], 0
            order = np.argsort(positions[last])[np.count_nonzero(positions[last] < 0) :]
            total = position = 0.0
            for j in order:
                before[size] = total  # before the labels that are not shown, too: that costs nothing
                total += positions[last, j] - position + 1.0 - p[last, j]
                position = positions[last, j] + 1.0
                size += 1
            before[size] = total
            after[size] = 0.0
            for t in range(size):
                after[size - 1 - t] = after[size - t] + p[last, order[size - 1 - t]]
        x = p[last, columns[k]]
        least = np.inf
        for t in range(size + 1):
            least = min(least, x * before[t] + (1.0 - x) * after[t])
        savings[k] = least
