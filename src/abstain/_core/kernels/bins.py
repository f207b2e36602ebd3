"""Positive numbers, counted in bins."""

from abstain._utils.compilation import kernel


@kernel
def fill_bins(keys, sizes, lowest, bins):
    """Count each key in bins[key − lowest], as often as its size; keys below the lowest go to the first bin.

    Returns the greatest key; if there is no bin for it, it was not counted, nor were others like it. sizes has one
    number for all keys or one for each.
    """
    greatest = lowest
    for i in range(keys.shape[0]):
        key = max(keys[i], lowest)
        greatest = max(greatest, key)
        if key - lowest < bins.shape[0]:
            bins[key - lowest] += sizes[i if sizes.shape[0] > 1 else 0]
    return greatest
