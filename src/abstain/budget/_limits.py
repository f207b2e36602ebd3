"""The door for budgets: what may be reviewed, and what a review costs."""

from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.losses import Loss
from abstain._core.tables import Axes, names_of
from abstain._utils.errors import InvalidBudget


@dataclass(frozen=True)
class Limits:
    """At most `total` reviews, `per_instance` of an instance, `per_label` of each label; None is no limit."""

    total: int | None
    per_instance: int | None
    per_label: NDArray[np.int64] | None
    review: NDArray[np.float64]
    """What a review costs: one number (0-dimensional), or one per label."""

    @property
    def uniform_review(self) -> float:
        """What any review costs, where all labels cost the same."""
        return float(self.review)


def read_limits(
    shape: tuple[int, int],
    axes: Axes,
    loss: Loss,
    *,
    rate: Any,
    count: Any,
    per_instance: Any,
    per_label: Any,
    review: Any,
) -> Limits:
    """What the user asks for, checked against the table it is about."""
    if rate is not None and count is not None:
        raise InvalidBudget("give a rate or a count of reviews, not both")
    if per_instance is not None and (not _is_whole(per_instance) or per_instance < 0):
        raise InvalidBudget(f"per_instance is {per_instance!r}; expected a whole number ≥ 0")
    by_label = None if per_label is None else _one_per_label(per_label, "per_label", shape[1], axes, absent=np.inf)
    prices = _one_per_label(0.0 if review is None else review, "review", shape[1], axes)
    if all(limit is None for limit in (rate, count, per_instance, per_label)) and not prices.any():
        raise InvalidBudget(
            "nothing limits the reviews: give rate, count, per_instance, per_label or what a review costs"
        )
    for name, given in (("per_label", by_label), ("a review cost for each label", prices if prices.ndim else None)):
        if given is not None and not loss.is_decomposable:
            raise InvalidBudget(
                f"{name} needs a loss that is a sum over labels (Hamming, with any costs); {loss!r} is not: which "
                "label is left open changes what the others are worth"
            )
    if by_label is not None and np.any(by_label != np.floor(by_label)):
        raise InvalidBudget("per_label: expected whole numbers ≥ 0, or inf for no limit")
    capacity = None if by_label is None else np.minimum(np.broadcast_to(by_label, shape[1]), shape[0]).astype(np.int64)
    most = None if per_instance is None or per_instance >= shape[1] else int(per_instance)
    return Limits(_total(rate, count, shape), most, capacity, prices)


def _total(rate: Any, count: Any, shape: tuple[int, int]) -> int | None:
    if rate is not None:
        if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= float(rate) <= 1:
            raise InvalidBudget(f"rate is {rate!r}; expected a share of the labels, from 0 to 1")
        return int(np.floor(float(rate) * shape[0] * shape[1] * (1.0 + 1e-12)))  # 0.07 · 100 is 7, not 7 less rounding
    if count is not None and (not _is_whole(count) or count < 0):
        raise InvalidBudget(f"count is {count!r}; expected a whole number of reviews ≥ 0")
    return None if count is None else min(int(count), shape[0] * shape[1])


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _one_per_label(
    given: Any, what: str, n_labels: int, axes: Axes, absent: float | None = None
) -> NDArray[np.float64]:
    """A number ≥ 0 for all labels or for each; a dict or a pandas Series gives them by name, some if `absent` is.

    `absent` is what labels have that are not named; if it is infinite, so may be what is given.
    """
    names = names_of(given)
    if names is not None:
        given = dict(zip(names, given, strict=True))
    if isinstance(given, dict):
        given = _by_name(given, what, axes.names(n_labels), absent)
    numbers = np.asarray(given)
    if numbers.dtype.kind not in "iuf":
        raise InvalidBudget(f"{what} is {given!r}; expected a number, or one for each label")
    if numbers.ndim > 1 or (numbers.ndim == 1 and len(numbers) != n_labels):
        raise InvalidBudget(
            f"{what} has shape {numbers.shape}; expected one number, or one for each of {n_labels} labels"
        )
    bad = np.flatnonzero(~((numbers >= 0) & (np.isfinite(numbers) | (absent == np.inf))))
    if len(bad):
        where = f" of {axes.label(int(bad[0]))}" if numbers.ndim else ""
        raise InvalidBudget(f"{what}{where} is {np.ravel(numbers)[bad[0]]}; expected finite numbers ≥ 0")
    return numbers.astype(np.float64)


def _by_name(given: dict[Hashable, Any], what: str, names: list[Hashable], absent: float | None) -> list[Any]:
    for name in given:
        if name not in names:
            raise InvalidBudget(f"{what} names {name!r}, which is none of the labels")
    missing = [name for name in names if name not in given]
    if missing and absent is None:
        raise InvalidBudget(f"{what} says nothing of label {missing[0]!r}")
    return [given.get(name, absent) for name in names]
