"""Compiled loops over Arrow columns: tables as columns with validity bits, counts of codes, and hashes of names."""

import numpy as np

from abstain._utils.compilation import kernel

TILE_ROWS, TILE_COLUMNS = 512, 64  # a tile is read by rows, written by columns, and stays in the cache meanwhile


@kernel
def split_columns(codes, columns, validity, n_abstained):
    """columns[j] = the codes (or probabilities) of label j, with a bit for each that is not −1, lowest bit first.

    n_abstained[j] counts the −1.

    Invariants: codes is n × m, columns m × n, validity m × ⌈n / 8⌉, a tile's height is a multiple of 8.
    """
    n, m = codes.shape
    n_abstained[:] = 0
    for top in range(0, n, TILE_ROWS):
        bottom = min(n, top + TILE_ROWS)
        for left in range(0, m, TILE_COLUMNS):
            for j in range(left, min(m, left + TILE_COLUMNS)):
                missing = 0
                for first in range(top, bottom, 8):
                    bits = 0
                    for i in range(first, min(bottom, first + 8)):
                        code = codes[i, j]
                        columns[j, i] = code
                        bits |= (code != -1) << (i - first)
                        missing += code == -1
                    validity[j, first // 8] = bits
                n_abstained[j] += missing


@kernel
def count_codes(flat):
    """Return how many codes are 1, and how many are −1."""
    ones, abstained = 0, 0
    for i in range(flat.shape[0]):
        ones += flat[i] == 1
        abstained += flat[i] == -1
    return ones, abstained


@kernel
def hash_numbers(numbers, hashes):
    """Two 64-bit hashes of each whole number (the finalizer of splitmix64)."""
    for i in range(numbers.shape[0]):
        first = _mix(np.uint64(numbers[i]))
        hashes[i, 0] = first
        hashes[i, 1] = _mix(first ^ np.uint64(0xD6E8FEB86659FD93))


@kernel
def hash_texts(offsets, text, hashes):
    """Two 64-bit hashes of each text: text i is text[offsets[i] : offsets[i + 1]], taken eight bytes at a time."""
    for i in range(offsets.shape[0] - 1):
        start, end = offsets[i], offsets[i + 1]
        first, second = np.uint64(end - start), np.uint64(0xD6E8FEB86659FD93)
        at = start
        while at < end:
            word = np.uint64(0)
            for k in range(min(8, end - at)):
                word |= np.uint64(text[at + k]) << np.uint64(8 * k)
            first = _mix(first ^ word)
            second = _mix(second + word * np.uint64(0x9E3779B97F4A7C15))
            at += 8
        hashes[i, 0] = _mix(first)
        hashes[i, 1] = _mix(second)


@kernel
def _mix(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
