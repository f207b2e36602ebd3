"""Logistic regression on dense features, many times over: one fit for each label of each chain."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dposv
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

MOST_STEPS = 100
SMALL_DECREMENT = 1e-9  # a step that gains so little leaves the square of it
ROWS_OF_A_BLOCK = 2048  # weighted rows stay in the cache until they are multiplied


class NewtonLogisticRegression(BaseEstimator):
    """Argmin over w, b of mean log(1 + exp(−(2y − 1)(w·x + b))) + |w|² / (2 C n), for dense X and y of 0 and 1.

    The optimum of scikit-learn's `LogisticRegression`. Newton's method with half the multiplications (the Hessian is
    symmetric) and no checks of what was checked before takes half to two thirds of its time on published data. Where
    the Hessian is singular in floating point, scikit-learn takes over. An inner part of `BinaryLogisticRegression`,
    which has checked y.
    """

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the optimum; both classes must be there."""
        if not self.C > 0:
            raise ValueError(f"C is {self.C!r}; expected a number > 0")
        X = validate_data(self, X, dtype=np.float64)
        y = np.asarray(y, np.float64)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        self.classes_ = np.array([0, 1])
        found = minimum(X, y, weight / weight.sum(), 1.0 / (self.C * weight.sum()))
        if found is None:
            other = LogisticRegression(C=self.C, solver="newton-cg", tol=1e-6, max_iter=1000)
            other.fit(X, y, sample_weight=sample_weight)
            found = np.append(other.coef_, other.intercept_)
        self.coef_, self.intercept_ = found[:-1], found[-1]
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """P(0) and P(1), n × 2."""
        check_is_fitted(self)
        relevant = expit(validate_data(self, X, dtype=np.float64, reset=False) @ self.coef_ + self.intercept_)
        return np.column_stack([1.0 - relevant, relevant])


def minimum(
    X: NDArray[np.float64], y: NDArray[np.float64], weight: NDArray[np.float64], ridge: float
) -> NDArray[np.float64] | None:
    """(w, b) that minimise Σ weight · logistic loss + ridge/2 |w|², or None where rounding is in the way."""
    point, scores, value = np.zeros(X.shape[1] + 1), np.zeros(len(X)), np.log(2.0)
    for _ in range(MOST_STEPS):
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
        if decrement <= SMALL_DECREMENT:
            return point
    return None


def _hessian(X: NDArray[np.float64], root: NDArray[np.float64]) -> NDArray[np.float64]:
    """Zᵀ Z, its lower triangle, of the rows of X and 1, each times its root."""
    n, d = X.shape
    total = np.zeros((d + 1, d + 1), order="F")
    block = np.empty((min(n, ROWS_OF_A_BLOCK), d + 1))
    for first in range(0, n, len(block)):
        rows = slice(first, first + len(block))
        part = block[: len(root[rows])]
        np.multiply(X[rows], root[rows, np.newaxis], out=part[:, :d])
        part[:, d] = root[rows]
        total = dsyrk(1.0, part.T, beta=1.0, c=total, lower=True, overwrite_c=True)
    return total
