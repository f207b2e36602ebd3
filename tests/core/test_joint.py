"""Joint distributions: what is read of them, and decisions from them against all partial predictions × all truths."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from tests.support import cases

import abstain
from abstain._core import exhaustive
from abstain._core.penalties import as_penalty
from abstain.metrics import expected_generalized_loss

ROWS = 60
LOSS_CASES = [case for case in cases.LOSS_CASES if cases.make_loss(case, 2).takes_joint]
PAIRS = [(loss, penalty) for loss in LOSS_CASES for penalty in cases.PENALTY_CASES]
BRUTE_LABELS = {"rank": (1, 2, 3, 5)}


def random_samples(n, m, seed=0, **options):
    """Few and many samples, equal ones among them, with equal, tied and random weights, and certain labels."""
    rng = np.random.default_rng(seed + 100 * m)
    labels = rng.random((n, 12, m)) < rng.beta(0.5, 0.7, (n, 1, m))
    labels[1::4] = labels[1::4, rng.integers(0, 4, 12)]  # few distinct ones
    labels[2::4, 6:] = ~labels[2::4, :6]  # each and its opposite
    labels[3::8] = labels[3::8, :1]  # a single one
    weights = rng.dirichlet(np.full(12, 0.5), n)
    weights[::3] = 1 / 12
    weights[1::6] = np.array([3, 2, 1, 1, 1] + [0] * 7) / 8
    labels.flags.writeable = weights.flags.writeable = False
    return abstain.Samples(labels, weights, **options)


def random_mixture(n, m, seed=0, **options):
    """Components that agree or contradict each other, with equal and random weights; certain labels among them."""
    rng = np.random.default_rng(seed + 100 * m + 1)
    p = rng.beta(0.5, 0.7, (n, 3, m))
    p[1::4] = np.sort(p[1::4], axis=2)  # comonotone
    p[2::4, 1] = 1 - p[2::4, 0]
    p[3::8] = np.round(p[3::8] * 4) / 4
    p[4::8, 1:] = p[4::8, :1]  # equal components
    weights = rng.dirichlet(np.ones(3), n)
    weights[::3] = np.array([0.5, 0.25, 0.25])
    p.flags.writeable = weights.flags.writeable = False
    return abstain.Mixture(weights, p, **options)


JOINTS = [random_samples, random_mixture]


def expected_by_sum(joint, loss, codes):
    """E[ℓ] of each instance and partial prediction: the sum over all components and all truths."""
    n, m = joint.shape
    values, weights = joint._values.astype(float), joint._weights
    truths = np.array(list(product((0, 1), repeat=m)), dtype=bool)
    chances = np.zeros((n, len(truths)))
    for k in range(joint.n_components):
        for t, y in enumerate(truths):
            chances[:, t] += weights[:, k] * np.where(y, values[:, k], 1 - values[:, k]).prod(axis=1)
    losses = np.stack(
        [
            loss.realized(
                exhaustive.Block(slice(0, len(codes)), codes.shape, codes), np.tile(y, (len(codes), 1)), codes
            )
            for y in truths
        ]
    )
    return chances @ losses


@pytest.mark.parametrize(("loss_case", "penalty_case"), PAIRS, ids=str)
@pytest.mark.parametrize("make", JOINTS)
def test_decision_is_optimal_and_abstains_least(make, loss_case, penalty_case):
    for m in BRUTE_LABELS.get(loss_case[0], (1, 2, 4)):
        loss, penalty = cases.make_loss(loss_case, m), cases.make_penalty(penalty_case, m)
        joint = make(ROWS, m)
        codes = exhaustive.partial_rankings(m) if loss.gives_rankings else exhaustive.partial_predictions(m)
        n_abstained = (codes == -1).sum(axis=1)
        totals = expected_by_sum(joint, loss, codes) + as_penalty(penalty).bind(m).charge(n_abstained, codes == -1)
        prediction = abstain.decide(joint, loss, penalty)
        np.testing.assert_allclose(prediction.expected_loss, totals.min(axis=1), rtol=0, atol=1e-11)
        assert (prediction.gap == 0).all()
        chosen = (prediction.codes[:, np.newaxis] == codes).all(axis=2).argmax(axis=1)
        np.testing.assert_allclose(totals[np.arange(ROWS), chosen], prediction.expected_loss, rtol=0, atol=1e-11)
        by_count = np.stack([np.where(n_abstained == a, totals, np.inf).min(axis=1) for a in range(m + 1)], axis=1)
        cases.assert_fewest_of_the_best(by_count, loss.tie_scale, prediction.n_abstained)
