"""The range check that every probability passes."""

from abstain._utils.compilation import kernel


@kernel
def all_inside(flat, low, high):
    """Whether low ≤ x ≤ high for every x; false if any is NaN."""
    outside = 0
    for i in range(flat.shape[0]):
        outside += not (low <= flat[i] <= high)
    return outside == 0
