"""Budgets of Dask collections for any loss: the steps around the margin are collected; the budget ends among them.

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
from abstain.budget._limits import Limits
from abstain.budget._per_instance import CORE, Spent, Steps, every_step, spend, values_of
from abstain.budget._two_pass import Sketch
from abstain.integrations._dask.collection import Chunked, ChunkedTable
from abstain.integrations._dask.predictions import kind_of

SPARE = int(np.sqrt(CORE) / 2)  # reviews on each side of the margin that the dynamic programme may move
COLLECTED = 1 << 18  # reviews around the margin that are collected without a closer look


class Window(NamedTuple):
    """Among which steps of a block, by falling cost and then by row, it is not clear yet which are taken."""

    first_cost: float = np.inf
    n_sure: int = 0
    """How many reviews of steps at the first cost are made in any case, as are all at higher ones."""
    last_cost: float = -np.inf
    n_possible: int = 0
    """How many reviews of steps at the last cost may be made; those at lower ones are not."""


class Around(NamedTuple):
    """The steps of a block around the margin, and how many reviews their instances get before them."""

    steps: Steps
    rows: NDArray[np.int64]
    settled: NDArray[np.int64]
    n_settled: int
    """Reviews around the margin that are made in any case."""
    widest: int
    """How many probabilities a row stores at most."""


def review_instances(
    table: ChunkedTable, loss: Loss, limits: Limits, sketch: Sketch | None
) -> tuple[Price, Any, float]:
    """The price, the lazy prediction, and the gap to the optimum."""
    if limits.total is None or sketch is None:
        price = Price(limits.uniform_review, loss, limits.per_instance)
        work: Any = partial(decide, loss=loss, penalty=price)
        return price, table.blockwise("review", kind_of(loss), work), 0.0
    high, windows, found, spent = _spent(table, loss, limits, sketch)
    work = partial(_review, loss=loss, limits=limits, high=high)
    counts = np.split(spent.counts, np.cumsum([len(around.rows) for around in found])[:-1])
    each = [(window, around.rows, count) for window, around, count in zip(windows, found, counts, strict=True)]
    price = Price(spent.price, loss, limits.per_instance)
    return price, table.blockwise("review", kind_of(loss), work, each), spent.gap


def _spent(
    table: ChunkedTable, loss: Loss, limits: Limits, sketch: Sketch
) -> tuple[float, list[Window], list[Around], Spent]:
    """Above which saving all steps are taken, the steps that are not so clear, and what becomes of these."""
    assert limits.total is not None
    before, after = sketch.margin(max(0, limits.total - SPARE)), sketch.margin(limits.total + SPARE)
    high, above = (before.high, before.above) if limits.total > SPARE else (np.inf, 0)
    low = after.low
    windows = [Window()] * len(table.layout.sizes)
    if after.above + after.within - above > COLLECTED:
        count = partial(_count_steps, loss=loss, limits=limits, low=low, high=high)
        windows = _windows(table.blockwise("count_steps", Chunked, count).compute(), limits.total - above)
    work = partial(_around, loss=loss, limits=limits, low=low, high=high)
    found = table.blockwise("around", Chunked, work, windows).compute()
    above += sum(around.n_settled for around in found)
    first = np.cumsum([0] + [len(around.rows) for around in found])
    row = [k + np.searchsorted(around.rows, around.steps.row) for k, around in zip(first, found, strict=False)]
    _, cost, size = (np.concatenate(column) for column in zip(*(around.steps for around in found), strict=True))
    dearest = np.argsort(-cost, kind="stable")
    steps = Steps(np.concatenate(row)[dearest], cost[dearest], size[dearest])
    settled = np.concatenate([around.settled for around in found])

    def values(core: NDArray[np.int64]) -> NDArray[np.float64]:
        of_block = np.searchsorted(first, core, side="right") - 1
        return _values(table, loss, [around.rows[core[of_block == k] - first[k]] for k, around in enumerate(found)])

    is_all = low == 0.0 and np.isinf(high) and windows[0] == Window()
    widest = max(around.widest for around in found)
    return high, windows, found, spend(values, widest, steps, limits, settled, limits.total - above, is_all)


def _windows(found: list[tuple[NDArray[np.float64], NDArray[np.int64]]], budget: int) -> list[Window]:
    """What each block needs to know of where the budget ends: from the costs of its steps and their reviews."""
    cost, reviews = (np.concatenate(column) for column in zip(*found, strict=True))
    block = np.repeat(np.arange(len(found)), [len(costs) for costs, _ in found])
    order = np.lexsort((block, -cost))
    before = np.empty_like(reviews)  # how many reviews come before those of a block at a cost
    before[order] = np.cumsum(reviews[order]) - reviews[order]
    windows = []
    for k in range(len(found)):
        of_block = block == k
        costs, first = cost[of_block], before[of_block]
        if len(costs) == 0:
            windows.append(Window())
            continue
        # The first cost at which not all is sure, and the last one at which anything is possible.
        start = min(int(np.count_nonzero(first + reviews[of_block] <= budget - SPARE)), len(costs) - 1)
        end = max(int(np.count_nonzero(first < budget + SPARE)) - 1, 0)
        sure, possible = budget - SPARE - int(first[start]), budget + SPARE - int(first[end])
        windows.append(Window(float(costs[start]), max(0, sure), float(costs[end]), max(0, possible)))
    return windows


def _values(table: ChunkedTable, loss: Loss, rows: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """The profiles of these rows of each block; blocks of which none is wanted are not computed."""
    every = table.blockwise("values", Chunked, partial(_values_of_part, loss=loss), rows)
    found = every.some([len(wanted) > 0 for wanted in rows]).compute()
    width = max(values.shape[1] for values in found)
    return np.concatenate([np.pad(values, ((0, 0), (0, width - values.shape[1]))) for values in found])


def _values_of_part(part: Any, rows: NDArray[np.int64], loss: Loss) -> NDArray[np.float64]:
    return values_of(RiskProfile(Probabilities(part).take(rows), loss), np.arange(len(rows)))


def _count_steps(
    part: Any, loss: Loss, limits: Limits, low: float, high: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """What the steps of a block between two savings cost, each cost once, the highest first, and how many reviews."""
    path = RiskProfile(Probabilities(part), loss).path(max_abstained=limits.per_instance)
    steps = every_step(path, limits.uniform_review)
    saved = steps.cost - limits.uniform_review
    within = (saved > low) & (saved <= high)
    costs, of_cost = np.unique(-steps.cost[within], return_inverse=True)
    return -costs, np.bincount(of_cost, steps.size[within], len(costs)).astype(np.int64)


def _around(part: Any, window: Window, loss: Loss, limits: Limits, low: float, high: float) -> Around:
    table = Probabilities(part)
    steps, above, settled = _settled(RiskProfile(table, loss), window, limits, high)
    within = ~above & ~settled & (steps.cost - limits.uniform_review > low) & (steps.cost >= window.last_cost)
    last = np.flatnonzero(steps.cost == window.last_cost)
    within[last[_reviews_before(steps.size[last]) >= window.n_possible]] = False
    around = Steps(steps.row[within], steps.cost[within], steps.size[within])
    rows = np.unique(around.row)
    counts = _counts(steps, above | settled, table.n_rows)
    return Around(around, rows, counts[rows], int(steps.size[settled].sum()), table.widest)


def _settled(
    profile: RiskProfile[Prediction], window: Window, limits: Limits, high: float
) -> tuple[Steps, NDArray[np.bool_], NDArray[np.bool_]]:
    """All steps, which of them save more than `high`, and which others come before the window."""
    steps = every_step(profile.path(max_abstained=limits.per_instance), limits.uniform_review)
    above = steps.cost - limits.uniform_review > high
    settled = ~above & (steps.cost > window.first_cost)
    first = np.flatnonzero(steps.cost == window.first_cost)
    settled[first[_reviews_before(steps.size[first]) + steps.size[first] <= window.n_sure]] = True
    return steps, above, settled


def _reviews_before(size: NDArray[np.int64]) -> NDArray[np.int64]:
    before: NDArray[np.int64] = np.cumsum(size) - size
    return before


def _counts(steps: Steps, taken: NDArray[np.bool_], n_rows: int) -> NDArray[np.int64]:
    return np.bincount(steps.row[taken], steps.size[taken], n_rows).astype(np.int64)


def _review(
    part: Any, around: tuple[Window, NDArray[np.int64], NDArray[np.int64]], loss: Loss, limits: Limits, high: float
) -> Prediction:
    """The answers of a block, with the reviews that its instances get."""
    profile = RiskProfile(Probabilities(part), loss)
    window, rows, changed = around
    steps, above, settled = _settled(profile, window, limits, high)
    counts = _counts(steps, above | settled, profile.probabilities.n_rows)
    counts[rows] = changed
    prediction = profile.with_n_abstained(counts)
    prediction.expected_loss += limits.uniform_review * counts
    return prediction
