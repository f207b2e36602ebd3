"""Budgets for any loss: each instance's risk profile tells what its reviews save, the dearest are made first.

A step of an instance's cost path costs `size` reviews and saves `cost` for each of them. Taking the steps of all
instances in decreasing order of cost is optimal for every budget that they use up (the Lagrangian of the budget is the
linear penalty). What is left over is less than one step; a dynamic programme over the instances around the margin finds
the best use for it, and what that may still miss is bounded by the dual.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.decision import decide_and_count, decide_table
from abstain._core.kernels.choice import tipped
from abstain._core.kernels.savings import best_allocation
from abstain._core.losses import Loss
from abstain._core.penalties import Capped, Linear, Penalty
from abstain._core.prediction import Prediction
from abstain._core.prediction_writer import with_rows
from abstain._core.probabilities import Probabilities
from abstain._core.profile import CostPath, RiskProfile
from abstain.budget._allocation import Allocation, Price, allocated
from abstain.budget._limits import Limits

WHOLE = 1 << 22  # up to so many probabilities the profile is simply made; it takes three to four times their memory
SAMPLE = 1 << 16  # instances that tell about what the price will be, if that is no more than a part of them
PART = 16
CORE = 1e8  # the dynamic programme's operations


Values: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""The profiles of some instances, looked up."""


class Steps(NamedTuple):
    """What more reviews of an instance save, the dearest first."""

    row: NDArray[np.int64]
    cost: NDArray[np.float64]
    size: NDArray[np.int64]


class Spent(NamedTuple):
    """How many reviews each instance gets, at which price, and how far from the optimum that may be."""

    counts: NDArray[np.int64]
    price: float
    gap: float


def solve_by_instance(source: Probabilities | RiskProfile[Prediction], loss: Loss, limits: Limits) -> Allocation:
    """The allocation for any loss; a profile is made where there is none, whole or only where it matters."""
    table = source.probabilities if isinstance(source, RiskProfile) else source
    if limits.total is None:
        return _at_review_cost(table, loss, limits)
    if isinstance(source, Probabilities) and source.n_entries > WHOLE:
        return _solve_large(source, loss, limits)
    profile = source if isinstance(source, RiskProfile) else RiskProfile(source, loss)
    steps = _steps(profile.path(max_abstained=limits.per_instance), limits.uniform_review)
    nothing_yet = np.zeros(table.n_rows, np.int64)
    spent = spend(partial(values_of, profile), table.widest, steps, limits, nothing_yet, limits.total, is_all=True)
    prediction = profile.with_n_abstained(spent.counts)
    expected = prediction.expected_loss + limits.uniform_review * spent.counts
    price = Price(spent.price, loss, limits.per_instance)
    return allocated(price, prediction.codes, expected, table, limits, spent.gap)


def _at_review_cost(table: Probabilities, loss: Loss, limits: Limits) -> Allocation:
    """Without a budget the reviews are worth what they cost: the decision itself."""
    review = limits.uniform_review
    price = Price(review, loss, limits.per_instance)
    prediction = decide_table(table, loss, price)
    return allocated(price, prediction.codes, prediction.expected_loss, table, limits)


def every_step(path: CostPath, least: float) -> Steps:
    """All steps that save more than `least` for each review, instance by instance, each with increasing cost."""
    _, row, cost, size = path.steps()
    saves = cost > tipped(least, path.tie_scale)
    return Steps(row[saves], cost[saves], size[saves])


def _steps(path: CostPath, least: float, most: float = np.inf) -> Steps:
    """The steps that save more than `least` for each review, and not more than `most`, at which they are not taken."""
    every = every_step(path, least)
    at = np.flatnonzero(every.cost <= tipped(most, path.tie_scale))
    order = at[np.argsort(-every.cost[at], kind="stable")]
    return Steps(every.row[order], every.cost[order], every.size[order])


def spend(
    values: Values, n_labels: int, steps: Steps, limits: Limits, counts: NDArray[np.int64], budget: int, is_all: bool
) -> Spent:
    """Take steps while the budget lasts; `counts` is what each instance has got already, `budget` what is left.

    `values` looks up the profiles of a few instances. is_all says that there are no other instances and steps; if there
    are, they must be as any price among these has it.
    """
    used = np.cumsum(steps.size)
    n_taken = int(np.searchsorted(used, budget, side="right"))
    counts = counts + np.bincount(steps.row[:n_taken], steps.size[:n_taken], len(counts)).astype(np.int64)
    if n_taken == len(used):
        return Spent(counts, limits.uniform_review, 0.0)
    so_far = Spent(counts, float(steps.cost[n_taken]), 0.0)
    rest = budget - (int(used[n_taken - 1]) if n_taken else 0)
    return so_far if rest == 0 else _spend_rest(values, n_labels, steps, n_taken, limits, so_far, rest, is_all)


def _spend_rest(
    values: Values, n_labels: int, steps: Steps, n_taken: int, limits: Limits, so_far: Spent, rest: int, is_all: bool
) -> Spent:
    """Allocate anew among the instances around the margin, with what they have got and the rest."""
    review, half = limits.uniform_review, max(2, int(np.sqrt(CORE) / (2 * n_labels)))
    core = np.unique(steps.row[max(0, n_taken - half) : n_taken + half])
    known = values(core)
    width = known.shape[1] if limits.per_instance is None else min(known.shape[1], limits.per_instance + 1)
    costs = np.ascontiguousarray(known[:, :width] + review * np.arange(width))
    choice = np.empty(len(core), np.int64)
    best_allocation(costs, int(so_far.counts[core].sum()) + rest, choice)
    counts = so_far.counts.copy()
    counts[core] = choice
    if is_all and len(core) == len(np.unique(steps.row)):  # the others have no use for a review
        return Spent(counts, so_far.price, 0.0)
    # Outside the core all is as the price has it; there and for the rest of the budget, the dual bounds the optimum.
    shadow = so_far.price - review
    least = (costs + shadow * np.arange(width)).min(axis=1)
    missed = costs[np.arange(len(core)), choice] + shadow * choice - least
    unused = rest + so_far.counts[core].sum() - choice.sum()
    return Spent(counts, so_far.price, max(0.0, float(missed.sum() + shadow * unused)))


def values_of(profile: RiskProfile[Prediction], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The profiles of some instances; of sparse ones, up to where they have become 0."""
    values = profile.values[rows]
    if not sparse.issparse(values):
        return values
    width = int(np.diff(values.indptr).max(initial=0)) + 1
    return values[:, :width].toarray()


def _solve_large(table: Probabilities, loss: Loss, limits: Limits) -> Allocation:
    """A sample tells between which prices the budget is spent; only instances that differ there need a profile."""
    assert limits.total is not None
    review = limits.uniform_review
    for spread in (4.0, 32.0, np.inf):
        low, high = _bracket(table, loss, limits, spread)
        dear, if_cheap = decide_and_count(table, loss, _capped(high, limits), _capped(low, limits))
        counts = dear.n_abstained.astype(np.int64)
        if counts.sum() <= limits.total and (low == review or if_cheap.sum() >= limits.total):
            break
    codes, expected = dear.codes, dear.expected_loss - (np.where(counts > 0, high, 0.0) - review) * counts
    spent = Spent(counts, low, 0.0)
    differing = np.flatnonzero(if_cheap != counts)
    if len(differing):
        profile = RiskProfile(table.take(differing), loss)
        path = profile.path(max_abstained=limits.per_instance)
        settled = path.at(high)
        left = limits.total - int(counts.sum() - counts[differing].sum() + settled.sum())
        look_up, steps = partial(values_of, profile), _steps(path, low, high)
        part = spend(look_up, table.widest, steps, limits, settled, left, is_all=False)
        answers = profile.with_n_abstained(part.counts)
        codes, counts[differing] = with_rows(codes, differing, answers.codes), part.counts
        expected[differing] = answers.expected_loss + review * part.counts
        spent = Spent(counts, max(part.price, low), part.gap)
    price = Price(spent.price, loss, limits.per_instance)
    return allocated(price, codes, expected, table, limits, spent.gap)


def _bracket(table: Probabilities, loss: Loss, limits: Limits, spread: float) -> tuple[float, float]:
    """Two prices between which the budget is used up, as far as a sample can tell: so many standard errors apart."""
    assert limits.total is not None
    n = table.n_rows
    rows = np.arange(0, n, max(PART, n // SAMPLE))
    path = RiskProfile(table.take(rows), loss).path(max_abstained=limits.per_instance)
    steps = _steps(path, limits.uniform_review)
    used = np.cumsum(steps.size)
    target = limits.total * len(rows) / n
    middle = int(np.searchsorted(used, target))
    per_row = np.bincount(steps.row[:middle], steps.size[:middle], len(rows))
    error = spread * (np.sqrt(len(rows)) * per_row.std() + table.widest)
    first, last = np.searchsorted(used, [target - error, target + error])
    high = float(steps.cost[first]) if target > error and first < len(used) else np.inf
    return (float(steps.cost[last]) if last < len(used) else limits.uniform_review), high


def _capped(cost: float, limits: Limits) -> Penalty:
    return Linear(cost) if limits.per_instance is None else Capped(cost, limits.per_instance)
