"""Subset 0/1 loss from samples, for any penalty that counts: branch and bound over the samples that are kept.

An answer that is consistent with a sample, the *reference*, leaves the labels open on which other samples that it is
consistent with, the kept ones, differ from it. References are tried from the heaviest on, and each is excluded for
those after it, as in `subset_of_samples`. A node of the search has kept some samples, which opens labels, and dropped
some, whose weight is lost. Samples that would open too many labels are dropped at once. The others are worth at most
what a minimum cut says at some price λ of an abstention: with k labels open so far, an answer costs at least

    what is lost and paid so far + cut(λ) + min_{e ≥ 0} f(k + e) − λ · e.

Nodes are opened in the order of their bounds, so that the bound of the next one is a bound for all answers.
"""

import heapq

import numpy as np

from abstain._core.kernels.codes import ABSTAIN
from abstain._core.kernels.min_cut import UNITS, WORD, bit_of, lowest, send_flow
from abstain._core.kernels.subset_of_mixtures import total_of
from abstain._core.kernels.subset_of_samples import connect, load_prices, open_by_cut
from abstain._utils.compilation import kernel


@kernel
def _count_and_pay(labels, label_costs):
    """The number of labels in a bit set, and their costs."""
    count, paid = 0, 0.0
    for v in range(labels.shape[0]):
        word = labels[v]
        while word != 0:
            paid += label_costs[v * WORD + lowest(word)]
            count += 1
            word &= word - np.uint64(1)
    return count, paid


@kernel
def _drop_too_expensive(search, row, least, reference, opened, dropped, limit):
    """Drop the samples that cannot be kept below the limit, and find the `candidates` that remain.

    Returns their number, and what is lost and paid so far: infinite if nothing is below the limit, or if a sample that
    is dropped needs no label more, so that other nodes have the same answers. `least[a]` is the least penalty of a
    abstentions or more, infinite if so many cannot be the best.
    """
    n_samples = row.weights.shape[0]
    count, paid = _count_and_pay(opened, row.label_costs)
    needs, lost, n = search.differing, 0, 0
    for t in range(n_samples):
        need = np.uint64(0)
        for v in range(opened.shape[0]):
            needs[t, v] = (search.words[t, v] ^ search.words[reference, v]) & ~opened[v]
            need |= needs[t, v]
        if dropped[t // WORD] & bit_of(t) != 0:
            lost += search.units[t]
            if need == 0:
                return 0, np.inf
        elif need != 0:
            search.candidates[n] = t
            n += 1
    before = -1
    while lost > before:
        before, left = lost, 0
        for c in range(n):
            t = search.candidates[c]
            more, more_paid = _count_and_pay(needs[t], row.label_costs)
            if lost / UNITS + paid + more_paid + least[count + more] >= limit:
                lost += search.units[t]
                dropped[t // WORD] |= bit_of(t)
            else:
                search.candidates[left] = t
                left += 1
        n = left
    so_far = lost / UNITS + paid
    return n, so_far if so_far + least[count] < limit else np.inf


@kernel
def _write_answer(row, reference, opened, codes):
    """Answer like a sample except on open labels, and leave the cheapest further ones open if that costs less."""
    m = codes.shape[0]
    count = 0
    for j in range(m):
        codes[j] = np.int8(row.p[reference, j])
        if opened[j // WORD] & bit_of(j) != 0:
            codes[j] = ABSTAIN
            count += 1
    best, further, most, paid = row.counts[count], 0, 0, 0.0
    for j in row.cheapest_first:
        if codes[j] != ABSTAIN:
            most += 1
            paid += row.label_costs[j]
            if row.counts[count + most] + paid < best:
                best, further = row.counts[count + most] + paid, most
    for j in row.cheapest_first:
        if further > 0 and codes[j] != ABSTAIN:
            codes[j] = ABSTAIN
            further -= 1


@kernel
def _bound(search, row, least, least_priced, reference, opened, dropped, limit, codes):
    """A bound of the totals below a node, infinite if none is below the limit; and the sample to branch on.

    `codes` is an answer of the node, if the bound is finite. Without a sample to branch on (−1), it is the best one.
    """
    n, so_far = _drop_too_expensive(search, row, least, reference, opened, dropped, limit)
    if so_far == np.inf:
        return np.inf, -1
    count, _ = _count_and_pay(opened, row.label_costs)
    bound = so_far + least[count]
    more = np.zeros_like(opened)
    if n > 0:
        allowance = limit - so_far - least_priced[count]
        if allowance <= 0.0:
            return np.inf, -1
        enough = np.int64(np.rint(min(allowance, 2.0) * UNITS))
        connect(search, n)
        cut = send_flow(search.network, n, enough)
        if cut >= enough:
            return np.inf, -1
        bound = max(bound, so_far + least_priced[count] + cut / UNITS)
        open_by_cut(search, n, more)
    for v in range(more.shape[0]):
        more[v] |= opened[v]
    _write_answer(row, reference, more, codes)
    return bound, search.candidates[0] if n > 0 else -1


@kernel
def search_samples(search, row, floor, price, node_limit, best, codes):
    """Find the answer of least total by branch and bound, opening up to node_limit nodes.

    `codes` is an answer that costs `best`, and becomes the best one found. Returns what that costs, and a bound of
    the totals of all answers, equal to it if it is proved the least. No answer with a abstentions has a loss and label
    costs below floor[a]. The price is that of the bounds; any one is right.

    Invariant: `load_samples` has been called for the row.
    """
    n_samples, m = row.p.shape
    load_prices(search, price + row.label_costs)
    least = np.where(floor + row.counts < best - row.margin, row.counts, np.inf)
    least_priced = least.copy()
    for a in range(m - 1, -1, -1):
        least[a] = min(least[a], least[a + 1])
        least_priced[a] = min(least_priced[a], least_priced[a + 1] - price)
    capacity, n_words = 64, (n_samples + WORD - 1) // WORD
    references, branches = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    opened = np.empty((capacity, search.words.shape[1]), np.uint64)
    dropped = np.empty((capacity, n_words), np.uint64)
    reference, branch = 0, -1
    node_opened, node_dropped = np.zeros_like(opened[0]), np.zeros_like(dropped[0])
    trial = np.empty(m, np.int8)
    queue = [(np.inf, np.int64(-1))]
    queue.clear()
    used, n_opened, excluded = 0, 0, 0
    parent = np.int64(-1)  # the node being opened
    parent_bound, step = np.min(floor + row.counts), 0
    while True:
        # The next node: first those of all references, then the two below the node of the least bound.
        if reference < n_samples and excluded / UNITS + least[0] < best - row.margin:
            node_opened[:] = np.uint64(0)
            node_dropped[:] = np.uint64(0)
            for t in range(reference):
                node_dropped[t // WORD] |= bit_of(t)
            own = reference
            excluded += search.units[reference]
            reference += 1
        else:
            reference = n_samples
            if step == 0:
                if len(queue) == 0 or queue[0][0] >= best - row.margin:
                    return best, best
                if n_opened >= node_limit:
                    return best, queue[0][0]
                parent_bound, parent = heapq.heappop(queue)
                n_opened += 1
            own, branch = references[parent], branches[parent]
            node_opened[:] = opened[parent]
            node_dropped[:] = dropped[parent]
            if step == 0:
                for v in range(node_opened.shape[0]):
                    node_opened[v] |= search.words[branch, v] ^ search.words[own, v]
            else:
                node_dropped[branch // WORD] |= bit_of(branch)
            step = 1 - step
        bound, branch = _bound(
            search, row, least, least_priced, own, node_opened, node_dropped, best - row.margin, trial
        )
        if bound == np.inf:
            continue
        total = total_of(row, trial)
        if total < best - row.margin:
            best = total
            codes[:] = trial
        bound = max(bound, parent_bound)
        if branch < 0 or bound >= best - row.margin:
            continue
        if used == references.shape[0]:
            references, branches = np.concatenate((references, references)), np.concatenate((branches, branches))
            opened, dropped = np.concatenate((opened, opened)), np.concatenate((dropped, dropped))
        references[used], branches[used] = own, branch
        opened[used] = node_opened
        dropped[used] = node_dropped
        heapq.heappush(queue, (bound, np.int64(used)))
        used += 1
