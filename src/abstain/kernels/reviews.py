"""Spending reviews: which entries or instances are worth them."""

import numpy as np

from abstain.kernels import kernel


@kernel
def collect_between(p, false_negative, false_positive, review, low, high, position, value):
    """Entries whose review saves more than `low` and at most `high`: where in the flat block, and how much.

    Returns how many there are, and how many save more than that. Cost arrays are as in `certainty`; position and value
    have room for all entries.
    """
    n, m = p.shape
    found = above = 0
    for i in range(n):
        fn = false_negative[i if false_negative.shape[0] > 1 else 0]
        fp = false_positive[i if false_positive.shape[0] > 1 else 0]
        cost = review[i if review.shape[0] > 1 else 0]
        between = 0
        for j in range(m):
            saved = min(fn[j] * p[i, j], fp[j] * (1.0 - p[i, j])) - cost[j]
            above += saved > high
            between += (saved > low) & (saved <= high)
        if between == 0:
            continue
        for j in range(m):
            saved = min(fn[j] * p[i, j], fp[j] * (1.0 - p[i, j])) - cost[j]
            if low < saved <= high:
                position[found] = i * m + j
                value[found] = saved
                found += 1
    return found, above


@kernel
def best_of_rows(values, most, position, value):
    """The at most `most` largest positive entries of each row, of equal ones the first; returns how many there are.

    Invariants: position and value have room for n · most entries.
    """
    n, m = values.shape
    found = 0
    for i in range(n):
        threshold = 0.0
        if most < m:
            threshold = max(0.0, np.partition(values[i], m - most)[m - most]) if most > 0 else np.inf
        above = 0
        for j in range(m):
            above += values[i, j] > threshold
        ties = most - above if threshold > 0.0 else 0
        for j in range(m):
            taken = values[i, j] > threshold
            if not taken and ties > 0 and values[i, j] == threshold:
                ties -= 1
                taken = True
            if taken:
                position[found] = i * m + j
                value[found] = values[i, j]
                found += 1
    return found


@kernel
def best_allocation(costs, capacity, choice):
    """Least Σ costs[i, choice[i]] with Σ choice ≤ capacity: dynamic programming, exact.

    Invariants: costs is (n, width), +inf where a number is not allowed, finite at 0.
    """
    n, width = costs.shape
    least = np.zeros(capacity + 1)
    following = np.empty(capacity + 1)
    best = np.empty((n, capacity + 1), np.int32)
    for i in range(n):
        for room in range(capacity + 1):
            lowest, chosen = np.inf, 0
            for a in range(min(width, room + 1)):
                total = least[room - a] + costs[i, a]
                if total < lowest:
                    lowest, chosen = total, a
            following[room] = lowest
            best[i, room] = chosen
        least[:] = following
    room = capacity
    for step in range(n):
        i = n - 1 - step
        choice[i] = best[i, room]
        room -= choice[i]
