"""What to do with rows that hold something that is no probability: refuse, skip them, or leave those labels open."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain.assembly import with_rows
from abstain.decision import decide_table
from abstain.errors import InvalidProbabilities
from abstain.losses import Loss
from abstain.matrix import Axes, Matrix
from abstain.penalties import BoundPenalty, Penalty
from abstain.prediction import ABSTAIN, PartialPrediction, PartialRanking
from abstain.probabilities import Probabilities, rounding_slack
from abstain.streams.batches import Batch

OnError = Literal["fail", "skip", "abstain"]
Prediction = PartialPrediction | PartialRanking


def find_bad(batch: Batch) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[Any]]:
    """Rows, labels and values of a batch that are no probabilities, row by row."""
    matrix = batch.table.values
    places = np.nonzero(_is_bad(matrix))
    if not sparse.issparse(matrix):
        return *places, matrix[places]
    (at,) = places
    return np.searchsorted(matrix.indptr, at, side="right") - 1, matrix.indices[at].astype(np.intp), matrix.data[at]


def _is_bad(matrix: Matrix) -> NDArray[np.bool_]:
    values, slack = (matrix.data if sparse.issparse(matrix) else matrix), rounding_slack(matrix.dtype)
    values = values.astype(np.float64, copy=False)  # half precision cannot tell how far it is off
    bad: NDArray[np.bool_] = ~((values >= -slack) & (values <= 1.0 + slack))
    return bad


def complain(batch: Batch) -> InvalidProbabilities:
    """The error that names the first bad value of a batch."""
    rows, columns, values = find_bad(batch)
    i, j = int(rows[0]), int(columns[0])
    label = Axes(batch.table.label_names).label(j)
    shown = batch.cell(i, j) or str(values[0])
    return InvalidProbabilities(f"{batch.row(i)}, {label} is {shown}; a probability is a number from 0 to 1")


def without_bad_rows(batch: Batch) -> Batch:
    """The rows in which everything is a probability."""
    good = np.ones(len(batch), bool)
    good[find_bad(batch)[0]] = False
    return batch.take(np.flatnonzero(good))


def decide_around(batch: Batch, loss: Loss, penalty: Penalty) -> tuple[Prediction, int]:
    """The best prediction that leaves every bad label open, and how many there are.

    Such labels are charged like others that are left open, except where the penalty forbids to leave so many open.
    """
    rows, columns, _ = find_bad(batch)
    matrix = batch.table.values.copy()
    (matrix.data if sparse.issparse(matrix) else matrix)[_is_bad(matrix)] = 0.0
    prediction = decide_table(Probabilities(batch.with_values(matrix).table), loss, penalty)
    bound = penalty.bind(matrix.shape[1])
    alike: dict[bytes, list[int]] = {}
    for row, at in zip(*_runs(rows), strict=True):  # rows with the same bad labels are decided together
        alike.setdefault(columns[at].tobytes(), []).append(row)
    parts = [_decide_rest(matrix[some], np.frombuffer(bad, np.intp), loss, bound) for bad, some in alike.items()]
    changed = np.concatenate([*alike.values()])
    order = np.argsort(changed)
    stack = sparse.vstack if sparse.issparse(matrix) else np.vstack
    codes = with_rows(prediction.codes, changed[order], stack([codes for codes, _ in parts])[order])
    assert prediction.expected_loss is not None
    prediction.expected_loss[changed] = np.concatenate([expected for _, expected in parts])
    return type(prediction).trusted(codes, prediction.axes, prediction.expected_loss), len(rows)


def _runs(rows: NDArray[np.intp]) -> tuple[list[int], list[slice]]:
    """The different rows, and where each of them is among all."""
    found, first = np.unique(rows, return_index=True)
    ends = [*first[1:], len(rows)]
    return found.tolist(), [slice(start, end) for start, end in zip(first, ends, strict=True)]


class _Given(Penalty):
    """A penalty that is bound already."""

    def __init__(self, bound: BoundPenalty) -> None:
        self.bound = bound

    def bind(self, n_labels: int) -> BoundPenalty:
        return self.bound


def _decide_rest(
    matrix: Matrix, bad: NDArray[np.intp], loss: Loss, bound: BoundPenalty
) -> tuple[Matrix, NDArray[np.float64]]:
    """Codes and expected losses of rows in which some labels are left open in any case."""
    n, m = matrix.shape
    others = np.delete(np.arange(m), bad)
    if loss.gives_rankings and len(others) == 1:  # a ranking of one label says nothing
        bad, others = np.arange(m), others[:0]
    charged = bound.counts[len(bad)] if np.isfinite(bound.counts[len(bad)]) else 0.0
    charged += 0.0 if bound.label_costs is None else bound.label_costs[bad].sum()
    left_open = np.full((n, len(bad)), ABSTAIN)
    if len(others) == 0:
        return (sparse.csr_array(left_open) if sparse.issparse(matrix) else left_open), np.full(n, charged)
    table = Probabilities(matrix[:, others])
    rest = decide_table(table, loss.restricted(others, m), _Given(bound.given(bad)))
    assert rest.expected_loss is not None
    if sparse.issparse(matrix):
        joined = sparse.hstack([rest.codes, sparse.csr_array(left_open.astype(rest.codes.dtype))], format="csr")
        indices = np.concatenate([others, bad])[joined.indices]
        codes = sparse.csr_array((joined.data, indices, joined.indptr), matrix.shape)
        codes.sort_indices()
        return codes, rest.expected_loss + charged
    codes = np.empty(matrix.shape, rest.codes.dtype)
    codes[:, others], codes[:, bad] = rest.codes, left_open
    return codes, rest.expected_loss + charged
