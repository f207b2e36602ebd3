"""Every point of every curve, compared with deciding at its cost and scoring the answers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from tests.support.cases import LOSS_CASES, make_loss, random_probabilities, random_truth

import abstain
from abstain import InvalidParameter, metrics
from abstain.calibration import brier_score_loss, calibration_error
from abstain.curves import accuracy_rejection_curve, cost_curve, error_capture_curve, label_table, risk_coverage_curve

ANSWERING = [case for case in LOSS_CASES if case[0] != "rank"]
ALL = [cost_curve, risk_coverage_curve, accuracy_rejection_curve, error_capture_curve]


def simulated(n, m, seed=0):
    p = random_probabilities(n, m, seed)
    y = random_truth(p, seed).copy()
    y[::5, 0] = 1 - y[::5, 0]  # what is certain may be wrong
    y.flags.writeable = False
    return p, y


def some(costs, n_points=25):
    return np.unique(np.linspace(0, len(costs) - 1, n_points).astype(int))


@pytest.mark.parametrize("case", LOSS_CASES, ids=str)
@pytest.mark.parametrize("m", [1, 5])
def test_cost_curves_are_exact(case, m):
    (p, y), loss = simulated(16, m), make_loss(case, m)
    curve = cost_curve(p, y_true=y, loss=loss)
    assert curve.costs[0] == 0
    assert (np.diff(curve.costs) > 0).all()
    breaks = abstain.risk_profile(p, loss=loss).path().break_points
    np.testing.assert_allclose(curve.costs[np.searchsorted(curve.costs * (1 + 1e-9), breaks)], breaks, rtol=1e-11)
    for k in some(curve.costs):
        after = curve.costs[k + 1] if k + 1 < len(curve.costs) else 2 * curve.costs[k] + 1
        # Losses that are 1 minus a measure are equal within 1e-12: closer to the next cost, decisions may be either.
        between = [(curve.costs[k] + after) / 2, after - 1e-10] if after - curve.costs[k] > 1e-9 else []
        for cost in (curve.costs[k], *between):
            decided = abstain.decide(p, loss, cost)
            expected = metrics.expected_generalized_loss(p, decided, loss=loss, penalty=0.0)
            realized = metrics.generalized_loss(y, decided, loss=loss, penalty=0.0)
            point = curve.at(cost)
            assert point.cost == cost
            assert point.abstention == curve.abstention[k] == pytest.approx(metrics.abstention_rate(decided))
            assert point.expected_loss == curve.expected_loss[k] == pytest.approx(expected, abs=1e-11)
            assert point.realized_loss == curve.realized_loss[k] == pytest.approx(realized, abs=1e-11)
            total = metrics.expected_generalized_loss(p, decided, loss=loss, penalty=cost)
            assert point.expected_generalized_loss == pytest.approx(total, abs=1e-11)
            total = metrics.generalized_loss(y, decided, loss=loss, penalty=cost)
            assert point.realized_generalized_loss == pytest.approx(total, abs=1e-11)
        assert curve.at(curve.costs[k]).expected_generalized_loss == pytest.approx(curve.expected_generalized_loss[k])
        assert curve.at(curve.costs[k]).realized_generalized_loss == pytest.approx(curve.realized_generalized_loss[k])
    assert curve.at(np.inf).expected_generalized_loss == curve.expected_loss[-1]


@pytest.mark.parametrize("case", LOSS_CASES, ids=str)
def test_risk_coverage_curves_are_exact(case):
    (p, y), loss = simulated(16, 5), make_loss(case, 5)
    curve = risk_coverage_curve(y, p, loss=loss)
    assert (np.diff(curve.coverage) > 0).all()
    assert curve.coverage[-1] == 1
    for k in some(curve.costs):
        decided = abstain.decide(p, loss, curve.costs[k])
        assert curve.coverage[k] == pytest.approx(1 - metrics.abstention_rate(decided))
        assert curve.risk[k] == pytest.approx(metrics.generalized_loss(y, decided, loss=loss, penalty=0.0), abs=1e-11)
        assert curve.at(curve.coverage[k]) == pytest.approx(curve.risk[k])
    x = np.linspace(0, 1, 2_001)
    assert curve.area == pytest.approx(np.mean([curve.at(share) for share in (x[1:] + x[:-1]) / 2]), abs=1e-4)


@pytest.mark.parametrize("case", [case for case in LOSS_CASES if case[0] == "hamming"], ids=str)
def test_risks_per_answer_are_exact(case):
    (p, y), loss = simulated(16, 5), make_loss(case, 5)
    curve = risk_coverage_curve(y, p, loss=loss, per="answer")
    for k in some(curve.costs):
        decided = abstain.decide(p, loss, curve.costs[k])
        total, n_answers = (
            metrics.generalized_loss(y, decided, loss=loss, penalty=0.0) * 16,
            (decided.labels >= 0).sum(),
        )
        assert curve.risk[k] == pytest.approx(total / n_answers if n_answers else np.nan, nan_ok=True)
        if n_answers:
            assert curve.at(curve.coverage[k]) == pytest.approx(curve.risk[k])
    x = np.linspace(0, 1, 2_001)
    assert curve.area == pytest.approx(np.mean([curve.at(share) for share in (x[1:] + x[:-1]) / 2]), abs=1e-4)


@pytest.mark.parametrize("case", ANSWERING, ids=str)
def test_accuracy_rejection_curves_are_exact(case):
    (p, y), loss = simulated(16, 5), make_loss(case, 5)
    curve = accuracy_rejection_curve(y, p, loss=loss)
    for k in some(curve.costs):
        decided = abstain.decide(p, loss, curve.costs[k])
        assert curve.rejection[k] == pytest.approx(metrics.abstention_rate(decided))
        assert curve.accuracy[k] == pytest.approx(1 - metrics.answered_error_rate(y, decided), nan_ok=True)
        if curve.rejection[k] < 1:
            assert curve.at(curve.rejection[k]) == pytest.approx(curve.accuracy[k])
    x = np.linspace(0, 1, 2_001)
    assert curve.area == pytest.approx(np.mean([curve.at(share) for share in (x[1:] + x[:-1]) / 2]), abs=1e-4)
    assert curve.area <= curve.ideal_area or case[0] != "hamming"


@pytest.mark.parametrize("case", ANSWERING, ids=str)
def test_error_capture_curves_are_exact(case):
    (p, y), loss = simulated(16, 5), make_loss(case, 5)
    curve = error_capture_curve(y, p, loss=loss)
    full = abstain.decide(p, loss, penalty="none")
    assert curve.error_rate == pytest.approx(metrics.answered_error_rate(y, full))
    for k in some(curve.costs):
        decided = abstain.decide(p, loss, curve.costs[k])
        assert curve.reviewed[k] == pytest.approx(metrics.abstention_rate(decided))
        assert curve.captured[k] == pytest.approx(metrics.error_capture_rate(y, decided, full))
        assert curve.at(curve.reviewed[k]) == pytest.approx(curve.captured[k])
    assert (curve.at(0), curve.at(1)) == (0, 1)
    x = np.linspace(0, 1, 2_001)
    assert curve.area == pytest.approx(np.mean([curve.at(share) for share in (x[1:] + x[:-1]) / 2]), abs=1e-4)
    assert curve.area <= curve.ideal_area


@given(st.integers(1, 12), st.integers(1, 4), st.integers(0, 1000), st.sampled_from([2, 5, 1000]))
@settings(deadline=None, max_examples=50)
def test_for_the_hamming_loss_the_curves_are_one(n, m, seed, levels):
    random = np.random.default_rng(seed)
    p, y = random.integers(0, levels + 1, (n, m)) / levels, random.integers(0, 2, (n, m))
    risk, per_answer = risk_coverage_curve(y, p), risk_coverage_curve(y, p, per="answer")
    accuracy, capture = accuracy_rejection_curve(y, p), error_capture_curve(y, p)
    np.testing.assert_allclose(accuracy.accuracy, 1 - per_answer.risk, atol=1e-15)  # 1 − x rounds absolutely
    assert accuracy.area == pytest.approx(1 - per_answer.area)
    np.testing.assert_allclose(per_answer.risk * risk.coverage * m, np.where(risk.coverage > 0, risk.risk, np.nan))
    if capture.error_rate:
        np.testing.assert_allclose(capture.captured, 1 - risk.risk / risk.risk[-1], atol=1e-12)
        assert capture.area == pytest.approx(1 - risk.area / risk.risk[-1])
    else:
        assert np.isnan(capture.captured).all()
        assert np.isnan(capture.area)
    assert accuracy.area <= accuracy.ideal_area + 1e-12


def test_areas_are_those_of_ties_broken_at_random():
    random = np.random.default_rng(0)
    p, y = random.integers(1, 4, (60, 4)) / 8, random.integers(0, 2, (60, 4))
    curves = [risk_coverage_curve(y, p, per="answer"), risk_coverage_curve(y, p), error_capture_curve(y, p)]
    assert len(curves[0].costs) == 4
    areas = []
    for _ in range(100):
        broken = p + 1e-6 * random.random(p.shape)
        areas.append(
            [
                risk_coverage_curve(y, broken, per="answer").area,
                risk_coverage_curve(y, broken).area,
                error_capture_curve(y, broken).area,
            ]
        )
    spread = np.std(areas, axis=0) / np.sqrt(len(areas))
    assert (np.abs(np.mean(areas, axis=0) - [curve.area for curve in curves]) < 4 * spread + 0.002).all()


def test_the_ideal_is_what_an_oracle_gets():
    y = (np.random.default_rng(0).random((50, 4)) < 0.5).astype(int)
    p = np.where(np.random.default_rng(1).random(y.shape) < 0.8, 0.99 * y + 0.005, 0.6 - 0.2 * y)  # unsure where wrong
    accuracy, capture = accuracy_rejection_curve(y, p), error_capture_curve(y, p)
    assert 0.1 < capture.error_rate < 0.3
    assert capture.area == pytest.approx(capture.ideal_area)
    assert accuracy.area == pytest.approx(accuracy.ideal_area)


def test_costs_that_differ_by_rounding_are_one():
    curve = cost_curve([[0.3, 0.7, 1 - 0.7]])
    assert len(np.unique([0.3, 1 - 0.7, 1 - (1 - 0.7)])) > 1
    np.testing.assert_allclose(curve.costs, [0, 0.3])
    for cost in (0.3, 1 - 0.7):
        assert curve.at(cost).abstention == abstain.decide([[0.3, 0.7, 1 - 0.7]], penalty=cost).n_abstained[0] / 3 == 0


def test_the_area_is_the_one_of_the_experiments():
    p, y = simulated(200, 6)
    curve = risk_coverage_curve(y, p, loss="f1")
    keys = {"dataset": "data", "learner": "me", "loss": "f1", "fold": 1}
    rows = pd.DataFrame({"step": range(len(curve.costs)), "coverage": curve.coverage, "risk": curve.risk, **keys})
    related = dict.fromkeys(abstain.experiment._results.BASELINES, 0.0)
    results = abstain.experiment._results.Results(None, rows.assign(**related), None, {})
    assert results.aurc()["aurc"].item() == pytest.approx(curve.area)


def test_a_million_steps_do_not_add_up_to_an_error():
    random = np.random.default_rng(0)
    p = random.beta(0.5, 1.5, (20_000, 50))
    y = random.random(p.shape) < p
    loss = abstain.Hamming(np.linspace(0.3, 1.1, 50), 0.7)
    curve = cost_curve(p, y_true=y, loss=loss)
    assert len(curve.costs) > 900_000
    for cost in (1e-6, 0.01, 0.2, 0.5):
        decided = abstain.decide(p, loss, cost)
        point = curve.at(cost)
        assert point.abstention == metrics.abstention_rate(decided)
        expected = metrics.expected_generalized_loss(p, decided, loss=loss, penalty=cost)
        assert point.expected_generalized_loss == pytest.approx(expected, abs=1e-11)
        realized = metrics.generalized_loss(y, decided, loss=loss, penalty=cost)
        assert point.realized_generalized_loss == pytest.approx(realized, abs=1e-11)


def test_without_the_truth():
    p, y = simulated(20, 3)
    curve, scored = cost_curve(p, n_bootstrap=5, random_state=0), cost_curve(p, y_true=y)
    assert curve.realized_loss is curve.realized_generalized_loss is curve.at(0.1).realized_loss is None
    assert curve.at(0.1).realized_generalized_loss is None
    np.testing.assert_array_equal(curve.expected_loss, scored.expected_loss)
    assert set(curve.bands) == {"abstention", "expected_loss", "expected_generalized_loss"}
    assert "realized" not in repr(curve)
    assert "realized" in repr(scored)


@pytest.mark.parametrize("curve", ALL)
def test_sparse_and_framed_are_as_dense(curve):
    p, y = simulated(40, 4)
    p = np.where(p < 0.3, 0.0, p)
    dense = vars(curve(probabilities=p, y_true=y))
    for probabilities, truth in [
        (sparse.csr_array(p), sparse.csr_array(y)),
        (pd.DataFrame(p), y),
        (pl.DataFrame(p, schema=list("abcd")), pl.DataFrame(y, schema=list("abcd"))),
        (abstain.Table(p), y),
    ]:
        found = vars(curve(probabilities=probabilities, y_true=truth))
        for name, values in dense.items():
            if isinstance(values, np.ndarray):
                np.testing.assert_array_equal(found[name], values)


# Bands


def resampled(n, n_bootstrap, seed):
    random = np.random.default_rng(seed)
    return [random.integers(n, size=n) for _ in range(n_bootstrap)]


@pytest.mark.parametrize("loss", ["hamming", "f1", "rank"])
def test_cost_bands_are_those_of_curves_computed_anew(loss):
    p, y = simulated(30, 4)
    curve = cost_curve(p, y_true=y, loss=loss, n_bootstrap=20, confidence=0.8, random_state=7)
    slow = [cost_curve(p[rows], y_true=y[rows], loss=loss) for rows in resampled(30, 20, 7)]
    for name, band in curve.bands.items():
        assert band.confidence == 0.8
        np.testing.assert_array_equal(band.x, curve.costs)
        values = [[getattr(each.at(cost), name) for cost in band.x] for each in slow]
        low, high = np.quantile(values, [0.1, 0.9], axis=0)
        np.testing.assert_allclose(band.low, low, atol=1e-12)
        np.testing.assert_allclose(band.high, high, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "options", "x"),
    [
        (risk_coverage_curve, {}, "coverage"),
        (risk_coverage_curve, {"loss": "rank"}, "coverage"),
        (risk_coverage_curve, {"per": "answer"}, "coverage"),
        (accuracy_rejection_curve, {}, "rejection"),
        (accuracy_rejection_curve, {"loss": "jaccard"}, "rejection"),
        (error_capture_curve, {}, "reviewed"),
        (error_capture_curve, {"loss": "f1"}, "reviewed"),
    ],
)
def test_other_bands_are_those_of_curves_computed_anew(make, options, x):
    p, y = simulated(30, 4)
    curve = make(y, p, n_bootstrap=20, confidence=0.8, random_state=7, **options)
    assert (np.diff(curve.band.x) > 0).all()
    assert np.isin(curve.band.x.round(12), getattr(curve, x).round(12)).all()
    slow = [make(y[rows], p[rows], **options) for rows in resampled(30, 20, 7)]
    low, high = np.quantile([[each.at(share) for share in curve.band.x] for each in slow], [0.1, 0.9], axis=0)
    np.testing.assert_allclose(curve.band.low, low, atol=1e-12)
    np.testing.assert_allclose(curve.band.high, high, atol=1e-12)


@pytest.mark.parametrize("make", ALL[1:])
def test_long_bands_are_thinned_out_and_stay_right(make):
    p, y = simulated(400, 8)
    curve = make(y, p, n_bootstrap=30, random_state=3)
    assert 150 < len(curve.band.x) <= 202
    slow = [make(y[rows], p[rows]) for rows in resampled(400, 30, 3)]
    inside = curve.band.x[5:-5]
    low, high = np.quantile([[each.at(share) for share in inside] for each in slow], [0.025, 0.975], axis=0)
    scale = (curve.band.high - curve.band.low).max()
    np.testing.assert_allclose(curve.band.low[5:-5], low, atol=0.1 * scale)
    np.testing.assert_allclose(curve.band.high[5:-5], high, atol=0.1 * scale)
    again = make(y, p, n_bootstrap=30, random_state=3)
    np.testing.assert_array_equal(curve.band.low, again.band.low)


def test_long_bands_of_costs_are_where_something_happens():
    p, y = simulated(400, 8)
    loss = abstain.Hamming(np.append(np.ones(7), 100.0), np.append(np.ones(7), 100.0))  # the last label goes on and on
    curve = cost_curve(p, y_true=y, loss=loss, n_bootstrap=15, random_state=3)
    slow = [cost_curve(p[rows], y_true=y[rows], loss=loss) for rows in resampled(400, 15, 3)]
    for name, band in curve.bands.items():
        assert 150 < len(band.x) <= 204
        assert (band.x < 0.5).sum() > 50  # 1 % of the way
        assert (band.x[0], band.x[-1]) == (0, curve.costs[-1])
        values = [[getattr(each.at(cost), name) for cost in band.x] for each in slow]
        low, high = np.quantile(values, [0.025, 0.975], axis=0)
        np.testing.assert_allclose(band.low, low)
        np.testing.assert_allclose(band.high, high)


def correlated(n, random):
    """Instances whose labels are wrong together: with labels drawn one by one, bands would be half as wide."""
    doubt = random.random((n, 1)) / 2
    p = np.clip(doubt + 0.02 * random.random((n, 6)), 0, 0.5)
    return p, np.repeat(random.random((n, 1)) < doubt, 6, axis=1)


def test_bands_hold_the_truth_as_often_as_they_say():
    random = np.random.default_rng(0)
    p, y = correlated(100_000, random)
    truth = risk_coverage_curve(y, p), cost_curve(p, y_true=y), accuracy_rejection_curve(y, p)
    coverages, costs = [0.3, 0.6, 0.9], [0.1, 0.25, 0.4]
    known = [[truth[0].at(x) for x in coverages], [truth[1].at(c).realized_generalized_loss for c in costs]]
    known.append([truth[2].at(1 - x) for x in coverages])
    held = []
    for _ in range(60):
        sample = correlated(150, random)[::-1]
        options = {"n_bootstrap": 100, "confidence": 0.9, "random_state": random}
        risk, accuracy = risk_coverage_curve(*sample, **options), accuracy_rejection_curve(*sample, **options)
        loss = cost_curve(sample[1], y_true=sample[0], **options).bands["realized_generalized_loss"]
        for band, x, right in zip(
            (risk.band, loss, accuracy.band), (coverages, costs, [1 - x for x in coverages]), known, strict=True
        ):
            low, high = np.interp(x, band.x, band.low), np.interp(x, band.x, band.high)
            held.append((low <= right) & (right <= high))
    share = np.mean(held)
    assert 0.84 < share < 0.95, share


def test_draws_without_errors_are_left_out():
    p, y = np.array([[0.9, 0.2], [0.7, 0.1], [0.6, 0.4]]), np.array([[1, 0], [1, 0], [0, 0]])
    band = error_capture_curve(y, p, n_bootstrap=40, random_state=0).band
    assert np.isfinite([band.low, band.high]).all()
    nothing = error_capture_curve((p > 0.5).astype(int), p, n_bootstrap=4, random_state=0).band
    assert np.isnan([nothing.low, nothing.high]).all()


# Tables


@pytest.mark.parametrize("case", LOSS_CASES, ids=str)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_label_tables_are_exact(case, form):
    (p, y), loss = simulated(40, 5), make_loss(case, 5)
    p = np.where(p < 0.2, 0.0, p)
    y = np.where(np.arange(5) == 3, 0, y)  # a label that never occurs
    table = label_table(form(p), y_true=form(y), loss=loss, penalty=0.05)
    partial, full = abstain.decide(p, loss, 0.05), abstain.decide(p, loss, "none")
    np.testing.assert_allclose(table.mean_probability, p.mean(axis=0))
    np.testing.assert_allclose(table.prevalence, y.mean(axis=0))
    np.testing.assert_allclose(table.abstention_rate, (partial.codes == -1).mean(axis=0))
    np.testing.assert_allclose(table.calibration_error, calibration_error(y, p, average=None))
    np.testing.assert_allclose(table.brier_score, brier_score_loss(y, p, average=None))
    if loss.gives_rankings:
        assert table.error_rate is table.answered_error_rate is table.errors is table.errors_caught is None
        assert "errors" not in table.to_frame()
        return
    for j in range(5):
        codes, wrong = partial.labels[:, j], full.labels[:, j] != y[:, j]
        answered = codes >= 0
        assert table.error_rate[j] == wrong.mean()
        assert table.errors[j] == wrong.sum()
        assert table.errors_caught[j] == (wrong & ~answered).sum()
        rate = (codes != y[:, j])[answered].mean() if answered.any() else np.nan
        assert table.answered_error_rate[j] == pytest.approx(rate, nan_ok=True)


def test_label_tables_keep_names_and_become_frames():
    p, y = simulated(10, 3)
    names = ["sun", "sea", "sky"]
    frame = label_table(pd.DataFrame(p, columns=names), y_true=pd.DataFrame(y, columns=names)).to_frame()
    assert list(frame.index) == names
    assert frame.loc["sea", "prevalence"] == y[:, 1].mean()
    polars = label_table(pl.DataFrame(p, schema=names), y_true=y).to_frame()
    assert polars["label"].to_list() == names
    assert polars["errors_caught"].dtype == pl.Int64
    plain = label_table(p)
    assert plain.label_names == (0, 1, 2)
    assert list(plain.to_frame().columns) == ["mean_probability", "abstention_rate"]
    pairs = label_table(abstain.Table(p, [("a", 1), ("a", 2), ("b", 1)])).to_frame()
    assert list(pairs.index) == [("a", 1), ("a", 2), ("b", 1)]


def test_label_tables_are_readable():
    p, y = simulated(10, 30)
    lines = repr(label_table(p, y_true=y)).splitlines()
    assert lines[0] == "LabelTable of 30 labels, 10 instances"
    assert lines[2].split() == [
        "label", "probability", "rate", "prevalence", "error", "score", "rate", "error", "rate", "errors", "caught"
    ]  # fmt: skip
    assert len(lines) == 1 + 2 + 20 + 1
    assert lines[-1] == "… 10 more"
    assert len({len(line) for line in lines[1:-1]}) == 1


def test_label_tables_take_any_penalty_and_one_instance():
    p, y = simulated(12, 3)
    costs = abstain.PerLabel([0.0, 0.1, 9.0])
    table = label_table(p, y_true=y, penalty=costs)
    np.testing.assert_allclose(table.abstention_rate, (abstain.decide(p, penalty=costs).labels == -1).mean(axis=0))
    one = label_table([0.9, 0.3], y_true=[1, 1], penalty="none")
    np.testing.assert_array_equal(one.errors, [0, 1])


# What is wrong


@pytest.mark.parametrize("curve", ALL)
@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (lambda p, y: (p, y[:-1]), {}, abstain.InvalidLabels, r"y_true has shape \(9, 3\); the probabilities have"),
        (lambda p, y: (p[:0], y[:0]), {}, abstain.InvalidProbabilities, "there are no rows"),
        (lambda p, y: (p + 1, y), {}, abstain.InvalidProbabilities, "a probability is a number from 0 to 1"),
        (lambda p, y: (p, y + 1), {}, abstain.InvalidLabels, "the truth is 0 or 1"),
        (
            lambda p, y: (p, np.where(p == p[2, 1], np.nan, y)),
            {},
            abstain.InvalidLabels,
            "row 2, column 1 is nan; the truth is 0 or 1; .* over all labels: leave out the rows with unknown labels",
        ),
        (
            lambda p, y: (p, y),
            {"n_bootstrap": -1},
            InvalidParameter,
            "n_bootstrap is -1; expected a whole number ≥ 0",
        ),
        (
            lambda p, y: (p, y),
            {"n_bootstrap": 1.5},
            InvalidParameter,
            "n_bootstrap is 1.5; expected a whole number",
        ),
        (
            lambda p, y: (p, y),
            {"confidence": 95},
            InvalidParameter,
            "confidence is 95; expected a number between 0 and 1",
        ),
        (lambda p, y: (p[:1], y[:1]), {"n_bootstrap": 5}, InvalidParameter, "at least two are needed"),
        (lambda p, y: (p, y), {"loss": "zero-one"}, abstain.InvalidLoss, "loss is 'zero-one'"),
    ],
)
def test_what_is_wrong(curve, arguments, options, error, message):
    with pytest.raises(error, match=message):
        curve(**dict(zip(("probabilities", "y_true"), arguments(*simulated(10, 3)), strict=True)), **options)


@pytest.mark.parametrize("curve", ALL[1:])
def test_what_needs_the_truth(curve):
    with pytest.raises(
        abstain.InvalidLabels, match=r"y_true is None; an? .* curve compares the answers with the truth"
    ):
        curve(None, [[0.5]])


@pytest.mark.parametrize("curve", [accuracy_rejection_curve, error_capture_curve])
def test_what_rankings_cannot_say(curve):
    with pytest.raises(abstain.InvalidLoss, match=r"counts wrong answers; Rank\(\) gives rankings"):
        curve(*simulated(10, 3)[::-1], loss="rank")


def test_what_else_is_wrong():
    p, y = simulated(10, 3)
    with pytest.raises(abstain.InvalidLoss, match="is not a sum over labels, so there is no risk per answer"):
        risk_coverage_curve(y, p, loss="f1", per="answer")
    with pytest.raises(InvalidParameter, match="per is 'label'; expected 'instance' or 'answer'"):
        risk_coverage_curve(y, p, per="label")
    with pytest.raises(InvalidParameter, match="coverage is 2; expected a number from 0 to 1"):
        risk_coverage_curve(y, p).at(2)
    with pytest.raises(InvalidParameter, match="rejection is -1; expected"):
        accuracy_rejection_curve(y, p).at(-1)
    with pytest.raises(InvalidParameter, match="reviewed is nan; expected"):
        error_capture_curve(y, p).at(np.nan)
    with pytest.raises(abstain.InvalidPenalty, match="expected a number ≥ 0"):
        cost_curve(p, y_true=y).at(-0.1)
    with pytest.raises(abstain.InvalidLabels, match="y_true has shape"):
        label_table(p, y_true=y[:-1])
    with pytest.raises(abstain.InvalidProbabilities, match="there are no rows"):
        label_table(p[:0])
    with pytest.raises(abstain.InvalidLabels, match=r"row 0, column 2 is -1; .* the rows with unknown labels"):
        label_table(p, y_true=np.where(p == p[0, 2], -1, y))


@pytest.mark.parametrize("curve", ALL)
def test_one_instance_and_constant_labels(curve):
    assert len(curve(probabilities=[0.9, 0.4], y_true=[1, 1]).costs) == 3
    certain = curve(probabilities=[[0.0, 1.0], [1.0, 0.0]], y_true=[[0, 1], [1, 0]])
    np.testing.assert_array_equal(certain.costs, [0])
    assert repr(certain).startswith(type(certain).__name__)
