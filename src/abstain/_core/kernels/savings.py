"""Spending reviews: which entries or instances are worth them."""

import numpy as np

from abstain._core.kernels.choice import tipped
from abstain._utils.compilation import kernel


@kernel
def saving(risk, cost):
    """What a review at this cost saves if answering has this risk, numbers or arrays; 0 where a decision answers."""
    return (risk - cost) * (risk > tipped(cost, 0.0))


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
            saved = saving(risk, cost[j])
            codes[i, j] = (1 if if_zero > if_one else 0) if saved <= high else -1
            total += cost[j] if saved > high else risk
            above += 1.0 if saved > high else 0.0
            beyond += 1.0 if saved > low else 0.0
        expected[i], n_open[i] = total, above
        if beyond <= above:
            continue
        for j in range(m):
            saved = saving(min(fn[j] * p[i, j], fp[j] * (1.0 - p[i, j])), cost[j])
            position[found] = i * m + j  # overwritten by the next one, if it is none
            value[found] = saved
            found += (saved > low) & (saved <= high)
    return found


@kernel
def review_entries_above(
    p, labels, indptr, false_negative, false_positive, review, low, high, codes, expected, n_open, position, value
):
    """The same for the stored entries of consecutive sparse rows, as in `certainty.answer_entries_where_cheap`."""
    fn, fp, cost = 0.0, 0.0, 0.0
    if false_negative.ndim == 0:
        fn = false_negative[()]
    if false_positive.ndim == 0:
        fp = false_positive[()]
    if review.ndim == 0:
        cost = review[()]
    found = 0
    for i in range(indptr.shape[0] - 1):
        total, above = 0.0, 0
        for k in range(indptr[i] - indptr[0], indptr[i + 1] - indptr[0]):
            if false_negative.ndim == 1:
                fn = false_negative[labels[k]]
            if false_positive.ndim == 1:
                fp = false_positive[labels[k]]
            if review.ndim == 1:
                cost = review[labels[k]]
            chance = np.float64(p[k])
            if_zero = fn * chance
            if_one = fp * (1.0 - chance)
            risk = min(if_zero, if_one)
            saved = saving(risk, cost)
            codes[k] = (1 if if_zero > if_one else 0) if saved <= high else -1
            total += cost if saved > high else risk
            above += saved > high
            position[found] = k  # overwritten by the next one, if it is none
            value[found] = saved
            found += (saved > low) & (saved <= high)
        expected[i], n_open[i] = total, above
    return found


@kernel
def best_of_labels(labels, values, most, order, taken, scarcity):
    """Mark the at most most[j] largest positive values of each label j, of equal ones the first.

    Writes all places label by label into `order`; scarcity[j] is what the first refused one would have saved, or 0.
    """
    m = most.shape[0]
    end = np.zeros(m + 1, np.int64)
    for k in range(labels.shape[0]):
        end[labels[k] + 1] += 1
    for j in range(m):
        end[j + 1] += end[j]
    for k in range(labels.shape[0]):
        order[end[labels[k]]] = k
        end[labels[k]] += 1
    first = 0
    for j in range(m):  # by now end[j] is where label j ends
        n_positive = 0
        for at in range(first, end[j]):
            n_positive += values[order[at]] > 0.0
        threshold, ties = 0.0, 0
        if n_positive > most[j]:
            positive = np.empty(n_positive)
            n_positive = 0
            for at in range(first, end[j]):
                if values[order[at]] > 0.0:
                    positive[n_positive] = values[order[at]]
                    n_positive += 1
            threshold = np.partition(positive, n_positive - 1 - most[j])[n_positive - 1 - most[j]]
            ties = most[j]
            for at in range(n_positive):
                ties -= positive[at] > threshold
        scarcity[j] = threshold
        for at in range(first, end[j]):
            value = values[order[at]]
            tied = ties > 0 and value == threshold
            taken[order[at]] = value > threshold or tied
            ties -= tied
        first = end[j]


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
