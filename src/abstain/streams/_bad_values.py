"""Values that are no probabilities or no truth: errors that name them, rows and decisions without them."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.decision import decide_bound, decide_table
from abstain._core.losses import Loss
from abstain._core.penalties import BoundPenalty, Penalty
from abstain._core.prediction import ABSTAIN, Prediction
from abstain._core.prediction_writer import with_rows
from abstain._core.probabilities import (
    Probabilities,
    count_rows,
    hint_at_scale,
    invalid_probability,
    rounding_slack,
)
from abstain._core.tables import Axes, Matrix
from abstain._utils.errors import InvalidLabels, InvalidProbabilities
from abstain.streams._read.batches import Batch

OnError = Literal["fail", "skip", "abstain"]


def find_bad_values(batch: Batch) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[Any]]:
    """Return the rows, the labels and the values of a batch that are no probabilities, row by row."""
    return find_entries(batch.table.values, _is_bad(batch.table.values))


def find_entries(matrix: Matrix, chosen: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[Any]]:
    """Return the rows, the labels and the values of some entries of a table (of a sparse one: some stored ones)."""
    positions = np.nonzero(chosen)
    if not sparse.issparse(matrix):
        return *positions, matrix[positions]
    (at,) = positions
    return np.searchsorted(matrix.indptr, at, side="right") - 1, matrix.indices[at].astype(np.intp), matrix.data[at]


def _is_bad(matrix: Matrix) -> NDArray[np.bool_]:
    values, slack = (matrix.data if sparse.issparse(matrix) else matrix), rounding_slack(matrix.dtype)
    values = values.astype(np.float64, copy=False)  # half precision cannot tell how far it is off
    bad: NDArray[np.bool_] = ~((values >= -slack) & (values <= 1.0 + slack))
    return bad


def bad_value_error(batch: Batch) -> InvalidProbabilities:
    """Return the error that names the first bad value of a batch."""
    rows, columns, values = find_bad_values(batch)
    i, j = int(rows[0]), int(columns[0])
    hint = _hint_at_column(batch, i, j) or hint_at_scale(
        values.astype(np.float64), rows, count_rows(batch.table.values)
    )
    return invalid_probability(describe_cell(batch, i, j, values[0]), hint)


def find_wrong_truth(
    batch: Batch, missing_values: float | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[Any]]:
    """Return the rows, the labels and the values of a batch that are no truth: neither 0, 1 nor what is missing."""
    matrix = batch.table.values
    values = matrix.data if sparse.issparse(matrix) else matrix
    wrong = (values != 0) & (values != 1)
    if missing_values is not None:
        wrong &= ~np.isnan(values) if np.isnan(missing_values) else values != missing_values
    return find_entries(matrix, wrong)


def truth_error(batch: Batch, missing_values: float | None = None, hint: str = "") -> InvalidLabels:
    """Return the error that names the first value of a batch that is no truth."""
    rows, columns, wrong = find_wrong_truth(batch, missing_values)
    place = describe_cell(batch, int(rows[0]), int(columns[0]), wrong[0])
    return InvalidLabels(f"{place}; the truth is 0 or 1{f'; {hint}' if hint else ''}")


def describe_cell(batch: Batch, i: int, j: int, value: Any) -> str:
    """Return how an error names a cell of a batch and its value, as the file writes it."""
    shown = batch.cell(i, j) or ("empty or nan" if np.isnan(value) else str(value))
    return f"{batch.row(i, j)}, {Axes(batch.table.label_names).label(j)} is {shown}"


def _hint_at_column(batch: Batch, i: int, j: int) -> str:
    """Return a hint at a column of a wide table that holds text, nothing, or the numbers of the rows instead."""
    matrix, names = batch.table.values, batch.table.label_names
    if sparse.issparse(matrix):
        return ""
    column = matrix[:, j].astype(np.float64)
    if (batch.cell(i, j) or "").endswith("%'"):
        return "per cent are written as shares: 97% is 0.97"
    no_number = np.isnan(column) if np.isnan(column[i]) else np.isinf(column)  # as text is read
    if batch.quote is not None and 2 * np.count_nonzero(no_number) > len(column):
        hint = "if this column holds no label, choose those that do (--labels), or make it the ids (--id-column)"
        if batch.ids is not None and names is not None and len(names) == 2:  # three columns, as long tables have
            others = f"--label-column {names[j]} --value-column {names[1 - j]}"
            return f"{hint}; if it names the labels, the table is long ({others})"
        return hint
    if j == 0 and batch.ids is None and _is_increasing(column):
        return f"if this column numbers the rows, make it the ids (--id-column {names[j] if names else j})"
    return ""


def _is_increasing(column: NDArray[np.float64]) -> bool:
    """Whether a column holds whole numbers that increase."""
    return len(column) > 1 and bool(np.all((column % 1 == 0) & (np.diff(column, prepend=-1) > 0)))


def without_bad_rows(batch: Batch) -> Batch:
    """Return the rows in which every value is a probability."""
    good = np.ones(len(batch), bool)
    good[find_bad_values(batch)[0]] = False
    return batch.take(np.flatnonzero(good))


def decide_despite_bad_values(batch: Batch, loss: Loss, penalty: Penalty) -> tuple[Prediction, int]:
    """Return the best prediction that abstains from every bad value, and the number of bad values.

    These abstentions cost as much as others, except where the penalty forbids so many.
    """
    rows, columns, _ = find_bad_values(batch)
    matrix = batch.table.values.copy()
    (matrix.data if sparse.issparse(matrix) else matrix)[_is_bad(matrix)] = 0.0
    prediction = decide_table(Probabilities(batch.with_values(matrix).table), loss, penalty)
    bound = penalty.bind(matrix.shape[1])
    rows_by_bad_labels: dict[bytes, list[int]] = {}
    for row, at in zip(*_runs(rows), strict=True):  # rows with the same bad labels are decided together
        rows_by_bad_labels.setdefault(columns[at].tobytes(), []).append(row)
    parts = [
        _decide_others(matrix[some], np.frombuffer(bad, np.intp), loss, bound)
        for bad, some in rows_by_bad_labels.items()
    ]
    changed = np.concatenate([*rows_by_bad_labels.values()])
    order = np.argsort(changed)
    stack = sparse.vstack if sparse.issparse(matrix) else np.vstack
    codes = with_rows(prediction.codes, changed[order], stack([codes for codes, _ in parts])[order])
    prediction.expected_loss[changed] = np.concatenate([expected for _, expected in parts])
    return type(prediction).from_codes(codes, prediction.axes, prediction.expected_loss), len(rows)


def _runs(rows: NDArray[np.intp]) -> tuple[list[int], list[slice]]:
    """Return the distinct rows, and where each of them is among all."""
    found, first = np.unique(rows, return_index=True)
    ends = [*first[1:], len(rows)]
    return found.tolist(), [slice(start, end) for start, end in zip(first, ends, strict=True)]


def _decide_others(
    matrix: Matrix, bad: NDArray[np.intp], loss: Loss, bound: BoundPenalty
) -> tuple[Matrix, NDArray[np.float64]]:
    """Return codes and expected losses of rows in which some labels are abstentions in any case."""
    n, m = matrix.shape
    others = np.delete(np.arange(m), bad)
    if loss.gives_rankings and len(others) == 1:  # one label cannot be ranked
        bad, others = np.arange(m), others[:0]
    charged = bound.counts[len(bad)] if np.isfinite(bound.counts[len(bad)]) else 0.0
    charged += 0.0 if bound.label_costs is None else bound.label_costs[bad].sum()
    abstained = np.full((n, len(bad)), ABSTAIN)
    if len(others) == 0:
        return (sparse.csr_array(abstained) if sparse.issparse(matrix) else abstained), np.full(n, charged)
    table = Probabilities(matrix[:, others])
    rest = decide_bound(table, loss.restricted(others, m), bound.with_abstained(bad))
    if sparse.issparse(matrix):
        joined = sparse.hstack([rest.codes, sparse.csr_array(abstained.astype(rest.codes.dtype))], format="csr")
        indices = np.concatenate([others, bad])[joined.indices]
        codes = sparse.csr_array((joined.data, indices, joined.indptr), matrix.shape)
        codes.sort_indices()
        return codes, rest.expected_loss + charged
    codes = np.empty(matrix.shape, rest.codes.dtype)
    codes[:, others], codes[:, bad] = rest.codes, abstained
    return codes, rest.expected_loss + charged
