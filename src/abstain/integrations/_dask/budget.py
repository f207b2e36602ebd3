"""Budgets for Dask collections: a few passes find the price, and the prediction at this price stays lazy.

The first pass fills a histogram of what reviews save, the second looks closely at the bin in which the budget ends;
both bring back little more than counts. How many of the reviews that tie with the price each chunk gets follows from
these, so that afterwards every chunk is decided by itself, to the same answers as if all were one table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray

from abstain._core.losses import Loss
from abstain._core.tables import RowSlice
from abstain._utils.errors import InvalidBudget
from abstain.budget._allocation import Bill, Price, make_bill
from abstain.budget._histogram import HistogramCounts, SavingsHistogram
from abstain.budget._limits import BudgetRequest
from abstain.integrations._dask.budget_per_entry import review_entries
from abstain.integrations._dask.budget_per_instance import review_instances
from abstain.integrations._dask.collection import Chunked, read_chunks


@dataclass(frozen=True, eq=False, repr=False)
class ChunkedAllocation:
    """The reviews that a budget allows, where they save most: the `Allocation` of a Dask array or data frame.

    The price is known; what takes another pass over the data is lazy.

    Attributes
    ----------
    price : Price
        The least saving for which a review is made; `price.decide` applies it to new data.
    prediction : ChunkedPrediction, or ChunkedRanking for the rank loss
        The answers; the abstained labels are those to review. The expected loss includes the cost of the reviews, but
        no shadow price.
    budget : int or None
        How many reviews are allowed; None if only their cost or caps limit them.
    count : dask.array.Array without dimensions
        How many reviews are made.
    bill : Delayed
        The expected payments: ``compute()`` gives a `Bill`.
    gap : float
        How much less, at most, any other allocation within the limits could pay; 0 if this one is the optimum.

    Examples
    --------
    >>> import abstain, dask.array as da
    >>> p = da.from_array([[0.9, 0.6, 0.2], [0.45, 0.05, 0.7]], chunks=(1, 3))
    >>> allocation = abstain.budget.solve(p, rate=0.34)
    >>> allocation
    ChunkedAllocation: at most 2 reviews of 2 instances × 3 labels in 2 blocks at the price 0.3
    >>> allocation.prediction.labels.compute()
    array([[ 1, -1,  0],
           [-1,  0,  1]], dtype=int8)
    >>> allocation.bill.compute()
    Bill(reviews=0.0, errors=0.65)
    """

    price: Price[Any]
    prediction: Any
    budget: int | None
    gap: float
    _review: NDArray[np.float64]

    @property
    def count(self) -> da.Array:
        return self.prediction.n_abstained.sum()

    @property
    def bill(self) -> Delayed:
        return self.prediction.blockwise("bill", Chunked, partial(make_bill, review=self._review)).folded(_add_bills)

    def __repr__(self) -> str:
        limit = "reviews" if self.budget is None else f"at most {self.budget} reviews"
        gap = "" if self.gap == 0 else f", at most {self.gap:.3g} from the optimum"
        return f"ChunkedAllocation: {limit} of {self.prediction.layout} {self.price.in_words()}{gap}"


def solve(probabilities: Any, loss: Loss, request: BudgetRequest) -> ChunkedAllocation:
    """Return the allocation for a Dask array or data frame."""
    table = read_chunks(probabilities, "probabilities")
    layout = table.layout
    loss.check(layout.n_labels)
    layout.axes.require_labels(loss.label_names, repr(loss))
    if layout.is_sparse:
        loss.accept_sparse()
    n_rows = int(layout.n_rows) if layout.is_known else 1
    limits = request.limits(loss, (n_rows, layout.n_labels), layout.axes)
    if limits.per_instance is not None and limits.per_label is not None:
        raise InvalidBudget(
            "caps per instance and per label at once are a matching of the whole table, which is never in one place "
            "here: give one of them, or compute() the probabilities"
        )
    histogram = None
    if limits.total is not None and limits.per_label is None:
        make = partial(SavingsHistogram, loss, layout.n_labels, per_instance=limits.per_instance, review=limits.review)
        counts = table.blockwise("histogram", Chunked, partial(_count_savings, make=make))
        histogram = make()
        histogram.include(counts.folded(partial(_add_counts, make=make)).compute())
        n_rows = histogram.n_rows
    elif limits.per_label is not None and not layout.is_known:
        n_rows = table.blockwise("count_rows", Chunked, _count_rows).folded(sum).compute()
    limits = request.limits(loss, (n_rows, layout.n_labels), layout.axes)
    if loss.is_decomposable:
        price, prediction = review_entries(table, loss, limits, histogram, n_rows)
        gap = 0.0
    else:
        price, prediction, gap = review_instances(table, loss, limits, histogram)
    return ChunkedAllocation(price, prediction, limits.total, gap, limits.review)


def _count_rows(part: RowSlice) -> int:
    return int(part.table.shape[0])


def _count_savings(part: Any, make: Callable[[], SavingsHistogram]) -> HistogramCounts:
    """Return the histogram of one chunk."""
    histogram = make()
    histogram.add(part)
    return histogram.counts()


def _add_counts(parts: list[HistogramCounts], make: Callable[[], SavingsHistogram]) -> HistogramCounts:
    histogram = make()
    for counts in parts:
        histogram.include(counts)
    return histogram.counts()


def _add_bills(bills: list[Bill]) -> Bill:
    return Bill(sum(bill.reviews for bill in bills), sum(bill.errors for bill in bills))
