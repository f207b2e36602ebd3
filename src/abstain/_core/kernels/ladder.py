"""Label-wise decisions at many costs at once, counted."""

from abstain._core.kernels.choice import tipped
from abstain._utils.compilation import kernel


@kernel
def climb(p, truth, false_negative, false_positive, ladder, by_label, hits, false_alarms, misses, answered):
    """Add, for each instance (or label) and each cost: labels rightly 1, wrongly 1, wrongly 0, and answered at all.

    Invariants: ladder has one row of increasing costs for all labels or one row each; ``shape[0] > 1`` tells. Cost rows
    of the loss likewise. The counts are (n, k), by label (m, k). A label answered at one cost is answered at every
    higher one, so each is put where it is first answered, and then everything is summed upwards.
    """
    n, m = p.shape
    width = ladder.shape[1]
    for i in range(n):
        for j in range(m):
            costs = ladder[j if ladder.shape[0] > 1 else 0]
            if_zero = false_negative[0, j] * p[i, j]
            if_one = false_positive[0, j] * (1.0 - p[i, j])
            score = min(if_zero, if_one)
            # Halving without a branch, which would be guessed wrong every other time.
            first, left = 0, width
            while left > 1:
                half = left // 2
                first += half * (score > tipped(costs[first + half - 1], 0.0))
                left -= half
            first += score > tipped(costs[first], 0.0)
            if first == width:
                continue
            at = j if by_label else i
            answered[at, first] += 1
            if if_zero > if_one:
                hits[at, first] += truth[i, j]
                false_alarms[at, first] += 1 - truth[i, j]
            else:
                misses[at, first] += truth[i, j]
    for at in range(answered.shape[0]):
        for k in range(1, width):
            hits[at, k] += hits[at, k - 1]
            false_alarms[at, k] += false_alarms[at, k - 1]
            misses[at, k] += misses[at, k - 1]
            answered[at, k] += answered[at, k - 1]
