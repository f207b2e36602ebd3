"""The result of a budget: the price of a review, the partial prediction, and the bill."""

from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Generic, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from abstain._core.decision import decide
from abstain._core.losses import Loss
from abstain._core.penalties import BoundPenalty, Capped, Linear, Penalty, PerLabel
from abstain._core.prediction import Prediction, PredictionT
from abstain._core.tables import Axes
from abstain._utils.html import table
from abstain._utils.wording import plural
from abstain.budget._limits import Limits


@dataclass(frozen=True, eq=False, repr=False)
class Price(Penalty, Generic[PredictionT]):
    """The least saving for which a review is made: a penalty, and with it the decision for new instances.

    Every abstention costs `cost`, one on label j in addition ``label_costs[j]``, and at most `max_abstained` labels of
    an instance are abstained on. On new data a price keeps to a budget on average, as far as they are like the data it
    was found on; a label whose review saves just the price is answered, not reviewed. A price is no number:
    ``float(price)`` is its cost if it has neither a cap nor label costs, and raises `TypeError` otherwise.

    Parameters
    ----------
    cost : float
        The cost of every abstention, whatever the label.
    loss : Loss
        The loss that the price was found for.
    max_abstained : int, optional
        How many labels of an instance can be abstained on at most; None if there is no cap.
    label_costs : ndarray of shape (n_labels,), optional
        The additional cost of an abstention on each label; None where all labels cost the same.
    label_names : tuple, optional
        The names of the labels that have these costs: new data must have the same labels in the same order.

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
    loss: Loss
    max_abstained: int | None = None
    label_costs: NDArray[np.float64] | None = None
    label_names: tuple[Hashable, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", float(self.cost))
        if self.label_costs is not None:
            costs = np.array(self.label_costs, np.float64)
            costs.flags.writeable = False
            object.__setattr__(self, "label_costs", costs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Make the price anew when it is unpickled, so that its arrays are read-only again."""
        return type(self), (self.cost, self.loss, self.max_abstained, self.label_costs, self.label_names)

    def __repr__(self) -> str:
        parts = [f"{self.cost:.6g}"]
        parts += [] if self.max_abstained is None else [f"at most {self.max_abstained} per instance"]
        if self.label_costs is not None:
            costs = np.array2string(self.label_costs, precision=3, separator=", ", threshold=6)
            parts.append(f"and by label {costs}")
        return f"Price({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Real):
            raise TypeError(f"{self!r} is no number, and equal to none; compare its cost")
        if not isinstance(other, Price):
            return NotImplemented
        return self._key() == other._key() and self.loss.is_same_as(other.loss)

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        label_costs = None if self.label_costs is None else tuple(self.label_costs.tolist())
        return self.cost, self.max_abstained, label_costs, self.label_names

    def __float__(self) -> float:
        if self.label_costs is not None:
            raise TypeError(f"{self!r} is more than a number: labels have costs of their own; see cost and label_costs")
        if self.max_abstained is not None:
            raise TypeError(f"{self!r} is more than a number: it caps abstentions; see cost and max_abstained")
        return self.cost

    @property
    def penalty(self) -> Penalty:
        """The price as one of the library's penalties: `Linear`, `Capped` or `PerLabel`."""
        counting = Linear(self.cost) if self.max_abstained is None else Capped(self.cost, self.max_abstained)
        if self.label_costs is None:
            return counting
        penalty = PerLabel(self.label_costs, counting)
        penalty.label_names = self.label_names
        return penalty

    def bind(self, n_labels: int) -> BoundPenalty:
        """Return f(0) … f(n_labels), and the additional cost of each label."""
        return self.penalty.bind(n_labels)

    def decide(self, probabilities: Any) -> PredictionT:
        """Decide new instances at this price.

        Parameters
        ----------
        probabilities : array-like of shape (n_instances, n_labels) or (n_labels,)
            As for `abstain.decide`.

        Returns
        -------
        PartialPrediction, or PartialRanking for the rank loss
        """
        return cast(PredictionT, decide(probabilities, self.loss, self))

    def in_words(self) -> str:
        """Return the price as a phrase, for the description of an allocation."""
        return f"at the price {self.cost:.4g}" if self.label_costs is None else "at prices by label"


@dataclass(frozen=True)
class Bill:
    """Expected payments over all instances, in the unit of the loss.

    Parameters
    ----------
    reviews : float
        The cost of the reviews.
    errors : float
        The expected loss of the answers.
    """

    reviews: float
    errors: float

    @property
    def total(self) -> float:
        """The sum of both."""
        return self.reviews + self.errors


@dataclass(frozen=True, eq=False, repr=False)
class Allocation(Generic[PredictionT]):
    """The reviews that a budget allows, where they save most. Made by `solve`.

    Attributes
    ----------
    price : Price
        The least saving for which a review is made; `price.decide` applies it to new data.
    prediction : PartialPrediction, or PartialRanking for the rank loss
        The answers; the abstained labels are those to review. The expected loss includes the cost of the reviews, but
        no shadow price.
    budget : int or None
        How many reviews were allowed; None if only their cost or caps limit them.
    count : int
        How many reviews are made.
    bill : Bill
        The expected payments.
    gap : float
        How much less, at most, any other allocation within the limits could pay; 0 if this one is the optimum.
    """

    price: Price[PredictionT]
    prediction: PredictionT
    budget: int | None
    count: int
    bill: Bill
    gap: float

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


class LazyAllocation(Protocol):
    """The `Allocation` of a Dask collection: the price is known, `prediction`, `count` and `bill` are to be computed.

    `abstain.integrations` has the class; here are its attributes, for type checkers.
    """

    @property
    def price(self) -> Price[Any]: ...
    @property
    def prediction(self) -> Any: ...
    @property
    def budget(self) -> int | None: ...
    @property
    def count(self) -> Any: ...
    @property
    def bill(self) -> Any: ...
    @property
    def gap(self) -> float: ...


class ShadowPrices(NamedTuple):
    """The saving of the next review that a limit forbids, less the cost of that review."""

    common: float
    """Of any label, where the budget for the whole table ends."""
    by_label: NDArray[np.float64]
    """Of each label in addition, where its own limit ends."""

    @classmethod
    def uniform(cls, common: float, n_labels: int) -> "ShadowPrices":
        """Return the prices where labels have no limits of their own."""
        return cls(common, np.zeros(n_labels))


def make_price(
    loss: Loss, limits: Limits, axes: Axes, shadow: ShadowPrices, *, of_intervals: bool = False
) -> Price[Any]:
    """Return shadow prices and review costs together; without a budget, the former are 0 and the price is the cost."""
    by_label = shadow.by_label
    if limits.per_label is not None:  # a label that must not be reviewed costs more than a review can save
        largest = loss.largest_risk(len(by_label), of_intervals=of_intervals)
        by_label = np.where(limits.per_label > 0, by_label, np.maximum(largest, by_label))
    if limits.review.ndim == 0 and not by_label.any():
        return Price(limits.uniform_review + shadow.common, loss, limits.per_instance)
    return Price(shadow.common, loss, limits.per_instance, limits.review + by_label, axes.label_names)


def make_allocation(price: Price[Any], prediction: Prediction, limits: Limits, gap: float = 0.0) -> Allocation[Any]:
    """Return the result for a prediction whose abstentions are the reviews, and whose expected loss includes them."""
    count = int(prediction.n_abstained.sum())
    return Allocation(price, prediction, limits.total, count, make_bill(prediction, limits.review), gap)


def make_bill(prediction: Prediction, review: NDArray[np.float64]) -> Bill:
    """Return the bill for a prediction whose abstentions are reviews, each at this cost or at that of its label."""
    paid = 0.0
    if review.ndim == 1:
        paid = float(np.asarray(prediction.abstained.sum(axis=0)).ravel() @ review)
    elif review:
        paid = float(review) * float(prediction.n_abstained.sum())
    return Bill(paid, float(prediction.expected_loss.sum()) - paid)
