"""Reviews under caps that cross: at most so many of each instance and of each label, and perhaps in all.

Which reviews to make is a matching of instances and labels, max Σ value · x. Instances and the whole table, and labels,
are two families of limits each of which nests, so the linear programme has whole-number corners, and its dual values
are the prices. Only few entries matter: the programme starts with the best of each instance and of each label, and
takes in others as long as the prices say that they would pay.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain.budget._limits import Limits

NOTICEABLE = 1e-10  # of the largest value: an entry that would pay less than this is not worth another round


def match(
    row: NDArray[np.int64], label: NDArray[np.int64], value: NDArray[np.float64], limits: Limits, n_rows: int
) -> tuple[NDArray[np.intp], float, NDArray[np.float64]]:
    """Which entries to review, the shadow price of any review, and that of each label besides."""
    assert limits.per_instance is not None
    assert limits.per_label is not None
    n_labels = len(limits.per_label)
    if not len(value):
        return np.empty(0, np.intp), 0.0, np.zeros(n_labels)
    room = np.concatenate([np.full(n_rows, limits.per_instance), limits.per_label])
    considered = among_best(row, value, 2 * room[:n_rows]) | among_best(label, value, 2 * room[n_rows:])
    unit = float(value.max())  # the solver's tolerances are absolute
    while considered.any():
        at = np.flatnonzero(considered)
        taken, of_all, of_group = _solve(row[at], label[at] + n_rows, value[at] / unit, room, limits.total)
        pays = value / unit - of_all - of_group[row] - of_group[n_rows + label] > NOTICEABLE
        if not (pays & ~considered).any():
            return at[taken], unit * of_all, unit * of_group[n_rows:]
        considered |= pays
    return np.empty(0, np.intp), 0.0, np.zeros(n_labels)


def among_best(group: NDArray[np.int64], value: NDArray[np.float64], most: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether an entry is among the `most` of its group that have the largest values."""
    order = np.lexsort((-value, group))
    sizes = np.bincount(group, minlength=len(most))
    place = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    best = np.empty(len(group), np.bool_)
    best[order] = place < most[group[order]]
    return best


def _solve(
    instance: NDArray[np.int64], label: NDArray[np.int64], value: NDArray[np.float64], room: NDArray[np.int64],
    total: int | None,
) -> tuple[NDArray[np.intp], float, NDArray[np.float64]]:  # fmt: skip
    """The best entries and the prices, among those considered."""
    from scipy.optimize import linprog  # takes longer to import than all the rest, and is seldom needed

    entry = np.arange(len(value))
    groups = sparse.csr_array((np.ones(2 * len(value)), (np.append(instance, label), np.append(entry, entry))),
                              (len(room), len(value)))  # fmt: skip
    limit = np.append(room, len(value) if total is None else total)
    inside = sparse.vstack([groups, sparse.csr_array(np.ones((1, len(value))))])
    found = linprog(-value, A_ub=inside, b_ub=limit, bounds=(0, 1), method="highs-ipm")
    if not found.success:
        raise RuntimeError(f"the linear programme of the reviews was not solved: {found.message}")
    prices = np.maximum(-found.ineqlin.marginals, 0.0)
    return np.flatnonzero(found.x > 0.5), float(prices[-1]), prices[:-1]
