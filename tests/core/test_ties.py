"""Where answers are equally good, everything that decides takes the same one: the one with fewest abstentions."""

from itertools import product

import numpy as np
import pytest
from tests.support.cases import LOSS_CASES, make_loss

import abstain
from abstain import metrics
from abstain._core import exhaustive
from abstain.curves import accuracy_rejection_curve, cost_curve, error_capture_curve, risk_coverage_curve

ROUND = [0.0, 1e-6, 0.01, 0.02, 0.025, 0.03, 0.05, 0.06, 0.075, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4, 0.45, 0.5, 1.0]
ANSWERING = [case for case in LOSS_CASES if case[0] != "rank"]


def in_tenths(m, n=3000):
    """All rows of so many labels with probabilities in tenths, or some of them: they tie again and again."""
    if 11**m <= n:
        return np.array(list(product(range(11), repeat=m))) / 10
    return np.random.default_rng(m).integers(0, 11, (n, m)) / 10


def require_agreement(p, loss, costs):
    """Path, profile, decision and curve abstain on the same number of labels at each of the costs."""
    profile = abstain.risk_profile(p, loss=loss)
    path, curve = profile.path(), cost_curve(p, loss=loss)
    for cost in costs:
        decided = abstain.decide(p, loss, cost)
        np.testing.assert_array_equal(profile.decide(cost).n_abstained, decided.n_abstained, err_msg=f"cost {cost!r}")
        np.testing.assert_array_equal(path.at(cost), decided.n_abstained, err_msg=f"cost {cost!r}")
        assert curve.at(cost).abstention == pytest.approx(metrics.abstention_rate(decided), abs=1e-12)


@pytest.mark.parametrize("case", LOSS_CASES, ids=str)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_all_agree_at_ties(case, m):
    require_agreement(in_tenths(m), make_loss(case, m), ROUND)


@pytest.mark.parametrize("case", LOSS_CASES, ids=str)
@pytest.mark.parametrize("m", [3, 6, 40])
def test_all_agree_at_break_costs_and_beside_them(case, m):
    p, loss = np.random.default_rng(m).random((60, m)), make_loss(case, m)
    breaks = abstain.risk_profile(p, loss=loss).path().break_points
    breaks = breaks[np.unique(np.linspace(0, len(breaks) - 1, 20).astype(int))]
    below, above = np.nextafter(breaks, 0), np.nextafter(breaks, np.inf)
    require_agreement(p, loss, [*breaks, *below, *above, *breaks * (1 - 1e-9), *breaks * (1 + 1e-9), *breaks / 2])


@pytest.mark.parametrize("case", LOSS_CASES, ids=str)
def test_all_agree_at_costs_that_are_next_to_nothing(case):
    p = np.array([[0.2, 1e-9, 5e-12, 3e-13], [1 - 2e-9, 1e-16, 7e-12, 0.0], [0.5, 1.0, 1 - 4e-12, 1e-12]])
    require_agreement(p, make_loss(case, 4), [0.0, 1e-300, 1e-16, 1e-13, 1e-12, 2e-12, 1e-11, 1e-10, 1e-9])


@pytest.mark.parametrize("case", LOSS_CASES, ids=str)
def test_brute_force_agrees_at_ties(case):
    p, loss = in_tenths(3, n=400), make_loss(case, 3)
    for cost in ROUND:
        for penalty in (abstain.Linear(cost), abstain.Concave(cost)):
            brute, decided = exhaustive.decide(p, loss, penalty), abstain.decide(p, loss, penalty)
            np.testing.assert_array_equal(decided.n_abstained, brute.n_abstained, err_msg=f"{penalty!r}")


@pytest.mark.parametrize("case", LOSS_CASES, ids=str)
def test_rows_of_equal_break_cost_change_together(case):
    p, loss = in_tenths(4), make_loss(case, 4)
    path, curve = abstain.risk_profile(p, loss=loss).path(), cost_curve(p, loss=loss)
    np.testing.assert_array_equal(curve.costs[1:], path.break_points)
    assert (np.diff(path.break_points) > 1e-11).all()  # in tenths, costs that are not equal are much further apart
    assert all((np.diff(path.costs(i)) > 1e-11).all() for i in range(len(path)))


@pytest.mark.parametrize("case", ANSWERING, ids=str)
def test_curves_are_what_deciding_at_their_costs_gives(case):
    p, loss = in_tenths(4, n=40), make_loss(case, 4)
    y = np.random.default_rng(1).integers(0, 2, p.shape)
    full = abstain.decide(p, loss, "none")
    risk, accuracy, capture = (
        make(y, p, loss=loss) for make in (risk_coverage_curve, accuracy_rejection_curve, error_capture_curve)
    )
    decided = [abstain.decide(p, loss, cost) for cost in risk.costs]
    coverage = [1 - metrics.abstention_rate(each) for each in decided]
    risks = [metrics.generalized_loss(y, each, loss=loss, penalty=0.0) for each in decided]
    np.testing.assert_allclose(risk.coverage, coverage, atol=1e-12)
    np.testing.assert_allclose(risk.risk, risks, atol=1e-12)
    assert risk.area == pytest.approx(np.trapezoid([0, *risks], [0, *coverage]))
    np.testing.assert_allclose(1 - accuracy.rejection, coverage, atol=1e-12)
    right = [1 - metrics.answered_error_rate(y, each) for each in decided]
    np.testing.assert_allclose(accuracy.accuracy, right, atol=1e-12)
    np.testing.assert_allclose(
        capture.captured, [metrics.error_capture_rate(y, each, full) for each in decided], atol=1e-12
    )


def test_an_area_does_not_depend_on_rounding():
    """At 1/20 the first row has the same total with 1, 2 or 4 abstentions, but for the errors of the quadrature."""
    p, y = [[0.9, 0.9, 0.3, 0.75], [0.1, 0.1, 0.0, 0.1]], [[0, 0, 1, 1], [0, 1, 0, 1]]
    loss = abstain.Jaccard(zero_division=0)
    path = abstain.risk_profile(p, loss=loss).path()
    assert (path.at(0.05)[0], abstain.decide(p, loss, 0.05).n_abstained[0]) == (1, 1)
    assert cost_curve(p[:1], loss=loss).at(0.05).abstention == 0.25
    curve = risk_coverage_curve(y, p, loss=loss)
    decided = [abstain.decide(p, loss, cost) for cost in curve.costs]
    coverage = [1 - metrics.abstention_rate(each) for each in decided]
    risks = [metrics.generalized_loss(y, each, loss=loss, penalty=0.0) for each in decided]
    assert curve.area == pytest.approx(np.trapezoid([0, *risks], [0, *coverage]))


@pytest.mark.parametrize("case", LOSS_CASES, ids=str)
@pytest.mark.parametrize("per_instance", [None, 2])
def test_reviews_that_save_nothing_are_not_bought(case, per_instance):
    """With more budget than is of use, the reviews are those of the decision at their cost."""
    p, loss = in_tenths(4, n=400), make_loss(case, 4)
    for cost in ROUND[1:]:
        penalty = cost if per_instance is None else abstain.Capped(cost, per_instance)
        bought = abstain.budget.solve(p, loss=loss, count=p.size, review=cost, per_instance=per_instance)
        decided = abstain.decide(p, loss, penalty)
        np.testing.assert_array_equal(bought.prediction.n_abstained, decided.n_abstained, err_msg=f"cost {cost!r}")
