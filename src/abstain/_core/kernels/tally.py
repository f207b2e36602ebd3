"""Answers, counted."""

from abstain._utils.compilation import kernel


@kernel
def count_open(codes, counts):
    """How many codes of each row are −1."""
    n, m = codes.shape
    for i in range(n):
        count = 0
        for j in range(m):
            count += codes[i, j] == -1
        counts[i] = count


@kernel
def tally(truth, codes, is_error, hits, false_alarms, misses, caught):
    """For each row: relevant labels answered 1, irrelevant ones answered 1, relevant ones answered 0, errors left open.

    Invariants: truth and is_error are 0 or 1; codes are 1, 0 or −1. is_error marks the errors of another prediction.
    """
    n, m = codes.shape
    for i in range(n):
        hit = alarm = miss = open_error = 0
        for j in range(m):
            relevant, code = truth[i, j], codes[i, j]
            hit += code == 1 and relevant == 1
            alarm += code == 1 and relevant == 0
            miss += code == 0 and relevant == 1
            open_error += code == -1 and is_error[i, j]
        hits[i], false_alarms[i], misses[i], caught[i] = hit, alarm, miss, open_error
