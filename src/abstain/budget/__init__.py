"""Which cost? What people know instead: how much they can review, and what reviews and errors cost them.

It may import `_core` and `_utils`. Begin with `solve`; `_limits` reads what it is asked, `_per_entry` (losses that are
sums over labels) and `_per_instance` (all others) find the optimum, `_histogram` and `_two_pass` do so for data larger
than memory.

>>> import abstain
>>> allocation = abstain.budget.solve([[0.9, 0.6, 0.2], [0.45, 0.05, 0.7]], rate=0.34)
>>> allocation
Allocation: 2 of 2 reviews (33.3% of 2 instances × 3 labels) at the price 0.3, expected loss 0.65
>>> allocation.prediction.labels
array([[ 1, -1,  0],
       [-1,  0,  1]], dtype=int8)
"""

from typing import Any, Literal, Protocol, TypeAlias, Unpack, overload

import numpy as np

from abstain._core.belief import Belief, of_single_labels, read_belief
from abstain._core.expected_bounds import ExpectedLossBounds, accept_intervals
from abstain._core.intervals import Intervals
from abstain._core.joint import Joint
from abstain._core.losses import (
    DecomposableLoss,
    FMeasure,
    Jaccard,
    Loss,
    LossLike,
    Rank,
    SubsetZeroOne,
    as_loss,
)
from abstain._core.penalties import BoundPenalty
from abstain._core.prediction import PartialPrediction, PartialRanking
from abstain._core.profile import RiskProfile
from abstain._utils.backends import lazy_backend
from abstain._utils.errors import InvalidBudget, InvalidLoss
from abstain.budget._allocation import Allocation, Bill, LazyAllocation, Price
from abstain.budget._limits import BudgetRequest, ByLabel, ReviewLimits
from abstain.budget._per_entry import EntryProblem, solve_by_entry
from abstain.budget._per_instance import solve_by_instance

__all__ = ["Allocation", "Bill", "Price", "solve"]

LabelLoss: TypeAlias = (
    Literal["hamming", "f1", "jaccard", "subset"] | DecomposableLoss | FMeasure | Jaccard | SubsetZeroOne
)
"""Losses known to be decided by a `PartialPrediction`."""


class DaskCollection(Protocol):
    """A Dask array or data frame."""

    def __dask_graph__(self) -> Any: ...


def __dir__() -> list[str]:
    return __all__


@overload
def solve(
    probabilities: DaskCollection, *, loss: LossLike | None = None, **limits: Unpack[ReviewLimits]
) -> LazyAllocation: ...
@overload
def solve(
    probabilities: RiskProfile[Any], *, loss: LossLike | None = None, **limits: Unpack[ReviewLimits]
) -> Allocation[Any]: ...
@overload
def solve(
    probabilities: Any, *, loss: Literal["rank"] | Rank, **limits: Unpack[ReviewLimits]
) -> Allocation[PartialRanking]: ...
@overload
def solve(
    probabilities: Any, *, loss: LabelLoss | None = None, **limits: Unpack[ReviewLimits]
) -> Allocation[PartialPrediction]: ...
@overload
def solve(probabilities: Any, *, loss: LossLike, **limits: Unpack[ReviewLimits]) -> Allocation[Any]: ...
def solve(
    probabilities: Any,
    *,
    loss: LossLike | None = None,
    rate: float | None = None,
    count: int | None = None,
    per_instance: int | None = None,
    per_label: ByLabel | None = None,
    review: ByLabel = 0.0,
) -> Allocation[Any] | LazyAllocation:
    """Argmin Σ_i E[ℓ(y_D, ŷ_D)] + review · |A|, with at most so many reviews in all, per instance and per label.

    Where the budget ends, the cost c of the linear penalty is its shadow price: what the next review would save, on
    average over those that only pay together. A review that saves nothing is not made, so that less than the budget may
    be spent.

    Parameters
    ----------
    probabilities : array-like of shape (n_instances, n_labels), or RiskProfile
        As for `abstain.decide`. A profile brings its loss along. For a Dask array or data frame, a few passes find the
        price, and the prediction is lazy.
    loss : str or Loss, optional
        As for `abstain.decide`; by default the profile's own, or Hamming. Money is a loss too:
        ``Hamming(false_negative=12.0, false_positive=1.0)``, per label if need be, with `review` in the same unit.
    rate : float, optional
        How many labels can be reviewed over the whole table, as a share of them.
    count : int, optional
        How many labels can be reviewed over the whole table, as a number.
    per_instance : int, optional
        How many labels of an instance can be reviewed at most.
    per_label : int, or one for each label (sequence, or by name: dict, pandas Series), optional
        How many instances can be reviewed for a label at most: what its expert can see. A label that a dict does not
        name, or whose number is infinite, has no limit. For sums over labels only (`Hamming`, `DecomposableLoss`).
    review : float, or one for each label, default=0.0
        The cost of a review. One for each label: sums over labels only.

    Returns
    -------
    Allocation
        With `price`, `prediction`, `budget`, `count`, `bill`, and the `gap` to the optimum. For sums over labels it is
        the optimum; for the other losses, whose reviews come in bundles, a part of the budget can be too small for the
        next bundle: how much better any other allocation could be at most is the gap, usually a tiny part of the bill.
        For a Dask collection, an object with the same attributes, of which prediction, count and bill are lazy.

    Examples
    --------
    A missed code costs 12, a wrong one 1, a review 0.40, and nobody reviews more than one code of a patient:

    >>> import abstain
    >>> money = abstain.Hamming(false_negative=12.0, false_positive=1.0)
    >>> bought = abstain.budget.solve([[0.9, 0.3, 0.02], [0.1, 0.5, 0.01]], loss=money, review=0.4, per_instance=1)
    >>> bought.prediction.labels
    array([[ 1, -1,  0],
           [-1,  1,  0]], dtype=int8)
    >>> bought.bill.reviews, round(bought.bill.errors, 2)
    (0.8, 0.96)

    The price that was found on one sample decides on new instances as they come:

    >>> bought.price.decide([0.08, 0.001, 0.7]).labels
    array([[-1,  0,  1]], dtype=int8)
    """
    request = BudgetRequest(rate=rate, count=count, per_instance=per_instance, per_label=per_label, review=review)
    if (backend := lazy_backend(probabilities)) is not None:
        lazy: LazyAllocation = backend.solve(probabilities, as_loss("hamming" if loss is None else loss), request)
        return lazy
    if not isinstance(probabilities, RiskProfile):
        table = read_belief(probabilities)
        table.warn_if_softmax()
        chosen = as_loss("hamming" if loss is None else loss)
        return solve_request(table, chosen, request)
    own = probabilities.loss
    if loss is not None and not as_loss(loss).is_same_as(own):
        raise InvalidLoss(f"the profile is one for {own!r}; loss={loss!r} would need another")
    return solve_request(probabilities, own, request)


def solve_request(source: Belief | RiskProfile[Any], loss: Loss, request: BudgetRequest) -> Allocation[Any]:
    """Return the allocation for a table or a profile in memory."""
    table = source.probabilities if isinstance(source, RiskProfile) else source
    loss.check(table.n_labels)
    table.axes.require_labels(loss.label_names, repr(loss))
    if table.is_sparse:
        loss.accept_sparse()
    if isinstance(table, Intervals):
        accept_intervals(loss, table, None)
    if isinstance(table, Joint):
        loss.accept_joint()
        if request.per_instance is not None and loss.joint_profile_is_hull:
            raise InvalidBudget(
                f"per_instance={request.per_instance}: a limit for each instance needs the least {loss.title} loss for "
                "every number of abstentions, which is known at some of them only for a joint distribution; leave the "
                "limit out, or solve for the marginals of the joint distribution"
            )
    limits = request.limits(loss, (table.n_rows, table.n_labels), table.axes)
    if loss.is_decomposable:
        allocation: Allocation[Any] = solve_by_entry(EntryProblem(of_single_labels(table), loss, limits))
    else:
        allocation = solve_by_instance(source, loss, limits)
    if isinstance(table, Intervals):
        reviews = BoundPenalty(np.zeros(table.n_labels + 1), label_costs=np.broadcast_to(limits.review, table.n_labels))
        allocation.prediction.with_bounds(ExpectedLossBounds(table, loss, reviews))
    return allocation
