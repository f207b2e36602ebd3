"""Subset 0/1 loss from samples, where every abstained label has a price: the optimum, by minimum cuts.

An answer costs the weights of the samples that it contradicts and the prices of the labels it leaves open. If it is
consistent with a sample, the *reference*, its answers are those of the reference, and it is consistent with another
sample if it leaves the labels open on which the two differ. So the best answer for a reference is a minimum cut
(`min_cut`). References are tried from the heaviest on. Once tried, a sample is *excluded*: an answer that is consistent
with it cannot be better than what is known, so all others contradict it and pay its weight. When that alone costs as
much as the best answer known, nothing better is left.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.kernels.min_cut import UNITS, WORD, Network, bit_of, new_network, send_flow
from abstain._utils.compilation import kernel

BYTE = 8  # bits


class SampleSearch(NamedTuple):
    """The samples of one row, heaviest first, as the search needs them; and its memory.

    Attributes
    ----------
    words : uint64 array of shape (n_samples, n_words)
        The bit sets of the labels that are 1.
    units : int64 array of shape (n_samples,)
        The weights in units.
    prices : int64 array of shape (n_labels,)
        The prices in units; at most 1, at which nothing is left open.
    byte_prices : int64 array of shape (n_bytes, 256)
        The prices, at most 1 in sum, of the labels in each byte of a bit set.
    differing : uint64 array of shape (n_samples, n_words)
        Where each sample differs from the reference.
    keeping : int64 array of shape (n_samples,)
        What it costs to open these labels.
    candidates : int64 array of shape (n_samples,)
        The samples that may be kept with the reference.
    network : Network
        What the minimum cuts are made from.
    """

    words: NDArray[np.uint64]
    units: NDArray[np.int64]
    prices: NDArray[np.int64]
    byte_prices: NDArray[np.int64]
    differing: NDArray[np.uint64]
    keeping: NDArray[np.int64]
    candidates: NDArray[np.int64]
    network: Network


@kernel
def new_sample_search(n_samples, n_labels):
    """Memory for rows of up to so many samples."""
    n_words = (n_labels + WORD - 1) // WORD
    return SampleSearch(
        np.zeros((n_samples, n_words), np.uint64),
        np.zeros(n_samples, np.int64),
        np.zeros(n_labels, np.int64),
        np.zeros(((n_labels + BYTE - 1) // BYTE, 256), np.int64),
        np.zeros((n_samples, n_words), np.uint64),
        np.zeros(n_samples, np.int64),
        np.zeros(n_samples, np.int64),
        new_network(n_samples, n_labels),
    )


@kernel
def load_samples(search, weights, p):
    """Write the samples of a row into `search`. Invariant: weights decrease, p is 0 or 1."""
    for k in range(p.shape[0]):
        search.units[k] = np.int64(np.rint(weights[k] * UNITS))
        search.words[k, :] = np.uint64(0)
        for j in range(p.shape[1]):
            if p[k, j] == 1.0:
                search.words[k, j // WORD] |= bit_of(j)


@kernel
def load_prices(search, prices):
    """Write the prices of the labels into `search`."""
    most = np.int64(UNITS)
    for j in range(prices.shape[0]):
        search.prices[j] = np.int64(np.rint(min(prices[j], 1.0) * UNITS))
    for b in range(search.byte_prices.shape[0]):
        table = search.byte_prices[b]
        for byte in range(1, 256):
            top = BYTE - 1
            while byte >> top == 0:
                top -= 1
            j = b * BYTE + top
            own = search.prices[j] if j < prices.shape[0] else 0
            table[byte] = min(table[byte ^ (1 << top)] + own, most)


@kernel
def _compare(search, reference, n_samples):
    """Fill in what keeping each later sample costs, up to 1."""
    most = np.int64(UNITS)
    words, differing = search.words, search.differing
    n_bytes = search.byte_prices.shape[0]
    for t in range(reference + 1, n_samples):
        for v in range(words.shape[1]):
            differing[t, v] = words[t, v] ^ words[reference, v]
        cost = 0
        for b in range(n_bytes):
            byte = (differing[t, b // BYTE] >> np.uint64(BYTE * (b % BYTE))) & np.uint64(255)
            cost = min(cost + search.byte_prices[b, np.int64(byte)], most)
        search.keeping[t] = cost


@kernel
def _drop_expensive(search, reference, n_samples, allowance):
    """Drop the samples that cannot be kept if all is to cost less than the allowance; returns the weight of these.

    Others are the `candidates`; their number is returned, too.
    """
    candidates, keeping, units = search.candidates, search.keeping, search.units
    n = n_samples - reference - 1
    for c in range(n):
        candidates[c] = reference + 1 + c
    dropped, before = 0, -1
    while dropped > before and dropped < allowance:
        before, kept = dropped, 0
        for c in range(n):
            t = candidates[c]
            if keeping[t] >= allowance - dropped:
                dropped += units[t]
            else:
                candidates[kept] = t
                kept += 1
        n = kept
    return dropped, n


@kernel
def connect(search, n):
    """Make a network without flow from the first n candidates."""
    network = search.network
    needed = np.zeros_like(network.reached)
    for c in range(n):
        t = search.candidates[c]
        network.excess[c] = search.units[t]
        for v in range(needed.shape[0]):
            network.needs[c, v] = search.differing[t, v]
            network.sends[c, v] = np.uint64(0)
            needed[v] |= search.differing[t, v]
    for j in range(network.room.shape[0]):
        network.room[j] = 0
        if needed[j // WORD] & bit_of(j) != 0:
            network.room[j] = search.prices[j]
            network.flow[j, :n] = 0


@kernel
def open_by_cut(search, n, opened):
    """Write the labels that the cut opens: those that the kept samples need."""
    network = search.network
    opened[:] = np.uint64(0)
    for c in range(n):
        kept = True
        for v in range(opened.shape[0]):
            kept = kept and network.needs[c, v] & network.reached[v] == 0
        if kept:
            for v in range(opened.shape[0]):
                opened[v] |= network.needs[c, v]


@kernel
def cheapest_of_samples(search, n_samples, prices, limit, opened):
    """Find the answer of least cost if that is below the limit; returns whether it is.

    The answer is that of sample `reference`, which is returned too, except on the labels `opened`.

    Invariants: `load_samples` has been called; limit is at most 1 − weight of the first sample, what answering like
    this sample costs.
    """
    load_prices(search, prices)
    total = 0
    for k in range(n_samples):
        total += search.units[k]
    best = min(np.int64(np.rint(max(limit, 0.0) * UNITS)), total - search.units[0])
    reference, excluded = -1, 0
    for r in range(n_samples):
        if excluded >= best:
            break
        _compare(search, r, n_samples)
        dropped, n = _drop_expensive(search, r, n_samples, best - excluded)
        enough = best - excluded - dropped
        if enough > 0:
            connect(search, n)
            cut = send_flow(search.network, n, enough)
            if cut < enough:
                best, reference = excluded + dropped + cut, r
                open_by_cut(search, n, opened)
        excluded += search.units[r]
    return reference >= 0, reference
