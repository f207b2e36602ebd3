"""Inner loops of learners."""

from abstain._utils.compilation import kernel


@kernel
def add_votes(leaves, first, rows, shares, indptr, indices, votes):
    """Add one tree's votes for each instance: the shares of the training rows in its leaf, for their labels.

    The rows of leaf k are rows[first[k]] … rows[first[k + 1] − 1]; the relevant labels of a row are in CSR form.
    """
    for i in range(len(leaves)):
        for k in range(first[leaves[i]], first[leaves[i] + 1]):
            row = rows[k]
            for label in indices[indptr[row] : indptr[row + 1]]:
                votes[i, label] += shares[k]
