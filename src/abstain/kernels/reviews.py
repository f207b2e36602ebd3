"""Spending reviews: which entries or instances are worth them."""

import numpy as np

from abstain.kernels import kernel


@kernel(fastmath={"reassoc", "contract", "nsz"})
def review_above(p, false_negative, false_positive, review, low, high, codes, expected, n_open, position, value):
    """Leave open where a review saves more than `high`; collect where it saves at most that, but more than `low`.

    expected[i] is what row i costs then, reviews included; n_open[i] how many labels are left open. Returns how many
    entries were collected: where in the flat block, and what they save. Cost arrays are as in `certainty`; position and
    value have room for one more than all entries.
    """
    n, m = p.shape
    found = 0
    for i in range(n):
        fn = false_negative[i if false_negative.shape[0] > 1 else 0]
        fp = false_positive[i if false_positive.shape[0] > 1 else 0]
        cost = review[i if review.shape[0] > 1 else 0]
        total, above, beyond = 0.0, 0.0, 0.0  # counted in the type of the data: several at a time
        for j in range(m):
            if_zero = fn[j] * p[i, j]
            if_one = fp[j] * (1.0 - p[i, j])
            risk = min(if_zero, if_one)
            saved = risk - cost[j]
            codes[i, j] = (1 if if_zero > if_one else 0) if saved <= high else -1
            total += cost[j] if saved > high else risk
            above += 1.0 if saved > high else 0.0
            beyond += 1.0 if saved > low else 0.0
        expected[i], n_open[i] = total, above
        if beyond <= above:
            continue
        for j in range(m):
            saved = min(fn[j] * p[i, j], fp[j] * (1.0 - p[i, j])) - cost[j]
            position[found] = i * m + j  # overwritten by the next one, if it is none
            value[found] = saved
            found += (saved > low) & (saved <= high)
    return found


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
