"""Positive numbers, counted in bins."""

from abstain.kernels import kernel


@kernel
def fill_bins(keys, sizes, first, lowest, page_of, n_low, bins):
    """Count the keys from the first one on, each as often as its size; small keys go to the lowest bin.

    A key is counted in bins[page_of[key >> n_low], its last n_low bits]. Returns where the next key is whose page is
    not there (page_of is −1), or how many keys there are. sizes has one number for all keys or one for each.
    """
    inside = (1 << n_low) - 1
    for i in range(first, keys.shape[0]):
        key = max(keys[i], lowest)
        page = page_of[key >> n_low]
        if page < 0:
            return i
        bins[page, key & inside] += sizes[i if sizes.shape[0] > 1 else 0]
    return keys.shape[0]
