"""Every loss with every penalty against brute force over all partial predictions."""

from functools import cache
from inspect import isabstract

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from tests.support import cases

import abstain
from abstain._core import exhaustive
from abstain._core.losses import LOSSES
from abstain._core.penalties import PENALTIES, as_penalty
from abstain.metrics import expected_generalized_loss

ROWS, MOST_LABELS = 600, 6


def test_every_loss_and_penalty_is_tested():
    assert cases.LOSSES.keys() == LOSSES.keys()
    assert cases.PENALTIES.keys() == PENALTIES.keys()


def test_every_public_loss_and_penalty_is_registered():
    public = [getattr(abstain, name) for name in abstain.__all__]
    losses = {x for x in public if isinstance(x, type) and issubclass(x, abstain.Loss) and not isabstract(x)}
    penalties = {x for x in public if isinstance(x, type) and issubclass(x, abstain.Penalty) and not isabstract(x)}
    assert losses == set(LOSSES.values())
    assert penalties <= set(PENALTIES.values())


@cache
def all_expected_losses(loss_case, m):
    """E[ℓ] of every instance and every partial prediction; the penalty is added by the tests."""
    loss = cases.make_loss(loss_case, m)
    codes = exhaustive.partial_rankings(m) if loss.gives_rankings else exhaustive.partial_predictions(m)
    return codes, exhaustive.expected_losses(cases.random_probabilities(ROWS, m), loss, codes)


@pytest.mark.parametrize(("loss_case", "penalty_case"), cases.PAIRS, ids=str)
def test_decision_is_optimal_and_abstains_least(loss_case, penalty_case):
    for m in range(1, MOST_LABELS + 1):
        loss, penalty = cases.make_loss(loss_case, m), cases.make_penalty(penalty_case, m)
        codes, expected = all_expected_losses(loss_case, m)
        bound = as_penalty(penalty).bind(m)
        n_abstained = (codes == -1).sum(axis=1)
        totals = expected + bound.charge(n_abstained, codes == -1)
        least = totals.min(axis=1)

        p = cases.random_probabilities(ROWS, m)
        prediction = abstain.decide(p, loss, penalty)
        np.testing.assert_allclose(prediction.expected_loss, least, rtol=0, atol=1e-11)
        by_count = np.stack([np.where(n_abstained == a, totals, np.inf).min(axis=1) for a in range(m + 1)], axis=1)
        cases.assert_fewest_of_the_best(by_count, loss.tie_scale, prediction.n_abstained)
        np.testing.assert_allclose(
            expected_generalized_loss(p, prediction, loss=loss, penalty=penalty, per_instance=True),
            least,
            rtol=0,
            atol=1e-11,
        )


@pytest.mark.parametrize("loss_case", cases.LOSS_CASES, ids=str)
def test_profile_is_the_least_risk_for_every_number_of_abstentions(loss_case):
    for m in range(1, MOST_LABELS + 1):
        codes, expected = all_expected_losses(loss_case, m)
        n_abstained = (codes == -1).sum(axis=1)
        values = abstain.risk_profile(cases.random_probabilities(ROWS, m), loss=cases.make_loss(loss_case, m)).values
        for a in range(m + 1):
            allowed = n_abstained == a
            least = expected[:, allowed].min(axis=1) if allowed.any() else np.full(ROWS, np.inf)
            np.testing.assert_allclose(values[:, a], least, rtol=0, atol=1e-11)


@pytest.mark.parametrize("loss_case", cases.LOSS_CASES, ids=str)
@pytest.mark.parametrize("penalty_case", [case for case in cases.PENALTY_CASES if case[0] != "perlabel"], ids=str)
@pytest.mark.parametrize("m", [1, 2, 5, 40])
def test_profile_decides_like_decide(loss_case, penalty_case, m):
    p = cases.random_probabilities(200, m, seed=3)
    loss, penalty = cases.make_loss(loss_case, m), cases.make_penalty(penalty_case, m)
    profile = abstain.risk_profile(p, loss=loss)
    direct, profiled = abstain.decide(p, loss, penalty), profile.decide(penalty)
    np.testing.assert_allclose(profiled.expected_loss, direct.expected_loss, rtol=0, atol=1e-11)
    totals = profile.values + as_penalty(penalty).bind(m).counts
    cases.assert_fewest_of_the_best(totals, loss.tie_scale, direct.n_abstained)
    cases.assert_fewest_of_the_best(totals, loss.tie_scale, profiled.n_abstained)
    again = expected_generalized_loss(p, profiled, loss=loss, penalty=penalty, per_instance=True)
    np.testing.assert_allclose(again, profiled.expected_loss, rtol=0, atol=1e-11)


# 0, or so large that the products of five, of which brute force adds up its expectations, do not underflow.
chance = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(1e-60, 1))


@pytest.mark.parametrize("loss_case", cases.LOSS_CASES, ids=str)
@settings(max_examples=40, deadline=None)
@given(
    p=hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 5)), elements=chance),
    steps=hnp.arrays(np.float64, 5, elements=st.floats(0, 0.5)),
)
def test_any_table_and_any_probabilities(loss_case, p, steps):
    m = p.shape[1]
    loss, table = cases.make_loss(loss_case, m), np.concatenate([[0.0], steps[:m]])
    prediction, brute = abstain.decide(p, loss, table), exhaustive.decide(p, loss, table)
    np.testing.assert_allclose(prediction.expected_loss, brute.expected_loss, rtol=0, atol=1e-11)
    totals = abstain.risk_profile(p, loss=loss).values + table
    cases.assert_fewest_of_the_best(totals, loss.tie_scale, prediction.n_abstained)
    cases.assert_fewest_of_the_best(totals, loss.tie_scale, brute.n_abstained)


@pytest.mark.parametrize(("loss_case", "penalty_case"), cases.PAIRS, ids=str)
def test_labels_may_be_permuted(loss_case, penalty_case):
    m = 12
    p = cases.random_probabilities(120, m, seed=5)
    order = np.random.default_rng(0).permutation(m)
    loss, penalty = cases.make_loss(loss_case, m), cases.make_penalty(penalty_case, m)
    prediction = abstain.decide(p, loss, penalty)
    if isinstance(loss, abstain.Hamming) and loss.false_negative.ndim:
        loss = abstain.Hamming(loss.false_negative[order], loss.false_positive[order])
    if isinstance(penalty, abstain.PerLabel):
        penalty = abstain.PerLabel(penalty.costs[order], penalty.counting)
    permuted = abstain.decide(p[:, order], loss, penalty)
    np.testing.assert_allclose(permuted.expected_loss, prediction.expected_loss, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(permuted.n_abstained, prediction.n_abstained)
    untied = np.array([len(np.unique(np.minimum(row, 1 - row))) == m for row in p])
    assert untied.sum() > 20
    np.testing.assert_array_equal(permuted.codes[untied], prediction.codes[untied][:, order])


@pytest.mark.parametrize("loss_case", cases.LOSS_CASES, ids=str)
def test_without_abstention_it_is_the_plain_optimum(loss_case):
    m = 5
    p = cases.random_probabilities(ROWS, m)
    codes, expected = all_expected_losses(loss_case, m)
    complete = (codes >= 0).all(axis=1)
    for penalty in ("none", np.inf, abstain.Concave(np.inf), 1e6):
        prediction = abstain.decide(p, cases.make_loss(loss_case, m), penalty)
        assert not prediction.n_abstained.any()
        np.testing.assert_allclose(prediction.expected_loss, expected[:, complete].min(axis=1), rtol=0, atol=1e-11)


@pytest.mark.parametrize("price", [1e3, 1e9, 1e16, 1e100])
def test_a_huge_price_of_one_label_hides_nothing(price):
    penalty = abstain.PerLabel([price, 0.1]) + abstain.Concave(0.01)
    prediction = abstain.decide([0.6, 0.8], "hamming", penalty)
    assert prediction.labels.tolist() == [[1, -1]]
    assert prediction.expected_loss[0] == pytest.approx(0.4 + 0.1 + 0.01 * 2 / 3, rel=1e-12)


def test_almost_straight_penalties_are_not_taken_for_concave():
    m = 5000
    a = np.arange(m + 1.0)
    table = np.where(a > 0, 0.15 + 3e-16 * a**2, 0.0)
    p = np.random.default_rng(0).beta(0.3, 0.3, (3, m))
    direct, profiled = abstain.decide(p, "f1", table), abstain.risk_profile(p, loss="f1").decide(table)
    np.testing.assert_allclose(direct.expected_loss, profiled.expected_loss, rtol=0, atol=2e-12)


def test_an_abstention_costs_what_it_costs():
    assert abstain.decide([0.5], penalty=0.1).expected_loss[0] == 0.1


def test_ties_answer_rather_than_abstain():
    assert abstain.decide([0.3, 0.7, 0.1, 0.9], penalty=0.3).labels.tolist() == [[0, 1, 0, 1]]
    assert abstain.decide([0.5, 0.5], penalty=0.5).labels.tolist() == [[0, 0]]  # p = ½ is answered 0
    assert abstain.decide([0.0, 1.0], "f1", penalty=0.0).labels.tolist() == [[0, 1]]
    for loss in LOSSES:
        assert not abstain.decide([0.0, 1.0, 0.0, 1.0, 1.0], loss, penalty=0.0).n_abstained.any()
