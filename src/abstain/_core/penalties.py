"""Penalties: the cost of abstaining.

A *counting* penalty f(a) depends on how many labels of an instance are abstained; f(0) = 0. A `PerLabel` penalty has a
price for each label, to which a counting penalty may be added. Users pass numbers, functions and tables as they are;
`as_penalty` reads them, and `Penalty.bind` turns any of them into the plain numbers that kernels use.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from abstain._core.kernels.choice import TIE, tipped
from abstain._core.tables import names_of
from abstain._utils.errors import InvalidPenalty
from abstain._utils.types import Floats

ACCEPTED = (
    'a penalty is a number ≥ 0, Linear, Concave, Capped, PerLabel, a function f(a), a table f(0) … f(m), or "none"'
)


@dataclass(frozen=True)
class BoundPenalty:
    """A penalty for a known number of labels.

    The defaults of the optional attributes are always right, only slower.

    Attributes
    ----------
    counts : float array of shape (n_labels + 1,)
        counts[a] = f(a), with f(0) = 0; infinite where a abstentions are forbidden.
    is_concave : bool, default=False
        Whether the steps f(a + 1) − f(a) never grow as long as something is answered (a < m).
    slope : float, optional
        The cost of each abstention, if f(a) = slope · a; then decomposable losses decide label by label.
    label_costs : float array of shape (n_labels,), optional
        A price for each abstained label, besides f(a).
    is_linear : bool, default=False
        Whether each abstention costs the same, as many as are allowed, and nothing else is charged.
    """

    counts: Floats
    is_concave: bool = False
    slope: float | None = None
    label_costs: Floats | None = None
    is_linear: bool = False

    def require_nondecreasing(self) -> None:
        """Raise `InvalidPenalty` if f falls: labels that a sparse matrix does not store are always answered."""
        with np.errstate(invalid="ignore"):
            falls = np.flatnonzero(np.diff(self.counts) < 0)
        if len(falls):
            raise InvalidPenalty(
                f"the penalty falls at f({falls[0] + 1}): fewer abstentions would cost more, and labels that the "
                "sparse matrix does not store would have to be left open. Use a penalty that never falls, or a dense "
                "array."
            )

    def require_counting(self) -> None:
        """Raise `InvalidPenalty` if labels have prices: a risk profile does not know which labels are abstained."""
        if self.label_costs is not None:
            raise InvalidPenalty(
                "a risk profile counts abstentions and cannot price labels; use abstain.decide for PerLabel"
            )

    def with_abstained(self, labels: NDArray[np.intp]) -> "BoundPenalty":
        """Return the penalty of abstaining on further labels if some are abstained in any case.

        It is bound to the other labels, in their order.
        """
        so_far, more = self.counts[len(labels)], self.counts[len(labels) :].copy()
        # Where no more abstentions are allowed, or not even so many, the others are answered.
        more[1:] = more[1:] - so_far if np.isfinite(so_far) else np.inf
        more[0] = 0.0
        own = None if self.label_costs is None else np.delete(self.label_costs, labels)
        if not np.isfinite(so_far):
            return BoundPenalty(more, slope=None if self.slope is None else np.inf, label_costs=own)
        return BoundPenalty(more, self.is_concave, self.slope, own, self.is_linear)

    def narrowed(self, width: int) -> "BoundPenalty":
        """Return the penalty for packed rows: abstaining on all their `width` labels is abstaining on all labels."""
        if width == len(self.counts) - 1:
            return self
        counts = np.append(self.counts[:width], self.counts[-1])
        return BoundPenalty(counts, self.is_concave, self.slope, self.label_costs, self.is_linear)

    def counted(self, tie_scale: float) -> tuple[Floats, float]:
        """Return the costs by which totals are compared, and the relative difference up to which totals are equal.

        A linear penalty is tipped as `abstain._core.kernels.choice` says, and then no two totals that differ are equal.
        """
        if not self.is_linear:
            return self.counts, TIE
        return tipped(self.counts, tie_scale * np.arange(len(self.counts))), 0.0

    def charge(self, n_abstained: NDArray[np.intp], abstained: Any) -> Floats:
        """Return the penalty of each instance.

        Parameters
        ----------
        n_abstained : int array of shape (n_instances,)
            How many labels are abstained.
        abstained : bool array or CSR array of shape (n_instances, n_labels)
            Which labels are abstained; used only if labels have prices.
        """
        charged = self.counts[n_abstained]
        if self.label_costs is None:
            return charged
        # Row by row: with BLAS, the rounding of a row would depend on the other rows.
        if sparse.issparse(abstained):
            return charged + abstained @ self.label_costs
        return charged + np.einsum("ij,j->i", abstained, self.label_costs)


class Penalty(ABC):
    """The cost of abstaining. Subclasses define f(0) … f(m) in `bind`, whose result is checked.

    Examples
    --------
    >>> import abstain, numpy as np
    >>> from abstain import BoundPenalty
    >>> class FirstOnesFree(abstain.Penalty):
    ...     def bind(self, n_labels):
    ...         return BoundPenalty(0.1 * np.maximum(np.arange(n_labels + 1) - 2, 0))
    >>> abstain.decide([0.6, 0.7, 0.8, 0.95], penalty=FirstOnesFree()).labels
    array([[-1, -1, -1,  1]], dtype=int8)
    """

    label_names: tuple[Hashable, ...] | None = None
    """Names of the labels, if the penalty has prices per label that were given by name."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "bind" in vars(cls):  # kernels trust the numbers: a table of another length would be read beyond its end
            cls.bind = _checked(cls.bind)  # type: ignore[assignment, method-assign]

    @abstractmethod
    def bind(self, n_labels: int) -> BoundPenalty:
        """Return the penalty for m labels, f(0) … f(m)."""


def _checked(bind: Callable[[Any, int], BoundPenalty]) -> Callable[[Any, int], BoundPenalty]:
    """Wrap `bind` so that its result is checked: the lengths, and whether its flags are true."""

    @wraps(bind)
    def bind_checked(self: Penalty, n_labels: int) -> BoundPenalty:
        bound, name = bind(self, n_labels), f"{type(self).__name__}.bind({n_labels})"
        if not isinstance(bound, BoundPenalty):
            raise InvalidPenalty(f"{name} gives a {type(bound).__name__}; expected a BoundPenalty")
        counts = _numbers(bound.counts, f"{name}: counts", n_labels + 1)
        if counts[0] != 0 or not (counts >= 0).all():
            raise InvalidPenalty(
                f"{name}: counts are {counts}; expected f(0) = 0 and numbers ≥ 0, which may be infinite"
            )
        own = None if bound.label_costs is None else _numbers(bound.label_costs, f"{name}: label_costs", n_labels)
        if own is not None:
            _reject_bad(own, name, lambda i: f"the cost of label {i}")
        if bound.slope is not None and not np.allclose(counts, _times(bound.slope, np.arange(n_labels + 1.0)), atol=0):
            raise InvalidPenalty(f"{name}: slope is {bound.slope:g}, but the counts are not so many times that")
        if bound.is_linear and not np.allclose(steps := np.diff(counts[np.isfinite(counts)]), steps[:1], atol=0):
            raise InvalidPenalty(f"{name}: is said to be linear, but abstentions cost {steps}")
        if bound.is_concave:
            _require_concave(counts, name)
        return replace(bound, counts=counts, label_costs=own)

    return bind_checked


class _WithCost(Penalty):
    """A counting penalty with one cost; an infinite cost forbids abstention."""

    def __init__(self, cost: Any) -> None:
        if isinstance(cost, bool) or not isinstance(cost, Real) or not (amount := _as_float(cost)) >= 0:
            raise InvalidPenalty(f"{type(self).__name__}: the cost is {cost!r}; expected a number ≥ 0")
        self.cost = amount

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.cost:g})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, _WithCost) and other.cost == self.cost

    def __hash__(self) -> int:
        return hash((type(self), self.cost))


class Linear(_WithCost):
    """f(a) = cost · a: every abstention costs the same (SEP in the paper).

    Parameters
    ----------
    cost : float ≥ 0
        Cost of one abstention; infinite forbids abstention.

    Examples
    --------
    >>> from abstain import Linear
    >>> Linear(0.1).bind(4).counts
    array([0. , 0.1, 0.2, 0.3, 0.4])
    """

    def bind(self, n_labels: int) -> BoundPenalty:
        counts = _times(self.cost, np.arange(n_labels + 1.0))
        return BoundPenalty(counts, bool(np.isfinite(counts[-1])), slope=self.cost, is_linear=True)


class Concave(_WithCost):
    """f(a) = cost · a · m / (m + a): the more abstentions, the less one more costs (PAR in the paper).

    Parameters
    ----------
    cost : float ≥ 0
        Nearly the cost of the first abstention; all m labels together cost cost · m / 2. Infinite forbids abstention.

    Examples
    --------
    >>> from abstain import Concave
    >>> Concave(0.1).bind(4).counts.round(3)
    array([0.   , 0.08 , 0.133, 0.171, 0.2  ])
    """

    def bind(self, n_labels: int) -> BoundPenalty:
        count = np.arange(n_labels + 1.0)
        counts = _times(self.cost, count * n_labels / (n_labels + count))
        return BoundPenalty(counts, bool(np.isfinite(counts[-1])))


class Counting(Penalty):
    """f(a) of any form: a function of the number of abstentions, or the table f(0) … f(m).

    `decide` makes one of any function or table that is passed as penalty.

    Parameters
    ----------
    values : callable or array-like of shape (n_labels + 1,)
        f(a) for a = 0 … m: finite numbers ≥ 0 with f(0) = 0. They need not increase.

    Examples
    --------
    >>> import abstain
    >>> abstain.Counting(lambda a: 0.02 * a**2).bind(3).counts
    array([0.  , 0.02, 0.08, 0.18])
    >>> flat_fee = abstain.Counting([0.0, 0.25, 0.25, 0.25])  # for three labels
    >>> abstain.decide([[0.9, 0.6, 0.4], [0.95, 0.9, 0.1]], penalty=flat_fee).labels
    array([[-1, -1, -1],
           [ 1,  1,  0]], dtype=int8)
    """

    def __init__(self, values: Callable[[int], float] | ArrayLike) -> None:
        self.values = values

    def __repr__(self) -> str:
        return f"Counting({self.values!r})"

    def bind(self, n_labels: int) -> BoundPenalty:
        if callable(self.values):
            table: Any = [self.values(a) for a in range(n_labels + 1)]
            name = f"penalty function {getattr(self.values, '__name__', repr(self.values))}"
        else:
            table, name = self.values, "penalty table"
        counts = _numbers(table, name)
        if len(counts) != n_labels + 1:
            raise InvalidPenalty(
                f"{name}: has {len(counts)} values; {n_labels} labels need {n_labels + 1}, f(0) to f({n_labels})"
            )
        if counts[0] != 0:
            raise InvalidPenalty(f"{name}: f(0) is {counts[0]:g}; answering everything must cost nothing, f(0) = 0")
        _reject_bad(counts, name, lambda a: f"f({a})")
        # Rounding may bend a straight line; all of it together must stay below what counts as a tie.
        bend = np.diff(counts[:-1], 2).max(initial=0.0)
        return BoundPenalty(counts, bool(bend * n_labels**2 <= TIE))


class Capped(Penalty):
    """f(a) up to max_abstained abstentions, infinite beyond: a limit for each instance.

    Parameters
    ----------
    penalty : float, counting Penalty, callable f(a), or array-like of shape (n_labels + 1,)
        f(a).
    max_abstained : int ≥ 0
        How many labels of an instance may be abstained.

    Examples
    --------
    >>> import abstain
    >>> abstain.Capped(0.1, 2).bind(4).counts
    array([0. , 0.1, 0.2, inf, inf])
    >>> abstain.decide([0.7, 0.6, 0.4], penalty=abstain.Capped(0.1, 2)).labels
    array([[ 1, -1, -1]], dtype=int8)
    """

    def __init__(self, penalty: "PenaltyLike", max_abstained: int) -> None:
        self.penalty = as_penalty(penalty)
        if isinstance(self.penalty, PerLabel):
            raise InvalidPenalty("Capped: caps a counting penalty; write PerLabel(costs) + Capped(cost, max_abstained)")
        if isinstance(max_abstained, bool) or not isinstance(max_abstained, int | np.integer) or max_abstained < 0:
            raise InvalidPenalty(f"Capped: max_abstained is {max_abstained!r}; expected a whole number ≥ 0")
        self.max_abstained = int(max_abstained)

    def __repr__(self) -> str:
        return f"Capped({self.penalty!r}, {self.max_abstained})"

    def bind(self, n_labels: int) -> BoundPenalty:
        counting = _bound_counting(self.penalty, n_labels, "Capped: caps")
        if self.max_abstained >= n_labels:
            return counting
        counts = np.where(np.arange(n_labels + 1) <= self.max_abstained, counting.counts, np.inf)
        return BoundPenalty(counts, is_concave=False, is_linear=counting.is_linear)


class PerLabel(Penalty):
    """Σ costs[i] over the abstained labels i, plus an optional counting penalty: ``PerLabel(costs) + Concave(0.3)``.

    For sums over labels only (`Hamming`, `DecomposableLoss`): other losses need every abstention to cost the same.

    Parameters
    ----------
    costs : array-like of shape (n_labels,)
        A price ≥ 0 for each label. The names in a pandas Series must be those of the labels.
    counting : float, counting Penalty, callable f(a), or array-like of shape (n_labels + 1,), default=0.0
        A counting penalty besides.

    Examples
    --------
    >>> import abstain
    >>> costs = abstain.PerLabel([0.1, 0.4])  # the second label's expert is expensive
    >>> abstain.decide([0.7, 0.7], penalty=costs).labels
    array([[-1,  1]], dtype=int8)
    """

    def __init__(self, costs: ArrayLike, counting: "PenaltyLike" = 0.0) -> None:
        self.costs = _numbers(costs, "PerLabel")
        self.label_names = names_of(costs)
        _reject_bad(self.costs, "PerLabel", lambda i: f"the cost of label {i}")
        self.counting = as_penalty(counting)
        if isinstance(self.counting, PerLabel):
            raise InvalidPenalty("PerLabel: the penalty added to it must count abstentions, not price labels again")

    def __repr__(self) -> str:
        plus = "" if self.counting == Linear(0.0) else f" + {self.counting!r}"
        return f"PerLabel({np.array2string(self.costs, threshold=6)}){plus}"

    def __add__(self, counting: Any) -> "PerLabel":
        if self.counting != Linear(0.0):
            raise InvalidPenalty(f"PerLabel: already carries {self.counting!r}; add one counting penalty")
        combined = PerLabel(self.costs, counting)
        combined.label_names = self.label_names
        return combined

    __radd__ = __add__

    def bind(self, n_labels: int) -> BoundPenalty:
        if len(self.costs) != n_labels:
            raise InvalidPenalty(f"PerLabel: has {len(self.costs)} costs for {n_labels} labels")
        counting = _bound_counting(self.counting, n_labels, "PerLabel: adds")
        return BoundPenalty(counting.counts, counting.is_concave, counting.slope, self.costs)


def _bound_counting(penalty: Penalty, n_labels: int, what: str) -> BoundPenalty:
    """Bind a penalty that is a part of another one; raise `InvalidPenalty` if it has costs for each label."""
    bound = penalty.bind(n_labels)
    if bound.label_costs is not None:
        raise InvalidPenalty(f"{what} a counting penalty; {penalty!r} prices labels one by one")
    return bound


PenaltyLike: TypeAlias = float | Penalty | Callable[[int], float] | ArrayLike

# The registry by which tests make sure that none is forgotten.
PENALTIES: dict[str, type[Penalty]] = {
    "linear": Linear,
    "concave": Concave,
    "capped": Capped,
    "counting": Counting,
    "perlabel": PerLabel,
}


def as_penalty(penalty: PenaltyLike) -> Penalty:
    """Return the penalty that the user means: a number is linear, ``"none"`` forbids abstention."""
    if isinstance(penalty, Penalty):
        return penalty
    if isinstance(penalty, str) and penalty == "none":
        return Linear(np.inf)
    if penalty is None:
        raise InvalidPenalty('penalty is None; to forbid abstention, give penalty="none" or an infinite cost')
    given: Any = penalty[()] if isinstance(penalty, np.ndarray) and penalty.ndim == 0 else penalty
    if isinstance(given, str | bytes | bool) or not (isinstance(given, Real) or callable(given) or _is_table(given)):
        raise InvalidPenalty(f"penalty is {_shown(given)}; {ACCEPTED}")
    return Linear(given) if isinstance(given, Real) else Counting(given)


def _is_table(values: Any) -> bool:
    """Whether something is a sequence of values, as lists, arrays and series are."""
    return hasattr(values, "__len__") and hasattr(values, "__getitem__") and not isinstance(values, Mapping)


def _shown(value: Any) -> str:
    """Return a value in one line, or its type if it takes more than that."""
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else f"of type {type(value).__name__}"


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return np.inf if number > 0 else -np.inf


def _times(cost: float, counts: Floats) -> Floats:
    """Return cost · counts, where ∞ · 0 is 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(counts > 0, cost * counts, 0.0)


def _require_concave(counts: Floats, name: str) -> None:
    inner = counts[:-1]
    if not np.isfinite(inner).all():
        raise InvalidPenalty(f"{name}: is_concave is True, but some numbers of abstentions are forbidden")
    grows = np.flatnonzero(np.diff(inner, 2) > TIE + 1e-9 * inner.max(initial=0.0))  # more than rounding does
    if len(grows):
        a = int(grows[0]) + 1
        raise InvalidPenalty(
            f"{name}: is_concave is True, but the step from {a} to {a + 1} is greater than that before"
        )


def _numbers(values: Any, name: str, length: int | None = None) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as reason:
        raise InvalidPenalty(f"{name}: expected numbers ({reason}); {ACCEPTED}") from reason
    if array.ndim != 1:
        raise InvalidPenalty(f"{name}: expected one row of numbers, got shape {array.shape}")
    if length is not None and len(array) != length:
        raise InvalidPenalty(f"{name}: expected {length} numbers, got {len(array)}")
    return array


def _reject_bad(values: Floats, name: str, item: Callable[[int], str]) -> None:
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        raise InvalidPenalty(f"{name}: {item(int(bad[0]))} is {values[bad[0]]}; expected finite numbers ≥ 0")
