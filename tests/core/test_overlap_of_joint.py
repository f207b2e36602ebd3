"""F-measure and Jaccard index of dependent labels: every answer tried, one truth after the other."""

from itertools import product

import numpy as np
import pytest

from abstain._core.kernels.choice import TIE, tipped
from abstain._core.kernels.components import Components, RowPenalties
from abstain._core.kernels.overlap_of_joint import OverlapLimits, decide_overlap_of_joint, hull_of_overlap
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


def all_losses(loss, weights, values):
    """Every answer and its expected loss: Σ_k w_k Σ_y P_k(y) · ℓ(y, answer)."""
    m = values.shape[1]
    answers = all_answers(m)
    truths, chances = values.astype(float), weights
    if values.dtype == np.float64:
        truths = np.array(list(product([0.0, 1.0], repeat=m)))
        per_component = [np.where(truths == 1, p, 1 - p).prod(axis=1) for p in values]
        chances = weights @ np.array(per_component)
    return answers, losses_of_truths(loss, answers, truths) @ chances


def with_penalty(answers, losses, counts, label_costs):
    """The total of each answer."""
    return losses + counts[(answers < 0).sum(axis=1)] + (answers < 0) @ label_costs


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


def check_exact(loss, joint, penalty, answers, losses):
    (weights, values), (counts, label_costs, is_linear) = joint, penalty
    totals = with_penalty(answers, losses, counts, label_costs)
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
    for joint in joint_examples(m, rng):
        answers, losses = all_losses(loss, *joint)
        for penalty in penalties_for(m, rng):
            check_exact(loss, joint, penalty, answers, losses)


@pytest.mark.parametrize("loss", [FMeasure(), FMeasure(beta=2, zero_division=0), Jaccard()], ids=repr)
@pytest.mark.parametrize("limits", [TINY, TINY._replace(certify=False), TINY._replace(nodes=40, steps=60)])
def test_gaps_hold_where_the_search_is_cut(loss, limits):
    rng, worst = np.random.default_rng(0), 0.0
    for m in (2, 5, 6):
        for weights, values in joint_examples(m, rng):
            answers, losses = all_losses(loss, weights, values)
            for counts, label_costs, is_linear in penalties_for(m, rng):
                totals = with_penalty(answers, losses, counts, label_costs)
                start = answers[rng.choice(np.flatnonzero(np.isfinite(totals)))]
                codes, gap = decide(loss, weights, values, counts, label_costs, is_linear, limits, start)
                total = totals[(answers == codes).all(axis=1)][0]
                assert total <= totals[(answers == start).all(axis=1)][0] + 1e-12
                assert -1e-12 <= total - totals.min() <= gap + 1e-12
                worst = max(worst, gap)
    assert worst > 0.01  # some gaps were cut


@pytest.mark.parametrize("loss", [FMeasure(), Jaccard(zero_division=0)], ids=repr)
def test_larger_rows_against_enumeration(loss):
    rng, m = np.random.default_rng(1), 9
    for joint in joint_examples(m, rng):
        answers, losses = all_losses(loss, *joint)
        for penalty in list(penalties_for(m, rng))[1::3]:
            check_exact(loss, joint, penalty, answers, losses)
            counts, label_costs, is_linear = penalty
            totals = with_penalty(answers, losses, counts, label_costs)
            codes, gap = decide(loss, *joint, counts, label_costs, is_linear, TINY._replace(certify=False))
            assert totals[(answers == codes).all(axis=1)][0] - totals.min() <= gap + 1e-12


@pytest.mark.parametrize("loss", [FMeasure(), FMeasure(beta=0.5, zero_division=0), Jaccard()], ids=repr)
def test_mixtures_of_more_labels_than_truths_are_listed_for(loss):
    rng, m = np.random.default_rng(2), 11
    truths = np.array(list(product([0, 1], repeat=m)), np.uint8)
    for weights, p in list(joint_examples(m, rng))[5:7]:
        chances = weights @ np.array([np.where(truths == 1, x, 1 - x).prod(axis=1) for x in p])
        possible = chances > 0
        for counts, label_costs, is_linear in list(penalties_for(m, rng))[4:6]:
            codes, gap = decide(loss, weights, p, counts, label_costs, is_linear)
            samples = chances[possible], truths[possible]
            best, no_gap = decide(loss, *samples, counts, label_costs, is_linear, start=codes)
            total, least = (total_by_truths(loss, *samples, counts, label_costs, x) for x in (codes, best))
            assert no_gap == 0
            assert -1e-12 <= total - least <= gap + 1e-12


def total_by_truths(loss, weights, truths, counts, label_costs, codes):
    expected = losses_of_truths(loss, codes[np.newaxis], truths.astype(float))[0] @ weights
    return expected + counts[(codes < 0).sum()] + label_costs[codes < 0].sum()


@pytest.mark.parametrize(
    ("loss", "samples", "total"),
    [(FMeasure(), "0000 0000 1000 0111 0101", 0.55), (Jaccard(), "0000 0000 1000 0111 0111", 0.55)],
)
def test_open_is_the_least_likely_label(loss, samples, total):
    values, counts = np.unique([list(map(int, s)) for s in samples.split()], axis=0, return_counts=True)
    weights, cost = counts / 5, 0.15 * np.arange(5)
    codes, gap = decide(loss, weights, values.astype(np.uint8), cost, np.zeros(4), True)
    np.testing.assert_array_equal(codes, [-1, 0, 0, 0])
    assert gap == 0
    assert total_by_truths(loss, weights, values, cost, np.zeros(4), codes) == pytest.approx(total, abs=1e-14)


@pytest.mark.parametrize("loss", [FMeasure(), Jaccard()], ids=repr)
def test_orders_of_labels_and_components_do_not_matter(loss):
    rng, m = np.random.default_rng(3), 6
    for weights, values in joint_examples(m, rng):
        for counts, label_costs, is_linear in penalties_for(m, rng):
            totals = []
            for labels, components in ((np.arange(m), np.arange(len(weights))), (rng.permutation(m), None)):
                components = rng.permutation(len(weights)) if components is None else components
                w, v, own = weights[components], values[np.ix_(components, labels)], label_costs[labels]
                codes, _ = decide(loss, w, v, counts, own, is_linear)
                answers, losses = all_losses(loss, w, v)
                totals.append(with_penalty(answers, losses, counts, own)[(answers == codes).all(axis=1)][0])
            assert totals[0] == pytest.approx(totals[1], abs=1e-12)


@pytest.mark.parametrize("loss", [FMeasure(), FMeasure(beta=2, zero_division=0), Jaccard()], ids=repr)
def test_hull_has_the_vertices_of_the_profile(loss):
    rng, m = np.random.default_rng(4), 5
    a = np.arange(m + 1)
    for weights, p in joint_examples(m, rng):
        answers, losses = all_losses(loss, weights, p)
        profile = np.array([losses[(answers < 0).sum(axis=1) == size].min() for size in a])
        components = Components(np.array([0, len(weights)]), weights, np.arange(len(weights)), p)
        values, codes, gap = np.empty((1, m + 1)), np.empty((1, m + 1, m), np.int8), np.empty((1, m + 1))
        hull_of_overlap(components, measure_of(loss, m), ENOUGH, values, codes, gap)
        finite = np.flatnonzero(np.isfinite(values[0]))
        np.testing.assert_allclose(values[0, finite], profile[finite], rtol=0, atol=1e-11)
        assert (gap[0, finite] == 0).all()
        for size in finite:
            assert losses[(answers == codes[0, size]).all(axis=1)][0] == pytest.approx(profile[size], abs=1e-11)
        for price in rng.random(20):
            assert (values[0] + price * a).min() == pytest.approx((profile + price * a).min(), abs=1e-11)


def test_comonotone_components_give_the_whole_profile():
    rng, m = np.random.default_rng(5), 6
    for loss in LOSSES:
        weights = rng.dirichlet(np.ones(3))
        p = 1 / (1 + np.exp(-rng.normal(0, 3, (3, 1)) - rng.choice([-1.0, 0.0, 0.5, 2.0], m)))
        answers, losses = all_losses(loss, weights, p)
        profile = [losses[(answers < 0).sum(axis=1) == size].min() for size in range(m + 1)]
        values, codes, gap = np.empty((1, m + 1)), np.empty((1, m + 1, m), np.int8), np.empty((1, m + 1))
        components = Components(np.array([0, 3]), weights, np.arange(3), p)
        hull_of_overlap(components, measure_of(loss, m), ENOUGH, values, codes, gap)
        np.testing.assert_allclose(values[0], profile, rtol=0, atol=1e-11)
        assert not gap.any()
