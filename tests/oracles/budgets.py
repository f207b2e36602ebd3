"""Budgets by brute force: slow, independent of the library's algorithms, and obviously right."""

import itertools

import numpy as np

import abstain


def least_bill(p, loss, *, total=None, per_instance=None, review=0.0):
    """Return the least bill over all numbers of reviews per instance: dynamic programming in plain Python."""
    values = abstain.risk_profile(p, loss=loss).values
    n, m = p.shape
    best = {0: 0.0}
    for i in range(n):
        following: dict[int, float] = {}
        for used, bill in best.items():
            for a in range(min(m, m if per_instance is None else per_instance) + 1):
                if total is None or used + a <= total:
                    paid = bill + values[i, a] + review * a
                    following[used + a] = min(following.get(used + a, np.inf), paid)
        best = following
    return min(best.values())


def least_bill_of_sets(p, loss, *, total, per_instance, per_label, review):
    """Return the least bill over all sets of reviews: only for a handful of entries."""
    n, m = p.shape
    fn, fp = (np.broadcast_to(cost, m) for cost in (loss.false_negative, loss.false_positive))
    risk = np.minimum(fn * p, fp * (1 - p))
    best = np.inf
    for chosen in itertools.product([0, 1], repeat=n * m):
        is_reviewed = np.reshape(chosen, (n, m)).astype(bool)
        fits = (
            is_reviewed.sum() <= total
            and is_reviewed.sum(axis=1).max() <= per_instance
            and (is_reviewed.sum(axis=0) <= per_label).all()
        )
        if fits:
            best = min(best, risk[~is_reviewed].sum() + (is_reviewed * review).sum())
    return best


def bill_of(p, allocation, loss, review):
    """Return what the prediction of an allocation costs, computed anew from its answers."""
    answers = abstain.metrics.expected_generalized_loss(
        p, allocation.prediction, loss=loss, penalty=0.0, per_instance=True
    ).sum()
    return answers + (np.asarray(allocation.prediction.abstained) * review).sum()
