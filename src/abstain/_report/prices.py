"""The prices of reviews and errors that a report starts with."""

from dataclasses import dataclass
from numbers import Real

from abstain._core.losses import Hamming
from abstain._utils.errors import InvalidParameter
from abstain._utils.numbers import LARGEST_PRICE


@dataclass(frozen=True)
class Prices:
    """What a review and the two kinds of error cost, until the reader changes it.

    The costs of errors are the parameters of the Hamming loss; for other losses they only make the bill. Without a
    price of a review there is no bill.
    """

    review: float | None = None
    false_negative: float = 1.0
    false_positive: float = 1.0

    def __post_init__(self) -> None:
        for name, price in vars(self).items():
            if price is None and name == "review":
                continue
            if isinstance(price, bool) or not isinstance(price, Real) or not 0 <= float(price) <= LARGEST_PRICE:
                raise InvalidParameter(f"{name} is {price!r}; a price is a number from 0 to {LARGEST_PRICE:g}")

    @property
    def hamming(self) -> Hamming:
        """The Hamming loss at these prices."""
        return Hamming(float(self.false_negative), float(self.false_positive))

    @property
    def facts(self) -> dict[str, float | None]:
        """The prices under the names that the page uses."""
        return {
            "review": None if self.review is None else float(self.review),
            "falseNegative": float(self.false_negative),
            "falsePositive": float(self.false_positive),
        }
