"""Rows of a sparse matrix as rows of a narrow dense one, and back.

A packed row holds the stored entries of one sparse row, in order, then padding. Labels that are not stored have
probability 0 and are answered 0 at no risk, so padding stands for all of them.
"""

from abstain.kernels import kernel


@kernel
def pack(indptr, data, rows, padding, packed):
    width = packed.shape[1]
    for i in range(rows.shape[0]):
        first = indptr[rows[i]]
        stored = indptr[rows[i] + 1] - first
        for j in range(width):
            packed[i, j] = data[first + j] if j < stored else padding


@kernel
def unpack(indptr, packed, rows, data):
    for i in range(rows.shape[0]):
        first = indptr[rows[i]]
        for j in range(indptr[rows[i] + 1] - first):
            data[first + j] = packed[i, j]


@kernel
def count_kept(indptr, data, everything, n_columns, kept):
    """How many entries each row of the result stores: the non-zero ones, or all columns where `everything` says so."""
    kept[0] = 0
    for i in range(indptr.shape[0] - 1):
        count = n_columns if everything[i] else 0
        if not everything[i]:
            for j in range(indptr[i], indptr[i + 1]):
                count += data[j] != 0
        kept[i + 1] = kept[i] + count


@kernel
def keep_nonzero(indptr, indices, data, everything, n_columns, kept, kept_indices, kept_data):
    """The rows that `count_kept` counted; a row of everything is −1 throughout."""
    for i in range(indptr.shape[0] - 1):
        at = kept[i]
        if everything[i]:
            for j in range(n_columns):
                kept_indices[at + j] = j
                kept_data[at + j] = -1
        else:
            for j in range(indptr[i], indptr[i + 1]):
                if data[j] != 0:
                    kept_indices[at] = indices[j]
                    kept_data[at] = data[j]
                    at += 1


@kernel
def lift(union_indptr, union_indices, indptr, indices, data, lifted):
    """The entries of one sparse matrix at the places of a larger pattern; where it stores nothing, `lifted` is kept.

    Invariants: columns increase within each row, and every place of the matrix is in the pattern.
    """
    for i in range(indptr.shape[0] - 1):
        at = union_indptr[i]
        for j in range(indptr[i], indptr[i + 1]):
            while union_indices[at] != indices[j]:
                at += 1
            lifted[at] = data[j]


@kernel
def lift_positions(union_indptr, union_indices, indptr, indices, data, lifted):
    """Like `lift`, for positions: labels that are not stored follow the stored ones that are ranked, by label."""
    for i in range(indptr.shape[0] - 1):
        n_ranked = 0
        for j in range(indptr[i], indptr[i + 1]):
            n_ranked += data[j] >= 0
        j = indptr[i]
        for at in range(union_indptr[i], union_indptr[i + 1]):
            while j < indptr[i + 1] and indices[j] < union_indices[at]:
                j += 1
            if j < indptr[i + 1] and indices[j] == union_indices[at]:
                lifted[at] = data[j]
            else:
                lifted[at] = n_ranked + union_indices[at] - (j - indptr[i])
