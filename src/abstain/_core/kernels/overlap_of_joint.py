"""Decisions for F-measure and Jaccard index where labels depend on each other, with a proved gap to the optimum."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.kernels.codes import ABSTAIN
from abstain._core.kernels.components import Components, RowPenalties
from abstain._core.kernels.mixture_overlap import (
    answer_along_order,
    common_order,
    decide_components,
    factors_of_labels,
    improve_mixture_by_flips,
    mixture_row,
    profile_along_order,
    truths_of_row,
)
from abstain._core.kernels.overlap_certificate import forbid_states, raise_bound
from abstain._core.kernels.overlap_tree import bound_given_ones, search_tree
from abstain._core.kernels.sample_overlap import (
    OverlapMeasure,
    RowPenalty,
    best_complete_answer,
    count_abstained,
    improve_from_starts,
    is_better,
    sample_row,
    tie_of_totals,
    value_of_counts,
)
from abstain._utils.compilation import kernel

ROUNDS = 2  # how often the bound is raised and states are forbidden
FEW_LABELS = 10  # a mixture of so many labels is taken as the distribution over its 2^m truths
MARGIN = 1e-12  # more than rounding errors of a bound


class OverlapLimits(NamedTuple):
    """How much work a row may take.

    Attributes
    ----------
    nodes : int
        The most nodes of a branch and bound; the answer is proved optimal if fewer suffice.
    steps : int
        Subgradient steps of the Lagrangian bound, where they do not.
    certify : bool
        Whether to compute that bound; otherwise the gap is from a cheap one.
    """

    nodes: int
    steps: int
    certify: bool


@kernel
def _cheap_bound(row, measure, penalty):
    """A lower bound of all totals: the best measure of each number of labels answered 1, if every sample chose them."""
    m, size = penalty.label_costs.shape[0], row.weights.shape[0]
    probability = np.zeros(m)
    for j in range(m):
        for t in range(row.label_start[j], row.label_start[j + 1]):
            probability[j] += row.weights[row.samples[t]]
    probability = -np.sort(-probability)
    state, order, saved = np.full(m, 2, np.int8), np.arange(m), np.empty(m)
    hits, missed = np.zeros(size, np.int64), np.empty(size, np.int64)
    bound, _, _, _ = bound_given_ones(row, measure, penalty, state, 0, hits, missed, order, saved, 0)
    bound = min(bound, penalty.counts[m] + penalty.label_costs.sum())
    expected_hits = 0.0
    for k in range(1, m + 1):
        expected_hits += probability[k - 1]
        value = 0.0
        for s in range(size):
            most = min(k, row.sample_start[s + 1] - row.sample_start[s])
            value += row.weights[s] * value_of_counts(measure, k, most, 0)
        # A truth that counts has at least one hit in its denominator.
        bound = min(bound, 1.0 - min(value, expected_hits / (measure.per_one * k + measure.per_hit)))
    return bound


@kernel
def decide_sample_row(row, measure, penalty, limits, codes):
    """Improve the answer in codes as far as the limits allow; returns its total, and how much better another may be."""
    m = codes.shape[0]
    if (penalty.counts[1:] == np.inf).all() and measure.per_missed == measure.per_hit:
        return 1.0 - best_complete_answer(row, measure, codes), 0.0
    total = improve_from_starts(row, measure, penalty, codes)
    allowed = np.ones((m, 3), np.bool_)
    allowed[:, 0] = (penalty.counts[1:] < np.inf).any()
    is_proved, total = search_tree(row, measure, penalty, allowed, limits.nodes, total, codes)
    if is_proved:
        return total, 0.0
    if not limits.certify:
        return total, max(0.0, total - _cheap_bound(row, measure, penalty) + MARGIN)
    prices = np.zeros((row.weights.shape[0], m, 2))
    bound = -np.inf
    for _ in range(ROUNDS):
        raised = raise_bound(row, measure, penalty, allowed, limits.steps, total, prices)
        bound = max(bound, raised)
        if not forbid_states(row, measure, penalty, prices, total + tie_of_totals(penalty, total) + MARGIN, allowed):
            break
        is_proved, total = search_tree(row, measure, penalty, allowed, limits.nodes, total, codes)
        if is_proved:
            return total, 0.0
    return total, max(0.0, total - bound + MARGIN)


@kernel
def _decide_samples(indptr, weights, index, values, counts, label_costs, tie, measure, limits, codes, gap):
    for i in range(codes.shape[0]):
        first, last = indptr[i], indptr[i + 1]
        row = sample_row(weights[first:last], index[first:last], values)
        _, gap[i] = decide_sample_row(row, measure, RowPenalty(counts[i], label_costs, tie), limits, codes[i])


@kernel
def decide_mixture_row(row, measure, penalty, limits, codes):
    """Improve the answer in codes as far as the limits allow; returns its total, and how much better another may be."""
    size, m = row.p.shape
    order, is_common = common_order(row)
    profile, start = np.empty(m + 1), np.empty(m + 1, np.int64)
    profile_along_order(row, order, measure, profile, start)
    totals = profile + penalty.counts
    least = totals.min()
    best_a = 0
    while totals[best_a] > least + tie_of_totals(penalty, least):
        best_a += 1
    if is_common and (penalty.label_costs == 0.0).all():
        answer_along_order(order, start[best_a], best_a, codes)
        return totals[best_a], 0.0
    if m <= FEW_LABELS:
        weights, truths = truths_of_row(row)
        samples = sample_row(weights, np.arange(weights.shape[0]), truths)
        return decide_sample_row(samples, measure, penalty, limits, codes)
    starts = np.empty((size + 2, m), np.int8)
    bound = decide_components(row, measure, penalty, starts[2:])
    answer_along_order(order, start[best_a], best_a, starts[0])
    starts[1] = ABSTAIN
    factors = factors_of_labels(row, measure.rule)
    best, best_a = improve_mixture_by_flips(row, measure, penalty, factors, codes), count_abstained(codes)
    for answer in starts:
        total = improve_mixture_by_flips(row, measure, penalty, factors, answer)
        if is_better(penalty, total, count_abstained(answer), best, best_a):
            best, best_a = total, count_abstained(answer)
            codes[:] = answer
    return best, max(0.0, best - bound + MARGIN)


@kernel
def _decide_mixtures(indptr, weights, index, values, counts, label_costs, tie, measure, limits, codes, gap):
    for i in range(codes.shape[0]):
        first, last = indptr[i], indptr[i + 1]
        row = mixture_row(weights[first:last], index[first:last], values)
        _, gap[i] = decide_mixture_row(row, measure, RowPenalty(counts[i], label_costs, tie), limits, codes[i])


def decide_overlap_of_joint(
    components: Components,
    penalties: RowPenalties,
    measure: OverlapMeasure,
    limits: OverlapLimits,
    codes: NDArray[np.int8],
    gap: NDArray[np.float64],
) -> None:
    """Improve the answers in codes, and write how much better any other answer may be at most: 0 where none is."""
    decide = _decide_samples if components.are_samples else _decide_mixtures
    decide(*components, penalties.counts, penalties.label_costs, penalties.tie, measure, limits, codes, gap)
