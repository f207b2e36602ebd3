"""The best answer for F-measure and Jaccard index from samples, by branch and bound over the labels answered 1.

Once the labels answered 1 are known, the expected loss is a submodular function of those answered 0: relevant labels
that are missed together in a sample cost less than alone. The greedy algorithm of Edmonds therefore gives a price for
each label, in any order, such that no set of zeros costs less than the sum of its prices; and with prices, the penalty
decides by one sort. Mostly that bound is attained. Where it is not, branching on a label answered 0 or abstained
decides.
"""

import numpy as np

from abstain._core.kernels.codes import ABSTAIN
from abstain._core.kernels.sample_overlap import (
    copy_to,
    count_abstained,
    is_better,
    sort_by,
    tie_of_totals,
    total_of_answer,
    value_of_counts,
)
from abstain._utils.compilation import kernel

FREE = 2  # the code of a label that may still be answered 0 or abstained
SMALL = 3  # with so few labels to branch on, the bound of a node costs more than its leaves


@kernel
def _is_open(penalty, bound, bound_of_fewer, best):
    """Whether something may be better: a bound of all totals, and of those with fewer abstentions than the best."""
    tie = tie_of_totals(penalty, best)
    return bound < best - tie or bound_of_fewer <= best + tie


@kernel
def bound_given_ones(row, measure, penalty, state, ones, hits, missed, order, saved, best_a):
    """Bound the totals over all choices of the free labels, given those answered 1; missed and saved are scratch.

    Returns the bound, one of those with less than best_a abstentions, the number of free labels, and how many of them
    are abstained where the bound is attained, if it is: the first ones of `order`. The labels are priced in that order,
    and then it is sorted anew by how much abstaining costs more than the price of answering 0.
    """
    m = state.shape[0]
    missed[:] = 0
    n_abstained = free = 0
    fixed = 0.0
    for t in range(m):
        j = order[t]
        if state[j] == FREE:
            free += 1
        elif state[j] == ABSTAIN:
            n_abstained += 1
            fixed += penalty.label_costs[j]
        elif state[j] == 0:
            for u in range(row.label_start[j], row.label_start[j + 1]):
                missed[row.samples[u]] += 1
    loss = 1.0
    for s in range(row.weights.shape[0]):
        loss -= row.weights[s] * value_of_counts(measure, ones, hits[s], missed[s])
    fixed += loss
    for t in range(m):
        j = order[t]
        if state[j] != FREE:
            saved[j] = np.inf
            continue
        price = 0.0
        for u in range(row.label_start[j], row.label_start[j + 1]):
            s = row.samples[u]
            if hits[s] > 0 or ones == 0:
                n = missed[s]
                price += row.weights[s] * (
                    value_of_counts(measure, ones, hits[s], n) - value_of_counts(measure, ones, hits[s], n + 1)
                )
                missed[s] = n + 1
        fixed += price
        saved[j] = penalty.label_costs[j] - price
    sort_by(order, m, saved)
    bound = bound_of_fewer = np.inf
    n_opened = 0
    total = fixed
    for t in range(free + 1):
        with_penalty = total + penalty.counts[n_abstained + t]
        if with_penalty < bound:
            bound, n_opened = with_penalty, t
        if n_abstained + t < best_a:
            bound_of_fewer = min(bound_of_fewer, with_penalty)
        if t < free:
            total += saved[order[t]]
    return bound, bound_of_fewer, free, n_opened


@kernel
def _search_zeros(row, measure, penalty, state, ones, hits, missed, order, stack, nodes, best, codes):
    """Search the labels answered 0, given those answered 1; returns the nodes left (negative: cut) and the best total.

    state has 1, 0, ABSTAIN and FREE; codes has the best answer so far, and gets a better one.
    """
    m = state.shape[0]
    best_a = count_abstained(codes)
    copy_to(stack[0], state)
    top = 1
    found = np.empty(m, np.int8)
    saved, counted_hits, counted_missed = np.empty(m), np.empty_like(hits), np.empty_like(missed)
    while top > 0:
        nodes -= 1
        if nodes < 0:
            return nodes, best
        top -= 1
        here = stack[top]
        branch = -1
        # The bound is attained if the labels that are best answered 0 are priced first.
        for attempt in range(2):
            bound, bound_of_fewer, free, n_opened = bound_given_ones(
                row, measure, penalty, here, ones, hits, missed, order, saved, best_a
            )
            if not _is_open(penalty, bound, bound_of_fewer, best):
                branch = -1
                break
            copy_to(found, here)
            for t in range(free):
                found[order[t]] = ABSTAIN if t < n_opened else 0
            total = total_of_answer(row, measure, penalty, found, counted_hits, counted_missed)
            a = count_abstained(found)
            if is_better(penalty, total, a, best, best_a):
                best, best_a = total, a
                copy_to(codes, found)
            branch = order[min(n_opened, free - 1)] if free > 0 else -1
            if attempt == 0:
                for t in range(free // 2):
                    order[t], order[free - 1 - t] = order[free - 1 - t], order[t]
        if branch >= 0:
            copy_to(stack[top + 1], here)
            stack[top, branch] = ABSTAIN
            stack[top + 1, branch] = 0
            top += 2
    return nodes, best


@kernel
def _may_reach(row, measure, ones, most_ones, hits, more_hits, needed):
    """Whether the measure may reach a value with up to most_ones labels answered 1, if each sample chose the others.

    With k labels answered 1 in the end, a sample has at most as many further hits as there are labels to come.
    """
    for k in range(max(ones, 1), most_ones + 1):
        value = 0.0
        for s in range(row.weights.shape[0]):
            value += row.weights[s] * value_of_counts(measure, k, hits[s] + min(more_hits[s], k - ones), 0)
        if value >= needed:
            return True
    return False


@kernel
def search_tree(row, measure, penalty, allowed, nodes, best, codes):
    """Look for answers better than codes, with allowed[j, code + 1]; returns whether all were seen, and the best total.

    Every bound and every choice of zeros counts as one of the nodes.
    """
    m, size = codes.shape[0], row.weights.shape[0]
    weight_of_label = np.zeros(m)
    for j in range(m):
        for t in range(row.label_start[j], row.label_start[j + 1]):
            weight_of_label[j] += row.weights[row.samples[t]]
    state, pricing_order, branching = np.empty(m, np.int8), np.arange(m), np.empty(m, np.int64)
    sort_by(pricing_order, m, weight_of_label)
    depth = 0
    ones = np.int64(0)  # as a literal, what it is passed to would be compiled for it, too
    hits = np.zeros((m + 1, size), np.int64)
    for t in range(m):
        j = pricing_order[t]
        other = FREE if allowed[j, 0] and allowed[j, 1] else (0 if allowed[j, 1] else ABSTAIN)
        state[j] = other
        # A label that is never relevant is better answered 0 than 1.
        if allowed[j, 2] and (weight_of_label[j] > 0.0 or not allowed[j, 1]):
            if not allowed[j, 0] and not allowed[j, 1]:
                state[j] = 1
                ones += 1
                for u in range(row.label_start[j], row.label_start[j + 1]):
                    hits[0, row.samples[u]] += 1
            else:
                branching[depth] = j
                depth += 1
    last = depth
    others = state.copy()
    more_hits = np.zeros((last + 1, size), np.int64)
    for d in range(last - 1, -1, -1):
        copy_to(more_hits[d], more_hits[d + 1])
        for t in range(row.label_start[branching[d]], row.label_start[branching[d] + 1]):
            more_hits[d, row.samples[t]] += 1
    stage = np.zeros(last + 1, np.int64)
    missed, stack = np.empty(size, np.int64), np.empty((2 * m + 2, m), np.int8)
    # Without any label answered 1, two values of 0/0 matter: that of a truth, and no answer at all.
    open_answer = np.full(m, ABSTAIN, np.int8)
    total = total_of_answer(row, measure, penalty, open_answer, hits[0], missed) if ones == 0 else np.inf
    may_open_all = True
    for j in range(m):
        may_open_all &= allowed[j, 0]
    if ones == 0 and may_open_all and is_better(penalty, total, m, best, count_abstained(codes)):
        copy_to(codes, open_answer)
        best = total
    depth = 0
    while depth >= 0:
        if stage[depth] == 0:
            nodes -= 1
            if nodes < 0:
                return False, best
            if depth == last:
                nodes, best = _search_zeros(
                    row, measure, penalty, state, ones, hits[depth], missed, pricing_order, stack, nodes, best, codes
                )
                if nodes < 0:
                    return False, best
                stage[depth] = 2
            elif last - depth >= SMALL and ones > 0:
                tie = tie_of_totals(penalty, best)
                needed = 1.0 - best + (tie if count_abstained(codes) == 0 else -tie)
                if not _may_reach(row, measure, ones, ones + last - depth, hits[depth], more_hits[depth], needed):
                    stage[depth] = 2
        if stage[depth] == 2:
            depth -= 1
            continue
        j = branching[depth]
        copy_to(hits[depth + 1], hits[depth])
        if stage[depth] == 0:
            state[j] = 1
            ones += 1
            for t in range(row.label_start[j], row.label_start[j + 1]):
                hits[depth + 1, row.samples[t]] += 1
        else:
            state[j] = others[j]
            ones -= 1
        stage[depth] += 1
        depth += 1
        stage[depth] = 0
    return True, best
