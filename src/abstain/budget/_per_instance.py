"""Budgets for any loss: each instance's risk profile says what its reviews save, and those that save most are made.

A step of an instance's cost path takes `size` reviews and saves `cost` for each of them. Taking the steps of all
instances in decreasing order of cost is optimal for every budget that they use up (the Lagrangian of the budget is the
linear penalty). What is left over is less than one step; a dynamic programme over the instances whose steps lie around
the end of the budget finds its best use, and the dual bounds how far from the optimum that may be.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.belief import Belief
from abstain._core.decision import decide_and_count, decide_table
from abstain._core.kernels.savings import best_allocation
from abstain._core.losses import Loss
from abstain._core.penalties import Capped, Linear, Penalty
from abstain._core.prediction_writer import with_rows
from abstain._core.probabilities import Probabilities
from abstain._core.profile import RiskProfile
from abstain.budget._allocation import Allocation, Price, make_allocation
from abstain.budget._limits import Limits
from abstain.budget._steps import ProfileLookup, Steps, profiles_of, review_counts, steps_between
from abstain.budget._thresholds import n_affordable

MAX_PROFILED_ENTRIES = 1 << 22  # larger tables are not profiled whole: a profile takes three to four times their memory
SAMPLE_ROWS = 1 << 16  # instances from which the price is estimated first, if they are a small part of all
MIN_SAMPLE_STRIDE = 16  # rows: at most one row of so many is in the sample
MAX_OPERATIONS = 1e8  # of the dynamic programme


class Spent(NamedTuple):
    """How many reviews each instance gets, at which price, and how far from the optimum that may be."""

    counts: NDArray[np.int64]
    price: float
    gap: float


@dataclass(frozen=True, kw_only=True)
class Spending:
    """Reviews that are left to be spent on the steps of some instances.

    Parameters
    ----------
    steps : Steps
        By falling cost.
    counts : int array of shape (n_instances,)
        How many reviews each instance has already.
    budget : int
        How many reviews are left.
    limits : Limits
    profiles : function of int array
        Looks up the risk profiles of a few instances.
    max_stored : int
        How many probabilities a row stores at most.
    is_all : bool
        Whether there are no other instances and steps; if there are, these are decided as any price among `steps` would
        have it.
    """

    steps: Steps
    counts: NDArray[np.int64]
    budget: int
    limits: Limits
    profiles: ProfileLookup
    max_stored: int
    is_all: bool

    def spend(self) -> Spent:
        """Take steps while the budget lasts, and spend the rest as well as possible."""
        n_taken = n_affordable(self.steps.size, self.budget)
        taken = self.steps.take(slice(0, n_taken))
        counts = self.counts + taken.counts(len(self.counts))
        if n_taken == len(self.steps.size):
            return Spent(counts, self.limits.uniform_review, 0.0)
        so_far = Spent(counts, float(self.steps.cost[n_taken]), 0.0)
        rest = self.budget - int(taken.size.sum())
        return so_far if rest == 0 else self._spend_rest(so_far, n_taken, rest)

    def _spend_rest(self, so_far: Spent, n_taken: int, rest: int) -> Spent:
        """Allocate anew among the instances around the end of the budget, with what they have got and the rest."""
        review, limits = self.limits.uniform_review, self.limits
        half = max(2, int(np.sqrt(MAX_OPERATIONS) / (2 * self.max_stored)))
        rows = np.unique(self.steps.row[max(0, n_taken - half) : n_taken + half])
        profiles = self.profiles(rows)
        width = profiles.shape[1] if limits.per_instance is None else min(profiles.shape[1], limits.per_instance + 1)
        costs = np.ascontiguousarray(profiles[:, :width] + review * np.arange(width))
        choice = np.empty(len(rows), np.int64)
        best_allocation(costs, int(so_far.counts[rows].sum()) + rest, choice)
        counts = so_far.counts.copy()
        counts[rows] = choice
        if self.is_all and len(rows) == len(np.unique(self.steps.row)):  # the others have no use for a review
            return Spent(counts, so_far.price, 0.0)
        # The other instances are as the price has it; for these and for the rest of the budget, the dual bounds the
        # optimum.
        shadow = so_far.price - review
        least = (costs + shadow * np.arange(width)).min(axis=1)
        missed = costs[np.arange(len(rows)), choice] + shadow * choice - least
        unused = rest + so_far.counts[rows].sum() - choice.sum()
        return Spent(counts, so_far.price, max(0.0, float(missed.sum() + shadow * unused)))


def max_moved_reviews() -> int:
    """Return how many reviews on each side of the end of the budget the dynamic programme may move."""
    return int(np.sqrt(MAX_OPERATIONS) / 2)


def solve_by_instance(source: Belief | RiskProfile[Any], loss: Loss, limits: Limits) -> Allocation[Any]:
    """Return the allocation for any loss; a profile is made where there is none, whole or only where it matters."""
    table = source.probabilities if isinstance(source, RiskProfile) else source
    if limits.total is None:  # without a budget the reviews are worth what they cost: the decision itself
        price: Price[Any] = Price(limits.uniform_review, loss, limits.per_instance)
        return make_allocation(price, decide_table(table, loss, price), limits)
    if isinstance(source, Probabilities) and source.n_entries > MAX_PROFILED_ENTRIES:
        return _solve_large(source, loss, limits, limits.total)
    profile = source if isinstance(source, RiskProfile) else RiskProfile(source, loss)
    spent = Spending(
        steps=steps_between(profile.path(max_abstained=limits.per_instance), limits.uniform_review),
        counts=np.zeros(table.n_rows, np.int64),
        budget=limits.total,
        limits=limits,
        profiles=partial(profiles_of, profile),
        max_stored=table.widest,
        is_all=True,
    ).spend()
    prediction = review_counts(profile, spent.counts, limits.uniform_review)
    gap = spent.gap + profile.total_gap
    return make_allocation(Price(spent.price, loss, limits.per_instance), prediction, limits, gap)


def _solve_large(table: Probabilities, loss: Loss, limits: Limits, total: int) -> Allocation[Any]:
    """Bracket the price by means of a sample; only instances that are decided differently within it are profiled."""
    review = limits.uniform_review
    for standard_errors in (4.0, 32.0, np.inf):
        low, high = _bracket(table, loss, limits, standard_errors)
        at_high, n_at_low = decide_and_count(table, loss, _capped(high, limits), _capped(low, limits))
        counts = at_high.n_abstained.astype(np.int64)
        if counts.sum() <= total and (low == review or n_at_low.sum() >= total):
            break
    codes, expected = at_high.codes, at_high.expected_loss - (np.where(counts > 0, high, 0.0) - review) * counts
    price, gap = low, 0.0
    differing = np.flatnonzero(n_at_low != counts)
    if len(differing):
        profile = RiskProfile(table.take(differing), loss)
        path = profile.path(max_abstained=limits.per_instance)
        settled = path.at(high)
        spent = Spending(
            steps=steps_between(path, low, high),
            counts=settled,
            budget=total - int(counts.sum() - counts[differing].sum() + settled.sum()),
            limits=limits,
            profiles=partial(profiles_of, profile),
            max_stored=table.widest,
            is_all=False,
        ).spend()
        answers = review_counts(profile, spent.counts, review)
        codes, expected[differing] = with_rows(codes, differing, answers.codes), answers.expected_loss
        price, gap = max(spent.price, low), spent.gap
    prediction = loss.prediction_type.from_codes(codes, table.axes, expected)
    return make_allocation(Price(price, loss, limits.per_instance), prediction, limits, gap)


def _bracket(table: Probabilities, loss: Loss, limits: Limits, standard_errors: float) -> tuple[float, float]:
    """Return two prices between which the budget is used up, so many standard errors of a sample apart."""
    assert limits.total is not None
    n = table.n_rows
    rows = np.arange(0, n, max(MIN_SAMPLE_STRIDE, n // SAMPLE_ROWS))
    path = RiskProfile(table.take(rows), loss).path(max_abstained=limits.per_instance)
    steps = steps_between(path, limits.uniform_review)
    used = np.cumsum(steps.size)
    target = limits.total * len(rows) / n
    per_row = steps.take(slice(0, int(np.searchsorted(used, target)))).counts(len(rows))
    error = standard_errors * (np.sqrt(len(rows)) * per_row.std() + table.widest)
    first, last = np.searchsorted(used, [target - error, target + error])
    high = float(steps.cost[first]) if target > error and first < len(used) else np.inf
    return (float(steps.cost[last]) if last < len(used) else limits.uniform_review), high


def _capped(cost: float, limits: Limits) -> Penalty:
    return Linear(cost) if limits.per_instance is None else Capped(cost, limits.per_instance)
