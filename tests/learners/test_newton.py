"""Logistic regression by Newton's method against scikit-learn's, run to the end."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from abstain.learners import _newton
from abstain.learners._newton import NewtonLogisticRegression, minimize


def drawn(seed, n=80, d=6):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, (X @ random.normal(size=d) + random.logistic(size=n) > 0.5).astype(np.uint8)


def objective(X, y, C, coef, intercept, weight=1.0):
    scores = X @ np.ravel(coef) + intercept
    return C * np.sum(weight * (np.logaddexp(0.0, scores) - y * scores)) + 0.5 * np.sum(np.square(coef))


def easy():
    return drawn(0)


def separable():
    X, _ = drawn(1)
    return X, (X[:, 0] > 0).astype(np.uint8)


def rare():
    X, _ = drawn(2)
    return X, (np.arange(len(X)) == 3).astype(np.uint8)


def wide():
    return drawn(3, n=20, d=50)


def repeated_columns():
    X, y = drawn(4)
    return np.hstack([X, X, np.ones((len(X), 2)), np.zeros((len(X), 1))]), y


def unequal_scales():
    X, y = drawn(5)
    return X * 10.0 ** np.arange(-3, 3), y


@pytest.mark.parametrize("data", [easy, separable, rare, wide, repeated_columns, unequal_scales])
@pytest.mark.parametrize("C", [0.01, 1.0, 1e4])
def test_the_optimum_is_scikit_learns(data, C):
    X, y = data()
    ours = NewtonLogisticRegression(C).fit(X, y)
    reference = LogisticRegression(C=C, tol=1e-10, max_iter=100_000, solver="newton-cholesky").fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), reference.predict_proba(X), atol=1e-5)
    best = objective(X, y, C, reference.coef_, reference.intercept_)
    assert objective(X, y, C, ours.coef_, ours.intercept_) <= best * (1 + 1e-8) + 1e-12


def test_weights_repeat_instances():
    X, y = drawn(6)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = NewtonLogisticRegression().fit(X, y, sample_weight=weight)
    repeated = NewtonLogisticRegression().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-7)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-7)


def test_blocks_of_rows_add_up(monkeypatch):
    X, _ = drawn(7)
    root = np.random.default_rng(0).random(len(X))
    Z = np.column_stack([X, np.ones(len(X))]) * root[:, np.newaxis]
    monkeypatch.setattr(_newton, "ROWS_PER_BLOCK", 7)
    np.testing.assert_allclose(np.tril(_newton._hessian(X, root)), np.tril(Z.T @ Z), atol=1e-12)


def test_what_newton_cannot_do_scikit_learn_does(monkeypatch):
    """Without a penalty, a column of zeros makes the Hessian singular."""
    X, y = repeated_columns()
    assert minimize(X, y.astype(float), np.full(len(y), 1 / len(y)), 0.0) is None
    monkeypatch.setattr(_newton, "minimize", lambda *arguments: None)
    ours, reference = NewtonLogisticRegression().fit(X, y), LogisticRegression(tol=1e-8, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), reference.predict_proba(X), atol=1e-4)


def test_inputs_are_left_alone():
    X, y = drawn(8)
    X.flags.writeable = y.flags.writeable = False
    model = NewtonLogisticRegression().fit(X, y)
    assert model.predict_proba(X[:3]).sum(axis=1) == pytest.approx(np.ones(3))
    with pytest.raises(ValueError, match="X has 5 features, but NewtonLogisticRegression is expecting 6"):
        model.predict_proba(X[:, :5])
