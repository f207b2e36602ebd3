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

from abstain.assembly import Assembly
from abstain.budget.allocation import Allocation, Price, allocated
from abstain.budget.limits import Limits
from abstain.budget.matching import match
from abstain.decision import decide_table
from abstain.kernels import certainty, reviews
from abstain.losses import Hamming
from abstain.matrix import Matrix
from abstain.prediction import ABSTAIN
from abstain.probabilities import Block, Probabilities
from abstain.threads import for_each

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
        """The so many that save most, of equal ones the first, and what the next one would save."""
        if count is None or count >= len(self.value):
            return self, 0.0
        threshold = -float(np.partition(-self.value, count)[count])
        taken = self.value > threshold
        taken[np.flatnonzero(self.value == threshold)[: count - np.count_nonzero(taken)]] = True
        return self.some(taken), threshold


NOTHING = Entries(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


class Reviewed(NamedTuple):
    """Answers, what each instance is expected to cost, how many of its labels are open, and entries that might be."""

    codes: Matrix
    expected: NDArray[np.float64]
    n_open: NDArray[np.int64]
    around: Entries


def solve_by_entry(table: Probabilities, loss: Hamming, limits: Limits) -> Allocation:
    """The optimal allocation, exactly."""
    if limits.per_instance is None and limits.per_label is None:
        return _solve_uncapped(table, loss, limits)
    if limits.per_instance is not None and limits.per_label is not None:
        return _solve_crossing(table, loss, limits)
    if limits.per_label is not None:
        candidates, scarcity = _best_of_labels(table, loss, limits)
    else:
        candidates, scarcity = _best_of_instances(table, loss, limits), np.zeros(table.n_labels)
    complete = _reviewed(table, loss, limits, np.inf, np.inf)
    taken, cost = candidates.dearest(limits.total)
    return _with_reviews(table, loss, limits, complete, taken, cost, np.maximum(scarcity - cost, 0.0))


def _solve_crossing(table: Probabilities, loss: Hamming, limits: Limits) -> Allocation:
    """Caps per instance and per label: every entry that saves anything may be matched."""
    complete = _reviewed(table, loss, limits, 0.0, np.inf)
    every = complete.around
    which, cost, scarcity = match(every.row, every.label, every.value, limits, table.n_rows)
    return _with_reviews(table, loss, limits, complete, every.some(which), cost, scarcity)


def _price(table: Probabilities, loss: Hamming, limits: Limits, cost: float, scarcity: NDArray[np.float64]) -> Price:
    """Shadow prices and review costs together: one number, and what single labels cost besides."""
    if limits.per_label is not None:  # what must not be reviewed costs more than a review can save
        scarcity = np.where(limits.per_label > 0, scarcity, np.maximum(loss.largest_risk(table.n_labels), scarcity))
    if limits.review.ndim == 0 and not scarcity.any():
        return Price(limits.uniform_review + cost, loss, limits.per_instance)
    return Price(cost, loss, limits.per_instance, limits.review + scarcity, table.axes.label_names)


def _solve_uncapped(table: Probabilities, loss: Hamming, limits: Limits) -> Allocation:
    """Review whatever saves more than a threshold; of what saves just that, as much as the budget allows."""
    if limits.total is None:
        price = _price(table, loss, limits, 0.0, np.zeros(table.n_labels))
        prediction = decide_table(table, loss, price.penalty)
        assert prediction.expected_loss is not None
        return allocated(price, prediction.codes, prediction.expected_loss, table, limits)
    for low, high in _windows(table, loss, limits):
        reviewed = _reviewed(table, loss, limits, low, high)
        left = limits.total - int(reviewed.n_open.sum())
        if left >= 0 and (low == 0.0 or len(reviewed.around.value) > left):
            break
    taken, cost = reviewed.around.dearest(left)
    return _with_reviews(table, loss, limits, reviewed, taken, cost, np.zeros(table.n_labels))


def _windows(table: Probabilities, loss: Hamming, limits: Limits) -> Iterator[tuple[float, float]]:
    """Between which values the threshold lies: first as far as a sample can tell, in the end between all."""
    assert limits.total is not None
    if table.n_rows > SAMPLE:
        rows = np.arange(0, table.n_rows, table.n_rows // SAMPLE)
        sample = _reviewed(table.take(rows), loss, limits, 0.0, np.inf).around
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


def _review(limits: Limits, block: Block, table: Probabilities) -> NDArray[np.float64]:
    """What a review of each label costs, as the kernels want it."""
    return block.per_label(np.full(table.n_labels, limits.review))


def _entries(block: Block, position: NDArray[np.int64], value: NDArray[np.float64], table: Probabilities) -> Entries:
    """Where entries of a block are in the table."""
    row, column = np.divmod(position, block.shape[1])
    if not block.packed:
        return Entries(row + block.rows.start, column, value)
    labels = block.pack(table.matrix.indices, 0, np.int64)
    return Entries(block.rows[row], labels[row, column], value)


def _reviewed(table: Probabilities, loss: Hamming, limits: Limits, low: float, high: float) -> Reviewed:
    """What saves more than `high` is reviewed; what saves at most that, but more than `low`, is collected."""
    blocks, assembly = list(table.blocks(loss.entries_per_block)), Assembly(table, loss)
    n_open, found = np.empty(table.n_rows, np.int64), [NOTHING] * len(blocks)

    def work(k: int) -> None:
        block, p = blocks[k], table.load(blocks[k])
        codes, expected = assembly.room(block)
        counts, position, value = np.empty(len(p), np.int64), np.empty(p.size + 1, np.int64), np.empty(p.size + 1)
        costs = *loss.costs(block), _review(limits, block, table)
        size = reviews.review_above(p, *costs, low, high, codes, expected, counts, position, value)
        assembly.store(block, codes, expected)
        n_open[block.rows] = counts
        found[k] = _entries(block, position[:size], value[:size].copy(), table)

    for_each(work, range(len(blocks)))
    prediction = assembly.finish()
    assert prediction.expected_loss is not None
    return Reviewed(prediction.codes, prediction.expected_loss, n_open, _joined(found))


def _best_of_instances(table: Probabilities, loss: Hamming, limits: Limits) -> Entries:
    """The dearest entries of each instance, as many as its cap allows."""
    assert limits.per_instance is not None
    blocks = list(table.blocks(loss.entries_per_block))
    found = [NOTHING] * len(blocks)

    def work(k: int) -> None:
        values = np.empty(blocks[k].shape)
        costs = *loss.costs(blocks[k]), _review(limits, blocks[k], table)
        certainty.score(table.load(blocks[k]), *costs, values)
        most = min(limits.per_instance or 0, values.shape[1])
        position, value = np.empty(len(values) * most, np.int64), np.empty(len(values) * most)
        size = reviews.best_of_rows(values, most, position, value)
        found[k] = _entries(blocks[k], position[:size], value[:size], table)

    for_each(work, range(len(blocks)))
    return _joined(found)


def _best_of_labels(table: Probabilities, loss: Hamming, limits: Limits) -> tuple[Entries, NDArray[np.float64]]:
    """The dearest entries of each label, as many as its cap allows, and what the first refused one would have saved."""
    assert limits.per_label is not None
    table.check()
    found: list[Entries] = []
    scarcity = np.zeros(table.n_labels)
    for label, row, value in _columns(table, loss, limits):
        column = Entries(row, np.full(len(row), label), value)
        best, scarcity[label] = column.dearest(int(limits.per_label[label]))
        found.append(best)
    return _joined(found), scarcity


def _columns(
    table: Probabilities, loss: Hamming, limits: Limits
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.float64]]]:
    """For each label, the rows where a review saves anything, and how much."""
    costs = (
        np.broadcast_to(cost, table.n_labels) for cost in (loss.false_negative, loss.false_positive, limits.review)
    )
    missed, wrong, review = costs
    by_label = table.matrix.tocsc() if table.is_sparse else table.matrix
    for first in range(0, table.n_labels, COLUMNS):
        some = None if table.is_sparse else np.ascontiguousarray(by_label[:, first : first + COLUMNS].T, np.float64)
        for label in range(first, min(first + COLUMNS, table.n_labels)):
            if some is None:
                part = slice(by_label.indptr[label], by_label.indptr[label + 1])
                row, p = by_label.indices[part].astype(np.int64), by_label.data[part].astype(np.float64)
            else:
                row, p = np.arange(table.n_rows), some[label - first]
            p = np.clip(p, 0.0, 1.0)
            value = np.minimum(missed[label] * p, wrong[label] * (1.0 - p)) - review[label]
            saves = value > 0
            yield label, row[saves], value[saves]


def _with_reviews(
    table: Probabilities, loss: Hamming, limits: Limits, reviewed: Reviewed, more: Entries, cost: float,
    scarcity: NDArray[np.float64],
) -> Allocation:  # fmt: skip
    """What is reviewed already, and these entries besides."""
    codes = _left_open(reviewed.codes, more)
    expected = reviewed.expected - np.bincount(more.row, more.value, table.n_rows)
    return allocated(_price(table, loss, limits, cost, scarcity), codes, expected, table, limits)


def _at(codes: Matrix, entries: Entries) -> NDArray[Any]:
    found = codes[entries.row, entries.label]
    return np.asarray(found.toarray() if sparse.issparse(found) else found).ravel()


def _left_open(codes: Matrix, entries: Entries) -> Matrix:
    """The same answers, with these entries left open."""
    if not sparse.issparse(codes):
        codes[entries.row, entries.label] = ABSTAIN
        return codes
    change = ABSTAIN - _at(codes, entries)
    more = sparse.csr_array((change, (entries.row, entries.label)), codes.shape, dtype=codes.dtype)
    return (codes + more).tocsr()


def _joined(parts: list[Entries]) -> Entries:
    row, label, value = (np.concatenate([part[k] for part in [NOTHING, *parts]]) for k in range(3))
    return Entries(row.astype(np.int64, copy=False), label.astype(np.int64, copy=False), value)
