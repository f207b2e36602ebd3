"""Logistic regressions of many labels that share a normal prior, which is estimated from all of them.

For label j and a row with the features z, logit P(relevant) = slopes_j · z + offset_j, and the coefficients
θ_j = (slopes_j, offset_j) of all labels are drawn from N(μ, Σ). Labels with few relevant rows take what the others say
(partial pooling), labels with many are fitted by themselves. Slopes are never negative, so that a higher score never
means a lower probability. μ and Σ are estimated by empirical Bayes: each θ_j is the posterior mode, a convex problem
of a few variables, and the posterior is taken as normal around it (Laplace's approximation).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from abstain._utils.threads import for_each, thread_count
from abstain._utils.types import Floats
from abstain.calibration._kernels import fit_labels

MAX_ROUNDS = 20  # μ is found in three or four; Σ changes slowly after that, and matters less
MAX_ROUNDS_FROM_START = 5
TOLERANCE = 1e-3  # of the changes of μ, in standard deviations, and of the standard deviations themselves
PRIOR_LABELS = 4.0  # how many labels the prior of Σ counts for
SLOPE_SPREAD, OFFSET_SPREAD = 0.25, 0.5  # standard deviations between labels, before any label is seen
SLOPE_DOUBT, OFFSET_DOUBT = 0.5, 2.0  # standard deviations of μ around the identity


@dataclass(frozen=True)
class PooledFit:
    """The coefficients of each label, and the normal distribution that they are drawn from.

    Attributes
    ----------
    coefficients : float array of shape (n_labels, n_features + 1)
        Slopes, then the offset.
    mean : float array of shape (n_features + 1,)
    covariance : float array of shape (n_features + 1, n_features + 1)
    """

    coefficients: Floats
    mean: Floats
    covariance: Floats


@dataclass(frozen=True)
class Observations:
    """Rows of all labels, one label after the other; a row may stand for several equal ones.

    Attributes
    ----------
    features : float array of shape (n_rows, n_features)
    weight : float array of shape (n_rows,)
    relevant : float array of shape (n_rows,)
        The part of the weight in which the label is relevant.
    indptr : int array of shape (n_labels + 1,)
        The rows of label j are indptr[j] … indptr[j + 1] − 1.
    """

    features: Floats
    weight: Floats
    relevant: Floats
    indptr: NDArray[np.int64]


def fit_pooled(rows: Observations, *, identity: Floats, start: PooledFit | None = None) -> PooledFit:
    """Return the coefficients of each label, shrunk towards those of the others.

    Parameters
    ----------
    rows : Observations
        What is known of each label.
    identity : float array of shape (n_features,)
        The slopes that leave the scores unchanged: what is believed, vaguely, before any label is seen.
    start : PooledFit, optional
        A fit to similar observations, to begin with.

    Returns
    -------
    fit : PooledFit
    """
    n_features = rows.features.shape[1]
    n_labels = len(rows.indptr) - 1
    believed = np.append(identity, 0.0)
    doubt = np.diag(np.append(np.full(n_features, SLOPE_DOUBT), OFFSET_DOUBT) ** -2.0)
    spread = np.diag(np.append(np.full(n_features, SLOPE_SPREAD), OFFSET_SPREAD) ** 2)
    mean, covariance = (believed, spread) if start is None else (start.mean, start.covariance)
    theta = np.tile(mean, (n_labels, 1)) if start is None else start.coefficients.copy()
    hessians = np.empty((n_labels, n_features + 1, n_features + 1))
    for _ in range(MAX_ROUNDS if start is None else MAX_ROUNDS_FROM_START):
        precision: Floats = np.linalg.inv(covariance).astype(np.float64)
        _fit_labels(rows, mean, precision, theta, hessians)
        posterior = np.linalg.inv(hessians + precision)
        # A step of Newton's method on the marginal likelihood of μ: few labels are known well, and EM would be slow.
        information = (precision - precision @ posterior @ precision).sum(axis=0) + doubt
        pull = precision @ (theta - mean).sum(axis=0) - doubt @ (mean - believed)
        step = np.linalg.solve(information, pull)
        mean = np.append(np.maximum((mean + step)[:-1], 0.0), (mean + step)[-1])
        deviation = theta - mean
        total = deviation.T @ deviation + posterior.sum(axis=0) + PRIOR_LABELS * spread
        before, covariance = np.sqrt(np.diag(covariance)), total / (PRIOR_LABELS + n_labels)
        after = np.sqrt(np.diag(covariance))
        if max(np.abs(step / after).max(), np.abs(after / before - 1.0).max()) < TOLERANCE:
            break
    _fit_labels(rows, mean, np.linalg.inv(covariance).astype(np.float64), theta, hessians)
    return PooledFit(theta, mean, covariance)


def fit_common(rows: Observations, *, identity: Floats) -> Floats:
    """Return slopes that are the same for all labels, without an offset."""
    together = Observations(rows.features, rows.weight, rows.relevant, np.array([0, len(rows.weight)], np.int64))
    precision = np.diag(np.append(np.full(len(identity), SLOPE_DOUBT**-2), 1e12))  # the offset stays 0
    theta = np.append(identity, 0.0)[np.newaxis]
    _fit_labels(together, theta[0].copy(), precision, theta, np.empty((1, theta.shape[1], theta.shape[1])))
    return theta[0, :-1]


def _fit_labels(rows: Observations, mean: Floats, precision: Floats, theta: Floats, hessians: Floats) -> None:
    """Move the coefficients of each label to their posterior mode, and compute the Hessians of the likelihood there."""
    n_labels = len(theta)
    parts = np.unique(np.searchsorted(rows.indptr, np.linspace(0, rows.indptr[-1], 4 * thread_count() + 1)[1:-1]))
    bounds = np.unique(np.concatenate([[0], parts, [n_labels]]))

    def fit(part: tuple[int, int]) -> None:
        labels = slice(*part)
        data = rows.features, rows.weight, rows.relevant, rows.indptr[part[0] : part[1] + 1]
        fit_labels(data, mean, precision, theta[labels], hessians[labels])

    for_each(fit, zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
