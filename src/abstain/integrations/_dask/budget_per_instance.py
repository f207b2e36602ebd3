"""Budgets of Dask collections for any loss: the steps around the end of the budget are collected in one place.

Where many steps tie they are counted first, so that of equal ones, too, only those close to the end are collected.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.decision import decide
from abstain._core.losses import Loss
from abstain._core.prediction import Prediction
from abstain._core.probabilities import Probabilities
from abstain._core.profile import RiskProfile
from abstain.budget._allocation import Price
from abstain.budget._histogram import SavingsHistogram
from abstain.budget._limits import Limits
from abstain.budget._per_instance import Spending, max_moved_reviews
from abstain.budget._steps import Steps, profiles_of, review_counts, steps_above
from abstain.integrations._dask.collection import Chunked, ChunkedTable
from abstain.integrations._dask.predictions import chunked_prediction_type

MAX_COLLECTED_REVIEWS = 1 << 18  # reviews around the end of the budget that are collected without counting ties first


class Window(NamedTuple):
    """The steps of a chunk, by falling cost and then by row, of which it is not known yet whether they are taken."""

    first_cost: float = np.inf
    n_certain: int = 0
    """How many reviews of steps at the first cost are made in any case, as are all at higher ones."""
    last_cost: float = -np.inf
    n_possible: int = 0
    """How many reviews of steps at the last cost may be made; those at lower ones are not."""


class Range(NamedTuple):
    """Steps that save more than `high` for each review are taken, steps that save at most `low` are not."""

    low: float
    high: float


class ClassifiedSteps(NamedTuple):
    """All steps of a chunk, and which of them are taken in any case."""

    steps: Steps
    is_above: NDArray[np.bool_]
    """Steps above the range."""
    is_certain: NDArray[np.bool_]
    """Steps within the range that come before the window."""

    def counts(self, n_rows: int) -> NDArray[np.int64]:
        """Return how many reviews each instance gets from the steps that are taken in any case."""
        return self.steps.take(self.is_above | self.is_certain).counts(n_rows)


class OpenSteps(NamedTuple):
    """The steps of a chunk of which it is not known yet whether they are taken."""

    steps: Steps
    rows: NDArray[np.int64]
    """Their instances."""
    counts: NDArray[np.int64]
    """How many reviews these instances get before them."""
    n_certain: int
    """How many reviews within the range are made in any case."""
    max_stored: int
    """How many probabilities a row stores at most."""


class ChunkReviews(NamedTuple):
    """What a chunk needs to know to be decided by itself."""

    window: Window
    rows: NDArray[np.int64]
    """Instances with steps in the window."""
    counts: NDArray[np.int64]
    """How many reviews these instances get."""


def review_instances(
    table: ChunkedTable, loss: Loss, limits: Limits, histogram: SavingsHistogram | None
) -> tuple[Price[Any], Any, float]:
    """Return the price, the lazy prediction, and the gap to the optimum."""
    if limits.total is None or histogram is None:
        price: Price[Any] = Price(limits.uniform_review, loss, limits.per_instance)
        return (
            price,
            table.blockwise("review", chunked_prediction_type(loss), partial(decide, loss=loss, penalty=price)),
            0.0,
        )
    moved = max_moved_reviews()
    before, after = (histogram.threshold_bin(max(0, limits.total + shift)) for shift in (-moved, moved))
    high, n_above = (before.high, before.n_above) if limits.total > moved else (np.inf, 0)
    searched, windows = Range(after.low, high), [Window()] * len(table.layout.sizes)
    if after.n_above + after.n_within - n_above > MAX_COLLECTED_REVIEWS:
        count = partial(_count_steps, loss=loss, limits=limits, searched=searched)
        windows = _find_windows(table.blockwise("count_steps", Chunked, count).compute(), limits.total - n_above)
    collect = partial(_open_steps, loss=loss, limits=limits, searched=searched)
    found: list[OpenSteps] = table.blockwise("open_steps", Chunked, collect, windows).compute()
    steps, counts = _join(found)
    spent = Spending(
        steps=steps,
        counts=counts,
        budget=limits.total - n_above - sum(chunk.n_certain for chunk in found),
        limits=limits,
        profiles=partial(_look_up, table=table, loss=loss, rows_of_chunks=[chunk.rows for chunk in found]),
        max_stored=max(chunk.max_stored for chunk in found),
        is_all=searched == Range(0.0, np.inf) and windows[0] == Window(),
    ).spend()
    of_chunks = np.split(spent.counts, np.cumsum([len(chunk.rows) for chunk in found])[:-1])
    reviews = [ChunkReviews(*each) for each in zip(windows, (chunk.rows for chunk in found), of_chunks, strict=True)]
    work = partial(_review, loss=loss, limits=limits, searched=searched)
    price = Price(spent.price, loss, limits.per_instance)
    return price, table.blockwise("review", chunked_prediction_type(loss), work, reviews), spent.gap


def _join(found: list[OpenSteps]) -> tuple[Steps, NDArray[np.int64]]:
    """Return the open steps of all chunks by falling cost, and the reviews that their instances get before them.

    The instances are numbered through all chunks.
    """
    first = np.cumsum([0] + [len(chunk.rows) for chunk in found])
    row = [k + np.searchsorted(chunk.rows, chunk.steps.row) for k, chunk in zip(first, found, strict=False)]
    cost = np.concatenate([chunk.steps.cost for chunk in found])
    steps = Steps(np.concatenate(row), cost, np.concatenate([chunk.steps.size for chunk in found]))
    return steps.take(np.argsort(-cost, kind="stable")), np.concatenate([chunk.counts for chunk in found])


def _look_up(
    instances: NDArray[np.int64], table: ChunkedTable, loss: Loss, rows_of_chunks: list[NDArray[np.int64]]
) -> NDArray[np.float64]:
    """Return the profiles of some instances, numbered as in `_join`; chunks that have none of them are not computed."""
    first = np.cumsum([0] + [len(rows) for rows in rows_of_chunks])
    chunk = np.searchsorted(first, instances, side="right") - 1
    wanted = [rows[instances[chunk == k] - first[k]] for k, rows in enumerate(rows_of_chunks)]
    every = table.blockwise("profiles", Chunked, partial(_profiles_of_chunk, loss=loss), wanted)
    found = every.some([len(rows) > 0 for rows in wanted]).compute()
    width = max(values.shape[1] for values in found)
    return np.concatenate([np.pad(values, ((0, 0), (0, width - values.shape[1]))) for values in found])


def _profiles_of_chunk(part: Any, rows: NDArray[np.int64], loss: Loss) -> NDArray[np.float64]:
    return profiles_of(RiskProfile(Probabilities(part).take(rows), loss), np.arange(len(rows)))


def _find_windows(found: list[tuple[NDArray[np.float64], NDArray[np.int64]]], budget: int) -> list[Window]:
    """Return the window of each chunk, given the costs of its steps, each once and falling, and their reviews."""
    moved = max_moved_reviews()
    cost, reviews = (np.concatenate(column) for column in zip(*found, strict=True))
    chunk = np.repeat(np.arange(len(found)), [len(costs) for costs, _ in found])
    order = np.lexsort((chunk, -cost))
    before = np.empty_like(reviews)  # how many reviews come before those of a chunk at a cost
    before[order] = np.cumsum(reviews[order]) - reviews[order]
    windows = []
    for k in range(len(found)):
        costs, n_before = cost[chunk == k], before[chunk == k]
        if len(costs) == 0:
            windows.append(Window())
            continue
        # The first cost at which not every review is certain, and the last one at which any review is possible.
        first = min(int(np.count_nonzero(n_before + reviews[chunk == k] <= budget - moved)), len(costs) - 1)
        last = max(int(np.count_nonzero(n_before < budget + moved)) - 1, 0)
        n_certain, n_possible = budget - moved - int(n_before[first]), budget + moved - int(n_before[last])
        windows.append(Window(float(costs[first]), max(0, n_certain), float(costs[last]), max(0, n_possible)))
    return windows


def _count_steps(
    part: Any, loss: Loss, limits: Limits, searched: Range
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the costs of the steps of a chunk within a range, each once and falling, and how many reviews each has."""
    path = RiskProfile(Probabilities(part), loss).path(max_abstained=limits.per_instance)
    steps = steps_above(path, limits.uniform_review)
    saved = steps.cost - limits.uniform_review
    within = (saved > searched.low) & (saved <= searched.high)
    costs, of_cost = np.unique(-steps.cost[within], return_inverse=True)
    return -costs, np.bincount(of_cost, steps.size[within], len(costs)).astype(np.int64)


def _open_steps(part: Any, window: Window, loss: Loss, limits: Limits, searched: Range) -> OpenSteps:
    """Return the steps of a chunk that lie in its window, and within the range."""
    table = Probabilities(part)
    known = _classify(RiskProfile(table, loss), window, limits, searched.high)
    steps, is_above, is_certain = known
    is_open = ~is_above & ~is_certain
    is_open &= (steps.cost - limits.uniform_review > searched.low) & (steps.cost >= window.last_cost)
    last = np.flatnonzero(steps.cost == window.last_cost)
    is_open[last[_reviews_before(steps.size[last]) >= window.n_possible]] = False
    found = steps.take(is_open)
    rows = np.unique(found.row)
    n_certain = int(steps.size[is_certain].sum())
    return OpenSteps(found, rows, known.counts(table.n_rows)[rows], n_certain, table.widest)


def _classify(profile: RiskProfile[Any], window: Window, limits: Limits, high: float) -> ClassifiedSteps:
    """Return which steps save more than `high`, and which others come before the window."""
    steps = steps_above(profile.path(max_abstained=limits.per_instance), limits.uniform_review)
    is_above = steps.cost - limits.uniform_review > high
    is_certain = ~is_above & (steps.cost > window.first_cost)
    first = np.flatnonzero(steps.cost == window.first_cost)
    is_certain[first[_reviews_before(steps.size[first]) + steps.size[first] <= window.n_certain]] = True
    return ClassifiedSteps(steps, is_above, is_certain)


def _reviews_before(size: NDArray[np.int64]) -> NDArray[np.int64]:
    before: NDArray[np.int64] = np.cumsum(size) - size
    return before


def _review(part: Any, reviews: ChunkReviews, loss: Loss, limits: Limits, searched: Range) -> Prediction:
    """Decide a chunk, with the reviews that its instances get."""
    profile = RiskProfile(Probabilities(part), loss)
    known = _classify(profile, reviews.window, limits, searched.high)
    counts = known.counts(profile.probabilities.n_rows)
    counts[reviews.rows] = reviews.counts
    return review_counts(profile, counts, limits.uniform_review)
