"""F-measure and Jaccard index by slow, independent algorithms, compiled so that comparing their speed is fair.

Labels are sorted by decreasing probability; value(k, l) is the expected measure when the first k labels are answered 1,
those from l on 0, and those between are abstained on.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def hits_distribution(p):
    """chance[k, j] = P(j of the first k labels are relevant)."""
    m = len(p)
    chance = np.zeros((m + 1, m + 1))
    chance[0, 0] = 1.0
    for k in range(1, m + 1):
        for j in range(k + 1):
            chance[k, j] = chance[k - 1, j] * (1.0 - p[k - 1])
            if j > 0:
                chance[k, j] += chance[k - 1, j - 1] * p[k - 1]
    return chance


@njit(nogil=True, cache=True)
def paper_algorithm_2(ranked, penalty, best, profile):
    """F1 with 0/0 = 0 as in Nguyen & Hüllermeier (2020), Algorithm 2: O(m³) for each row.

    reciprocal[x] = E[1 / (x + number of relevant labels from l on)] is updated as l decreases.
    """
    for i in range(len(ranked)):
        p = ranked[i]
        m = len(p)
        chance = hits_distribution(p)
        reciprocal = np.zeros(2 * m + 2)
        for x in range(1, 2 * m + 2):
            reciprocal[x] = 1.0 / x
        profile[i, :m] = 0.0
        profile[i, m] = 1.0
        best[i] = 1.0 - penalty[m]
        for l in range(m, 0, -1):
            if l < m:
                for x in range(1, 2 * m + 1):
                    reciprocal[x] = p[l] * reciprocal[x + 1] + (1.0 - p[l]) * reciprocal[x]
            for k in range(1, l + 1):
                value = 0.0
                for hits in range(1, k + 1):
                    value += hits * chance[k, hits] * reciprocal[k + hits]
                value *= 2.0
                profile[i, l - k] = max(profile[i, l - k], value)
                best[i] = max(best[i], value - penalty[l - k])


@njit(nogil=True, cache=True)
def f_table(p, beta_squared):
    """value(k, l) of the F-measure for any β and 1 ≤ k ≤ l ≤ m, in O(m³)."""
    m = len(p)
    chance = hits_distribution(p)
    table = np.zeros((m + 1, m + 1))
    reciprocal = np.zeros(m + 2)
    for k in range(1, m + 1):
        for relevant in range(m + 1):
            reciprocal[relevant] = 1.0 / (k + beta_squared * relevant)
        for l in range(m, k - 1, -1):
            if l < m:
                for relevant in range(m):
                    reciprocal[relevant] = p[l] * reciprocal[relevant + 1] + (1.0 - p[l]) * reciprocal[relevant]
            value = 0.0
            for hits in range(1, k + 1):
                value += hits * chance[k, hits] * reciprocal[hits]
            table[k, l] = (1.0 + beta_squared) * value
    return table


@njit(nogil=True, cache=True)
def jaccard_table(p):
    """value(k, l) of the Jaccard index for 1 ≤ k ≤ l ≤ m, in O(m³)."""
    m = len(p)
    table = np.zeros((m + 1, m + 1))
    missed = np.zeros(m + 2)
    missed[0] = 1.0
    for l in range(m, 0, -1):
        if l < m:
            for j in range(m - l, -1, -1):
                missed[j] = missed[j] * (1.0 - p[l]) + (missed[j - 1] * p[l] if j > 0 else 0.0)
        hits = 0.0
        for k in range(1, l + 1):
            hits += p[k - 1]
            value = 0.0
            for j in range(m - l + 1):
                value += missed[j] / (k + j)
            table[k, l] = hits * value
    return table


@njit(nogil=True, cache=True)
def jaccard_profiles(ranked, profile):
    for i in range(len(ranked)):
        profile[i] = profile_from_table(jaccard_table(ranked[i]), ranked[i], 0.0)


@njit(nogil=True, cache=True)
def f_profiles(ranked, beta_squared, profile):
    for i in range(len(ranked)):
        profile[i] = profile_from_table(f_table(ranked[i], beta_squared), ranked[i], 0.0)


@njit(nogil=True, cache=True)
def profile_from_table(table, p, zero_division):
    """The largest value for each number of abstentions, all-zero answers and full abstention included."""
    m = len(p)
    profile = np.zeros(m + 1)
    none_relevant = zero_division
    for l in range(m - 1, -1, -1):
        none_relevant *= 1.0 - p[l]
        profile[l] = none_relevant
    for k in range(1, m + 1):
        for l in range(k, m + 1):
            profile[l - k] = max(profile[l - k], table[k, l])
    profile[m] = 1.0
    return profile
