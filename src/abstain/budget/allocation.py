"""What a budget buys: the price of a review, the partial prediction, and the bill."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from abstain.budget.limits import Limits
from abstain.decision import decide
from abstain.html import table
from abstain.losses import Loss
from abstain.penalties import Capped, Linear, Penalty, PerLabel
from abstain.prediction import PartialPrediction, PartialRanking
from abstain.probabilities import Probabilities
from abstain.wording import plural


class Price(float):
    """What a review must save to be worth it: a linear cost, and with it the decision for new instances.

    As a number it is the cost c; as a penalty of `abstain.decide` it is all that `penalty` has: limits that hold for
    single labels make some of them dearer, and a cap per instance stays in force. On new data a price keeps to a budget
    on average, as far as they are like those it was fixed on; what ties with the price is answered, not reviewed.

    Examples
    --------
    >>> import abstain
    >>> price = abstain.budget.solve([[0.9, 0.4], [0.2, 0.55]], count=1).price
    >>> price
    Price(0.4)
    >>> price.decide([[0.55, 0.05]]).labels
    array([[-1,  0]], dtype=int8)
    """

    loss: Loss
    most: int | None
    label_prices: NDArray[np.float64] | None
    """What a review of each label costs besides; None where all cost the same."""
    label_names: tuple[Hashable, ...] | None
    """Whose prices these are, if that is known: new data must have the same labels in the same order."""

    def __new__(
        cls,
        cost: float,
        loss: Loss,
        most: int | None = None,
        label_prices: NDArray[np.float64] | None = None,
        label_names: tuple[Hashable, ...] | None = None,
    ) -> Self:
        """A price is a number from the start."""
        self = super().__new__(cls, cost)
        self.loss, self.most, self.label_prices, self.label_names = loss, most, label_prices, label_names
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        """So that a price can be kept in a file: it is more than its number."""
        return float(self), self.loss, self.most, self.label_prices, self.label_names

    def __repr__(self) -> str:
        parts = [f"{float(self):.6g}"]
        parts += [] if self.most is None else [f"at most {self.most} per instance"]
        if self.label_prices is not None:
            dearer = np.array2string(self.label_prices, precision=3, separator=", ", threshold=6)
            parts.append(f"and by label {dearer}")
        return f"Price({', '.join(parts)})"

    @property
    def penalty(self) -> Penalty:
        """The penalty that `abstain.decide` takes."""
        counting = Linear(float(self)) if self.most is None else Capped(float(self), self.most)
        if self.label_prices is None:
            return counting
        priced = PerLabel(self.label_prices, counting)
        priced.label_names = self.label_names
        return priced

    def decide(self, probabilities: Any) -> PartialPrediction | PartialRanking:
        """The decision for new instances at this price: as many as there are, one at a time or in batches."""
        return decide(probabilities, self.loss, self.penalty)


@dataclass(frozen=True)
class Bill:
    """What is expected to be paid, over all instances, in the unit of the loss."""

    reviews: float
    """For the reviews."""
    errors: float
    """For wrong answers: their expected loss."""

    @property
    def total(self) -> float:
        """Both together."""
        return self.reviews + self.errors


@dataclass(frozen=True, eq=False, repr=False)
class Allocation:
    """The reviews that a budget allows, where they save most."""

    price: Price
    """What a review must save to be made; `price.decide` applies it to new data."""
    prediction: PartialPrediction | PartialRanking
    """What is answered, and what is reviewed. Its expected loss holds what reviews cost, but no shadow price."""
    budget: int | None
    """How many reviews were allowed; None if only their cost or caps limit them."""
    bill: Bill
    """What is expected to be paid."""
    gap: float
    """How much less, at most, any other allocation within the limits could pay; 0 if this one is the optimum."""

    @property
    def count(self) -> int:
        """How many reviews are made."""
        return int(self.prediction.n_abstained.sum())

    def __repr__(self) -> str:
        n, m = self.prediction.shape
        share = f"{self.count / (n * m):.1%}" if n else "nothing"
        priced = f"at the price {float(self.price):.4g}" if self.price.label_prices is None else "at prices by label"
        paid = f"expected {'bill' if self.bill.reviews else 'loss'} {self.bill.total:.4g}"
        gap = "" if self.gap == 0 else f", at most {self.gap:.3g} from the optimum"
        made = (
            plural(self.count, "review") if self.budget is None else f"{self.count} of {plural(self.budget, 'review')}"
        )
        reviews = f"{made} ({share} of {plural(n, 'instance')} × {plural(m, 'label')})"
        return f"Allocation: {reviews} {priced}, {paid}{gap}"

    def _repr_html_(self) -> str:
        n, m = self.prediction.shape
        by_label = "" if self.price.label_prices is None else ", and for each label besides"
        rows = [
            ("instances × labels", f"{n} × {m}"),
            ("reviews", str(self.count)),
            ("reviews allowed", "no limit" if self.budget is None else str(self.budget)),
            ("price of a review", f"{float(self.price):.4g}{by_label}"),
            ("expected cost of errors", f"{self.bill.errors:.4g}"),
            ("cost of reviews", f"{self.bill.reviews:.4g}"),
            ("in all", f"{self.bill.total:.4g}"),
            ("from the optimum", f"at most {self.gap:.3g}" if self.gap else "0"),
        ]
        return table("Allocation", ["", ""], rows)


def allocated(
    price: Price, codes: Any, expected: NDArray[np.float64], table: Probabilities, limits: Limits, gap: float = 0.0
) -> Allocation:
    """The result, given the answers and the expected loss of each instance, reviews included."""
    kind = PartialRanking if price.loss.gives_rankings else PartialPrediction
    prediction = kind.trusted(codes, table.axes, expected)
    return Allocation(price, prediction, limits.total, bill_of(prediction, limits.review), gap)


def bill_of(prediction: PartialPrediction | PartialRanking, review: NDArray[np.float64]) -> Bill:
    """What is expected to be paid where the abstentions are reviews, each at this cost or at that of its label."""
    assert prediction.expected_loss is not None
    paid = 0.0
    if review.ndim == 1:
        paid = float(np.asarray(prediction.abstained.sum(axis=0)).ravel() @ review)
    elif review:
        paid = float(review) * float(prediction.n_abstained.sum())
    return Bill(paid, float(prediction.expected_loss.sum()) - paid)
