"""Histograms of integer keys."""

from abstain._utils.compilation import kernel


@kernel
def fill_bins(keys, sizes, lowest, bins):
    """Add the size of each key to bins[key − lowest]; keys below the lowest go to the first bin.

    Returns the greatest key. Keys beyond the last bin are not counted: the caller compares the greatest key with the
    number of bins. sizes has one number for all keys or one for each.
    """
    greatest = lowest
    for i in range(keys.shape[0]):
        key = max(keys[i], lowest)
        greatest = max(greatest, key)
        if key - lowest < bins.shape[0]:
            bins[key - lowest] += sizes[i if sizes.shape[0] > 1 else 0]
    return greatest
