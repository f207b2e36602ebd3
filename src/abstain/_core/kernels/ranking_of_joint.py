"""The rank loss where labels depend on each other: which labels to rank, by branch and bound on the costs of pairs.

Labels are best ranked by decreasing marginal probability, whatever the dependence. A pair that is ranked so is expected
to be in the wrong order with probability W[i, j] = min(p_i, p_j) − P(y_i = y_j = 1) ≥ 0, so that what is left is to
choose the ranked labels D: the least Σ W[i, j] over the pairs in D, plus what abstaining on the others costs.
"""

import heapq

import numpy as np

from abstain._core.kernels.choice import SLACK
from abstain._core.kernels.codes import ABSTAIN
from abstain._utils.compilation import kernel

UNDECIDED, RANKED, LEFT_OUT = 0, 1, 2
LABELS_OF_FULL_LIMIT = 20  # the node limit is for so many labels; a node of m labels takes m² operations


@kernel
def _pair_costs(components, i, order, costs):
    """costs[s, t] = W of labels s and t for row i, and 0 on the diagonal.

    It is added up from the chances that the one that comes later in the order is relevant and the other is not: no
    difference is taken, so that costs of 0 are exactly 0.
    """
    m = order.shape[0]
    costs[:] = 0.0
    for c in range(components.indptr[i], components.indptr[i + 1]):
        weight, p = components.weights[c], components.values[components.index[c]]
        for a in range(m):
            s = order[a]
            irrelevant = weight * (1.0 - p[s])
            if irrelevant > 0.0:
                for b in range(a + 1, m):
                    costs[s, order[b]] += irrelevant * p[order[b]]
    for a in range(m):
        for b in range(a):
            costs[order[a], order[b]] = costs[order[b], order[a]]


@kernel
def _total(costs, counts, label_costs, is_ranked):
    """What ranking these labels costs in expectation; infinite for a single one of several."""
    m = costs.shape[0]
    total = 0.0
    n_ranked = 0
    for s in range(m):
        if is_ranked[s]:
            n_ranked += 1
            for t in range(s):
                if is_ranked[t]:
                    total += costs[s, t]
        else:
            total += label_costs[s]
    if n_ranked == 1 and m > 1:
        return np.inf
    return total + counts[m - n_ranked]


@kernel
def _is_better(total, n_abstained, best, best_abstained, tie):
    margin = max(tie, SLACK) * abs(best)
    return total < best - margin or (total <= best + margin and n_abstained < best_abstained)


@kernel
def _bound(costs, counts, label_costs, state, limit, scratch):
    """A lower bound of all totals in which some labels are ranked and others left out; the fewest abstentions of a
    total that may be at most `limit`; and the undecided label that costs most in what attains the bound (−1: none).

    Of the undecided labels, r are ranked: each at least at its cost with the labels that are ranked already, and half
    of its r − 1 least costs with other undecided ones.
    """
    m = costs.shape[0]
    undecided = np.flatnonzero(state == UNDECIDED)
    u = len(undecided)
    so_far = 0.0
    n_ranked = 0
    for s in range(m):
        if state[s] == RANKED:
            n_ranked += 1
            for t in range(s):
                if state[t] == RANKED:
                    so_far += costs[s, t]
        elif state[s] == LEFT_OUT:
            so_far += label_costs[s]
    own, pairs, key = scratch[0, :u], scratch[1, :u], scratch[2, :u]
    least_pairs = np.empty((u, u))
    for a in range(u):
        own[a] = 0.0
        for s in range(m):
            if state[s] == RANKED:
                own[a] += costs[undecided[a], s]
        for b in range(u):
            least_pairs[a, b] = costs[undecided[a], undecided[b]]
        least_pairs[a, a] = -1.0  # comes first, and is left out
        least_pairs[a].sort()
        pairs[a] = 0.0
    best, fewest, branch = np.inf, m + 1, -1
    for r in range(u + 1):
        if r > 1:
            for a in range(u):
                pairs[a] += 0.5 * least_pairs[a, r - 1]
        if n_ranked + r == 1 and m > 1:
            continue
        n_abstained = m - n_ranked - r
        if counts[n_abstained] == np.inf:
            continue
        for a in range(u):
            key[a] = own[a] + pairs[a] - label_costs[undecided[a]]
        total = so_far + counts[n_abstained]
        dearest = -1
        order = np.argsort(key)
        for b in range(u):
            a = order[b]
            if b < r:
                total += own[a] + pairs[a]
                dearest = a
            else:
                total += label_costs[undecided[a]]
        if total <= limit:
            fewest = min(fewest, n_abstained)
        if total < best:
            best = total
            branch = undecided[dearest] if dearest >= 0 else (undecided[0] if u > 0 else -1)
    return best, fewest, branch


@kernel
def _improve(costs, counts, label_costs, tie, is_ranked):
    """Change single labels, and swap pairs, as long as that is better; returns the total and its abstentions."""
    m = costs.shape[0]
    best, n_abstained = _total(costs, counts, label_costs, is_ranked), m - np.count_nonzero(is_ranked)
    improved = True
    while improved:
        improved = False
        for s in range(m):
            is_ranked[s] = not is_ranked[s]
            total, n = _total(costs, counts, label_costs, is_ranked), n_abstained + (1 if not is_ranked[s] else -1)
            if _is_better(total, n, best, n_abstained, tie):
                best, n_abstained, improved = total, n, True
            else:
                is_ranked[s] = not is_ranked[s]
        for s in range(m):
            for t in range(s):
                if is_ranked[s] != is_ranked[t]:
                    is_ranked[s], is_ranked[t] = is_ranked[t], is_ranked[s]
                    total = _total(costs, counts, label_costs, is_ranked)
                    if _is_better(total, n_abstained, best, n_abstained, tie):
                        best, improved = total, True
                    else:
                        is_ranked[s], is_ranked[t] = is_ranked[t], is_ranked[s]
    return best, n_abstained


@kernel
def _start(costs, counts, label_costs, tie, is_ranked):
    """Begin with the given labels, or with those that are left when the dearest are dropped one by one, and improve."""
    m = costs.shape[0]
    best, n_abstained = _total(costs, counts, label_costs, is_ranked), m - np.count_nonzero(is_ranked)
    trial = np.ones(m, np.bool_)
    for n_dropped in range(m + 1):
        total = _total(costs, counts, label_costs, trial)
        if _is_better(total, n_dropped, best, n_abstained, tie):
            best, n_abstained = total, n_dropped
            is_ranked[:] = trial
        dearest, most = -1, -np.inf
        for s in range(m):
            if trial[s]:
                cost = -label_costs[s]
                for t in range(m):
                    if trial[t]:
                        cost += costs[s, t]
                if cost > most:
                    dearest, most = s, cost
        if dearest >= 0:
            trial[dearest] = False
    return _improve(costs, counts, label_costs, tie, is_ranked)


@kernel
def _search(costs, counts, label_costs, tie, node_limit, is_ranked):
    """Find the best labels to rank, beginning with those given; returns how much better others could be."""
    m = costs.shape[0]
    best, n_abstained = _start(costs, counts, label_costs, tie, is_ranked)
    trial, scratch = np.empty(m, np.bool_), np.empty((3, m))
    states = np.zeros((64, m), np.int8)
    margin = max(tie, SLACK) * abs(best)
    bound, fewest, branch = _bound(costs, counts, label_costs, states[0], best + margin, scratch)
    heap = [(bound, np.int64(0), np.int64(fewest), np.int64(branch))]
    n_nodes = 1
    while len(heap) > 0:
        bound, node, fewest, branch = heapq.heappop(heap)
        margin = max(tie, SLACK) * abs(best)
        if bound > best + margin:
            return 0.0
        if bound >= best - margin and fewest >= n_abstained:
            continue
        if branch < 0:  # nothing is undecided: the bound is a total
            continue
        if n_nodes + 2 > node_limit:
            return max(0.0, best - bound)
        if n_nodes + 2 > len(states):
            larger = np.zeros((2 * len(states), m), np.int8)
            larger[:n_nodes] = states[:n_nodes]
            states = larger
        for choice in (RANKED, LEFT_OUT):
            states[n_nodes] = states[node]
            states[n_nodes, branch] = choice
            new_bound, new_fewest, new_branch = _bound(
                costs, counts, label_costs, states[n_nodes], best + margin, scratch
            )
            # The total of ranking what is not left out, and of ranking no more than what is ranked.
            for least in (LEFT_OUT, UNDECIDED):
                for s in range(m):
                    trial[s] = states[n_nodes, s] == RANKED or (least == LEFT_OUT and states[n_nodes, s] == UNDECIDED)
                total, n = _total(costs, counts, label_costs, trial), m - np.count_nonzero(trial)
                if _is_better(total, n, best, n_abstained, tie):
                    best, n_abstained = _improve(costs, counts, label_costs, tie, trial)
                    is_ranked[:] = trial
                    margin = max(tie, SLACK) * abs(best)
            if new_bound <= best + margin:
                heapq.heappush(heap, (new_bound, np.int64(n_nodes), np.int64(new_fewest), np.int64(new_branch)))
            n_nodes += 1
    return 0.0


@kernel
def _write_positions(order, is_ranked, positions):
    """Rank labels in this order."""
    place = 0
    for s in order:
        if is_ranked[s]:
            positions[s] = place
            place += 1
        else:
            positions[s] = ABSTAIN


@kernel
def _limit_of(node_limit, m):
    """The number of nodes for m labels: the work of a node grows with m²."""
    if m <= LABELS_OF_FULL_LIMIT:
        return node_limit
    return max(3, node_limit * LABELS_OF_FULL_LIMIT * LABELS_OF_FULL_LIMIT // (m * m))


@kernel
def decide_ranking(components, marginals, counts, tie, label_costs, node_limit, positions, gap):
    """Find the best partial ranking of each row, beginning with the given one.

    gap[i] is how much less another one could cost at most. Invariants: counts is (n, m + 1), as
    `RowPenalties.counts`; positions holds a ranking whose cost is finite wherever any is.
    """
    n, m = marginals.shape
    costs = np.empty((m, m))
    for i in range(n):
        order = np.argsort(-marginals[i], kind="mergesort")
        _pair_costs(components, i, order, costs)
        is_ranked = positions[i] >= 0
        gap[i] = _search(costs, counts[i], label_costs, tie, _limit_of(node_limit, m), is_ranked)
        _write_positions(order, is_ranked, positions[i])


@kernel
def profile_of_joint(components, marginals, node_limit, values, answers, gap):
    """values[i, a] = the least expected loss with a labels left out, answers[i, a] the ranking that attains it."""
    n, m = marginals.shape
    costs, none = np.empty((m, m)), np.zeros(m)
    for i in range(n):
        order = np.argsort(-marginals[i], kind="mergesort")
        _pair_costs(components, i, order, costs)
        is_ranked = np.ones(m, np.bool_)
        for a in range(m + 1):
            counts = np.full(m + 1, np.inf)
            counts[a] = 0.0
            if m - a == 1 and m > 1:
                values[i, a] = np.inf
                gap[i, a] = 0.0
                answers[i, a] = ABSTAIN
                continue
            _drop_dearest(costs, m - a, is_ranked)
            gap[i, a] = _search(costs, counts, none, 0.0, _limit_of(node_limit, m), is_ranked)
            values[i, a] = _total(costs, counts, none, is_ranked)
            _write_positions(order, is_ranked, answers[i, a])


@kernel
def _drop_dearest(costs, size, is_ranked):
    """Leave out the labels that cost most until so many are ranked."""
    m = costs.shape[0]
    while np.count_nonzero(is_ranked) > size:
        dearest, most = -1, -1.0
        for s in range(m):
            if is_ranked[s]:
                cost = 0.0
                for t in range(m):
                    if is_ranked[t]:
                        cost += costs[s, t]
                if cost > most:
                    dearest, most = s, cost
        is_ranked[dearest] = False
