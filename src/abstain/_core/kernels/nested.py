"""F-measure and Jaccard index from nested intervals: the best prediction where the relaxation uses labels twice.

The relaxation for k labels answered 1 and n answered 0 takes the k greatest lower ends and the n least upper ends. Let
L₀ and U₀ be their sums and v₀ its expected measure. A prediction whose own ends have the sums L ≤ L₀ and U ≥ U₀ has

    value  ≤  v₀ − first · (L₀ − L) − last · (U − U₀),

where `first` and `last` are the least that the measure changes with a lower and with an upper end (`_least_changes`).
The right side is a sum over labels, and each has one side: its maximum is found by selection. A choice for a label that
makes the maximum fall to the best value found is ruled out, and the relaxation solved anew with what is left. Mostly
that leaves nothing to choose; otherwise one label is branched on.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.kernels.choice import SLACK
from abstain._core.kernels.codes import ABSTAIN
from abstain._core.kernels.overlap import bound_inside, fill_heads, fill_tails, fill_zeros, push, value_and_slope
from abstain._core.kernels.two_ends import FIRST, LAST, take_first, take_last
from abstain._utils.compilation import kernel

ONE, ZERO, OPEN = 1, 2, 4  # what may be chosen for a label, as bits: answer it 1, answer it 0, abstain
GAIN, VALUE, ABSTENTIONS, UNSEARCHED, VISITS = range(5)  # what `Row.best` holds


class Parts(NamedTuple):
    """What the number c is made of by which the true positives are divided.

    c = predicted · (labels answered 1) + missed · (relevant ones among those answered 0) + found · (true positives).
    """

    predicted: float
    missed: float
    found: float


class Row(NamedTuple):
    """The intervals of an instance, and the best prediction found for it.

    best holds its gain (value less penalty), value and number of abstentions, then the greatest bound of what was not
    searched, and how many labels may still be visited. Gains that differ by `tie` are equal.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    sides: NDArray[np.int8]
    best: NDArray[np.float64]
    tie: float


class Scratch(NamedTuple):
    """What a node works on: the choices left for each label, the relaxation, keys to select by, terms of the rule."""

    allowed: NDArray[np.int8]
    sides: NDArray[np.int8]
    is_first: NDArray[np.bool_]
    is_last: NDArray[np.bool_]
    keys: NDArray[np.float64]
    other_keys: NDArray[np.float64]
    work: NDArray[np.float64]
    head: NDArray[np.float64]
    misses: NDArray[np.float64]
    tail: NDArray[np.float64]


@kernel
def _level(row, a):
    """What a gain with a abstentions must exceed: the best one; if it has fewer abstentions, all that are less."""
    margin = max(row.tie, SLACK) * (1.0 + abs(1.0 - row.best[GAIN]))
    return row.best[GAIN] - margin if a < row.best[ABSTENTIONS] else row.best[GAIN] + margin


@kernel
def _keep(row, sides, value, a, cost):
    """Keep a prediction if it is better than the best one."""
    if value - cost > _level(row, a):
        row.sides[:] = sides
        row.best[GAIN], row.best[VALUE], row.best[ABSTENTIONS] = value - cost, value, a


@kernel
def _edges(keys, work, count):
    """The least of the `count` greatest keys, and the greatest of the others; infinite where there are none.

    By Hoare's selection, without the allocations of `np.partition`, which take longer than the selection.
    """
    rest = keys.shape[0] - count
    work[:] = keys
    left, right = 0, work.shape[0] - 1
    while left < right:
        pivot = work[(left + right) // 2]
        i, j = left, right
        while i <= j:
            while work[i] < pivot:
                i += 1
            while work[j] > pivot:
                j -= 1
            if i <= j:
                work[i], work[j] = work[j], work[i]
                i += 1
                j -= 1
        if rest <= j:
            right = j
        elif rest >= i:
            left = i
        else:
            break
    inside, outside = np.inf, -np.inf
    for i in range(rest):
        outside = max(outside, work[i])
    for i in range(rest, work.shape[0]):
        inside = min(inside, work[i])
    return inside, outside


@kernel
def _settle_counts(allowed, counts):
    """Rule out what enough labels have, and choose what just enough may have; whether there are enough of each."""
    changed = True
    while changed:
        changed = False
        for c in range(3):
            bit = 1 << c
            must = can = 0
            for j in range(allowed.shape[0]):
                must += allowed[j] == bit
                can += (allowed[j] & bit) != 0
            if must > counts[c] or can < counts[c]:
                return False
            if must < can and (must == counts[c] or can == counts[c]):
                changed = True
                for j in range(allowed.shape[0]):
                    if allowed[j] & bit and allowed[j] != bit:
                        allowed[j] = bit if can == counts[c] else allowed[j] - bit
    return True


@kernel
def _relax(row, counts, s):
    """Take the greatest lower ends first and the least upper ends last; whether a label is on both sides."""
    m = row.low.shape[0]
    for j in range(m):
        s.keys[j] = 2.0 if s.allowed[j] == ONE else (row.low[j] if s.allowed[j] & ONE else -1.0)
    take_first(s.keys, row.high, _edges(s.keys, s.work, counts[0])[0], counts[0], s.is_first)
    for j in range(m):
        s.keys[j] = -1.0 if s.allowed[j] == ZERO else (row.high[j] if s.allowed[j] & ZERO else 2.0)
    take_last(row.low, s.keys, _edges(s.keys, s.work, m - counts[1])[1], counts[1], s.is_last)
    shares = False
    for j in range(m):
        shares |= s.is_first[j] and s.is_last[j]
        s.sides[j] = FIRST if s.is_first[j] else (LAST if s.is_last[j] else ABSTAIN)
    return shares


@kernel
def _value(row, rule, s):
    """The expected measure, where labels may be on both sides."""
    head, misses, tail = s.head, s.misses, s.tail
    size = rule.weights.shape[0]
    misses[:] = rule.weights
    head[:] = 0.0
    tail[:] = 1.0
    for j in range(row.low.shape[0]):
        if s.is_first[j]:
            x = row.low[j]
            for q in range(size):
                factor = rule.step[q] * (1.0 - x * rule.fade_in[q])
                head[q] = head[q] * factor + x * rule.hit[q] * misses[q]
                misses[q] *= factor
        if s.is_last[j]:
            y = row.high[j]
            for q in range(size):
                tail[q] *= 1.0 - y * rule.fade_out[q]
    value = 0.0
    for q in range(size):
        value += head[q] * tail[q]
    return value


@kernel
def _least_changes(value, least, sum_low, sum_high, k, parts):
    """How much the measure changes at least with a lower and with an upper end, between the relaxation and `least`.

    With h of the labels answered 1 and n of those answered 0 relevant, the measure is v = h/c, where
    c = predicted·k + missed·n + found·h. One more h adds (1 − found·v)/(c + found), one more n takes
    v·missed/(c + missed). By Jensen's inequality, with the weights 1 − found·v and v, the expectations of h, n and v
    bound both. More hits make the former less, so that the relaxation has the least.
    """
    rest = 1.0 - parts.found * value
    first = rest * rest / (parts.predicted * k + parts.missed * sum_high + parts.found * rest)
    least = max(0.0, least)
    return first, parts.missed * least * least / (sum_low + parts.missed * least)


@kernel
def _finite(edge):
    """The edge, or 0 where there is none: where nothing is left to choose any edge will do."""
    return edge if abs(edge) < np.inf else 0.0


@kernel
def _other(row, s, last, price, j):
    """What label j is worth if it is not answered 1."""
    zero, none = -last * row.high[j], price
    return max(zero, none) if s.allowed[j] & ZERO and s.allowed[j] & OPEN else (zero if s.allowed[j] & ZERO else none)


@kernel
def _edges_of_first(row, counts, first, last, price, s):
    """The edges of what labels are worth more if they are answered 1; writes it to keys."""
    for j in range(row.low.shape[0]):
        if s.allowed[j] == ONE:
            s.keys[j] = np.inf
        elif s.allowed[j] & ONE:
            s.keys[j] = first * row.low[j] - _other(row, s, last, price, j)
        else:
            s.keys[j] = -np.inf
    return _edges(s.keys, s.work, counts[0])


@kernel
def _edges_of_open(row, counts, first, last, edge, s):
    """The edges of what labels are worth less if they are answered; writes it to other_keys."""
    for j in range(row.low.shape[0]):
        answered = -np.inf
        if s.allowed[j] & ONE:
            answered = first * row.low[j] - edge
        if s.allowed[j] & ZERO:
            answered = max(answered, -last * row.high[j])
        s.other_keys[j] = -answered if s.allowed[j] & OPEN else -np.inf
    return _edges(s.other_keys, s.work, counts[2])


@kernel
def _bound(row, counts, first, last, price, s):
    """The greatest first·L − last·U if each abstention is worth `price`, which is taken off for counts[2] of them.

    Returns the edges of what is answered 1, too; keys are what answering 1 adds.
    """
    inside, outside = _edges_of_first(row, counts, first, last, price, s)
    total, taken = -counts[2] * price, 0
    for j in range(row.low.shape[0]):
        total += first * row.low[j] if s.allowed[j] == ONE else _other(row, s, last, price, j)
        if s.keys[j] > inside or s.keys[j] == np.inf:
            taken += 1
            total += s.keys[j] if s.keys[j] < np.inf else 0.0
    if taken < counts[0]:
        total += (counts[0] - taken) * inside
    return total, inside, outside


@kernel
def _rule_out(row, last, price, inside, outside, room, s):
    """Rule out choices that lower the bound by `room` or more; whether there are any."""
    any_ruled_out = False
    for j in range(row.low.shape[0]):
        left = s.allowed[j]
        if left in (ONE, ZERO, OPEN):
            continue
        other = _other(row, s, last, price, j)
        without_one = max(0.0, s.keys[j] - outside) if left & ONE else 0.0
        if left & ZERO and without_one + other + last * row.high[j] >= room:
            left -= ZERO
        if left & OPEN and without_one + other - price >= room:
            left -= OPEN
        if left & ONE and inside - s.keys[j] >= room:
            left -= ONE
        any_ruled_out |= left != s.allowed[j]
        s.allowed[j] = left
    return any_ruled_out


@kernel
def _take_best(row, counts, first, last, edge, s):
    """Choose the sides that maximise first·L − last·U, if `edge` is what is lost for each label answered 1."""
    m = row.low.shape[0]
    least = _edges_of_open(row, counts, first, last, edge, s)[0] if counts[2] > 0 else np.inf
    n_open = 0
    for j in range(m):
        s.sides[j] = LAST
        if s.other_keys[j] > least:
            s.sides[j] = ABSTAIN
            n_open += 1
    for j in range(m):
        if n_open < counts[2] and s.other_keys[j] == least:
            s.sides[j] = ABSTAIN
            n_open += 1
    for j in range(m):
        s.other_keys[j] = -np.inf
        if s.sides[j] == LAST and s.allowed[j] & ONE:
            s.other_keys[j] = np.inf if s.allowed[j] == ONE else first * row.low[j] + last * row.high[j]
    least = _edges(s.other_keys, s.work, counts[0])[0]
    n_first = 0
    for j in range(m):
        if s.other_keys[j] > least:
            s.sides[j] = FIRST
            n_first += 1
    for j in range(m):
        if n_first < counts[0] and s.other_keys[j] == least and s.sides[j] == LAST:
            s.sides[j] = FIRST
            n_first += 1
    for j in range(m):
        s.is_first[j], s.is_last[j] = s.sides[j] == FIRST, s.sides[j] == LAST


@kernel
def _prices(row, counts, first, last, s):
    """Two prices of an abstention between which the bound is nearly least, and the edge of what is answered 1.

    From the price, what is answered 1 follows, and from that the price: three turns are enough in practice, and any
    price gives a bound.
    """
    any_open = False
    for j in range(row.low.shape[0]):
        any_open |= (s.allowed[j] & OPEN) != 0 and s.allowed[j] != OPEN
    if not any_open:
        return (0.0, 0.0), 0.0
    inside, outside = 0.0, 0.0
    edge = _finite(_edges_of_first(row, counts, first, last, -np.inf, s)[0])
    for _ in range(3):
        inside, outside = _edges_of_open(row, counts, first, last, edge, s)
        edge = _finite(_edges_of_first(row, counts, first, last, -inside, s)[0])
    return (-inside, -outside), edge


@kernel
def _search_node(row, counts, cost, parts, rule, s, value, sum_low, sum_high):
    """Rule out what cannot be better than what was found; returns the label to branch on, −1 if nothing is left.

    Returns a bound of the gain, too. The value and the sums are those of the relaxation; a value < 0 says that they are
    to be found.
    """
    low, high, a, m = row.low, row.high, counts[2], row.low.shape[0]
    is_relaxed = value >= 0.0
    while True:
        if not is_relaxed:
            row.best[VISITS] -= m
            if not _settle_counts(s.allowed, counts):
                return -1, -np.inf
            shares = _relax(row, counts, s)
            value = _value(row, rule, s)
            if not shares:
                _keep(row, s.sides, value, a, cost)
            if not shares or value - cost <= _level(row, a):
                return -1, -np.inf
            sum_low = sum_high = 0.0
            for j in range(m):
                sum_low += low[j] if s.is_first[j] else 0.0
                sum_high += high[j] if s.is_last[j] else 0.0
            is_relaxed = True
        first, last = _least_changes(value, _level(row, a) + cost, sum_low, sum_high, counts[0], parts)
        most = value - cost - first * sum_low + last * sum_high
        prices, edge = _prices(row, counts, first, last, s)
        bound, inside, outside = _bound(row, counts, first, last, prices[0], s)
        bound += most
        if bound <= _level(row, a):
            return -1, -np.inf
        _take_best(row, counts, first, last, edge, s)
        if (s.sides != row.sides).any():
            before = row.best[GAIN]
            _keep(row, s.sides, _value(row, rule, s), a, cost)
            if row.best[GAIN] > before:
                continue  # to bounds that know of it
        is_relaxed = not _rule_out(row, last, prices[0], inside, outside, bound - _level(row, a), s)
        if prices[1] != prices[0]:
            second, inside, outside = _bound(row, counts, first, last, prices[1], s)
            room = most + second - _level(row, a)
            if room <= 0.0:
                return -1, -np.inf
            is_relaxed &= not _rule_out(row, last, prices[1], inside, outside, room, s)
        if is_relaxed:
            return _widest(row, s), bound


@kernel
def _widest(row, s):
    """The label of widest interval among those with several choices left, −1 if there is none."""
    widest = -1
    for j in range(row.low.shape[0]):
        if s.allowed[j] in (ONE, ZERO, OPEN):
            continue
        if widest < 0 or row.high[j] - row.low[j] > row.high[widest] - row.low[widest]:
            widest = j
    return widest


@kernel
def _search(row, k, a, value, cost, sums, parts, rule, s, stack, bounds):
    """Search the predictions with k labels answered 1 and a abstained, whose relaxation has this value."""
    if value - cost <= _level(row, a):
        return
    counts = k, row.low.shape[0] - k - a, a
    stack[0] = (ONE | ZERO) if a == 0 else (ONE | ZERO | OPEN)
    bounds[0] = value - cost
    top = 1
    while top > 0:
        top -= 1
        if bounds[top] <= _level(row, a):
            continue
        if row.best[VISITS] <= 0:
            row.best[UNSEARCHED] = max(row.best[UNSEARCHED], bounds[top])
            continue
        s.allowed[:] = stack[top]
        label, bound = _search_node(row, counts, cost, parts, rule, s, value, sums[0, k], sums[1, k + a])
        value = -1.0
        if label >= 0:
            for c in range(3):
                if s.allowed[label] & (1 << c):
                    stack[top] = s.allowed
                    stack[top, label] = 1 << c
                    bounds[top] = bound
                    top += 1


@kernel
def _search_zeros(row, a, value, cost, s):
    """Answer nothing 1: the relaxation is a prediction."""
    if value - cost > _level(row, a):
        s.allowed[:] = ZERO | OPEN
        _relax(row, (0, row.low.shape[0] - a, a), s)
        _keep(row, s.sides, value, a, cost)


@kernel
def search_nested(bounds, ranked, compared, nothing, parts, rule, limit, sides, losses, abstained, gap):
    """Improve sides, losses and numbers of abstentions until they are the best; gap[i] is what may be missing.

    Of each row at most about `limit` labels are visited. Invariants: ranked has the rows of bounds, each end sorted
    decreasing; sides are predictions, and losses what they cost without the penalty; nothing is the value of 0/0.
    """
    n, m = sides.shape
    size, counted = rule.weights.shape[0], compared.counted
    heads, tails = np.empty((m + 1, size)), np.empty((m + 1, size))
    terms, zeros, spans = np.empty(m + 1, np.int64), np.empty(m + 1), np.empty((64, 7))
    depth = min(2 * m + 3, 2 * (limit // m) + 8)
    stack, node_bounds = np.empty((depth, m), np.int8), np.empty(depth)
    s = Scratch(
        np.empty(m, np.int8), np.empty(m, np.int8), np.empty(m, np.bool_), np.empty(m, np.bool_), np.empty(m),
        np.empty(m), np.empty(m), np.empty(size), np.empty(size), np.empty(size),
    )  # fmt: skip
    sums = np.zeros((2, m + 1))  # of the first lower ends, and of the upper ends from there on
    floor = counted.copy()  # the least penalty from there on
    for a in range(m - 1, -1, -1):
        floor[a] = min(floor[a], floor[a + 1])
    for i in range(n):
        p = ranked.high[i]
        fill_tails(p, rule, tails)
        fill_heads(ranked.low[i], rule, heads, s.misses, terms)
        fill_zeros(p, nothing, zeros)
        for j in range(m):
            sums[0, j + 1] = sums[0, j] + ranked.low[i, j]
            sums[1, m - 1 - j] = sums[1, m - j] + p[m - 1 - j]
        k, a = np.count_nonzero(sides[i] == FIRST), abstained[i]
        best = np.array([1.0 - losses[i] - counted[a], 1.0 - losses[i], a, -np.inf, limit])
        row = Row(bounds.low[i], bounds.high[i], sides[i], best, compared.tie)
        # The sizes of the relaxation first: what is found there makes most others superfluous.
        value, _ = value_and_slope(heads, k, tails, k + a, rule.fade_out, terms[k])
        _search(row, k, a, value, counted[a], sums, parts, rule, s, stack, node_bounds)
        if compared.only[i] >= 0:
            _search_zeros(row, a, zeros[a], counted[a], s)
            for k in range(1, m - a + 1):
                value, _ = value_and_slope(heads, k, tails, k + a, rule.fade_out, terms[k])
                _search(row, k, a, value, counted[a], sums, parts, rule, s, stack, node_bounds)
        else:
            for a in range(m + 1):
                _search_zeros(row, a, zeros[a], counted[a], s)
            for k in range(1, m + 1):
                at_hi = value_and_slope(heads, k, tails, m, rule.fade_out, terms[k])
                if at_hi[0] - floor[0] <= _level(row, -1):
                    continue
                _search(row, k, m - k, at_hi[0], counted[m - k], sums, parts, rule, s, stack, node_bounds)
                if k == m:
                    continue
                at_lo = value_and_slope(heads, k, tails, k, rule.fade_out, terms[k])
                _search(row, k, 0, at_lo[0], 0.0, sums, parts, rule, s, stack, node_bounds)
                bound = bound_inside(p, counted, floor, compared.is_concave, k, k, m, at_lo, at_hi)
                push(spans, 0, k, m, at_lo, at_hi, bound)
                top = 1
                while top > 0:
                    top -= 1
                    lo, hi = int(spans[top, 0]), int(spans[top, 1])
                    if hi - lo < 2 or spans[top, 6] <= _level(row, lo + 1 - k):
                        continue
                    at_lo, at_hi = (spans[top, 2], spans[top, 3]), (spans[top, 4], spans[top, 5])
                    mid = (lo + hi) // 2
                    at_mid = value_and_slope(heads, k, tails, mid, rule.fade_out, terms[k])
                    _search(row, k, mid - k, at_mid[0], counted[mid - k], sums, parts, rule, s, stack, node_bounds)
                    bound = bound_inside(p, counted, floor, compared.is_concave, k, mid, hi, at_mid, at_hi)
                    push(spans, top, mid, hi, at_mid, at_hi, bound)
                    bound = bound_inside(p, counted, floor, compared.is_concave, k, lo, mid, at_lo, at_mid)
                    push(spans, top + 1, lo, mid, at_lo, at_mid, bound)
                    top += 2
        losses[i], abstained[i] = max(0.0, 1.0 - best[VALUE]), int(best[ABSTENTIONS])
        gap[i] = max(0.0, best[UNSEARCHED] - best[GAIN]) if best[UNSEARCHED] > _level(row, -1) else 0.0
