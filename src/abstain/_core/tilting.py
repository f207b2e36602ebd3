"""Components of joint distributions with other marginals, or with more independence: for the methods of `Joint`.

Rows are worked on in parts, so that all cores are used; results do not depend on how.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.kernels import tilting
from abstain._core.kernels.components import Components
from abstain._utils.threads import for_each
from abstain._utils.types import Floats

ROWS_PER_TASK = 64
MARGINAL_TOLERANCE = 1e-7
"""How far the marginals of weighted samples may be from those wanted before labels of samples are changed."""


class NewSamples(NamedTuple):
    """Samples of some rows, besides those that the rows have.

    Attributes
    ----------
    rows : int array of shape (n_new,)
        Not decreasing.
    weights : float array of shape (n_new,)
    labels : uint8 array of shape (n_new, n_labels)
    """

    rows: NDArray[np.int64]
    weights: Floats
    labels: NDArray[np.uint8]


def tilt(samples: Components, targets: Floats) -> Floats:
    """Return the weights w · exp(λ·y) whose marginals are the targets, or as near to them as is reasonable."""
    tilted = np.empty_like(samples.weights)

    def work(rows: slice) -> None:
        indptr = samples.indptr[rows.start : rows.stop + 1]
        tilting.tilt_samples(indptr, samples.index, samples.weights, samples.values, targets[rows], tilted)

    for_each(work, _parts(len(targets)))
    return tilted


def change_labels(samples: Components, targets: Floats) -> NewSamples:
    """Return parts of samples with changed labels such that the marginals are the targets; weights change in place."""
    return NewSamples(*tilting.move_probability(*samples_of(samples), targets, MARGINAL_TOLERANCE))


def shift(components: Components, targets: Floats) -> Floats:
    """Return the probabilities of each component, shifted so that the marginals are the targets."""
    shifted = np.empty((len(components.weights), components.values.shape[1]))

    def work(rows: slice) -> None:
        indptr = components.indptr[rows.start : rows.stop + 1]
        tilting.shift_log_odds(indptr, components.index, components.weights, components.values, targets[rows], shifted)

    for_each(work, _parts(len(targets)))
    return shifted


def independent_samples(marginals: Floats, n_samples: int, seed: int) -> NewSamples:
    """Return samples of labels that are independent, in each of which a label is 1 as often as its marginal says.

    Latin hypercube samples, of one hypercube for all rows: those of a row do not depend on the other rows.
    """
    n, m = marginals.shape
    random = np.random.default_rng(seed)
    levels = (np.array([random.permutation(n_samples) for _ in range(m)]).T + 0.5) / n_samples
    labels = (levels[np.newaxis] < marginals[:, np.newaxis]).astype(np.uint8).reshape(n * n_samples, m)
    return NewSamples(np.repeat(np.arange(n), n_samples), np.full(n * n_samples, 1.0 / n_samples), labels)


def distinct(labels: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    """Return the distinct rows of a table of 0 and 1, and the number of each row among them."""
    packed = np.packbits(labels, axis=1)
    words = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view(np.uint64)
    if words.shape[1] == 1:
        _, first, number = np.unique(words[:, 0], return_index=True, return_inverse=True)
    else:
        _, first, number = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return labels[first], number.ravel()


def shared_table(samples: Components, weights: Floats, new: NewSamples) -> tuple[NDArray[np.uint8], sparse.csr_array]:
    """Return one table of the distinct samples of all rows, and the weights that each row gives them."""
    table, number = distinct(np.concatenate([samples.values, new.labels]))
    rows = np.concatenate([samples.row, new.rows])
    columns = number[np.concatenate([samples.index, len(samples.values) + np.arange(len(new.rows))])]
    given = np.concatenate([weights, new.weights])
    summed = sparse.csr_array((given, (rows, columns)), shape=(samples.shape[0], len(table)))
    summed.sum_duplicates()
    summed.eliminate_zeros()
    return table, summed


def own_tables(
    samples: Components, n_samples: int, weights: Floats, new: NewSamples
) -> tuple[NDArray[np.uint8], Floats]:
    """Return a table of samples for each row, which begins with its own, and their weights; 0 fills up."""
    n, m = samples.shape
    count = np.bincount(new.rows, minlength=n)
    place = np.arange(len(new.rows)) - np.repeat(np.cumsum(count) - count, count)
    width = n_samples + int(count.max(initial=0))
    labels, given = np.zeros((n, width, m), np.uint8), np.zeros((n, width))
    labels[:, :n_samples] = samples.values.reshape(n, n_samples, m)
    own = np.zeros(n * n_samples)
    own[samples.index] = weights
    given[:, :n_samples] = own.reshape(n, n_samples)
    labels[new.rows, n_samples + place], given[new.rows, n_samples + place] = new.labels, new.weights
    return labels, given


def samples_of(samples: Components) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, NDArray[np.uint8]]:
    """Return the arrays of components in the order in which kernels take them."""
    return samples.indptr, samples.index, samples.weights, samples.values


def _parts(n: int) -> list[slice]:
    return [slice(first, min(first + ROWS_PER_TASK, n)) for first in range(0, n, ROWS_PER_TASK)]
