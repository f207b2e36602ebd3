"""Which cost? What people know instead: how much they can review, and what reviews and errors cost them.

>>> import abstain
>>> allocation = abstain.budget.solve([[0.9, 0.6, 0.2], [0.45, 0.05, 0.7]], rate=0.34)
>>> allocation
Allocation: 2 of 2 reviews (33.3% of 2 instances × 3 labels) at the price 0.3, expected loss 0.65
>>> allocation.prediction.labels
array([[ 1, -1,  0],
       [-1,  0,  1]], dtype=int8)
"""

from typing import Any

from abstain._core.losses import DecomposableLoss, LossLike, as_loss
from abstain._core.probabilities import Probabilities
from abstain._core.profile import RiskProfile
from abstain._utils.backends import lazy_backend
from abstain._utils.errors import InvalidLoss
from abstain.budget._allocation import Allocation, Bill, Price
from abstain.budget._limits import read_limits
from abstain.budget._per_entry import solve_by_entry
from abstain.budget._per_instance import solve_by_instance

__all__ = ["Allocation", "Bill", "Price", "solve"]


def __dir__() -> list[str]:
    return __all__


def solve(
    probabilities: Any,
    *,
    loss: LossLike | None = None,
    rate: float | None = None,
    count: int | None = None,
    per_instance: int | None = None,
    per_label: Any = None,
    review: Any = 0.0,
) -> Allocation:
    """Argmin Σ_i E[ℓ(y_D, ŷ_D)] + review · |A|, with at most so many reviews in all, per instance and per label.

    Where the budget ends, the cost c of the linear penalty is its shadow price: what the next review would save, on
    average over those that only pay together. A review that saves nothing is not made, so that less than the budget may
    be spent.

    Parameters
    ----------
    probabilities : as for `abstain.decide`, or a `RiskProfile`
        A profile brings its loss along. Of a Dask array or data frame, a few passes find the price, and the prediction
        is lazy.
    loss
        As for `abstain.decide`; None is the profile's own, or Hamming. Money is a loss too:
        ``Hamming(false_negative=12.0, false_positive=1.0)``, per label if need be, with `review` in the same unit.
    rate, count : float or int, optional
        How many labels can be reviewed over the whole table: a share of them, or a number.
    per_instance : int, optional
        How many labels of an instance can be reviewed at most.
    per_label : int, or one for each label (sequence, or by name: dict, pandas Series), optional
        How many instances can be reviewed for a label at most: what its expert can see. What a dict does not name, or
        is given as infinite, has no limit. For sums over labels only (`Hamming`, `DecomposableLoss`).
    review : float, or one for each label, default=0.0
        What a review costs. For each label its own: sums over labels only.

    Returns
    -------
    Allocation
        With `.price`, `.prediction`, `.bill`, and the `.gap` to the optimum. For sums over labels it is the optimum;
        for the other losses, whose reviews come in bundles, a part of the budget can be too small for the next bundle:
        how much better any other allocation could be at most is the gap, usually a tiny part of the bill.

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
    if (backend := lazy_backend(probabilities)) is not None:
        asked = {"rate": rate, "count": count, "per_instance": per_instance, "per_label": per_label, "review": review}
        lazy: Any = backend.solve(probabilities, as_loss("hamming" if loss is None else loss), **asked)
        return lazy
    source = probabilities if isinstance(probabilities, RiskProfile) else Probabilities(probabilities)
    if isinstance(source, RiskProfile):
        table, chosen = source.probabilities, source.loss
        if loss is not None and not as_loss(loss).is_same_as(chosen):
            raise InvalidLoss(f"the profile is one for {chosen!r}; loss={loss!r} would need another")
    else:
        table, chosen = source, as_loss("hamming" if loss is None else loss)
    chosen.check(table.n_labels)
    table.axes.require_labels(chosen.label_names, repr(chosen))
    if table.is_sparse:
        chosen.accept_sparse()
    limits = read_limits(
        (table.n_rows, table.n_labels), table.axes, chosen,
        rate=rate, count=count, per_instance=per_instance, per_label=per_label, review=review,
    )  # fmt: skip
    if isinstance(chosen, DecomposableLoss):
        return solve_by_entry(table, chosen, limits)
    return solve_by_instance(source, chosen, limits)
