"""Scores of labels whose true probabilities are known: what calibration gains or harms can be computed exactly.

A label's true log-odds are normal around its own mean; how rare labels are is spread evenly on a logarithmic scale.
Each case distorts the log-odds in its own way into the scores that a model gives.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

LIMIT = 16.0  # log-odds of probabilities given as 0 or 1
COSTS = (0.05, 0.1, 0.3)
MEASURES = ("log loss", *(f"Hamming, c = {cost}" for cost in COSTS))


class Sample(NamedTuple):
    """Rows to learn a calibration from, and others, of which the true probabilities are known."""

    scores: np.ndarray
    """Log-odds, n × m."""
    y_true: np.ndarray
    new_scores: np.ndarray
    new_probabilities: np.ndarray
    """The true ones."""


class Labels(NamedTuple):
    """True log-odds of some rows, each label's mean, and a random generator for what a case adds."""

    true: np.ndarray
    mean: np.ndarray
    random: np.random.Generator


def _noisy(labels: Labels) -> np.ndarray:
    return labels.true + labels.random.normal(0, 1.5, labels.true.shape)


def _reversed_first(labels: Labels) -> np.ndarray:
    scores = labels.true.copy()
    scores[:, 0] = 2 * labels.mean[0] - scores[:, 0]
    return scores


def _votes(labels: Labels) -> np.ndarray:
    probabilities = expit(labels.true + labels.random.normal(0, 0.7, labels.true.shape))
    return labels.random.binomial(10, probabilities) / 10


def _answers(labels: Labels) -> np.ndarray:
    noisy = labels.true + labels.random.normal(0, 1, labels.true.shape)
    return (noisy > np.minimum(labels.mean + 3, 0)).astype(float)


def _halves(labels: Labels) -> np.ndarray:
    return labels.true * np.where(np.arange(len(labels.mean)) % 2, 2.0, 0.5)


def _log_odds(probabilities: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.clip(logit(probabilities), -LIMIT, LIMIT)


CASES: dict[str, Callable[[Labels], np.ndarray]] = {
    "calibrated": lambda labels: labels.true,
    "overconfident": lambda labels: 2 * labels.true,
    "noise added": _noisy,
    "underconfident": lambda labels: 0.5 * labels.true,
    "class weights balanced": lambda labels: labels.true - labels.mean,
    "noise around the base rate": lambda labels: labels.random.normal(labels.mean, 1, labels.true.shape),
    "noise around one half": lambda labels: labels.random.normal(0, 1, labels.true.shape),
    "reversed for one label": _reversed_first,
    "constant": lambda labels: np.broadcast_to(labels.mean, labels.true.shape).copy(),
    "votes of 10": lambda labels: _log_odds(_votes(labels)),
    "answers 0 and 1": lambda labels: _log_odds(_answers(labels)),
    "half over-, half underconfident": _halves,
}


def simulate(case: str, *, n_labels: int, seed: int, n_rows: int = 1500, n_new: int = 1000) -> Sample:
    """Labels with 0.2 to 200 relevant rows among 1500 on average."""
    random = np.random.default_rng(seed)
    spread = 2.0
    base = np.exp(random.uniform(np.log(0.2), np.log(200), n_labels)) / 1500
    mean = logit(base) - spread**2 / 2  # about: E exp N(mean, spread²) = exp(mean + spread² / 2)
    true = random.normal(mean, spread, (n_rows + n_new, n_labels))
    scores = np.clip(CASES[case](Labels(true, mean, random)), -LIMIT, LIMIT)
    y_true = random.random((n_rows, n_labels)) < expit(true[:n_rows])
    return Sample(scores[:n_rows], y_true.astype(np.int8), scores[n_rows:], expit(true[n_rows:]))


def expected_losses(probabilities: np.ndarray, true: np.ndarray) -> np.ndarray:
    """`MEASURES` of each label: the divergence from the true probabilities, and the expected generalised losses."""
    p = np.clip(probabilities, 1e-7, 1 - 1e-7)
    divergence = true * np.log(true / p) + (1 - true) * np.log((1 - true) / (1 - p))
    wrong, error = np.where(p > 0.5, 1 - true, true), np.minimum(p, 1 - p)
    return np.array([divergence.mean(axis=0), *(np.where(error <= c, wrong, c).mean(axis=0) for c in COSTS)])
