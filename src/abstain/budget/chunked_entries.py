"""Budgets of Dask collections for Hamming: thresholds tell which entries are reviewed, and shares how many ties."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain.budget.allocation import Price
from abstain.budget.entries import Entries, Reviewed, best_of_instances, left_open, price_of, reviewed_above
from abstain.budget.limits import Limits
from abstain.budget.matching import among_best
from abstain.budget.sketch import Sketch
from abstain.chunks.collection import Chunked, ChunkedTable
from abstain.chunks.predictions import ChunkedPrediction
from abstain.decision import decide
from abstain.errors import InvalidBudget
from abstain.losses import Hamming
from abstain.prediction import PartialPrediction
from abstain.probabilities import Probabilities

COMPARED = 1 << 26  # reviews that caps per label may allow: what they save is compared in one place


class Thresholds(NamedTuple):
    """What saves more is reviewed, what saves less is not."""

    all: float
    """Whatever the label."""
    by_label: NDArray[np.float64] | None
    """For each label besides; None without caps per label."""


class Share(NamedTuple):
    """How many of those that save just as much as a threshold a block may review, the first ones by row and label."""

    all: int
    by_label: NDArray[np.int64] | None


def review_entries(
    table: ChunkedTable, loss: Hamming, limits: Limits, sketch: Sketch | None
) -> tuple[Price, ChunkedPrediction, float]:
    """The price, the lazy prediction, and the gap to the optimum, which is 0."""
    axes, m = table.layout.axes, table.layout.n_labels
    thresholds, shares, scarcity = Thresholds(0.0, None), [Share(0, None)] * len(table.layout.sizes), np.zeros(m)
    if limits.per_label is not None:
        thresholds, shares = _with_caps_per_label(table, loss, limits)
        scarcity = np.maximum(np.asarray(thresholds.by_label) - thresholds.all, 0.0)
    elif limits.total is not None and sketch is not None:
        thresholds, shares = _with_total(table, loss, limits, sketch)
    elif limits.per_instance is None:  # without a budget the reviews are worth what they cost: the decision itself
        price = price_of(loss, limits, axes, m, 0.0, scarcity)
        work: Any = partial(decide, loss=loss, penalty=price.penalty)
        return price, table.blockwise("review", ChunkedPrediction, work), 0.0
    work = partial(_review, loss=loss, limits=limits, thresholds=thresholds)
    price = price_of(loss, limits, axes, m, thresholds.all, scarcity)
    return price, table.blockwise("review", ChunkedPrediction, work, shares), 0.0


def _with_total(table: ChunkedTable, loss: Hamming, limits: Limits, sketch: Sketch) -> tuple[Thresholds, list[Share]]:
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
    part: Any, loss: Hamming, limits: Limits, low: float, high: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """What the reviews within the margin save, each value once, and how many save that."""
    values = _candidates(Probabilities(part), loss, limits, low, high)[1].value
    return np.unique(values[values <= high], return_counts=True)


def _with_caps_per_label(table: ChunkedTable, loss: Hamming, limits: Limits) -> tuple[Thresholds, list[Share]]:
    """The best of each label, as many as its cap allows and one more, tell all thresholds."""
    assert limits.per_label is not None
    caps = limits.per_label
    if caps.sum() > COMPARED:
        raise InvalidBudget(
            f"per_label allows {caps.sum()} reviews; of a Dask collection, at most {COMPARED} can be compared"
        )
    of_blocks = table.blockwise("best_of_labels", Chunked, partial(_best_of_labels, loss=loss, limits=limits))
    best = of_blocks.folded(partial(_best_of_all, most=caps + 1)).compute()
    allowed = among_best(best.label, best.value, caps)
    by_label = np.zeros(len(caps))
    by_label[best.label[~allowed]] = best.value[~allowed]  # of each label at most one: the next one
    candidates = np.sort(best.value[allowed])[::-1]
    total = len(candidates) if limits.total is None else limits.total
    thresholds = Thresholds(float(candidates[total]) if total < len(candidates) else 0.0, by_label)
    above = np.bincount(best.label[best.value > by_label[best.label]], minlength=len(caps))
    work = partial(_count_ties, loss=loss, limits=limits, thresholds=thresholds)
    found = table.blockwise("count_ties", Chunked, work).compute()
    at_label, at_all = (np.array(counts) for counts in zip(*found, strict=True))
    shares = _first_come(at_label, caps - above)
    ties = at_all + shares[:, by_label == thresholds.all].sum(axis=1)
    of_all = _first_come(ties, total - np.count_nonzero(candidates > thresholds.all))
    return thresholds, [Share(int(k), share) for k, share in zip(of_all, shares, strict=True)]


def _best_of_labels(part: Any, loss: Hamming, limits: Limits) -> Entries:
    """What the dearest entries of each label of a block save; where they are does not matter yet."""
    assert limits.per_label is not None
    return _best_of_all([_candidates(Probabilities(part), loss, limits, 0.0)[1]], limits.per_label + 1)


def _best_of_all(parts: list[Entries], most: NDArray[np.int64]) -> Entries:
    joined = Entries(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return joined.some(among_best(joined.label, joined.value, most))


def _count_ties(part: Any, loss: Hamming, limits: Limits, thresholds: Thresholds) -> tuple[NDArray[np.int64], int]:
    """How many entries of each label are at its threshold, and how many above it are at that of all labels."""
    assert thresholds.by_label is not None
    _, label, value = _candidates(Probabilities(part), loss, limits, 0.0)[1]
    own = thresholds.by_label[label]
    at_label = np.bincount(label[value == own], minlength=len(thresholds.by_label))
    return at_label, int(np.count_nonzero((value == thresholds.all) & (value > own)))


def _first_come(ties: NDArray[np.int64], left: Any) -> NDArray[np.int64]:
    """How many of its ties each block may take, so that so many are taken in all."""
    before = np.cumsum(ties, axis=0) - ties
    return np.clip(left - before, 0, ties)


def _candidates(
    table: Probabilities, loss: Hamming, limits: Limits, low: float, high: float = np.inf
) -> tuple[Reviewed, Entries]:
    """Entries that save more than `low`, by row and label; without caps, what saves more than `high` is reviewed."""
    if limits.per_instance is not None:
        best = best_of_instances(table, loss, limits)
        reviewed, found = reviewed_above(table, loss, limits, np.inf, np.inf), best.some(best.value > low)
    else:
        reviewed = reviewed_above(table, loss, limits, low, high if limits.per_label is None else np.inf)
        found = reviewed.around
    return reviewed, found.some(np.lexsort((found.label, found.row))) if table.is_sparse else found


def _review(part: Any, share: Share, loss: Hamming, limits: Limits, thresholds: Thresholds) -> PartialPrediction:
    """The answers of a block, with all reviews that the thresholds and its share of the ties allow."""
    table = Probabilities(part)
    threshold = thresholds.all
    reviewed, found = _candidates(table, loss, limits, max(0.0, np.nextafter(threshold, 0.0)), threshold)
    if thresholds.by_label is not None and share.by_label is not None:
        own = thresholds.by_label[found.label]
        ties = np.flatnonzero(found.value == own)
        ties = ties[among_best(found.label[ties], -ties.astype(np.float64), share.by_label)]
        found = found.some(np.union1d(np.flatnonzero(found.value > own), ties))
    ties = np.flatnonzero(found.value == threshold)[: share.all]
    taken = found.some(np.union1d(np.flatnonzero(found.value > threshold), ties))
    expected = reviewed.expected - np.bincount(taken.row, taken.value, table.n_rows)
    return PartialPrediction.trusted(left_open(reviewed.codes, taken), table.axes, expected)
