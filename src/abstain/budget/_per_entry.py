"""Budgets for losses that are sums over labels: every entry of the table can be reviewed by itself.

Reviewing entry (i, j) saves s_ij − review_j: the expected cost of answering it, less the cost of the review. Limits
that are nested (the whole table and each label; the whole table and each instance) are met by taking the best entries
of each inner one, and of these the best of all. Limits that cross (each instance and each label) are a matching: see
`_crossing_limits`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.blocks import Block, StoredEntries
from abstain._core.decision import decide_table
from abstain._core.intervals import Intervals
from abstain._core.kernels import labelwise, savings
from abstain._core.kernels.bounds import Bounds, as_bounds
from abstain._core.kernels.labelwise import ErrorCosts
from abstain._core.losses import Loss
from abstain._core.prediction import ABSTAIN, PartialPrediction
from abstain._core.prediction_writer import PredictionWriter, overlaid
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Axes, Matrix
from abstain._utils.threads import for_each
from abstain.budget._allocation import Allocation, ShadowPrices, make_allocation, make_price
from abstain.budget._crossing_limits import match
from abstain.budget._entries import Entries
from abstain.budget._limits import Limits
from abstain.budget._thresholds import find_threshold

SAMPLE_ROWS = 1 << 13  # instances from which the price is estimated first
LABELS_AT_A_TIME = 8  # columns that are copied together: one cache line holds so many numbers


class EntryCosts(NamedTuple):
    """Costs of errors and of a review.

    Each is one number (0-dimensional) or one per label, or an array beside a block of rows.
    """

    errors: ErrorCosts
    review: NDArray[np.float64]

    @classmethod
    def of(cls, loss: Loss, limits: Limits, n_labels: int) -> "EntryCosts":
        """Return the costs for a table with so many labels."""
        return cls(loss.read_error_costs(n_labels), limits.review)

    def beside(self, block: Block) -> "EntryCosts":
        """Return the costs as tables that kernels can use for a block."""
        return EntryCosts(ErrorCosts(*map(block.per_label, self.errors)), block.per_label(self.review))

    def of_labels(self, labels: NDArray[Any] | int) -> "EntryCosts":
        """Return the costs of some labels."""
        of_label = [cost[labels] if cost.ndim else cost for cost in (*self.errors, self.review)]
        return EntryCosts(ErrorCosts(of_label[0], of_label[1]), of_label[2])

    def savings(self, p: NDArray[Any] | Bounds) -> NDArray[np.float64]:
        """Return what reviews save at these probabilities, one cost for all of them or one for each."""
        low, high = (end.astype(np.float64, copy=False) for end in as_bounds(p))
        risk = np.minimum(self.errors.false_negative * high, self.errors.false_positive * (1.0 - low))
        return np.asarray(savings.saving(risk, self.review))

    def savings_in_block(self, p: NDArray[np.float64] | Bounds) -> NDArray[np.float64]:
        """Return what reviews save in a block, given the costs beside it."""
        risk, no_price = np.empty(p.shape), np.zeros((1, p.shape[1]))
        labelwise.score(as_bounds(p), self.errors, no_price, risk)
        return np.asarray(savings.saving(risk, self.review))


class EntryProblem(NamedTuple):
    """A table, a loss that is a sum over labels, and the limits of its reviews."""

    table: Probabilities | Intervals
    loss: Loss
    limits: Limits

    @property
    def costs(self) -> EntryCosts:
        """What errors and reviews cost."""
        return EntryCosts.of(self.loss, self.limits, self.table.n_labels)


class Reviewed(NamedTuple):
    """A decision in which some entries are reviewed, and further candidates."""

    codes: Matrix
    expected_loss: NDArray[np.float64]
    """The expected loss of each instance, reviews included."""
    n_abstained: NDArray[np.int64]
    candidates: Entries
    """Entries that are answered, and could be reviewed."""

    def with_reviews(self, entries: Entries, axes: Axes) -> PartialPrediction:
        """Return the prediction in which these candidates are reviewed too; dense codes are changed in place."""
        expected_loss = self.expected_loss - np.bincount(entries.row, entries.value, len(self.expected_loss))
        return PartialPrediction.from_codes(_abstained_at(self.codes, entries), axes, expected_loss)


def solve_by_entry(problem: EntryProblem) -> Allocation[PartialPrediction]:
    """Return the optimal allocation, exactly."""
    table, _, limits = problem
    if limits.per_instance is None and limits.per_label is None:
        return _solve_without_caps(problem)
    if limits.per_instance is not None and limits.per_label is not None:
        reviewed = review_above(problem, 0.0, np.inf)  # every entry that saves anything may be matched
        matched, shadow = match(reviewed.candidates, limits, table.n_rows)
        return _allocate(problem, reviewed, reviewed.candidates.take(matched), shadow)
    if limits.per_label is not None:
        candidates, next_values = _best_of_labels(problem)
    else:
        candidates, next_values = best_of_instances(problem), np.zeros(table.n_labels)
    taken, common = candidates.largest(limits.total)
    shadow = ShadowPrices(common, np.maximum(next_values - common, 0.0))
    return _allocate(problem, review_above(problem, np.inf, np.inf), taken, shadow)


def _allocate(
    problem: EntryProblem, reviewed: Reviewed, entries: Entries, shadow: ShadowPrices
) -> Allocation[PartialPrediction]:
    """Return the allocation in which some entries are reviewed already, and these in addition."""
    table, loss, limits = problem
    prediction = reviewed.with_reviews(entries, table.axes)
    price = make_price(loss, limits, table.axes, shadow, of_intervals=isinstance(table, Intervals))
    return make_allocation(price, prediction, limits)


def _solve_without_caps(problem: EntryProblem) -> Allocation[PartialPrediction]:
    """Review what saves more than a threshold; of what saves just that, as much as the budget allows."""
    table, loss, limits = problem
    if limits.total is None:
        price = make_price(loss, limits, table.axes, ShadowPrices.uniform(0.0, table.n_labels))
        return make_allocation(price, decide_table(table, loss, price), limits)
    for low, high in _brackets(problem, limits.total):
        reviewed = review_above(problem, low, high)
        left = limits.total - int(reviewed.n_abstained.sum())
        if left >= 0 and (low == 0.0 or len(reviewed.candidates.value) > left):
            break
    taken, common = reviewed.candidates.largest(left)
    return _allocate(problem, reviewed, taken, ShadowPrices.uniform(common, table.n_labels))


def _brackets(problem: EntryProblem, total: int) -> Iterator[tuple[float, float]]:
    """Yield values between which the threshold lies: first as far as a sample shows, in the end 0 and infinity."""
    table = problem.table
    if table.n_rows > SAMPLE_ROWS:
        rows = np.arange(0, table.n_rows, table.n_rows // SAMPLE_ROWS)
        sample = review_above(problem._replace(table=table.take(rows)), 0.0, np.inf).candidates
        ordered = np.sort(sample.value)[::-1]
        target = total * len(rows) / table.n_rows
        middle = ordered[int(target)] if target < len(ordered) else 0.0
        per_row = np.bincount(sample.row[sample.value > middle], minlength=len(rows))
        for standard_errors in (4.0, 32.0):
            error = standard_errors * (np.sqrt(len(rows)) * per_row.std() + 1.0)
            first, last = target - error, target + error
            high = float(ordered[int(first)]) if 0 <= first < len(ordered) else np.inf
            yield (float(ordered[int(last)]) if last < len(ordered) else 0.0), high
    yield 0.0, np.inf


def review_above(problem: EntryProblem, low: float, high: float) -> Reviewed:
    """Review what saves more than `high`; what saves at most that, but more than `low`, becomes a candidate."""
    table, loss, _ = problem
    blocks: list[Block | StoredEntries] = list(
        table.stored_entries() if table.is_sparse else table.blocks(loss.entries_per_block)
    )
    writer, costs = PredictionWriter(table, loss), problem.costs
    n_abstained, found = np.empty(table.n_rows, np.int64), [Entries.none()] * len(blocks)

    def work(k: int) -> None:
        block = blocks[k]
        codes, expected, _ = writer.buffers(block)
        count = n_abstained[block.rows]
        if isinstance(block, StoredEntries):
            p = table.load_entries(block)
            position, value = np.empty(p.size + 1, np.int64), np.empty(p.size + 1)
            out = savings.ReviewBuffers(codes, expected, count, position, value)
            entries = labelwise.SparseEntries(*as_bounds(p), block.labels, block.indptr)
            size = savings.review_entries_above(entries, costs.errors, costs.review, low, high, out)
            row, label = block.places(position[:size])
        else:
            p, beside = table.load(block), costs.beside(block)
            position, value = np.empty(p.size + 1, np.int64), np.empty(p.size + 1)
            out = savings.ReviewBuffers(codes, expected, count, position, value)
            size = savings.review_above(as_bounds(p), beside.errors, beside.review, low, high, out)
            row, label = _places(block, position[:size])
        found[k] = Entries(row, label, value[:size].copy())

    for_each(work, range(len(blocks)))
    prediction = writer.finish()
    return Reviewed(prediction.codes, prediction.expected_loss, n_abstained, Entries.concatenate(found))


def find_candidates(problem: EntryProblem, low: float, high: float) -> Reviewed:
    """Decide, with those entries as candidates that the caps per instance allow and that save more than `low`.

    They are in the order of rows and labels. Without such caps, what saves more than `high` is reviewed already, and is
    no candidate.
    """
    if problem.limits.per_instance is None:
        reviewed = review_above(problem, low, high)
    else:
        best = best_of_instances(problem)
        reviewed = review_above(problem, np.inf, np.inf)._replace(candidates=best.take(best.value > low))
    if problem.table.is_sparse:
        return reviewed._replace(candidates=reviewed.candidates.by_place())
    return reviewed


def best_of_instances(problem: EntryProblem) -> Entries:
    """Return the entries of each instance whose review saves most, as many as its cap allows."""
    table, loss, limits = problem
    assert limits.per_instance is not None
    cap, costs, blocks = limits.per_instance, problem.costs, list(table.blocks(loss.entries_per_block))
    found = [Entries.none()] * len(blocks)

    def work(k: int) -> None:
        block = blocks[k]
        position, value = best_of_rows(table.load(block), costs.beside(block), cap)
        found[k] = Entries(*_places(block, position), value)

    for_each(work, range(len(blocks)))
    best = Entries.concatenate(found)
    return best.take(np.argsort(best.row, kind="stable")) if table.is_sparse else best


def best_of_rows(
    p: NDArray[np.float64] | Bounds, costs: EntryCosts, count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return where in a block (flat) the `count` largest positive savings of each row are, and these savings."""
    n, m = p.shape
    count = min(count, m)
    position, value = np.empty(n * count, np.int64), np.empty(n * count)
    size = savings.best_of_rows(costs.savings_in_block(p), count, position, value)
    return position[:size], value[:size]


def _places(block: Block, position: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows and labels of the table, given positions in the flat block."""
    return block.places(*np.divmod(position, block.shape[1]))


def _best_of_labels(problem: EntryProblem) -> tuple[Entries, NDArray[np.float64]]:
    """Return the entries of each label that save most, as many as its cap allows, and what the next one would save."""
    table, _, limits = problem
    assert limits.per_label is not None
    next_values = np.zeros(table.n_labels)
    if table.is_sparse:
        return _best_stored_of_labels(problem, next_values), next_values
    found: list[Entries] = []
    for label, column in _columns(problem):
        best, next_values[label] = column.largest(int(limits.per_label[label]))
        found.append(best)
    return Entries.concatenate(found), next_values


def _best_stored_of_labels(problem: EntryProblem, next_values: NDArray[np.float64]) -> Entries:
    """Return the best entries of each label of a sparse table, and write what the next ones would save.

    Entries that a budget for the whole table cannot reach are left out at once.
    """
    table, _, limits = problem
    source, costs = table.matrix, problem.costs
    saved, allowed = np.empty(len(source.data)), np.empty(len(source.data), np.bool_)

    def work(stored: StoredEntries) -> None:
        saved[stored.entries] = costs.of_labels(stored.labels).savings(table.load_entries(stored))

    for_each(work, table.stored_entries())
    order = np.empty_like(source.indices)
    savings.best_of_labels(source.indices, saved, limits.per_label, order, allowed, next_values)
    if limits.total is not None:
        allowed &= saved >= find_threshold(saved[allowed], limits.total).value
    best = np.flatnonzero(allowed)
    row = np.searchsorted(source.indptr, best, side="right") - 1
    return Entries(row, source.indices[best].astype(np.int64), saved[best])


def _columns(problem: EntryProblem) -> Iterator[tuple[int, Entries]]:
    """Yield each label of a dense table with those of its entries whose review saves anything."""
    table = problem.table
    costs = problem.costs
    values = as_bounds(table.values())
    for first in range(0, table.n_labels, LABELS_AT_A_TIME):
        low, high = (np.ascontiguousarray(end[:, first : first + LABELS_AT_A_TIME].T, np.float64) for end in values)
        for label, p in enumerate(map(Bounds, low, high), start=first):
            value = costs.of_labels(label).savings(p)
            row = np.flatnonzero(value > 0)
            yield label, Entries(row, np.full(len(row), label), value[row])


def _abstained_at(codes: Matrix, entries: Entries) -> Matrix:
    """Return the codes with abstentions at these entries; dense ones are changed in place."""
    if not sparse.issparse(codes):
        codes[entries.row, entries.label] = ABSTAIN
        return codes
    data = np.full(len(entries.value), ABSTAIN, codes.dtype)
    return overlaid(codes, sparse.csr_array((data, (entries.row, entries.label)), codes.shape))
