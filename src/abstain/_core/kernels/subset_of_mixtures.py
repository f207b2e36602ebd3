"""Subset 0/1 loss from mixtures, for any penalty: branch and bound over the labels, and flips of single labels.

A node of the search has decided some labels: answered 1, answered 0 or left open. The component k is then worth v_k,
its weight times its probability of the answers so far. If r more labels are answered, what is left of P(all answers
are right) is at most

* Σ_k v_k times the r greatest max(p_kj, 1 − p_kj) of the undecided labels j, each component for itself, and
* the r-th greatest max(Σ_k v_k p_kj, Σ_k v_k (1 − p_kj)) over the undecided labels j: it is at most that for each of
  the r labels answered.

With the penalty of leaving the others open, the least over r bounds the totals below the node. Nodes are opened in
the order of their bounds, so that the bound of the next one is a bound for all answers.
"""

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.kernels.codes import ABSTAIN
from abstain._utils.compilation import kernel

UNDECIDED = 2
MAX_STARTS = 8  # of flips: this many of the heaviest components


class SubsetRow(NamedTuple):
    """The components of one row, heaviest first, and its penalty.

    Attributes
    ----------
    weights : float64 array of shape (n_components,)
        Their weights.
    p : float64 array of shape (n_components, m)
        Their probabilities of each label.
    certain_first : int64 array of shape (n_components, m)
        The labels of each component by decreasing max(p, 1 − p).
    counts : float64 array of shape (m + 1,)
        The penalty of each number of abstentions; infinite if forbidden.
    label_costs : float64 array of shape (m,)
        What abstaining on each label costs besides.
    cheapest_first : int64 array of shape (m,)
        The labels by increasing `label_costs`.
    margin : float
        A total is better than another one only if it is less by more than this.
    """

    weights: NDArray[np.float64]
    p: NDArray[np.float64]
    certain_first: NDArray[np.int64]
    counts: NDArray[np.float64]
    label_costs: NDArray[np.float64]
    cheapest_first: NDArray[np.int64]
    margin: float


@kernel
def loss_of(row, codes):
    """The expected subset 0/1 loss of an answer and the label costs it pays, in sum; and its number of abstentions."""
    n_components, m = row.p.shape
    right = 0.0
    for k in range(n_components):
        x = row.weights[k]
        for j in range(m):
            if codes[j] == 1:
                x *= row.p[k, j]
            elif codes[j] == 0:
                x *= 1.0 - row.p[k, j]
            if x == 0.0:
                break
        right += x
    paid, n_abstained = 0.0, 0
    for j in range(m):
        if codes[j] == ABSTAIN:
            paid += row.label_costs[j]
            n_abstained += 1
    return (max(0.0, 1.0 - right) if n_abstained < m else 0.0) + paid, n_abstained


@kernel
def total_of(row, codes):
    """What an answer costs in all."""
    loss, n_abstained = loss_of(row, codes)
    return loss + row.counts[n_abstained]


@kernel
def _likely_parts(row, codes, one, zero):
    """What P(all answers are right) becomes if label j is answered 1 or 0, the others as they are; and if it is open.

    A factor of 0 cannot be taken out of a product by division, so zeros are counted apart.
    """
    n_components, m = row.p.shape
    one[:] = 0.0
    zero[:] = 0.0
    without = np.zeros(m)
    for k in range(n_components):
        x, zeros, where = row.weights[k], 0, -1
        for j in range(m):
            if codes[j] != ABSTAIN:
                factor = row.p[k, j] if codes[j] == 1 else 1.0 - row.p[k, j]
                if factor > 0.0:
                    x *= factor
                else:
                    zeros += 1
                    where = j
            if zeros == 2:
                break
        if zeros == 2:
            continue
        for j in range(m):
            if zeros == 1 and j != where:
                continue
            rest = x
            if codes[j] != ABSTAIN and zeros == 0:
                rest /= row.p[k, j] if codes[j] == 1 else 1.0 - row.p[k, j]
            one[j] += rest * row.p[k, j]
            zero[j] += rest * (1.0 - row.p[k, j])
            without[j] += rest
    return without


@kernel
def flip(row, codes):
    """Change one label at a time, the best change first, while that makes the answer cheaper; returns its total."""
    m = codes.shape[0]
    one, zero = np.empty(m), np.empty(m)
    loss, n_abstained = loss_of(row, codes)
    total = loss + row.counts[n_abstained]
    while True:
        without = _likely_parts(row, codes, one, zero)
        paid = 0.0
        for j in range(m):
            if codes[j] == ABSTAIN:
                paid += row.label_costs[j]
        best, best_label, best_code = total - row.margin, -1, 0
        for j in range(m):
            closed = n_abstained - (codes[j] == ABSTAIN)
            paid_closed = paid - (row.label_costs[j] if codes[j] == ABSTAIN else 0.0)
            code = 1 if one[j] >= zero[j] else 0
            answered = 1.0 - max(one[j], zero[j]) + paid_closed + row.counts[closed]
            if answered < best:
                best, best_label, best_code = answered, j, code
            opened = 1.0 - without[j] + paid_closed + row.label_costs[j] + row.counts[closed + 1]
            if opened < best:
                best, best_label, best_code = opened, j, ABSTAIN
        if best_label < 0:
            return total
        before = codes[best_label]
        codes[best_label] = best_code
        loss, n_abstained = loss_of(row, codes)
        if not loss + row.counts[n_abstained] < total - row.margin:  # rounding
            codes[best_label] = before
            return total
        total = loss + row.counts[n_abstained]


@kernel
def flip_from_components(row, best, codes):
    """Flip from `codes`, and from the likeliest answer of each of the heaviest components; returns the least total."""
    m = codes.shape[0]
    trial = codes.copy()
    for k in range(-1, min(MAX_STARTS, row.weights.shape[0])):
        if k >= 0:
            for j in range(m):
                trial[j] = 1 if row.p[k, j] >= 0.5 else 0
        total = flip(row, trial)
        if total < best - row.margin:
            best = total
            codes[:] = trial
    return best


@kernel
def _bound(row, node, completed):
    """A bound of the totals below a node, and the label to branch on; `completed` is an answer below it.

    At a leaf, the bound is the total.
    """
    n_components, m = row.p.shape
    right, one = np.zeros(m + 1), np.zeros(m)
    undecided = n_abstained = 0
    paid = 0.0
    for j in range(m):
        undecided += node[j] == UNDECIDED
        if node[j] == ABSTAIN:
            n_abstained += 1
            paid += row.label_costs[j]
    for k in range(n_components):
        x = row.weights[k]
        for j in range(m):
            if node[j] == 1:
                x *= row.p[k, j]
            elif node[j] == 0:
                x *= 1.0 - row.p[k, j]
            if x == 0.0:
                break
        if x == 0.0:
            continue
        for j in range(m):
            one[j] += x * row.p[k, j]
        right[0] += x
        r = 0
        for j in row.certain_first[k]:
            if node[j] == UNDECIDED:
                r += 1
                x *= max(row.p[k, j], 1.0 - row.p[k, j])
                right[r] += x
    # The likelier answer of each undecided label, the likeliest first.
    likelier = np.full(m, -1.0)
    for j in range(m):
        if node[j] == UNDECIDED:
            likelier[j] = max(one[j], right[0] - one[j])
    order = np.argsort(-likelier, kind="mergesort")
    cheapest = np.zeros(undecided + 1)
    r = 0
    for j in row.cheapest_first:
        if node[j] == UNDECIDED:
            cheapest[r + 1] = cheapest[r] + row.label_costs[j]
            r += 1
    bound, best_r = np.inf, 0
    for r in range(undecided + 1):
        if r > 0:
            right[r] = min(right[r], likelier[order[r - 1]])
        a = n_abstained + undecided - r
        loss = 0.0 if a == m else 1.0 - right[r]
        total = loss + paid + cheapest[undecided - r] + row.counts[a]
        if total < bound:
            bound, best_r = total, r
    completed[:] = node
    for r in range(undecided):
        j = order[r]
        completed[j] = (1 if one[j] >= right[0] - one[j] else 0) if r < best_r else ABSTAIN
    return bound, order[0]


@kernel
def search_answers(row, node_limit, best, codes):
    """Find the answer of least total by branch and bound, opening up to node_limit nodes.

    `codes` is an answer that costs `best`, and becomes the best one found. Returns what that costs, and a bound of
    the totals of all answers, equal to it if it is proved the least.
    """
    m = codes.shape[0]
    nodes = np.full((64, m), UNDECIDED, np.int8)
    labels = np.empty(64, np.int64)
    completed = np.empty(m, np.int8)
    child = np.empty(m, np.int8)
    bound, labels[0] = _bound(row, nodes[0], completed)
    total = total_of(row, completed)
    if total < best - row.margin:
        best = total
        codes[:] = completed
    queue = [(bound, 0)]
    used, opened = 1, 0
    free = np.int64(-1)  # the place of the node being opened: its first child takes it
    while len(queue) > 0:
        if queue[0][0] >= best - row.margin:
            return best, best
        if opened >= node_limit:
            return best, queue[0][0]
        _, free = heapq.heappop(queue)
        opened += 1
        label = labels[free]
        child[:] = nodes[free]
        for code in (1, 0, ABSTAIN):
            child[label] = code
            bound, next_label = _bound(row, child, completed)
            if bound >= best - row.margin:
                continue
            total = total_of(row, completed)
            if total < best - row.margin:
                best = total
                codes[:] = completed
            if bound >= best - row.margin:
                continue
            place = free
            if free < 0:
                if used == nodes.shape[0]:
                    nodes = np.concatenate((nodes, np.empty_like(nodes)))
                    labels = np.concatenate((labels, np.empty_like(labels)))
                place = used
                used += 1
            free = -1
            nodes[place] = child
            labels[place] = next_label
            heapq.heappush(queue, (bound, place))
    return best, best
