"""The checks that probabilities pass: each is in range, and each interval begins at its lower end."""

from abstain._utils.compilation import kernel


@kernel
def all_inside(flat, low, high):
    """Whether low ≤ x ≤ high for every x; false if any is NaN."""
    outside = 0
    for i in range(flat.shape[0]):
        outside += not (low <= flat[i] <= high)
    return outside == 0


@kernel
def all_ordered(low, high, slack):
    """Whether low ≤ high + slack for every pair."""
    crossed = 0
    for i in range(low.shape[0]):
        crossed += low[i] > high[i] + slack
    return crossed == 0
