"""Joint distributions with other marginals, or with more independence."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, logit, logsumexp

import abstain
from abstain._core import tilting
from abstain._core.kernels.tilting import FREE


def random_samples(n=6, k=40, m=5, seed=0):
    """Samples of dependent labels, in which each label is 0 in some and 1 in others; their weights differ."""
    random = np.random.default_rng(seed)
    common = random.normal(size=(n, k, 1))
    labels = (random.normal(size=(n, k, m)) + common > random.normal(scale=0.5, size=(n, 1, m))).astype(np.uint8)
    labels[:, 0], labels[:, 1] = 0, 1
    weights = random.dirichlet(np.ones(k), size=n)
    return labels, weights


def moderate_targets(joint, seed=0):
    p = joint.marginals.values
    return expit(logit(np.clip(p, 1e-3, 1 - 1e-3)) + np.random.default_rng(seed).normal(scale=0.5, size=p.shape))


def tilted_by_scipy(labels, weights, target):
    """The slow way: minimise the convex dual."""

    def dual(point):
        scores = np.log(weights) + labels @ point
        share = np.exp(scores - logsumexp(scores))
        return logsumexp(scores) - point @ target, share @ labels - target

    point = minimize(dual, np.zeros(labels.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    scores = np.log(weights) + labels @ point
    return np.exp(scores - logsumexp(scores))


def chances(joint):
    """The probability of each label vector in each row, as dicts."""
    parts = joint._all_components()
    assert parts.are_samples
    result = [{} for _ in range(joint.n_rows)]
    for row, weight, index in zip(parts.row, parts.weights, parts.index, strict=True):
        vector = tuple(parts.values[index].tolist())
        result[row][vector] = result[row].get(vector, 0.0) + weight
    return result


def test_tilting_is_the_optimum_of_the_convex_dual():
    labels, weights = random_samples()
    joint = abstain.Samples(labels, weights)
    targets = moderate_targets(joint)
    tilted = joint.with_marginals(targets)
    np.testing.assert_allclose(tilted.marginals.values, targets, atol=1e-8)
    assert tilted.n_components == joint.n_components, "nothing had to be added"
    for i, found in enumerate(chances(tilted)):
        expected = {}
        optimum = tilted_by_scipy(labels[i].astype(float), weights[i], targets[i])
        for vector, weight in zip(map(tuple, labels[i].tolist()), optimum, strict=True):
            expected[vector] = expected.get(vector, 0.0) + weight
        assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_samples_that_rows_share(container):
    labels, weights = random_samples(n=1, k=30)
    weights = np.random.default_rng(1).dirichlet(np.full(30, 0.3), size=7)
    shared = abstain.Samples(labels[0], container(weights))
    own = abstain.Samples(np.repeat(labels, 7, axis=0), weights)
    targets = moderate_targets(own)
    tilted, other = shared.with_marginals(targets), own.with_marginals(targets)
    assert tilted.is_shared
    np.testing.assert_allclose(tilted.marginals.values, targets, atol=1e-6)
    for one, two in zip(chances(tilted), chances(other), strict=True):
        assert one == pytest.approx(two, abs=1e-9)


def test_its_own_marginals_change_nothing():
    labels, weights = random_samples()
    joint = abstain.Samples(labels, weights)
    for one, two in zip(chances(joint), chances(joint.with_marginals(joint.marginals)), strict=True):
        assert one == pytest.approx(two, abs=1e-12)


@pytest.mark.parametrize("shared", [False, True])
def test_what_samples_lack_is_added(shared):
    """The first label is never relevant, the second always; a third and a fourth are equal, which they must not be."""
    labels = np.array([[0, 1, 0, 0], [0, 1, 1, 1]], np.uint8)
    targets = np.array([[0.1, 0.7, 0.5, 0.5], [0.0, 1.0, 0.3, 0.6], [1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.4, 0.4]])
    weights = np.full((4, 2), 0.5)
    joint = abstain.Samples(labels, weights) if shared else abstain.Samples(np.tile(labels, (4, 1, 1)), weights)
    tilted = joint.with_marginals(targets)
    np.testing.assert_allclose(tilted.marginals.values, targets, atol=1e-6)
    np.testing.assert_allclose(tilted._all_components().marginals(), targets, atol=1e-6)
    assert chances(tilted)[3] == pytest.approx({(0, 1, 0, 0): 0.6, (0, 1, 1, 1): 0.4}, abs=1e-6)
    assert chances(tilted)[2][1, 0, 0, 1] == pytest.approx(1.0, abs=1e-6)


def test_moderate_tilts_have_no_ridge():
    """Odds of e^7 are still reached by weights alone."""
    joint = abstain.Samples([[[0, 0], [1, 0], [0, 1], [1, 1]]])
    targets = expit([[7.0, -7.0]])
    assert FREE > 7
    tilted = joint.with_marginals(targets)
    assert tilted.n_components == 4
    np.testing.assert_allclose(tilted.marginals.values, targets, atol=1e-8)


def test_results_do_not_depend_on_the_other_rows(monkeypatch):
    labels, weights = random_samples(n=9)
    joint = abstain.Samples(labels, weights)
    targets = moderate_targets(joint)
    whole = chances(joint.with_marginals(targets).with_independence(0.3))
    monkeypatch.setattr(tilting, "ROWS_PER_TASK", 2)
    assert chances(joint.with_marginals(targets).with_independence(0.3)) == whole
    rows = np.array([4, 1])
    assert chances(joint.take(rows).with_marginals(targets[rows]).with_independence(0.3)) == [whole[4], whole[1]]


def random_mixture(n=6, k=4, m=5, seed=0):
    random = np.random.default_rng(seed)
    return random.dirichlet(np.ones(k), size=n), random.beta(0.5, 0.5, size=(n, k, m))


@pytest.mark.parametrize("shared", [False, True])
def test_mixtures_shift_log_odds(shared):
    weights, probabilities = random_mixture()
    joint = abstain.Mixture(weights, probabilities[0] if shared else probabilities)
    targets = np.random.default_rng(3).random(joint.shape)
    shifted = joint.with_marginals(targets)
    np.testing.assert_allclose(shifted.marginals.values, targets, atol=1e-12)
    parts = shifted._all_components()
    before = np.broadcast_to(probabilities[0], probabilities.shape) if shared else probabilities
    moved = logit(parts.values[parts.index].reshape(before.shape)) - logit(before)
    np.testing.assert_allclose(moved, np.broadcast_to(moved[:, :1], moved.shape), atol=1e-7)


def test_certain_components_move_where_they_must():
    joint = abstain.Mixture([0.5, 0.5], [[[0.0, 1.0, 0.0, 0.5], [0.0, 1.0, 1.0, 1.0]]])
    targets = np.array([[0.2, 0.7, 0.3, 0.4]])
    shifted = joint.with_marginals(targets)
    np.testing.assert_allclose(shifted.marginals.values, targets, atol=1e-12)
    np.testing.assert_allclose(
        shifted._all_components().values, [[0.2, 0.7, 0.0, 0.0], [0.2, 0.7, 0.6, 0.8]], atol=1e-12
    )
    for edge in (0.0, 1.0):
        np.testing.assert_allclose(joint.with_marginals(np.full((1, 4), edge)).marginals.values, edge, atol=1e-12)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_share_of_independence_keeps_the_marginals(shared, share):
    labels, weights = random_samples(n=3)
    for joint in (
        abstain.Samples(labels[0] if shared else labels, weights),
        abstain.Mixture(*random_mixture(n=3)) if not shared else abstain.Mixture(weights, 0.1 + 0.8 * labels[0]),
    ):
        mixed = joint.with_independence(share)
        np.testing.assert_allclose(mixed.marginals.values, joint.marginals.values, atol=1e-6)
        parts, p = mixed._all_components(), joint.marginals.values
        np.testing.assert_allclose(np.add.reduceat(parts.weights, parts.indptr[:-1]), 1.0)
        both = np.array([w.prod(axis=1) @ g for w, g in _split(parts)])
        before = np.array([w.prod(axis=1) @ g for w, g in _split(joint._all_components())])
        np.testing.assert_allclose(both, (1 - share) * before + share * p[:, 0] * p[:, 1], atol=0.04 * share + 1e-9)


def _split(parts):
    for first, last in zip(parts.indptr[:-1], parts.indptr[1:], strict=True):
        yield parts.values[parts.index[first:last]][:, :2].astype(float), parts.weights[first:last]


def test_independence_alone_decides_as_the_marginals_do():
    joint = abstain.Mixture(*random_mixture())
    alone = abstain.decide(joint.with_independence(1.0), "rank", 0.3)
    np.testing.assert_allclose(alone.expected_loss, abstain.decide(joint.marginals, "rank", 0.3).expected_loss)


def test_names_are_kept_and_compared():
    joint = abstain.Samples([[[0, 1], [1, 1]]], label_names=["sky", "sea"])
    assert joint.with_marginals([[0.3, 0.9]]).with_independence(0.1).marginals.label_names == ("sky", "sea")
    with pytest.raises(abstain.InvalidLabels, match="another order"):
        joint.with_marginals(abstain.Table([[0.3, 0.9]], ["sea", "sky"]))


def test_limits_are_changed_one_by_one():
    joint = abstain.Samples([[[0, 1]]], node_limit=5)
    assert joint.with_limits(certify=False).limits == (5, False, False)
    assert joint.with_limits(node_limit=9).with_marginals([[0.5, 0.5]]).limits == (9, True, False)
    with pytest.raises(abstain.InvalidProbabilities, match="node_limit is 0"):
        joint.with_limits(node_limit=0)


def test_mistakes():
    joint = abstain.Samples([[[0, 1], [1, 1]]])
    with pytest.raises(abstain.InvalidProbabilities, match=r"shape \(1, 3\); the joint distribution has \(1, 2\)"):
        joint.with_marginals([[0.1, 0.2, 0.3]])
    with pytest.raises(abstain.InvalidProbabilities, match=r"1\.2"):
        joint.with_marginals([[0.1, 1.2]])
    for share in (-0.1, 1.5, "half", True, np.nan):
        with pytest.raises(abstain.InvalidParameter, match="share is"):
            joint.with_independence(share)
    with pytest.raises(abstain.InvalidParameter, match="samples is 0"):
        joint.with_independence(0.5, samples=0)
