"""Venn–Abers intervals: against isotonic regression with the new instance added, and against the package venn-abers."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit
from sklearn.isotonic import isotonic_regression

from abstain.calibration import fit
from abstain.calibration._isotonic import _blocks
from abstain.calibration._kernels import isotonic, venn_abers

GRID = 1 / 64


def sample(n, seed, levels=400):
    """Logits on the grid of the bins, so that bins are exact, and the truth."""
    random = np.random.default_rng(seed)
    logits = random.integers(-levels, levels, n) * GRID
    return logits, (random.random(n) < expit(logits + np.sin(3 * logits))).astype(int), random


def brute_force(logits, truth, weight, new):
    """The isotonic regression at a new instance, added once as irrelevant and once as relevant, with the weight 1."""
    both = []
    for label in (0, 1):
        x = np.append(logits, new)
        levels, places = np.unique(x, return_inverse=True)
        total = np.bincount(places, np.append(weight, 1.0))
        relevant = np.bincount(places, np.append(weight * truth, label))
        both.append(isotonic_regression(relevant / total, sample_weight=total)[np.searchsorted(levels, new)])
    return both


@pytest.mark.parametrize("seed", range(12))
def test_the_kernels_are_isotonic_regression_and_one_with_the_instance_added(seed):
    random = np.random.default_rng(seed)
    sizes = random.integers(0, 25, 4)  # groups of each label; a label may have none
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    n = int(indptr[-1])
    weight = random.integers(1, 4, n) * (1.0 if seed % 2 else 0.7)
    relevant = weight * random.integers(0, 3, n) / 2
    values, levels = np.empty((2 * n, 2)), np.empty(n)
    venn_abers(weight, relevant, indptr, _blocks(n), _blocks(n), values)
    isotonic(weight, relevant, indptr, _blocks(n), levels)
    for first, last in pairwise(np.unique(indptr).tolist()):
        w, r = weight[first:last], relevant[first:last]
        np.testing.assert_allclose(levels[first:last], isotonic_regression(r / w, sample_weight=w), atol=1e-12)
        for k in range(2 * (last - first)):
            for label in (0, 1):
                where = k // 2 if k % 2 == 0 else k // 2 + 1
                more, yes = w.copy(), r.copy()
                if k % 2:
                    more, yes = np.insert(more, where, 1.0), np.insert(yes, where, label)
                else:
                    more[where], yes[where] = more[where] + 1, yes[where] + label
                expected = isotonic_regression(yes / more, sample_weight=more)[where]
                assert values[2 * first + k, label] == pytest.approx(expected, abs=1e-12)


def ends(calibration, scores):
    box = calibration.intervals(scores)
    return box.lower, box.upper


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "levels"), [(1, 400), (3, 400), (20, 10), (60, 20), (300, 400), (300, 10)])
def test_intervals_are_those_of_brute_force(n, levels, weighted):
    logits, truth, random = sample(n, n + levels, levels)
    weight = random.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    calibration = fit(logits[:, np.newaxis], truth[:, np.newaxis], "venn-abers", kind="logit", sample_weight=weight)
    between = random.integers(-levels, levels, 100) * GRID
    new = np.clip(np.concatenate([logits, between]), logits.min(), logits.max())
    lower, upper = (bound[:, 0] for bound in ends(calibration, new[:, np.newaxis]))
    p = calibration.transform(new[:, np.newaxis])[:, 0]
    expected = np.array([brute_force(logits, truth, weight, x) for x in new])
    np.testing.assert_allclose(lower, np.minimum(expected[:, 0], p), atol=1e-12)
    np.testing.assert_allclose(upper, np.maximum(expected[:, 1], p), atol=1e-12)


def test_intervals_contain_the_probability_and_shrink():
    widths = []
    for n in (100, 1000, 10_000):
        logits, truth, _ = sample(n, 0)
        calibration = fit(logits[:, np.newaxis], truth[:, np.newaxis], "venn-abers", kind="logit")
        new = np.linspace(-8, 8, 999)[:, np.newaxis]
        lower, upper = ends(calibration, new)
        p = calibration.transform(new)
        assert (lower <= p).all()
        assert (p <= upper).all()
        assert (np.diff(lower, axis=0) >= 0).all()
        assert (np.diff(upper, axis=0) >= 0).all()
        widths.append(np.mean(upper - lower))
    assert widths[0] > 3 * widths[1] > 9 * widths[2]


def test_one_of_the_two_is_calibrated():
    """Of entries whose interval is about [a, b], the relevant share is between the mean lower and upper bound."""
    random = np.random.default_rng(0)
    logits = random.normal(-1, 2, (6000, 20))
    truth = random.random(logits.shape) < expit(0.5 * logits + np.sin(logits))
    calibration = fit(logits[:1000], truth[:1000], "venn-abers", kind="logit")
    lower, upper = ends(calibration, logits[1000:])
    middle = (lower + upper) / 2
    for low in np.arange(0.1, 0.9, 0.1):
        found = (low <= middle) & (middle < low + 0.1)
        share, error = truth[1000:][found].mean(), 2.6 / np.sqrt(found.sum())
        assert lower[found].mean() - error < share < upper[found].mean() + error


@pytest.mark.parametrize("n", [20, 200, 1000])
def test_intervals_are_those_of_the_package_venn_abers(n):
    """Compared with version 1.5.4; the test is skipped where it is not installed."""
    package = pytest.importorskip("venn_abers")
    logits, truth, random = sample(n, n)
    new = np.clip(random.integers(-400, 400, 300) * GRID, logits.min(), logits.max())
    model = package.VennAbers()
    pairs = [np.column_stack([expit(-x), expit(x)]) for x in (logits, new)]
    model.fit(pairs[0], truth)
    theirs = model.predict_proba(pairs[1])[1]
    calibration = fit(logits[:, np.newaxis], truth[:, np.newaxis], "venn-abers", kind="logit")
    p = calibration.transform(new[:, np.newaxis])
    lower, upper = ends(calibration, new[:, np.newaxis])
    np.testing.assert_allclose(lower[:, 0], np.minimum(theirs[:, 0], p[:, 0]), atol=1e-6)
    np.testing.assert_allclose(upper[:, 0], np.maximum(theirs[:, 1], p[:, 0]), atol=1e-6)
