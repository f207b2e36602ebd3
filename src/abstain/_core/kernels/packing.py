"""Rows of a sparse matrix as rows of a narrow dense one, and back.

A packed row holds the stored entries of one sparse row, in order, then padding. Labels that are not stored have
probability 0 and are answered 0 at no risk, so padding stands for all of them. Columns increase within each row.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.kernels.codes import ABSTAIN
from abstain._utils.compilation import kernel


class CsrArrays(NamedTuple):
    """The arrays of a sparse matrix in CSR format: entries indptr[i] to indptr[i + 1] belong to row i."""

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    data: NDArray[Any]

    @classmethod
    def of(cls, matrix: Any) -> "CsrArrays":
        """Return the arrays of a scipy CSR array."""
        return cls(matrix.indptr, matrix.indices, matrix.data)


class PackedPair(NamedTuple):
    """Rows of two sparse matrices, packed side by side: the column of each entry, and what each matrix stores there."""

    columns: NDArray[np.int64]
    left: NDArray[Any]
    right: NDArray[Any]


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
def count_kept(indptr, mark, is_all_abstained, n_columns, rows, kept):
    """kept[i + 1] = how many entries row i stores in the result: those with a mark, or all if it abstains on all.

    For the rows from rows[0] to rows[1].
    """
    for i in range(rows[0], rows[1]):
        count = 0
        for j in range(indptr[i], indptr[i + 1]):
            count += mark[j] != 0
        kept[i + 1] = n_columns if is_all_abstained[i] else count


@kernel
def keep_marked(source, mark, is_all_abstained, rows, kept):
    """Write the rows from rows[0] to rows[1] that `count_kept` has counted, once the counts are added up."""
    for i in range(rows[0], rows[1]):
        at, end = kept.indptr[i], kept.indptr[i + 1]
        if is_all_abstained[i]:
            for j in range(end - at):
                kept.indices[at + j] = j
                kept.data[at + j] = ABSTAIN
        else:
            j = source.indptr[i]
            while at < end:  # what has no mark is overwritten by the next one
                kept.indices[at] = source.indices[j]
                kept.data[at] = source.data[j]
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
def replace_rows(source, rows, other, out):
    """Write a sparse matrix with some of its rows taken from another.

    Invariants: rows increase; out.indptr is that of the result.
    """
    k = 0
    for i in range(source.indptr.shape[0] - 1):
        at = out.indptr[i]
        if k < rows.shape[0] and rows[k] == i:
            for j in range(other.indptr[k], other.indptr[k + 1]):
                out.indices[at], out.data[at] = other.indices[j], other.data[j]
                at += 1
            k += 1
        else:
            for j in range(source.indptr[i], source.indptr[i + 1]):
                out.indices[at], out.data[at] = source.indices[j], source.data[j]
                at += 1


@kernel
def overlay(source, other, out):
    """Write a sparse matrix, with the entries of another one instead where that stores any.

    Invariants: out.indptr adds up what `count_together` counts.
    """
    for i in range(source.indptr.shape[0] - 1):
        j, end = source.indptr[i], source.indptr[i + 1]
        k, other_end = other.indptr[i], other.indptr[i + 1]
        for at in range(out.indptr[i], out.indptr[i + 1]):
            if k < other_end and (j == end or other.indices[k] <= source.indices[j]):
                out.indices[at], out.data[at] = other.indices[k], other.data[k]
                j += j < end and source.indices[j] == other.indices[k]
                k += 1
            else:
                out.indices[at], out.data[at] = source.indices[j], source.data[j]
                j += 1


@kernel
def look_up(indptr, indices, other, found):
    """found[j] = what another sparse matrix stores at entry j of the first; unchanged where it stores nothing."""
    for i in range(indptr.shape[0] - 1):
        k, end = other.indptr[i], other.indptr[i + 1]
        for j in range(indptr[i], indptr[i + 1]):
            while k < end and other.indices[k] < indices[j]:
                k += 1
            if k < end and other.indices[k] == indices[j]:
                found[j] = other.data[k]


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
def pack_together(left, right, ranked, rows, out):
    """Pack some rows of two sparse matrices so that entry (i, j) of both is about the same column.

    What one of them does not store is left as it is; if the right one holds positions (`ranked`), a label that it does
    not store has a position too: see `lift_positions`. Invariants: the packed arrays (a `PackedPair`) are as wide as
    `count_together` says.
    """
    for i in range(rows.shape[0]):
        j, left_end = left.indptr[rows[i]], left.indptr[rows[i] + 1]
        first, right_end = right.indptr[rows[i]], right.indptr[rows[i] + 1]
        n_ranked = 0
        if ranked:
            for k in range(first, right_end):
                n_ranked += right.data[k] >= 0
        at, k = 0, first
        while j < left_end or k < right_end:
            in_left = j < left_end and (k == right_end or left.indices[j] <= right.indices[k])
            in_right = k < right_end and (j == left_end or right.indices[k] <= left.indices[j])
            out.columns[i, at] = left.indices[j] if in_left else right.indices[k]
            if in_left:
                out.left[i, at] = left.data[j]
                j += 1
            if in_right:
                out.right[i, at] = right.data[k]
                k += 1
            elif ranked:
                out.right[i, at] = n_ranked + out.columns[i, at] - (k - first)
            at += 1


@kernel
def lift_positions(union_indptr, union_indices, source, positions):
    """Write positions of more labels than are stored: the others follow the stored ones that are ranked, by label."""
    for i in range(source.indptr.shape[0] - 1):
        n_ranked, end = 0, source.indptr[i + 1]
        for j in range(source.indptr[i], end):
            n_ranked += source.data[j] >= 0
        j = source.indptr[i]
        for at in range(union_indptr[i], union_indptr[i + 1]):
            while j < end and source.indices[j] < union_indices[at]:
                j += 1
            if j < end and source.indices[j] == union_indices[at]:
                positions[at] = source.data[j]
            else:
                positions[at] = n_ranked + union_indices[at] - (j - source.indptr[i])
