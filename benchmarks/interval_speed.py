"""Decisions from intervals against decisions from their midpoints, with the same number of rows and labels."""

from collections.abc import Iterator

import numpy as np

import abstain
from benchmarks.calibration import scored
from benchmarks.measure import Row, at_most, seconds, threads

SETS = "emotions", "scene", "yeast", "CAL500"
ROWS = 20_000
COSTS = {"hamming": 0.1, "subset": 0.05, "f1": 0.05, "jaccard": 0.05, "rank": 0.1}


def speed() -> Iterator[Row]:
    with threads(1):
        for m, n in ((20, 100_000), (100, 20_000), (1000, 500)):
            yield from _comonotone(n, m)
        for name in SETS:
            yield from _venn_abers(name)
        yield from _thousand_nested()


def _comonotone(n: int, m: int) -> Iterator[Row]:
    p = np.sort(np.random.default_rng(0).beta(0.3, 1.2, (n, m)), axis=1)
    box = abstain.Intervals(np.clip(p - 0.03, 0, 1), np.clip(p + 0.03, 0, 1))
    for loss, cost in COSTS.items():
        limit = None if loss == "rank" else 1.3
        yield _ratio(f"{loss}, {n} × {m}, comonotone", box, loss, cost / (m / 10), limit)


def _venn_abers(name: str) -> Iterator[Row]:
    """Intervals of the scores that logistic regression gives to new rows, repeated up to many rows of few labels."""
    learnt, truth, new, _ = scored(name, "br-lr")  # cross-fitted scores of the training rows, scores of the others
    box = abstain.calibration.fit(learnt, truth, "venn-abers").intervals(new)
    at = np.arange(ROWS if new.shape[1] <= 100 else len(new)) % len(new)
    box = abstain.Intervals(box.lower[at], box.upper[at])
    low, high = box.lower[: len(new)], box.upper[: len(new)]
    order = np.argsort(low, axis=1)
    nested = (np.diff(np.take_along_axis(high, order, axis=1), axis=1) < 0).any(axis=1).mean()
    for loss in ("f1", "jaccard", "rank"):
        what = f"{loss}, {name} ({new.shape[1]} labels), Venn–Abers, {nested:.0%} of the rows nested"
        yield _ratio(what, box, loss, COSTS[loss], None if loss == "rank" else 3.0)


def _thousand_nested() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    p, half = rng.beta(0.2, 2.0, (20, 1000)), 0.02 * rng.random((20, 1000))
    box = abstain.Intervals(np.clip(p - half, 0, 1), np.clip(p + half, 0, 1))
    for loss in ("f1", "jaccard", "rank"):
        yield _ratio(f"{loss}, 20 × 1 000, random widths up to 0.04, nested", box, loss, 0.001, None)


def _ratio(what: str, box: abstain.Intervals, loss: str, cost: float, limit: float | None) -> Row:
    p = np.ascontiguousarray(box.midpoint.values)
    prediction = abstain.decide(box, loss, cost)
    abstain.decide(p, loss, cost)
    # In turn, so that both see the same machine.
    times = [(seconds(lambda: abstain.decide(p, loss, cost), 1), seconds(lambda: abstain.decide(box, loss, cost), 1))
             for _ in range(5 if len(p) * p.shape[1] > 1e5 else 2)]  # fmt: skip
    known, ours = (min(taken) for taken in zip(*times, strict=True))
    proved = f", {np.mean(prediction.gap == 0):.0%} proved optimal" if (prediction.gap > 0).any() else ""
    reference = f"point probabilities ({1e6 * known / len(p):.2g} µs a row{proved})"
    if limit is None:
        return Row(what, f"{ours / known:.2f} × {reference}")
    return at_most(what, ours / known, reference, limit)
