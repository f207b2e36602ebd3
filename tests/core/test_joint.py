"""Joint distributions: what is read of them, and decisions from them against all partial predictions × all truths."""

from functools import cache
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

ROWS = 32
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


@cache
def brute_force(make, loss_case, m):
    """All partial predictions, and E[ℓ] of each instance and each of them: the sum over all components and truths."""
    joint, loss = make(ROWS, m), cases.make_loss(loss_case, m)
    codes = exhaustive.partial_rankings(m) if loss.gives_rankings else exhaustive.partial_predictions(m)
    n = len(joint)
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
    return joint, codes, chances @ losses


@pytest.mark.parametrize(("loss_case", "penalty_case"), PAIRS, ids=str)
@pytest.mark.parametrize("make", JOINTS)
def test_decision_is_optimal_and_abstains_least(make, loss_case, penalty_case):
    for m in BRUTE_LABELS.get(loss_case[0], (1, 2, 4)):
        loss, penalty = cases.make_loss(loss_case, m), cases.make_penalty(penalty_case, m)
        joint, codes, expected = brute_force(make, loss_case, m)
        n_abstained = (codes == -1).sum(axis=1)
        totals = expected + as_penalty(penalty).bind(m).charge(n_abstained, codes == -1)
        prediction = abstain.decide(joint, loss, penalty)
        np.testing.assert_allclose(prediction.expected_loss, totals.min(axis=1), rtol=0, atol=1e-11)
        assert (prediction.gap == 0).all()
        chosen = (prediction.codes[:, np.newaxis] == codes).all(axis=2).argmax(axis=1)
        np.testing.assert_allclose(totals[np.arange(ROWS), chosen], prediction.expected_loss, rtol=0, atol=1e-11)
        by_count = np.stack([np.where(n_abstained == a, totals, np.inf).min(axis=1) for a in range(m + 1)], axis=1)
        cases.assert_fewest_of_the_best(by_count, loss.tie_scale, prediction.n_abstained)


@pytest.mark.parametrize("loss_case", LOSS_CASES, ids=str)
@pytest.mark.parametrize("make", JOINTS)
def test_never_worse_than_the_decision_from_marginals(make, loss_case):
    m = 9
    joint, loss = make(40, m, 1), cases.make_loss(loss_case, m)
    for penalty in (0.02, 0.3, abstain.Concave(0.1), "none"):
        ours, other = abstain.decide(joint, loss, penalty), abstain.decide(joint.marginals, loss, penalty)
        known = expected_generalized_loss(joint, other, loss=loss, penalty=penalty, per_instance=True)
        assert (ours.expected_loss <= known + 1e-11).all()
        np.testing.assert_allclose(
            expected_generalized_loss(joint, ours, loss=loss, penalty=penalty, per_instance=True),
            ours.expected_loss,
            rtol=0,
            atol=1e-11,
        )
        assert (ours.gap >= 0).all()


@pytest.mark.parametrize(("loss_case", "penalty_case"), PAIRS, ids=str)
def test_one_component_decides_as_probabilities(loss_case, penalty_case):
    if penalty_case[0] == "perlabel" and not cases.make_loss(loss_case, 2).is_decomposable:
        pytest.skip("prices of labels need a joint distribution")
    for m in (1, 5):
        p = cases.random_probabilities(60, m)
        loss, penalty = cases.make_loss(loss_case, m), cases.make_penalty(penalty_case, m)
        ours = abstain.decide(abstain.Mixture([1.0], p[:, np.newaxis]), loss, penalty)
        known = abstain.decide(p, loss, penalty)
        np.testing.assert_allclose(ours.expected_loss, known.expected_loss, rtol=0, atol=1e-11)
        np.testing.assert_array_equal(ours.n_abstained, known.n_abstained)


@pytest.mark.parametrize("loss_case", LOSS_CASES, ids=str)
def test_samples_are_a_mixture_of_certain_components(loss_case):
    m = 4
    samples, loss = random_samples(ROWS, m), cases.make_loss(loss_case, m)
    mixture = abstain.Mixture(samples._weights, samples._values.astype(float))
    for penalty in (0.05, abstain.Concave(0.2), [0, 0.3, 0.1, 0.2, 0.4]):
        ours, other = abstain.decide(samples, loss, penalty), abstain.decide(mixture, loss, penalty)
        np.testing.assert_allclose(ours.expected_loss, other.expected_loss, rtol=0, atol=1e-11)
        np.testing.assert_array_equal(ours.n_abstained, other.n_abstained)


@pytest.mark.parametrize("loss_case", LOSS_CASES, ids=str)
def test_order_of_labels_and_samples_and_repeated_samples_change_nothing(loss_case):
    m, rng = 5, np.random.default_rng(0)
    joint, loss = random_samples(ROWS, m), cases.make_loss(loss_case, m)
    if loss.is_decomposable and loss != abstain.Hamming:
        loss = abstain.Hamming()
    before = abstain.decide(joint, loss, 0.07).expected_loss
    values, weights = joint._values, joint._weights
    labels, samples = rng.permutation(m), rng.permutation(12)
    moved = abstain.Samples(values[:, samples][:, :, labels], weights[:, samples])
    twice = abstain.Samples(np.concatenate([values, values], axis=1), np.concatenate([weights, weights], axis=1) / 2)
    for other in (moved, twice):
        np.testing.assert_allclose(abstain.decide(other, loss, 0.07).expected_loss, before, rtol=0, atol=1e-11)


@pytest.mark.parametrize("loss", ["hamming", "rank"])
def test_samples_of_independent_labels_decide_as_probabilities_in_the_limit(loss):
    p = np.random.default_rng(0).random((20, 4))
    truths = np.array(list(product((0, 1), repeat=4)))
    weights = np.stack([np.where(y, p, 1 - p).prod(axis=1) for y in truths], axis=1)
    ours, known = abstain.decide(abstain.Samples(truths, weights), loss, 0.1), abstain.decide(p, loss, 0.1)
    np.testing.assert_array_equal(ours.codes, known.codes)
    np.testing.assert_allclose(ours.expected_loss, known.expected_loss, atol=1e-12)


def test_shared_samples_are_those_of_each_instance():
    rng = np.random.default_rng(0)
    table, weights = rng.random((15, 4)) < 0.4, rng.dirichlet(np.full(15, 0.3), 20)
    weights[weights < 0.02] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    each = abstain.Samples(np.repeat(table[np.newaxis], 20, axis=0), weights)
    for shared in (abstain.Samples(table, weights), abstain.Samples(table, sparse.csr_array(weights))):
        assert shared.n_components < 15  # equal samples have become one
        np.testing.assert_allclose(shared.marginals.values, each.marginals.values, atol=1e-15)
        ours, other = abstain.decide(shared, "rank", 0.2), abstain.decide(each, "rank", 0.2)
        np.testing.assert_array_equal(ours.codes, other.codes)
        part = abstain.decide(shared.take(np.array([3, 5])), "rank", 0.2)
        np.testing.assert_array_equal(part.codes, ours.codes[[3, 5]])


def test_names_of_labels_and_rows_are_kept():
    table = pd.DataFrame([[0, 1], [1, 1]], columns=["sky", "sea"])
    weights = pd.DataFrame([[0.5, 0.5], [0.9, 0.1]], index=["a.png", "b.png"])
    joint = abstain.Samples(table, weights)
    prediction = abstain.decide(joint, "hamming", 0.3)
    assert prediction.label_names == ("sky", "sea")
    assert list(prediction.to_frame().index) == ["a.png", "b.png"]
    assert repr(joint) == "Samples of 2 instances × 2 labels: 2 samples shared by all"
    assert abstain.Samples(np.zeros((1, 3, 2)), label_names=["x", "y"]).marginals.label_names == ("x", "y")


def test_rank_counterexample_of_a_gap_that_is_not_contiguous():
    vectors = ["1110", "1110", "1010", "1000", "1000", "0101", "0101"]
    joint = abstain.Samples([[[int(c) for c in text] for text in vectors]])
    ranking = abstain.decide(joint, "rank", 0.15)
    assert ranking.expected_loss == pytest.approx(0.3)
    assert ranking.n_abstained == 2
    contiguous = abstain.PartialRanking([[0, 1, 2, -1]])  # the best of those with labels of adjacent marginals left out
    assert expected_generalized_loss(joint, contiguous, loss="rank", penalty=0.15) == pytest.approx(0.579, abs=5e-4)


@pytest.mark.parametrize(
    ("weights", "p", "penalty", "believed", "best"),
    [
        ([0.5, 0.5], [[0.99] * 8, [0.01] * 8], 0.5, 3.25, 0.277),
        ([0.6, 0.4], [[1.0] * 6, [0.0] * 6], 0.3, 1.44, 0.0),
    ],
)
def test_families_of_known_gain_for_rank(weights, p, penalty, believed, best):
    joint = abstain.Mixture(weights, [p])
    ours, other = abstain.decide(joint, "rank", penalty), abstain.decide(joint.marginals, "rank", penalty)
    assert ours.expected_loss == pytest.approx(best, abs=5e-4)
    assert other.expected_loss == pytest.approx(believed, abs=5e-3)
    assert expected_generalized_loss(joint, other, loss="rank", penalty=penalty) > 4 * best + 1


def test_gap_bounds_how_much_better_another_ranking_is():
    rng = np.random.default_rng(0)
    labels = rng.random((30, 40, 9)) < rng.random((30, 1, 9))
    best = abstain.decide(abstain.Samples(labels), "rank", 0.4)
    assert (best.gap == 0).all()
    found = 0
    for node_limit in (1, 3, 9, 27):
        ours = abstain.decide(abstain.Samples(labels, node_limit=node_limit), "rank", 0.4)
        found += (ours.gap > 0).sum()
        excess = ours.expected_loss - best.expected_loss
        assert (excess >= -1e-12).all()
        assert (excess <= ours.gap + 1e-12).all()
    assert found > 30


def test_rank_profile_decides_like_decide():
    joint = random_samples(40, 7)
    profile = abstain.risk_profile(joint, loss="rank")
    assert profile.total_gap == 0
    for penalty in (0.1, 0.4, abstain.Concave(0.3), [0, 0.5, 0.1, 0.4, 0.2, 0.6, 0.9, 0.8]):
        ours, known = profile.decide(penalty), abstain.decide(joint, "rank", penalty)
        np.testing.assert_allclose(ours.expected_loss, known.expected_loss, atol=1e-11)
        np.testing.assert_array_equal(ours.n_abstained, known.n_abstained)
    allocation = abstain.budget.solve(profile, rate=0.3)
    assert allocation.prediction.n_abstained.sum() <= 0.3 * 40 * 7


def test_rank_with_prices_against_an_integer_programme():
    from scipy.optimize import Bounds, LinearConstraint, milp

    rng, m = np.random.default_rng(0), 12
    labels = rng.random((3, 60, m)) < rng.beta(0.6, 0.9, (3, 1, m))
    prices = rng.random(m)
    joint = abstain.Samples(labels)
    ours = abstain.decide(joint, "rank", abstain.PerLabel(prices))
    for i in range(3):
        p = labels[i].mean(axis=0)
        both = labels[i].T.astype(float) @ labels[i] / 60
        pairs = [(s, t) for s in range(m) for t in range(s)]
        cost = [min(p[s], p[t]) - both[s, t] for s, t in pairs]
        rows = np.zeros((len(pairs), m + len(pairs)))
        for k, (s, t) in enumerate(pairs):  # the pair is ranked if both labels are
            rows[k, [s, t, m + k]] = 1, 1, -1
        solved = milp(
            np.concatenate([-prices, cost]),
            integrality=np.append(np.ones(m), np.zeros(len(pairs))),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(rows, -np.inf, 1),
        )
        assert ours.expected_loss[i] == pytest.approx(solved.fun + prices.sum(), abs=1e-9)


def test_a_review_saves_what_it_says_about_other_labels_too():
    joint = abstain.Samples([[[0, 0, 0], [1, 1, 0], [1, 1, 1]]], [[0.4, 0.3, 0.3]])
    queue = abstain.review_queue(joint, [[-1, -1, 0]])
    # Label 0 tells label 1, whose risk is 0.4; of label 2 (risk 0.3) it says 0, or that it is open, as before.
    assert dict(zip(queue.label.tolist(), queue.saves.round(12).tolist(), strict=True)) == {0: 0.8, 1: 0.8}
    alone = abstain.review_queue(joint.marginals, [[-1, -1, 0]])
    assert alone.saves.round(12).tolist() == [0.4, 0.4]


@pytest.mark.parametrize("loss", ["hamming", "rank", "subset", "f1", "jaccard"])
def test_savings_of_one_component_are_those_of_probabilities(loss):
    if not abstain.decide([0.5], loss).gap.any() and not cases.make_loss((loss, 0), 2).takes_joint:
        pytest.skip("not for joint distributions")
    p = np.random.default_rng(0).random((12, 4))
    prediction = abstain.decide(p, loss, 0.05)
    ours = abstain.review_queue(abstain.Mixture([1.0], p[:, np.newaxis]), prediction, loss=loss)
    known = abstain.review_queue(p, prediction, loss=loss)
    np.testing.assert_allclose(ours.saves, known.saves, atol=1e-11)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: abstain.Samples([[[0, 1], [0, 2]]]), "labels: row 0, sample 1, column 1 is 2; a sample holds 0 or 1"),
        (lambda: abstain.Samples([[0, 1], [0, 0.5]]), "labels: sample 1, column 1 is 0.5"),
        (lambda: abstain.Samples([[[0, np.nan]]]), "sample 0, column 1 is nan"),
        (lambda: abstain.Samples([[[0, 1], [1]]]), "labels: cannot be read as an array"),
        (lambda: abstain.Samples([[[0, 1]] * 2], [[1.0], [0.5, 0.5]]), "weights: cannot be read as an array"),
        (lambda: abstain.Samples([0, 1]), "expected numbers of shape (n_instances, n_samples, n_labels)"),
        (lambda: abstain.Samples([[[0, 1]]], [[0.5]]), "weights: row 0 sums up to 0.5"),
        (lambda: abstain.Samples([[[0, 1]] * 2], [[1.5, -0.5]]), "weights: row 0 has -0.5; expected numbers ≥ 0"),
        (lambda: abstain.Samples([[[0, 1]] * 2], [[1.0]]), "weights have shape (1, 1); expected (1, 2)"),
        (lambda: abstain.Samples([[[0, 1]]], sparse.csr_array([[1.0]])), "sparse weights are for samples that all"),
        (lambda: abstain.Samples([[[0, 1]]], node_limit=0), "node_limit is 0"),
        (lambda: abstain.Mixture([0.5, 0.5], [[[0.2], [1.2]]]), "row 0, component 1, column 0 is 1.2; a probability"),
        (lambda: abstain.Mixture([0.5, 0.6], [[[0.2], [0.2]]]), "weights: row 0 sums up to 1.1"),
        (lambda: abstain.Mixture(None, [["a"]]), "expected numbers of shape"),
        (lambda: abstain.Samples([[[0, 1]]], label_names=["a"]), "label_names has 1 names for 2 labels"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(
        abstain.InvalidProbabilities if "label_names" not in message else abstain.InvalidLabels
    ) as error:
        make()
    assert message in str(error.value)


def test_what_needs_probabilities_of_single_labels_says_so():
    joint = abstain.Samples([[[0, 1], [1, 1]]])
    with pytest.raises(abstain.InvalidProbabilities, match="pass their marginals"):
        abstain.report(joint)
    with pytest.raises(abstain.InvalidProbabilities, match="pass their marginals"):
        abstain.guarantee.control(joint, [[0, 1]], risk="answered_error", target=0.1)


def test_a_loss_without_a_search_says_so():
    class Own(abstain.SubsetZeroOne):
        takes_joint = False

    joint = abstain.Samples([[[0, 1], [1, 1]]])
    with pytest.raises(abstain.InvalidLoss, match=r"marginals, or abstain\.exhaustive\.decide"):
        abstain.decide(joint, Own(), 0.1)


def test_nothing_is_copied_of_labels_in_bytes(tmp_path):
    path = tmp_path / "labels.npy"
    np.save(path, (np.random.default_rng(0).random((50, 20, 6)) < 0.4).astype(np.int8))
    labels = np.load(path, mmap_mode="r")
    joint = abstain.Samples(labels)
    assert np.shares_memory(joint._values, labels)
    assert len(abstain.decide(joint, "rank", 0.2)) == 50


@pytest.mark.parametrize("loss", ["subset", "f1", "jaccard"])
@pytest.mark.parametrize("make", JOINTS)
def test_hull_decides_like_decide_and_has_a_budget(make, loss):
    joint = make(24, 4)
    profile = abstain.risk_profile(joint, loss=loss)
    assert profile.is_hull
    assert profile.total_gap == 0
    for penalty in (0.02, 0.1, 0.3, abstain.Concave(0.2)):
        ours, known = profile.decide(penalty), abstain.decide(joint, loss, penalty)
        np.testing.assert_allclose(ours.expected_loss, known.expected_loss, rtol=0, atol=1e-11)
        np.testing.assert_array_equal(ours.n_abstained, known.n_abstained)
    with pytest.raises(abstain.InvalidPenalty, match=r"use abstain\.decide for others"):
        profile.decide([0, 0.3, 0.1, 0.2, 0.4])
    allocation = abstain.budget.solve(joint, loss=loss, rate=0.4)
    n_reviews = allocation.prediction.n_abstained.sum()
    assert 0 < n_reviews <= 0.4 * 24 * 4
    reference = abstain.decide(joint, loss, allocation.price).n_abstained.sum()
    assert reference <= n_reviews
    with pytest.raises(abstain.InvalidBudget, match="per_instance=1"):
        abstain.budget.solve(joint, loss=loss, rate=0.4, per_instance=1)


@pytest.mark.parametrize(
    ("weights", "p", "n_labels", "loss", "penalty", "independent", "best"),
    [
        ([0.23, 0.77], [0.9, 0.02], 6, "jaccard", 0.15, 0.778, 0.318),
        ([0.15, 0.85], [0.95, 0.02], 6, "subset", 0.1, 0.600, 0.247),
        ([0.9, 0.1], [0.99, 0.01], 8, "subset", 0.05, 0.400, 0.170),
        ([0.6, 0.4], [1.0, 0.0], 6, "f1", 0.05, 0.400, 0.300),
    ],
)
def test_families_of_known_gain(weights, p, n_labels, loss, penalty, independent, best):
    """Components in which all labels have the same probability: errors come together."""
    joint = abstain.Mixture(weights, [np.repeat(np.array(p)[:, np.newaxis], n_labels, axis=1)])
    ours, other = abstain.decide(joint, loss, penalty), abstain.decide(joint.marginals, loss, penalty)
    assert ours.gap == 0
    assert ours.expected_loss == pytest.approx(best, abs=6e-4)
    assert expected_generalized_loss(joint, other, loss=loss, penalty=penalty) == pytest.approx(independent, abs=6e-4)


def test_severity_of_an_instance_makes_labels_dependent():
    """Log-odds of all labels shifted by −4, 0 or 4: the components order the labels alike."""
    base = np.linspace(-1, 1, 8)
    joint = abstain.Mixture(None, [1 / (1 + np.exp(-(base + np.array([[-4.0], [0.0], [4.0]]))))])
    for loss, penalty in (("rank", 0.3), ("f1", 0.05), ("subset", 0.1)):
        ours, other = abstain.decide(joint, loss, penalty), abstain.decide(joint.marginals, loss, penalty)
        assert ours.gap == 0
        assert ours.expected_loss < expected_generalized_loss(joint, other, loss=loss, penalty=penalty) - 0.01


def test_dask_collections_are_refused():
    da = pytest.importorskip("dask.array")
    labels, p = da.zeros((4, 3, 2), dtype=np.int8), da.zeros((4, 3, 2))
    for make in (lambda: abstain.Samples(labels), lambda: abstain.Mixture(None, p)):
        with pytest.raises(abstain.InvalidProbabilities, match="a partition at a time"):
            make()
    with pytest.raises(abstain.InvalidProbabilities, match=r"weights.*a partition at a time"):
        abstain.Samples(np.zeros((2, 3)), da.ones((4, 2)) / 2)


def test_progress_is_shown_if_asked_for(capsys):
    labels = np.random.default_rng(0).random((30, 20, 4)) < 0.4
    quiet = abstain.decide(abstain.Samples(labels), "rank", 0.2)
    assert capsys.readouterr().err == ""
    shown = abstain.decide(abstain.Samples(labels, progress=True), "rank", 0.2)
    assert "100%" in capsys.readouterr().err
    np.testing.assert_array_equal(shown.codes, quiet.codes)
