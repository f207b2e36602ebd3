import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from tests.support.cases import LOSS_CASES, make_loss, random_probabilities, random_truth

import abstain
from abstain import curves
from abstain.curves import (
    AccuracyRejectionDisplay,
    CostCurveDisplay,
    ErrorCaptureDisplay,
    RiskCoverageDisplay,
)

mpl.use("agg")

DISPLAYS = {
    CostCurveDisplay: curves.cost_curve,
    RiskCoverageDisplay: curves.risk_coverage_curve,
    AccuracyRejectionDisplay: curves.accuracy_rejection_curve,
    ErrorCaptureDisplay: curves.error_capture_curve,
}
SINGLE = [RiskCoverageDisplay, AccuracyRejectionDisplay, ErrorCaptureDisplay]
WHAT = {
    RiskCoverageDisplay: ("coverage", "risk"),
    AccuracyRejectionDisplay: ("rejection", "accuracy"),
    ErrorCaptureDisplay: ("reviewed", "captured"),
}


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def simulated(n=60, m=4):
    p = random_probabilities(n, m)
    return random_truth(p), p


def models(ax):
    return [line for line in ax.get_lines() if line.get_gid() == "model"]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("display", SINGLE)
def test_what_was_computed_is_drawn(display):
    y, p = simulated()
    shown = display.from_predictions(y, p, name="mine", n_bootstrap=20, random_state=0)
    curve, (x, values) = DISPLAYS[display](y, p), WHAT[display]
    (line,) = models(shown.ax_)
    np.testing.assert_array_equal(line.get_xdata(), getattr(curve, x))
    np.testing.assert_array_equal(line.get_ydata(), getattr(curve, values))
    assert shown.figure_ is shown.ax_.figure
    name = "AURC" if display is RiskCoverageDisplay else "area"
    assert legend(shown.ax_)[0].startswith(f"mine ({name} {curve.area:.3f}")
    (band,) = shown.ax_.collections
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].min() == pytest.approx(shown.curve.band.low.min())
    assert corners[:, 1].max() == pytest.approx(shown.curve.band.high.max())
    assert "mine" in repr(shown)


def test_cost_curves_rise_and_jump_where_they_do():
    y, p = simulated(12, 3)
    shown = CostCurveDisplay.from_predictions(y, p, n_bootstrap=10, random_state=0)
    above, below = shown.ax_
    curve = curves.cost_curve(p, y_true=y)
    (total,) = models(above)
    for cost, loss in zip(total.get_xdata()[::2], total.get_ydata()[::2], strict=True):
        assert loss == pytest.approx(curve.at(cost).realized_generalized_loss)
    for k, (cost, loss) in enumerate(zip(total.get_xdata()[1:-2:2], total.get_ydata()[1:-2:2], strict=True)):
        assert cost == curve.costs[k + 1]
        assert loss == pytest.approx(curve.at(cost * (1 - 1e-9)).realized_generalized_loss)
    (share,) = models(below)
    assert share.get_drawstyle() == "steps-post"
    np.testing.assert_array_equal(share.get_ydata()[:-1], curve.abstention)
    assert legend(above) == [
        "abstain optimally",
        "what the probabilities expect",
        "answer everything",
        "leave everything open",
    ]
    flat = [line for line in above.get_lines() if len(set(line.get_ydata())) == 1 and line.get_gid() is None]
    assert [line.get_ydata()[0] for line in flat] == [curve.realized_loss[-1]]
    assert len(above.collections) == len(below.collections) == 1


def test_cost_curves_without_the_truth():
    _, p = simulated()
    shown = CostCurveDisplay(curves.cost_curve(p, n_bootstrap=10), name="mine").plot()
    assert legend(shown.ax_[0]) == ["mine", "answer everything", "leave everything open"]
    assert len(shown.ax_[0].collections) == 1


def test_cost_curves_on_given_axes():
    y, p = simulated()
    _, one = mpl.pyplot.subplots()
    assert CostCurveDisplay.from_predictions(y, p, ax=one).ax_ is one
    assert one.get_xlabel() == "cost of an open label"
    _, two = mpl.pyplot.subplots(1, 2)
    assert CostCurveDisplay.from_predictions(y, p, ax=two).ax_[1] is two[1]
    _, three = mpl.pyplot.subplots(3)
    with pytest.raises(abstain.InvalidParameter, match="ax has 3 axes; a cost curve is drawn on two, or one"):
        CostCurveDisplay.from_predictions(y, p, ax=three)


@pytest.mark.parametrize("display", DISPLAYS)
def test_several_models_on_the_same_axes(display):
    y, p = simulated()
    first = display.from_predictions(y, p, name="first")
    before = [ax.get_xlim()[1] for ax in np.ravel(first.ax_)]
    for k in range(7):
        display.from_predictions(y, p[:, ::-1] / (k + 2), name=f"model {k}", ax=first.ax_)
    for ax, right in zip(np.ravel(first.ax_), before, strict=True):
        lines = models(ax)
        assert len(lines) == 8
        assert len({line.get_color() for line in lines}) == 6
        assert ax.get_xlim()[1] >= right
    texts = legend(np.ravel(first.ax_)[0])
    assert texts[0].startswith("first")
    assert texts[7].startswith("model 6")
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("display", DISPLAYS)
def test_style_and_repeated_plots(display):
    y, p = simulated()
    drawn = display(DISPLAYS[display](y_true=y, probabilities=p)).plot(color="black", linewidth=3)
    line = models(np.ravel(drawn.ax_)[0])[0]
    assert (line.get_color(), line.get_linewidth()) == ("black", 3)
    old = drawn.figure_
    assert drawn.plot().figure_ is not old


@pytest.mark.parametrize("case", LOSS_CASES, ids=str)
def test_every_loss_has_a_name(case):
    (y, p), loss = simulated(20, 3), make_loss(case, 3)
    name = RiskCoverageDisplay.from_predictions(y, p, loss=loss).ax_.get_ylabel()
    assert name == f"{loss.axis_title} per instance"
    assert loss.axis_title != "loss"  # what a loss is called that does not say it


@pytest.mark.parametrize("display", DISPLAYS)
def test_certain_probabilities_no_errors_and_few_points(display):
    y, p = simulated()
    answers = (p > 0.5).astype(int)
    certain = display.from_predictions(y, answers)
    display.from_predictions(answers, p, ax=certain.ax_)
    display.from_predictions(y[:1], p[:1], ax=certain.ax_)
    certain.figure_.canvas.draw()


def test_long_curves_are_thinned_out():
    p = np.random.default_rng(0).random((1000, 10))
    shown = RiskCoverageDisplay.from_predictions(np.random.default_rng(1).random(p.shape) < p, p)
    (line,) = models(shown.ax_)
    assert len(shown.curve.costs) == 10_001
    assert 1000 < len(line.get_xdata()) <= 2002
    assert (line.get_xdata()[0], line.get_xdata()[-1]) == (0, 1)


# From estimators


def learnt():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    return X, (X + random.normal(size=X.shape) > 0).astype(int)


@pytest.mark.parametrize("display", DISPLAYS)
def test_any_classifier(display):
    X, Y = learnt()
    model = ExtraTreesClassifier(20, min_samples_leaf=5, random_state=0).fit(X, Y)
    shown = display.from_estimator(model, X, Y)
    assert shown.name == "ExtraTreesClassifier"
    expected = DISPLAYS[display](probabilities=abstain.label_probabilities(model, X), y_true=Y)
    np.testing.assert_array_equal(shown.curve.costs, expected.costs)
    assert display.from_estimator(model, X, Y, name="trees", loss="f1").name == "trees"


def test_the_loss_of_an_abstaining_classifier_and_of_no_other():
    X, Y = learnt()
    model = abstain.AbstainingClassifier(LogisticRegression(), loss="f1").fit(X, Y)
    assert repr(RiskCoverageDisplay.from_estimator(model, X, Y).curve.loss).startswith("FMeasure")
    assert repr(RiskCoverageDisplay.from_estimator(model, X, Y, loss="rank").curve.loss) == "Rank()"
    other = SGDClassifier(loss="log_loss", random_state=0).fit(X, Y[:, 0])
    assert repr(RiskCoverageDisplay.from_estimator(other, X, Y[:, 0]).curve.loss) == "Hamming()"


def test_frames_and_vectors_of_classes():
    X, Y = learnt()
    features, labels = pd.DataFrame(X, columns=list("abc")), pd.DataFrame(Y, columns=["sun", "sea", "sky"])
    model = abstain.AbstainingClassifier(LogisticRegression()).fit(features, labels)
    shown = ErrorCaptureDisplay.from_estimator(model, features, labels)
    assert shown.curve.error_rate == pytest.approx((model.predict(features) != Y).mean())
    names = np.array(["low", "middle", "high"])[Y.argmax(axis=1)]
    classes = LogisticRegression().fit(X, names)
    shown = AccuracyRejectionDisplay.from_estimator(classes, X, names)
    truth = names[:, np.newaxis] == classes.classes_
    expected = curves.accuracy_rejection_curve(truth, classes.predict_proba(X))
    assert shown.curve.area == expected.area


def test_a_single_label():
    X, Y = learnt()
    labels = pd.DataFrame(Y[:, :1], columns=["sun"])
    model = abstain.AbstainingClassifier(LogisticRegression()).fit(X, labels)
    shown = ErrorCaptureDisplay.from_estimator(model, X, labels)
    assert shown.curve.error_rate == pytest.approx((model.predict(X) != Y[:, :1]).mean())


# What is wrong


def test_other_labels_and_other_rows():
    X, Y = learnt()
    features, labels = pd.DataFrame(X), pd.DataFrame(Y, columns=["sun", "sea", "sky"])
    model = abstain.AbstainingClassifier(LogisticRegression()).fit(features, labels)
    with pytest.raises(abstain.InvalidLabels, match="the same labels in another order: column 0 is 'sky'"):
        CostCurveDisplay.from_estimator(model, features, labels[["sky", "sea", "sun"]])
    with pytest.raises(abstain.InvalidLabels, match="the same rows in another order: row 0 is 199"):
        CostCurveDisplay.from_estimator(model, features, labels[::-1])


@pytest.mark.parametrize("display", [AccuracyRejectionDisplay, ErrorCaptureDisplay])
def test_what_rankings_cannot_say(display):
    with pytest.raises(abstain.InvalidLoss, match="gives rankings"):
        display.from_predictions(*simulated(), loss="rank")


@pytest.mark.parametrize("display", DISPLAYS)
def test_without_matplotlib(display, monkeypatch):
    y, p = simulated(10, 2)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"drawing needs matplotlib: pip install matplotlib"):
        display.from_predictions(y, p)
