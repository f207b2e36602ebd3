"""Logistic regression of many labels at once reaches scikit-learn's optimum for each of them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from abstain.learners import _logistic
from abstain.learners._logistic import fit_logistic

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 12)) * (RANDOM.random((300, 12)) < 0.4)
Y = (X @ RANDOM.normal(size=(12, 7)) + RANDOM.normal(size=(300, 7)) > np.linspace(0, 4, 7)).astype(np.int8)
WEIGHTS = RANDOM.random(300) + 0.5


def optimum(features, weights, C):
    fitted = [LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(features, y, sample_weight=weights) for y in Y.T]
    return np.vstack([np.column_stack([model.coef_[0] for model in fitted]), [model.intercept_[0] for model in fitted]])


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_the_optimum_is_that_of_scikit_learn(C, kind, monkeypatch):
    monkeypatch.setattr(_logistic, "TOLERANCE", 1e-12)
    monkeypatch.setattr(_logistic, "MAX_RESIDUAL", 1e-6)
    found = fit_logistic(kind(X), Y, WEIGHTS, C=C, n_jobs=None)
    np.testing.assert_allclose(found, optimum(X, WEIGHTS, C), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("C", [0.01, 100.0])
def test_near_the_optimum_as_it_is_used(C):
    """What the tolerance leaves is at most a thousandth of a nat in all."""
    found, best = fit_logistic(X, Y, WEIGHTS, C=C, n_jobs=None), optimum(X, WEIGHTS, C)

    def objective(w):
        scores = X @ w[:-1] + w[-1]
        return (WEIGHTS[:, np.newaxis] * (np.logaddexp(0, scores) - Y * scores)).sum(axis=0) + (w[:-1] ** 2).sum(
            axis=0
        ) / (2 * C)

    assert (objective(found) - objective(best)).max() < 1e-3


def test_blocks_of_labels_and_jobs_change_nothing(monkeypatch):
    whole = fit_logistic(X, Y, WEIGHTS, C=1.0, n_jobs=None)
    monkeypatch.setattr(_logistic, "MAX_LABELS_PER_BLOCK", 2)
    parts = fit_logistic(X, Y, WEIGHTS, C=1.0, n_jobs=None)
    np.testing.assert_allclose(parts, whole, atol=1e-9)
    np.testing.assert_array_equal(fit_logistic(X, Y, WEIGHTS, C=1.0, n_jobs=2), parts)


def test_a_start_saves_steps_and_changes_little(monkeypatch):
    started = fit_logistic(X, Y, WEIGHTS, C=1.0, start=optimum(X, WEIGHTS, 1.0), n_jobs=None)
    np.testing.assert_allclose(started, optimum(X, WEIGHTS, 1.0), atol=1e-3)
    monkeypatch.setattr(_logistic, "MAX_STEPS", 1)
    np.testing.assert_allclose(
        fit_logistic(X, Y, WEIGHTS, C=1.0, start=started, n_jobs=None), optimum(X, WEIGHTS, 1.0), atol=1e-3
    )


def test_labels_with_one_relevant_row():
    rare = np.zeros((300, 3), np.int8)
    rare[[5, 17, 200], [0, 1, 2]] = 1
    found = fit_logistic(X, rare, np.ones(300), C=1.0, n_jobs=None)
    slow = [LogisticRegression(tol=1e-10, max_iter=10_000).fit(X, y) for y in rare.T]
    expected = np.column_stack([model.predict_proba(X)[:, 1] for model in slow])
    np.testing.assert_allclose(1 / (1 + np.exp(-(X @ found[:-1] + found[-1]))), expected, atol=1e-3)
