"""Examples of every loss and penalty, by name: whatever is listed here is tested, and a test requires that all are."""

from collections.abc import Callable
from typing import Any

import numpy as np

import abstain

# For each name in the library's registry, examples of its parameters; `m` is the number of labels.
LOSSES: dict[str, list[Callable[[int], abstain.Loss]]] = {
    "hamming": [
        lambda m: abstain.Hamming(),
        lambda m: abstain.Hamming(false_negative=3.0, false_positive=0.5),
        lambda m: abstain.Hamming(np.linspace(0.5, 2.0, m), np.linspace(1.5, 0.2, m)),
    ],
    "subset": [lambda m: abstain.SubsetZeroOne()],
    "rank": [lambda m: abstain.Rank()],
    "f1": [
        lambda m: abstain.FMeasure(),
        lambda m: abstain.FMeasure(zero_division=0),
        lambda m: abstain.FMeasure(beta=0.5),
        lambda m: abstain.FMeasure(beta=1.37, zero_division=0),
        lambda m: abstain.FMeasure(beta=2),
        lambda m: abstain.FMeasure(beta=30),
    ],
    "jaccard": [lambda m: abstain.Jaccard(), lambda m: abstain.Jaccard(zero_division=0)],
}

PENALTIES: dict[str, list[Callable[[int], Any]]] = {
    "linear": [
        lambda m: 0.0,
        lambda m: 0.05,
        lambda m: abstain.Linear(0.2),
        lambda m: abstain.Linear(0.5),
        lambda m: abstain.Linear(0.3 / m),
        lambda m: "none",
        lambda m: float("inf"),
    ],
    "concave": [lambda m: abstain.Concave(0.1), lambda m: abstain.Concave(0.6), lambda m: abstain.Concave(np.inf)],
    "capped": [
        lambda m: abstain.Capped(0.05, 1),
        lambda m: abstain.Capped(abstain.Concave(0.02), m // 2),
        lambda m: abstain.Capped(0.1, m),
        lambda m: abstain.Capped(0.0, 0),
    ],
    "counting": [
        lambda m: lambda a: 0.02 * a**2,  # convex
        lambda m: np.concatenate([[0.0], np.random.default_rng(m).random(m)]),  # falls and rises
        lambda m: np.concatenate([[0.0], 0.1 * np.random.default_rng(m).random(m)]),
        lambda m: [0.0] + [0.25] * m,  # a flat fee
    ],
    "perlabel": [
        lambda m: abstain.PerLabel(np.linspace(0.01, 0.4, m)),
        lambda m: abstain.PerLabel(np.linspace(0.3, 0.0, m)) + abstain.Concave(0.2),
        lambda m: abstain.PerLabel(np.full(m, 0.1)) + (lambda a: 0.05 * a**2),
        lambda m: abstain.PerLabel(np.linspace(0.0, 0.3, m)) + abstain.Capped(0.01, 2),
    ],
}

LOSS_CASES = [(name, i) for name, examples in LOSSES.items() for i in range(len(examples))]
PENALTY_CASES = [(name, i) for name, examples in PENALTIES.items() for i in range(len(examples))]
PAIRS = [
    (loss, penalty)
    for loss in LOSS_CASES
    for penalty in PENALTY_CASES
    if penalty[0] != "perlabel" or LOSSES[loss[0]][loss[1]](2).is_decomposable
]


def make_loss(case: tuple[str, int], n_labels: int) -> abstain.Loss:
    return LOSSES[case[0]][case[1]](n_labels)


def make_penalty(case: tuple[str, int], n_labels: int) -> Any:
    return PENALTIES[case[0]][case[1]](n_labels)


def random_probabilities(n: int, m: int, seed: int = 0) -> np.ndarray:
    """Uniform, certain and tied rows: 0, ½ and 1 among them. Read-only, as a user's array may be."""
    rng = np.random.default_rng(seed + 1000 * m)
    p = rng.random((n, m))
    p[1::4] = rng.beta(0.3, 0.6, p[1::4].shape)
    p[2::4] = rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], p[2::4].shape)
    p[3::4] = np.where(rng.random(p[3::4].shape) < 0.3, rng.choice([0.0, 0.5, 1.0], p[3::4].shape), p[3::4])
    p.flags.writeable = False
    return p


def random_intervals(n: int, m: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends around `random_probabilities`: narrow, wide, comonotone, nested, tied and single points."""
    rng = np.random.default_rng(seed + 2000 * m)
    p = np.array(random_probabilities(n, m, seed))
    down, up = rng.random((2, n, m)) * rng.choice([0.02, 0.15, 0.4, 1.0], (n, 1))
    low, high = np.clip(p - down, 0, 1), np.clip(p + up, 0, 1)
    low[1::5], high[1::5] = np.sort(low[1::5], axis=1), np.sort(high[1::5], axis=1)  # comonotone
    low[2::5], high[2::5] = np.sort(low[2::5], axis=1), -np.sort(-np.maximum(high, low)[2::5].clip(0.5), axis=1)
    low[2::5] = np.minimum(low[2::5], high[2::5])  # nested in one another
    low[3::5], high[3::5] = np.round(low[3::5] * 4) / 4, np.round(high[3::5] * 4) / 4  # tied
    known = rng.random((n, m)) < 0.15
    high = np.where(known, low, high)
    low.flags.writeable = high.flags.writeable = False
    return low, high


def random_truth(probabilities: np.ndarray, seed: int = 0) -> np.ndarray:
    """Labels drawn from the probabilities. Read-only, as a user's array may be."""
    truth = (np.random.default_rng(seed).random(probabilities.shape) < probabilities).astype(np.int8)
    truth.flags.writeable = False
    return truth


def assert_fewest_of_the_best(totals: np.ndarray, tie_scale: float, n_abstained: np.ndarray) -> None:
    """totals[i, a] is the least generalised loss with a abstentions: the choice is optimal and no smaller a ties.

    Ties are totals within 1e-12; half of that is allowed on either side for rounding.
    """
    rows = np.arange(len(totals))
    least = totals.min(axis=1)
    tie = 1e-12 * (tie_scale + least)
    assert (totals[rows, n_abstained] <= least + 1.5 * tie).all()
    fewer = np.arange(totals.shape[1]) < n_abstained[:, np.newaxis]
    assert not (fewer & (totals <= (least + 0.5 * tie)[:, np.newaxis])).any()
