"""What holds for every credal classifier, and the forest against an explicit loop over its trees."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from abstain import (
    AbstainingClassifier,
    Intervals,
    InvalidLabels,
    InvalidParameter,
    decide,
    label_probabilities,
    learners,
)
from abstain.learners._credal_forest import CredalForestClassifier

X, Y = make_multilabel_classification(n_samples=160, n_features=6, n_classes=4, random_state=2)
X = X.astype(float)
TRAIN, TEST = slice(0, 120), slice(120, 160)
NAMES = "ncc", "credal-forest"


def made(name, **parameters):
    few = {"n_trees": 12} if name == "credal-forest" else {}
    return learners.make(name).set_params(**few, **parameters)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [1, 4, 40])
def test_forest_bounds_are_means_over_trees(m, weighted):
    random = np.random.default_rng(m)
    labels = (X[TRAIN] @ random.normal(size=(6, m)) > 0.5).astype(int)
    weight = random.integers(1, 4, 120) / 2 if weighted else np.ones(120)
    s = 1.5
    model = made("credal-forest", s=s).fit(X[TRAIN], labels, sample_weight=weight if weighted else None)
    total, n_trees = np.zeros((3, 40, m)), 0
    for forest in model.forest_.forests:
        for tree in forest.estimators_:
            of_training, of_test = tree.apply(X[TRAIN].astype(np.float32)), tree.apply(X[TEST].astype(np.float32))
            n_trees += 1
            for i, leaf in enumerate(of_test):
                here = of_training == leaf
                N, n = weight[here].sum(), weight[here] @ labels[here]
                total[:, i] += n / (N + s), n / N, (n + s) / (N + s)
    assert n_trees == 12
    lower, upper = model.predict_intervals(X[TEST])
    found = np.stack([lower, model.predict_proba(X[TEST]), upper])
    np.testing.assert_allclose(found, total / n_trees, atol=1e-6)


def test_forest_weights_count_as_instances():
    """The same trees, with all counts doubled, are as those with half of s."""
    double = made("credal-forest", s=2).fit(X[TRAIN], Y[TRAIN], sample_weight=np.full(120, 2.0))
    single = made("credal-forest", s=1).fit(X[TRAIN], Y[TRAIN])
    np.testing.assert_allclose(double.predict_intervals(X[TEST]), single.predict_intervals(X[TEST]), atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_intervals_contain_the_point_and_widen_with_s(name):
    model = made(name).fit(X[TRAIN], Y[TRAIN])
    before = None
    for s in (1e-9, 0.1, 1, 2, 10, 1e6):
        lower, upper = model.set_params(s=s).predict_intervals(X[TEST])
        point = model.predict_proba(X[TEST])
        assert lower.shape == upper.shape == point.shape == (40, 4)
        assert lower.dtype == upper.dtype == np.float64
        assert (lower >= 0).all()
        assert (lower <= point).all()
        assert (point <= upper).all()
        assert (upper <= 1).all()
        if before is not None:
            assert (lower <= before[0] + 1e-12).all()
            assert (upper >= before[1] - 1e-12).all()
            assert (upper - lower).mean() > (before[1] - before[0]).mean()
        before = lower, upper
    assert (before[0] < 0.01).all()
    assert (before[1] > 0.99).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_small_s_gives_the_precise_classifier(name):
    features = (X.mean(axis=0) < X).astype(float)  # every bin has instances with and without each label
    model = made(name, s=1e-9).fit(features, Y)
    lower, upper = model.predict_intervals(features)
    np.testing.assert_allclose(lower, upper, atol=1e-7)
    np.testing.assert_allclose(lower, model.predict_proba(features), atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_they_learn(name):
    model = made(name).fit(X[TRAIN], Y[TRAIN])
    probabilities = label_probabilities(model, X[TEST])
    assert np.mean((probabilities > 0.5) == Y[TEST]) > 0.75
    np.testing.assert_array_equal(model.predict(X[TEST]), probabilities > 0.5)
    lower, upper = model.predict_intervals(X[TEST])
    answered = (lower > 0.5) | (upper < 0.5)
    right = (probabilities > 0.5) == Y[TEST]
    assert 0 < answered.mean() < 1
    assert right[answered].mean() > right[~answered].mean()


@pytest.mark.parametrize("name", NAMES)
def test_intervals_can_be_decided_from(name):
    lower, upper = made(name).fit(X[TRAIN], Y[TRAIN]).predict_intervals(X[TEST])
    skeptical = decide(Intervals(lower, upper, rule="skeptical"), "hamming", "none")
    np.testing.assert_array_equal(skeptical.labels, np.where(lower > 0.5, 1, np.where(upper < 0.5, 0, -1)))


@pytest.mark.parametrize("name", NAMES)
def test_scikit_learn_conventions(name):
    model = made(name, s=1.5)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.predict_intervals(X)
    fitted = model.fit(pd.DataFrame(X[TRAIN], columns=list("abcdef")), pd.DataFrame(Y[TRAIN]))
    assert fitted is model
    assert fitted.feature_names_in_.tolist() == list("abcdef")
    assert fitted.n_features_in_ == 6
    assert [classes.tolist() for classes in fitted.classes_] == [[0, 1]] * 4
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict_proba(pd.DataFrame(X[TEST], columns=list("abcdeg")))
    fitted = clone(model).fit(X[TRAIN], Y[TRAIN])
    with pytest.raises(ValueError, match="5 features"):
        fitted.predict_intervals(X[TEST, :5])
    with pytest.raises(ValueError, match="infinity"):
        fitted.predict_intervals(np.full((1, 6), np.inf))
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_intervals(X[TEST]), fitted.predict_intervals(X[TEST]))
    np.testing.assert_array_equal(clone(fitted).fit(X[TRAIN], Y[TRAIN]).predict_proba(X), fitted.predict_proba(X))
    piped = make_pipeline(StandardScaler(), clone(model)).fit(X[TRAIN], Y[TRAIN])
    assert piped.predict_proba(X[TEST]).shape == (40, 4)


@pytest.mark.parametrize("name", NAMES)
def test_missing_values_sparse_features_and_one_label(name):
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    lower, upper = made(name).fit(holes[TRAIN], Y[TRAIN]).predict_intervals(holes[TEST])
    assert (lower <= upper).all()
    loose = made(name).fit(sparse.csr_array(X[TRAIN]), sparse.csr_array(Y[TRAIN]))
    assert loose.predict_intervals(sparse.csr_array(X[TEST]))[0].shape == (40, 4)
    assert made(name).fit(X, Y[:, :1]).predict_proba(X).shape == (160, 1)


@pytest.mark.parametrize("name", NAMES)
def test_constant_labels_keep_an_interval(name):
    labels = np.column_stack([np.zeros(120), np.ones(120), Y[TRAIN, 0]]).astype(int)
    model = AbstainingClassifier(made(name)).fit(X[TRAIN], labels)
    lower, upper = model.estimator_.predict_intervals(X[TEST])
    assert lower.shape == (40, 3)
    assert (lower[:, 0] == 0).all()
    assert (upper[:, 0] > 0).all()
    assert (lower[:, 1] < 1).all()
    assert (upper[:, 1] == 1).all()
    probabilities = model.predict_proba(X[TEST])
    assert (probabilities[:, 0] < 0.05).all()
    assert (probabilities[:, 1] > 0.95).all()
    np.testing.assert_array_equal(probabilities, model.estimator_.predict_proba(X[TEST]))
    all_constant = made(name).fit(X[TRAIN], labels[:, :2])
    assert (all_constant.predict_intervals(X[TEST])[0][:, 0] == 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_they_can_be_wrapped_and_calibrated(name):
    model = AbstainingClassifier(made(name), calibration="sigmoid", cv=3, penalty=0.2).fit(X[TRAIN], Y[TRAIN])
    assert model.decide(X[TEST]).shape == (40, 4)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_refused(name):
    for s in (0, -1.0, np.inf, np.nan, "2", None, True):
        with pytest.raises(InvalidParameter, match=r"s is .*; expected a positive number of instances"):
            made(name, s=s).fit(X, Y)
    fitted = made(name).fit(X, Y)
    with pytest.raises(InvalidParameter, match=r"s is 0; expected a positive number"):
        fitted.set_params(s=0).predict_intervals(X)
    with pytest.raises(InvalidLabels, match=r"y is a vector of 2 classes; .* for one label, y\.reshape\(-1, 1\)"):
        made(name).fit(X, Y[:, 0])
    with pytest.raises(InvalidLabels, match="a label is 0 or 1"):
        made(name).fit(X, 2 * Y)
    with pytest.raises(InvalidParameter, match="all weights are zero"):
        made(name).fit(X, Y, sample_weight=np.zeros(160))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        made(name).fit(X, Y, sample_weight=np.full(160, -1.0))
    with pytest.raises(ValueError, match="inconsistent numbers"):
        made(name).fit(X, Y[:5])
    parameter = {"ncc": "n_bins", "credal-forest": "n_trees"}[name]
    for value in (0, 2.5, "six", True):
        with pytest.raises(InvalidParameter, match=rf"{parameter} is .*; expected a whole number"):
            learners.make(name).set_params(**{parameter: value}).fit(X, Y)


def test_forests_are_drawn_by_the_random_state_on_any_number_of_cores():
    def answers(seed, n_jobs):
        model = learners.make("credal-forest", random_state=seed, n_jobs=n_jobs).set_params(n_trees=5)
        return model.fit(X[TRAIN], Y[TRAIN]).predict_intervals(X[TEST])

    np.testing.assert_array_equal(answers(1, None), answers(1, 2))
    assert not np.allclose(answers(1, None), answers(2, None))
    assert CredalForestClassifier().n_trees == 100
