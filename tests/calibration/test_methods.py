"""The fits, against slow and obviously right ones: scipy's minimisers and scikit-learn's isotonic regression."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from tests.support.simulated_scores import simulate

from abstain.calibration._groups import WIDTH, Groups
from abstain.calibration._isotonic import Isotonic
from abstain.calibration._kernels import fit_labels
from abstain.calibration._logistic import Beta, Sigmoid, Temperature
from abstain.calibration._pooled import SLOPE_DOUBT, Observations, fit_pooled


def negative_log_posterior(theta, features, weight, relevant, mean, precision):
    """The value and the gradient, without the constant."""
    z = features @ theta[:-1] + theta[-1]
    value = np.sum(weight * np.logaddexp(0, z) - relevant * z)
    residual = weight * expit(z) - relevant
    gradient = np.append(features.T @ residual, residual.sum())
    return value + 0.5 * (theta - mean) @ precision @ (theta - mean), gradient + precision @ (theta - mean)


def constrained_optimum(features, weight, relevant, mean, precision):
    return minimize(
        negative_log_posterior,
        mean,
        args=(features, weight, relevant, mean, precision),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * features.shape[1] + [(None, None)],
        options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10},
    )


def grouped(scores, truth):
    n, m = scores.shape
    labels = np.tile(np.arange(m), n)
    return Groups.of(np.clip(scores.ravel(), -16, 16), labels, truth.ravel().astype(float), np.ones(n * m), m)


@pytest.mark.parametrize("seed", range(3))
def test_the_kernel_finds_the_constrained_optimum(seed):
    random = np.random.default_rng(seed)
    at_bounds = 0
    for _ in range(30):
        n_features, n = int(random.integers(1, 4)), int(10 ** random.uniform(0, 2.5))
        x = random.normal(4 * random.normal(), 10 ** random.uniform(-2, 1), n)
        shapes = [x[:, np.newaxis], np.column_stack(Beta.features(x)), random.normal(0, 3, (n, 3))]
        features = np.ascontiguousarray(shapes[n_features - 1])
        weight = 10 ** random.uniform(-3, 3, n) if random.random() < 0.3 else np.ones(n)
        relevant = weight * (random.random(n) < expit(random.choice([-1, 1, 3]) * x))
        root = random.normal(size=(n_features + 1, n_features + 1)) * 10 ** random.uniform(-1, 0.5)
        precision = np.linalg.inv(root @ root.T + np.eye(n_features + 1) * 10 ** random.uniform(-4, 0))
        mean = np.append(np.abs(random.normal(size=n_features)), random.normal())
        start = np.append(random.random(n_features) * random.integers(0, 4, n_features), 5 * random.normal())
        theta = np.array([mean if random.random() < 0.5 else start])
        data = features, weight, relevant, np.array([0, n])
        fit_labels(data, mean, precision, theta, np.empty((1, n_features + 1, n_features + 1)))
        found = negative_log_posterior(theta[0], features, weight, relevant, mean, precision)[0]
        best = constrained_optimum(features, weight, relevant, mean, precision)
        assert (theta[0, :-1] >= 0).all()
        assert found - best.fun < 1e-7 * (1 + abs(best.fun))
        at_bounds += (theta[0, :-1] == 0).any()
    assert 2 < at_bounds < 28  # both happen


@pytest.mark.parametrize("method", [Sigmoid, Beta])
@pytest.mark.parametrize("case", ["overconfident", "noise added", "class weights balanced", "noise around one half"])
def test_each_label_is_at_its_posterior_mode(method, case):
    sample = simulate(case, n_labels=12, seed=0, n_rows=400)
    groups = grouped(sample.scores, sample.y_true)
    fitted = method.fit(groups)
    features = np.column_stack(method.features(groups.scores))
    precision = np.linalg.inv(fitted.pooled.covariance)
    for j in range(12):
        part = slice(groups.indptr[j], groups.indptr[j + 1])
        data = features[part], groups.weight[part], groups.relevant[part], fitted.pooled.mean, precision
        best = constrained_optimum(*data)
        found = np.append(fitted.slopes[j], fitted.offset[j])
        assert negative_log_posterior(found, *data)[0] - best.fun < 1e-7 * (1 + best.fun)
        p, expected = (expit(features[part] @ theta[:-1] + theta[-1]) for theta in (found, best.x))
        np.testing.assert_allclose(p, expected, atol=1e-4)


def test_the_temperature_is_the_best_common_slope():
    sample = simulate("overconfident", n_labels=8, seed=0)
    fitted = Temperature.fit(grouped(sample.scores, sample.y_true))
    x, y = sample.scores.ravel(), sample.y_true.ravel()

    def objective(slope):
        return np.sum(np.logaddexp(0, slope * x) - y * slope * x) + 0.5 * ((slope - 1) / SLOPE_DOUBT) ** 2

    best = minimize(lambda s: objective(s[0]), [1.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    np.testing.assert_allclose(fitted.slopes, best.x[0], atol=1e-3)
    assert not fitted.offset.any()
    assert fitted.slopes[0, 0] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("method", [Sigmoid, Beta])
def test_groups_lose_next_to_nothing(method):
    """The greatest difference of a probability in these cases is 3.0e-4 (sigmoid) and 2.4e-4 (beta)."""
    for case in ("calibrated", "overconfident", "class weights balanced"):
        sample = simulate(case, n_labels=12, seed=1)
        fitted = method.fit(grouped(sample.scores, sample.y_true))
        each = np.column_stack(method.features(sample.scores.T.ravel()))
        rows = Observations(each, np.ones(len(each)), sample.y_true.T.ravel().astype(float), np.arange(13) * 1500)
        exact = fit_pooled(rows, identity=np.array(method.identity)).coefficients
        ungrouped = method(fitted.low, fitted.high, exact[:, :-1], exact[:, -1])
        p, q = (each.probabilities(sample.scores, np.arange(12)) for each in (fitted, ungrouped))
        np.testing.assert_allclose(p, q, atol=1e-3)


def test_shrinkage_is_more_the_fewer_relevant_rows():
    """Twenty labels deserve the slope 1, two others 0.3: the frequent one of these gets it, the rare one does not."""
    random = np.random.default_rng(0)
    mean = np.concatenate([np.full(20, -1.0), [-1.0, -8.0]])
    true = random.normal(mean, 1.5, (3000, 22))
    scores = np.where(np.arange(22) < 20, true, true / 0.3)
    truth = random.random(true.shape) < expit(true)
    slopes = Sigmoid.fit(grouped(scores, truth)).slopes[:, 0]
    assert slopes[:20] == pytest.approx(np.ones(20), abs=0.2)
    assert slopes[20] == pytest.approx(0.3, abs=0.05)
    assert slopes[21] > 0.4


def test_isotonic_curves_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    x = random.normal(0, 2, 100_000)
    y = (random.random(100_000) < expit(np.maximum(x, -1) + np.sin(2 * x))).astype(float)
    groups = grouped(x[:, np.newaxis], y[:, np.newaxis])
    fitted = Isotonic.fit(groups)
    same = IsotonicRegression(out_of_bounds="clip").fit(groups.scores, groups.relevant / groups.weight, groups.weight)
    grid = np.linspace(-7, 7, 1000)
    label = np.zeros(1, np.intp)
    np.testing.assert_allclose(fitted.curves.interpolate(grid, label), same.predict(grid), atol=1e-12)
    p, ungrouped = fitted.probabilities(grid, label), IsotonicRegression(out_of_bounds="clip").fit(x, y).predict(grid)
    assert fitted.share[0] > 0.99
    within = np.abs(grid) < 4
    assert np.abs(p - ungrouped)[within].max() < 0.05
    assert np.abs(p - ungrouped)[within].mean() < 0.003


def test_bins_keep_sums_and_means():
    random = np.random.default_rng(0)
    x, y, w = random.normal(0, 6, (500, 3)), random.integers(0, 2, (500, 3)), random.random((500, 3))
    labels = np.tile(np.arange(3), 500)
    groups = Groups.of(np.clip(x.ravel(), -16, 16), labels, y.ravel().astype(float), w.ravel(), 3)
    for j, (weight, relevant) in enumerate(np.transpose(groups.totals())):
        assert weight == pytest.approx(w[:, j].sum())
        assert relevant == pytest.approx((w * y)[:, j].sum())
        part = slice(groups.indptr[j], groups.indptr[j + 1])
        expected = np.sum(w[:, j] * np.clip(x[:, j], -16, 16))
        assert groups.scores[part] @ groups.weight[part] == pytest.approx(expected)
        assert (np.diff(groups.scores[part]) > 0).all()
    low, high = groups.ranges()
    np.testing.assert_allclose(low, np.clip(x.min(axis=0), -16, 16), atol=WIDTH)
    np.testing.assert_allclose(high, np.clip(x.max(axis=0), -16, 16), atol=WIDTH)


def test_groups_of_batches_are_those_of_the_whole():
    random = np.random.default_rng(0)
    x, y = random.normal(0, 6, (500, 3)), random.integers(0, 2, (500, 3))
    whole = grouped(x, y)
    merged = Groups.merged([grouped(x[rows], y[rows]) for rows in (slice(0, 7), slice(7, 300), slice(300, 500))])
    np.testing.assert_array_equal(whole.cells, merged.cells)
    np.testing.assert_allclose(whole.weight, merged.weight)
    np.testing.assert_allclose(whole.relevant, merged.relevant)
    np.testing.assert_allclose(whole.scores, merged.scores)
