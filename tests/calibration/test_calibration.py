"""Diagnostics: compared with scikit-learn's, with loops, and with what is known of simulated probabilities."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from sklearn import metrics
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression

import abstain
from abstain.calibration import (
    ReliabilityDisplay,
    brier_decomposition,
    brier_score_loss,
    calibration_error,
    reliability_curve,
)

mpl.use("agg")


def simulated(n=4000, m=3, power=1.0, seed=0):
    """Probabilities that are right if power = 1, and truth drawn from probability ** power."""
    random = np.random.default_rng(seed)
    p = random.random((n, m))
    return (random.random((n, m)) < p**power).astype(int), p


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_curves_are_those_of_scikit_learn(strategy):
    y, p = simulated(1000)  # all different, so that both share out the quantiles alike
    pooled = reliability_curve(y, p, n_bins=10, strategy=strategy)
    observed, predicted = calibration_curve(y.ravel(), p.ravel(), n_bins=10, strategy=strategy)
    np.testing.assert_allclose(pooled.predicted, predicted, atol=2e-3)
    np.testing.assert_allclose(pooled.observed, observed, atol=5e-3)
    assert pooled.count.sum() == 3000
    for j, curve in enumerate(reliability_curve(y, p, n_bins=10, strategy="uniform", average=None)):
        observed, predicted = calibration_curve(y[:, j], p[:, j], n_bins=10)
        np.testing.assert_allclose(curve.predicted, predicted)
        np.testing.assert_allclose(curve.observed, observed)
        assert curve.label == j


def test_calibration_error_by_hand():
    y = np.array([[1, 0], [1, 0], [0, 1], [0, 0]])
    p = np.array([[0.9, 0.2], [0.9, 0.2], [0.3, 0.2], [0.3, 0.2]])
    np.testing.assert_allclose(calibration_error(y, p, average=None), [0.5 * 0.1 + 0.5 * 0.3, 0.05])
    assert calibration_error(y, p, average="macro") == pytest.approx(0.125)
    assert calibration_error(y, p) == pytest.approx((2 * 0.1 + 2 * 0.3 + 4 * 0.05) / 8)


def test_calibrated_probabilities_have_little_error_and_others_have_more():
    right, wrong = simulated(20_000), simulated(20_000, power=2.0)
    assert calibration_error(*right) < 0.01
    assert calibration_error(*wrong) == pytest.approx(1 / 6, abs=0.01)  # ∫ p − p² dp
    assert brier_decomposition(*right).miscalibration < 0.001
    assert brier_decomposition(*wrong).miscalibration == pytest.approx(1 / 30, abs=0.002)  # ∫ (p − p²)² dp


def test_labels_that_make_up_for_each_other():
    y = np.tile([[1, 0], [0, 1]], (50, 1))
    p = np.tile([0.4, 0.6], (100, 1))
    assert calibration_error(y, p, n_bins=1) == pytest.approx(0)
    np.testing.assert_allclose(calibration_error(y, p, n_bins=1, average=None), [0.1, 0.1])


def test_brier_scores_are_those_of_scikit_learn():
    y, p = simulated(500)
    each = [metrics.brier_score_loss(y[:, j], p[:, j]) for j in range(3)]
    np.testing.assert_allclose(brier_score_loss(y, p, average=None), each)
    assert brier_score_loss(y, p) == pytest.approx(np.mean(each))
    assert brier_score_loss(y, p, average="macro") == pytest.approx(np.mean(each))


@given(st.integers(1, 40), st.integers(1, 3), st.integers(0, 1000), st.sampled_from([1, 3, 100]))
@settings(deadline=None, max_examples=60)
def test_the_decomposition_is_exact_and_never_negative(n, m, seed, levels):
    random = np.random.default_rng(seed)
    y, p = random.integers(0, 2, (n, m)), random.integers(0, levels + 1, (n, m)) / levels
    for parts, score in zip(
        [brier_decomposition(y, p), *brier_decomposition(y, p, average=None)],
        [brier_score_loss(y, p), *brier_score_loss(y, p, average=None)],
        strict=True,
    ):
        assert parts.score == pytest.approx(score)
        assert min(parts.miscalibration, parts.discrimination, parts.uncertainty) > -1e-12


def test_probabilities_that_differ_by_a_rounding_error():
    p = np.array([[0.3], [np.nextafter(0.3, 1)], [0.7], [np.nextafter(0.7, 0)]])
    parts = brier_decomposition([[0], [1], [1], [0]], p)
    assert parts.score == pytest.approx(brier_score_loss([[0], [1], [1], [0]], p))


@pytest.mark.parametrize("measure", [calibration_error, brier_score_loss])
@pytest.mark.parametrize("average", ["pooled", "macro", None])
def test_sparse_and_framed_are_as_dense(measure, average):
    random = np.random.default_rng(0)
    p = random.random((300, 5)) * (random.random((300, 5)) < 0.2)
    p[:, 4] = 0
    y = ((random.random((300, 5)) < p) | (random.random((300, 5)) < 0.02)).astype(int)
    expected = measure(y, p, average=average)
    thin, thin_y = sparse.csr_array(p), sparse.csr_array(y)
    for truth, probabilities in [(thin_y, thin), (y, thin), (thin_y, p), (pd.DataFrame(y), pd.DataFrame(p))]:
        np.testing.assert_allclose(measure(truth, probabilities, average=average), expected)


def test_sparse_decompositions_and_curves():
    random = np.random.default_rng(0)
    p = random.random((200, 3)) * (random.random((200, 3)) < 0.3)
    y = (random.random((200, 3)) < p).astype(int)
    dense, thin = reliability_curve(y, p), reliability_curve(sparse.csr_array(y), sparse.csr_array(p))
    np.testing.assert_allclose(thin.predicted, dense.predicted)
    np.testing.assert_allclose(thin.observed, dense.observed)
    np.testing.assert_array_equal(thin.count, dense.count)
    assert brier_decomposition(y, sparse.csr_array(p)).miscalibration == pytest.approx(
        brier_decomposition(y, p).miscalibration
    )


MEASURES = {
    "calibration error": lambda *tables, **options: calibration_error(*tables, **options),
    "uniform bins": lambda *tables, **options: calibration_error(*tables, strategy="uniform", **options),
    "Brier score": brier_score_loss,
    "miscalibration": lambda *tables, **options: brier_decomposition(*tables, **options).miscalibration,
    "discrimination": lambda *tables, **options: brier_decomposition(*tables, **options).discrimination,
    "observed shares": lambda *tables, **options: reliability_curve(*tables, **options).observed,
    "intervals": lambda *tables, **options: reliability_curve(*tables, **options).interval(),
}


def partly_known(seed=0, n=400, m=4):
    """Truth with NaN, probabilities that claim too much, and weights of entries, some of them 0."""
    random = np.random.default_rng(seed)
    y, p = simulated(n, m, power=2.0, seed=seed)
    y, p = y * (p > 0.3), p * (p > 0.2)  # sparse enough to have entries that are stored in neither
    weight = random.integers(0, 4, (n, m)).astype(float)
    return np.where(random.random((n, m)) < 0.4, np.nan, y), np.round(p, 2), weight


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_unknown_entries_are_left_out(measure):
    y, p, _ = partly_known()
    known = ~np.isnan(y)
    expected = measure(y[known].reshape(-1, 1), p[known].reshape(-1, 1))
    np.testing.assert_allclose(measure(y, p, missing_values=np.nan), expected)
    np.testing.assert_allclose(measure(np.where(known, y, -1), p, missing_values=-1), expected)
    anything = np.where(known, p, 0.123)  # what is claimed of unknown labels does not matter
    np.testing.assert_allclose(measure(y, anything, missing_values=np.nan), expected)


@pytest.mark.parametrize("measure", list(MEASURES.values())[:-1], ids=list(MEASURES)[:-1])
def test_an_entry_of_weight_3_counts_as_three(measure):
    y, p, weight = partly_known()
    y = np.nan_to_num(y)
    times = weight.ravel().astype(int)
    expected = measure(np.repeat(y.ravel(), times)[:, None], np.repeat(p.ravel(), times)[:, None])
    np.testing.assert_allclose(measure(y, p, sample_weight=weight), expected)
    by_row = weight[:, 0].astype(int)
    expected = measure(np.repeat(y, by_row, axis=0), np.repeat(p, by_row, axis=0))
    np.testing.assert_allclose(measure(y, p, sample_weight=weight[:, 0]), expected)


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_a_common_factor_of_all_weights_does_not_matter(measure):
    y, p, _ = partly_known()
    plain = measure(y, p, missing_values=np.nan)
    for weight in (np.full(len(y), 7.0), np.full(y.shape, 0.3)):
        np.testing.assert_allclose(measure(y, p, missing_values=np.nan, sample_weight=weight), plain)


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
@pytest.mark.parametrize("weighted", [None, "rows", "entries"])
def test_sparse_tables_with_unknown_entries_and_weights_are_as_dense(measure, weighted):
    y, p, weight = partly_known()
    chosen = {None: None, "rows": weight[:, 0], "entries": weight}[weighted]
    options = {"missing_values": np.nan, "sample_weight": chosen}
    expected = measure(y, p, **options)
    for truth, probabilities in [
        (sparse.csr_array(y), sparse.csr_array(p)),
        (y, sparse.csr_array(p)),
        (sparse.csc_array(y), p),
        (pd.DataFrame(y).astype("Int8"), p),
    ]:
        np.testing.assert_allclose(measure(truth, probabilities, **options), expected)
    if weighted == "entries":
        options["sample_weight"] = sparse.csr_array(weight)
        np.testing.assert_allclose(measure(y, p, **options), expected)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_label_that_is_unknown_everywhere_has_no_figure(make):
    y, p, _ = partly_known()
    y[:, 2] = np.nan
    others = [0, 1, 3]
    for measure in (calibration_error, brier_score_loss):
        each = measure(make(y), p, average=None, missing_values=np.nan)
        assert np.isnan(each).tolist() == [False, False, True, False]
        macro = measure(make(y), p, average="macro", missing_values=np.nan)
        assert macro == pytest.approx(measure(y[:, others], p[:, others], average="macro", missing_values=np.nan))
    curve = reliability_curve(make(y), p, average=None, missing_values=np.nan)[2]
    assert len(curve.predicted) == len(curve.interval()[0]) == 0
    assert np.isnan(brier_decomposition(make(y), p, average=None, missing_values=np.nan)[2].score)
    by_weight = calibration_error(np.nan_to_num(y), p, average=None, sample_weight=~np.isnan(y) * 1.0)
    np.testing.assert_allclose(by_weight, calibration_error(y, p, average=None, missing_values=np.nan))
    with pytest.raises(abstain.InvalidLabels, match="every label is unknown or has weight 0; there is nothing"):
        calibration_error(make(y[:, 2:3]), p[:, 2:3], average="macro", missing_values=np.nan)


def test_an_audit_weighted_by_inclusion_measures_the_whole_table():
    random = np.random.default_rng(4)
    y, p = simulated(40_000, 2, power=2.0, seed=3)
    included = 0.02 + 0.5 * p**3  # confident labels are looked at more often
    audited = np.where(random.random(p.shape) < included, y, np.nan)
    whole = brier_score_loss(y, p)
    assert abs(brier_score_loss(audited, p, missing_values=np.nan) - whole) > 0.015
    weighted = {"missing_values": np.nan, "sample_weight": 1 / included}
    assert brier_score_loss(audited, p, **weighted) == pytest.approx(whole, abs=0.005)
    bins = {"n_bins": 5, "strategy": "uniform"}
    everywhere, sampled = reliability_curve(y, p, **bins), reliability_curve(audited, p, **bins, **weighted)
    assert (sampled.effective_count < sampled.count).all()
    np.testing.assert_allclose(sampled.weight, everywhere.count, rtol=0.1)
    low, high = sampled.interval(z=3)
    assert ((low < everywhere.observed) & (everywhere.observed < high)).all()


def test_intervals_hold_the_truth():
    y, p = simulated(20_000, m=1, seed=1)
    curve = reliability_curve(y, p, n_bins=100)
    low, high = curve.interval()
    assert ((low <= curve.observed) & (curve.observed <= high)).all()
    inside = (low <= curve.predicted) & (curve.predicted <= high)
    assert 0.85 < inside.mean() <= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y, p: calibration_error(y[:-1], p), r"y_true has shape \(99, 2\); the probabilities have \(100, 2\)"),
        (lambda y, p: calibration_error(y[:, 0], p[:, 0]), "y_true is a vector; of a single label, pass tables"),
        (lambda y, p: calibration_error(y[:0], p[:0]), "there is nothing to measure"),
        (lambda y, p: calibration_error(y, p + 1), "a probability is a number from 0 to 1"),
        (lambda y, p: calibration_error(y - 1, p), "the truth is 0 or 1; pass missing_values=-1 if that stands for"),
        (lambda y, p: brier_score_loss(y, p, missing_values=0), "missing_values is 0; expected None"),
        (lambda y, p: brier_score_loss(y, p, sample_weight=[1, 2]), r"sample_weight has shape \(2,\); expected"),
        (lambda y, p: calibration_error(y, p, n_bins=0), "n_bins is 0; expected a whole number"),
        (
            lambda y, p: calibration_error(y, p, average="micro"),
            "average is 'micro'; expected 'pooled', 'macro' or",
        ),
        (
            lambda y, p: brier_score_loss(y, p, average="micro"),
            "average is 'micro'; expected 'pooled', 'macro' or",
        ),
        (lambda y, p: brier_decomposition(y, p, average="macro"), "'pooled' or None"),
        (lambda y, p: reliability_curve(y, p, average="macro"), "'pooled' or None"),
        (lambda y, p: reliability_curve(y, p, strategy="even"), "strategy is 'even'; expected 'quantile', 'uniform'"),
        (
            lambda y, p: calibration_error(pd.DataFrame(y, columns=list("ab")), pd.DataFrame(p, columns=list("ba"))),
            "another order",
        ),
    ],
)
def test_what_is_wrong(call, message):
    y, p = simulated(100, 2)
    with pytest.raises(ValueError, match=message):
        call(y, p)


def test_the_display_draws_what_was_computed():
    y, p = simulated(500, power=1.5)
    names = pd.DataFrame(p, columns=["sun", "sea", "sky"])
    display = ReliabilityDisplay.from_predictions(y, names, name="model")
    lines = {line.get_label(): line for line in display.ax_.get_lines()}
    assert "each label" in lines
    drawn = display.ax_.containers[0].lines[0]
    np.testing.assert_allclose(drawn.get_xdata(), display.pooled.predicted)
    np.testing.assert_allclose(drawn.get_ydata(), display.pooled.observed)
    assert [text.get_text() for text in display.ax_.texts] == [str(count) for count in display.pooled.count]
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["perfect", "each label", f"model (error {display.pooled.calibration_error:.3f})"]
    other_axes = display.figure_.add_axes((0, 0, 1, 1))
    again = ReliabilityDisplay(display.pooled, display.labels).plot(other_axes, highlight="sea")
    assert "sea" in [text.get_text() for text in again.ax_.get_legend().get_texts()]
    mpl.pyplot.close("all")


def test_shares_of_0_and_1_are_drawn_at_the_edges():
    p = np.repeat([0.0, 0.004, 0.5, 1.0], 3000).reshape(-1, 1)
    y = np.repeat([0, 0, 1, 1], 3000).reshape(-1, 1)
    display = ReliabilityDisplay.from_predictions(y, p)
    low, high = display.ax_.get_ylim()
    assert 0 < low < 0.004
    assert 0.9 < high < 1
    x, share = display.ax_.containers[0].lines[0].get_data()
    np.testing.assert_allclose(x, [low, 0.004, 0.5, high])
    np.testing.assert_allclose(share, [low, low, high, high])
    assert np.isfinite(display.ax_.transData.transform(np.column_stack([x, share]))).all()
    mpl.pyplot.close("all")


def test_the_display_takes_unknown_entries_and_weights():
    y, p, weight = partly_known()
    y[:, 2] = np.nan
    options = {"missing_values": np.nan, "sample_weight": weight}
    display = ReliabilityDisplay.from_predictions(y, p, **options)
    direct = reliability_curve(y, p, n_bins=20, strategy="log-odds", min_count=10, **options)
    np.testing.assert_allclose(display.pooled.observed, direct.observed)
    assert [len(curve.count) > 0 for curve in display.labels] == [True, True, False, True]
    mpl.pyplot.close("all")


def test_a_display_from_an_estimator():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    Y = (X + random.normal(size=X.shape) > 0).astype(int)
    model = abstain.AbstainingClassifier(LogisticRegression()).fit(X, Y)
    display = ReliabilityDisplay.from_estimator(model, X, Y, n_bins=5)
    assert display.name == "AbstainingClassifier"
    direct = reliability_curve(Y, model.predict_proba(X), n_bins=5, strategy="log-odds", min_count=10)
    np.testing.assert_allclose(display.pooled.predicted, direct.predicted)
    mpl.pyplot.close("all")


def rare_labels(n=1500, m=103):
    """Most probabilities far below 0.1, as those of labels with a prevalence of 1 % are; all of them honest."""
    random = np.random.default_rng(0)
    log_odds = random.normal(-6.5, 2.2, (n, m))
    p = 1 / (1 + np.exp(-log_odds))
    return (random.random((n, m)) < p).astype(int), p


def test_the_display_shows_small_probabilities_and_where_decisions_are_made_however_rare_the_labels_are():
    y, p = rare_labels()
    assert 0.005 < y.mean() < 0.02
    display = ReliabilityDisplay.from_predictions(y, p)
    predicted = display.pooled.predicted
    assert ((predicted > 0.1) & (predicted < 0.9)).sum() >= 5
    assert ((predicted > 0.001) & (predicted < 0.02)).sum() >= 3
    low, high = display.pooled.interval(z=4)
    assert ((low < predicted) & (predicted < high)).all()
    assert display.pooled.count.sum() == p.size
    assert reliability_curve(y, p).predicted.max() < 0.1  # quantiles show nothing of it
    for curve in display.labels:
        assert curve.count.sum() == len(p)
        assert np.all(np.diff(curve.predicted) > 0)
    mpl.pyplot.close("all")


def test_bins_in_log_odds_tell_as_much_as_so_many_entries_of_one_half():
    y, p = rare_labels()
    for j, curve in enumerate(reliability_curve(y, p, n_bins=20, strategy="log-odds", min_count=10, average=None)):
        inside = np.clip(np.sort(p[:, j]), 0.001, 0.999)
        sizes = np.add.reduceat(4 * inside * (1 - inside), np.cumsum([0, *curve.count[:-1]]))
        assert len(curve.count) > 1
        assert sizes.min() >= 10
    random = np.random.default_rng(0)
    odds = np.exp(random.uniform(-8, 8, (50_000, 1)))
    edges = np.exp(np.linspace(-np.log(999), np.log(999), 21))
    expected, _ = np.histogram(odds, [0, *edges[1:-1], np.inf])
    curve = reliability_curve(odds > 1, odds / (1 + odds), n_bins=20, strategy="log-odds")
    np.testing.assert_array_equal(curve.count, expected)
    assert reliability_curve(y, p, n_bins=1, strategy="log-odds").count.tolist() == [p.size]


def test_answers_passed_as_probabilities_have_two_bins_in_log_odds():
    y = np.repeat([0, 1, 0, 1], [4900, 100, 500, 4500]).reshape(-1, 1)
    p = np.repeat([0.0, 1.0], 5000).reshape(-1, 1)
    curve = reliability_curve(y, p, strategy="log-odds", min_count=10)
    np.testing.assert_allclose((curve.predicted, curve.observed), ([0, 1], [0.02, 0.9]))


def test_bins_with_few_entries_join_the_smaller_neighbour():
    p = np.repeat([0.05, 0.15, 0.25, 0.45, 0.95], [9, 2, 4, 3, 1]).reshape(-1, 1)
    y = np.zeros_like(p)

    def counts(least):
        return reliability_curve(y, p, strategy="uniform", min_count=least).count.tolist()

    assert counts(1) == [9, 2, 4, 3, 1]
    assert counts(2) == [9, 2, 4, 4]  # 0.95 joins 0.45
    assert counts(3) == [9, 6, 4]  # 0.15 joins 0.25
    assert counts(5) == [9, 10]
    assert counts(10) == [19]
    assert counts(1000) == [19]
    last = reliability_curve(y, p, strategy="uniform", min_count=3).predicted[-1]
    assert last == pytest.approx((3 * 0.45 + 0.95) / 4)


def test_the_least_count_is_a_number():
    for least in (0, 1.5, "10"):
        with pytest.raises(abstain.InvalidParameter, match=f"min_count is {least!r}; expected a whole number ≥ 1"):
            reliability_curve([[1]], [[0.5]], min_count=least)
