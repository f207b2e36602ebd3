"""Logistic regression on dense features by Newton's method, for many fits: one for each label of each chain."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dposv
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from abstain._utils.errors import InvalidParameter

MAX_STEPS = 100
TOLERANCE = 1e-9  # of the decrement; convergence is quadratic, so the next one would be its square
ROWS_PER_BLOCK = 2048  # weighted rows stay in the cache until they are multiplied


class NewtonLogisticRegression(BaseEstimator):
    """Argmin over w, b of mean log(1 + exp(−(2y − 1)(w·x + b))) + |w|² / (2 C n), for dense X and y of 0 and 1.

    The optimum of scikit-learn's `LogisticRegression`. Newton's method with half the multiplications (the Hessian is
    symmetric) and no checks of what was checked before takes half to two thirds of its time on published data. Where
    the Hessian is singular in floating point, scikit-learn takes over. Part of `BinaryLogisticRegression`, which has
    checked y.
    """

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the optimum; both classes must be present."""
        if not self.C > 0:
            raise InvalidParameter(f"C is {self.C!r}; expected a number > 0")
        X = validate_data(self, X, dtype=np.float64)
        y = np.asarray(y, np.float64)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        self.classes_ = np.array([0, 1])
        found = minimize(X, y, weight / weight.sum(), 1.0 / (self.C * weight.sum()))
        if found is None:
            fallback = LogisticRegression(C=self.C, solver="newton-cg", tol=1e-6, max_iter=1000)
            fallback.fit(X, y, sample_weight=sample_weight)
            found = np.append(fallback.coef_, fallback.intercept_)
        self.coef_, self.intercept_ = found[:-1], found[-1]
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return P(0) and P(1), of shape (n_instances, 2)."""
        check_is_fitted(self)
        relevant = expit(validate_data(self, X, dtype=np.float64, reset=False) @ self.coef_ + self.intercept_)
        return np.column_stack([1.0 - relevant, relevant])


def minimize(
    X: NDArray[np.float64], y: NDArray[np.float64], weight: NDArray[np.float64], ridge: float
) -> NDArray[np.float64] | None:
    """Argmin over (w, b) of Σ weight · logistic loss + ridge/2 |w|²; None if rounding errors prevent convergence."""
    point, scores, value = np.zeros(X.shape[1] + 1), np.zeros(len(X)), np.log(2.0)
    for _ in range(MAX_STEPS):
        p = expit(scores)
        residual = weight * (p - y)
        gradient = np.append(X.T @ residual + ridge * point[:-1], residual.sum())
        hessian = _hessian(X, np.sqrt(weight * p * (1.0 - p)))
        hessian[np.diag_indices(X.shape[1])] += ridge
        _, step, failed = dposv(hessian, -gradient, lower=True, overwrite_a=True)
        if failed:
            return None
        decrement = -float(gradient @ step)
        direction, length = X @ step[:-1] + step[-1], 1.0
        while True:  # halve the step until it gains what its slope promises, up to rounding
            tried, moved = point + length * step, scores + length * direction
            reached = float(weight @ (np.logaddexp(0.0, moved) - y * moved) + 0.5 * ridge * tried[:-1] @ tried[:-1])
            if reached <= value - 1e-4 * length * decrement + 1e-15 * value:
                break
            length *= 0.5
            if length < 1e-10:
                return None
        point, scores, value = tried, moved, reached
        if decrement <= TOLERANCE:
            return point
    return None


def _hessian(X: NDArray[np.float64], root: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower triangle of Zᵀ Z, where Z are the rows of (X, 1), each times its root."""
    n, d = X.shape
    total = np.zeros((d + 1, d + 1), order="F")
    block = np.empty((min(n, ROWS_PER_BLOCK), d + 1))
    for first in range(0, n, len(block)):
        rows = slice(first, first + len(block))
        part = block[: len(root[rows])]
        np.multiply(X[rows], root[rows, np.newaxis], out=part[:, :d])
        part[:, d] = root[rows]
        total = dsyrk(1.0, part.T, beta=1.0, c=total, lower=True, overwrite_c=True)
    return total
