"""F-measure and Jaccard index of dependent labels: every answer tried, one truth after the other."""

from itertools import product

import numpy as np
import pytest

from abstain._core.kernels.choice import TIE, tipped
from abstain._core.kernels.components import Components, RowPenalties
from abstain._core.kernels.overlap_of_joint import OverlapLimits, decide_overlap_of_joint
from abstain._core.kernels.sample_overlap import OverlapMeasure
from abstain._core.losses.overlap import FMeasure, Jaccard

LOSSES = [
    FMeasure(),
    FMeasure(beta=0.5),
    FMeasure(beta=2),
    FMeasure(zero_division=0),
    FMeasure(beta=2, zero_division=0),
    Jaccard(),
    Jaccard(zero_division=0),
]
ENOUGH = OverlapLimits(nodes=1_000_000, steps=50, certify=True)
TINY = OverlapLimits(nodes=2, steps=5, certify=True)


def measure_of(loss, m):
    """The measure as kernels take it, written down independently of the losses."""
    if isinstance(loss, Jaccard):
        return OverlapMeasure(1.0, 1.0, 0.0, loss.zero_division, loss.rule(m))
    squared = loss.beta**2
    one, missed = 1 / (1 + squared), squared / (1 + squared)
    return OverlapMeasure(one, missed, missed, loss.zero_division, loss.rule(m))


def losses_of_truths(loss, answers, truths):
    """ℓ of every answer (rows) and truth (columns), from its definition."""
    ones, zeros = (answers == 1).astype(float), (answers == 0).astype(float)
    k, hits, missed = ones.sum(axis=1, keepdims=True), ones @ truths.T, zeros @ truths.T
    if isinstance(loss, Jaccard):
        above, below = hits, k + missed
    else:
        above, below = (1 + loss.beta**2) * hits, k + loss.beta**2 * (hits + missed)
    value = np.where(below > 0, above / np.where(below > 0, below, 1), loss.zero_division)
    return np.where((answers >= 0).any(axis=1, keepdims=True), 1 - value, 0.0)


def all_answers(m):
    return np.array(list(product([1, 0, -1], repeat=m)), np.int8)


def all_totals(loss, weights, values, counts, label_costs):
    """The total of every answer: Σ_k w_k Σ_y P_k(y) · ℓ(y, answer) + penalty."""
    m = values.shape[1]
    answers = all_answers(m)
    truths, chances = values.astype(float), weights
    if values.dtype == np.float64:
        truths = np.array(list(product([0.0, 1.0], repeat=m)))
        per_component = [np.where(truths == 1, p, 1 - p).prod(axis=1) for p in values]
        chances = weights @ np.array(per_component)
    abstained = answers < 0
    expected = losses_of_truths(loss, answers, truths) @ chances
    return answers, expected + counts[abstained.sum(axis=1)] + abstained @ label_costs


def penalties_for(m, rng):
    """Pairs of a table and label costs; and whether the table is linear."""
    a = np.arange(m + 1.0)
    free = np.zeros(m)
    for cost in (0.0, 0.05, 0.25):
        yield tipped(cost * a, a), free, True
    yield np.where(a > 0, np.inf, 0.0), free, True
    yield 0.05 * a, rng.choice([0.0, 0.02, 0.1, 0.3], m), False
    yield 0.3 * a * m / (m + a), free, False
    yield np.where(a <= m // 2, 0.06 * a, np.inf), free, False
    yield np.concatenate([[0.0], rng.choice([0.05, 0.1, 0.2, 0.4], m)]), free, False
    yield np.where(a > 0, 0.2, 0.0), free, False


def joint_examples(m, rng):
    """Weights and values of one row: samples of dtype uint8, components of a mixture of dtype float64."""

    def distinct(labels, weights):
        values, index = np.unique(labels.astype(np.uint8), axis=0, return_inverse=True)
        total = np.bincount(index.ravel(), weights=weights)
        return total / total.sum(), values

    yield distinct(rng.random((12, m)) < rng.random(m), rng.random(12))
    yield distinct(rng.random((8, m)) < 0.4, np.ones(8))
    pair = rng.random((3, m)) < 0.5
    yield distinct(np.concatenate([pair, ~pair]), np.ones(6))
    yield np.ones(1), np.zeros((1, m), np.uint8)
    yield np.ones(1), rng.random((1, m))
    weights = rng.dirichlet(np.ones(3))
    yield weights, rng.random((3, m))
    yield weights, rng.integers(0, 9, (3, m)) / 8
    severity, labels = rng.normal(0, 3, (3, 1)), rng.normal(0, 1.5, m)
    yield weights, 1 / (1 + np.exp(-severity - labels))
    p = rng.random(m)
    yield np.array([0.5, 0.5]), np.array([p, 1 - p])


def decide(loss, weights, values, counts, label_costs, is_linear, limits=ENOUGH, start=None):
    m = values.shape[1]
    components = Components(np.array([0, len(weights)]), weights, np.arange(len(weights)), values)
    penalties = RowPenalties(counts[np.newaxis], 0.0 if is_linear else TIE, is_linear, False, label_costs)
    codes = np.zeros((1, m), np.int8) if start is None else start[np.newaxis].copy()
    gap = np.full(1, np.nan)
    decide_overlap_of_joint(components, penalties, measure_of(loss, m), limits, codes, gap)
    return codes[0], gap[0]


def check_exact(loss, weights, values, counts, label_costs, is_linear, fewest=True):
    answers, totals = all_totals(loss, weights, values, counts, label_costs)
    codes, gap = decide(loss, weights, values, counts, label_costs, is_linear)
    assert gap == 0
    total = totals[(answers == codes).all(axis=1)][0]
    assert total == pytest.approx(totals.min(), rel=0, abs=1e-11)
    tie = 1e-13 if is_linear else 0.99 * TIE
    fewest_abstained = (answers[totals <= totals.min() + tie] < 0).sum(axis=1).min()
    assert (codes < 0).sum() <= fewest_abstained


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 6])
def test_equals_brute_force(loss, m):
    rng = np.random.default_rng(m)
    for weights, values in joint_examples(m, rng):
        for counts, label_costs, is_linear in penalties_for(m, rng):
            check_exact(loss, weights, values, counts, label_costs, is_linear)
