"""Budgets for files larger than memory: one pass finds the price, a second one decides and spends the budget."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.losses import Loss, LossLike, as_loss
from abstain._core.prediction import Prediction
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Axes, Table
from abstain._utils.atomic import require_writable
from abstain._utils.errors import InvalidProbabilities
from abstain.budget import Allocation, Bill, Price, solve_request
from abstain.budget._allocation import ShadowPrices, make_price
from abstain.budget._histogram import SavingsHistogram
from abstain.budget._limits import BudgetRequest, ByLabel, Limits
from abstain.budget._two_pass import TwoPassDecider
from abstain.streams._bad_values import bad_value_error
from abstain.streams._decide import decide_files
from abstain.streams._job import Job, Progress
from abstain.streams._prefetch import prefetch
from abstain.streams._read.sources import Paths, Sources, open_sources
from abstain.streams._summary import Summary
from abstain.streams._write.destinations import require_separate


class Decider(Protocol):
    """Decides batches of rows in turn, within a budget."""

    @property
    def gap(self) -> float:
        """How much less, at most, any other allocation could pay, once all batches are decided."""

    def decide(self, table: Table) -> Prediction:
        """Decide the next batch."""


@dataclass(frozen=True)
class FileAllocation:
    """The reviews that a budget allows in some files; as `abstain.budget.Allocation`, without the prediction.

    Attributes
    ----------
    price : Price
        The least saving for which a review is made; `price.decide` applies it to new data.
    budget : int or None
        How many reviews were allowed; None if only their cost or caps limit them.
    count : int
        How many reviews are made.
    bill : Bill
        The expected payments.
    gap : float or None
        How much less, at most, any other allocation could pay; None if only the price was found and nothing decided.
    n_rows, n_labels : int
        The size of all files together.
    """

    price: Price[Any]
    budget: int | None
    count: int
    bill: Bill
    gap: float | None
    n_rows: int
    n_labels: int


def budget_files(
    inputs: Paths | Sources,
    *,
    loss: LossLike = "hamming",
    rate: float | None = None,
    count: int | None = None,
    per_instance: int | None = None,
    per_label: ByLabel | None = None,
    review: ByLabel = 0.0,
    output: str | os.PathLike[str] | None = None,
    queue: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> FileAllocation:
    """Spend a budget of reviews over all rows of some files; as `abstain.budget.solve`, in bounded memory.

    The first pass finds the price. If there is an output, a second one decides and writes: what saves more than the
    price is reviewed, of what saves just about the price what comes first. With `per_label` the whole table is read
    into memory.

    Parameters
    ----------
    inputs : path, sequence of paths, or Sources
        Files, as for `open_sources`; or files that have been opened, for two passes.
    loss : str or Loss, default="hamming"
        As for `abstain.decide`.
    rate, count, per_instance, per_label, review
        As for `abstain.budget.solve`.
    output, queue : path, optional
        As for `decide_files`. Without an output, only the price and the bill are found.
    progress : object with ``start`` and ``advance``, optional
        As for `decide_files`.

    Returns
    -------
    FileAllocation
    """
    request = BudgetRequest(rate=rate, count=count, per_instance=per_instance, per_label=per_label, review=review)
    sources = inputs if isinstance(inputs, Sources) else open_sources(inputs, passes=2)
    sources.require_labels()
    for file, others in ((output, []), (queue, [] if output is None else [Path(output)])):
        if file is not None and os.fspath(file) != "-":
            require_separate([Path(file)], sources, others)
            require_writable(Path(file))
    task = _BudgetTask(sources, as_loss(loss), request, progress)
    limits = task.limits(n_rows=0)  # mistakes are named before anything is read
    if limits.per_label is not None:
        allocation = solve_request(Probabilities(task.read_whole()), task.loss, request)
        return task.decide(allocation.price, _AllocationDecider(allocation), output, queue)
    if limits.total is None:
        price = make_price(task.loss, limits, task.axes, ShadowPrices.uniform(0.0, sources.n_labels))
        return task.decide(price, _PriceDecider(price), output, queue)
    histogram = SavingsHistogram(task.loss, sources.n_labels, per_instance=per_instance, review=limits.review)
    task.for_each_table(histogram.add)
    limits = task.limits(histogram.n_rows)
    assert limits.total is not None
    decider = TwoPassDecider(histogram, limits.total)
    price = histogram.price(decider.threshold_bin, task.axes)
    if output is not None or limits.review.ndim or not task.loss.is_decomposable:
        return task.decide(price, decider, output, queue)
    found = decider.threshold_bin
    n_reviews = found.n_above + found.n_taken
    paid = limits.uniform_review * n_reviews
    bill = Bill(paid, histogram.loss_without_reviews - found.saved - paid)
    return FileAllocation(price, limits.total, n_reviews, bill, None, histogram.n_rows, sources.n_labels)


@dataclass(frozen=True)
class _BudgetTask:
    """A budget for some files."""

    sources: Sources
    loss: Loss
    request: BudgetRequest
    progress: Progress | None

    @property
    def axes(self) -> Axes:
        return Axes(self.sources.label_names)

    def limits(self, n_rows: int) -> Limits:
        """Return the limits for so many rows."""
        self.loss.check(self.sources.n_labels)
        return self.request.limits(self.loss, (n_rows, self.sources.n_labels), self.axes)

    def for_each_table(self, work: Callable[[Table], object]) -> None:
        """Do some work for every batch, while the next one is read."""
        if self.progress is not None:
            self.progress.start(self.sources.n_rows_estimated)
        with prefetch(self.sources.batches()) as batches:
            for batch in batches:
                try:
                    work(batch.table)
                except InvalidProbabilities:
                    raise bad_value_error(batch) from None
                if self.progress is not None:
                    self.progress.advance(len(batch))

    def read_whole(self) -> Table:
        """Return all rows as one table: caps per label need to see every row of a label."""
        parts: list[Any] = []

        def keep(table: Table) -> None:
            Probabilities(table).values()  # an error names the row of the file
            parts.append(table.values)

        self.for_each_table(keep)
        parts = parts or [np.empty((0, self.sources.n_labels))]
        whole = sparse.vstack(parts, format="csr") if self.sources.is_sparse else np.concatenate(parts)
        return Table(whole, self.sources.label_names)

    def decide(self, price: Price[Any], decider: Decider, output: Any, queue: Any) -> FileAllocation:
        """Decide all rows, write the answers if there is an output, and add up the bill."""
        billed = _BilledDecider(decider, self.limits(n_rows=0).review, Summary(n_labels=self.sources.n_labels))
        if output is None:
            self.for_each_table(billed.decide_and_count)
            summary = billed.summary
        else:
            job = Job(self.loss, price)
            summary = decide_files(
                self.sources, output, job, queue=queue, progress=self.progress, decider=billed.decide
            )
        bill = Bill(billed.paid, summary.total_expected_loss - billed.paid)
        total = self.limits(summary.n_rows).total
        return FileAllocation(
            price, total, summary.n_abstained, bill, decider.gap, summary.n_rows, self.sources.n_labels
        )


@dataclass
class _BilledDecider:
    """Adds up what reviews cost, and what becomes of the rows."""

    decider: Decider
    review: NDArray[np.float64]
    summary: Summary
    paid: float = 0.0

    def decide(self, table: Table) -> Prediction:
        """Decide a batch, and add the cost of its reviews."""
        prediction = self.decider.decide(table)
        per_label = np.asarray(prediction.abstained.sum(axis=0)).ravel()
        self.paid += float(per_label @ np.broadcast_to(self.review, len(per_label)))
        return prediction

    def decide_and_count(self, table: Table) -> None:
        """Decide a batch that is not written, and count it."""
        self.summary += Summary.of(self.decide(table))


@dataclass(frozen=True)
class _PriceDecider:
    """Decides at a price: without a budget, this is the optimum."""

    price: Price[Any]
    gap: float = 0.0

    def decide(self, table: Table) -> Prediction:
        prediction: Prediction = self.price.decide(table)
        return prediction


@dataclass
class _AllocationDecider:
    """Gives batch after batch what was decided for the whole table."""

    allocation: Allocation[Any]
    n_done: int = 0

    @property
    def gap(self) -> float:
        return self.allocation.gap

    def decide(self, table: Table) -> Prediction:
        whole: Prediction = self.allocation.prediction
        rows = slice(self.n_done, self.n_done + len(table))
        self.n_done = rows.stop
        axes = Axes(table.label_names, table.index)
        return type(whole).from_codes(whole.codes[rows], axes, whole.expected_loss[rows])
