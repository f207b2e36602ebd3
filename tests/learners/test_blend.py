"""The recommended learner: trees and logistic regression, blended and calibrated for each label."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, TimeSeriesSplit
from sklearn.utils.estimator_checks import parametrize_with_checks

import abstain
from abstain import AbstainingClassifier
from abstain.calibration._pooled import Observations, fit_pooled
from abstain.learners import _parts, make, recommended
from abstain.learners._blend import Blend
from abstain.learners._parts import Scaling

X, Y = make_multilabel_classification(n_samples=240, n_features=8, n_classes=5, random_state=0)
X = X.astype(np.float64)
TRAIN, TEST = slice(0, 160), slice(160, 240)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(_parts, "N_TREES", 30)
    monkeypatch.setattr(_parts, "N_TREES_PER_FOLD", 20)


def mean_log_loss(labels, probabilities):
    return -np.log(np.where(labels, probabilities, 1.0 - probabilities)).mean()


AT_RANDOM = mean_log_loss(Y[TEST], np.tile(Y[TRAIN].mean(axis=0), (80, 1)))


@pytest.mark.slow
@parametrize_with_checks(
    [recommended(cv=3)],
    expected_failed_checks=lambda estimator: {
        f"check_sample_weight_equivalence_on_{kind}_data": "folds and trees are drawn row by row, whatever the weights"
        for kind in ("dense", "sparse")
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_blend_of_each_label_is_the_mode_of_its_posterior():
    """Found by a general optimiser, given the prior that was estimated."""
    random = np.random.default_rng(0)
    n, m = 200, 6
    truth = random.normal(size=(n, m)) * 2 - 1
    labels = (random.random((n, m)) < expit(truth)).astype(np.int8)
    scores = [truth + random.normal(size=(n, m)), 0.5 * truth + random.normal(size=(n, m))]
    weight = random.random(n) + 0.5
    blend = Blend.fit(scores, labels, weight)
    features = np.column_stack([part.T.ravel() for part in scores])
    rows = Observations(features, np.tile(weight, m), (weight[:, np.newaxis] * labels).T.ravel(), np.arange(m + 1) * n)
    prior = fit_pooled(rows, identity=np.array([0.5, 0.5]))
    precision = np.linalg.inv(prior.covariance)
    for j in range(m):

        def objective(theta, j=j):
            z = theta[0] * scores[0][:, j] + theta[1] * scores[1][:, j] + theta[2]
            off = theta - prior.mean
            return weight @ (np.logaddexp(0, z) - labels[:, j] * z) + 0.5 * off @ precision @ off

        best = minimize(objective, prior.mean, bounds=[(0, None), (0, None), (None, None)], tol=1e-12)
        np.testing.assert_allclose([*blend.slopes[:, j], blend.offset[j]], best.x, atol=1e-3)
    expected = expit(sum(slopes * part for slopes, part in zip(blend.slopes, scores, strict=True)) + blend.offset)
    np.testing.assert_allclose(blend(scores), expected)


def test_nothing_is_extrapolated():
    random = np.random.default_rng(0)
    scores = [random.normal(size=(50, 2))]
    blend = Blend.fit(scores, (scores[0] > random.normal(size=(50, 2))).astype(np.int8), np.ones(50))
    extremes = [np.array([[-1e9, -1e9], [1e9, 1e9]])]
    seen = [np.array([scores[0].min(axis=0), scores[0].max(axis=0)])]
    np.testing.assert_array_equal(blend(extremes), blend(seen))


def test_it_is_better_than_logistic_regression():
    model = recommended().fit(X[TRAIN], Y[TRAIN])
    probabilities = model.predict_proba(X[TEST])
    reference = abstain.label_probabilities(make("br-lr").fit(X[TRAIN], Y[TRAIN]), X[TEST])
    assert mean_log_loss(Y[TEST], probabilities) < mean_log_loss(Y[TEST], reference) < AT_RANDOM
    np.testing.assert_array_equal(model.predict(X[TEST]), probabilities > 0.5)
    assert len(model.parts_) == 3


@pytest.mark.slow
def test_the_default_classifier_is_this_learner():
    ours = AbstainingClassifier().fit(X[TRAIN], Y[TRAIN])
    np.testing.assert_array_equal(
        ours.predict_proba(X[TEST]), recommended().fit(X[TRAIN], Y[TRAIN]).predict_proba(X[TEST])
    )
    assert ours.calibration_ is None
    again = AbstainingClassifier(calibration="sigmoid", cv=3).fit(X[TRAIN], Y[TRAIN])
    assert again.calibration_.method == "sigmoid"


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_sparse_features_are_never_made_dense(kind, monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("made dense")

    features = kind(X)
    for name in ("toarray", "todense"):
        for cls in (sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.csc_matrix):
            monkeypatch.setattr(cls, name, forbidden)
    model = recommended().fit(features[TRAIN], Y[TRAIN])
    assert len(model.parts_) == 2
    assert mean_log_loss(Y[TEST], model.predict_proba(features[TEST])) < 0.85 * AT_RANDOM


def test_the_number_of_jobs_and_a_second_fit_change_nothing():
    one = recommended(n_jobs=1).fit(X[TRAIN], Y[TRAIN])
    two = clone(one).set_params(n_jobs=2).fit(X[TRAIN], Y[TRAIN])
    np.testing.assert_allclose(one.predict_proba(X[TEST]), two.predict_proba(X[TEST]), rtol=0, atol=1e-12)
    other = clone(one).set_params(random_state=1).fit(X[TRAIN], Y[TRAIN])
    assert np.abs(one.predict_proba(X[TEST]) - other.predict_proba(X[TEST])).max() > 1e-6
    kept = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(kept.predict_proba(X[TEST]), one.predict_proba(X[TEST]))


def test_weights():
    weights = np.where(Y[:, 0] == 1, 100.0, 1.0)
    heavy = recommended().fit(X, Y, sample_weight=weights).predict_proba(X)
    assert heavy[:, 0].mean() > 0.85 > 0.7 > recommended().fit(X, Y).predict_proba(X)[:, 0].mean()
    np.testing.assert_allclose(recommended().fit(X, Y, sample_weight=weights / 1000).predict_proba(X), heavy, atol=1e-6)
    with pytest.raises(ValueError, match="at least one non-zero"):
        recommended().fit(X, Y, sample_weight=np.zeros(240))


@pytest.mark.parametrize("cv", [TimeSeriesSplit(3), ShuffleSplit(3, random_state=0), KFold(3), 4])
def test_any_splitter_will_do(cv):
    model = recommended(cv=cv).fit(X[TRAIN], Y[TRAIN])
    assert mean_log_loss(Y[TEST], model.predict_proba(X[TEST])) < 0.87 * AT_RANDOM


def test_groups_stay_together():
    seen = []

    class Watched(GroupKFold):
        def split(self, X, y=None, groups=None):
            for train, test in super().split(X, y, groups):
                seen.append(set(groups[train]) & set(groups[test]))
                yield train, test

    groups = np.repeat(np.arange(40), 6)
    plain = recommended(cv=Watched(4)).fit(X, Y, groups=groups).predict_proba(X)
    np.testing.assert_array_equal(AbstainingClassifier(cv=Watched(4)).fit(X, Y, groups=groups).predict_proba(X), plain)
    assert seen == [set()] * 8
    with sklearn.config_context(enable_metadata_routing=True):
        cv = Watched(4).set_split_request(groups=True)
        routed = AbstainingClassifier(cv=cv).fit(X, Y, groups=groups, sample_weight=np.ones(240))
        np.testing.assert_array_equal(routed.predict_proba(X), plain)
    with pytest.raises(ValueError, match="groups"):
        recommended(cv=GroupKFold(4)).fit(X, Y)


def test_constant_and_rare_labels():
    """One relevant row must not become "always relevant", nor a constant label certain."""
    labels = np.column_stack([Y, np.zeros((240, 4), int), np.ones(240, int)])
    labels[7, 6] = labels[3, 7] = labels[100, 7] = 1
    labels[:230, 8] = 1
    model = recommended().fit(X, labels)
    probabilities = model.predict_proba(X + 0.5)
    np.testing.assert_allclose(probabilities[:, 5], 0.5 / 241)
    np.testing.assert_allclose(probabilities[:, 9], 240.5 / 241)
    assert 1e-4 < probabilities[:, 6].mean() < 0.02
    assert probabilities[:, 6].max() < 0.3
    assert 1e-4 < probabilities[:, 7].mean() < 0.03
    assert probabilities[:, 8].mean() > 0.9
    nothing = recommended().fit(X, np.zeros((240, 2), int))
    np.testing.assert_allclose(nothing.predict_proba(X), 0.5 / 241)


@pytest.mark.parametrize("cv", [5, TimeSeriesSplit(3)])
@pytest.mark.parametrize("n_relevant", [1, 2])
def test_one_rare_label_by_itself(cv, n_relevant):
    """Some models have seen no relevant row, and in the time series none has."""
    labels = np.zeros((240, 1), int)
    labels[-n_relevant:] = 1
    probabilities = recommended(cv=cv).fit(X, labels).predict_proba(X)
    assert 1e-4 < probabilities.mean() < 0.05
    ours = AbstainingClassifier(cv=cv).fit(X, labels).predict_proba(X)
    assert ours.shape == (240, 1)
    assert 1e-4 < ours.mean() < 0.05


def test_rows_of_weight_0_count_for_nothing():
    """Labels whose only relevant rows have no weight are constant; wild features change nothing."""
    labels, weights, wild = np.column_stack([Y, np.zeros(240, int)]), np.ones(240), X.copy()
    weights[:20], labels[:20, 5], wild[:20] = 0.0, 1, 1e6
    folds = [(train + 20, test + 20) for train, test in KFold(3, shuffle=True, random_state=0).split(X[20:])]
    heavy = recommended(cv=folds).fit(wild, labels, sample_weight=weights).predict_proba(X)
    np.testing.assert_allclose(heavy[:, 5], 0.5 / 241)
    alone = recommended(cv=KFold(3, shuffle=True, random_state=0)).fit(X[20:], Y[20:]).predict_proba(X)
    assert np.abs(heavy[:, :5] - alone).mean() < 0.05


def test_a_vector_of_classes():
    classes = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    model = recommended().fit(X[TRAIN], classes[TRAIN])
    probabilities = model.predict_proba(X[TEST])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_, ["a", "b", "c"])
    assert (model.predict(X[TEST]) == classes[TEST]).mean() > 0.8
    ours = AbstainingClassifier().fit(X[TRAIN], classes[TRAIN])
    np.testing.assert_allclose(ours.predict_proba(X[TEST]), probabilities, atol=1e-12)
    one = AbstainingClassifier().fit(X[TRAIN], Y[TRAIN, :1])
    assert one.predict_proba(X[TEST]).shape == (80, 1)


def test_frames_and_missing_values():
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    model = recommended().fit(frame[TRAIN], pd.DataFrame(Y[TRAIN]))
    assert list(model.feature_names_in_) == list("abcdefgh")
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    with_holes = recommended().fit(holes[TRAIN], Y[TRAIN]).predict_proba(holes[TEST])
    complete = model.predict_proba(frame[TEST])
    assert mean_log_loss(Y[TEST], complete) < mean_log_loss(Y[TEST], with_holes) < AT_RANDOM
    with pytest.raises(ValueError, match="NaN"):
        recommended().fit(sparse.csr_array(holes), Y)


def test_scaling():
    random = np.random.default_rng(0)
    features = random.normal(3.0, [1.0, 100.0, 1e-3], size=(50, 3)) * (random.random((50, 3)) < 0.5)
    weight = random.random(50)
    scaled = Scaling.of(features, weight)(features)
    np.testing.assert_allclose(np.average(scaled, axis=0, weights=weight), 0.0, atol=1e-9)
    np.testing.assert_allclose(np.average(scaled**2, axis=0, weights=weight), 1.0)
    loose = Scaling.of(sparse.csr_array(features), weight)(sparse.csr_array(features)).toarray()
    np.testing.assert_allclose(loose - np.average(loose, axis=0, weights=weight), scaled, atol=1e-9)
    constant = np.full((50, 1), 7.0)
    np.testing.assert_allclose(Scaling.of(constant, weight)(constant), 0.0, atol=1e-12)
    holes = np.column_stack([np.where(features[:, 0] > 3.0, np.nan, features[:, 0]), np.full(50, np.nan)])
    filled = Scaling.of(holes, weight)(holes)
    assert (filled[np.isnan(holes)] == 0).all()


def test_what_it_says(capsys):
    recommended(cv=2).fit(X[TRAIN], Y[TRAIN])
    assert capsys.readouterr().out == ""
    AbstainingClassifier(cv=2, verbose=1).fit(X[TRAIN], Y[TRAIN])
    said = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[AbstainingClassifier] ") and line.endswith(" s") for line in said)
    for words in ("20 trees, fold 2 of 2", "30 trees, all instances", "logistic regression, C = 0.01", "blend of 5"):
        assert any(words in line for line in said), words
    trees = ExtraTreesClassifier(10, random_state=0)
    AbstainingClassifier(trees, calibration="sigmoid", cv=2, verbose=1).fit(X[TRAIN], Y[TRAIN])
    said = capsys.readouterr().out
    assert "ExtraTreesClassifier, all instances" in said
    assert "ExtraTreesClassifier, 2 folds" in said
