"""F-measure and Jaccard index against independent O(m³) programmes, and the quadrature they rest on."""

import numpy as np
import pytest
from tests.oracles import overlap as oracle

import abstain
from abstain._core.decision import decide_bound
from abstain._core.kernels.quadrature import longest_reach, reciprocal_rule
from abstain._core.losses.overlap import FMeasure, Jaccard
from abstain._core.penalties import Counting
from abstain._core.probabilities import Probabilities


def ranked_rows(m, n, seed):
    rng = np.random.default_rng(seed)
    rows = [rng.random(m), rng.beta(0.2, 0.2, m), rng.beta(0.05, 1.0, m), np.full(m, 0.5), np.round(rng.random(m), 1)]
    rows += [np.where(rng.random(m) < 0.5, rng.choice([0.0, 1.0], m), rng.random(m)) for _ in range(n - len(rows))]
    return -np.sort(-np.array(rows[:n]), axis=1)


def table_of(loss, p):
    return oracle.jaccard_table(p) if isinstance(loss, Jaccard) else oracle.f_table(p, loss.beta**2)


LOSSES = [
    FMeasure(),
    FMeasure(zero_division=0),
    FMeasure(beta=0.1),
    FMeasure(beta=0.5),
    FMeasure(beta=1.37),
    FMeasure(beta=5, zero_division=0),
    Jaccard(),
    Jaccard(zero_division=0),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("m", [1, 2, 3, 7, 15, 16, 17, 31, 64, 100, 195, 300])
def test_equals_the_cubic_programme(loss, m):
    p = ranked_rows(m, 4 if m > 100 else 8, seed=m)
    gains = np.array([oracle.profile_from_table(table_of(loss, row), row, loss.zero_division) for row in p])
    np.testing.assert_allclose(abstain.risk_profile(p, loss=loss).values, 1 - gains, rtol=0, atol=1e-10)
    rng = np.random.default_rng(m)
    tables = [cost * np.arange(m + 1) / m for cost in (0.03, 0.1, 0.3, 0.6, 1.0, 3.0)]
    tables += [abstain.Concave(cost / m).bind(m).counts for cost in (0.2, 1.0, 2.0)]
    tables += [np.concatenate([[0.0], rng.random(m)]), (np.arange(m + 1) / m) ** 2, np.zeros(m + 1)]
    for table in tables:
        prediction = abstain.decide(p, loss, table)
        best = (1 - gains + table).min(axis=1)
        np.testing.assert_allclose(prediction.expected_loss, best, rtol=0, atol=1e-10)


def test_paper_algorithm_agrees_where_it_is_exact():
    m, p = 50, ranked_rows(50, 20, seed=1)
    penalty = 0.4 * np.arange(m + 1) / m
    best, profile = np.empty(20), np.empty((20, m + 1))
    oracle.paper_algorithm_2(p, penalty, best, profile)
    loss = FMeasure(zero_division=0)
    np.testing.assert_allclose(abstain.decide(p, loss, penalty).expected_loss, 1 - best, rtol=0, atol=1e-10)
    np.testing.assert_allclose(abstain.risk_profile(p, loss=loss).values, 1 - profile, rtol=0, atol=1e-10)


def test_paper_algorithm_misses_all_zero_answers():
    """Under 0/0 = 1 answering 0 throughout is worth P(nothing is relevant); Algorithm 2 leaves these out."""
    p = np.full((1, 6), 0.05)
    penalty = 0.1 * np.arange(7)
    best, profile = np.empty(1), np.empty((1, 7))
    oracle.paper_algorithm_2(p, penalty, best, profile)
    assert abstain.decide(p, "f1", penalty).expected_loss[0] < 1 - best[0] - 0.1


def relative_error(reach, x):
    exponents, weights = reciprocal_rule(reach)
    return np.abs(x * (np.exp(-np.outer(x, exponents)) @ weights) - 1)


@pytest.mark.parametrize("reach", [1, 2, 3, 4, 10, 11, 30, 31, 79, 100, 194, 1_000, 10_000, 100_000, longest_reach()])
def test_reciprocal_rule(reach):
    """Real x, because β² is: x = (predicted + β²·relevant) / (1 + β²) takes any value in [1, m]."""
    real = np.exp(np.linspace(0, np.log(reach), 20_000))
    integer = np.unique(np.round(real)).clip(1, reach)
    assert relative_error(reach, np.concatenate([real.clip(1, reach), integer, integer / 2 + 0.5])).max() <= 1.1e-13


@pytest.mark.parametrize("beta", [1e-9, 1e-3, 0.3, 1.0, np.pi, 50.0, 1e4, 1e9, 1e200])
@pytest.mark.parametrize("m", [7, 1000, 10_000])
def test_rule_for_every_beta(beta, m):
    """What the kernels multiply, term by term, is (1 + β²) / (k + β²·relevant)."""
    rule = FMeasure(beta=beta).rule(m)
    rng = np.random.default_rng(0)
    k = np.concatenate([[1, 1, m, m], rng.integers(1, m + 1, 500)])
    relevant = np.concatenate([[1, m, 1, m], rng.integers(1, m + 1, 500)])
    share = 1 / (1 + beta**-2) if beta > 1 else beta**2 / (1 + beta**2)
    x = (1 / (1 + beta**2) if beta < 1e100 else 0.0) * k + share * relevant
    terms = rule.weights * np.exp(k[:, None] * np.log(rule.step) + relevant[:, None] * np.log1p(-rule.fade_out))
    np.testing.assert_allclose(terms.sum(axis=1), 1 / x, rtol=1e-12)


def test_many_labels_without_abstention():
    """m = 3 000: the expected value of the decision, computed another way, is what the decision says."""
    p = np.random.default_rng(0).beta(0.3, 3, 3000)
    prediction = abstain.decide(p, FMeasure(zero_division=0), "none")
    k = int((prediction.labels == 1).sum())
    ranked = -np.sort(-p)
    chance = oracle.hits_distribution(ranked[:k])[k]
    missed = np.array([1.0])
    for x in ranked[k:]:
        missed = np.convolve(missed, [1 - x, x])
    hits, misses = np.arange(k + 1), np.arange(len(missed))
    f = 2 * hits[:, None] / (k + hits[:, None] + misses)
    assert prediction.expected_loss[0] == pytest.approx(1 - chance @ f @ missed, abs=1e-11)


def test_more_labels_than_any_rule_reaches():
    with pytest.raises(abstain.InvalidLoss, match="at most"):
        FMeasure().rule(longest_reach() + 1)


@pytest.mark.parametrize("loss", [abstain.FMeasure(), abstain.FMeasure(2.0, 0), abstain.Jaccard(), abstain.Jaccard(0)])
@pytest.mark.parametrize("penalty", ["none", 0.0, 0.05, abstain.Concave(0.1), lambda a: 0.01 * a**2])
def test_equal_answers_are_told_apart_as_in_the_profile(loss, penalty):
    for m in (2, 3, 7):
        p = np.random.default_rng(m).choice(np.arange(5) / 4, (300, m))
        np.testing.assert_array_equal(
            abstain.decide(p, loss, penalty).codes, abstain.risk_profile(p, loss=loss).decide(penalty).codes
        )


@pytest.mark.parametrize("loss", [FMeasure(), FMeasure(2, 0), Jaccard()], ids=repr)
@pytest.mark.parametrize("m", [2, 5, 8])
def test_further_abstentions_may_be_paid_for(loss, m):
    """Where a penalty falls, one more abstention than are made already costs less than nothing."""
    random = np.random.default_rng(m)
    p = random.random((50, m))
    for _ in range(20):
        further = Counting([0.0, 0.6, *random.uniform(0.0, 0.9, m)]).bind(m + 1).with_abstained(np.array([0]))
        prediction = decide_bound(Probabilities(p), loss, further)
        totals = abstain.risk_profile(p, loss=loss).values + further.counts
        np.testing.assert_allclose(prediction.expected_loss, totals.min(axis=1), rtol=0, atol=1e-11)
        np.testing.assert_array_equal(prediction.n_abstained, totals.argmin(axis=1))
