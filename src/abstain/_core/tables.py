"""Reads tables: any array-like, data frame, sparse matrix or list of records becomes a 2-D array or CSR, and `Axes`.

Nothing is copied that NumPy can view.
"""

import os
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.records import is_records, read_records
from abstain._utils.errors import InvalidLabels, quoted
from abstain._utils.extras import optional
from abstain._utils.frames import is_frame, open_frame
from abstain._utils.wording import plural

BFLOAT16_EPSILON = 2.0**-7  # the distance from 1 to the next greater number
Matrix: TypeAlias = Any  # NDArray | sparse.csr_array; a union would need a cast after each `sparse.issparse`


@dataclass(frozen=True)
class Axes:
    """The names of the rows and labels of a table, and the library of the data frame they came in."""

    label_names: tuple[Hashable, ...] | None = None
    index: Any = None
    library: str = "pandas"
    nan_is_missing: bool = False
    """Whether NaN is a missing cell, as it is in frames and files; in a plain array it is a mistake."""
    first_row: int = 0
    """The number of the first row, where these are some rows of a larger table."""
    within: str = ""
    """What the rows are counted in, for example "partition 3", if not in the whole table."""
    rounding: float = 0.0
    """How far numbers may have been rounded, where they were of a coarser type than the matrix has now."""

    def row(self, i: int) -> str:
        """Return how an error message names row i."""
        number = f"row {self.first_row + i}" + (f" of {self.within}" if self.within else "")
        return number if self.index is None else f"{number} (index {quoted(self.index[i])})"

    def label(self, j: int) -> str:
        """Return how an error message names column j."""
        return f"column {j}" if self.label_names is None else f"column {j} (label {quoted(self.label_names[j])})"

    def names(self, n_labels: int, given: Iterable[Hashable] | None = None) -> list[Hashable]:
        """Return names for the labels: those given, those that came with the table, or numbers."""
        if given is None:
            return list(range(n_labels) if self.label_names is None else self.label_names)
        if isinstance(given, str | bytes) or not isinstance(given, Iterable):
            raise InvalidLabels(f"label_names is {quoted(given)}; expected one name for each of {n_labels} labels")
        names = list(given)
        if len(names) != n_labels:
            raise InvalidLabels(f"label_names has {len(names)} names for {n_labels} labels")
        return names

    def require_labels(self, names: tuple[Hashable, ...] | None, what: str) -> None:
        """Raise `InvalidLabels` if both sides name their labels and do so differently."""
        ours = self.label_names
        if names is None or ours is None or names == ours or len(names) != len(ours):
            return
        j = next(j for j in range(len(ours)) if names[j] != ours[j])
        hint = "the same labels in another order" if set(names) == set(ours) else "other labels"
        raise InvalidLabels(f"{what} has {hint}: column {j} is {quoted(names[j])}, expected {quoted(ours[j])}")

    def require_same(self, other: "Axes", what: str) -> None:
        """Raise `InvalidLabels` if two tables name their labels or their rows differently."""
        self.require_labels(other.label_names, what)
        if self.index is None or other.index is None or _same_rows(self.index, other.index):
            return
        differs = np.flatnonzero(np.asarray(self.index != other.index))
        i = int(differs[0]) if len(differs) else 0
        hint = "the same rows in another order" if set(self.index) == set(other.index) else "other rows"
        raise InvalidLabels(f"{what} has {hint}: row {i} is {quoted(other.index[i])}, expected {quoted(self.index[i])}")


@dataclass(init=False, frozen=True, eq=False, repr=False)
class Table:
    """A table of numbers with names of its labels and rows.

    It is accepted wherever a data frame is, and its names are kept; unlike a frame it can be sparse.

    Parameters
    ----------
    values : array-like, data frame or sparse matrix of shape (n_rows, n_labels)
        Numbers: they become a NumPy array, or CSR if they are sparse.
    label_names : sequence of n_labels names, optional
        By default those of a data frame.
    index : sequence of n_rows names, optional
        By default those of a data frame.

    Examples
    --------
    >>> import abstain
    >>> from abstain import Table
    >>> table = Table([[0.9, 0.4], [0.2, 0.7]], ["sky", "sea"], ["a.png", "b.png"])
    >>> table
    Table of 2 rows × 2 labels (float64): 'sky', 'sea'; rows 'a.png', 'b.png'
    >>> abstain.decide(table, penalty=0.25)
    PartialPrediction of 2 instances × 2 labels: 50.0% abstained, expected loss 0.4
           sky  sea
    a.png    1    ?
    b.png    0    ?
    """

    values: Matrix
    label_names: tuple[Hashable, ...] | None
    index: Any

    def __init__(self, values: Any, label_names: Sequence[Hashable] | None = None, index: Any = None) -> None:
        matrix, axes = read_matrix(values, "table", InvalidLabels)
        names = axes.label_names if label_names is None else axes.names(matrix.shape[1], label_names)
        index = axes.index if index is None else index
        if index is not None and not hasattr(index, "equals"):  # a pandas Index stays what it is
            index = np.fromiter(index, dtype=object, count=len(index))
        if index is not None and len(index) != matrix.shape[0]:
            raise InvalidLabels(f"table: index has {len(index)} names for {matrix.shape[0]} rows")
        object.__setattr__(self, "values", matrix)
        object.__setattr__(self, "label_names", None if names is None else tuple(names))
        object.__setattr__(self, "index", index)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of labels."""
        n, m = self.values.shape
        return n, m

    def __len__(self) -> int:
        return self.shape[0]

    def to_frame(self) -> Any:
        """Return a pandas data frame of the same numbers and names, with sparse columns if the table is sparse."""
        pd = optional("pandas", "to_frame needs pandas")
        make = pd.DataFrame.sparse.from_spmatrix if sparse.issparse(self.values) else pd.DataFrame
        columns = None if self.label_names is None else pd.Index(self.label_names)
        return make(self.values, index=self.index, columns=columns)

    def __repr__(self) -> str:
        n, m = self.shape
        kind = f"{'sparse ' if sparse.issparse(self.values) else ''}{self.values.dtype}"
        size = f"Table of {plural(n, 'row')} × {plural(m, 'label')} ({kind})"
        labels = "" if self.label_names is None else f": {_some(self.label_names)}"
        rows = "" if self.index is None or n == 0 else f"; rows {_some(self.index)}"
        return size + labels + rows


@dataclass(frozen=True, eq=False)
class RowSlice:
    """Some rows of a larger table, accepted wherever a table is; errors number them as in the whole table.

    Examples
    --------
    >>> import abstain
    >>> from abstain._core.tables import RowSlice
    >>> abstain.decide(RowSlice([[0.2, 0.7], [0.1, 1.7]], first_row=5000))
    Traceback (most recent call last):
    abstain.InvalidProbabilities: probabilities: row 5001, column 1 is 1.7; a probability is a number from 0 to 1
    """

    table: Any
    first_row: int = 0
    """The number of its first row."""
    within: str = ""
    """What its rows are counted in, for example "partition 3", if not in the whole table."""


def csr_in_order(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[np.int64], shape: tuple[int, int]
) -> sparse.csr_array:
    """Return a CSR array whose columns are known to increase within each row."""
    if indptr[-1] <= np.iinfo(indices.dtype).max:  # scipy wants one type for both
        indptr = indptr.astype(indices.dtype)
    matrix = sparse.csr_array((data, indices, indptr), shape)
    matrix.has_canonical_format = True
    return matrix


def dense(matrix: Matrix, what: str = "the table") -> NDArray[Any]:
    """Return a table as a C-contiguous array; raise `MemoryError` if a sparse one is too large for that."""
    if not sparse.issparse(matrix):
        return np.ascontiguousarray(matrix)
    require_memory(matrix.shape, matrix.dtype, what)
    array: NDArray[Any] = matrix.toarray()
    return array


def require_memory(shape: tuple[int, int], dtype: np.dtype[Any], what: str) -> None:
    """Raise `MemoryError` if a sparse table would take more than half of this machine's memory once it is dense."""
    n, m = shape
    size = n * m * dtype.itemsize
    if hasattr(os, "sysconf") and size > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2:
        raise MemoryError(
            f"{what}: {n} × {m} would take {size / 1e9:,.0f} GB if every label was stored, too much for this machine; "
            "what is sparse must stay so, or fewer rows or labels be taken"
        )


def _some(names: Any) -> str:
    return ", ".join(repr(name) for name in names[:3]) + (", …" if len(names) > 3 else "")


def _same_rows(ours: Any, theirs: Any) -> bool:
    if hasattr(ours, "equals") and hasattr(theirs, "equals"):
        return bool(ours.equals(theirs))
    return list(ours) == list(theirs)


def names_of(series: Any) -> tuple[Hashable, ...] | None:
    """Return the names in the index of a pandas Series; None if there are none, or if they are 0, 1, 2 …"""
    index = getattr(series, "index", None)
    if index is None or callable(index) or list(index) == list(range(len(index))):
        return None
    return tuple(index)


def read_matrix(table: Any, what: str, error: type[ValueError], *, records: bool = False) -> tuple[Matrix, Axes]:
    """Return any table as a 2-D array of numbers or a CSR array with sorted, unique columns, and its names.

    A vector is one row. Errors are of the given class and begin with `what`. Records are read where they are allowed:
    as scores, not as truth or answers, where what a record does not name could mean 0 or nothing.
    """
    axes = Axes()
    if isinstance(table, RowSlice):
        matrix, axes = read_matrix(table.table, what, error, records=records)
        return matrix, replace(axes, first_row=table.first_row, within=table.within)
    if isinstance(table, Table):
        return table.values, Axes(table.label_names, table.index, nan_is_missing=True)
    if sparse.issparse(table):
        return _read_sparse(table, what, error), axes
    if is_frame(table):
        table, axes = _read_frame(table, what, error)
    elif is_records(table):
        if not records:
            raise error(f"{what}: only probabilities are read from records; pass an array of numbers or a data frame")
        table, names = read_records(table, what, error)
        axes = Axes(names)
    try:
        array, rounding = as_array(table)
    except Exception as reason:
        raise error(f"{what}: cannot be read as an array ({reason}){_hint_at_list_of_labels(table)}") from reason
    if isinstance(table, np.ma.MaskedArray) and np.ma.is_masked(table):
        i, *rest = np.argwhere(np.ma.getmaskarray(table))[0]
        raise error(f"{what}: row {i}{f', column {rest[0]}' if rest else ''} is masked; every value must be there")
    if array.dtype.kind not in "fiub":
        raise error(f"{what}: expected an n × m table of numbers, got {type(table).__name__} of dtype {array.dtype}")
    if array.ndim == 1:
        array = array[np.newaxis]
    if array.ndim != 2:
        raise error(
            f"{what}: expected an n × m table or one row of m labels, got {array.ndim} dimensions {array.shape}"
            + _hint_at_list_of_labels(table)
        )
    if array.shape[1] == 0:
        raise error(f"{what}: there is no label (shape {array.shape}); at least one is needed")
    return array, replace(axes, rounding=rounding) if rounding else axes


def as_array(table: Any) -> tuple[NDArray[Any], float]:
    """Return any array-like as a NumPy array, and how far its numbers may have been rounded if NumPy lacks their type.

    Tensors of PyTorch are detached and brought to the CPU; bfloat16, of which NumPy knows nothing, becomes float32.
    """
    if isinstance(table, list | tuple) and len(table) > 0 and hasattr(table[0], "detach"):
        rows = [as_array(row) for row in table]
        return np.stack([row for row, _ in rows]), max(rounding for _, rounding in rows)
    rounding = BFLOAT16_EPSILON if str(getattr(table, "dtype", "")).endswith("bfloat16") else 0.0
    if hasattr(table, "detach") and hasattr(table, "cpu"):
        table = table.detach().cpu()
        table = table.float() if rounding else table
    array = np.asarray(table)
    return (array.astype(np.float32) if array.dtype.name == "bfloat16" else array), rounding


def shape_of_first(table: Any) -> tuple[int, ...]:
    """Return the shape of the first item of a list or tuple; () if there is none, or if it has no shape."""
    try:
        return np.shape(table[0]) if isinstance(table, list | tuple) and table else ()
    except ValueError:  # its rows are not equally long
        return ()


def _hint_at_list_of_labels(table: Any) -> str:
    """Return a hint if a table is a list of (n, 2) arrays, one per label, or of several batches, or a pair of ends."""
    shape = shape_of_first(table)
    if len(shape) != 2:
        return ""
    if isinstance(table, tuple) and len(table) == 2 and shape_of_first(table[1:]) == shape:
        return "; of lower and upper probabilities, pass abstain.Intervals(*probabilities)"
    if shape[1] > 2:
        return "; of a list with the rows of several batches, pass np.concatenate(probabilities) (or torch.cat)"
    return "; of a list with one (n, 2) array per label, pass abstain.label_probabilities(probabilities)"


def _read_sparse(table: Any, what: str, error: type[ValueError]) -> sparse.csr_array:
    if table.ndim != 2:
        raise error(f"{what}: expected an n × m sparse matrix, got {table.ndim} dimension")
    if table.shape[1] == 0:
        raise error(f"{what}: there is no label (shape {table.shape}); at least one is needed")
    if table.dtype.kind not in "fiub":
        raise error(f"{what}: expected numbers, got dtype {table.dtype}")
    matrix = sparse.csr_array(table)
    if not _columns_exist(matrix):
        raise error(f"{what}: the sparse matrix is broken: it stores a column outside 0 … {matrix.shape[1] - 1}")
    if matrix.dtype not in (np.float32, np.float64, np.int8, np.int32, np.int64, np.bool_, np.uint8):
        matrix = matrix.astype(np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _columns_exist(matrix: sparse.csr_array) -> bool:
    """Whether all stored columns exist; where they increase, only the first and the last of each row are looked at."""
    columns = matrix.indices
    if matrix.has_canonical_format:
        some = matrix.indptr[:-1] < matrix.indptr[1:]
        columns = np.append(columns[matrix.indptr[:-1][some]], columns[matrix.indptr[1:][some] - 1])
    return bool(columns.min(initial=0) == 0 and columns.max(initial=0) < matrix.shape[1])


def _read_frame(table: Any, what: str, error: type[ValueError]) -> tuple[NDArray[Any], Axes]:
    """Return the values of a data frame, missing ones as NaN, and the names of its rows and columns."""
    try:
        frame = open_frame(table)
    except TypeError as reason:
        raise error(f"{what}: {reason}") from reason
    axes = Axes(frame.columns, frame.index, frame.library, nan_is_missing=True)
    if (found := frame.first_without_numbers()) is not None:
        j, kind = found
        raise error(f"{what}: {axes.label(j)} has type {kind}, expected numbers (pass the label columns only)")
    return frame.values(), axes
