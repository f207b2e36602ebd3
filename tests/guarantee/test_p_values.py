"""p-values: the formula, and that a mean as high as the bound is as rarely surprising as they say."""

import math

import numpy as np
import pytest
from scipy import stats

from abstain._core.kernels.betting import MAX_LOSS_SHARE
from abstain.guarantee._p_values import betting_p_value, binomial_p_value, hoeffding_bentkus_p_value

DRAWS = 4000
LEVELS = np.array([0.005, 0.02, 0.05, 0.1, 0.3, 0.7])

# Values in [0, 1] whose mean is exactly the bound: all or nothing, smooth, skewed, hardly varying.
NULLS = {
    "rare": (0.05, lambda rng, shape: (rng.random(shape) < 0.05).astype(float)),
    "coin": (0.5, lambda rng, shape: (rng.random(shape) < 0.5).astype(float)),
    "uniform": (0.5, lambda rng, shape: rng.random(shape)),
    "beta": (0.1, lambda rng, shape: rng.beta(0.2, 1.8, shape)),
    "narrow": (0.2, lambda rng, shape: rng.uniform(0.19, 0.21, shape)),
    "constant": (0.3, lambda rng, shape: np.full(shape, 0.3)),
    "three values": (0.1, lambda rng, shape: rng.choice([0.08, 0.1, 0.28], shape, p=[0.45, 0.5, 0.05])),
    "mostly none": (0.02, lambda rng, shape: (rng.random(shape) < 0.04) * rng.random(shape)),
}


def binomial(values, bound):
    return binomial_p_value(values.sum(axis=0).astype(int), np.full(values.shape[1], len(values)), bound)


def hoeffding_bentkus(values, bound):
    return hoeffding_bentkus_p_value(values.mean(axis=0), len(values), bound)


def betting(values, bound):
    return betting_p_value(values, bound, 0.02)


def is_valid(p_values):
    """P(p ≤ u) ≤ u, as far as so many draws can tell: a valid p-value fails once in 100 000 times."""
    surprising = (p_values[:, np.newaxis] <= LEVELS).sum(axis=0)
    return bool((surprising <= stats.binom.ppf(1 - 1e-5, len(p_values), LEVELS)).all())


@pytest.mark.parametrize("n", [5, 20, 200])
@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("p_value", [hoeffding_bentkus, betting])
def test_valid_for_any_values(p_value, null, n):
    bound, draw = NULLS[null]
    assert is_valid(p_value(draw(np.random.default_rng(n), (n, DRAWS)), bound))


@pytest.mark.parametrize("n", [5, 20, 200])
@pytest.mark.parametrize("null", ["rare", "coin"])
def test_binomial_is_valid_for_all_or_nothing(null, n):
    bound, draw = NULLS[null]
    assert is_valid(binomial(draw(np.random.default_rng(n), (n, DRAWS)), bound))


def test_binomial_is_valid_whatever_is_counted():
    """Which rows are counted is random, too; what counts is how many of them are bad."""
    rng = np.random.default_rng(0)
    counted = rng.random((100, DRAWS)) < 0.3
    bad = counted & (rng.random(counted.shape) < 0.1)
    assert is_valid(binomial_p_value(bad.sum(axis=0), counted.sum(axis=0), 0.1))


def test_the_harness_finds_invalid_ones():
    rare = NULLS["rare"][1](np.random.default_rng(0), (20, DRAWS))
    deviation = np.maximum(rare.std(axis=0, ddof=1), 1e-9)
    assert not is_valid(stats.norm.cdf((rare.mean(axis=0) - 0.05) / (deviation / np.sqrt(20))))
    stakes_with_hindsight = np.where(rare == 0, 0.5, 0.0)
    assert not is_valid(1 / np.cumprod(1 + stakes_with_hindsight * (0.05 - rare), axis=0).max(axis=0))


def test_betting_is_the_formula():
    rng = np.random.default_rng(3)
    values = np.round(rng.beta(0.5, 4.0, (60, 5)), 3)
    values[7, 2] = 1.0
    for bound, level in ((0.15, 0.05), (0.3, 0.001), (0.9, 0.5)):
        expected = []
        for column in values.T:
            wealth = most = 1.0
            for i, value in enumerate(column):
                before = [0.5, *column[:i]]
                variance = (0.25 + sum((x - sum(before[: j + 2]) / (j + 2)) ** 2 for j, x in enumerate(column[:i]))) / (
                    i + 1
                )
                stake = min(math.sqrt(2 * math.log(1 / level) / (len(column) * variance)), MAX_LOSS_SHARE / (1 - bound))
                wealth *= 1 + stake * (bound - value)
                most = max(most, wealth)
            expected.append(1 / most)
        np.testing.assert_allclose(betting_p_value(values, bound, level), expected, rtol=1e-12)


def test_hoeffding_bentkus_is_the_formula():
    for n, bound, total in ((50, 0.1, 0.0), (50, 0.1, 1.3), (200, 0.3, 41.0), (20, 0.5, 10.0), (20, 0.5, 19.5)):
        mean = total / n
        low = min(mean, bound)
        divergence = (low * math.log(low / bound) if low else 0.0) + (1 - low) * math.log((1 - low) / (1 - bound))
        tail = sum(math.comb(n, k) * bound**k * (1 - bound) ** (n - k) for k in range(math.ceil(n * mean) + 1))
        expected = min(1.0, math.exp(-n * divergence), math.e * tail)
        np.testing.assert_allclose(hoeffding_bentkus_p_value(np.array(mean), n, bound), expected, rtol=1e-9)


def test_binomial_is_the_sum():
    expected = sum(math.comb(30, k) * 0.2**k * 0.8 ** (30 - k) for k in range(4))
    np.testing.assert_allclose(binomial_p_value(np.array(3), np.array(30), 0.2), expected, rtol=1e-12)


def test_no_rows_are_no_evidence():
    assert (betting_p_value(np.empty((0, 3)), 0.1) == 1).all()
    assert (hoeffding_bentkus_p_value(np.zeros(3), 0, 0.1) == 1).all()
    assert binomial_p_value(np.array(0), np.array(0), 0.1) == 1


def test_overwhelming_evidence_is_still_a_number():
    p_values = betting_p_value(np.zeros((100_000, 1)), 0.5)
    assert 0 < p_values[0] <= 1e-299


def test_betting_sees_what_varies_little():
    """Why it is the default: far more evidence, and of 0 and 1, for which there is the binomial test, not much less."""
    rng = np.random.default_rng(0)
    steady = rng.binomial(20, 0.04, (1000, 200)) / 20
    assert np.median(betting(steady, 0.05)) < 0.001 * np.median(hoeffding_bentkus(steady, 0.05))
    erratic = (rng.random((1000, 200)) < 0.03).astype(float)
    assert np.median(betting(erratic, 0.05)) < 5 * np.median(hoeffding_bentkus(erratic, 0.05))
