"""Budgets of Dask collections for sums over labels: thresholds tell what is reviewed, and shares how many ties."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.decision import decide
from abstain._core.losses import DecomposableLoss
from abstain._core.prediction import PartialPrediction
from abstain._core.probabilities import Probabilities
from abstain._utils.errors import InvalidBudget
from abstain.budget._allocation import Price
from abstain.budget._crossing_limits import among_best
from abstain.budget._limits import Limits
from abstain.budget._per_entry import Entries, Reviewed, best_of_instances, left_open, price_of, reviewed_above
from abstain.budget._two_pass import Sketch
from abstain.integrations._dask.collection import Chunked, ChunkedTable
from abstain.integrations._dask.predictions import ChunkedPrediction

COMPARED = 1 << 24  # reviews of labels with caps, and of the budget for others: what they save is in one place


class Thresholds(NamedTuple):
    """What saves more is reviewed, what saves less is not."""

    all: float
    """Whatever the label."""
    by_label: NDArray[np.float64] | None
    """For each label besides; None without caps per label."""


class Share(NamedTuple):
    """How many of those that save just as much as a threshold a block may review, the first ones by row and label."""

    all: int
    by_label: tuple[NDArray[np.int64], NDArray[np.int64]] | None
    """Labels with such ties, and how many of these."""


def review_entries(
    table: ChunkedTable, loss: DecomposableLoss, limits: Limits, sketch: Sketch | None, n_rows: int
) -> tuple[Price, ChunkedPrediction, float]:
    """The price, the lazy prediction, and the gap to the optimum, which is 0."""
    axes, m = table.layout.axes, table.layout.n_labels
    thresholds, shares, scarcity = Thresholds(0.0, None), [Share(0, None)] * len(table.layout.sizes), np.zeros(m)
    if limits.per_label is not None:
        thresholds, shares = _with_caps_per_label(table, loss, limits, n_rows)
        scarcity = np.maximum(np.asarray(thresholds.by_label) - thresholds.all, 0.0)
    elif limits.total is not None and sketch is not None:
        thresholds, shares = _with_total(table, loss, limits, sketch)
    elif limits.per_instance is None:  # without a budget the reviews are worth what they cost: the decision itself
        price = price_of(loss, limits, axes, m, 0.0, scarcity)
        work: Any = partial(decide, loss=loss, penalty=price)
        return price, table.blockwise("review", ChunkedPrediction, work), 0.0
    work = partial(_review, loss=loss, limits=limits, thresholds=thresholds)
    price = price_of(loss, limits, axes, m, thresholds.all, scarcity)
    return price, table.blockwise("review", ChunkedPrediction, work, shares), 0.0


def _with_total(
    table: ChunkedTable, loss: DecomposableLoss, limits: Limits, sketch: Sketch
) -> tuple[Thresholds, list[Share]]:
    """The threshold lies in the margin that the sketch tells; of what lies there, the values are counted."""
    assert limits.total is not None
    margin = sketch.margin(limits.total)
    if margin.within == 0:
        return Thresholds(0.0, None), [Share(0, None)] * len(table.layout.sizes)
    work = partial(_count_values, loss=loss, limits=limits, low=margin.low, high=margin.high)
    found = table.blockwise("count_values", Chunked, work).compute()
    values, of_value = np.unique(np.concatenate([values for values, _ in found]), return_inverse=True)
    counts = np.bincount(of_value, np.concatenate([counts for _, counts in found])).astype(np.int64)[::-1]
    reached = np.cumsum(counts)
    at = int(np.searchsorted(reached, margin.taken, side="right"))
    threshold = float(values[::-1][at])
    ties = [int(counts[values == threshold].sum()) for values, counts in found]
    return Thresholds(threshold, None), [
        Share(share, None) for share in _first_come(np.array(ties), margin.taken - (int(reached[at - 1]) if at else 0))
    ]


def _count_values(
    part: Any, loss: DecomposableLoss, limits: Limits, low: float, high: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """What the reviews within the margin save, each value once, and how many save that."""
    values = _candidates(Probabilities(part), loss, limits, low, high)[1].value
    return np.unique(values[values <= high], return_counts=True)


def _with_caps_per_label(
    table: ChunkedTable, loss: DecomposableLoss, limits: Limits, n_rows: int
) -> tuple[Thresholds, list[Share]]:
    """The best of each label with a cap, as many as that allows and one more, and the best of the others tell all
    thresholds: of these as many as the budget allows and one more, none if there is no budget.
    """
    assert limits.per_label is not None
    caps, most = limits.per_label, -1 if limits.total is None else limits.total
    keep = partial(_best_of_all, caps=caps + 1, is_capped=caps < n_rows, most=most + 1)
    of_blocks = table.blockwise(
        "best_of_labels", Chunked, partial(_best_of_labels, loss=loss, limits=limits, keep=keep)
    )
    best = of_blocks.folded(keep).compute()
    allowed = among_best(best.label, best.value, caps)
    by_label = np.zeros(len(caps))
    by_label[best.label[~allowed]] = best.value[~allowed]  # of each label at most one: the next one
    candidates = np.sort(best.value[allowed])[::-1]
    total = len(candidates) if limits.total is None else limits.total
    thresholds = Thresholds(float(candidates[total]) if total < len(candidates) else 0.0, by_label)
    above = np.bincount(best.label[best.value > by_label[best.label]], minlength=len(caps))
    work = partial(_count_ties, loss=loss, limits=limits, thresholds=thresholds)
    found = table.blockwise("count_ties", Chunked, work).compute()
    shares = _first_come_by_label([(ties.labels, ties.counts) for ties in found], caps - above)
    is_tied = by_label == thresholds.all
    ties = np.array(
        [part.at_all + counts[is_tied[labels]].sum() for part, (labels, counts) in zip(found, shares, strict=True)]
    )
    of_all = _first_come(ties, total - np.count_nonzero(candidates > thresholds.all))
    return thresholds, [Share(int(k), share) for k, share in zip(of_all, shares, strict=True)]


def _best_of_labels(
    part: Any, loss: DecomposableLoss, limits: Limits, keep: Callable[[list[Entries]], Entries]
) -> Entries:
    """What the dearest entries of a block save; where they are does not matter yet."""
    return keep([_candidates(Probabilities(part), loss, limits, 0.0)[1]])


def _best_of_all(parts: list[Entries], caps: NDArray[np.int64], is_capped: NDArray[np.bool_], most: int) -> Entries:
    """Of labels with caps the best of each, of the others the best of all."""
    joined = Entries(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    capped = joined.some(is_capped[joined.label])
    others = joined.some(~is_capped[joined.label])
    best = np.sort(np.argsort(-others.value, kind="stable")[:most])
    kept = capped.some(among_best(capped.label, capped.value, caps)), others.some(best)
    if len(kept[0].value) + len(kept[1].value) > COMPARED:
        raise InvalidBudget(
            f"per_label and the budget allow more reviews than the {COMPARED} that can be compared in one place: lower "
            "them, or compute() the probabilities"
        )
    return Entries(*(np.concatenate(column) for column in zip(*kept, strict=True)))


class Ties(NamedTuple):
    """How many entries of a block save just as much as a threshold."""

    labels: NDArray[np.int64]
    counts: NDArray[np.int64]
    """As much as that of their label."""
    at_all: int
    """As much as that of all labels, and more than that of their own."""


def _count_ties(part: Any, loss: DecomposableLoss, limits: Limits, thresholds: Thresholds) -> Ties:
    assert thresholds.by_label is not None
    _, label, value = _candidates(Probabilities(part), loss, limits, 0.0)[1]
    own = thresholds.by_label[label]
    labels, counts = np.unique(label[value == own], return_counts=True)
    return Ties(labels, counts, int(np.count_nonzero((value == thresholds.all) & (value > own))))


def _first_come_by_label(
    ties: list[tuple[NDArray[np.int64], NDArray[np.int64]]], left: NDArray[np.int64]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The same for each label: which labels, and how many of their ties a block may take."""
    labels, counts = (np.concatenate(column) for column in zip(*ties, strict=True))
    order = np.argsort(labels, kind="stable")  # within a label, the first block comes first
    before = np.cumsum(counts[order]) - counts[order]
    first = np.flatnonzero(np.diff(labels[order], prepend=-1))
    sizes = np.diff(np.append(first, len(order)))
    taken = np.empty_like(counts)
    taken[order] = np.clip(left[labels[order]] - (before - np.repeat(before[first], sizes)), 0, counts[order])
    ends = np.cumsum([len(some) for some, _ in ties])[:-1]
    return list(zip(np.split(labels, ends), np.split(taken, ends), strict=True))


def _first_come(ties: NDArray[np.int64], left: Any) -> NDArray[np.int64]:
    """How many of its ties each block may take, so that so many are taken in all."""
    before = np.cumsum(ties, axis=0) - ties
    return np.clip(left - before, 0, ties)


def _candidates(
    table: Probabilities, loss: DecomposableLoss, limits: Limits, low: float, high: float = np.inf
) -> tuple[Reviewed, Entries]:
    """Entries that save more than `low`, by row and label; without caps, what saves more than `high` is reviewed."""
    if limits.per_instance is not None:
        best = best_of_instances(table, loss, limits)
        reviewed, found = reviewed_above(table, loss, limits, np.inf, np.inf), best.some(best.value > low)
    else:
        reviewed = reviewed_above(table, loss, limits, low, high if limits.per_label is None else np.inf)
        found = reviewed.around
    return reviewed, found.some(np.lexsort((found.label, found.row))) if table.is_sparse else found


def _review(
    part: Any, share: Share, loss: DecomposableLoss, limits: Limits, thresholds: Thresholds
) -> PartialPrediction:
    """The answers of a block, with all reviews that the thresholds and its share of the ties allow."""
    table = Probabilities(part)
    threshold = thresholds.all
    reviewed, found = _candidates(table, loss, limits, max(0.0, np.nextafter(threshold, 0.0)), threshold)
    if thresholds.by_label is not None and share.by_label is not None:
        own = thresholds.by_label[found.label]
        ties = np.flatnonzero(found.value == own)
        allowed = np.zeros(table.n_labels, np.int64)
        allowed[share.by_label[0]] = share.by_label[1]
        ties = ties[among_best(found.label[ties], -ties.astype(np.float64), allowed)]
        found = found.some(np.union1d(np.flatnonzero(found.value > own), ties))
    ties = np.flatnonzero(found.value == threshold)[: share.all]
    taken = found.some(np.union1d(np.flatnonzero(found.value > threshold), ties))
    expected = reviewed.expected - np.bincount(taken.row, taken.value, table.n_rows)
    return PartialPrediction.from_codes(left_open(reviewed.codes, taken), table.axes, expected)
