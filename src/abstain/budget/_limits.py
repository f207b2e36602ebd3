"""What the user allows: the request as it is given, and the limits that follow from it for one table."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abstain._core.losses import Loss
from abstain._core.tables import Axes, names_of
from abstain._utils.errors import InvalidBudget

ByLabel: TypeAlias = ArrayLike | Mapping[Any, float]
"""One number for all labels, or one for each: a sequence, or by name (dict, pandas Series)."""


class ReviewLimits(TypedDict, total=False):
    """The keyword arguments of `abstain.budget.solve` that limit or price reviews, for its overloads."""

    rate: float | None
    count: int | None
    per_instance: int | None
    per_label: ByLabel | None
    review: ByLabel


@dataclass(frozen=True)
class Limits:
    """At most `total` reviews, `per_instance` of an instance, `per_label` of each label; None is no limit."""

    total: int | None
    per_instance: int | None
    per_label: NDArray[np.int64] | None
    review: NDArray[np.float64]
    """The cost of a review: one number (0-dimensional), or one per label."""

    @property
    def uniform_review(self) -> float:
        """The cost of any review, where all labels cost the same."""
        return float(self.review)


@dataclass(frozen=True, kw_only=True, eq=False)
class BudgetRequest:
    """The arguments of `abstain.budget.solve` that limit or price reviews, as the user gives them.

    What can be checked without a table is checked when the request is made, the rest by `limits`.
    """

    rate: float | None = None
    count: int | None = None
    per_instance: int | None = None
    per_label: ByLabel | None = None
    review: ByLabel | None = 0.0

    def __post_init__(self) -> None:
        rate: Any = self.rate
        count, per_instance = self.count, self.per_instance
        if rate is not None and count is not None:
            raise InvalidBudget("give a rate or a count of reviews, not both")
        if per_instance is not None and (not _is_whole(per_instance) or per_instance < 0):
            raise InvalidBudget(f"per_instance is {per_instance!r}; expected a whole number ≥ 0")
        if rate is not None and (isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= float(rate) <= 1):
            raise InvalidBudget(f"rate is {rate!r}; expected a share of the labels, from 0 to 1")
        if count is not None and (not _is_whole(count) or count < 0):
            raise InvalidBudget(f"count is {count!r}; expected a whole number of reviews ≥ 0")

    def limits(self, loss: Loss, shape: tuple[int, int], axes: Axes) -> Limits:
        """Return the limits for a table of this shape and with these names; raise `InvalidBudget` if they do not fit.

        The number of rows may be a guess (0, say) to check a request before the rows are counted.
        """
        n_rows, n_labels = shape
        per_label = self.per_label
        caps = None if per_label is None else _read_by_label(per_label, "per_label", n_labels, axes, absent=np.inf)
        review = _read_by_label(0.0 if self.review is None else self.review, "review", n_labels, axes)
        if all(limit is None for limit in (self.rate, self.count, self.per_instance, caps)) and not review.any():
            raise InvalidBudget(
                "nothing limits the reviews: give rate, count, per_instance, per_label or what a review costs"
            )
        for name, given in (("per_label", caps), ("a review cost for each label", review if review.ndim else None)):
            if given is not None and not loss.is_decomposable:
                raise InvalidBudget(
                    f"{name} needs a loss that is a sum over labels (Hamming, with any costs); {loss!r} is not: which "
                    "label is left open changes what the others are worth"
                )
        if caps is not None and np.any(caps != np.floor(caps)):
            raise InvalidBudget("per_label: expected whole numbers ≥ 0, or inf for no limit")
        whole_caps = None if caps is None else np.minimum(np.broadcast_to(caps, n_labels), n_rows).astype(np.int64)
        return Limits(self._total(n_rows, n_labels), at_most(self.per_instance, n_labels), whole_caps, review)

    def _total(self, n_rows: int, n_labels: int) -> int | None:
        if self.rate is not None:
            share = float(self.rate) * n_rows * n_labels
            return int(np.floor(share * (1.0 + 1e-12)))  # 0.07 · 100 is 7, not 7 less rounding
        return None if self.count is None else min(int(self.count), n_rows * n_labels)


def at_most(per_instance: int | None, n_labels: int) -> int | None:
    """Return a cap per instance, or None if it is none for so many labels."""
    return None if per_instance is None or per_instance >= n_labels else int(per_instance)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _read_by_label(
    given: Any, name: str, n_labels: int, axes: Axes, *, absent: float | None = None
) -> NDArray[np.float64]:
    """Return a number ≥ 0 for all labels (0-dimensional) or one for each.

    `absent` is the number of labels that a dict or Series does not name, None if it must name all; if it is infinite,
    the numbers given may be infinite too.
    """
    names = names_of(given)
    if names is not None:
        given = dict(zip(names, given, strict=True))
    if isinstance(given, Mapping):
        given = _in_order(given, name, axes.names(n_labels), absent)
    numbers = np.asarray(given)
    if numbers.dtype.kind not in "iuf":
        raise InvalidBudget(f"{name} is {given!r}; expected a number, or one for each label")
    if numbers.ndim > 1 or (numbers.ndim == 1 and len(numbers) != n_labels):
        raise InvalidBudget(
            f"{name} has shape {numbers.shape}; expected one number, or one for each of {n_labels} labels"
        )
    bad = np.flatnonzero(~((numbers >= 0) & (np.isfinite(numbers) | (absent == np.inf))))
    if len(bad):
        where = f" of {axes.label(int(bad[0]))}" if numbers.ndim else ""
        raise InvalidBudget(f"{name}{where} is {np.ravel(numbers)[bad[0]]}; expected finite numbers ≥ 0")
    return numbers.astype(np.float64)


def _in_order(given: Mapping[Any, Any], what: str, names: list[Hashable], absent: float | None) -> list[Any]:
    """Return the numbers of a mapping in the order of the labels."""
    for name in given:
        if name not in names:
            raise InvalidBudget(f"{what} names {name!r}, which is none of the labels")
    missing = [name for name in names if name not in given]
    if missing and absent is None:
        raise InvalidBudget(f"{what} says nothing of label {missing[0]!r}")
    return [given.get(name, absent) for name in names]
