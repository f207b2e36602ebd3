"""F-measure and Jaccard index expected over samples: the total of an answer, and good answers by one-label changes.

The measure of one truth depends on three counts: k labels answered 1, h of them relevant (hits), and n relevant labels
answered 0 (missed). While k is fixed, a change of one label moves h and n of the samples in which it is relevant only.
So all changes of all labels are evaluated in one pass over the relevant labels of the samples.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.kernels.choice import SLACK
from abstain._core.kernels.codes import ABSTAIN
from abstain._core.kernels.overlap import OverlapRule
from abstain._utils.compilation import kernel

HEAVIEST = 6  # how many of the heaviest samples are taken as first answers


class OverlapMeasure(NamedTuple):
    """hits / (per_one · ones + per_missed · missed + per_hit · hits); zero_division where all three counts are 0.

    F_β has 1 / (1 + β²), β² / (1 + β²) and β² / (1 + β²); Jaccard has 1, 1 and 0.
    """

    per_one: float
    per_missed: float
    per_hit: float
    zero_division: float
    rule: OverlapRule


class SampleRow(NamedTuple):
    """The samples of one row: of each sample the relevant labels, and of each label the samples where it is relevant.

    As in CSR, those of sample s are labels[sample_start[s] : sample_start[s + 1]], and those of label j
    samples[label_start[j] : label_start[j + 1]].
    """

    weights: NDArray[np.float64]
    sample_start: NDArray[np.int64]
    labels: NDArray[np.int64]
    label_start: NDArray[np.int64]
    samples: NDArray[np.int64]


class RowPenalty(NamedTuple):
    """What abstentions cost in one row: counts[a] for their number, and label_costs[j] for each abstained label."""

    counts: NDArray[np.float64]
    label_costs: NDArray[np.float64]
    tie: float


@kernel
def copy_to(target, source):
    """Copy one array to another; slices would do, but take seconds to compile."""
    for t in range(target.shape[0]):
        target[t] = source[t]


@kernel
def sort_by(order, count, keys):
    """Sort the first `count` labels of an order by increasing key, equal ones as they were; best if nearly sorted."""
    for t in range(1, count):
        j = order[t]
        u = t
        while u > 0 and keys[order[u - 1]] > keys[j]:
            order[u] = order[u - 1]
            u -= 1
        order[u] = j


@kernel
def sample_row(weights, index, values):
    """Return the `SampleRow` of the samples values[index]."""
    size, m = index.shape[0], values.shape[1]
    sample_start, label_start = np.zeros(size + 1, np.int64), np.zeros(m + 1, np.int64)
    for s in range(size):
        for j in range(m):
            if values[index[s], j]:
                sample_start[s + 1] += 1
                label_start[j + 1] += 1
    for s in range(size):
        sample_start[s + 1] += sample_start[s]
    for j in range(m):
        label_start[j + 1] += label_start[j]
    labels, samples = np.empty(sample_start[size], np.int64), np.empty(sample_start[size], np.int64)
    entry, free = 0, label_start.copy()
    for s in range(size):
        for j in range(m):
            if values[index[s], j]:
                labels[entry] = j
                samples[free[j]] = s
                entry += 1
                free[j] += 1
    return SampleRow(weights, sample_start, labels, label_start, samples)


@kernel
def value_of_counts(measure, ones, hits, missed):
    """The measure of one truth, given that something is answered."""
    if hits > 0:
        return hits / (measure.per_one * ones + measure.per_missed * missed + measure.per_hit * hits)
    return measure.zero_division if ones + missed == 0 else 0.0


@kernel
def tie_of_totals(penalty, total):
    """How much two totals may differ and still tie."""
    return max(SLACK, penalty.tie * (1.0 + abs(total)))


@kernel
def is_better(penalty, total, n_abstained, best_total, best_abstained):
    """Whether an answer comes before the best one so far: its total is less, or ties and has fewer abstentions."""
    if best_total == np.inf:
        return total < np.inf
    tie = tie_of_totals(penalty, best_total)
    return total < best_total - tie or (n_abstained < best_abstained and total <= best_total + tie)


@kernel
def count_abstained(codes):
    """The number of abstained labels."""
    n_abstained = 0
    for j in range(codes.shape[0]):
        n_abstained += codes[j] == ABSTAIN
    return n_abstained


@kernel
def count_hits_and_missed(row, codes, hits, missed):
    """Fill in both counts of each sample; returns how many labels are answered 1."""
    hits[:] = 0
    missed[:] = 0
    ones = 0
    for j in range(codes.shape[0]):
        ones += codes[j] == 1
        if codes[j] == ABSTAIN:
            continue
        for t in range(row.label_start[j], row.label_start[j + 1]):
            if codes[j] == 1:
                hits[row.samples[t]] += 1
            else:
                missed[row.samples[t]] += 1
    return ones


@kernel
def cost_of_labels(penalty, codes):
    """The label costs of an answer, without what the number of its abstentions costs."""
    cost = 0.0
    for j in range(codes.shape[0]):
        if codes[j] == ABSTAIN:
            cost += penalty.label_costs[j]
    return cost


@kernel
def total_of_answer(row, measure, penalty, codes, hits, missed):
    """Expected loss plus penalty of an answer; hits and missed are scratch."""
    n_abstained = count_abstained(codes)
    charged = penalty.counts[n_abstained] + cost_of_labels(penalty, codes)
    if n_abstained == codes.shape[0]:
        return charged
    ones = count_hits_and_missed(row, codes, hits, missed)
    value = 0.0
    for s in range(row.weights.shape[0]):
        value += row.weights[s] * value_of_counts(measure, ones, hits[s], missed[s])
    return 1.0 - value + charged


@kernel
def _values_of_changes(row, measure, codes, ones, hits, missed, base, change):
    """Expected measure after the change of any one label: base[ones after it − ones + 1] + change[label, new code + 1].

    The former is as if the label were irrelevant everywhere, the latter corrects the samples in which it is relevant.
    """
    base[:] = 0.0
    change[:] = 0.0
    for s in range(row.weights.shape[0]):
        w, h, n = row.weights[s], hits[s], missed[s]
        same = value_of_counts(measure, ones, h, n)
        more = value_of_counts(measure, ones + 1, h, n)
        less = value_of_counts(measure, ones - 1, h, n) if ones > h else 0.0  # every 1 is relevant: never used
        base[0] += w * less
        base[1] += w * same
        base[2] += w * more
        open_to_one = w * (value_of_counts(measure, ones + 1, h + 1, n) - more)
        open_to_zero = w * (value_of_counts(measure, ones, h, n + 1) - same)
        one_to_open = one_to_zero = zero_to_open = zero_to_one = 0.0
        if h > 0:
            one_to_open = w * (value_of_counts(measure, ones - 1, h - 1, n) - less)
            one_to_zero = w * (value_of_counts(measure, ones - 1, h - 1, n + 1) - less)
        if n > 0:
            zero_to_open = w * (value_of_counts(measure, ones, h, n - 1) - same)
            zero_to_one = w * (value_of_counts(measure, ones + 1, h + 1, n - 1) - more)
        for t in range(row.sample_start[s], row.sample_start[s + 1]):
            j = row.labels[t]
            if codes[j] == ABSTAIN:
                change[j, 1] += open_to_zero
                change[j, 2] += open_to_one
            elif codes[j] == 0:
                change[j, 0] += zero_to_open
                change[j, 2] += zero_to_one
            else:
                change[j, 0] += one_to_open
                change[j, 1] += one_to_zero


@kernel
def improve_by_flips(row, measure, penalty, codes):
    """Change one label at a time, the best change first, until none makes the answer better; returns the total."""
    m, size = codes.shape[0], row.weights.shape[0]
    hits, missed = np.empty(size, np.int64), np.empty(size, np.int64)
    base, change = np.empty(3), np.empty((m, 3))
    total = total_of_answer(row, measure, penalty, codes, hits, missed)
    ones = count_hits_and_missed(row, codes, hits, missed)
    n_abstained = count_abstained(codes)
    while True:
        _values_of_changes(row, measure, codes, ones, hits, missed, base, change)
        own = cost_of_labels(penalty, codes)
        best, best_a, best_j, best_code = total, n_abstained, -1, 0
        for j in range(m):
            for code in range(-1, 2):
                if code == codes[j]:
                    continue
                a = n_abstained + (code == ABSTAIN) - (codes[j] == ABSTAIN)
                value = 1.0
                if a < m:
                    value = base[1 + (code == 1) - (codes[j] == 1)] + change[j, code + 1]
                cost = own + penalty.label_costs[j] * ((code == ABSTAIN) - (codes[j] == ABSTAIN))
                if is_better(penalty, 1.0 - value + cost + penalty.counts[a], a, best, best_a):
                    best, best_a, best_j, best_code = 1.0 - value + cost + penalty.counts[a], a, j, code
        if best_j < 0:
            return total
        codes[best_j] = best_code
        total = total_of_answer(row, measure, penalty, codes, hits, missed)
        ones = count_hits_and_missed(row, codes, hits, missed)
        n_abstained = best_a


@kernel
def best_complete_answer(row, measure, codes):
    """Find the complete answer of greatest expected F_β (for Jaccard, a good one); returns the expected measure.

    The general F-measure maximiser: with k labels answered 1, those with the greatest Σ_s w_s · y_sj / (per_one · k +
    per_missed · relevant_s) are best. For Jaccard the denominator depends on the hits, so that it is only a heuristic.
    """
    m, size = codes.shape[0], row.weights.shape[0]
    highest = 0
    for s in range(size):
        highest = max(highest, row.sample_start[s + 1] - row.sample_start[s])
    joint = np.zeros((highest + 1, m))  # joint[u, j]: the weight of samples with u relevant labels, j among them
    none_relevant = 0.0
    for s in range(size):
        first, last = row.sample_start[s], row.sample_start[s + 1]
        none_relevant += row.weights[s] if first == last else 0.0
        for t in range(first, last):
            joint[last - first, row.labels[t]] += row.weights[s]
    best = measure.zero_division * none_relevant
    codes[:] = 0
    score, order = np.empty(m), np.arange(m)
    for k in range(1, m + 1):
        score[:] = 0.0
        for u in range(1, highest + 1):
            inverse = 1.0 / (measure.per_one * k + measure.per_missed * u)
            for j in range(m):
                score[j] -= inverse * joint[u, j]
        sort_by(order, m, score)
        value = 0.0
        for t in range(k):
            value -= score[order[t]]
        if value > best + SLACK:
            best = value
            for t in range(m):
                codes[order[t]] = t < k
    return best


@kernel
def improve_from_starts(row, measure, penalty, codes):
    """Improve several first answers by flips, and keep the best in codes; returns its total.

    They are the answer given, the best complete one, the majority, no answer, and the heaviest samples.
    """
    m = codes.shape[0]
    best, best_a = improve_by_flips(row, measure, penalty, codes), count_abstained(codes)
    tried, is_used = np.empty(m, np.int8), np.zeros(row.weights.shape[0], np.bool_)
    for start in range(3 + min(HEAVIEST, row.weights.shape[0])):
        if start == 0:
            best_complete_answer(row, measure, tried)
        elif start == 1:
            tried[:] = ABSTAIN
        elif start == 2:
            for j in range(m):
                weight = 0.0
                for t in range(row.label_start[j], row.label_start[j + 1]):
                    weight += row.weights[row.samples[t]]
                tried[j] = weight >= 0.5
        else:
            heaviest = -1
            for s in range(row.weights.shape[0]):
                if not is_used[s] and (heaviest < 0 or row.weights[s] > row.weights[heaviest]):
                    heaviest = s
            is_used[heaviest] = True
            tried[:] = 0
            for t in range(row.sample_start[heaviest], row.sample_start[heaviest + 1]):
                tried[row.labels[t]] = 1
        total = improve_by_flips(row, measure, penalty, tried)
        a = count_abstained(tried)
        if is_better(penalty, total, a, best, best_a):
            best, best_a = total, a
            copy_to(codes, tried)
    return best
