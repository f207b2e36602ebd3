"""What a budget buys: the price of a review, the partial prediction, and the bill."""

from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.decision import decide
from abstain._core.losses import Loss
from abstain._core.penalties import BoundPenalty, Capped, Linear, Penalty, PerLabel
from abstain._core.prediction import PartialPrediction, PartialRanking, Prediction
from abstain._core.probabilities import Probabilities
from abstain._utils.html import table
from abstain._utils.wording import plural
from abstain.budget._limits import Limits


@dataclass(frozen=True, eq=False, repr=False)
class Price(Penalty):
    """What a review must save to be worth it: a penalty, and with it the decision for new instances.

    Every abstention costs `cost`, that on a label its label cost besides, and of an instance at most `max_abstained`
    labels are left open. On new data a price keeps to a budget on average, as far as they are like those it was fixed
    on; what ties with the price is answered, not reviewed. It is no number: ``float(price)`` is its cost if that is
    all there is to it.

    Examples
    --------
    >>> import abstain
    >>> price = abstain.budget.solve([[0.9, 0.4], [0.2, 0.55]], count=1).price
    >>> price, price.cost
    (Price(0.4), 0.4)
    >>> price.decide([[0.55, 0.05]]).labels
    array([[-1,  0]], dtype=int8)
    >>> abstain.decide([[0.55, 0.05]], price.loss, price).labels
    array([[-1,  0]], dtype=int8)
    """

    cost: float
    """What every abstention costs, whatever the label."""
    loss: Loss
    """What the price was found for."""
    max_abstained: int | None = None
    """How many labels of an instance can be left open at most; None if there is no cap."""
    label_costs: NDArray[np.float64] | None = None
    """What an abstention on each label costs besides; None where all cost the same."""
    label_names: tuple[Hashable, ...] | None = None
    """Whose costs these are, if that is known: new data must have the same labels in the same order."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", float(self.cost))
        if self.label_costs is not None:
            costs = np.array(self.label_costs, np.float64)
            costs.flags.writeable = False
            object.__setattr__(self, "label_costs", costs)

    def __reduce__(self) -> tuple[Any, ...]:
        """As it was made, so that what comes out of a file cannot be changed either."""
        return type(self), (self.cost, self.loss, self.max_abstained, self.label_costs, self.label_names)

    def __repr__(self) -> str:
        parts = [f"{self.cost:.6g}"]
        parts += [] if self.max_abstained is None else [f"at most {self.max_abstained} per instance"]
        if self.label_costs is not None:
            dearer = np.array2string(self.label_costs, precision=3, separator=", ", threshold=6)
            parts.append(f"and by label {dearer}")
        return f"Price({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Real):
            raise TypeError(f"{self!r} is no number, and equal to none; compare its cost")
        if not isinstance(other, Price):
            return NotImplemented
        return self._plain() == other._plain() and self.loss.is_same_as(other.loss)

    def __hash__(self) -> int:
        return hash(self._plain())

    def _plain(self) -> tuple[Any, ...]:
        by_label = None if self.label_costs is None else tuple(self.label_costs.tolist())
        return self.cost, self.max_abstained, by_label, self.label_names

    def __float__(self) -> float:
        if self.label_costs is not None:
            raise TypeError(f"{self!r} is more than a number: labels have costs of their own; see cost and label_costs")
        if self.max_abstained is not None:
            raise TypeError(f"{self!r} is more than a number: it caps abstentions; see cost and max_abstained")
        return self.cost

    @property
    def penalty(self) -> Penalty:
        """The same penalty in its plain form: `Linear`, `Capped` or `PerLabel`."""
        counting = Linear(self.cost) if self.max_abstained is None else Capped(self.cost, self.max_abstained)
        if self.label_costs is None:
            return counting
        priced = PerLabel(self.label_costs, counting)
        priced.label_names = self.label_names
        return priced

    def bind(self, n_labels: int) -> BoundPenalty:
        """f(0) … f(m) for m labels, and what each label costs besides."""
        return self.penalty.bind(n_labels)

    def decide(self, probabilities: Any) -> Prediction:
        """The decision for new instances at this price: as many as there are, one at a time or in batches."""
        return decide(probabilities, self.loss, self)

    def in_words(self) -> str:
        """For the description of an allocation."""
        return f"at the price {self.cost:.4g}" if self.label_costs is None else "at prices by label"


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
    prediction: Prediction
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
        paid = f"expected {'bill' if self.bill.reviews else 'loss'} {self.bill.total:.4g}"
        gap = "" if self.gap == 0 else f", at most {self.gap:.3g} from the optimum"
        made = (
            plural(self.count, "review") if self.budget is None else f"{self.count} of {plural(self.budget, 'review')}"
        )
        reviews = f"{made} ({share} of {plural(n, 'instance')} × {plural(m, 'label')})"
        return f"Allocation: {reviews} {self.price.in_words()}, {paid}{gap}"

    def _repr_html_(self) -> str:
        n, m = self.prediction.shape
        by_label = "" if self.price.label_costs is None else ", and for each label besides"
        rows = [
            ("instances × labels", f"{n} × {m}"),
            ("reviews", str(self.count)),
            ("reviews allowed", "no limit" if self.budget is None else str(self.budget)),
            ("price of a review", f"{self.price.cost:.4g}{by_label}"),
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
    prediction = kind.from_codes(codes, table.axes, expected)
    return Allocation(price, prediction, limits.total, bill_of(prediction, limits.review), gap)


def bill_of(prediction: Prediction, review: NDArray[np.float64]) -> Bill:
    """What is expected to be paid where the abstentions are reviews, each at this cost or at that of its label."""
    paid = 0.0
    if review.ndim == 1:
        paid = float(np.asarray(prediction.abstained.sum(axis=0)).ravel() @ review)
    elif review:
        paid = float(review) * float(prediction.n_abstained.sum())
    return Bill(paid, float(prediction.expected_loss.sum()) - paid)
