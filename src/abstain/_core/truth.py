"""The truth, and tables (truth or probabilities) aligned with a prediction: the same rows, the same labels."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.blocks import Block, similar_rows
from abstain._core.kernels import packing
from abstain._core.kernels.bounds import Bounds
from abstain._core.prediction import PartialRanking, Prediction, first_other_code
from abstain._core.probabilities import Probabilities
from abstain._core.records import is_records
from abstain._core.tables import Axes, Matrix, RowSlice, Table, dense, read_matrix
from abstain._utils.errors import InvalidLabels, InvalidParameter, quoted
from abstain._utils.frames import Frame, is_frame, open_frame


class NamedTable(Protocol):
    """A table that truth is compared with."""

    @property
    def matrix(self) -> Matrix:
        """The numbers."""

    @property
    def axes(self) -> Axes:
        """The names of rows and labels."""


class Truth(NamedTuple):
    """The truth as a table, and which of its entries nobody has looked at."""

    values: Matrix
    """int8, n × m, dense or CSR: 0 and 1; an unknown entry is 0 (and is not stored in CSR)."""
    unknown: Matrix | None
    """bool, n × m, dense or CSR as `values` is: True where the truth is unknown; None if all of it is known."""
    axes: Axes
    """The names of the rows and labels."""

    def first_unknown(self) -> str:
        """Return how an error message names the first unknown entry; there must be one."""
        assert self.unknown is not None
        rows, columns = self.unknown.nonzero()
        return f"y_true: {self.axes.row(int(rows[0]))}, {self.axes.label(int(columns[0]))}"


def read_truth(y_true: Any, missing_values: float | None = None, *, refusal: str = "") -> Truth:
    """Return the truth, of which entries equal to `missing_values` (None: no entry) are unknown.

    `refusal` says, where unknown entries are not accepted, why that is so and what to do instead.
    """
    sign = _read_missing_values(missing_values)
    matrix, axes = read_matrix(_with_nan(y_true), "y_true", InvalidLabels)
    matrix, unknown = (matrix, None) if sign is None else _split_unknown(matrix, sign)
    if (found := first_other_code(matrix, (0, 1))) is not None:
        i, j, value = found
        message = f"y_true: {axes.row(i)}, {axes.label(j)} is {value}; the truth is 0 or 1"
        if sign is None and (np.isnan(value) or value == -1):
            keyword = "np.nan" if np.isnan(value) else "-1"
            message += f"; {refusal or f'pass missing_values={keyword} if that stands for an unknown label'}"
        raise InvalidLabels(message)
    return Truth(matrix.astype(np.int8, copy=False), unknown, axes)


def read_truth_for(table: Probabilities, y_true: Any, *, refusal: str = "") -> Matrix:
    """Return the truth, dense or CSR, all of it known; raise `InvalidLabels` if it does not fit the probabilities."""
    truth = read_truth(y_true, refusal=refusal)
    _require_shape_of(table, truth.values.shape, truth.axes, "y_true")
    return truth.values


def read_partial_truth(y_true: Any, missing_values: float | None, table: NamedTable) -> Truth:
    """Return the truth, some of it perhaps unknown; raise `InvalidLabels` if it does not fit the probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain._core.probabilities import Probabilities
    >>> from abstain._core.truth import read_partial_truth
    >>> truth = read_partial_truth([[1, None], [0, 1]], np.nan, Probabilities([[0.9, 0.2], [0.1, 0.7]]))
    >>> truth.values
    array([[1, 0],
           [0, 1]], dtype=int8)
    >>> truth.unknown
    array([[False,  True],
           [False, False]])
    """
    truth = read_truth(y_true, missing_values)
    _require_shape_of(table, truth.values.shape, truth.axes, "y_true")
    return truth


def read_sample_weight(sample_weight: Any, table: NamedTable) -> NDArray[np.float64] | None:
    """Return the weights of the rows, (n,), or of the entries, (n, m), as they were given; None if they were not.

    They are finite, none is negative, and at least one is positive.
    """
    if sample_weight is None:
        return None
    n, m = table.matrix.shape
    is_vector = not sparse.issparse(sample_weight) and not is_frame(sample_weight) and np.ndim(sample_weight) == 1
    matrix, axes = read_matrix(sample_weight, "sample_weight", InvalidParameter)
    if is_vector:
        index = getattr(sample_weight, "index", None)  # a list has a method of that name
        matrix, axes = matrix.T, Axes(index=index if hasattr(index, "equals") else None)
    if matrix.shape != (n, 1 if is_vector else m):
        shape = matrix.shape[:1] if is_vector else matrix.shape
        raise InvalidParameter(f"sample_weight has shape {shape}; expected ({n},) or ({n}, {m})")
    table.axes.require_same(axes, "sample_weight")
    weights = dense(matrix, "sample_weight").astype(np.float64, copy=False)
    if len(bad := np.argwhere(~((weights >= 0) & np.isfinite(weights)))):
        i, j = map(int, bad[0])
        place = table.axes.row(i) + ("" if is_vector else f", {table.axes.label(j)}")
        raise InvalidParameter(f"sample_weight: {place} is {weights[i, j]}; a weight is a finite number ≥ 0")
    if n > 0 and not weights.any():
        raise InvalidParameter("sample_weight: all weights are 0; there is nothing to measure or to learn from")
    return weights[:, 0] if is_vector else weights


def require_same_table(axes: Axes, matrix: Matrix, partial: Prediction, what: str) -> None:
    """Raise `InvalidLabels` if a table is not about the same rows and labels as a prediction."""
    if matrix.shape != partial.shape:
        raise InvalidLabels(f"{what} has shape {matrix.shape}; the prediction has {partial.shape}")
    partial.axes.require_same(axes, what)


def differ(truth: Matrix, labels: Matrix) -> Matrix:
    """Return where two tables differ: dense, or CSR if either is."""
    if sparse.issparse(truth) or sparse.issparse(labels):
        return sparse.csr_array(truth) != sparse.csr_array(labels)
    return truth != labels


@dataclass(frozen=True)
class SharedBlock(Block):
    """Rows of two sparse matrices, packed together: the labels that either of them stores."""

    labels: NDArray[np.int64]

    def columns(self) -> NDArray[np.int64]:
        """Return the label of each packed entry."""
        return self.labels


def aligned_blocks(
    table: Matrix, partial: Prediction, entries: int
) -> Iterator[tuple[Block, NDArray[Any], NDArray[Any]]]:
    """Yield blocks with the values of a table and the codes of a prediction; sparse ones are packed together."""
    n, m = partial.shape
    if not sparse.issparse(table) and not sparse.issparse(partial.codes):
        height = max(1, entries // m)
        for first in range(0, n, height):
            block = Block(slice(first, first + height), (min(height, n - first), m), table)
            yield block, np.ascontiguousarray(table[block.rows]), np.ascontiguousarray(partial.codes[block.rows])
        return
    ranked = isinstance(partial, PartialRanking)
    left = sparse.csr_array(table.astype(np.float32) if table.dtype == np.float16 else table)
    right = (
        _all_stored(partial.codes) if ranked and not sparse.issparse(partial.codes) else sparse.csr_array(partial.codes)
    )
    lengths = np.empty(n, np.int64)
    packing.count_together(left.indptr, left.indices, right.indptr, right.indices, lengths)
    for rows, shape in similar_rows(lengths, m, entries):
        values, codes = np.zeros(shape, left.dtype), np.full(shape, m if ranked else 0, right.dtype)
        labels = np.zeros(shape, np.int64)
        out = packing.PackedPair(labels, values, codes)
        packing.pack_together(packing.CsrArrays.of(left), packing.CsrArrays.of(right), ranked, rows, out)
        yield SharedBlock(rows, shape, left, labels), values, codes


def aligned_intervals(ends: Bounds, partial: Prediction, entries: int) -> Iterator[tuple[Block, Bounds, NDArray[Any]]]:
    """Yield blocks with intervals and the codes of a prediction; sparse ends are stored at the same places."""
    lower, upper = (aligned_blocks(end, partial, entries) for end in ends)
    for (block, low, codes), (_, high, _) in zip(lower, upper, strict=True):
        yield block, Bounds(low.astype(np.float64), high.astype(np.float64)), codes


def _all_stored(codes: NDArray[Any]) -> sparse.csr_array:
    """Return a CSR array that stores every entry, zeros included."""
    n, m = codes.shape
    return sparse.csr_array((codes.ravel(), np.tile(np.arange(m), n), np.arange(n + 1) * m), (n, m))


def _require_shape_of(table: NamedTable, shape: tuple[int, int], axes: Axes, what: str) -> None:
    if shape != table.matrix.shape:
        raise InvalidLabels(f"{what} has shape {shape}; the probabilities have {table.matrix.shape}")
    table.axes.require_same(axes, what)


def _read_missing_values(missing_values: Any) -> float | None:
    """Return None, NaN or −1; raise `InvalidParameter` for anything else."""
    if missing_values is None:
        return None
    if isinstance(missing_values, int | float | np.number) and not isinstance(missing_values, bool):
        number = float(missing_values)
        if np.isnan(number) or number == -1:
            return number
    raise InvalidParameter(
        f"missing_values is {quoted(missing_values)}; expected None (every label is known), np.nan (NaN, None, null "
        "and pandas.NA are unknown) or -1"
    )


def _split_unknown(matrix: Matrix, sign: float) -> tuple[Matrix, Matrix | None]:
    """Return a table with 0 where it is NaN or −1, and where that was; None if it was nowhere."""
    values = matrix.data if sparse.issparse(matrix) else matrix
    unknown = np.isnan(values) if np.isnan(sign) else values == sign
    if not unknown.any():
        return matrix, None
    if not sparse.issparse(matrix):
        return np.where(unknown, 0, matrix), unknown
    known = sparse.csr_array((np.where(unknown, 0, values), matrix.indices, matrix.indptr), matrix.shape, copy=True)
    known.eliminate_zeros()
    places = sparse.csr_array((unknown, matrix.indices, matrix.indptr), matrix.shape, copy=True)
    places.eliminate_zeros()
    return known, places


def _with_nan(table: Any) -> Any:
    """Return a table of Python objects, or a masked one, as numbers with NaN for what is missing; others unchanged."""
    if isinstance(table, RowSlice):
        return replace(table, table=_with_nan(table.table))
    if is_frame(table):
        try:
            frame = open_frame(table)
        except TypeError:
            return table  # whoever reads it says why it cannot be opened
        return frame.native if frame.first_without_numbers() is None else _numbers_of_frame(frame)
    if isinstance(table, np.ma.MaskedArray):
        return np.ma.filled(table.astype(np.float64), np.nan) if table.dtype.kind in "fiub" else table
    if isinstance(table, list | tuple | np.ndarray) and not is_records(table):
        try:
            array = np.asarray(table)
        except ValueError:
            return table
        if array.dtype == object and array.ndim in (1, 2):
            rows = np.atleast_2d(array)
            return np.stack([_numbers(rows[:, j], j, Axes()) for j in range(rows.shape[1])], axis=1)
    return table


def _numbers_of_frame(frame: Frame) -> Table:
    """Return a data frame as a table of numbers; its columns of Python objects are read value by value."""
    axes, columns = Axes(frame.columns, frame.index), []
    for j, (is_number, _) in enumerate(frame.types()):
        column = frame.select(j)
        columns.append(column.values()[:, 0] if is_number else _numbers(column.column(frame.columns[j]), j, axes))
    return Table(np.column_stack(columns), frame.columns, frame.index)


def _numbers(column: Any, j: int, axes: Axes) -> NDArray[np.float64]:
    """Return a column of Python objects as numbers, None and pandas.NA as NaN; raise `InvalidLabels` for others."""
    numbers = np.empty(len(column))
    for i, value in enumerate(column):
        if value is None or type(value).__name__ == "NAType":  # pandas need not be installed
            numbers[i] = np.nan
        elif isinstance(value, int | float | np.number | np.bool_):
            numbers[i] = value
        else:
            hint = "" if axes.label_names is None else " (pass the label columns only)"
            raise InvalidLabels(f"y_true: {axes.row(i)}, {axes.label(j)} is {quoted(value)}; the truth is 0 or 1{hint}")
    return numbers
