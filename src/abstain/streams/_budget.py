"""A budget for files larger than memory: one pass finds the price, a second one spends it."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from abstain._core.losses import Loss, LossLike, as_loss
from abstain._core.prediction import Prediction
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Axes, Table
from abstain._utils.atomic import require_writable
from abstain._utils.errors import InvalidProbabilities
from abstain.budget import Bill, Price, solve
from abstain.budget._limits import Limits, read_limits
from abstain.budget._two_pass import Reviewer, Sketch
from abstain.streams._bad_values import bad_value_error
from abstain.streams._decide import Job, Progress, decide_files, require_place
from abstain.streams._prefetch import ahead
from abstain.streams._read.sources import Paths, Sources, open_sources
from abstain.streams._summary import Summary

Decider = Callable[[Table], Prediction]


@dataclass(frozen=True)
class FileAllocation:
    """What a budget buys in some files; as `abstain.budget.Allocation`, without the prediction."""

    price: Price
    n_rows: int
    n_labels: int
    budget: int | None
    """How many reviews were allowed; None if only their cost or caps limit them."""
    count: int
    """How many reviews are made."""
    bill: Bill
    gap: float | None
    """How much less, at most, any other allocation could pay; None if nothing was decided, only priced."""


def budget_files(
    inputs: Paths | Sources,
    loss: LossLike = "hamming",
    *,
    rate: float | None = None,
    count: int | None = None,
    per_instance: int | None = None,
    per_label: Any = None,
    review: Any = 0.0,
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
    inputs
        Files, as for `open_sources`; or files that have been opened, for two passes.
    loss, rate, count, per_instance, per_label, review
        As for `abstain.budget.solve`.
    output, queue, progress
        As for `decide_files`. Without an output, only the price and the bill are found.
    """
    given = {"rate": rate, "count": count, "per_instance": per_instance, "per_label": per_label, "review": review}
    sources, loss = inputs if isinstance(inputs, Sources) else open_sources(inputs, passes=2), as_loss(loss)
    sources.require_labels()
    for file, others in ((output, []), (queue, [] if output is None else [Path(output)])):
        if file is not None and os.fspath(file) != "-":
            require_place([Path(file)], sources, others)
            require_writable(Path(file))
    limits = _read(sources, loss, 0, given)  # what makes no sense is said before anything is read
    if limits.per_label is not None:
        plan = _plan_in_memory(sources, loss, given, progress)
    elif limits.total is None:
        sketch = Sketch(loss, sources.n_labels, per_instance=per_instance, review=limits.review)
        price = sketch.price(sketch.margin(0), Axes(sources.label_names))
        plan = _Plan(price, limits, price.decide, lambda: 0.0)
    else:
        sketch = Sketch(loss, sources.n_labels, per_instance=per_instance, review=limits.review)
        _each(sources, sketch.add, progress)
        limits = _read(sources, loss, sketch.n_rows, given)
        assert limits.total is not None
        reviewer = Reviewer(sketch, limits.total)
        margin = reviewer.margin
        plan = _Plan(sketch.price(margin, Axes(sources.label_names)), limits, reviewer, lambda: reviewer.gap)
        if output is None and limits.review.ndim == 0 and loss.is_decomposable:
            n_reviews = margin.above + margin.taken
            paid = limits.uniform_review * n_reviews
            bill = Bill(paid, sketch.complete - margin.saved - paid)
            return FileAllocation(plan.price, sketch.n_rows, sources.n_labels, limits.total, n_reviews, bill, None)
    return plan.carry_out(sources, loss, output, queue, progress)


@dataclass(frozen=True)
class _Plan:
    """How a budget is to be spent."""

    price: Price
    limits: Limits
    decider: Decider
    gap: Callable[[], float]

    def carry_out(
        self,
        sources: Sources,
        loss: Loss,
        output: Any,
        queue: Any,
        progress: Progress | None,
    ) -> FileAllocation:
        paid, summary = 0.0, Summary(n_labels=sources.n_labels)

        def decide(table: Table) -> Prediction:
            nonlocal paid, summary
            prediction = self.decider(table)
            per_label = np.asarray(prediction.abstained.sum(axis=0)).ravel()
            paid += float(per_label @ np.broadcast_to(self.limits.review, len(per_label)))
            summary += Summary.of(prediction)
            return prediction

        if output is None:
            _each(sources, decide, progress)
        else:
            job = Job(loss, self.price)
            decide_files(sources, output, job, queue=queue, progress=progress, decider=decide)
        bill = Bill(paid, summary.expected_loss - paid)
        n, m, count = summary.n_rows, sources.n_labels, summary.n_abstained
        return FileAllocation(self.price, n, m, self.limits.total, count, bill, self.gap())


def _read(sources: Sources, loss: Loss, n_rows: int, given: dict[str, Any]) -> Limits:
    loss.check(sources.n_labels)
    return read_limits((n_rows, sources.n_labels), Axes(sources.label_names), loss, **given)


def _each(sources: Sources, look: Callable[[Table], object], progress: Progress | None) -> None:
    """Show every batch, while the next one is read."""
    if progress is not None:
        progress.start(sources.n_rows_estimated)
    with ahead(sources.batches()) as batches:
        for batch in batches:
            try:
                look(batch.table)
            except InvalidProbabilities:
                raise bad_value_error(batch) from None
            if progress is not None:
                progress.advance(len(batch))


def _plan_in_memory(sources: Sources, loss: Loss, given: dict[str, Any], progress: Progress | None) -> _Plan:
    """Caps per label need to see every row of a label."""
    parts: list[Any] = []

    def keep(table: Table) -> None:
        Probabilities(table).values()
        parts.append(table.values)

    _each(sources, keep, progress)
    parts = parts or [np.empty((0, sources.n_labels))]
    whole = Table(
        sparse.vstack(parts, format="csr") if sources.is_sparse else np.concatenate(parts), sources.label_names
    )
    allocation = solve(whole, loss=loss, **given)
    prediction, done = allocation.prediction, 0

    def decide(table: Table) -> Prediction:
        nonlocal done
        rows = slice(done, done + len(table))
        done = rows.stop
        axes = Axes(table.label_names, table.index)
        return type(prediction).from_codes(prediction.codes[rows], axes, prediction.expected_loss[rows])

    limits = _read(sources, loss, len(whole), given)
    return _Plan(allocation.price, limits, decide, lambda: allocation.gap)
