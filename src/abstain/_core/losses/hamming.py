"""Losses that are sums over labels, defined by the costs of their errors; Hamming is the one with given costs."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abstain._core.blocks import Block, StoredEntries
from abstain._core.joint import SearchLimits
from abstain._core.kernels import labelwise
from abstain._core.kernels.bounds import Bounds, as_bounds
from abstain._core.kernels.choice import choose
from abstain._core.kernels.components import Components
from abstain._core.kernels.labelwise import ErrorCosts, SparseEntries
from abstain._core.losses.base import BlockAnswers, Codes, Counts
from abstain._core.losses.labelwise import LabelwiseLoss
from abstain._core.penalties import BoundPenalty
from abstain._core.tables import names_of
from abstain._utils.errors import InvalidLoss
from abstain._utils.numbers import read_number
from abstain._utils.types import Floats


class DecomposableLoss(LabelwiseLoss):
    """ℓ = Σ_{i∈D} fn_i · [y_i = 1, ŷ_i = 0] + fp_i · [y_i = 0, ŷ_i = 1]: a sum over the answered labels D.

    A subclass defines the costs of errors in `error_costs`; everything else follows. Only such losses can have a price,
    a limit or a guarantee for each label: `PerLabel`, ``budget.solve(per_label=…)``,
    ``guarantee.control(per="label")``.

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
    takes_joint = True
    tie_scale = 0.0

    @abstractmethod
    def error_costs(self, n_labels: int) -> tuple[ArrayLike, ArrayLike]:
        """Return the costs of a false negative and of a false positive: one number ≥ 0 each, or one per label."""

    def read_error_costs(self, n_labels: int) -> ErrorCosts:
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

    def highest_cost(self, n_labels: int) -> float:
        return float(self.largest_risk(n_labels).max())

    def accumulate(self, sorted_costs: Floats, values: Floats) -> None:
        labelwise.profile_of_sum(sorted_costs, values)

    def decide(self, block: Block, p: Floats | Bounds, penalty: BoundPenalty, out: BlockAnswers) -> None:
        if penalty.slope is not None:
            price = _price_of_each_label(block, penalty)
            labelwise.answer_where_cheap(as_bounds(p), self.block_error_costs(block), price, out.codes, out.expected)
        elif penalty.label_costs is None:
            super().decide(block, p, penalty, out)
        else:
            self._decide_with_prices(block, p, penalty, block.per_label(penalty.label_costs), out)

    def decide_skeptically(self, block: Block, p: Bounds, penalty: BoundPenalty, out: BlockAnswers) -> None:
        price = _price_of_each_label(block, penalty)
        labelwise.answer_where_certain(p, self.block_error_costs(block), price, out.codes, out.expected)

    def decide_joint(
        self, block: Block, joint: Components, penalty: BoundPenalty, limits: SearchLimits, out: BlockAnswers
    ) -> None:
        self.decide(block, joint.marginals(), penalty, out)

    def decides_by_entry(self, penalty: BoundPenalty) -> bool:
        return penalty.slope is not None

    def decide_entries(
        self,
        stored: StoredEntries,
        p: NDArray[np.floating[Any]] | Bounds,
        penalty: BoundPenalty,
        out: BlockAnswers,
    ) -> None:
        own = np.array(0.0) if penalty.label_costs is None else penalty.label_costs
        costs = self.read_error_costs(stored.source.shape[1])
        entries = SparseEntries(*as_bounds(p), stored.labels, stored.indptr)
        labelwise.answer_entries_where_cheap(entries, costs, penalty.slope, own, out.codes, out.expected)

    def _decide_with_prices(
        self, block: Block, p: Floats | Bounds, penalty: BoundPenalty, price: Floats, out: BlockAnswers
    ) -> None:
        """Decide for prices per label and a counting penalty: abstain where answering costs most above the price.

        The risks of the answered and the prices of the abstained labels are added up separately, so that no rounding
        error of their differences remains.
        """
        bounds, costs, risk = as_bounds(p), self.block_error_costs(block), self.label_risks(block, p)
        score = np.empty(p.shape)
        labelwise.score(bounds, costs, price, score)
        order = np.argsort(score, axis=1, kind="stable")
        prices = np.take_along_axis(np.broadcast_to(price, p.shape), order, axis=1)
        totals = np.zeros((p.shape[0], p.shape[1] + 1))
        totals[:, :-1] = np.cumsum(np.take_along_axis(risk, order, axis=1), axis=1)[:, ::-1]
        totals[:, 1:] += np.cumsum(prices[:, ::-1], axis=1)
        n_abstained = np.empty(p.shape[0], np.intp)
        counted, tie = penalty.counted(self.tie_scale)
        choose(totals, penalty.counts, counted, tie, self.tie_scale, n_abstained, out.expected)
        sorted_scores = np.take_along_axis(score, order, axis=1)
        labelwise.answer_most_certain(bounds, costs, price, sorted_scores, n_abstained, out.codes)

    def realized(self, block: Block, truth: NDArray[np.bool_], codes: Codes) -> Floats:
        fn, fp = self.block_error_costs(block)
        wrong: Floats = np.where(truth, fn * (codes == 0), fp * (codes == 1)).sum(axis=1)
        return wrong

    def expected(self, block: Block, p: Floats | Bounds, codes: Codes) -> Floats:
        (fn, fp), (low, high) = self.block_error_costs(block), as_bounds(p)
        risk: Floats = (fn * high * (codes == 0) + fp * (1.0 - low) * (codes == 1)).sum(axis=1)
        return risk

    def savings(self, block: Block, p: Floats | Bounds, codes: Codes, rows: Counts, columns: Counts) -> Floats:
        fn, fp = (cost[rows if len(cost) > 1 else 0, columns] for cost in self.block_error_costs(block))
        low, high = as_bounds(p)
        return np.minimum(fn * high[rows, columns], fp * (1.0 - low[rows, columns]))


def _price_of_each_label(block: Block, penalty: BoundPenalty) -> Floats:
    """Return what an abstention costs, beside a block, where the labels have no other penalty in common."""
    price: Floats = block.per_label(np.array(penalty.slope))
    with np.errstate(over="ignore"):
        return price if penalty.label_costs is None else price + block.per_label(penalty.label_costs)


class Hamming(DecomposableLoss):
    """ℓ = Σ_{i∈D} fn_i · [y_i = 1, ŷ_i = 0] + fp_i · [y_i = 0, ŷ_i = 1]: a cost for every wrong label.

    With unit costs it is the number of wrong labels. Label i is answered 1 iff fn_i·p_i > fp_i·(1 − p_i); what that
    costs in expectation, s_i = min(fn_i·p_i, fp_i·(1 − p_i)), is compared with the price of abstaining. Under a linear
    penalty label i is answered iff s_i ≤ c.

    Parameters
    ----------
    false_negative, false_positive : float or array-like of shape (n_labels,), default=1.0
        The cost of a false negative and of a false positive. The names in a pandas Series must be those of the labels.

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
        names, other_names = names_of(false_negative), names_of(false_positive)
        self.label_names = names or other_names
        if names and other_names and names != other_names:
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
        costs = self.error_costs(n_labels)  # validated when the loss was made; this is called for every block
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
