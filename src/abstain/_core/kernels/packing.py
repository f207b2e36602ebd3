"""Rows of a sparse matrix as rows of a narrow dense one, and back.

A packed row holds the stored entries of one sparse row, in order, then padding. Labels that are not stored have
probability 0 and are answered 0 at no risk, so padding stands for all of them. Columns increase within each row.
"""

from abstain._core.kernels.codes import ABSTAIN
from abstain._utils.compilation import kernel


@kernel
def pack(indptr, data, rows, padding, packed):
    """Copy the stored entries of some rows to the left of a dense table."""
    width = packed.shape[1]
    for i in range(rows.shape[0]):
        first = indptr[rows[i]]
        stored = indptr[rows[i] + 1] - first
        for j in range(width):
            packed[i, j] = data[first + j] if j < stored else padding


@kernel
def unpack(indptr, packed, rows, data):
    """Copy packed rows back to where their entries are stored."""
    for i in range(rows.shape[0]):
        first = indptr[rows[i]]
        for j in range(indptr[rows[i] + 1] - first):
            data[first + j] = packed[i, j]


@kernel
def count_kept(indptr, mark, is_all_abstained, n_columns, first, last, kept):
    """kept[i + 1] = how many entries row i of the result stores: those with a mark, or all if it abstains on all."""
    for i in range(first, last):
        count = 0
        for j in range(indptr[i], indptr[i + 1]):
            count += mark[j] != 0
        kept[i + 1] = n_columns if is_all_abstained[i] else count


@kernel
def keep_marked(indptr, indices, data, mark, is_all_abstained, first, last, kept, kept_indices, kept_data):
    """Write the rows that `count_kept` has counted, once the counts are added up."""
    for i in range(first, last):
        at, end = kept[i], kept[i + 1]
        if is_all_abstained[i]:
            for j in range(end - at):
                kept_indices[at + j] = j
                kept_data[at + j] = ABSTAIN
        else:
            j = indptr[i]
            while at < end:  # what has no mark is overwritten by the next one
                kept_indices[at] = indices[j]
                kept_data[at] = data[j]
                at += mark[j] != 0
                j += 1


@kernel
def count_abstained(indptr, data, counts):
    """counts[i] = the number of abstained labels in row i."""
    for i in range(indptr.shape[0] - 1):
        count = 0
        for j in range(indptr[i], indptr[i + 1]):
            count += data[j] == ABSTAIN
        counts[i] = count


@kernel
def replace_rows(indptr, indices, data, rows, new_indptr, new_indices, new_data, out_indptr, out_indices, out_data):
    """Write a sparse matrix with some of its rows taken from another.

    Invariants: rows increase; out_indptr is that of the result.
    """
    k = 0
    for i in range(indptr.shape[0] - 1):
        at = out_indptr[i]
        if k < rows.shape[0] and rows[k] == i:
            for j in range(new_indptr[k], new_indptr[k + 1]):
                out_indices[at], out_data[at] = new_indices[j], new_data[j]
                at += 1
            k += 1
        else:
            for j in range(indptr[i], indptr[i + 1]):
                out_indices[at], out_data[at] = indices[j], data[j]
                at += 1


@kernel
def overlay(indptr, indices, data, new_indptr, new_indices, new_data, out_indptr, out_indices, out_data):
    """Write a sparse matrix, with the entries of another one instead where that stores any.

    Invariants: out_indptr adds up what `count_together` counts.
    """
    for i in range(indptr.shape[0] - 1):
        j, end, k, new_end = indptr[i], indptr[i + 1], new_indptr[i], new_indptr[i + 1]
        for at in range(out_indptr[i], out_indptr[i + 1]):
            if k < new_end and (j == end or new_indices[k] <= indices[j]):
                out_indices[at], out_data[at] = new_indices[k], new_data[k]
                j += j < end and indices[j] == new_indices[k]
                k += 1
            else:
                out_indices[at], out_data[at] = indices[j], data[j]
                j += 1


@kernel
def look_up(indptr, indices, other_indptr, other_indices, other_data, found):
    """found[j] = what another sparse matrix stores at entry j of the first; unchanged where it stores nothing."""
    for i in range(indptr.shape[0] - 1):
        k, end = other_indptr[i], other_indptr[i + 1]
        for j in range(indptr[i], indptr[i + 1]):
            while k < end and other_indices[k] < indices[j]:
                k += 1
            if k < end and other_indices[k] == indices[j]:
                found[j] = other_data[k]


@kernel
def count_together(left_indptr, left_indices, right_indptr, right_indices, counts):
    """counts[i] = the number of columns that row i of either of two sparse matrices stores."""
    for i in range(counts.shape[0]):
        j, left_end = left_indptr[i], left_indptr[i + 1]
        k, right_end = right_indptr[i], right_indptr[i + 1]
        count = 0
        while j < left_end and k < right_end:
            left, right = left_indices[j], right_indices[k]
            j += left <= right
            k += right <= left
            count += 1
        counts[i] = count + (left_end - j) + (right_end - k)


@kernel
def pack_together(
    left_indptr, left_indices, left_data, right_indptr, right_indices, right_data, ranked, rows, columns, left, right
):
    """Pack some rows of two sparse matrices so that entry (i, j) of both is about the same column.

    What one of them does not store is left as it is; if the right one holds positions (`ranked`), a label that it does
    not store has a position too: see `lift_positions`. Invariants: the packed arrays are as wide as `count_together`
    says.
    """
    for i in range(rows.shape[0]):
        j, left_end = left_indptr[rows[i]], left_indptr[rows[i] + 1]
        first, right_end = right_indptr[rows[i]], right_indptr[rows[i] + 1]
        n_ranked = 0
        if ranked:
            for k in range(first, right_end):
                n_ranked += right_data[k] >= 0
        at, k = 0, first
        while j < left_end or k < right_end:
            in_left = j < left_end and (k == right_end or left_indices[j] <= right_indices[k])
            in_right = k < right_end and (j == left_end or right_indices[k] <= left_indices[j])
            columns[i, at] = left_indices[j] if in_left else right_indices[k]
            if in_left:
                left[i, at] = left_data[j]
                j += 1
            if in_right:
                right[i, at] = right_data[k]
                k += 1
            elif ranked:
                right[i, at] = n_ranked + columns[i, at] - (k - first)
            at += 1


@kernel
def lift_positions(union_indptr, union_indices, indptr, indices, data, positions):
    """Write positions of more labels than are stored: the others follow the stored ones that are ranked, by label."""
    for i in range(indptr.shape[0] - 1):
        n_ranked = 0
        for j in range(indptr[i], indptr[i + 1]):
            n_ranked += data[j] >= 0
        j = indptr[i]
        for at in range(union_indptr[i], union_indptr[i + 1]):
            while j < indptr[i + 1] and indices[j] < union_indices[at]:
                j += 1
            if j < indptr[i + 1] and indices[j] == union_indices[at]:
                positions[at] = data[j]
            else:
                positions[at] = n_ranked + union_indices[at] - (j - indptr[i])
