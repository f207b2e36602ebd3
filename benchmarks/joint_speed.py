"""Decisions from joint distributions: seconds for a thousand rows, and how good they are proved to be."""

from collections.abc import Iterator
from time import perf_counter

import numpy as np

import abstain
from benchmarks.measure import Row

COSTS = {"subset": 0.05, "rank": 1.0, "f1": 0.05, "jaccard": 0.05}
LIMITS = {"subset": 5.0, "rank": 3.0, "f1": 60.0, "jaccard": 60.0}
LIMIT_UNCERTIFIED = 5.0


def topics(n: int, n_samples: int, m: int, n_topics: int = 4) -> np.ndarray:
    """Samples of n instances: in each instance a few topics, each with label probabilities of its own."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.4, 0.9, (n_topics * 5, m))
    mine = rng.integers(0, len(p), (n, n_topics))
    topic = mine[np.arange(n)[:, np.newaxis], rng.integers(0, n_topics, (n, n_samples))]
    return rng.random((n, n_samples, m)) < p[topic]


def speed() -> Iterator[Row]:
    yield from _thousand(1000, 14)
    yield from _thousand(6, 100)
    yield from _mixture()


def _thousand(n: int, m: int) -> Iterator[Row]:
    weights = np.random.default_rng(1).dirichlet(np.full(200, 0.5), n)
    labels = topics(n, 200, m)
    for certify in (True, False):
        joint = abstain.Samples(labels, weights, certify=certify)
        for loss, cost in COSTS.items():
            if not certify and loss in ("subset", "rank"):
                continue
            abstain.decide(joint.take(np.arange(2)), loss, cost)  # compiled
            what = f"{loss}, {n} × {m}, 200 samples" + ("" if certify else ", without certificate")
            limit = (LIMITS[loss] if certify else LIMIT_UNCERTIFIED) if m == 14 else None
            yield _timed(what, joint, loss, cost * 14 / m if loss != "rank" else cost, limit)


def _mixture() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    p = np.clip(rng.beta(0.4, 0.9, (200, 1, 14)) + 0.3 * rng.normal(size=(200, 5, 14)), 0.01, 0.99)
    for loss, cost in COSTS.items():
        joint = abstain.Mixture(None, p)
        abstain.decide(joint.take(np.arange(2)), loss, cost)
        yield _timed(f"{loss}, 200 × 14, mixture of 5", joint, loss, cost, None)


def _timed(what: str, joint: abstain.Samples | abstain.Mixture, loss: str, cost: float, limit: float | None) -> Row:
    start = perf_counter()
    prediction = abstain.decide(joint, loss, cost)
    taken = perf_counter() - start
    share = prediction.gap / prediction.expected_loss
    proved = f"{np.mean(prediction.gap == 0):.0%} proved optimal"
    if (prediction.gap > 0).any():
        proved += f", gap {100 * np.median(share):.2g} % in the median, {100 * share.max():.2g} % at most"
    measured = f"{taken:.2f} s ({1e3 * taken / len(joint):.2g} ms a row); {proved}"
    return Row(what, measured) if limit is None else Row(what, measured, f"≤ {limit:g} s", taken <= limit)
