"""Budgets against brute force over all allocations, and the prices they find."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from tests.oracles.budgets import bill_of, least_bill, least_bill_of_sets
from tests.support.cases import LOSS_CASES, make_loss, random_probabilities

import abstain
from abstain import budget
from abstain.budget import _per_entry, _per_instance

TOLERANCE = 1e-9


@pytest.mark.parametrize("case", LOSS_CASES)
@pytest.mark.parametrize("review", [0.0, 0.04])
@pytest.mark.parametrize("per_instance", [None, 0, 1, 2])
def test_the_optimum_for_every_count(case, review, per_instance):
    p = random_probabilities(7, 5, seed=3)
    loss = make_loss(case, 5)
    for count in [None, 0, 1, 2, 3, 5, 8, 13, 20, 34, 35]:
        if count is None and review == 0 and per_instance is None:
            continue
        best = least_bill(p, loss, total=count, per_instance=per_instance, review=review)
        for source in (p, abstain.risk_profile(p, loss=loss)):
            found = budget.solve(source, loss=loss, count=count, per_instance=per_instance, review=review)
            n_abstained = found.prediction.n_abstained
            assert count is None or found.count == n_abstained.sum() <= count
            assert per_instance is None or n_abstained.max() <= per_instance
            assert found.bill.total == pytest.approx(bill_of(p, found, loss, review), abs=TOLERANCE)
            assert found.prediction.expected_loss.sum() == pytest.approx(found.bill.total, abs=TOLERANCE)
            assert found.bill.reviews == pytest.approx(review * found.count)
            assert best - TOLERANCE <= found.bill.total <= best + found.gap + TOLERANCE
            assert found.gap == 0  # few instances: all of them are in the dynamic programme


@pytest.mark.parametrize("loss", ["rank", "f1", "jaccard", "subset"])
def test_the_gap_bounds_what_is_missed_and_is_small(loss, monkeypatch):
    monkeypatch.setattr(_per_instance, "MAX_OPERATIONS", 16.0)  # two instances around the end only
    p = random_probabilities(40, 6, seed=5)
    gaps = []
    for count in range(0, 200, 7):
        best = least_bill(p, loss, total=count)
        found = budget.solve(p, loss=loss, count=count)
        assert best - TOLERANCE <= found.bill.total <= best + found.gap + TOLERANCE
        gaps.append(found.gap)
    assert max(gaps) < 0.35
    assert min(gaps) == 0


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in LOSS_CASES if case[0] == "hamming"])
@pytest.mark.parametrize("by_label", [False, True])
def test_caps_per_label_and_per_instance(case, by_label):
    rng = np.random.default_rng(8)
    for _ in range(6):
        p = rng.choice(np.linspace(0, 1, 9), (3, 4))
        loss = make_loss(case, 4)
        review = rng.random(4) * 0.2 if by_label else 0.05
        for total, per_instance, per_label in [(12, 4, 1), (4, 4, 2), (12, 1, 1), (3, 2, 1), (5, 2, [0, 1, 2, 3])]:
            best = least_bill_of_sets(
                p, loss, total=total, per_instance=per_instance, per_label=np.broadcast_to(per_label, 4), review=review
            )
            found = budget.solve(
                p, loss=loss, count=total, per_instance=per_instance, per_label=per_label, review=review
            )
            reviewed = found.prediction.abstained
            assert reviewed.sum() <= total
            assert reviewed.sum(axis=1).max() <= per_instance
            assert (reviewed.sum(axis=0) <= per_label).all()
            assert found.bill.total == pytest.approx(best, abs=TOLERANCE)
            assert found.bill.total == pytest.approx(bill_of(p, found, loss, review), abs=TOLERANCE)
            assert found.gap == 0


@pytest.mark.parametrize("n", [200, 3000])
def test_crossing_caps_need_no_whole_programme(n):
    """Against the linear programme over all entries at once, and its dual."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(n)
    p = rng.beta(0.4, 0.8, (n, 8))
    found = budget.solve(p, count=n // 2, per_instance=1, per_label=n // 12)
    risk = np.minimum(p, 1 - p).ravel()
    row, label = np.divmod(np.arange(n * 8), 8)
    groups = sparse.vstack(
        [
            sparse.csr_array((np.ones(n * 8), (row, np.arange(n * 8)))),
            sparse.csr_array((np.ones(n * 8), (label, np.arange(n * 8)))),
            sparse.csr_array(np.ones((1, n * 8))),
        ]
    )
    limit = np.concatenate([np.ones(n), np.full(8, n // 12), [n // 2]])
    best = linprog(-risk, A_ub=groups, b_ub=limit, bounds=(0, 1))
    assert found.bill.total == pytest.approx(risk.sum() + best.fun, abs=1e-7)


def test_the_budget_is_used_up_where_ties_allow():
    p = np.full((50, 4), 0.3)
    for loss in ("hamming", "subset", "f1", "rank"):
        for count in (1, 7, 100, 199):
            found = budget.solve(p, loss=loss, count=count)
            best = least_bill(p, loss, total=count)
            assert found.bill.total <= best + found.gap + TOLERANCE
            if loss == "hamming":
                assert found.count == count
                assert found.price.cost == pytest.approx(0.3)
                assert found.gap == 0


def test_nothing_is_reviewed_that_saves_nothing():
    p = [[1.0, 0.0, 0.4], [0.0, 1.0, 1.0]]
    for loss in ("hamming", "f1", "rank", "subset", "jaccard"):
        found = budget.solve(p, loss=loss, rate=1.0)
        best = abstain.decide(p, loss, 0.0)
        assert found.count == best.n_abstained.sum()
        assert found.price.cost == 0


@pytest.mark.parametrize("loss", ["hamming", "f1", "jaccard", "rank", "subset"])
@pytest.mark.parametrize("per_instance", [None, 2])
def test_the_price_repeats_the_decision(loss, per_instance):
    p = np.random.default_rng(2).random((300, 6))
    found = budget.solve(p, loss=loss, rate=0.1, per_instance=per_instance)
    again = found.price.decide(p)
    assert found.count - 6 <= again.n_abstained.sum() <= found.count
    if loss == "hamming":
        np.testing.assert_array_equal(again.codes, found.prediction.codes)
        np.testing.assert_array_equal(again.codes, abstain.decide(p, loss, found.price.penalty).codes)
    if per_instance is None:
        np.testing.assert_array_equal(again.codes, abstain.decide(p, loss, found.price).codes)


def test_prices_of_labels_repeat_the_decision():
    p = np.random.default_rng(3).random((400, 5))
    for limits in ({"per_label": [10, 400, 30, 0, 80]}, {"per_label": 25, "per_instance": 1}):
        found = budget.solve(p, count=90, review=[0.0, 0.1, 0.05, 0.2, 0.0], **limits)
        again = found.price.decide(p)
        assert np.count_nonzero(again.codes != found.prediction.codes) <= 1 + (0 if len(limits) == 1 else 10)


def test_the_price_decides_on_a_stream():
    rng = np.random.default_rng(4)
    p = rng.beta(0.5, 1.5, (40_000, 10))
    price = budget.solve(p[:20_000], loss="f1", rate=0.05).price
    batches = [price.decide(p[first : first + 1000]).n_abstained for first in range(20_000, 40_000, 1000)]
    counts = np.concatenate(batches)
    error = counts.std() * np.sqrt(2 / len(counts))  # both halves vary
    assert abs(counts.mean() - 0.5) < 4 * error < 0.1


@pytest.mark.parametrize("loss", ["hamming", "f1", "rank", "subset"])
@pytest.mark.parametrize("limits", [{}, {"per_instance": 3}, {"review": 0.02}])
def test_large_tables_are_solved_alike(loss, limits, monkeypatch):
    rng = np.random.default_rng(6)
    p = np.vstack([rng.beta(0.3, 1.0, (6000, 12)), rng.choice([0.1, 0.3, 0.5], (3000, 12))])
    whole = [budget.solve(p, loss=loss, rate=rate, **limits) for rate in (0.001, 0.05, 0.3, 1.0)]
    for module in (_per_instance, _per_entry):
        monkeypatch.setattr(module, "SAMPLE_ROWS", 100)
    monkeypatch.setattr(_per_instance, "MAX_PROFILED_ENTRIES", 1)
    for expected, rate in zip(whole, (0.001, 0.05, 0.3, 1.0), strict=True):
        found = budget.solve(p, loss=loss, rate=rate, **limits)
        assert found.price.cost == pytest.approx(expected.price.cost, rel=1e-9)
        assert found.bill.total == pytest.approx(expected.bill.total, rel=1e-9, abs=found.gap)
        assert found.count == pytest.approx(expected.count, abs=12)
        np.testing.assert_allclose(
            found.prediction.expected_loss.sum(), bill_of(p, found, loss, limits.get("review", 0.0)), rtol=1e-9
        )


@pytest.mark.parametrize(
    ("loss", "limits"),
    [
        *((loss, limits) for loss in ("hamming", "f1", "subset") for limits in ({}, {"per_instance": 2})),
        *(("hamming", {"per_label": 20, **more}) for more in ({}, {"per_instance": 1})),
    ],
)
def test_sparse_tables(loss, limits):
    rng = np.random.default_rng(7)
    dense = np.where(rng.random((300, 30)) < 0.15, rng.random((300, 30)), 0.0)
    for count in (0, 50, 300, 9000):
        ours = budget.solve(sparse.csr_array(dense), loss=loss, count=count, **limits)
        theirs = budget.solve(dense, loss=loss, count=count, **limits)
        assert sparse.issparse(ours.prediction.codes)
        assert ours.bill.total == pytest.approx(theirs.bill.total, abs=TOLERANCE + ours.gap + theirs.gap)
        if loss == "hamming" and len(limits) < 2:
            np.testing.assert_array_equal(ours.prediction.codes.toarray(), theirs.prediction.codes)


def test_threads_do_not_matter(threads):
    p = np.random.default_rng(9).random((2000, 40))
    found = budget.solve(p, rate=0.1, per_instance=5)
    assert found.count == 8000
    assert found.price.cost == budget.solve(p, rate=0.1, per_instance=5).price.cost


@pytest.mark.parametrize("as_table", [np.asarray, sparse.csr_array])
def test_probabilities_that_differ_by_rounding_only(as_table):
    """0.3 and 1 − 0.7 are not the same number, but to a decision they are."""
    p = np.random.default_rng(0).integers(0, 11, (12_000, 5)) / 10
    risks = np.sort(np.minimum(p, 1 - p).ravel())[::-1]
    for count in range(500, 60_000, 4000):
        found = budget.solve(as_table(p), count=count)
        assert found.bill.total == pytest.approx(risks[count:].sum(), rel=1e-9)
        assert found.count == min(count, np.count_nonzero(risks))


@pytest.mark.parametrize("loss", ["f1", "subset", "rank"])
def test_large_tables_with_probabilities_that_differ_by_rounding_only(loss, monkeypatch):
    p = np.random.default_rng(1).integers(0, 11, (3000, 5)) / 10
    monkeypatch.setattr(_per_instance, "MAX_OPERATIONS", 100.0)
    counts = range(200, 15_000, 1300)
    whole = [budget.solve(abstain.risk_profile(p, loss=loss), count=count) for count in counts]
    monkeypatch.setattr(_per_instance, "SAMPLE_ROWS", 50)
    monkeypatch.setattr(_per_instance, "MAX_PROFILED_ENTRIES", 1)
    for count, expected in zip(counts, whole, strict=True):
        found = budget.solve(p, loss=loss, count=count)
        assert found.count <= count
        assert found.bill.total - found.gap <= expected.bill.total + TOLERANCE
        assert expected.bill.total - expected.gap <= found.bill.total + TOLERANCE
        assert found.price.decide(p).n_abstained.sum() <= count


def test_the_gap_knows_of_instances_that_were_not_looked_at(monkeypatch):
    rng = np.random.default_rng(0)
    p = np.zeros((4400, 10))
    p[:, 0] = 0.02 * (1 - 1e-3 * rng.random(4400))
    p[rng.choice(4400, 60, replace=False)] = 0.5 - 1e-3 * rng.random((60, 10))
    best = least_bill(p, "subset", total=15)
    monkeypatch.setattr(_per_instance, "MAX_PROFILED_ENTRIES", 1)
    found = budget.solve(p, loss="subset", count=15)
    assert best - TOLERANCE <= found.bill.total <= best + found.gap + TOLERANCE


def test_a_price_keeps_the_names_of_its_labels():
    p = pd.DataFrame(np.random.default_rng(0).random((100, 3)), columns=list("abc"))
    price = budget.solve(p, review=[0.01, 0.2, 0.3]).price
    with pytest.raises(abstain.InvalidLabels, match="the same labels in another order"):
        price.decide(p[["c", "b", "a"]])


def test_a_price_is_a_penalty_with_all_its_limits():
    p = np.random.default_rng(1).random((1000, 3))
    price = budget.solve(p, per_label=[10, 10, 10], per_instance=1).price
    assert abstain.decide(p, penalty=price).n_abstained.sum() == price.decide(p).n_abstained.sum() <= 30


def test_what_must_not_be_reviewed_is_not_reviewed_later():
    price = budget.solve([[0.0, 0.4], [1.0, 0.3]], per_label=[0, 1]).price
    np.testing.assert_array_equal(price.decide([[0.5, 0.1]]).labels, [[0, 0]])


@pytest.mark.parametrize("per_instance", [0, 1])
def test_crossing_caps_of_nothing(per_instance):
    assert budget.solve([[0.4, 0.5]], per_instance=per_instance, per_label=0).count == 0


def test_crossing_caps_of_tiny_values():
    p = np.random.default_rng(0).random((300, 10)) * 5e-8
    found = budget.solve(p, count=100, per_instance=2, per_label=20)
    assert found.count == 100
    apart = budget.solve(p, count=100, per_instance=2)
    assert found.bill.total == pytest.approx(apart.bill.total, rel=1e-3)


def test_sparse_tables_without_a_profile_are_refused():
    loss = abstain.FMeasure(zero_division=0)
    with pytest.raises(abstain.InvalidLoss, match="would be dense"):
        budget.solve(sparse.csr_array(np.zeros((2, 5))), loss=loss, count=2)


@pytest.mark.parametrize("loss", ["hamming", "f1"])
def test_the_row_of_a_large_table_is_named(loss, monkeypatch):
    monkeypatch.setattr(_per_instance, "MAX_PROFILED_ENTRIES", 1)
    monkeypatch.setattr(_per_entry, "SAMPLE_ROWS", 100)
    for row in (0, 4000, 7777):
        p = pd.DataFrame(np.random.default_rng(0).random((10_000, 2)), columns=["a", "b"]).add_prefix("label ")
        p.iloc[row, 1] = 1.5
        with pytest.raises(abstain.InvalidProbabilities, match=rf"row {row} .*label b'\) is 1\.5"):
            budget.solve(p, loss=loss, count=5)
        with pytest.raises(abstain.InvalidProbabilities, match=rf"row {row} .*label b'\) is 1\.5"):
            budget.solve(p, loss=loss, review=0.1)


def test_names_are_kept_and_caps_can_be_given_by_name():
    p = pd.DataFrame([[0.4, 0.5], [0.45, 0.6]], index=["a", "b"], columns=["sky", "sea"])
    found = budget.solve(p, per_label={"sea": 1, "sky": 0})
    assert found.prediction.label_names == ("sky", "sea")
    assert list(found.prediction.to_frame().index) == ["a", "b"]
    np.testing.assert_array_equal(found.prediction.labels, [[0, -1], [0, 1]])
    for same in (pd.Series({"sea": 1, "sky": 0}), [0, 1], np.array([0, 1], np.uint8)):
        np.testing.assert_array_equal(budget.solve(p, per_label=same).prediction.labels, found.prediction.labels)
    for some in ({"sky": 0}, [0, np.inf]):
        np.testing.assert_array_equal(budget.solve(p, per_label=some).prediction.labels, [[0, -1], [0, -1]])
    by_number = budget.solve(p.to_numpy(), per_label=pd.Series([1, 0], index=[1, 0]))
    np.testing.assert_array_equal(by_number.prediction.labels, found.prediction.labels)


def test_a_price_can_be_kept():
    found = budget.solve(np.random.default_rng(1).random((30, 3)), count=9, per_label=[3, 9, 1], per_instance=1)
    again = pickle.loads(pickle.dumps(found.price))
    assert again.cost == found.price.cost
    assert again.max_abstained == 1
    np.testing.assert_array_equal(again.label_costs, found.price.label_costs)
    assert "at most 1 per instance" in repr(again)
    assert again == found.price
    assert hash(again) == hash(found.price)


def prices():
    """A plain one, one with a cap, one with costs by label, and one with both."""
    p = np.random.default_rng(1).random((30, 3))
    limits = [{}, {"per_instance": 1}, {"review": [0.0, 0.1, 0.2]}, {"per_instance": 1, "per_label": [3, 9, 1]}]
    return [budget.solve(p, count=9, **each).price for each in limits]


@pytest.mark.parametrize("k", range(4))
def test_a_price_is_no_number(k):
    price = prices()[k]
    for used in (
        lambda: 2 * price, lambda: price + 1, lambda: price < 0.3, lambda: price == price.cost, lambda: price != 0.3,
        lambda: np.float64(2) * price, lambda: np.multiply(price, 2.0), lambda: max(price, 0.1), lambda: f"{price:.3g}",
    ):  # fmt: skip
        with pytest.raises(TypeError):
            used()
    for penalty in (abstain.Linear, abstain.Concave):
        with pytest.raises(abstain.InvalidPenalty, match=r"the cost is Price\(.*; expected a number"):
            penalty(price)
    assert isinstance(price, abstain.Penalty)
    assert not isinstance(price, float)


def test_the_number_of_a_price_is_all_there_is_to_it_or_is_refused():
    plain, capped, by_label, both = prices()
    assert float(plain) == plain.cost > 0
    with pytest.raises(TypeError, match=r"at most 1 per instance\) is more than a number: it caps abstentions"):
        float(capped)
    for price in (by_label, both):
        with pytest.raises(TypeError, match="is more than a number: labels have costs of their own"):
            float(price)


def test_a_price_charges_what_its_plain_form_does():
    plain, capped, by_label, both = prices()
    assert isinstance(plain.penalty, abstain.Linear)
    assert isinstance(capped.penalty, abstain.Capped)
    assert isinstance(both.penalty.counting, abstain.Capped)
    for price in (plain, capped, by_label, both):
        ours, theirs = price.bind(3), price.penalty.bind(3)
        np.testing.assert_array_equal(ours.counts, theirs.counts)
        np.testing.assert_array_equal(ours.label_costs, theirs.label_costs)
    assert by_label.bind(3).label_costs.tolist() == by_label.label_costs.tolist()
    assert both.bind(3).counts[2] == np.inf


def test_a_price_with_costs_by_label_is_no_part_of_another_penalty():
    _, capped, by_label, _ = prices()
    with pytest.raises(abstain.InvalidPenalty, match="Capped: caps a counting penalty"):
        abstain.decide([[0.5, 0.4, 0.3]], penalty=abstain.Capped(by_label, 1))
    with pytest.raises(abstain.InvalidPenalty, match="PerLabel: adds a counting penalty"):
        abstain.decide([[0.5, 0.4, 0.3]], penalty=abstain.PerLabel([0.1, 0.1, 0.1]) + by_label)
    assert (abstain.PerLabel([0.0, 0.0, 0.0]) + capped).bind(3).counts[2] == np.inf


def test_prices_are_equal_if_they_decide_alike_and_cannot_be_changed():
    assert prices() == prices()
    assert len(set(prices() + prices())) == 4
    plain, _, by_label, _ = prices()
    assert plain != by_label
    assert plain != budget.Price(plain.cost, abstain.Hamming(2.0))
    with pytest.raises(AttributeError):
        plain.cost = 0.1
    for price in (by_label, pickle.loads(pickle.dumps(by_label))):
        with pytest.raises(ValueError, match="read-only"):
            price.label_costs[0] = 0.0


def test_an_empty_table():
    for loss in ("hamming", "f1"):
        found = budget.solve(np.empty((0, 3)), loss=loss, rate=0.5)
        assert found.count == 0
        assert found.bill.total == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing limits the reviews"),
        ({"rate": 0.1, "count": 3}, "a rate or a count of reviews, not both"),
        ({"rate": 1.5}, "rate is 1.5; expected a share of the labels, from 0 to 1"),
        ({"rate": "5%"}, "rate is '5%'"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"count": 2.5}, "count is 2.5; expected a whole number of reviews"),
        ({"count": -1}, "count is -1"),
        ({"per_instance": -1}, "per_instance is -1"),
        ({"per_label": [1, 2]}, r"per_label has shape \(2,\); expected one number, or one for each of 3"),
        ({"per_label": [1, -2, 0]}, "per_label of column 1 is -2;"),
        ({"per_label": 1.5}, "per_label: expected whole numbers"),
        ({"per_label": True}, "per_label is True; expected a number"),
        ({"per_label": "3"}, "per_label is '3'; expected a number"),
        ({"per_label": float("nan")}, "per_label is nan"),
        ({"per_label": {"sky": 1}}, "per_label names 'sky', which is none of the labels"),
        ({"count": 1, "review": {0: 1, 1: 2}}, "review says nothing of label 2"),
        ({"review": None}, "nothing limits the reviews"),
        ({"count": 1, "review": float("inf")}, "review is inf; expected finite numbers"),
        ({"count": 1, "review": "dear"}, "review is 'dear'; expected a number"),
        ({"loss": "f1", "per_label": 3}, r"per_label needs a loss that is a sum over labels .* FMeasure"),
        ({"loss": "rank", "count": 3, "review": [1, 2, 3]}, "a review cost for each label needs a loss"),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(abstain.InvalidBudget, match=message):
        budget.solve([[0.1, 0.5, 0.7]], **options)


def test_a_profile_keeps_its_loss():
    profile = abstain.risk_profile([[0.1, 0.5]], loss="f1")
    assert budget.solve(profile, count=1).price.loss is profile.loss
    assert budget.solve(profile, loss=abstain.FMeasure(), count=1).count == 1
    for other in ("rank", "hamming", abstain.Hamming(), abstain.FMeasure(beta=2)):
        with pytest.raises(abstain.InvalidLoss, match="the profile is one for FMeasure"):
            budget.solve(profile, loss=other, count=1)
    costs = np.ones(20)
    costs[10] = 50
    with pytest.raises(abstain.InvalidLoss, match="the profile is one for Hamming"):
        budget.solve(abstain.risk_profile(np.full((1, 20), 0.3)), loss=abstain.Hamming(costs), count=1)


def test_bad_probabilities_are_named():
    with pytest.raises(abstain.InvalidProbabilities, match=r"row 1, column 0 is 1\.5"):
        budget.solve([[0.1, 0.5], [1.5, 0.2]], count=1)
