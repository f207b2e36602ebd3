"""Budgets for losses that are sums over labels: every entry of the table is a review of its own.

Reviewing entry (i, j) saves s_ij − review_j: what answering it is expected to cost, less what the review does. Limits
that lie inside each other (the whole table and each label; the whole table and each instance) are met by taking the
best entries of each inner one, and of these the best of all. Limits that cross (each instance and each label) are a
matching: see `matching`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.blocks import Block, StoredEntries
from abstain._core.decision import decide_table
from abstain._core.kernels import labelwise, savings
from abstain._core.losses import DecomposableLoss
from abstain._core.prediction import ABSTAIN
from abstain._core.prediction_writer import PredictionWriter, overlaid
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Axes, Matrix
from abstain._utils.threads import for_each
from abstain.budget._allocation import Allocation, Price, allocated
from abstain.budget._crossing_limits import match
from abstain.budget._limits import Limits

SAMPLE = 1 << 13  # instances that tell about what the price will be
COLUMNS = 8  # labels looked at together: what a cache line holds


class Entries(NamedTuple):
    """Reviews that can be made, and what each saves."""

    row: NDArray[np.int64]
    label: NDArray[np.int64]
    value: NDArray[np.float64]

    def some(self, which: Any) -> "Entries":
        """Those at these places."""
        return Entries(self.row[which], self.label[which], self.value[which])

    def dearest(self, count: int | None) -> tuple["Entries", float]:
        """The so many that save most, of equal ones the first by row and label, and what the next one would save."""
        if count is None or count >= len(self.value):
            return self, 0.0
        threshold = -float(np.partition(-self.value, count)[count])
        taken = self.value > threshold
        ties = np.flatnonzero(self.value == threshold)
        ties = ties[np.lexsort((self.label[ties], self.row[ties]))]
        taken[ties[: count - np.count_nonzero(taken)]] = True
        return self.some(taken), threshold


NOTHING = Entries(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


class Reviewed(NamedTuple):
    """Answers, what each instance is expected to cost, how many of its labels are open, and entries that might be."""

    codes: Matrix
    expected: NDArray[np.float64]
    n_open: NDArray[np.int64]
    around: Entries


def solve_by_entry(table: Probabilities, loss: DecomposableLoss, limits: Limits) -> Allocation:
    """The optimal allocation, exactly."""
    if limits.per_instance is None and limits.per_label is None:
        return _solve_uncapped(table, loss, limits)
    if limits.per_instance is not None and limits.per_label is not None:
        return _solve_crossing(table, loss, limits)
    if limits.per_label is not None:
        candidates, scarcity = _best_of_labels(table, loss, limits)
    else:
        candidates, scarcity = best_of_instances(table, loss, limits), np.zeros(table.n_labels)
    complete = reviewed_above(table, loss, limits, np.inf, np.inf)
    taken, cost = candidates.dearest(limits.total)
    return _with_reviews(table, loss, limits, complete, taken, cost, np.maximum(scarcity - cost, 0.0))


def _solve_crossing(table: Probabilities, loss: DecomposableLoss, limits: Limits) -> Allocation:
    """Caps per instance and per label: every entry that saves anything may be matched."""
    complete = reviewed_above(table, loss, limits, 0.0, np.inf)
    every = complete.around
    which, cost, scarcity = match(every.row, every.label, every.value, limits, table.n_rows)
    return _with_reviews(table, loss, limits, complete, every.some(which), cost, scarcity)


def price_of(
    loss: DecomposableLoss, limits: Limits, axes: Axes, n_labels: int, cost: float, scarcity: NDArray[np.float64]
) -> Price:
    """Shadow prices and review costs together: one number, and what single labels cost besides."""
    if limits.per_label is not None:  # what must not be reviewed costs more than a review can save
        scarcity = np.where(limits.per_label > 0, scarcity, np.maximum(loss.largest_risk(n_labels), scarcity))
    if limits.review.ndim == 0 and not scarcity.any():
        return Price(limits.uniform_review + cost, loss, limits.per_instance)
    return Price(cost, loss, limits.per_instance, limits.review + scarcity, axes.label_names)


def _solve_uncapped(table: Probabilities, loss: DecomposableLoss, limits: Limits) -> Allocation:
    """Review whatever saves more than a threshold; of what saves just that, as much as the budget allows."""
    if limits.total is None:
        price = price_of(loss, limits, table.axes, table.n_labels, 0.0, np.zeros(table.n_labels))
        prediction = decide_table(table, loss, price)
        return allocated(price, prediction.codes, prediction.expected_loss, table, limits)
    for low, high in _windows(table, loss, limits):
        reviewed = reviewed_above(table, loss, limits, low, high)
        left = limits.total - int(reviewed.n_open.sum())
        if left >= 0 and (low == 0.0 or len(reviewed.around.value) > left):
            break
    taken, cost = reviewed.around.dearest(left)
    return _with_reviews(table, loss, limits, reviewed, taken, cost, np.zeros(table.n_labels))


def _windows(table: Probabilities, loss: DecomposableLoss, limits: Limits) -> Iterator[tuple[float, float]]:
    """Between which values the threshold lies: first as far as a sample can tell, in the end between all."""
    assert limits.total is not None
    if table.n_rows > SAMPLE:
        rows = np.arange(0, table.n_rows, table.n_rows // SAMPLE)
        sample = reviewed_above(table.take(rows), loss, limits, 0.0, np.inf).around
        ordered = np.sort(sample.value)[::-1]
        target = limits.total * len(rows) / table.n_rows
        middle = ordered[int(target)] if target < len(ordered) else 0.0
        per_row = np.bincount(sample.row[sample.value > middle], minlength=len(rows))
        for standard_errors in (4.0, 32.0):
            error = standard_errors * (np.sqrt(len(rows)) * per_row.std() + 1.0)
            first, last = target - error, target + error
            high = float(ordered[int(first)]) if 0 <= first < len(ordered) else np.inf
            yield (float(ordered[int(last)]) if last < len(ordered) else 0.0), high
    yield 0.0, np.inf


def _places(block: Block, position: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which rows and labels of the table positions in a block are."""
    return block.places(*np.divmod(position, block.shape[1]))


def reviewed_above(table: Probabilities, loss: DecomposableLoss, limits: Limits, low: float, high: float) -> Reviewed:
    """What saves more than `high` is reviewed; what saves at most that, but more than `low`, is collected."""
    blocks: list[Block | StoredEntries] = list(
        table.stored_entries() if table.is_sparse else table.blocks(loss.entries_per_block)
    )
    writer = PredictionWriter(table, loss)
    n_open, found = np.empty(table.n_rows, np.int64), [NOTHING] * len(blocks)

    def work(k: int) -> None:
        block = blocks[k]
        p = table.load_entries(block) if isinstance(block, StoredEntries) else table.load(block)
        position, value = np.empty(p.size + 1, np.int64), np.empty(p.size + 1)
        answers = writer.buffers(block)
        out = savings.ReviewBuffers(answers.codes, answers.expected, n_open[block.rows], position, value)
        if isinstance(block, StoredEntries):
            entries = labelwise.SparseEntries(p, block.labels, block.indptr)
            costs = loss.read_error_costs(table.n_labels)
            size = savings.review_entries_above(entries, costs, limits.review, low, high, out)
            places = block.places(position[:size])
        else:
            review = block.per_label(limits.review)
            size = savings.review_above(p, loss.block_error_costs(block), review, low, high, out)
            places = _places(block, position[:size])
        found[k] = Entries(*places, value[:size].copy())

    for_each(work, range(len(blocks)))
    prediction = writer.finish()
    return Reviewed(prediction.codes, prediction.expected_loss, n_open, _joined(found))


def best_of_instances(table: Probabilities, loss: DecomposableLoss, limits: Limits) -> Entries:
    """The dearest entries of each instance, as many as its cap allows."""
    assert limits.per_instance is not None
    blocks = list(table.blocks(loss.entries_per_block))
    found = [NOTHING] * len(blocks)

    def work(k: int) -> None:
        n, m = blocks[k].shape
        most = min(limits.per_instance or 0, m)
        position, value = np.empty(n * most, np.int64), np.empty(n * most)
        risk = loss.label_risks(blocks[k], table.load(blocks[k]))
        saved = savings.saving(risk, blocks[k].per_label(limits.review))
        size = savings.best_of_rows(saved, most, position, value)
        found[k] = Entries(*_places(blocks[k], position[:size]), value[:size])

    for_each(work, range(len(blocks)))
    best = _joined(found)
    return best.some(np.argsort(best.row, kind="stable")) if table.is_sparse else best


def _best_of_labels(
    table: Probabilities, loss: DecomposableLoss, limits: Limits
) -> tuple[Entries, NDArray[np.float64]]:
    """The dearest entries of each label, as many as its cap allows, and what the first refused one would have saved."""
    assert limits.per_label is not None
    scarcity = np.zeros(table.n_labels)
    if table.is_sparse:
        return _best_stored_of_labels(table, loss, limits, scarcity), scarcity
    found: list[Entries] = []
    for label, row, value in _columns(table, loss, limits):
        column = Entries(row, np.full(len(row), label), value)
        best, scarcity[label] = column.dearest(int(limits.per_label[label]))
        found.append(best)
    return _joined(found), scarcity


def _best_stored_of_labels(
    table: Probabilities, loss: DecomposableLoss, limits: Limits, scarcity: NDArray[np.float64]
) -> Entries:
    """The same of a sparse table; what a budget for the whole table cannot reach is left out at once."""
    source = table.matrix
    saved, allowed = np.empty(len(source.data)), np.empty(len(source.data), np.bool_)

    def work(stretch: StoredEntries) -> None:
        costs = *loss.read_error_costs(table.n_labels), limits.review
        missed, wrong, review = (cost[stretch.labels] if cost.ndim else cost for cost in costs)
        p = table.load_entries(stretch).astype(np.float64)
        saved[stretch.entries] = savings.saving(np.minimum(missed * p, wrong * (1.0 - p)), review)

    for_each(work, table.stored_entries())
    savings.best_of_labels(source.indices, saved, limits.per_label, np.empty_like(source.indices), allowed, scarcity)
    candidates = saved[allowed]
    if limits.total is not None and limits.total < len(candidates):
        next_one = len(candidates) - 1 - limits.total
        candidates.partition(next_one)
        allowed &= saved >= candidates[next_one]
    best = np.flatnonzero(allowed)
    row = np.searchsorted(source.indptr, best, side="right") - 1
    return Entries(row, source.indices[best].astype(np.int64), saved[best])


def _columns(
    table: Probabilities, loss: DecomposableLoss, limits: Limits
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.float64]]]:
    """For each label of a dense table, the rows where a review saves anything, and how much."""
    costs = *loss.read_error_costs(table.n_labels), limits.review
    missed, wrong, review = (np.broadcast_to(cost, table.n_labels) for cost in costs)
    values = table.values()
    for first in range(0, table.n_labels, COLUMNS):
        some = np.ascontiguousarray(values[:, first : first + COLUMNS].T, np.float64)
        for label, p in enumerate(some, start=first):
            value = savings.saving(np.minimum(missed[label] * p, wrong[label] * (1.0 - p)), review[label])
            row = np.flatnonzero(value > 0)
            yield label, row, value[row]


def _with_reviews(
    table: Probabilities, loss: DecomposableLoss, limits: Limits, reviewed: Reviewed, more: Entries, cost: float,
    scarcity: NDArray[np.float64],
) -> Allocation:  # fmt: skip
    """What is reviewed already, and these entries besides."""
    codes = left_open(reviewed.codes, more)
    expected = reviewed.expected - np.bincount(more.row, more.value, table.n_rows)
    price = price_of(loss, limits, table.axes, table.n_labels, cost, scarcity)
    return allocated(price, codes, expected, table, limits)


def left_open(codes: Matrix, entries: Entries) -> Matrix:
    """The same answers, with these entries left open."""
    if not sparse.issparse(codes):
        codes[entries.row, entries.label] = ABSTAIN
        return codes
    data = np.full(len(entries.value), ABSTAIN, codes.dtype)
    return overlaid(codes, sparse.csr_array((data, (entries.row, entries.label)), codes.shape))


def _joined(parts: list[Entries]) -> Entries:
    row, label, value = (np.concatenate([part[k] for part in [NOTHING, *parts]]) for k in range(3))
    return Entries(row.astype(np.int64, copy=False), label.astype(np.int64, copy=False), value)
