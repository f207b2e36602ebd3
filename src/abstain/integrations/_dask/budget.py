"""Budgets for Dask collections: a few passes find the price, and what is decided at it stays lazy.

The first pass sketches what reviews save, the second looks closely at the margin, where the budget ends; both bring
back little more than counts. How many of the reviews that tie with the price each block of rows gets follows from
these, so that afterwards every block is decided by itself, to the same answers as if all were one table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray

from abstain._core.losses import DecomposableLoss, Loss
from abstain._core.tables import RowSlice
from abstain._utils.errors import InvalidBudget
from abstain.budget._allocation import Bill, Price, bill_of
from abstain.budget._limits import read_limits
from abstain.budget._two_pass import Counts, Sketch
from abstain.integrations._dask.budget_per_entry import review_entries
from abstain.integrations._dask.budget_per_instance import review_instances
from abstain.integrations._dask.collection import Chunked, read_chunks


@dataclass(frozen=True, eq=False, repr=False)
class ChunkedAllocation:
    """The reviews that a budget allows, where they save most: the `Allocation` of a Dask array or data frame.

    The price is known; what takes another pass over the data is lazy.

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

    price: Price
    """What a review must save to be made; `price.decide` applies it to new data."""
    prediction: Any
    """What is answered, and what is reviewed, lazy. Its expected loss holds what reviews cost, but no shadow price."""
    gap: float
    """How much less, at most, any other allocation within the limits could pay; 0 if this one is the optimum."""
    budget: int | None
    """How many reviews are allowed; None if only their cost or caps limit them."""
    review: NDArray[np.float64]
    """What a review costs: one number, or one per label."""

    @property
    def count(self) -> da.Array:
        """How many reviews are made, lazy."""
        return self.prediction.n_abstained.sum()

    @property
    def bill(self) -> Delayed:
        """What is expected to be paid: ``compute()`` gives a `Bill`."""
        return self.prediction.blockwise("bill", Chunked, partial(bill_of, review=self.review)).folded(_total)

    def __repr__(self) -> str:
        limit = "reviews" if self.budget is None else f"at most {self.budget} reviews"
        gap = "" if self.gap == 0 else f", at most {self.gap:.3g} from the optimum"
        return f"ChunkedAllocation: {limit} of {self.prediction.layout} {self.price.in_words()}{gap}"


def solve(probabilities: Any, loss: Loss, **asked: Any) -> ChunkedAllocation:
    """The allocation for a Dask array or data frame; what is asked is as for `solve`."""
    table = read_chunks(probabilities, "probabilities")
    layout = table.layout
    loss.check(layout.n_labels)
    layout.axes.require_labels(loss.label_names, repr(loss))
    if layout.is_sparse:
        loss.accept_sparse()
    n_rows = int(layout.n_rows) if layout.is_known else 1
    limits = read_limits((n_rows, layout.n_labels), layout.axes, loss, **asked)
    if limits.per_instance is not None and limits.per_label is not None:
        raise InvalidBudget(
            "caps per instance and per label at once are a matching of the whole table, which is never in one place "
            "here: give one of them, or compute() the probabilities"
        )
    sketch = None
    if limits.total is not None and limits.per_label is None:
        make = partial(Sketch, loss, layout.n_labels, per_instance=limits.per_instance, review=limits.review)
        of_blocks = table.blockwise("sketch", Chunked, partial(_counted, make=make))
        sketch = make()
        sketch.include(of_blocks.folded(partial(_merged, make=make)).compute())
        n_rows = sketch.n_rows
    elif limits.per_label is not None and not layout.is_known:
        n_rows = table.blockwise("count_rows", Chunked, _count_rows).folded(sum).compute()
    limits = read_limits((n_rows, layout.n_labels), layout.axes, loss, **asked)
    if isinstance(loss, DecomposableLoss):
        price, prediction, gap = review_entries(table, loss, limits, sketch, n_rows)
    else:
        price, prediction, gap = review_instances(table, loss, limits, sketch)
    return ChunkedAllocation(price, prediction, gap, limits.total, limits.review)


def _count_rows(part: RowSlice) -> int:
    return int(part.table.shape[0])


def _counted(part: Any, make: Callable[[], Sketch]) -> Counts:
    sketch = make()
    sketch.add(part)
    return sketch.counted()


def _merged(parts: list[Counts], make: Callable[[], Sketch]) -> Counts:
    merged = make()
    for counts in parts:
        merged.include(counts)
    return merged.counted()


def _total(bills: list[Bill]) -> Bill:
    return Bill(sum(bill.reviews for bill in bills), sum(bill.errors for bill in bills))
