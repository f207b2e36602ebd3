"""Label-wise decisions at many costs at once, counted."""

from abstain._core.kernels.choice import tipped
from abstain._utils.compilation import kernel


@kernel
def count_along_costs(p, truth, error_costs, grid, by_label, counts):
    """Add, for each instance (or label) and each cost, how many answers are right and wrong.

    The four counts are true positives, false positives, false negatives and answered labels.

    Invariants: grid has one row of increasing costs for all labels or one row each; ``shape[0] > 1`` tells. error_costs
    (see `labelwise.ErrorCosts`) has one row. counts is (4, n, k), by label (4, m, k). A label answered at one cost is
    answered at every higher one, so each is put where it is first answered, and then everything is summed upwards.
    """
    n, m = p.shape
    width = grid.shape[1]
    true_positives, false_positives, false_negatives, answered = counts[0], counts[1], counts[2], counts[3]
    for i in range(n):
        for j in range(m):
            costs = grid[j if grid.shape[0] > 1 else 0]
            if_zero = error_costs.false_negative[0, j] * p[i, j]
            if_one = error_costs.false_positive[0, j] * (1.0 - p[i, j])
            score = min(if_zero, if_one)
            # Bisection without a branch, which would be predicted wrongly every other time.
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
                true_positives[at, first] += truth[i, j]
                false_positives[at, first] += 1 - truth[i, j]
            else:
                false_negatives[at, first] += truth[i, j]
    for at in range(answered.shape[0]):
        for k in range(1, width):
            true_positives[at, k] += true_positives[at, k - 1]
            false_positives[at, k] += false_positives[at, k - 1]
            false_negatives[at, k] += false_negatives[at, k - 1]
            answered[at, k] += answered[at, k - 1]
