"""Which samples to keep, and which labels to open for them: maximum flow from samples to labels, on bit sets.

Each sample has a weight, each label a price, and a sample can be kept only if all the labels that it *needs* are open.
The cheapest choice (weights of the samples that are not kept, and prices of the open labels) is a minimum cut, as
large as the maximum flow: each sample sends up to its weight to labels that it needs, each label receives up to its
price. What a sample has not sent is its *excess*; it may always stay where it is, so that the flow is valid throughout.

Excess moves in waves. A sample at level 0 needs a label with room. A sample at level d + 1 needs a label that receives
flow from one at level d, and takes its place there: so excess comes down level by level. All that is done in one wave
from the highest level to the lowest. What has not moved then has nobody left below it, and its level rises. This is the
push-relabel method, with all levels computed anew for each wave; that takes one pass over the bit sets per level.

Weights and prices are whole numbers of units, `UNITS` to 1: sums of them are exact, and so are cuts.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._utils.compilation import kernel

UNITS = 2.0**60
"""The number of units of weight in 1: rounding a weight to a unit changes it by less than 1e-18."""

WORD = 64  # bits of one word of a bit set
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # each six bits of it in a row are different
POSITIONS = np.argsort([(int(DE_BRUIJN) << i & 2**64 - 1) >> 58 for i in range(WORD)])  # where its 64 pieces begin


class Network(NamedTuple):
    """Samples that may be kept and the labels they need, with the flow between them.

    The first n samples are in use. Bit sets of labels are rows of uint64 words.

    Attributes
    ----------
    needs : uint64 array of shape (n_samples, n_words)
        The labels that each sample needs.
    sends : uint64 array of shape (n_samples, n_words)
        The labels that receive flow from each sample.
    excess : int64 array of shape (n_samples,)
        What each sample has not sent yet.
    level : int64 array of shape (n_samples,)
        The level of each sample; −1 for those from which no excess can reach a label with room.
    flow : int64 array of shape (n_labels, n_samples)
        What each label receives from each sample.
    room : int64 array of shape (n_labels,)
        What each label can still receive.
    next_sender : int64 array of shape (n_labels,)
        Senders before this one have no flow left that could be taken over in this wave.
    layers : uint64 array of shape (n_labels + 1, n_words)
        layers[d]: the labels that samples of level d send to, at first those with room.
    reached : uint64 array of shape (n_words,)
        The labels of all layers.
    """

    needs: NDArray[np.uint64]
    sends: NDArray[np.uint64]
    excess: NDArray[np.int64]
    level: NDArray[np.int64]
    flow: NDArray[np.int64]
    room: NDArray[np.int64]
    next_sender: NDArray[np.int64]
    layers: NDArray[np.uint64]
    reached: NDArray[np.uint64]


@kernel
def new_network(n_samples, n_labels):
    """Memory for networks of up to so many samples."""
    n_words = (n_labels + WORD - 1) // WORD
    return Network(
        np.zeros((n_samples, n_words), np.uint64),
        np.zeros((n_samples, n_words), np.uint64),
        np.zeros(n_samples, np.int64),
        np.zeros(n_samples, np.int64),
        np.zeros((n_labels, n_samples), np.int64),
        np.zeros(n_labels, np.int64),
        np.zeros(n_labels, np.int64),
        np.zeros((n_labels + 1, n_words), np.uint64),
        np.zeros(n_words, np.uint64),
    )


@kernel
def bit_of(label):
    """The bit of a label in its word."""
    return np.uint64(1) << np.uint64(label % WORD)


@kernel
def lowest(word):
    """The position of the lowest bit of a word that is not 0."""
    alone = word & (~word + np.uint64(1))
    return POSITIONS[np.int64((alone * DE_BRUIJN) >> np.uint64(58))]


@kernel
def _fill_levels(network, n):
    """Compute levels and layers, until all excess has one; returns the highest level of excess, −1 if there is none."""
    needs, sends, excess, level, layers, reached = (
        network.needs,
        network.sends,
        network.excess,
        network.level,
        network.layers,
        network.reached,
    )
    n_words = reached.shape[0]
    layers[0, :] = np.uint64(0)
    for j in range(network.room.shape[0]):
        network.next_sender[j] = 0
        if network.room[j] > 0:
            layers[0, j // WORD] |= bit_of(j)
    reached[:] = layers[0]
    waiting = 0
    for t in range(n):
        level[t] = -1
        waiting += excess[t] > 0
    highest = -1
    for d in range(layers.shape[0]):
        more = d + 1 < layers.shape[0]
        if more:
            layers[d + 1, :] = np.uint64(0)
        for t in range(n):
            if level[t] >= 0:
                continue
            meets = np.uint64(0)
            for v in range(n_words):
                meets |= needs[t, v] & layers[d, v]
            if meets == 0:
                continue
            level[t] = d
            if excess[t] > 0:
                waiting -= 1
                highest = d
            if more:
                for v in range(n_words):
                    layers[d + 1, v] |= sends[t, v]
        if waiting == 0 or not more:
            break
        fresh = np.uint64(0)
        for v in range(n_words):
            layers[d + 1, v] &= ~reached[v]
            reached[v] |= layers[d + 1, v]
            fresh |= layers[d + 1, v]
        if fresh == 0:
            break
    return highest


@kernel
def _take_over(network, t, j, d, n):
    """Send excess of sample t to label j in place of samples of level d − 1; returns whether any of these is left."""
    flow, excess, level = network.flow, network.excess, network.level
    u = network.next_sender[j]
    while u < n and excess[t] > 0:
        amount = flow[j, u]
        if amount > 0 and level[u] == d - 1:
            if amount > excess[t]:
                amount = excess[t]
            flow[j, u] -= amount
            excess[u] += amount
            flow[j, t] += amount
            excess[t] -= amount
            if flow[j, u] > 0:
                break
            network.sends[u, j // WORD] &= ~bit_of(j)
        u += 1
    network.next_sender[j] = u
    return u < n


@kernel
def _push_down(network, n, highest):
    """Move excess from level to level and into labels with room; returns how much has got there."""
    needs, sends, excess, level, layers, room = (
        network.needs,
        network.sends,
        network.excess,
        network.level,
        network.layers,
        network.room,
    )
    arrived = 0
    for down in range(highest + 1):
        d = highest - down
        for t in range(n):
            if level[t] != d or excess[t] == 0:
                continue
            for v in range(needs.shape[1]):
                open_to = needs[t, v] & layers[d, v]
                while open_to != 0 and excess[t] > 0:
                    j = v * WORD + lowest(open_to)
                    bit = bit_of(j)
                    open_to &= ~bit
                    if d > 0:
                        if not _take_over(network, t, j, d, n):
                            layers[d, v] &= ~bit
                    else:
                        amount = min(excess[t], room[j])
                        room[j] -= amount
                        excess[t] -= amount
                        network.flow[j, t] += amount
                        arrived += amount
                        if room[j] == 0:
                            layers[0, v] &= ~bit
                    if network.flow[j, t] > 0:
                        sends[t, v] |= bit
    return arrived


@kernel
def send_flow(network, n, enough):
    """The maximum flow from the first n samples; or, if that is at least `enough`, a flow that is.

    If the flow is less than `enough` and some excess is left, `reached` are then the labels to keep closed in a minimum
    cut: samples that need none of them are kept.
    """
    sent = 0
    while sent < enough:
        highest = _fill_levels(network, n)
        if highest < 0:
            break
        sent += _push_down(network, n, highest)
    return sent
