"""Losses whose best partial prediction answers the labels it is most certain of: Hamming and subset 0/1.

A label's *score* is what answering it costs in expectation, min(fn·p, fp·(1 − p)), less its own price of abstention.
Cost arrays have one row for all instances or one row each; ``shape[0] > 1`` tells.
"""

import numpy as np

from abstain._core.kernels.choice import tipped
from abstain._utils.compilation import kernel


@kernel(fastmath={"reassoc", "contract", "nsz"})
def answer_where_cheap(p, false_negative, false_positive, review, codes, expected):
    """Linear penalties: answer iff the expected cost of answering is at most the label's price of abstention."""
    n, m = p.shape
    for i in range(n):
        fn = false_negative[i if false_negative.shape[0] > 1 else 0]
        fp = false_positive[i if false_positive.shape[0] > 1 else 0]
        price = review[i if review.shape[0] > 1 else 0]
        total = 0.0
        for j in range(m):
            if_zero = fn[j] * p[i, j]
            if_one = fp[j] * (1.0 - p[i, j])
            score = min(if_zero, if_one)
            total += min(score, price[j])
            codes[i, j] = (1 if if_zero > if_one else 0) if score <= tipped(price[j], 0.0) else -1
        expected[i] = total


@kernel
def answer_entries_where_cheap(p, labels, indptr, false_negative, false_positive, slope, own, codes, expected):
    """The same for the stored entries of consecutive sparse rows: what is not stored is answered 0 at no cost.

    p, labels and codes begin where the first row does; a cost is one number (0-dimensional) or one for each label, and
    a label's price is slope + own. Each row is added up in order.
    """
    fn, fp, price = 0.0, 0.0, slope
    if false_negative.ndim == 0:
        fn = false_negative[()]
    if false_positive.ndim == 0:
        fp = false_positive[()]
    if own.ndim == 0:
        price = slope + own[()]
    for i in range(indptr.shape[0] - 1):
        total = 0.0
        for k in range(indptr[i] - indptr[0], indptr[i + 1] - indptr[0]):
            if false_negative.ndim == 1:
                fn = false_negative[labels[k]]
            if false_positive.ndim == 1:
                fp = false_positive[labels[k]]
            if own.ndim == 1:
                price = slope + own[labels[k]]
            chance = np.float64(p[k])
            if_zero = fn * chance
            if_one = fp * (1.0 - chance)
            score = min(if_zero, if_one)
            total += min(score, price)
            codes[k] = (1 if if_zero > if_one else 0) if score <= tipped(price, 0.0) else -1
        expected[i] = total


@kernel
def score(p, false_negative, false_positive, price, scores):
    """scores[i, j] = what answering label j saves (negative) or costs against abstaining at its price."""
    n, m = p.shape
    for i in range(n):
        fn = false_negative[i if false_negative.shape[0] > 1 else 0]
        fp = false_positive[i if false_positive.shape[0] > 1 else 0]
        c = price[i if price.shape[0] > 1 else 0]
        for j in range(m):
            scores[i, j] = min(fn[j] * p[i, j], fp[j] * (1.0 - p[i, j])) - c[j]


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
def answer_most_certain(p, false_negative, false_positive, price, sorted_scores, n_abstained, codes):
    """Answer the labels with the smallest scores (see `score`); of labels equal at the threshold, the first ones."""
    n, m = p.shape
    for i in range(n):
        fn = false_negative[i if false_negative.shape[0] > 1 else 0]
        fp = false_positive[i if false_positive.shape[0] > 1 else 0]
        c = price[i if price.shape[0] > 1 else 0]
        n_answered = m - n_abstained[i]
        threshold = sorted_scores[i, n_answered - 1] if n_answered > 0 else -np.inf
        within = 0
        for j in range(m):
            if_zero = fn[j] * p[i, j]
            if_one = fp[j] * (1.0 - p[i, j])
            answered = min(if_zero, if_one) - c[j] <= threshold
            within += answered
            codes[i, j] = (1 if if_zero > if_one else 0) if answered else -1
        j = m
        while within > n_answered and j > 0:
            j -= 1
            if min(fn[j] * p[i, j], fp[j] * (1.0 - p[i, j])) - c[j] == threshold:
                codes[i, j] = -1
                within -= 1
