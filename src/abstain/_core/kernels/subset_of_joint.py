"""Subset 0/1 loss from joint distributions: optimal decisions, and the lower hull of the risk profile.

The optimum for a linear penalty is a vertex of the lower convex hull of the risk profile, and so is that for a concave
one. A hull is found edge by edge: with the slope of the line between two known points as the price of an abstention,
either an answer below the line exists, which is a further point, or the line is an edge. What no answer is below, for
one price, is a bound for every number of abstentions; so other penalties are left few numbers of abstentions before
branch and bound begins.

From samples, the optimum for a price is found by minimum cuts (`subset_of_samples`), otherwise by branch and bound
(`subset_of_mixtures`).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.kernels.choice import SLACK, TIE
from abstain._core.kernels.codes import ABSTAIN
from abstain._core.kernels.components import Components, RowPenalties
from abstain._core.kernels.min_cut import WORD, bit_of
from abstain._core.kernels.samples_to_keep import search_samples
from abstain._core.kernels.subset_of_mixtures import SubsetRow, flip_from_components, loss_of, search_answers, total_of
from abstain._core.kernels.subset_of_samples import SampleSearch, cheapest_of_samples, load_samples, new_sample_search
from abstain._utils.compilation import kernel

ROUNDING = 4e-15
"""Numerical error of a total: what is less by no more than this is not less."""


class HullPoints(NamedTuple):
    """What is known of the risk profile of one row; losses include label costs.

    Attributes
    ----------
    losses : float64 array of shape (m + 1,)
        The loss of the best answer found with a abstentions; infinite if there is none.
    answers : int8 array of shape (m + 1, m)
        These answers.
    floor : float64 array of shape (m + 1,)
        What no answer with a abstentions is below.
    price : float64 array of shape (m + 1,)
        The price of an abstention by which that is known, 0 for a = 0 and m.
    """

    losses: NDArray[np.float64]
    answers: NDArray[np.int8]
    floor: NDArray[np.float64]
    price: NDArray[np.float64]


@kernel
def _row_of(components, i, counts, label_costs):
    """The components of row i, heaviest first, with a penalty."""
    first, last = components.indptr[i], components.indptr[i + 1]
    m = components.values.shape[1]
    heaviest_first = np.argsort(-components.weights[first:last], kind="mergesort")
    weights, p = np.empty(last - first), np.empty((last - first, m))
    for k in range(last - first):
        weights[k] = components.weights[first + heaviest_first[k]]
        value = components.index[first + heaviest_first[k]]
        for j in range(m):
            p[k, j] = components.values[value, j]
    cheapest_first = np.argsort(label_costs, kind="mergesort")
    return SubsetRow(
        weights, p, np.empty((0, m), np.int64), counts, label_costs, cheapest_first, max(TIE / (4.0 * m), ROUNDING)
    )


@kernel
def _with_counts(row, counts):
    """The row with another penalty, ready for branch and bound."""
    certain_first = row.certain_first
    if certain_first.shape[0] == 0:
        certain_first = np.empty(row.p.shape, np.int64)
        for k in range(row.p.shape[0]):
            certain_first[k] = np.argsort(-np.abs(row.p[k] - 0.5), kind="mergesort")
    return SubsetRow(row.weights, row.p, certain_first, counts, row.label_costs, row.cheapest_first, row.margin)


@kernel
def _below_by_cuts(row, samples, price, limit, codes):
    """Find the answer of least loss and price of its abstentions if that is below the limit, from samples.

    It is written into `codes`. Returns whether it is found, and a bound of all such sums.
    """
    opened = np.zeros(samples.words.shape[1], np.uint64)
    n_components, m = row.p.shape
    found, reference = cheapest_of_samples(samples, n_components, price + row.label_costs, limit, opened)
    if not found:
        return False, limit
    for j in range(m):
        is_open = opened[j // WORD] & bit_of(j) != 0
        codes[j] = ABSTAIN if is_open else np.int8(row.p[reference, j])
    loss, n_abstained = loss_of(row, codes)
    return True, loss + price * n_abstained


@kernel
def _below(row, samples, node_limit, price, limit, codes):
    """Find the answer of least loss and price of its abstentions if that is below the limit.

    It is written into `codes`, which may change even if none is found. Returns whether it is, and a bound of all such
    sums. `samples` is None for mixtures.
    """
    if samples is not None:
        return _below_by_cuts(row, samples, price, limit, codes)
    codes[:] = ABSTAIN
    priced = _with_counts(row, price * np.arange(codes.shape[0] + 1))
    best = flip_from_components(priced, limit + row.margin, codes)
    best, bound = search_answers(priced, node_limit, best, codes)
    return best < limit, min(bound, limit)


@kernel
def _complete_answer(row, samples, node_limit, codes):
    """Find the best complete answer; returns its loss, and a bound of that of all complete answers."""
    m = row.p.shape[1]
    for j in range(m):
        codes[j] = 1 if row.p[0, j] >= 0.5 else 0
    if samples is not None:  # the heaviest one
        return 1.0 - row.weights[0], 1.0 - row.weights[0]
    forbidden = np.full(m + 1, np.inf)
    forbidden[0] = 0.0
    complete = _with_counts(row, forbidden)
    best = flip_from_components(complete, total_of(complete, codes), codes)
    return search_answers(complete, node_limit, best, codes)


@kernel
def _new_points(row, samples, node_limit):
    """The points of the best complete answer and of abstaining on all labels."""
    m = row.p.shape[1]
    points = HullPoints(np.full(m + 1, np.inf), np.full((m + 1, m), ABSTAIN, np.int8), np.zeros(m + 1), np.zeros(m + 1))
    points.losses[0], points.floor[0] = _complete_answer(row, samples, node_limit, points.answers[0])
    points.losses[m] = points.floor[m] = row.label_costs.sum()
    return points


@kernel
def _find_points(row, samples, node_limit, points, find_all, best, codes):
    """Find the points of the hull, with prices ≥ 0, and the answer among them that costs least with row.counts.

    `codes` is an answer that costs `best`; the latter is returned. Unless all points are to be found, edges below which
    no answer can be better than that are left out.
    """
    m = row.p.shape[1]
    for a in (0, m):
        if points.losses[a] + row.counts[a] < best - row.margin:
            best = points.losses[a] + row.counts[a]
            codes[:] = points.answers[a]
    trial = np.empty(m, np.int8)
    left = 0
    while left < m:
        right = left + 1
        promising = False
        while not np.isfinite(points.losses[right]):
            promising = promising or find_all or points.floor[right] + row.counts[right] < best - row.margin
            right += 1
        if not promising:
            left = right
            continue
        price = max(0.0, (points.losses[left] - points.losses[right]) / (right - left))
        line = min(points.losses[left] + price * left, points.losses[right] + price * right)
        found, bound = _below(row, samples, node_limit, price, line - 0.5 * row.margin, trial)
        for a in range(m + 1):
            if bound - price * a > points.floor[a]:
                points.floor[a], points.price[a] = bound - price * a, price
        if found:
            loss, a = loss_of(row, trial)
            if loss < points.losses[a]:
                points.losses[a] = loss
                points.answers[a] = trial
            if loss + row.counts[a] < best - row.margin:
                best = loss + row.counts[a]
                codes[:] = trial
            if left < a < right:
                continue
        left = right
    return best


@kernel
def _decide_at_price(components, samples, counts, label_costs, codes):
    """Decide from samples where every abstention costs the same, label costs apart."""
    n, m = codes.shape
    trial = np.empty(m, np.int8)
    for i in range(n):
        row = _row_of(components, i, counts[i], label_costs)
        load_samples(samples, row.weights, row.p)
        best = total_of(row, codes[i])
        if 1.0 - row.weights[0] < best - row.margin:
            best = 1.0 - row.weights[0]
            for j in range(m):
                codes[i, j] = np.int8(row.p[0, j])
        if _below_by_cuts(row, samples, counts[i, 1], best - row.margin, trial)[0]:
            codes[i] = trial


@kernel
def _decide_by_hull(components, samples, counts, label_costs, node_limit, codes, floor, price):
    """Decide from samples among the vertices of the hull, and write the `HullPoints` of all rows."""
    for i in range(codes.shape[0]):
        row = _row_of(components, i, counts[i], label_costs)
        load_samples(samples, row.weights, row.p)
        points = _new_points(row, samples, node_limit)
        _find_points(row, samples, node_limit, points, False, total_of(row, codes[i]), codes[i])
        floor[i] = points.floor
        price[i] = points.price


@kernel
def _improve_by_search(components, samples, counts, label_costs, rows, floor, price, node_limit, codes, gap):
    """Improve decisions from samples by branch and bound in some rows, given what `_decide_by_hull` wrote."""
    for i in rows:
        row = _row_of(components, i, counts[i], label_costs)
        load_samples(samples, row.weights, row.p)
        weakest = np.argmin(floor[i] + counts[i])
        best = total_of(row, codes[i])
        best, bound = search_samples(samples, row, floor[i], price[i, weakest], node_limit, best, codes[i])
        gap[i] = _gap_of(best, bound)


@kernel
def _decide_from_mixtures(components, counts, label_costs, node_limit, codes, gap):
    """Decide from mixtures by branch and bound, for any penalty."""
    for i in range(codes.shape[0]):
        row = _with_counts(_row_of(components, i, counts[i], label_costs), counts[i])
        best = flip_from_components(row, total_of(row, codes[i]), codes[i])
        best, bound = search_answers(row, node_limit, best, codes[i])
        gap[i] = _gap_of(best, bound)


@kernel
def _gap_of(best, bound):
    """By how much something could be better than the best; ties are not."""
    return best - bound if best - bound > 0.5 * TIE else 0.0


def _are_concave(counts: NDArray[np.float64], label_costs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether the optimum of each row is a vertex of the hull, for counts whose steps never grow before the last one.

    With label costs, the hull is not found beyond the number of abstentions that costs least.
    """
    steps = np.diff(counts)
    m = steps.shape[1]
    are_concave = np.ones(len(counts), dtype=np.bool_) if m == 1 else steps[:, -1] <= steps[:, -2] + TIE / m**2
    return are_concave & ((steps[:, -1] >= 0) | (not label_costs.any()))


@kernel
def _hull_rows(components, samples, node_limit, values, answers, gap):
    n, width = values.shape
    m = width - 1
    for i in range(n):
        row = _row_of(components, i, np.zeros(width), np.zeros(m))
        if samples is not None:
            load_samples(samples, row.weights, row.p)
        points = _new_points(row, samples, node_limit)
        _find_points(row, samples, node_limit, points, True, np.inf, np.empty(m, np.int8))
        # Points above the line between their neighbours are none of the hull.
        last = 0
        corners = np.zeros(width, np.int64)
        for a in range(1, width):
            if not np.isfinite(points.losses[a]):
                continue
            while last > 0:
                before, middle = corners[last - 1], corners[last]
                slope = (points.losses[a] - points.losses[before]) / (a - before)
                if points.losses[middle] < points.losses[before] + slope * (middle - before) - SLACK:
                    break
                last -= 1
            last += 1
            corners[last] = a
        values[i] = np.inf
        answers[i] = ABSTAIN
        gap[i] = 0.0
        for corner in corners[: last + 1]:
            values[i, corner] = points.losses[corner]
            answers[i, corner] = points.answers[corner]
            gap[i, corner] = _gap_of(points.losses[corner], points.floor[corner])


def _memory_for(components: Components) -> SampleSearch | None:
    """Return memory for the largest row if components are samples, else None."""
    if not components.are_samples:
        return None
    return new_sample_search(int(np.diff(components.indptr).max(initial=0)), components.shape[1])


def decide_subset(
    components: Components,
    penalties: RowPenalties,
    node_limit: int,
    codes: NDArray[np.int8],
    gap: NDArray[np.float64],
) -> None:
    """Find the answer of each row whose expected subset 0/1 loss and penalty is least, of equals the most complete.

    Parameters
    ----------
    components : Components
        The joint distribution of each row.
    penalties : RowPenalties
        What abstentions cost, counted with tie_scale = 1.
    node_limit : int
        How many nodes branch and bound may open for a row. From samples, linear and concave penalties do without.
    codes : int8 array of shape (n, m)
        Answers to start from; the best ones found replace them.
    gap : float64 array of shape (n,)
        Written: by how much another answer could be better at most; 0 where none is, ties apart.
    """
    m = components.shape[1]
    label_costs = penalties.label_costs
    # Of equal totals, the one with fewest abstentions is wanted. Linear counts without label costs are tipped already.
    counts = penalties.counts + (TIE / m if penalties.tie > 0 else 0.0) * np.arange(m + 1)
    memory = _memory_for(components)
    if memory is None:
        _decide_from_mixtures(components, counts, label_costs, node_limit, codes, gap)
        return
    gap[:] = 0.0
    if penalties.is_linear and (np.isfinite(counts[:, 1]) == np.isfinite(counts[:, m])).all():
        _decide_at_price(components, memory, counts, label_costs, codes)
        return
    floor, price = np.empty_like(counts), np.empty_like(counts)
    _decide_by_hull(components, memory, counts, label_costs, node_limit, codes, floor, price)
    unproved = np.ones(len(counts), dtype=np.bool_)
    if penalties.is_concave:
        unproved = ~_are_concave(counts, label_costs)
    if unproved.any():
        rows = np.flatnonzero(unproved)
        _improve_by_search(components, memory, counts, label_costs, rows, floor, price, node_limit, codes, gap)


def hull_of_subset(
    components: Components,
    node_limit: int,
    values: NDArray[np.float64],
    answers: NDArray[np.int8],
    gap: NDArray[np.float64],
) -> None:
    """Find the vertices of the lower convex hull of each row's risk profile.

    Parameters
    ----------
    components : Components
        The joint distribution of each row.
    node_limit : int
        How many nodes branch and bound may open for one vertex. Samples do without.
    values : float64 array of shape (n, m + 1)
        Written: the least expected loss with a abstentions where that is a vertex, infinite elsewhere. 0 and m are.
    answers : int8 array of shape (n, m + 1, m)
        Written: answers that attain these values; elsewhere abstentions.
    gap : float64 array of shape (n, m + 1)
        Written: by how much a vertex could be lower at most; 0 where it is proved, and where there is none.
    """
    _hull_rows(components, _memory_for(components), node_limit, values, answers, gap)
