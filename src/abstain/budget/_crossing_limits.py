"""Reviews under limits that cross: at most so many of each instance and of each label, and perhaps in all.

Which reviews to make is a matching of instances and labels, max Σ value · x. The limits of the instances and of the
whole table are nested, and so are those of the labels; the linear programme of two nested families has integral
vertices, and its dual values are the shadow prices. Only few entries matter: the programme starts with the best of each
instance and of each label, and adds others as long as the prices say that they would pay.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain.budget._allocation import ShadowPrices
from abstain.budget._entries import Entries
from abstain.budget._limits import Limits
from abstain.budget._thresholds import is_among_largest

NOTICEABLE = 1e-10  # relative to the largest value: an entry that would pay less than this needs no further round


def match(entries: Entries, limits: Limits, n_rows: int) -> tuple[NDArray[np.intp], ShadowPrices]:
    """Return which entries to review, and the shadow prices."""
    assert limits.per_instance is not None
    assert limits.per_label is not None
    row, label, value = entries
    n_labels = len(limits.per_label)
    nothing = np.empty(0, np.intp), ShadowPrices.uniform(0.0, n_labels)
    if not len(value):
        return nothing
    caps = np.concatenate([np.full(n_rows, limits.per_instance), limits.per_label])
    considered = is_among_largest(row, value, 2 * caps[:n_rows]) | is_among_largest(label, value, 2 * caps[n_rows:])
    scale = float(value.max())  # the solver's tolerances are absolute
    while considered.any():
        at = np.flatnonzero(considered)
        scaled = Entries(row[at], label[at], value[at] / scale)
        taken, common, by_group = _solve_programme(scaled, caps, n_rows, limits.total)
        pays = value / scale - common - by_group[row] - by_group[n_rows + label] > NOTICEABLE
        if not (pays & ~considered).any():
            return at[taken], ShadowPrices(scale * common, scale * by_group[n_rows:])
        considered |= pays
    return nothing


def _solve_programme(
    entries: Entries, caps: NDArray[np.int64], n_rows: int, total: int | None
) -> tuple[NDArray[np.intp], float, NDArray[np.float64]]:
    """Return the best entries, the price of the total, and the prices of the caps of all instances and labels."""
    from scipy.optimize import linprog  # takes longer to import than all the rest, and is seldom needed

    n_entries = len(entries.value)
    entry = np.arange(n_entries)
    groups = np.append(entries.row, entries.label + n_rows)
    membership = sparse.csr_array((np.ones(2 * n_entries), (groups, np.append(entry, entry))), (len(caps), n_entries))
    found = linprog(
        -entries.value,
        A_ub=sparse.vstack([membership, sparse.csr_array(np.ones((1, n_entries)))]),
        b_ub=np.append(caps, n_entries if total is None else total),
        bounds=(0, 1),
        method="highs-ipm",
    )
    if not found.success:
        raise RuntimeError(f"the linear programme of the reviews was not solved: {found.message}")
    prices = np.maximum(-found.ineqlin.marginals, 0.0)
    return np.flatnonzero(found.x > 0.5), float(prices[-1]), prices[:-1]
