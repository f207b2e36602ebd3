"""F-measure and Jaccard index expected over a mixture, in whose components the labels are independent.

The expectation is a weighted sum over the components. Two things follow:

* Where every component orders the labels alike, the best answer is 1 on the first labels of that order and 0 on the
  last ones; its value is the weighted sum of the components' values(k, l), as `overlap` computes them.
* A term of a component's quadrature is a product over the answered labels, so that a change of one label takes one
  factor out and puts another one in.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.kernels.bounds import Bounds
from abstain._core.kernels.choice import SLACK
from abstain._core.kernels.codes import ABSTAIN
from abstain._core.kernels.overlap import decide_overlap, fill_heads, fill_tails, fill_zeros, value_and_slope
from abstain._core.kernels.sample_overlap import cost_of_labels, count_abstained, is_better, sort_by
from abstain._utils.compilation import kernel


class MixtureRow(NamedTuple):
    """The components of one row: their weights, and the probabilities of their labels, (n_components, m)."""

    weights: NDArray[np.float64]
    p: NDArray[np.float64]


class _Factors(NamedTuple):
    """What one label contributes to each term, (n_components, m, n_terms).

    A term of the measure is one · zero · hits: the product of `one` over the labels answered 1, that of `zero` over
    those answered 0, and the sum of `hit` over those answered 1.
    """

    one: NDArray[np.float64]
    zero: NDArray[np.float64]
    hit: NDArray[np.float64]


@kernel
def mixture_row(weights, index, values):
    """Return the `MixtureRow` of the components values[index]."""
    p = np.empty((index.shape[0], values.shape[1]))
    for c in range(index.shape[0]):
        p[c] = values[index[c]]
    return MixtureRow(weights, p)


@kernel
def common_order(row):
    """Order the labels by decreasing probability; returns the order, and whether every component has it."""
    size, m = row.p.shape
    marginal = np.zeros(m)
    for c in range(size):
        for j in range(m):
            marginal[j] += row.weights[c] * row.p[c, j]
    order = np.arange(m)
    sort_by(order, m, -marginal)
    for c in range(size):
        for t in range(1, m):
            if row.p[c, order[t]] > row.p[c, order[t - 1]]:
                return order, False
    return order, True


@kernel
def profile_along_order(row, order, measure, values, start):
    """values[a] = the least loss of 1 on the first k labels of an order, then a abstentions, then 0; start[a] = k."""
    size, m = row.p.shape
    terms_of_rule = measure.rule.weights.shape[0]
    tails, heads = np.empty((m + 1, terms_of_rule)), np.empty((m + 1, terms_of_rule))
    misses, terms, zeros = np.empty(terms_of_rule), np.empty(m + 1, np.int64), np.empty(m + 1)
    table, p = np.zeros((m + 1, m + 1)), np.empty(m)
    for c in range(size):
        for t in range(m):
            p[t] = row.p[c, order[t]]
        fill_tails(p, measure.rule, tails)
        fill_heads(p, measure.rule, heads, misses, terms)
        fill_zeros(p, measure.zero_division, zeros)
        for l in range(m + 1):
            table[0, l] += row.weights[c] * zeros[l]
        for k in range(1, m + 1):
            for l in range(k, m + 1):
                value, _ = value_and_slope(heads, k, tails, l, measure.rule.fade_out, terms[k])
                table[k, l] += row.weights[c] * value
    table[0, m] = 1.0
    for a in range(m + 1):
        best, start[a] = table[0, a], 0
        for k in range(1, m - a + 1):
            if table[k, k + a] > best + SLACK:
                best, start[a] = table[k, k + a], k
        values[a] = max(0.0, 1.0 - best)


@kernel
def answer_along_order(order, start, n_abstained, codes):
    """Write 1 on the first labels of an order, then the abstentions, then 0."""
    for t in range(order.shape[0]):
        codes[order[t]] = 1 if t < start else (ABSTAIN if t < start + n_abstained else 0)


@kernel
def decide_components(row, measure, penalty, answers):
    """Write the best answer for each component by itself if labels had no costs of their own.

    Returns a lower bound of the totals of the mixture: the weighted sum of the least totals. Of the label costs, it
    counts the lowest ones.
    """
    size, m = row.p.shape
    penalties, ties, concave = np.empty((1, m + 1)), np.array([penalty.tie]), np.zeros(1, np.bool_)
    order = np.arange(m)
    sort_by(order, m, penalty.label_costs)
    cheapest = 0.0
    penalties[0, 0] = penalty.counts[0]
    for a in range(1, m + 1):
        cheapest += penalty.label_costs[order[a - 1]]
        penalties[0, a] = penalty.counts[a] + cheapest
    ranked, start, n_abstained = np.empty((1, m)), np.empty((1, 1), np.int32), np.empty((1, 1), np.int64)
    losses = np.empty((1, 1))
    bound = 0.0
    for c in range(size):
        sort_by(order, m, -row.p[c])
        for t in range(m):
            ranked[0, t] = row.p[c, order[t]]
        decide_overlap(
            Bounds(ranked, ranked),
            penalties,
            ties,
            concave,
            measure.zero_division,
            measure.rule,
            start,
            n_abstained,
            losses,
        )
        answer_along_order(order, start[0, 0], n_abstained[0, 0], answers[c])
        bound += row.weights[c] * (losses[0, 0] + penalties[0, n_abstained[0, 0]])
    return bound


@kernel
def factors_of_labels(row, rule):
    """Return the `_Factors` of each label in each component."""
    size, m = row.p.shape
    shape = (size, m, rule.weights.shape[0])
    factors = _Factors(np.empty(shape), np.empty(shape), np.empty(shape))
    for c in range(size):
        for j in range(m):
            x = row.p[c, j]
            for q in range(shape[2]):
                one = rule.step[q] * (1.0 - x * rule.fade_in[q])
                factors.one[c, j, q] = one
                factors.zero[c, j, q] = 1.0 - x * rule.fade_out[q]
                factors.hit[c, j, q] = x * rule.hit[q] / one
    return factors


@kernel
def _loss_without_ones(row, measure, codes, changed, code):
    """The expected loss of an answer without any 1, in which label `changed` has another code."""
    value, n_abstained = 0.0, 0
    for c in range(row.weights.shape[0]):
        none_relevant = row.weights[c]
        n_abstained = 0
        for j in range(codes.shape[0]):
            own = code if j == changed else codes[j]
            if own == 0:
                none_relevant *= 1.0 - row.p[c, j]
            n_abstained += own == ABSTAIN
        value += none_relevant
    return 0.0 if n_abstained == codes.shape[0] else 1.0 - measure.zero_division * value


@kernel
def _fill_terms(row, measure, factors, codes, product, hits):
    """Fill in both parts of the terms of an answer, (n_components, n_terms)."""
    for c in range(row.weights.shape[0]):
        for q in range(product.shape[1]):
            product[c, q] = measure.rule.weights[q] * row.weights[c]
            hits[c, q] = 0.0
        for j in range(codes.shape[0]):
            if codes[j] == 1:
                for q in range(product.shape[1]):
                    product[c, q] *= factors.one[c, j, q]
                    hits[c, q] += factors.hit[c, j, q]
            elif codes[j] == 0:
                for q in range(product.shape[1]):
                    product[c, q] *= factors.zero[c, j, q]


@kernel
def _loss_of_terms(product, hits):
    value = 0.0
    for c in range(product.shape[0]):
        for q in range(product.shape[1]):
            value += product[c, q] * hits[c, q]
    return 1.0 - value


@kernel
def _losses_of_changes(factors, codes, product, hits, losses):
    """losses[j, code + 1]: the expected loss if label j gets another code, if some label is answered 1 then."""
    size, terms = product.shape
    for j in range(codes.shape[0]):
        to_one = to_zero = to_open = 0.0
        for c in range(size):
            for q in range(terms):
                rest, rest_hits = product[c, q], hits[c, q]
                if codes[j] == 1:
                    rest /= factors.one[c, j, q]
                    rest_hits -= factors.hit[c, j, q]
                elif codes[j] == 0:
                    rest /= factors.zero[c, j, q]
                to_open += rest * rest_hits
                to_zero += rest * factors.zero[c, j, q] * rest_hits
                to_one += rest * factors.one[c, j, q] * (rest_hits + factors.hit[c, j, q])
        losses[j, 0], losses[j, 1], losses[j, 2] = 1.0 - to_open, 1.0 - to_zero, 1.0 - to_one


@kernel
def improve_mixture_by_flips(row, measure, penalty, factors, codes):
    """Change one label at a time, the best change first, until none makes the answer better; returns the total."""
    m, shape = codes.shape[0], (row.weights.shape[0], measure.rule.weights.shape[0])
    product, hits, losses = np.empty(shape), np.empty(shape), np.empty((m, 3))
    while True:
        n_abstained, own = count_abstained(codes), cost_of_labels(penalty, codes)
        ones = 0
        for j in range(m):
            ones += codes[j] == 1
        _fill_terms(row, measure, factors, codes, product, hits)
        loss = _loss_of_terms(product, hits) if ones > 0 else _loss_without_ones(row, measure, codes, -1, 0)
        total = loss + own + penalty.counts[n_abstained]
        _losses_of_changes(factors, codes, product, hits, losses)
        best, best_a, best_j, best_code = total, n_abstained, -1, 0
        for j in range(m):
            for code in range(-1, 2):
                if code == codes[j]:
                    continue
                a = n_abstained + (code == ABSTAIN) - (codes[j] == ABSTAIN)
                loss = losses[j, code + 1]
                if ones + (code == 1) - (codes[j] == 1) == 0:
                    loss = _loss_without_ones(row, measure, codes, j, code)
                cost = own + penalty.label_costs[j] * ((code == ABSTAIN) - (codes[j] == ABSTAIN))
                changed = loss + cost + penalty.counts[a]
                if is_better(penalty, changed, a, best, best_a):
                    best, best_a, best_j, best_code = changed, a, j, code
        if best_j < 0:
            return total
        codes[best_j] = best_code
