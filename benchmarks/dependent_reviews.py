"""How many reviews are saved where the answer to one label informs about the others: a part of ``make dependence``."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import abstain

PRICES = (0.05, 0.1, 0.2)
SHARE = 0.2
"""The share of independence in the joint distributions: an answer that no sample has must not end the learning."""


def reviews(joint: abstain.Samples, truth: np.ndarray) -> Iterator[dict[str, Any]]:
    """Reviews and wrong answers of an instance, on average, by price: all doubtful labels at once, or one by one."""
    given = joint.with_independence(SHARE)
    for price in PRICES:
        doubtful = np.minimum(given.matrix, 1 - given.matrix) > price
        wrong = ~doubtful & ((given.matrix > 0.5) != truth)
        at_once = doubtful.sum() / len(truth), wrong.sum() / len(truth)
        counts = [_one_by_one(given, i, truth[i], price) for i in range(len(truth))]
        for method, (n_reviews, n_wrong) in {"at once": at_once, "one by one": np.mean(counts, axis=0)}.items():
            yield {
                "price": price, "method": method, "reviews": n_reviews, "wrong": n_wrong,
                "realised": n_wrong + price * n_reviews,
            }  # fmt: skip


def _one_by_one(joint: abstain.Samples, i: int, truth: np.ndarray, price: float) -> tuple[int, int]:
    """Review the label that saves most, learn from its answer, and go on as long as some label is doubtful."""
    components = joint.take(np.array([i])).load(next(joint.take(np.array([i])).blocks(1)))
    values, weights = components.values[components.index].astype(float), components.weights
    known = np.zeros(len(truth), bool)
    while True:
        p = np.where(known, truth, weights @ values)
        risk = np.minimum(p, 1 - p)
        if not (risk > price + 1e-12).any():
            return int(known.sum()), int(((p > 0.5) != truth)[~known].sum())
        both = values.T @ (weights[:, np.newaxis] * values)
        own = p[:, np.newaxis]
        # The expected risk of each other label, once the own one is known to be 1 or 0.
        later = np.minimum(both, own - both) + np.minimum(p - both, 1 - own - p + both)
        saved = risk + np.where(np.eye(len(truth), dtype=bool) | known, 0.0, risk - later).sum(axis=1)
        label = int(np.argmax(np.where(risk > price + 1e-12, saved, -np.inf)))
        known[label] = True
        agrees = values[:, label] == truth[label]
        if weights[agrees].sum() > 1e-9:  # else the answer is one that no sample has, and nothing is learnt
            weights = np.where(agrees, weights, 0.0)
            weights /= weights.sum()
