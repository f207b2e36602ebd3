"""F-measure and Jaccard index: expected overlap of the labels answered 1 with the relevant ones among the answered.

With the labels sorted by decreasing probability, a partial prediction answers 1 on the first k and 0 from l on; the gap
k … l − 1 is abstained. Its expected measure is a scalar product of a *head* (the first k) and a *tail* (from l on),

    value(k, l) = Σ_q heads[k, q] · tails[l, q],        tails[l, q] = Π_{i ≥ l} (1 − p_i · fade_out[q])

over the terms q of a rule for 1/x (see `quadrature`). Of intervals (`Bounds`), heads are made from the lower ends and
tails from the upper ends, each sorted by themselves: that is the worst case of an answer. All is positive, so nothing
cancels. Two facts make it fast:

* value(k, l) grows with l (fewer labels answered 0), and its increments p_l · Σ_q heads·fade_out·tails[l + 1] lie
  between bounds that the two ends of an interval of l give. One decision therefore bisects, and discards what cannot
  win.
* heads[k, q] / heads[k, 0] falls in k, so terms become negligible for good, those with the largest exponents first:
  most of the table needs half of them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.kernels.choice import SLACK, TIE
from abstain._core.kernels.codes import ABSTAIN
from abstain._utils.compilation import kernel

NEGLIGIBLE = 1e-15  # share of a head's first term below which its last ones do not matter
SMALLEST = 1e-290  # anything smaller is set to 0: denormal numbers are slow, and far below rounding here
LANES = 16  # rows of the table are padded to full vector iterations


class OverlapRule(NamedTuple):
    """How one more label changes the terms of a head and a tail; one entry per term, exponents increasing.

    A label predicted 1 multiplies a term by step, and by (1 − p·fade_in) for the chance that it is relevant; if it
    is, it counts as a hit (factor hit/step). A label predicted 0 multiplies it by (1 − p·fade_out).
    """

    weights: NDArray[np.float64]
    step: NDArray[np.float64]
    hit: NDArray[np.float64]
    fade_in: NDArray[np.float64]
    fade_out: NDArray[np.float64]


@kernel
def fill_tails(p, rule, tails):
    """tails[l, q] for every l and term q."""
    m = p.shape[0]
    for q in range(rule.weights.shape[0]):
        tails[m, q] = 1.0
    for i in range(m):
        here, behind, x = tails[m - 1 - i], tails[m - i], p[m - 1 - i]
        for q in range(rule.weights.shape[0]):
            term = behind[q] * (1.0 - x * rule.fade_out[q])
            here[q] = term if term > SMALLEST else 0.0


@kernel
def _fill_columns(p, rule, tail, columns):
    """The tails with one column for each l, as the table needs them."""
    m = p.shape[0]
    for q in range(rule.weights.shape[0]):
        tail[q] = 1.0
        columns[q, m] = 1.0
    for i in range(m):
        l, x = m - 1 - i, p[m - 1 - i]
        for q in range(rule.weights.shape[0]):
            term = tail[q] * (1.0 - x * rule.fade_out[q])
            tail[q] = term if term > SMALLEST else 0.0
        for q in range(rule.weights.shape[0]):
            columns[q, l] = tail[q]


@kernel
def fill_zeros(p, nothing, zeros):
    """zeros[a] = the value of answering 0 from label a on and nothing before; without any answer it is 1."""
    m = p.shape[0]
    none_relevant = nothing
    for i in range(m):
        none_relevant *= 1.0 - p[m - 1 - i]
        zeros[m - 1 - i] = none_relevant
    zeros[m] = 1.0


@kernel
def fill_heads(p, rule, heads, misses, terms):
    """heads[k, q] for k ≥ 1, and how many terms[k] of it matter. `misses` is scratch: the head without its hits."""
    count = rule.weights.shape[0]
    for q in range(count):
        misses[q] = rule.weights[q]
        heads[0, q] = 0.0
    for i in range(p.shape[0]):
        before, here, x = heads[i], heads[i + 1], p[i]
        for q in range(count):
            factor = rule.step[q] * (1.0 - x * rule.fade_in[q])
            here[q] = before[q] * factor + x * rule.hit[q] * misses[q]
            misses[q] *= factor
        while count > 4 and here[count - 4] <= NEGLIGIBLE * here[0]:
            count -= 4
        terms[i + 1] = count


@kernel(fastmath={"reassoc", "contract", "nsz"})
def value_and_slope(heads, k, tails, l, fade_out, count):
    """value(k, l) and Σ heads·fade_out·tails: times p_{l−1}, what value(k, l) gained over value(k, l − 1).

    Whole arrays and indices, here and below: views would be reference-counted, which takes longer than the sum.
    """
    value = slope = 0.0
    for q in range(count):
        term = heads[k, q] * tails[l, q]
        value += term
        slope += term * fade_out[q]
    return value, slope


@kernel
def bound_inside(p, penalty, floor, concave, k, lo, hi, at_lo, at_hi):
    """An upper bound of value(k, l) − penalty[l − k] over lo < l < hi, from (value, slope) at both ends.

    The increments of value between lo and hi lie between p[hi − 1]·slope(lo) and p[lo]·slope(hi). If the penalty is
    concave, a line minus it is convex, so its maximum is at an end; otherwise only the least penalty from there on is
    known.
    """
    if not concave:
        return at_hi[0] - floor[lo + 1 - k]
    least, most = p[hi - 1] * at_lo[1], p[lo] * at_hi[1]
    first, last = penalty[lo + 1 - k], penalty[hi - 1 - k]
    from_hi = max(at_hi[0] - (hi - lo - 1) * least - first, at_hi[0] - least - last)
    from_lo = max(at_lo[0] + most - first, at_lo[0] + (hi - 1 - lo) * most - last)
    return min(from_hi, from_lo)


@kernel
def push(stack, top, lo, hi, at_lo, at_hi, bound):
    stack[top, 0], stack[top, 1] = lo, hi
    stack[top, 2], stack[top, 3] = at_lo
    stack[top, 4], stack[top, 5] = at_hi
    stack[top, 6] = bound


@kernel
def _explore(p, penalty, floor, concave, heads, tails, fade_out, count, k, ends, level, limit, slack, stack):
    """Search k < l < m for gains value(k, l) − penalty[l − k] above `level` with at most `limit` abstentions.

    Bisects from the bounds that the ends of each interval give. With a slack ≥ 0, a find raises the level to so much
    above it (the best gain is wanted); otherwise it lowers the limit (the fewest abstentions are). Returns the last
    find (−1 abstentions: none) and a bound of all gains of the row, sharper than the one it started from.
    """
    m = p.shape[0]
    found_gain, found_a, bound_of_all = 0.0, -1, -np.inf
    push(stack, 0, k, m, (ends[k, 0], ends[k, 1]), (ends[k, 2], ends[k, 3]), ends[k, 4])
    top = 1
    while top > 0:
        top -= 1
        lo, hi = int(stack[top, 0]), int(stack[top, 1])
        at_lo, at_hi = (stack[top, 2], stack[top, 3]), (stack[top, 4], stack[top, 5])
        if stack[top, 6] <= level or lo + 1 - k > limit:
            bound_of_all = max(bound_of_all, stack[top, 6])
            continue
        mid = (lo + hi) // 2
        at_mid = value_and_slope(heads, k, tails, mid, fade_out, count)
        gain = at_mid[0] - penalty[mid - k]
        bound_of_all = max(bound_of_all, gain)
        if gain > level and mid - k <= limit:
            found_gain, found_a = gain, mid - k
            if slack >= 0.0:
                level = gain + slack
            else:
                limit = mid - k - 1
        # The left half, with fewer abstentions, ends on top of the stack.
        if hi - mid > 1:
            bound = bound_inside(p, penalty, floor, concave, k, mid, hi, at_mid, at_hi)
            push(stack, top, mid, hi, at_mid, at_hi, bound)
            top += 1
        if mid - lo > 1:
            bound = bound_inside(p, penalty, floor, concave, k, lo, mid, at_lo, at_mid)
            push(stack, top, lo, mid, at_lo, at_mid, bound)
            top += 1
    return found_gain, found_a, bound_of_all


@kernel
def _best_gap(p, penalty, tie, floor, concave, heads, tails, fade_out, terms, zeros, ends, stack):
    """The best (k, l) of one row, by bisection: returns its value, k and l − k, fewest abstentions among equals."""
    m = p.shape[0]
    slack = SLACK if tie > 0.0 else 0.0  # a gain is better only by more: rounding noise is no reason to look further
    best, best_k, best_a = -np.inf, 0, m
    for a in range(m + 1):
        if zeros[a] - penalty[a] > best + slack:
            best, best_a = zeros[a] - penalty[a], a
    # Both ends of each k; what may lie between them is bounded.
    best_bound_k = 0
    for k in range(1, m + 1):
        ends[k, 0] = ends[k, 4] = -np.inf
        ends[k, 2], ends[k, 3] = value_and_slope(heads, k, tails, m, fade_out, terms[k])
        if ends[k, 2] - penalty[m - k] > best + slack:
            best, best_k, best_a = ends[k, 2] - penalty[m - k], k, m - k
        if k == m or ends[k, 2] - floor[0] < best - TIE:
            continue
        ends[k, 0], ends[k, 1] = value_and_slope(heads, k, tails, k, fade_out, terms[k])
        if ends[k, 0] > best + slack:
            best, best_k, best_a = ends[k, 0], k, 0
        if m - k > 1:
            at_lo, at_hi = (ends[k, 0], ends[k, 1]), (ends[k, 2], ends[k, 3])
            ends[k, 4] = bound_inside(p, penalty, floor, concave, k, k, m, at_lo, at_hi)
            if best_bound_k == 0 or ends[k, 4] > ends[best_bound_k, 4]:
                best_bound_k = k
    # The best gain, the k with the greatest bound first: a good first find rules out most of the others.
    for turn in range(m):
        k = turn if turn > 0 else best_bound_k
        if k > 0 and ends[k, 4] > best + slack:
            gain, a, ends[k, 4] = _explore(
                p, penalty, floor, concave, heads, tails, fade_out, terms[k], k, ends, best + slack, m, slack, stack
            )
            if a >= 0:
                best, best_k, best_a = gain, k, a
    # The fewest abstentions among equally good ones, as `choice` has it: 1 − best is the total loss.
    level = best - tie * (1.0 + abs(1.0 - best))
    for a in range(best_a):
        if zeros[a] - penalty[a] >= level:
            best_k, best_a = 0, a
            break
    for k in range(1, m + 1):
        if best_a == 0:
            break
        if ends[k, 0] >= level:
            best_k, best_a = k, 0
        elif m - k < best_a and ends[k, 2] - penalty[m - k] >= level:
            best_k, best_a = k, m - k
        if best_a > 1 and ends[k, 4] >= level:
            _, a, _ = _explore(
                p, penalty, floor, concave, heads, tails, fade_out, terms[k], k, ends, level, best_a - 1, -1.0, stack
            )
            if a >= 0:
                best_k, best_a = k, a
    value, best_k = _first_start(
        best_a, level - TIE + penalty[best_a], zeros, heads, tails, fade_out, terms, ends, penalty[best_a]
    )
    return value, best_k, best_a


@kernel
def _first_start(a, level, zeros, heads, tails, fade_out, terms, ends, penalty):
    """The best value with a abstentions, and the least k that has it: equal ones are told apart as in the profile.

    Values below the level cannot be the best: `ends` bounds the values of each k, so that most of them are skipped.
    """
    m = zeros.shape[0] - 1
    best, best_k = zeros[a], 0
    for k in range(1, m - a + 1):
        bound = ends[k, 2] if k + a == m else (ends[k, 0] if a == 0 else ends[k, 4] + penalty)
        if bound >= level:
            value, _ = value_and_slope(heads, k, tails, k + a, fade_out, terms[k])
            if value > best + SLACK:
                best, best_k = value, k
    return best, best_k


@kernel
def decide_overlap(ranked, penalties, ties, concave, nothing, rule, start, n_abstained, losses):
    """Find the best (k, l) for each penalty and row: k in start, l − k in n_abstained.

    Invariants: ranked are `Bounds` whose rows decrease; penalties[r] and ties[r] are as `BoundPenalty.counted` gives
    them; concave[r] says that the penalty's steps never grow; nothing is the value of 0/0; the results are (s, n),
    losses without the penalty.
    """
    n, m = ranked.low.shape
    size = rule.weights.shape[0]
    tails = np.empty((m + 1, size))
    heads = np.empty((m + 1, size))
    misses = np.empty(size)
    terms = np.empty(m + 1, np.int64)
    ends = np.empty((m + 1, 5))  # (value, slope) at l = k, at l = m, and a bound of the gains between
    zeros = np.empty(m + 1)
    stack = np.empty((64, 7))
    floors = penalties.copy()  # floors[r, a] = the least penalty from a on
    for r in range(penalties.shape[0]):
        for a in range(m - 1, -1, -1):
            floors[r, a] = min(floors[r, a], floors[r, a + 1])
    for i in range(n):
        p = ranked.high[i]
        fill_tails(p, rule, tails)
        fill_heads(ranked.low[i], rule, heads, misses, terms)
        fill_zeros(p, nothing, zeros)
        for r in range(penalties.shape[0]):
            value, start[r, i], n_abstained[r, i] = _best_gap(
                p, penalties[r], ties[r], floors[r], concave[r], heads, tails, rule.fade_out, terms, zeros, ends, stack
            )
            losses[r, i] = max(0.0, 1.0 - value)


@kernel(fastmath={"contract", "nnan", "nsz"})
def _two_rows(heads, columns, count, k, length, row, next_row):
    """value(k, l) and value(k + 1, l) for k ≤ l < k + length: each load of a tail serves twice.

    Unsigned indices need no check whether they are negative; with that check the loops are not vectorised.
    """
    one, k, length = np.uint64(1), np.uint64(k), np.uint64(length)
    for j in range(length):
        row[j] = 0.0
        next_row[j] = 0.0
    for q in range(np.uint64(0), np.uint64(count), np.uint64(4)):
        r, s, t = q + one, q + one + one, q + one + one + one
        x0, x1, x2, x3 = heads[k, q], heads[k, r], heads[k, s], heads[k, t]
        y0, y1, y2, y3 = heads[k + one, q], heads[k + one, r], heads[k + one, s], heads[k + one, t]
        for j in range(length):
            c0, c1, c2, c3 = columns[q, k + j], columns[r, k + j], columns[s, k + j], columns[t, k + j]
            row[j] = row[j] + x0 * c0 + x1 * c1 + x2 * c2 + x3 * c3
            next_row[j] = next_row[j] + y0 * c0 + y1 * c1 + y2 * c2 + y3 * c3


@kernel(fastmath={"contract", "nnan", "nsz"})
def _keep_better(best, best_start, row, next_row, length, k):
    """Two rows into the profile: row[a] is for a abstentions, next_row[a + 1] too."""
    for a in range(np.uint64(length)):
        here, next_here, incumbent, start = row[a], next_row[a + np.uint64(1)], best[a], best_start[a]
        start = k if here > incumbent + SLACK else start
        incumbent = here if here > incumbent + SLACK else incumbent
        best_start[a] = k + 1 if next_here > incumbent + SLACK else start
        best[a] = next_here if next_here > incumbent + SLACK else incumbent


@kernel
def profile_of_overlap(ranked, nothing, rule, values, start):
    """values[i, a] = 1 − max_k value(k, k + a), and the k that attains it: the whole table, two rows at a time.

    Invariants: ranked are `Bounds` whose rows decrease; nothing is the value of 0/0.
    """
    n, m = ranked.low.shape
    size = rule.weights.shape[0]
    padded = m + 2 + LANES
    tail = np.empty(size)
    columns = np.zeros((size, padded))  # the tails, transposed; beyond m it stays 0, and a value of 0 is never kept
    heads = np.zeros((m + 2, size))
    misses = np.empty(size)
    terms = np.zeros(m + 2, np.int64)
    row, next_row, best = np.zeros(padded), np.zeros(padded), np.empty(padded)
    best_start = np.empty(padded, np.int64)
    for i in range(n):
        p = ranked.high[i]
        _fill_columns(p, rule, tail, columns)
        fill_heads(ranked.low[i], rule, heads, misses, terms)
        best[:] = 0.0
        best_start[:] = 0
        fill_zeros(p, nothing, best)
        for k in range(1, m + 1, 2):
            length = (m - k + LANES) // LANES * LANES
            for q in range(terms[k + 1], terms[k]):
                heads[k + 1, q] = 0.0
            _two_rows(heads, columns, terms[k], k, length, row, next_row)
            next_row[length] = 0.0
            _keep_better(best, best_start, row, next_row, length, k)
        for a in range(m + 1):
            values[i, a] = max(0.0, 1.0 - best[a])
            start[i, a] = best_start[a]


@kernel
def answer_around_gap(p, ranked, start, n_abstained, codes):
    """1 on the labels ranked before start, 0 on those ranked from start + n_abstained on, abstained between.

    Equal probabilities are ranked by label: only the values at the two edges of the gap need counting.
    """
    n, m = p.shape
    for i in range(n):
        k, l = start[i], start[i] + n_abstained[i]
        upper = ranked[i, k - 1] if k > 0 else np.inf
        lower = ranked[i, l] if l < m else -np.inf
        at_least_upper = above_lower = 0
        for j in range(m):
            at_least_upper += p[i, j] >= upper
            above_lower += p[i, j] > lower
            codes[i, j] = 1 if p[i, j] >= upper else (ABSTAIN if p[i, j] > lower else 0)
        if at_least_upper == k and above_lower == l:
            continue
        # Labels that are equal stand on both sides of an edge.
        above_upper = 0
        for j in range(m):
            above_upper += p[i, j] > upper
        for j in range(m):
            x = p[i, j]
            if x > upper:
                codes[i, j] = 1
            elif x == upper:
                codes[i, j] = 1 if above_upper < k else (ABSTAIN if above_upper < l else 0)
                above_upper += 1
            elif x > lower:
                codes[i, j] = ABSTAIN
            elif x == lower:
                codes[i, j] = ABSTAIN if above_lower < l else 0
                above_lower += 1
            else:
                codes[i, j] = 0


@kernel
def _terms_of_row(bounds, codes, i, nothing, rule, head, misses):
    """Fill in the head and the misses of row i; returns its value, and that of more zeros if nothing is answered 1."""
    size = rule.weights.shape[0]
    misses[:] = rule.weights
    head[:] = 0.0
    none_relevant = nothing
    positives = answered = 0
    for j in range(codes.shape[1]):
        if codes[i, j] == 1:
            x = bounds.low[i, j]
            positives += 1
            for q in range(size):
                factor = rule.step[q] * (1.0 - x * rule.fade_in[q])
                head[q] = head[q] * factor + x * rule.hit[q] * misses[q]
                misses[q] *= factor
        elif codes[i, j] == 0:
            x = bounds.high[i, j]
            none_relevant *= 1.0 - x
            for q in range(size):
                head[q] *= 1.0 - x * rule.fade_out[q]
                misses[q] *= 1.0 - x * rule.fade_out[q]
        answered += codes[i, j] >= 0
    value = 1.0 if answered == 0 else (head.sum() if positives > 0 else none_relevant)
    return value, none_relevant if positives == 0 else -1.0


@kernel
def expected_overlap(bounds, codes, nothing, rule, values):
    """The expected measure of any partial prediction, in the worst case: 1 where nothing is answered."""
    head, misses = np.empty(rule.weights.shape[0]), np.empty(rule.weights.shape[0])
    for i in range(codes.shape[0]):
        values[i], _ = _terms_of_row(bounds, codes, i, nothing, rule, head, misses)


@kernel
def savings_of_overlap(bounds, codes, rows, columns, nothing, rule, savings):
    """savings[k] = what the expected measure loses if label columns[k] of row rows[k] gets its best answer, too.

    Invariants: these labels are abstained; those of a row follow each other.
    """
    size = rule.weights.shape[0]
    head, misses = np.empty(size), np.empty(size)
    last = -1
    value = none_relevant = 0.0
    for k in range(rows.shape[0]):
        if rows[k] != last:
            last = rows[k]
            value, none_relevant = _terms_of_row(bounds, codes, last, nothing, rule, head, misses)
        x, y = bounds.low[last, columns[k]], bounds.high[last, columns[k]]
        if_one = if_zero = 0.0
        for q in range(size):
            if_one += head[q] * rule.step[q] * (1.0 - x * rule.fade_in[q]) + x * rule.hit[q] * misses[q]
            if_zero += head[q] * (1.0 - y * rule.fade_out[q])
        if none_relevant >= 0.0:
            if_zero = none_relevant * (1.0 - y)
        savings[k] = value - max(if_one, if_zero)
