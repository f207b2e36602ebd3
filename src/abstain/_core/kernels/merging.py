"""Equal components of a joint distribution become one, with the sum of their weights."""

import numpy as np

from abstain._utils.compilation import kernel

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: spreads words over the places of a table


@kernel
def merge_equal(weights, words, indptr, index, summed):
    """The distinct components of each row that have a weight, in the order in which they come first.

    Those of row i are written to indptr[i] … indptr[i + 1] − 1: the number of each in `index`, the sum of the weights
    of all that are equal to it in `summed`. Invariants: words has a row for each component, n · k in all.
    """
    n, k = weights.shape
    size = 16
    while size < 2 * k:
        size *= 2
    place = np.empty(size, np.int64)
    found = 0
    for i in range(n):
        place[:] = -1
        for c in range(k):
            if weights[i, c] <= 0.0:
                continue
            number = i * k + c
            code = np.uint64(0)
            for w in range(words.shape[1]):
                code = (code ^ words[number, w]) * MULTIPLIER
                code ^= code >> np.uint64(29)
            at = np.int64(code % np.uint64(size))
            while place[at] >= 0:
                is_equal = True
                for w in range(words.shape[1]):
                    if words[index[place[at]], w] != words[number, w]:
                        is_equal = False
                        break
                if is_equal:
                    break
                at = (at + 1) % size
            if place[at] < 0:
                place[at] = found
                index[found] = number
                summed[found] = 0.0
                found += 1
            summed[place[at]] += weights[i, c]
        indptr[i + 1] = found
