"""Budgets of Dask collections for sums over labels: thresholds say what is reviewed, and for each chunk how many ties.

With a budget for the whole table there is one threshold. With caps per label each label has one of its own too: an
entry is reviewed if it saves more than both, and of the entries that tie with either, the first by row and label are.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.decision import decide
from abstain._core.losses import Loss
from abstain._core.prediction import PartialPrediction
from abstain._core.probabilities import Probabilities
from abstain._utils.errors import InvalidBudget
from abstain.budget._allocation import Price, ShadowPrices, make_price
from abstain.budget._entries import Entries
from abstain.budget._histogram import SavingsHistogram
from abstain.budget._limits import Limits
from abstain.budget._per_entry import EntryProblem, find_candidates
from abstain.budget._thresholds import find_threshold, find_threshold_of_counts, is_among_largest
from abstain.integrations._dask.collection import Chunked, ChunkedTable
from abstain.integrations._dask.predictions import ChunkedPrediction

MAX_COMPARED_ENTRIES = 1 << 24  # entries of labels with caps, and of the budget for the others, compared in one place


class Thresholds(NamedTuple):
    """Entries that save more are reviewed, entries that save less are not."""

    common: float
    """For the whole table."""
    by_label: NDArray[np.float64] | None
    """For each label in addition; None without caps per label."""


class LabelTies(NamedTuple):
    """Numbers of entries that save just as much as the threshold of their label; labels without any are left out."""

    labels: NDArray[np.int64]
    counts: NDArray[np.int64]


class Ties(NamedTuple):
    """Numbers of entries that save just as much as a threshold: those that there are, or those that are reviewed."""

    common: int
    """As much as the common threshold, and more than that of their label."""
    by_label: LabelTies | None
    """As much as the threshold of their label; None without caps per label."""


def review_entries(
    table: ChunkedTable, loss: Loss, limits: Limits, histogram: SavingsHistogram | None, n_rows: int
) -> tuple[Price[Any], ChunkedPrediction]:
    """Return the price and the lazy prediction, which is optimal."""
    m = table.layout.n_labels
    thresholds, ties, shadow = Thresholds(0.0, None), _no_ties(table), np.zeros(m)
    if limits.per_label is not None:
        thresholds, ties = _find_thresholds_by_label(table, loss, limits, n_rows)
        shadow = np.maximum(np.asarray(thresholds.by_label) - thresholds.common, 0.0)
    elif limits.total is not None and histogram is not None:
        thresholds, ties = _find_threshold(table, loss, limits, histogram)
    price = make_price(loss, limits, table.layout.axes, ShadowPrices(thresholds.common, shadow))
    if limits.total is None and limits.per_instance is None and limits.per_label is None:
        # Without a budget the reviews are worth what they cost: the decision itself.
        return price, table.blockwise("review", ChunkedPrediction, partial(decide, loss=loss, penalty=price))
    work = partial(_review, loss=loss, limits=limits, thresholds=thresholds)
    return price, table.blockwise("review", ChunkedPrediction, work, ties)


def _no_ties(table: ChunkedTable) -> list[Ties]:
    return [Ties(0, None)] * len(table.layout.sizes)


def _find_threshold(
    table: ChunkedTable, loss: Loss, limits: Limits, histogram: SavingsHistogram
) -> tuple[Thresholds, list[Ties]]:
    """Count the different values within the bin of the histogram in which the budget ends."""
    assert limits.total is not None
    found = histogram.threshold_bin(limits.total)
    if found.n_within == 0:
        return Thresholds(0.0, None), _no_ties(table)
    work = partial(_count_values, loss=loss, limits=limits, low=found.low, high=found.high)
    chunks = table.blockwise("count_values", Chunked, work).compute()
    values, of_value = np.unique(np.concatenate([values for values, _ in chunks]), return_inverse=True)
    counts = np.bincount(of_value, np.concatenate([counts for _, counts in chunks])).astype(np.int64)
    threshold = find_threshold_of_counts(values, counts, found.n_taken)
    n_ties = np.array([int(counts[values == threshold.value].sum()) for values, counts in chunks])
    return Thresholds(threshold.value, None), [Ties(int(k), None) for k in _first_ties(n_ties, threshold.n_ties)]


def _count_values(
    part: Any, loss: Loss, limits: Limits, low: float, high: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return what the reviews of a chunk within the bin save, each value once, and how many save that."""
    values = find_candidates(EntryProblem(Probabilities(part), loss, limits), low, high).candidates.value
    return np.unique(values[values <= high], return_counts=True)


def _find_thresholds_by_label(
    table: ChunkedTable, loss: Loss, limits: Limits, n_rows: int
) -> tuple[Thresholds, list[Ties]]:
    """Return the thresholds of all labels and of the table, and how many ties each chunk reviews.

    All thresholds follow from few entries: of each label with a cap the best ones, as many as the cap allows and one
    more; of the other labels together the best ones, as many as the budget allows and one more (none without a budget).
    """
    assert limits.per_label is not None
    caps, n_uncapped = limits.per_label, 0 if limits.total is None else limits.total + 1
    keep = partial(_keep_best, caps=caps + 1, is_capped=caps < n_rows, n_uncapped=n_uncapped)
    work = partial(_best_of_chunk, loss=loss, limits=limits, keep=keep)
    best: Entries = table.blockwise("best_of_labels", Chunked, work).folded(keep).compute()
    fits_cap = is_among_largest(best.label, best.value, caps)
    by_label = np.zeros(len(caps))
    by_label[best.label[~fits_cap]] = best.value[~fits_cap]  # at most one entry of each label: the one after its cap
    candidates = best.value[fits_cap]
    common = find_threshold(candidates, len(candidates) if limits.total is None else limits.total)
    thresholds = Thresholds(common.value, by_label)
    n_above = np.bincount(best.label[best.value > by_label[best.label]], minlength=len(caps))
    count = partial(_count_ties, loss=loss, limits=limits, thresholds=thresholds)
    found: list[tuple[int, LabelTies]] = table.blockwise("count_ties", Chunked, count).compute()
    of_labels = _first_ties_of_labels([of_label for _, of_label in found], caps - n_above)
    # Ties with the threshold of their label that fit its cap tie with the common one too where both are the same.
    is_common = by_label == common.value
    n_common = [
        n + int(ties.counts[is_common[ties.labels]].sum()) for (n, _), ties in zip(found, of_labels, strict=True)
    ]
    shares = _first_ties(np.array(n_common), common.n_ties)
    return thresholds, [Ties(int(n), of_label) for n, of_label in zip(shares, of_labels, strict=True)]


def _best_of_chunk(part: Any, loss: Loss, limits: Limits, keep: Callable[[list[Entries]], Entries]) -> Entries:
    """Return the entries of a chunk that may determine a threshold; their rows are counted within the chunk."""
    return keep([find_candidates(EntryProblem(Probabilities(part), loss, limits), 0.0, np.inf).candidates])


def _keep_best(parts: list[Entries], caps: NDArray[np.int64], is_capped: NDArray[np.bool_], n_uncapped: int) -> Entries:
    """Return the best entries of each label with a cap, and the best of all other labels together."""
    entries = Entries.concatenate(parts)
    capped, others = entries.take(is_capped[entries.label]), entries.take(~is_capped[entries.label])
    best = np.sort(np.argsort(-others.value, kind="stable")[:n_uncapped])
    kept = Entries.concatenate([capped.take(is_among_largest(capped.label, capped.value, caps)), others.take(best)])
    if len(kept.value) > MAX_COMPARED_ENTRIES:
        raise InvalidBudget(
            f"per_label and the budget allow more reviews than the {MAX_COMPARED_ENTRIES} that can be compared in one "
            "place: lower them, or compute() the probabilities"
        )
    return kept


def _count_ties(part: Any, loss: Loss, limits: Limits, thresholds: Thresholds) -> tuple[int, LabelTies]:
    """Return how many entries of a chunk tie with the common threshold, and how many with that of their label."""
    assert thresholds.by_label is not None
    entries = find_candidates(EntryProblem(Probabilities(part), loss, limits), 0.0, np.inf).candidates
    threshold = thresholds.by_label[entries.label]
    labels, counts = np.unique(entries.label[entries.value == threshold], return_counts=True)
    n_common = int(np.count_nonzero((entries.value == thresholds.common) & (entries.value > threshold)))
    return n_common, LabelTies(labels, counts)


def _first_ties(n_ties: NDArray[np.int64], n_allowed: int) -> NDArray[np.int64]:
    """Return how many of its ties each chunk reviews, so that the first n_allowed of all are."""
    before = np.cumsum(n_ties) - n_ties
    return np.clip(n_allowed - before, 0, n_ties)


def _first_ties_of_labels(ties: list[LabelTies], n_allowed: NDArray[np.int64]) -> list[LabelTies]:
    """Return how many of its ties each chunk reviews, so that the first n_allowed[j] of all ties of label j are."""
    labels, counts = (np.concatenate(column) for column in zip(*ties, strict=True))
    order = np.argsort(labels, kind="stable")  # within a label, the first chunk comes first
    before = np.cumsum(counts[order]) - counts[order]
    first = np.flatnonzero(np.diff(labels[order], prepend=-1))
    sizes = np.diff(np.append(first, len(order)))
    taken = np.empty_like(counts)
    taken[order] = np.clip(n_allowed[labels[order]] - (before - np.repeat(before[first], sizes)), 0, counts[order])
    ends = np.cumsum([len(chunk.labels) for chunk in ties])[:-1]
    return [LabelTies(*chunk) for chunk in zip(np.split(labels, ends), np.split(taken, ends), strict=True)]


def _review(part: Any, ties: Ties, loss: Loss, limits: Limits, thresholds: Thresholds) -> PartialPrediction:
    """Decide a chunk, with all reviews that the thresholds and its share of the ties allow."""
    table, common = Probabilities(part), thresholds.common
    # Caps per label are met by choosing among the candidates, so that nothing may be reviewed before.
    high = common if limits.per_label is None else np.inf
    reviewed = find_candidates(EntryProblem(table, loss, limits), max(0.0, np.nextafter(common, 0.0)), high)
    entries = reviewed.candidates
    if thresholds.by_label is not None and ties.by_label is not None:
        threshold = thresholds.by_label[entries.label]
        tied = np.flatnonzero(entries.value == threshold)
        n_allowed = np.zeros(table.n_labels, np.int64)
        n_allowed[ties.by_label.labels] = ties.by_label.counts
        tied = tied[is_among_largest(entries.label[tied], -tied.astype(np.float64), n_allowed)]
        entries = entries.take(np.union1d(np.flatnonzero(entries.value > threshold), tied))
    tied = np.flatnonzero(entries.value == common)[: ties.common]
    taken = entries.take(np.union1d(np.flatnonzero(entries.value > common), tied))
    return reviewed.with_reviews(taken, table.axes)
