"""The best number of abstentions, once the risk profile is known; and what counts as a tie.

Rounding and quadrature leave errors of about 1e-13 in what a decision is expected to cost, so predictions that are
equally good come out a little apart. `TIE` says how far apart is still equal, and of equals the one with fewest
abstentions is taken. Every decision uses one of two forms:

* Where each abstention costs the same, c, it counts as `tipped(c)`: it must save more than that. So the decision at c
  is the optimum for a slightly higher cost, where nothing ties. Each instance has its *break costs*, from which
  on it abstains on fewer labels; at c, all that are ≤ tipped(c) are passed. Break costs of different instances are one
  if a decision cannot tell them apart: b ≤ b' ≤ tipped(b).
* For any other penalty, totals of at most least + TIE · (tie_scale + |least|) are equal.

The tie_scale is 1 for losses that are 1 − a measure, whose rounding errors are absolute, and 0 for sums, whose errors
are relative.
"""

import numpy as np

from abstain._utils.compilation import kernel

TIE = 1e-12
"""Relative difference up to which two expected totals are equal; of equal ones, the fewest abstentions are taken."""

SLACK = TIE / 8
"""Numerical error of a value: of predictions with as many abstentions, one is better only by more than this."""


@kernel
def tipped(cost, tie_scale):
    """The cost at which an abstention is counted, so that ties are answered: cost + TIE · (tie_scale + cost)."""
    return cost + TIE * (tie_scale + cost)


@kernel(fastmath={"nnan", "nsz", "reassoc"})
def choose(values, penalty, counted, tie, tie_scale, n_abstained, expected):
    """For each row, the smallest a whose values[a] + counted[a] is least up to `tie`; it costs values[a] + penalty[a].

    Invariants: values is (n, m + 1), penalty and counted (m + 1,), both 0 at a = 0; values may hold +inf where a is not
    allowed, never throughout a row. counted and tie are as `BoundPenalty.counted` gives them.
    """
    n, width = values.shape
    totals = np.empty(width)
    for i in range(n):
        least = np.inf
        for a in range(width):
            totals[a] = values[i, a] + counted[a]
            least = min(least, totals[a])
        a = 0
        while totals[a] > least + tie * (tie_scale + abs(least)):
            a += 1
        n_abstained[i] = a
        expected[i] = values[i, a] + penalty[a]
