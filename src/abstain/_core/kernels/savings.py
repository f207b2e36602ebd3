"""Which entries or instances save most if they are reviewed."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.kernels.choice import tipped
from abstain._core.kernels.codes import ABSTAIN
from abstain._core.kernels.labelwise import cost_of_label
from abstain._utils.compilation import kernel


class ReviewBuffers(NamedTuple):
    """The arrays that `review_above` and `review_entries_above` fill in.

    codes and expected are the answers and what each row costs, reviews included; n_abstained[i] is how many labels of
    row i are abstained. position and value are for collected entries: where in the flat block, and what they save; they
    have one place more than there are entries.
    """

    codes: NDArray[np.int8]
    expected: NDArray[np.float64]
    n_abstained: NDArray[np.int64]
    position: NDArray[np.int64]
    value: NDArray[np.float64]


@kernel
def saving(risk, cost):
    """What a review at this cost saves if answering has this risk, numbers or arrays; 0 where a decision answers."""
    return (risk - cost) * (risk > tipped(cost, 0.0))


@kernel(fastmath={"reassoc", "contract", "nsz"})
def review_above(bounds, error_costs, review, least, most, out):
    """Abstain where a review saves more than `most`; collect entries where it saves more than `least`, at most that.

    Returns how many entries were collected. error_costs and review are tables as in `labelwise`; out is a
    `ReviewBuffers`.
    """
    codes, expected, n_abstained, position, value = out
    low, high = bounds
    n, m = low.shape
    found = 0
    for i in range(n):
        fn = error_costs.false_negative[i if error_costs.false_negative.shape[0] > 1 else 0]
        fp = error_costs.false_positive[i if error_costs.false_positive.shape[0] > 1 else 0]
        cost = review[i if review.shape[0] > 1 else 0]
        total, above, beyond = 0.0, 0.0, 0.0  # counted in the type of the data: several at a time
        for j in range(m):
            if_zero = fn[j] * high[i, j]
            if_one = fp[j] * (1.0 - low[i, j])
            risk = min(if_zero, if_one)
            saved = saving(risk, cost[j])
            codes[i, j] = (1 if if_zero > if_one else 0) if saved <= most else ABSTAIN
            total += cost[j] if saved > most else risk
            above += 1.0 if saved > most else 0.0
            beyond += 1.0 if saved > least else 0.0
        expected[i], n_abstained[i] = total, above
        if beyond <= above:
            continue
        for j in range(m):
            saved = saving(min(fn[j] * high[i, j], fp[j] * (1.0 - low[i, j])), cost[j])
            position[found] = i * m + j  # overwritten by the next entry unless it is collected
            value[found] = saved
            found += (saved > least) & (saved <= most)
    return found


@kernel
def review_entries_above(entries, error_costs, review, least, most, out):
    """Abstain and collect, as `review_above` does, among the stored entries of consecutive sparse rows.

    entries is a `labelwise.SparseEntries`; error_costs and review are numbers (0-dimensional) or one for each label.
    """
    low, high, labels, indptr = entries
    false_negative, false_positive = error_costs.false_negative, error_costs.false_positive
    codes, expected, n_abstained, position, value = out
    found = 0
    for i in range(indptr.shape[0] - 1):
        total, above = 0.0, 0
        for k in range(indptr[i] - indptr[0], indptr[i + 1] - indptr[0]):
            cost = cost_of_label(review, labels[k])
            if_zero = cost_of_label(false_negative, labels[k]) * np.float64(high[k])
            if_one = cost_of_label(false_positive, labels[k]) * (1.0 - np.float64(low[k]))
            risk = min(if_zero, if_one)
            saved = saving(risk, cost)
            codes[k] = (1 if if_zero > if_one else 0) if saved <= most else ABSTAIN
            total += cost if saved > most else risk
            above += saved > most
            position[found] = k  # overwritten by the next entry unless it is collected
            value[found] = saved
            found += (saved > least) & (saved <= most)
        expected[i], n_abstained[i] = total, above
    return found


@kernel
def best_of_labels(labels, values, limits, order, taken, refused):
    """Mark the largest positive values of each label j, at most limits[j] of them; of equal values the first.

    Writes the numbers of all entries, label by label, into `order`; refused[j] is the largest value that was not taken
    because of the limit, or 0.
    """
    m = limits.shape[0]
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
        if n_positive > limits[j]:
            positive = np.empty(n_positive)
            n_positive = 0
            for at in range(first, end[j]):
                if values[order[at]] > 0.0:
                    positive[n_positive] = values[order[at]]
                    n_positive += 1
            threshold = np.partition(positive, n_positive - 1 - limits[j])[n_positive - 1 - limits[j]]
            ties = limits[j]
            for at in range(n_positive):
                ties -= positive[at] > threshold
        refused[j] = threshold
        for at in range(first, end[j]):
            value = values[order[at]]
            tied = ties > 0 and value == threshold
            taken[order[at]] = value > threshold or tied
            ties -= tied
        first = end[j]


@kernel
def best_of_rows(values, limit, position, value):
    """Collect the largest positive entries of each row, at most `limit`; of equal ones the first. Returns their number.

    Invariants: position and value have n · limit places.
    """
    n, m = values.shape
    found = 0
    for i in range(n):
        threshold = 0.0
        if limit < m:
            threshold = max(0.0, np.partition(values[i], m - limit)[m - limit]) if limit > 0 else np.inf
        above = 0
        for j in range(m):
            above += values[i, j] > threshold
        ties = limit - above if threshold > 0.0 else 0
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
    """Minimise Σ costs[i, choice[i]] subject to Σ choice ≤ capacity, exactly, by dynamic programming.

    Invariants: costs is (n, width), +inf where a number is not allowed, finite at 0.
    """
    n, width = costs.shape
    least = np.zeros(capacity + 1)
    following = np.empty(capacity + 1)
    best = np.empty((n, capacity + 1), np.int32)
    for i in range(n):
        for left in range(capacity + 1):
            lowest, chosen = np.inf, 0
            for a in range(min(width, left + 1)):
                total = least[left - a] + costs[i, a]
                if total < lowest:
                    lowest, chosen = total, a
            following[left] = lowest
            best[i, left] = chosen
        least[:] = following
    left = capacity
    for step in range(n):
        i = n - 1 - step
        choice[i] = best[i, left]
        left -= choice[i]
