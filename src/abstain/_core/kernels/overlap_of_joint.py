"""Decisions for F-measure and Jaccard index where labels depend on each other, with a proved gap to the optimum.

Of samples, answers are improved by flips; then a branch and bound proves that they are optimal, or finds better ones.
Where it takes too many nodes, a Lagrangian bound gives the gap. Of a mixture, components that order the labels alike
leave one table to search; a mixture of few labels is taken as the distribution over its truths, which are samples; and
otherwise the bound is the weighted sum of what each component could have by itself.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.kernels.bounds import as_bounds
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
)
from abstain._core.kernels.overlap import expected_overlap
from abstain._core.kernels.overlap_certificate import forbid_states, raise_bound
from abstain._core.kernels.overlap_tree import FREE, bound_given_ones, search_tree
from abstain._core.kernels.sample_overlap import (
    OverlapMeasure,
    RowPenalty,
    best_complete_answer,
    copy_to,
    count_abstained,
    improve_from_starts,
    is_better,
    sample_row,
    sort_by,
    tie_of_totals,
    total_of_answer,
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
def _gap_to(bound, penalty, total):
    """How much better than a total an answer may be, given a lower bound: 0 if it can only tie."""
    return 0.0 if bound >= total - tie_of_totals(penalty, total) else total - bound + MARGIN


@kernel
def _cheap_bound(row, measure, penalty):
    """A lower bound of all totals: the best measure of each number of labels answered 1, if every sample chose them."""
    m, size = penalty.label_costs.shape[0], row.weights.shape[0]
    rare_first, order, saved = np.zeros(m), np.arange(m), np.empty(m)
    all_abstained = penalty.counts[m]
    for j in range(m):
        all_abstained += penalty.label_costs[j]
        for t in range(row.label_start[j], row.label_start[j + 1]):
            rare_first[j] -= row.weights[row.samples[t]]
    sort_by(order, m, rare_first)
    expected_hits = 0.0
    bound = all_abstained
    for k in range(1, m + 1):
        expected_hits -= rare_first[order[k - 1]]
        value = 0.0
        for s in range(size):
            most = min(k, row.sample_start[s + 1] - row.sample_start[s])
            value += row.weights[s] * value_of_counts(measure, k, most, 0)
        # A truth that counts has at least one hit in its denominator.
        bound = min(bound, 1.0 - min(value, expected_hits / (measure.per_one * k + measure.per_hit)))
    state, hits, missed = np.full(m, FREE, np.int8), np.zeros(size, np.int64), np.empty(size, np.int64)
    return min(bound, bound_given_ones(row, measure, penalty, state, 0, hits, missed, order, saved, 0)[0])


@kernel
def _states_allowed(penalty, m):
    """Which states labels may have, (m, 3): no abstention where the penalty forbids any number of them."""
    allowed = np.ones((m, 3), np.bool_)
    may_abstain = False
    for a in range(1, m + 1):
        may_abstain |= penalty.counts[a] < np.inf
    for j in range(m):
        allowed[j, 0] = may_abstain
    return allowed


@kernel
def _search_samples(components, penalties, measure, nodes, codes, gap):
    """Improve the answer of each row by flips and by branch and bound; its gap is 0, or from a cheap bound."""
    m = codes.shape[1]
    for i in range(codes.shape[0]):
        first, last = components.indptr[i], components.indptr[i + 1]
        row = sample_row(components.weights[first:last], components.index[first:last], components.values)
        penalty = RowPenalty(penalties.counts[i], penalties.label_costs, penalties.tie)
        allowed = _states_allowed(penalty, m)
        if not allowed[0, 0] and measure.per_missed == measure.per_hit:
            best_complete_answer(row, measure, codes[i])
            gap[i] = 0.0
            continue
        total = improve_from_starts(row, measure, penalty, codes[i])
        is_proved, total = search_tree(row, measure, penalty, allowed, nodes, total, codes[i])
        gap[i] = 0.0 if is_proved else _gap_to(_cheap_bound(row, measure, penalty), penalty, total)


@kernel
def _certify_samples(components, penalties, measure, nodes, steps, codes, gap):
    """Lower the gaps above 0 by a Lagrangian bound, and by branch and bound over the states that it leaves."""
    m = codes.shape[1]
    for i in range(codes.shape[0]):
        if gap[i] == 0.0:
            continue
        first, last = components.indptr[i], components.indptr[i + 1]
        row = sample_row(components.weights[first:last], components.index[first:last], components.values)
        penalty = RowPenalty(penalties.counts[i], penalties.label_costs, penalties.tie)
        allowed = _states_allowed(penalty, m)
        total = total_of_answer(
            row, measure, penalty, codes[i], np.empty(last - first, np.int64), np.empty(last - first, np.int64)
        )
        prices = np.zeros((last - first, m, 2))
        for _ in range(ROUNDS):
            # A state is forbidden only if answers with it are worse, so that later bounds hold for all others.
            bound = raise_bound(row, measure, penalty, allowed, steps, total, prices)
            gap[i] = min(gap[i], _gap_to(bound, penalty, total))
            limit = total + tie_of_totals(penalty, total) + MARGIN
            if gap[i] == 0.0 or not forbid_states(row, measure, penalty, prices, limit, allowed):
                break
            before = total
            is_proved, total = search_tree(row, measure, penalty, allowed, nodes, total, codes[i])
            gap[i] = 0.0 if is_proved else max(0.0, gap[i] - (before - total))
            if is_proved:
                break


@kernel
def _decide_comonotone(components, penalties, measure, codes, gap):
    """Decide the rows whose components order the labels alike, and give them a gap of 0."""
    m = codes.shape[1]
    profile, start = np.empty(m + 1), np.empty(m + 1, np.int64)
    for i in range(codes.shape[0]):
        first, last = components.indptr[i], components.indptr[i + 1]
        row = mixture_row(components.weights[first:last], components.index[first:last], components.values)
        order, is_common = common_order(row)
        if not is_common:
            continue
        profile_along_order(row, order, measure, profile, start)
        penalty = RowPenalty(penalties.counts[i], penalties.label_costs, penalties.tie)
        a = _best_number(penalty, profile)
        answer_along_order(order, start[a], a, codes[i])
        gap[i] = 0.0


@kernel
def _best_number(penalty, profile):
    """The least number of abstentions whose total is least, up to ties."""
    least = np.inf
    for a in range(profile.shape[0]):
        least = min(least, profile[a] + penalty.counts[a])
    a = 0
    while profile[a] + penalty.counts[a] > least + tie_of_totals(penalty, least):
        a += 1
    return a


@kernel
def _search_mixtures(components, penalties, measure, codes, gap):
    """Improve the answers of rows without a gap yet by flips from several starts, and bound their totals."""
    m = codes.shape[1]
    profile, start = np.empty(m + 1), np.empty(m + 1, np.int64)
    for i in range(codes.shape[0]):
        if gap[i] == 0.0:
            continue
        first, last = components.indptr[i], components.indptr[i + 1]
        row = mixture_row(components.weights[first:last], components.index[first:last], components.values)
        penalty = RowPenalty(penalties.counts[i], penalties.label_costs, penalties.tie)
        starts = np.empty((last - first + 2, m), np.int8)
        bound = decide_components(row, measure, penalty, starts[2:])
        order, _ = common_order(row)
        profile_along_order(row, order, measure, profile, start)
        a = _best_number(penalty, profile)
        answer_along_order(order, start[a], a, starts[0])
        starts[1] = ABSTAIN
        factors = factors_of_labels(row, measure.rule)
        best = improve_mixture_by_flips(row, measure, penalty, factors, codes[i])
        for t in range(starts.shape[0]):
            total = improve_mixture_by_flips(row, measure, penalty, factors, starts[t])
            if is_better(penalty, total, count_abstained(starts[t]), best, count_abstained(codes[i])):
                best = total
                copy_to(codes[i], starts[t])
        gap[i] = _gap_to(bound, penalty, best)


def _decide_samples(
    components: Components,
    penalties: RowPenalties,
    measure: OverlapMeasure,
    limits: OverlapLimits,
    codes: NDArray[np.int8],
    gap: NDArray[np.float64],
) -> None:
    _search_samples(components, penalties, measure, limits.nodes, codes, gap)
    if limits.certify and gap.any():
        _certify_samples(components, penalties, measure, limits.nodes, limits.steps, codes, gap)


def _truths_of_row(components: Components, i: int, truths: NDArray[np.uint8]) -> Components:
    """Return the mixture of row i as samples: all truths that may happen, with their probabilities."""
    own = slice(*components.indptr[i : i + 2])
    chances = np.ones((own.stop - own.start, 1))
    for p in components.values[components.index[own]].T[:, :, np.newaxis]:
        chances = np.concatenate([chances * (1.0 - p), chances * p], axis=1)
    weights = components.weights[own] @ chances
    possible = np.flatnonzero(weights)
    return Components(np.array([0, len(possible)]), weights[possible], possible, truths)


def decide_overlap_of_joint(
    components: Components,
    penalties: RowPenalties,
    measure: OverlapMeasure,
    limits: OverlapLimits,
    codes: NDArray[np.int8],
    gap: NDArray[np.float64],
) -> None:
    """Improve the answers in codes, and write how much better any other answer may be at most: 0 where none is."""
    if components.are_samples:
        _decide_samples(components, penalties, measure, limits, codes, gap)
        return
    gap[:] = np.inf
    if not penalties.label_costs.any():
        _decide_comonotone(components, penalties, measure, codes, gap)
    m = codes.shape[1]
    if m > FEW_LABELS:
        if gap.any():
            _search_mixtures(components, penalties, measure, codes, gap)
        return
    truths = (np.arange(1 << m)[:, np.newaxis] >> np.arange(m) & 1).astype(np.uint8)
    for i in np.flatnonzero(gap):
        own = slice(i, i + 1)
        penalty = penalties._replace(counts=penalties.counts[own])
        _decide_samples(_truths_of_row(components, int(i), truths), penalty, measure, limits, codes[own], gap[own])


@kernel
def _losses_of_samples(components, measure, codes, losses):
    m = codes.shape[1]
    penalty = RowPenalty(np.zeros(m + 1), np.zeros(m), 0.0)
    for i in range(codes.shape[0]):
        first, last = components.indptr[i], components.indptr[i + 1]
        row = sample_row(components.weights[first:last], components.index[first:last], components.values)
        hits, missed = np.empty(last - first, np.int64), np.empty(last - first, np.int64)
        losses[i] = total_of_answer(row, measure, penalty, codes[i], hits, missed)


def losses_of_overlap(
    components: Components, measure: OverlapMeasure, codes: NDArray[np.int8], losses: NDArray[np.float64]
) -> None:
    """Write the expected loss of each row's answer, without any penalty."""
    if components.are_samples:
        _losses_of_samples(components, measure, codes, losses)
        return
    values = np.empty(len(components.weights))
    bounds = as_bounds(components.values[components.index])
    expected_overlap(bounds, codes[components.row], measure.zero_division, measure.rule, values)
    losses[:] = 1.0 - components.of_rows(values)


@kernel
def _profile_comonotone(components, measure, values, answers, gap):
    """Write the profile of the rows whose components order the labels alike, and give them gaps of 0."""
    n, width = values.shape
    start = np.empty(width, np.int64)
    for i in range(n):
        first, last = components.indptr[i], components.indptr[i + 1]
        row = mixture_row(components.weights[first:last], components.index[first:last], components.values)
        order, is_common = common_order(row)
        if not is_common:
            continue
        profile_along_order(row, order, measure, values[i], start)
        for a in range(width):
            answer_along_order(order, start[a], a, answers[i, a])
            gap[i, a] = 0.0


def _take(components: Components, rows: NDArray[np.intp]) -> Components:
    """Return the components of some rows, in that order."""
    own = [np.arange(*components.indptr[i : i + 2]) for i in rows]
    taken = np.concatenate(own)
    indptr = np.cumsum([0, *map(len, own)])
    return components._replace(indptr=indptr, weights=components.weights[taken], index=components.index[taken])


def hull_of_overlap(
    components: Components,
    measure: OverlapMeasure,
    limits: OverlapLimits,
    values: NDArray[np.float64],
    answers: NDArray[np.int8],
    gap: NDArray[np.float64],
) -> None:
    """Write the vertices of the lower convex hull of each row's risk profile, values[i, a] = least loss.

    What is not a vertex is infinite. Vertices are found by decisions at linear prices: of two neighbours, at the price
    at which both cost the same. gap[i, a] bounds how much better anything is at the prices that were tried for a. Of
    a mixture whose components order the labels alike, it is the whole profile.

    Invariants: the shapes are (n, m + 1), (n, m + 1, m) and (n, m + 1).
    """
    m = components.shape[1]
    values[:] = gap[:] = np.inf
    if not components.are_samples:
        _profile_comonotone(components, measure, values, answers, gap)
    rows = np.flatnonzero(gap[:, 0])
    if len(rows) == 0:
        return

    def decide(rows: NDArray[np.intp], prices: NDArray[np.float64], codes: NDArray[np.int8]) -> NDArray[np.float64]:
        taken, found = _take(components, rows), np.empty((2, len(rows)))
        counts = np.where(np.arange(m + 1) > 0, np.multiply.outer(prices, np.maximum(np.arange(m + 1), 1)), 0.0)
        penalties = RowPenalties(counts, 0.0, True, False, np.zeros(m))
        decide_overlap_of_joint(taken, penalties, measure, limits, codes, found[0])
        losses_of_overlap(taken, measure, codes, found[1])
        return found

    codes = np.zeros((len(rows), m), np.int8)
    gap[rows, 0], values[rows, 0] = decide(rows, np.full(len(rows), np.inf), codes)
    answers[rows, 0], answers[rows, m] = codes, ABSTAIN
    values[rows, m] = gap[rows, m] = 0.0
    pairs = [(i, 0, m) for i in rows]
    while pairs:
        i, low, high = np.array(pairs).T
        prices = (values[i, low] - values[i, high]) / (high - low)
        codes = answers[i, low]
        gaps, losses = decide(i, prices, codes)
        n_abstained = (codes == ABSTAIN).sum(axis=1)
        is_below = losses + prices * n_abstained < values[i, low] + prices * low - MARGIN
        is_new = is_below & (low < n_abstained) & (n_abstained < high)
        pairs = []
        for t in np.flatnonzero(is_new):
            a = n_abstained[t]
            values[i[t], a], answers[i[t], a], gap[i[t], a] = losses[t], codes[t], gaps[t]
            pairs += [(i[t], low[t], a), (i[t], a, high[t])]
        for t in np.flatnonzero(~is_new):
            for a in (low[t], high[t]):
                gap[i[t], a] = max(gap[i[t], a], gaps[t])
