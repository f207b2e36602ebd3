"""Losses that are sums over labels: all there is to know of one is what errors cost, label by label."""

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abstain._core.blocks import Block, StoredEntries
from abstain._core.kernels import labelwise
from abstain._core.kernels.choice import choose
from abstain._core.losses.base import Codes, Counts, Floats
from abstain._core.losses.labelwise import LabelwiseLoss, free
from abstain._core.penalties import BoundPenalty
from abstain._core.tables import names_of
from abstain._utils.errors import InvalidLoss
from abstain._utils.numbers import read_number


class ErrorCosts(NamedTuple):
    """What a missed and what a wrongly given label costs: one number (0-dimensional), or one per label."""

    false_negative: Floats
    false_positive: Floats


class DecomposableLoss(LabelwiseLoss):
    """ℓ = Σ_{i∈D} fn_i · [y_i = 1, ŷ_i = 0] + fp_i · [y_i = 0, ŷ_i = 1]: a sum over labels, in which right is free.

    A subclass says in `error_costs` what errors cost; everything else follows. Only such losses can have a price, a cap
    or a promise for each label: `PerLabel`, ``budget.solve(per_label=…)``, ``guarantee.control(per="label")``.

    Examples
    --------
    >>> import abstain, numpy as np
    >>> class RareIsImportant(abstain.DecomposableLoss):
    ...     def __init__(self, prevalence):
    ...         self.prevalence = np.asarray(prevalence)
    ...
    ...     def error_costs(self, n_labels):
    ...         return -np.log(self.prevalence), -np.log(1.0 - self.prevalence)
    >>> loss = RareIsImportant([0.5, 0.02])
    >>> abstain.decide([0.9, 0.003], loss, penalty=0.01).labels
    array([[-1, -1]], dtype=int8)
    >>> abstain.budget.solve([[0.6, 0.003], [0.5, 0.001]], loss=loss, per_label=1).prediction.labels
    array([[ 1, -1],
           [-1,  0]], dtype=int8)
    """

    is_decomposable = True
    takes_sparse = True
    tie_scale = 0.0

    @abstractmethod
    def error_costs(self, n_labels: int) -> tuple[ArrayLike, ArrayLike]:
        """What a missed and what a wrongly given label costs, fn and fp: one number ≥ 0 each, or one per label."""

    def read_error_costs(self, n_labels: int) -> ErrorCosts:
        """`error_costs` as arrays that kernels can use, checked."""
        given: Any = self.error_costs(n_labels)
        owner = type(self).__name__
        if not isinstance(given, tuple) or len(given) != 2:
            raise InvalidLoss(f"{owner}.error_costs gives {given!r}; expected two costs: of a missed, of a wrong label")
        costs = ErrorCosts(
            *(_read_costs(cost, name, owner) for name, cost in zip(ErrorCosts._fields, given, strict=True))
        )
        _require_length(costs, n_labels, owner)
        return costs

    def check(self, n_labels: int) -> None:
        self.read_error_costs(n_labels)

    def restricted(self, labels: Counts, n_labels: int) -> "Hamming":
        return Hamming(*(cost if cost.ndim == 0 else cost[labels] for cost in self.read_error_costs(n_labels)))

    def largest_risk(self, n_labels: int) -> Floats:
        """max_p min(fn·p, fp·(1 − p)) = 1 / (1/fn + 1/fp) of each label: from this cost on it is always answered."""
        fn, fp = (np.broadcast_to(cost, n_labels) for cost in self.read_error_costs(n_labels))
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(1.0 / (1.0 / fn + 1.0 / fp))

    def highest_cost(self, n_labels: int) -> float:
        return float(self.largest_risk(n_labels).max())

    def costs(self, block: Block) -> tuple[Floats, Floats]:
        fn, fp = self.read_error_costs(block.n_labels)
        return block.per_label(fn), block.per_label(fp)

    def accumulate(self, sorted_scores: Floats, values: Floats) -> None:
        labelwise.profile_of_sum(sorted_scores, values)

    def decide(self, block: Block, p: Floats, penalty: BoundPenalty, codes: Codes, expected: Floats) -> None:
        own = None if penalty.label_costs is None else block.per_label(penalty.label_costs)
        if penalty.slope is not None:
            price = block.per_label(np.array(penalty.slope))
            with np.errstate(over="ignore"):
                price = price if own is None else price + own
            labelwise.answer_where_cheap(p, *self.costs(block), price, codes, expected)
        elif own is None:
            super().decide(block, p, penalty, codes, expected)
        else:
            self._decide_with_prices(block, p, penalty, own, codes, expected)

    def decides_by_entry(self, penalty: BoundPenalty) -> bool:
        return penalty.slope is not None

    def decide_entries(
        self,
        stored: StoredEntries,
        p: NDArray[np.floating[Any]],
        penalty: BoundPenalty,
        codes: Codes,
        expected: Floats,
    ) -> None:
        own = np.array(0.0) if penalty.label_costs is None else penalty.label_costs
        costs = self.read_error_costs(stored.source.shape[1])
        where = p, stored.labels, stored.indptr
        labelwise.answer_entries_where_cheap(*where, *costs, penalty.slope, own, codes, expected)

    def _decide_with_prices(
        self, block: Block, p: Floats, penalty: BoundPenalty, price: Floats, codes: Codes, expected: Floats
    ) -> None:
        """Sort by what answering costs more than abstaining; add up what is answered and what is not, apart."""
        risk, gain = np.empty_like(p), np.empty_like(p)
        labelwise.score(p, *self.costs(block), free(p), risk)
        labelwise.score(p, *self.costs(block), price, gain)
        order = np.argsort(gain, axis=1, kind="stable")
        prices = np.take_along_axis(np.broadcast_to(price, p.shape), order, axis=1)
        totals = np.zeros((len(p), p.shape[1] + 1))
        totals[:, :-1] = np.cumsum(np.take_along_axis(risk, order, axis=1), axis=1)[:, ::-1]
        totals[:, 1:] += np.cumsum(prices[:, ::-1], axis=1)
        n_abstained = np.empty(len(p), np.intp)
        choose(totals, penalty.counts, *penalty.counted(self.tie_scale), self.tie_scale, n_abstained, expected)
        sorted_gain = np.take_along_axis(gain, order, axis=1)
        labelwise.answer_most_certain(p, *self.costs(block), price, sorted_gain, n_abstained, codes)

    def realized(self, block: Block, truth: NDArray[np.bool_], codes: Codes) -> Floats:
        fn, fp = self.costs(block)
        wrong: Floats = np.where(truth, fn * (codes == 0), fp * (codes == 1)).sum(axis=1)
        return wrong

    def expected(self, block: Block, p: Floats, codes: Codes) -> Floats:
        fn, fp = self.costs(block)
        risk: Floats = (fn * p * (codes == 0) + fp * (1.0 - p) * (codes == 1)).sum(axis=1)
        return risk

    def savings(self, block: Block, p: Floats, codes: Codes, rows: Counts, columns: Counts) -> Floats:
        fn, fp = (cost[rows if len(cost) > 1 else 0, columns] for cost in self.costs(block))
        chance = p[rows, columns]
        return np.minimum(fn * chance, fp * (1.0 - chance))


class Hamming(DecomposableLoss):
    """ℓ = Σ_{i∈D} fn_i · [y_i = 1, ŷ_i = 0] + fp_i · [y_i = 0, ŷ_i = 1]: a cost for every wrong label.

    With unit costs it is the number of wrong labels. Label i is answered 1 iff fn_i·p_i > fp_i·(1 − p_i); what that
    costs in expectation, s_i = min(fn_i·p_i, fp_i·(1 − p_i)), is compared with the price of abstaining. Under a linear
    penalty label i is answered iff s_i ≤ c.

    Parameters
    ----------
    false_negative, false_positive : float or one number per label, default=1.0
        What a missed and what a wrongly given label costs. A pandas Series is held to the names of its labels.

    Examples
    --------
    >>> import abstain
    >>> abstain.decide([0.95, 0.6, 0.2], abstain.Hamming(), penalty=0.25).labels
    array([[ 1, -1,  0]], dtype=int8)
    >>> missed_is_worse = abstain.Hamming(false_negative=5.0)
    >>> abstain.decide([0.95, 0.6, 0.2], missed_is_worse, penalty=0.25).labels
    array([[ 1, -1, -1]], dtype=int8)
    """

    name = "hamming"
    title = "Hamming"
    axis_title = "Hamming loss"
    description = "Each wrong label counts, at its price."
    unit_description = "a wrong label costs 1"
    text_forms = ("hamming", "hamming:false_negative=5,false_positive=1")

    def __init__(self, false_negative: ArrayLike = 1.0, false_positive: ArrayLike = 1.0) -> None:
        self.false_negative = _read_costs(false_negative, "false_negative", "Hamming")
        self.false_positive = _read_costs(false_positive, "false_positive", "Hamming")
        self.label_names = names_of(false_negative) or names_of(false_positive)
        if self.label_names != (names_of(false_positive) or self.label_names):
            raise InvalidLoss("Hamming: false_negative and false_positive name different labels, or in another order")

    @classmethod
    def from_text(cls, text: str) -> "Hamming":
        given = text.partition(":")[2]
        costs = dict.fromkeys(ErrorCosts._fields, 1.0)
        for part in given.split(",") if given else []:
            name, equals, cost = (piece.strip() for piece in part.partition("="))
            if name not in costs or not equals:
                raise InvalidLoss(f"{part!r} is not false_negative=… or false_positive=…")
            costs[name] = read_number(cost)
        return cls(**costs)

    def __repr__(self) -> str:
        shown = {"false_negative": self.false_negative, "false_positive": self.false_positive}
        parts = [f"{name}={_shown(cost)}" for name, cost in shown.items() if not np.array_equal(cost, 1.0)]
        return f"Hamming({', '.join(parts)})"

    def error_costs(self, n_labels: int) -> ErrorCosts:
        return ErrorCosts(self.false_negative, self.false_positive)

    def read_error_costs(self, n_labels: int) -> ErrorCosts:
        costs = self.error_costs(n_labels)  # looked at when the loss was made; this is asked for every block
        _require_length(costs, n_labels, "Hamming")
        return costs


def _read_costs(costs: Any, name: str, owner: str) -> NDArray[np.float64]:
    try:
        array = np.array(costs, dtype=np.float64)
    except (TypeError, ValueError) as reason:
        raise InvalidLoss(f"{owner}: {name} must be numbers ({reason})") from reason
    if array.ndim > 1:
        raise InvalidLoss(f"{owner}: {name} must be one number or one per label, got shape {array.shape}")
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if len(bad):
        where = f" of label {bad[0]}" if array.ndim else ""
        raise InvalidLoss(f"{owner}: {name}{where} is {np.ravel(array)[bad[0]]}; expected finite numbers ≥ 0")
    return array


def _require_length(costs: ErrorCosts, n_labels: int, owner: str) -> None:
    for name, cost in zip(ErrorCosts._fields, costs, strict=True):
        if cost.ndim == 1 and len(cost) != n_labels:
            raise InvalidLoss(f"{owner}: {name} has {len(cost)} costs for {n_labels} labels")


def _shown(cost: NDArray[np.float64]) -> Any:
    return f"{cost:g}" if cost.ndim == 0 else np.array2string(cost, separator=", ", threshold=6)
