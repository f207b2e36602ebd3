"""Budgets of Dask collections for any loss: the steps around the margin are collected; the budget ends among them."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain.budget.allocation import Price
from abstain.budget.instances import CORE, Spent, Steps, every_step, spend, values_of
from abstain.budget.limits import Limits
from abstain.budget.sketch import Sketch
from abstain.chunks.collection import Chunked, ChunkedTable
from abstain.chunks.predictions import kind_of
from abstain.decision import decide
from abstain.losses import Loss
from abstain.prediction import PartialPrediction, PartialRanking
from abstain.probabilities import Probabilities
from abstain.profile import RiskProfile

SPARE = int(np.sqrt(CORE) / 2)  # reviews on each side of the margin that the dynamic programme may move


class Around(NamedTuple):
    """The steps of a block around the margin, and how many reviews their instances get before them."""

    steps: Steps
    rows: NDArray[np.int64]
    settled: NDArray[np.int64]
    widest: int
    """How many probabilities a row stores at most."""


def review_instances(
    table: ChunkedTable, loss: Loss, limits: Limits, sketch: Sketch | None
) -> tuple[Price, Any, float]:
    """The price, the lazy prediction, and the gap to the optimum."""
    if limits.total is None or sketch is None:
        price = Price(limits.uniform_review, loss, limits.per_instance)
        work: Any = partial(decide, loss=loss, penalty=price.penalty)
        return price, table.blockwise("review", kind_of(loss), work), 0.0
    high, found, spent = _spent(table, loss, limits, sketch)
    work = partial(_review, loss=loss, limits=limits, high=high)
    counts = np.split(spent.counts, np.cumsum([len(around.rows) for around in found])[:-1])
    each = [(around.rows, count) for around, count in zip(found, counts, strict=True)]
    price = Price(spent.price, loss, limits.per_instance)
    return price, table.blockwise("review", kind_of(loss), work, each), spent.gap


def _spent(table: ChunkedTable, loss: Loss, limits: Limits, sketch: Sketch) -> tuple[float, list[Around], Spent]:
    """Above which saving all steps are taken, the steps that are not so clear, and what becomes of these."""
    assert limits.total is not None
    before, after = sketch.margin(max(0, limits.total - SPARE)), sketch.margin(limits.total + SPARE)
    high, above = (before.high, before.above) if limits.total > SPARE else (np.inf, 0)
    low = after.low
    work = partial(_around, loss=loss, limits=limits, low=low, high=high)
    found = table.blockwise("around", Chunked, work).compute()
    first = np.cumsum([0] + [len(around.rows) for around in found])
    row = [k + np.searchsorted(around.rows, around.steps.row) for k, around in zip(first, found, strict=False)]
    _, cost, size = (np.concatenate(column) for column in zip(*(around.steps for around in found), strict=True))
    dearest = np.argsort(-cost, kind="stable")
    steps = Steps(np.concatenate(row)[dearest], cost[dearest], size[dearest])
    settled = np.concatenate([around.settled for around in found])

    def values(core: NDArray[np.int64]) -> NDArray[np.float64]:
        of_block = np.searchsorted(first, core, side="right") - 1
        return _values(table, loss, [around.rows[core[of_block == k] - first[k]] for k, around in enumerate(found)])

    is_all = low == 0.0 and np.isinf(high)
    widest = max(around.widest for around in found)
    return high, found, spend(values, widest, steps, limits, settled, limits.total - above, is_all)


def _values(table: ChunkedTable, loss: Loss, rows: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """The profiles of these rows of each block; blocks of which none is wanted are not computed."""
    every = table.blockwise("values", Chunked, partial(_values_of_part, loss=loss), rows)
    found = every.some([len(wanted) > 0 for wanted in rows]).compute()
    width = max(values.shape[1] for values in found)
    return np.concatenate([np.pad(values, ((0, 0), (0, width - values.shape[1]))) for values in found])


def _values_of_part(part: Any, rows: NDArray[np.int64], loss: Loss) -> NDArray[np.float64]:
    return values_of(RiskProfile(Probabilities(part).take(rows), loss), np.arange(len(rows)))


def _around(part: Any, loss: Loss, limits: Limits, low: float, high: float) -> Around:
    table = Probabilities(part)
    steps, counts = _settled(RiskProfile(table, loss), limits, high)
    saved = steps.cost - limits.uniform_review
    within = (saved > low) & (saved <= high)
    around = Steps(steps.row[within], steps.cost[within], steps.size[within])
    rows = np.unique(around.row)
    return Around(around, rows, counts[rows], table.widest)


def _settled(profile: RiskProfile, limits: Limits, high: float) -> tuple[Steps, NDArray[np.int64]]:
    """All steps, and how many reviews each instance gets from those that save more than `high`."""
    steps = every_step(profile.path(limits.per_instance))
    above = steps.cost - limits.uniform_review > high
    return steps, np.bincount(steps.row[above], steps.size[above], profile.probabilities.n_rows).astype(np.int64)


def _review(
    part: Any, around: tuple[NDArray[np.int64], NDArray[np.int64]], loss: Loss, limits: Limits, high: float
) -> PartialPrediction | PartialRanking:
    """The answers of a block, with the reviews that its instances get."""
    profile = RiskProfile(Probabilities(part), loss)
    _, counts = _settled(profile, limits, high)
    rows, changed = around
    counts[rows] = changed
    prediction = profile.with_counts(counts)
    assert prediction.expected_loss is not None
    prediction.expected_loss += limits.uniform_review * counts
    return prediction
