"""A lower bound of all totals for F-measure and Jaccard index from samples: Lagrangian decomposition by sample.

Each sample gets an answer of its own, and so does the penalty. Prices on the labels' states let them agree:

    bound(prices) = Σ_s min_x [w_s · ℓ(y_s, x) + prices_s · x] + min_x [penalty(x) − Σ_s prices_s · x]

is at most the least total, whatever the prices. Each minimum is found exactly: of a sample, by a dynamic programme over
the numbers of hits and missed labels; of the penalty, by one sort, for any counting penalty and any label costs. The
prices follow subgradients with Polyak's step towards the best answer known.
"""

import numpy as np

from abstain._core.kernels.codes import ABSTAIN
from abstain._core.kernels.sample_overlap import copy_to, sort_by, value_of_counts
from abstain._utils.compilation import kernel

PATIENCE = 2  # steps in a row without a clearly better bound, after which steps are halved


@kernel
def _least_of_sample(row, s, measure, price, allowed, least, choice, extra, order, codes):
    """The least w_s · ℓ(y_s, x) + price · x over allowed answers x, which is written to codes.

    price[j, code] is for the codes 0 and 1, and 0 for an abstention. Scratch: least[h, n] is the least price of the
    relevant labels with h hits and n missed, choice[t, h, n] the code of the t-th relevant label in it.
    """
    m = codes.shape[0]
    first, relevant = row.sample_start[s], row.sample_start[s + 1] - row.sample_start[s]
    w = row.weights[s]
    # Irrelevant labels: the cheaper of abstained and 0; then those by which 1 is cheaper still, the cheapest first.
    fixed = 0.0
    forced = count = 0
    t = first
    all_open = True
    for j in range(m):
        all_open &= allowed[j, 0]
        if t < first + relevant and row.labels[t] == j:
            t += 1
            continue
        other = 0.0 if allowed[j, 0] else np.inf
        codes[j] = ABSTAIN
        if allowed[j, 1] and price[j, 0] < other:
            other = price[j, 0]
            codes[j] = 0
        if other == np.inf:
            fixed += price[j, 1]
            codes[j] = 1
            forced += 1
            continue
        fixed += other
        if allowed[j, 2] and price[j, 1] < other:
            extra[j] = price[j, 1] - other
            u = count
            while u > 0 and extra[order[u - 1]] > extra[j]:
                order[u] = order[u - 1]
                u -= 1
            order[u] = j
            count += 1
    least[: relevant + 1, : relevant + 1] = np.inf
    least[0, 0] = 0.0
    for t in range(relevant):
        j = row.labels[first + t]
        if_open = 0.0 if allowed[j, 0] else np.inf
        if_zero = price[j, 0] if allowed[j, 1] else np.inf
        if_one = price[j, 1] if allowed[j, 2] else np.inf
        for h in range(t + 1, -1, -1):
            for n in range(t + 1 - h, -1, -1):
                best, code = least[h, n] + if_open, ABSTAIN
                if n > 0 and least[h, n - 1] + if_zero < best:
                    best, code = least[h, n - 1] + if_zero, 0
                if h > 0 and least[h - 1, n] + if_one < best:
                    best, code = least[h - 1, n] + if_one, 1
                least[h, n] = best
                choice[t, h, n] = code
    savings = 0.0  # what all further labels answered 1 save, if they did not lower the measure
    for t in range(count):
        savings += extra[order[t]]
    best, best_h, best_n, best_ones = np.inf, 0, 0, 0
    for h in range(relevant + 1):
        for n in range(relevant + 1 - h):
            cost = least[h, n]
            if cost + savings + w * (1.0 - value_of_counts(measure, h + forced, h, n)) >= best:
                continue
            for t in range(count + 1):
                total = cost + w * (1.0 - value_of_counts(measure, h + forced + t, h, n))
                if total < best:
                    best, best_h, best_n, best_ones = total, h, n, t
                if t < count:
                    cost += extra[order[t]]
    best += fixed
    if all_open and measure.zero_division == 0.0 and best >= 0.0:
        codes[:] = ABSTAIN
        return 0.0
    for t in range(best_ones):
        codes[order[t]] = 1
    for t in range(relevant - 1, -1, -1):
        code = choice[t, best_h, best_n]
        codes[row.labels[first + t]] = code
        best_h -= code == 1
        best_n -= code == 0
    return best


@kernel
def _least_of_penalty(penalty, price, allowed, saved, order, codes):
    """The least penalty(x) + price · x over allowed answers x, which is written to codes; infinite if there is none."""
    m = codes.shape[0]
    fixed = 0.0
    forced = count = 0
    for j in range(m):
        other = np.inf
        for code in range(2):
            if allowed[j, code + 1] and price[j, code] < other:
                other = price[j, code]
                codes[j] = code
        saved[j] = np.inf
        if other == np.inf:
            codes[j] = ABSTAIN
            forced += 1
            fixed += penalty.label_costs[j]
            continue
        fixed += other
        if allowed[j, 0]:
            saved[j] = penalty.label_costs[j] - other
            count += 1
    for j in range(m):
        order[j] = j
    sort_by(order, m, saved)
    best, best_a, total = np.inf, 0, fixed
    for a in range(count + 1):
        if total + penalty.counts[forced + a] < best:
            best, best_a = total + penalty.counts[forced + a], a
        if a < count:
            total += saved[order[a]]
    for a in range(best_a):
        codes[order[a]] = ABSTAIN
    return best


@kernel
def raise_bound(row, measure, penalty, allowed, steps, target, prices):
    """Move the prices, (n_samples, m, 2), to those of the best bound found in some steps; returns that bound.

    target is the total of the best answer known: steps end once the bound reaches it.
    """
    size, m = prices.shape[0], prices.shape[1]
    most = 0
    for s in range(size):
        most = max(most, row.sample_start[s + 1] - row.sample_start[s])
    least, choice = np.empty((most + 1, most + 1)), np.empty((most, most + 1, most + 1), np.int8)
    extra, order = np.empty(m), np.empty(m, np.int64)
    answers, own = np.empty((size, m), np.int8), np.empty(m, np.int8)
    rest, mean = np.empty((m, 2)), np.empty((m, 2))
    best, best_prices = -np.inf, prices.copy()
    scale, waited = 1.0, 0
    for _ in range(steps):
        rest[:] = 0.0
        mean[:] = 0.0
        bound = length = 0.0
        for s in range(size):
            bound += _least_of_sample(row, s, measure, prices[s], allowed, least, choice, extra, order, answers[s])
            for j in range(m):
                rest[j, 0] -= prices[s, j, 0]
                rest[j, 1] -= prices[s, j, 1]
                if answers[s, j] >= 0:
                    mean[j, answers[s, j]] += row.weights[s]
                    length += row.weights[s]
        bound += _least_of_penalty(penalty, rest, allowed, extra, order, own)
        if bound > best:
            waited = 0 if bound > best + 1e-4 * (target - best) else waited + 1
            best = bound
            copy_to(best_prices.ravel(), prices.ravel())
        else:
            waited += 1
        if waited > PATIENCE:
            waited = 0
            scale *= 0.5
        for j in range(m):
            if own[j] >= 0:
                mean[j, own[j]] += 1.0
                length += 1.0
            for code in range(2):
                mean[j, code] *= 0.5
                length -= 2.0 * mean[j, code] * mean[j, code]
        if best >= target or length <= 1e-12:
            break
        move = scale * (target - bound) / length
        for s in range(size):
            for j in range(m):
                for code in range(2):
                    prices[s, j, code] += move * row.weights[s] * ((answers[s, j] == code) - mean[j, code])
    copy_to(prices.ravel(), best_prices.ravel())
    return best


@kernel
def forbid_states(row, measure, penalty, prices, limit, allowed):
    """Forbid each label's states in which the bound exceeds the limit; returns whether any was."""
    size, m = prices.shape[0], prices.shape[1]
    most = 0
    for s in range(size):
        most = max(most, row.sample_start[s + 1] - row.sample_start[s])
    least, choice = np.empty((most + 1, most + 1)), np.empty((most, most + 1, most + 1), np.int8)
    extra, order = np.empty(m), np.empty(m, np.int64)
    answers, values, rest = np.empty((size + 1, m), np.int8), np.empty(size + 1), np.zeros((m, 2))
    bound = 0.0
    for s in range(size):
        values[s] = _least_of_sample(row, s, measure, prices[s], allowed, least, choice, extra, order, answers[s])
        bound += values[s]
        for j in range(m):
            rest[j, 0] -= prices[s, j, 0]
            rest[j, 1] -= prices[s, j, 1]
    values[size] = _least_of_penalty(penalty, rest, allowed, extra, order, answers[size])
    bound += values[size]
    before, tried, is_forbidden = np.empty(3, np.bool_), np.empty(m, np.int8), False
    for j in range(m):
        copy_to(before, allowed[j])
        for state in range(3):
            if not before[state]:
                continue
            for other in range(3):
                allowed[j, other] = other == state
            # Only copies that are not in this state anyway cost more; the sum grows until it exceeds the limit.
            raised = bound
            if answers[size, j] != state - 1:
                raised += _least_of_penalty(penalty, rest, allowed, extra, order, tried) - values[size]
            for s in range(size):
                if raised > limit:
                    break
                if answers[s, j] != state - 1:
                    raised -= values[s]
                    raised += _least_of_sample(row, s, measure, prices[s], allowed, least, choice, extra, order, tried)
            if raised > limit:
                before[state] = False
                is_forbidden = True
        copy_to(allowed[j], before)
    return is_forbidden
