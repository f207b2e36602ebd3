"""Losses whose best partial prediction answers the labels it is most certain of: Hamming and subset 0/1.

A label's *score* is what answering it costs in expectation, min(fn·p, fp·(1 − p)), less its own price of abstention; of
an interval of probabilities (`Bounds`) it is what that costs in the worst case, min(fn·high, fp·(1 − low)).
Arrays of costs and prices have one row for all instances or one row each; ``shape[0] > 1`` tells.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.kernels.choice import tipped
from abstain._core.kernels.codes import ABSTAIN
from abstain._utils.compilation import kernel


class ErrorCosts(NamedTuple):
    """The cost of a false negative and of a false positive.

    Each is one number (0-dimensional) for all labels, or one per label; for a block, a table of one or n rows.
    """

    false_negative: NDArray[np.float64]
    false_positive: NDArray[np.float64]


class SparseEntries(NamedTuple):
    """The stored entries of consecutive sparse rows: probabilities (`Bounds`), labels, and where each row begins.

    low, high and labels begin where the first row does; indptr counts from any number on.
    """

    low: NDArray[np.floating[Any]]
    high: NDArray[np.floating[Any]]
    labels: NDArray[np.integer[Any]]
    indptr: NDArray[np.integer[Any]]


@kernel(fastmath={"reassoc", "contract", "nsz"})
def answer_where_cheap(bounds, error_costs, prices, codes, expected):
    """Linear penalties: answer iff the expected cost of answering is at most the label's price of abstention."""
    low, high = bounds
    n, m = low.shape
    for i in range(n):
        fn = error_costs.false_negative[i if error_costs.false_negative.shape[0] > 1 else 0]
        fp = error_costs.false_positive[i if error_costs.false_positive.shape[0] > 1 else 0]
        price = prices[i if prices.shape[0] > 1 else 0]
        total = 0.0
        for j in range(m):
            if_zero = fn[j] * high[i, j]
            if_one = fp[j] * (1.0 - low[i, j])
            score = min(if_zero, if_one)
            total += min(score, price[j])
            codes[i, j] = (1 if if_zero > if_one else 0) if score <= tipped(price[j], 0.0) else ABSTAIN
        expected[i] = total


@kernel
def answer_where_certain(bounds, error_costs, prices, codes, expected):
    """Linear penalties: answer iff one answer is a best one for every probability in the interval, ties included.

    If both answers are (at every probability they cost the same), it is 0 as in `answer_where_cheap`. expected is the
    worst case, in which an abstention costs its price; where that is infinite, it costs nothing: there is no price, and
    abstentions only say that no answer is the best for all probabilities.
    """
    low, high = bounds
    n, m = low.shape
    for i in range(n):
        fn = error_costs.false_negative[i if error_costs.false_negative.shape[0] > 1 else 0]
        fp = error_costs.false_positive[i if error_costs.false_positive.shape[0] > 1 else 0]
        price = prices[i if prices.shape[0] > 1 else 0]
        total = 0.0
        for j in range(m):
            most, if_zero, if_one = tipped(price[j], 0.0), fn[j] * high[i, j], fp[j] * (1.0 - low[i, j])
            is_one = if_one <= min(most, tipped(fn[j] * low[i, j], 0.0))
            is_zero = if_zero <= min(most, tipped(fp[j] * (1.0 - high[i, j]), 0.0))
            if is_one and (if_zero > if_one or not is_zero):
                codes[i, j] = 1
                total += min(if_one, price[j])
            elif is_zero:
                codes[i, j] = 0
                total += min(if_zero, price[j])
            else:
                codes[i, j] = ABSTAIN
                total += price[j] if np.isfinite(price[j]) else 0.0
        expected[i] = total


@kernel
def cost_of_label(costs, label):
    """costs[label], or the one number (0-dimensional) that holds for all labels."""
    if costs.ndim == 0:
        return costs[()]
    return costs[label]


@kernel
def answer_entries_where_cheap(entries, error_costs, slope, own, codes, expected):
    """Linear penalties on the stored entries of consecutive sparse rows: what is not stored is answered 0 at no cost.

    codes begins where the first row does; a cost is one number (0-dimensional) or one for each label, and a label's
    price is slope + own. Each row is added up in order.
    """
    low, high, labels, indptr = entries
    false_negative, false_positive = error_costs.false_negative, error_costs.false_positive
    for i in range(indptr.shape[0] - 1):
        total = 0.0
        for k in range(indptr[i] - indptr[0], indptr[i + 1] - indptr[0]):
            price = slope + cost_of_label(own, labels[k])
            if_zero = cost_of_label(false_negative, labels[k]) * np.float64(high[k])
            if_one = cost_of_label(false_positive, labels[k]) * (1.0 - np.float64(low[k]))
            score = min(if_zero, if_one)
            total += min(score, price)
            codes[k] = (1 if if_zero > if_one else 0) if score <= tipped(price, 0.0) else ABSTAIN
        expected[i] = total


@kernel
def score(bounds, error_costs, prices, scores):
    """scores[i, j] = what answering label j costs more than abstaining on it at its price."""
    low, high = bounds
    n, m = low.shape
    for i in range(n):
        fn = error_costs.false_negative[i if error_costs.false_negative.shape[0] > 1 else 0]
        fp = error_costs.false_positive[i if error_costs.false_positive.shape[0] > 1 else 0]
        c = prices[i if prices.shape[0] > 1 else 0]
        for j in range(m):
            scores[i, j] = min(fn[j] * high[i, j], fp[j] * (1.0 - low[i, j])) - c[j]


@kernel
def profile_of_sum(sorted_scores, values):
    """values[i, a] = the sum of the m − a smallest scores."""
    n, m = sorted_scores.shape
    for i in range(n):
        total = 0.0
        values[i, m] = 0.0
        for d in range(m):
            total += sorted_scores[i, d]
            values[i, m - 1 - d] = total


@kernel
def profile_of_product(sorted_scores, values):
    """values[i, a] = 1 − the product of (1 − score) over the m − a smallest scores."""
    n, m = sorted_scores.shape
    for i in range(n):
        right = 1.0
        values[i, m] = 0.0
        for d in range(m):
            right *= 1.0 - sorted_scores[i, d]
            values[i, m - 1 - d] = 1.0 - right


@kernel
def answer_most_certain(bounds, error_costs, prices, sorted_scores, n_abstained, codes):
    """Answer the labels with the smallest scores (see `score`); of labels equal at the threshold, the first ones."""
    low, high = bounds
    n, m = low.shape
    for i in range(n):
        fn = error_costs.false_negative[i if error_costs.false_negative.shape[0] > 1 else 0]
        fp = error_costs.false_positive[i if error_costs.false_positive.shape[0] > 1 else 0]
        c = prices[i if prices.shape[0] > 1 else 0]
        n_answered = m - n_abstained[i]
        threshold = sorted_scores[i, n_answered - 1] if n_answered > 0 else -np.inf
        within = 0
        for j in range(m):
            if_zero = fn[j] * high[i, j]
            if_one = fp[j] * (1.0 - low[i, j])
            answered = min(if_zero, if_one) - c[j] <= threshold
            within += answered
            codes[i, j] = (1 if if_zero > if_one else 0) if answered else ABSTAIN
        j = m
        while within > n_answered and j > 0:
            j -= 1
            if min(fn[j] * high[i, j], fp[j] * (1.0 - low[i, j])) - c[j] == threshold:
                codes[i, j] = ABSTAIN
                within -= 1
