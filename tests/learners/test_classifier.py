"""The estimator: scikit-learn's own checks, every shape of predict_proba, every kind of target."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, TimeSeriesSplit, cross_val_predict, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import abstain
from abstain import AbstainingClassifier, InvalidParameter
from abstain.metrics import generalized_loss

X, Y = make_multilabel_classification(n_samples=240, n_classes=4, n_labels=2, random_state=1)
X, Y = X.astype(float), Y.astype(np.int64)
for table in (X, Y):
    table.flags.writeable = False
TRAIN, TEST = slice(0, 160), slice(160, None)
HAS_ZERO_ROWS = (Y[TRAIN].sum(axis=1) == 0).any()

# Whatever people wrap. Each gives its probabilities in its own way.
ESTIMATORS = {
    "a single target": LogisticRegression(),
    "a single target, other": GaussianNB(),
    "multi-output": MultiOutputClassifier(LogisticRegression()),
    "calibrated in multi-output": MultiOutputClassifier(CalibratedClassifierCV(LogisticRegression(), cv=2)),
    "boosting in multi-output": MultiOutputClassifier(HistGradientBoostingClassifier(max_iter=5)),
    "one-vs-rest": OneVsRestClassifier(LogisticRegression()),
    "chain": ClassifierChain(LogisticRegression()),
    "network": MLPClassifier(max_iter=300, tol=1e-2, random_state=0),
    "forest": RandomForestClassifier(n_estimators=15, random_state=0),
    "extra trees": ExtraTreesClassifier(n_estimators=15, random_state=0),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "neighbours": KNeighborsClassifier(),
    "prior": DummyClassifier(),
    "pipeline": make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression())),
    "search": GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [3, 9]}, cv=2),
    "search in one-vs-rest": GridSearchCV(OneVsRestClassifier(LogisticRegression()), {"estimator__C": [0.1, 1]}, cv=2),
}


@parametrize_with_checks([AbstainingClassifier(LogisticRegression())])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        AbstainingClassifier(cv=2),  # the recommended learner
        AbstainingClassifier(LogisticRegression(), calibration="sigmoid", cv=3),
        AbstainingClassifier(KNeighborsClassifier(), calibration="isotonic", cv=KFold(3)),
    ]
)
def test_scikit_learn_checks_with_calibration(estimator, check):
    check(estimator)


def expected_columns(estimator, y):
    """The probabilities the slow way: the fitted estimator's own answer, taken apart label by label."""
    fitted = clone(estimator)
    if isinstance(estimator, LogisticRegression | GaussianNB):
        return np.column_stack([clone(estimator).fit(X[TRAIN], c).predict_proba(X[TEST])[:, 1] for c in y[TRAIN].T])
    answer = fitted.fit(X[TRAIN], y[TRAIN]).predict_proba(X[TEST])
    return np.column_stack([p[:, 1] for p in answer]) if isinstance(answer, list) else answer


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_probabilities_come_in_one_shape(name):
    assert HAS_ZERO_ROWS
    model = AbstainingClassifier(ESTIMATORS[name]).fit(X[TRAIN], Y[TRAIN])
    probabilities = model.predict_proba(X[TEST])
    assert probabilities.shape == (80, 4)
    assert probabilities.dtype == np.float64
    np.testing.assert_allclose(probabilities, expected_columns(ESTIMATORS[name], Y))
    np.testing.assert_array_equal(model.classes_, [0, 1, 2, 3])


@pytest.mark.slow
@pytest.mark.parametrize("calibration", [None, "sigmoid", "isotonic"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_constant_labels_are_set_aside(name, calibration):
    constant = np.column_stack([np.zeros(240, int), Y[:, 0], np.ones(240, int), Y[:, 1]])
    model = AbstainingClassifier(ESTIMATORS[name], calibration=calibration, cv=2).fit(X[TRAIN], constant[TRAIN])
    probabilities = model.predict_proba(X[TEST])
    base_rate = 0.0 if calibration is None else 0.5 / (len(X[TRAIN]) + 1)  # calibrated, nothing is certain
    np.testing.assert_allclose(probabilities[:, 0], base_rate)
    np.testing.assert_allclose(probabilities[:, 2], 1.0 - base_rate)
    others = AbstainingClassifier(ESTIMATORS[name], calibration=calibration, cv=2).fit(X[TRAIN], Y[TRAIN, :2])
    np.testing.assert_allclose(probabilities[:, [1, 3]], others.predict_proba(X[TEST]))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_label(name):
    model = AbstainingClassifier(ESTIMATORS[name]).fit(X[TRAIN], Y[TRAIN, :1])
    probabilities = model.predict_proba(X[TEST])
    assert probabilities.shape == (80, 1)
    assert model.predict(X[TEST]).shape == (80, 1)
    assert np.mean(model.predict(X[TEST]) == Y[TEST, :1]) > 0.5
    assert model.decide(X[TEST]).shape == (80, 1)


def test_nothing_but_constant_labels():
    model = AbstainingClassifier(LogisticRegression()).fit(X, np.tile([0, 1], (240, 1)))
    np.testing.assert_array_equal(model.predict_proba(X[:2]), [[0.0, 1.0], [0.0, 1.0]])


def test_a_label_without_examples_in_a_fold():
    rare = Y.copy()
    rare[:, 0] = 0
    rare[7, 0] = 1
    for method in ("sigmoid", "isotonic"):
        model = AbstainingClassifier(LogisticRegression(), calibration=method).fit(X, rare)
        assert np.isfinite(model.predict_proba(X)).all()
        assert model.predict_proba(X)[:, 0].mean() == pytest.approx(1 / 240, abs=0.006)


def test_fitted_models():
    fitted = make_pipeline(StandardScaler(), RandomForestClassifier(random_state=0)).fit(X[TRAIN], Y[TRAIN])
    frozen = AbstainingClassifier(FrozenEstimator(fitted)).fit(X[TEST], np.zeros_like(Y[TEST]))
    np.testing.assert_allclose(frozen.predict_proba(X[TEST]), abstain.label_probabilities(fitted, X[TEST]))
    calibrated = AbstainingClassifier(FrozenEstimator(fitted), calibration="sigmoid").fit(X[TEST], Y[TEST])
    assert not np.allclose(calibrated.predict_proba(X), frozen.predict_proba(X))


@pytest.mark.parametrize("calibration", ["auto", "sigmoid", "isotonic"])
def test_calibration_is_learnt_from_cross_fitted_probabilities(calibration):
    folds = KFold(4, shuffle=True, random_state=3)
    base = make_pipeline(StandardScaler(), LogisticRegression(C=0.05))
    model = AbstainingClassifier(base, calibration=calibration, cv=folds).fit(X[TRAIN], Y[TRAIN])
    held_out = [cross_val_predict(base, X[TRAIN], y, cv=folds, method="predict_proba")[:, 1] for y in Y[TRAIN].T]
    fitted = [clone(base).fit(X[TRAIN], y).predict_proba(X[TEST])[:, 1] for y in Y[TRAIN].T]
    by_hand = abstain.calibration.fit(np.column_stack(held_out), Y[TRAIN], calibration)
    assert model.calibration_.method == by_hand.method
    expected = by_hand.transform(np.column_stack(fitted))
    np.testing.assert_allclose(model.predict_proba(X[TEST]), expected, atol=1e-9)


def test_only_instances_that_are_held_out_calibrate():
    """The first ones of a time series never are."""
    folds, base = TimeSeriesSplit(4), LogisticRegression(C=0.05)
    weights = np.linspace(1.0, 3.0, 240)
    model = AbstainingClassifier(base, calibration="sigmoid", cv=folds).fit(X, Y, sample_weight=weights)
    rows = np.concatenate([test for _, test in folds.split(X)])
    assert len(rows) < 240
    held_out = [
        clone(base).fit(X[train], y[train], sample_weight=weights[train]).predict_proba(X[test])[:, 1]
        for y in Y.T
        for train, test in folds.split(X)
    ]
    scores = np.concatenate(held_out).reshape(Y.shape[1], -1).T
    by_hand = abstain.calibration.fit(scores, Y[rows], "sigmoid", sample_weight=weights[rows])
    fitted = [clone(base).fit(X, y, sample_weight=weights).predict_proba(X)[:, 1] for y in Y.T]
    np.testing.assert_allclose(model.predict_proba(X), by_hand.transform(np.column_stack(fitted)), atol=1e-9)


@pytest.mark.parametrize("estimator", [LinearSVC(), RidgeClassifier(), OneVsRestClassifier(LinearSVC())])
def test_a_decision_function_will_do_if_it_is_calibrated(estimator):
    with pytest.raises(InvalidParameter, match=r"no predict_proba; calibration='auto'"):
        AbstainingClassifier(estimator).fit(X, Y)
    model = AbstainingClassifier(estimator, calibration="sigmoid").fit(X[TRAIN], Y[TRAIN])
    probabilities = model.predict_proba(X[TEST])
    assert ((probabilities > 0) & (probabilities < 1)).all()
    assert np.mean((probabilities > 0.5) == Y[TEST]) > 0.7


def test_names_of_labels_features_and_rows_are_kept():
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])], index=[f"row {i}" for i in range(240)])
    labels = pd.DataFrame(Y, columns=["sky", "sea", "sun", "sand"], index=frame.index)
    model = AbstainingClassifier(LogisticRegression(), penalty=0.2).fit(frame[TRAIN], labels[TRAIN])
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    assert model.classes_.tolist() == ["sky", "sea", "sun", "sand"]
    answers = model.decide(frame[TEST]).to_frame()
    assert answers.columns.tolist() == ["sky", "sea", "sun", "sand"]
    assert answers.index.equals(frame.index[TEST])
    assert model.score(frame[TEST], labels[TEST]) == model.score(frame[TEST], Y[TEST])
    with pytest.raises(abstain.InvalidLabels, match="another order"):
        model.score(frame[TEST], labels[TEST][["sea", "sky", "sun", "sand"]])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[TEST].rename(columns={"f0": "g"}))


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix, pd.DataFrame, np.asfortranarray, list])
def test_any_container_of_labels(container):
    given = [row.tolist() for row in Y] if container is list else container(Y)
    model = AbstainingClassifier(LogisticRegression()).fit(X, given)
    plain = AbstainingClassifier(LogisticRegression()).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert model.score(X, given) == plain.score(X, Y)


@pytest.mark.slow
def test_sparse_features():
    """The recommended learner is not among these: it uses a kernel for dense features only."""
    for estimator in (LogisticRegression(), OneVsRestClassifier(LogisticRegression())):
        dense = AbstainingClassifier(estimator, calibration="sigmoid").fit(X, Y).predict_proba(X)
        thin = AbstainingClassifier(estimator, calibration="sigmoid").fit(sparse.csr_matrix(X), Y)
        np.testing.assert_allclose(thin.predict_proba(sparse.csr_matrix(X)), dense, atol=1e-3)


def test_text_goes_through_a_pipeline():
    texts = ["sun and sea", "sea and sand", "grey sky", "sun in the sky"] * 5
    labels = [[1, 1], [0, 1], [0, 0], [1, 0]] * 5
    estimator = make_pipeline(CountVectorizer(), OneVsRestClassifier(LogisticRegression()))
    model = AbstainingClassifier(estimator, calibration="sigmoid").fit(texts, labels)
    assert model.predict(["sun", "sea"]).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("loss", ["hamming", "f1", "jaccard", "subset", "rank"])
def test_decide_predict_and_score_are_the_library_s(loss):
    model = AbstainingClassifier(LogisticRegression(), loss=loss, penalty=0.05).fit(X[TRAIN], Y[TRAIN])
    probabilities = model.predict_proba(X[TEST])
    direct = abstain.decide(probabilities, loss, 0.05)
    np.testing.assert_array_equal(model.decide(X[TEST]).codes, direct.codes)
    np.testing.assert_array_equal(model.predict(X[TEST]), abstain.decide(probabilities, loss, "none").codes)
    assert model.score(X[TEST], Y[TEST]) == -generalized_loss(Y[TEST], direct, loss=loss, penalty=0.05)
    other = model.decide(X[TEST], loss="hamming", penalty=abstain.Concave(0.3))
    np.testing.assert_array_equal(other.codes, abstain.decide(probabilities, "hamming", abstain.Concave(0.3)).codes)


def test_changing_the_penalty_never_fits_again():
    model = AbstainingClassifier(LogisticRegression(), penalty=0.05).fit(X[TRAIN], Y[TRAIN])
    before = model.estimator_
    few, many = model.decide(X[TEST], penalty=0.4), model.decide(X[TEST])
    assert many.n_abstained.sum() > few.n_abstained.sum()
    np.testing.assert_array_equal(model.set_params(penalty=0.4).decide(X[TEST]).labels, few.labels)
    assert model.estimator_ is before


def test_a_single_target_has_its_classes_as_labels():
    features, classes = make_classification(300, n_classes=3, n_informative=5, random_state=0)
    names = np.array(["ham", "eggs", "spam"])[classes]
    for calibration in (None, "sigmoid", "isotonic"):
        model = AbstainingClassifier(LogisticRegression(), calibration=calibration).fit(features, names)
        probabilities = model.predict_proba(features)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        assert model.classes_.tolist() == ["eggs", "ham", "spam"]
        assert np.mean(model.predict(features) == names) > 0.6
        partial = model.decide(features)
        assert partial.label_names == ("eggs", "ham", "spam")
        one_hot = (names[:, np.newaxis] == model.classes_).astype(int)
        assert model.score(features, names) == -generalized_loss(one_hot, partial.labels, loss="hamming", penalty=0.1)
    with pytest.raises(abstain.InvalidLabels, match=r"row 0 is 'tofu'"):
        model.score(features, np.where(np.arange(300) == 0, "tofu", names))


def test_weights_reach_the_estimator_and_the_calibration():
    weights = np.random.default_rng(0).integers(1, 4, 160)
    twice = np.repeat(np.arange(160), weights)
    base = MultiOutputClassifier(LogisticRegression(tol=1e-8, max_iter=1000))
    weighted = AbstainingClassifier(base).fit(X[TRAIN], Y[TRAIN], sample_weight=weights)
    repeated = AbstainingClassifier(base).fit(X[twice], Y[twice])
    np.testing.assert_allclose(weighted.predict_proba(X[TEST]), repeated.predict_proba(X[TEST]), atol=1e-4)

    fitted = FrozenEstimator(base.fit(X[TEST], Y[TEST]))
    frozen = AbstainingClassifier(fitted, calibration="isotonic")
    by_weight = frozen.fit(X[TRAIN], Y[TRAIN], sample_weight=weights).predict_proba(X[TEST])
    by_repeating = frozen.fit(X[twice], Y[twice]).predict_proba(X[TEST])
    np.testing.assert_allclose(by_weight, by_repeating, atol=1e-6)


def test_metadata_is_routed():
    weights, groups = np.linspace(0.5, 2, 160), np.arange(160) // 8
    base = LogisticRegression()
    plain = AbstainingClassifier(base).fit(X[TRAIN], Y[TRAIN], sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = AbstainingClassifier(LogisticRegression().set_fit_request(sample_weight=True))
        routed = asked.fit(X[TRAIN], Y[TRAIN], sample_weight=weights)
        np.testing.assert_allclose(routed.predict_proba(X), plain.predict_proba(X))
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            AbstainingClassifier(LogisticRegression()).fit(X[TRAIN], Y[TRAIN], sample_weight=weights)
        grouped = AbstainingClassifier(base, calibration="sigmoid", cv=GroupKFold(4))
        assert grouped.fit(X[TRAIN], Y[TRAIN], groups=groups).predict_proba(X).shape == (240, 4)
        scored = cross_validate(
            asked.set_score_request(sample_weight=True), X[TRAIN], Y[TRAIN], params={"sample_weight": weights}, cv=2
        )
        assert np.isfinite(scored["test_score"]).all()


def test_the_score_can_be_weighted():
    model = AbstainingClassifier(LogisticRegression()).fit(X[TRAIN], Y[TRAIN])
    weights = np.arange(1.0, 81.0)
    each = generalized_loss(Y[TEST], model.decide(X[TEST]), loss="hamming", penalty=0.1, per_instance=True)
    assert model.score(X[TEST], Y[TEST], sample_weight=weights) == pytest.approx(-np.average(each, weights=weights))


def test_it_works_inside_scikit_learn():
    model = AbstainingClassifier(make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression())))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {"abstainingclassifier__estimator__onevsrestclassifier__estimator__C": [1e-4, 1.0]},
        cv=3,
    ).fit(X, Y)
    best = search.best_estimator_[-1]
    assert best.estimator.get_params()["onevsrestclassifier__estimator__C"] == 1.0
    assert cross_validate(model, X, Y, cv=3)["test_score"].shape == (3,)
    again = pickle.loads(pickle.dumps(best))
    scaled = search.best_estimator_[0].transform(X)
    np.testing.assert_array_equal(again.decide(scaled).labels, best.decide(scaled).labels)


@pytest.mark.slow
def test_jobs_change_nothing():
    alone = AbstainingClassifier(calibration="isotonic").fit(X, Y).predict_proba(X)
    together = AbstainingClassifier(calibration="isotonic", n_jobs=2).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(alone, together, rtol=1e-12)  # the trees add up in another order


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: np.where(y == 1, 2, y), r"y: row \d+, column \d is 2; a label is 0 or 1"),
        (lambda y: np.where(y == 1, np.nan, y), "Input y contains NaN"),
        (lambda y: y[:-1], "inconsistent numbers of samples"),
        (lambda y: pd.DataFrame(y, columns=list("abcd")).replace(1, 7), r"row \d+ .*\(label '[abcd]'\) is 7"),
        (lambda y: None, "y is None"),
        (lambda y: [{"sun"}, {"sea", "sun"}] * 120, "row 0 is {'sun'}; scikit-learn's MultiLabelBinarizer"),
        (lambda y: [["sun"], ["sea", "sun"]] * 120, r"row 0 is \['sun'\]; scikit-learn's MultiLabelBinarizer"),
        (lambda y: [[1, 2], [2]] * 120, r"row 1 is \[2\]; scikit-learn's MultiLabelBinarizer"),
        (lambda y: y[:, :0], "there is no label|0 feature"),
    ],
)
def test_what_is_wrong_with_the_target(change, message):
    with pytest.raises(ValueError, match=message):
        AbstainingClassifier(LogisticRegression()).fit(X, change(Y))


def test_what_is_wrong_with_the_parameters():
    with pytest.raises(InvalidParameter, match="calibration is 'platt'; expected one of 'auto', 'none', "):
        AbstainingClassifier(calibration="platt").fit(X, Y)
    forest = AbstainingClassifier(FrozenEstimator(RandomForestClassifier(n_estimators=3).fit(X, Y)))
    with pytest.raises(abstain.InvalidLabels, match="FrozenEstimator answers 4 labels, expected 2"):
        forest.fit(X, Y[:, :2])
    with pytest.raises(
        InvalidParameter, match=r"estimator is 'br-lr'; expected a classifier; abstain.learners.make\('br-lr'\)"
    ):
        AbstainingClassifier("br-lr").fit(X, Y)
    with pytest.raises(InvalidParameter, match="LinearRegression has neither predict_proba nor decision_function"):
        AbstainingClassifier(LinearRegression(), calibration="sigmoid").fit(X, Y)
    with pytest.raises(abstain.InvalidLoss, match="haming"):
        AbstainingClassifier(loss="haming").fit(X, Y)
    with pytest.raises(abstain.InvalidPenalty):
        AbstainingClassifier(penalty=-1).fit(X, Y)
    with pytest.raises(InvalidParameter, match=r"cv=5: there are fewer instances than folds \(n_samples=3\)"):
        AbstainingClassifier().fit(X[:3], Y[:3])
    with pytest.raises(abstain.InvalidProbabilities, match="LinearSVC has no predict_proba; AbstainingClassifier with"):
        abstain.label_probabilities(LinearSVC().fit(X, Y[:, 0]), X)


def test_rows_in_another_order_are_noticed():
    frame, labels = pd.DataFrame(X), pd.DataFrame(Y)
    shuffled = labels.sample(frac=1, random_state=0)
    with pytest.raises(abstain.InvalidLabels, match="y has the rows of X in another order: row 0 is"):
        AbstainingClassifier(LogisticRegression()).fit(frame, shuffled)
    model = AbstainingClassifier(LogisticRegression()).fit(frame, labels)
    with pytest.raises(abstain.InvalidLabels, match="another order"):
        model.score(frame, shuffled[0])
    assert model.score(frame, labels.set_index(np.arange(240) + 1000)) == model.score(frame, labels)


def test_lists_of_rows_and_of_texts():
    model = AbstainingClassifier(LogisticRegression()).fit(X.tolist(), Y.tolist())
    np.testing.assert_array_equal(model.decide(X.tolist()).labels, model.decide(X).labels)
    assert model.score(X.tolist(), Y.tolist()) == model.score(X, Y)
    texts, labels = ["sun and sea", "sea and sand", "sky"] * 4, [[1, 1], [0, 1], [0, 0]] * 4
    reader = AbstainingClassifier(make_pipeline(CountVectorizer(), LogisticRegression())).fit(texts, labels)
    assert reader.decide(["sun", "sand"]).shape == (2, 2)
    assert reader.score(texts, labels) <= 0


def test_frozen_models_answer_as_they_do():
    search = GridSearchCV(ClassifierChain(LogisticRegression()), {"estimator__C": [1]}, cv=2).fit(X, Y)
    frozen = AbstainingClassifier(FrozenEstimator(search)).fit(X, Y)
    np.testing.assert_array_equal(frozen.predict_proba(X), search.predict_proba(X))
    single = FrozenEstimator(LogisticRegression().fit(X, Y[:, 0]))
    with pytest.raises(abstain.InvalidLabels, match="FrozenEstimator answers 2 labels, expected 4"):
        AbstainingClassifier(single).fit(X, Y)
    np.testing.assert_array_equal(
        AbstainingClassifier(single).fit(X, Y[:, :1]).predict_proba(X)[:, 0], single.predict_proba(X)[:, 1]
    )
    two_labels = FrozenEstimator(OneVsRestClassifier(LogisticRegression()).fit(X, Y[:, :2]))
    with pytest.raises(abstain.InvalidLabels, match="answers 2 labels, expected 1"):
        AbstainingClassifier(two_labels).fit(X, Y[:, :1])


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("estimator", [LogisticRegression(), LinearSVC(), None])
def test_a_part_without_a_class_gives_nothing_away(estimator, calibration):
    """All examples are in the first fold, and the features say nothing: the probability is the frequency."""
    noise = np.random.default_rng(0).normal(size=(300, 5))
    labels = np.zeros((300, 2), int)
    labels[:30, 0] = 1
    labels[::2, 1] = 1
    model = AbstainingClassifier(estimator, calibration=calibration, cv=KFold(5)).fit(noise, labels)
    fresh = np.random.default_rng(1).normal(size=(200, 5))
    assert 0.05 < model.predict_proba(fresh)[:, 0].mean() < 0.15


def test_parameters_that_speak_of_each_label():
    constant = np.column_stack([Y[:, 0], np.zeros(240, int), Y[:, 1], Y[:, 2]])
    chain = AbstainingClassifier(ClassifierChain(LogisticRegression(), order=[3, 1, 2, 0])).fit(X, constant)
    slow = ClassifierChain(LogisticRegression(), order=[2, 1, 0]).fit(X, Y[:, :3])
    np.testing.assert_allclose(chain.predict_proba(X)[:, [0, 2, 3]], slow.predict_proba(X))
    weights = [{0: 1, 1: w} for w in (2, 3, 4, 5)]
    forest = RandomForestClassifier(5, class_weight=weights, random_state=0)
    assert AbstainingClassifier(forest).fit(X, constant).predict_proba(X).shape == (240, 4)


class Foreign:
    """A classifier that is not one of scikit-learn's, and gives its probabilities in some shape."""

    def __init__(self, shape="table"):
        self.shape = shape

    def get_params(self, deep=True):
        return {"shape": self.shape}

    def set_params(self, **params):
        self.shape = params.get("shape", self.shape)
        return self

    def fit(self, X, Y):
        self.mean_ = np.mean(Y, axis=0)
        return self

    def predict_proba(self, X):
        table = np.tile(self.mean_, (len(X), 1))
        return {
            "table": table,
            "single precision": table.astype(np.float32),
            "sparse": sparse.csr_matrix(table),
            "tuple": tuple(np.column_stack([1 - p, p]) for p in table.T),
            "cube": np.stack([1 - table, table], axis=2),
            "columns": [p[:, np.newaxis] for p in table.T],
            "vectors": list(table.T),
            "flat": table.ravel(),
            "nan": np.full_like(table, np.nan),
        }[self.shape]


@pytest.mark.parametrize("n", range(3, 40, 4))
def test_a_label_that_is_always_relevant_in_a_sparse_target(n):
    labels = np.stack([np.arange(n) % 2, np.ones(n), np.arange(n) % 3 == 0], axis=1).astype(np.int64)
    features = np.random.default_rng(0).random((n, 2))
    fitted = AbstainingClassifier(MultiOutputClassifier(GaussianNB())).fit(features, sparse.csr_array(labels))
    assert (fitted.predict_proba(features)[:, 1] == 1).all()


@pytest.mark.parametrize("shape", ["table", "single precision", "sparse", "tuple", "cube"])
def test_foreign_classifiers(shape):
    model = AbstainingClassifier(Foreign(shape)).fit(X, Y)
    probabilities = model.predict_proba(X)
    assert sparse.issparse(probabilities) == (shape == "sparse")
    np.testing.assert_allclose(sparse.csr_array(probabilities).toarray(), np.tile(Y.mean(axis=0), (240, 1)), rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("columns", r"label 0 has shape \(240, 1\), expected \(n, 2\)"),
        ("vectors", r"label 0 has shape \(240,\), expected \(n, 2\)"),
        ("flat", r"Foreign.predict_proba gives an array of shape \(960,\)"),
    ],
)
def test_shapes_that_say_too_little(shape, message):
    model = AbstainingClassifier(Foreign(shape)).fit(X, Y)
    with pytest.raises(abstain.InvalidProbabilities, match=message):
        model.predict_proba(X)


def test_nan_is_not_calibrated_away():
    with pytest.raises(abstain.InvalidProbabilities, match="predict_proba: row 0, column 0 is nan"):
        AbstainingClassifier(Foreign("nan"), calibration="sigmoid").fit(X, Y)


@pytest.mark.slow
def test_weights_of_the_recommended_learner_and_of_a_step():
    weights = np.where(Y[:, 0] == 1, 1e3, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = AbstainingClassifier().fit(X, Y, sample_weight=weights)
    assert routed.predict_proba(X)[:, 0].mean() > 0.9
    step = make_pipeline(StandardScaler(), RandomForestClassifier(20, random_state=0))
    inside = AbstainingClassifier(step, calibration="sigmoid").fit(X, Y, randomforestclassifier__sample_weight=weights)
    plain = AbstainingClassifier(step[-1], calibration="sigmoid").fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(inside.predict_proba(X).mean(axis=0), plain.predict_proba(X).mean(axis=0), atol=0.02)
    assert inside.predict_proba(X)[:, 0].mean() > 0.9


def test_a_failed_fit_leaves_the_old_one():
    model = AbstainingClassifier(LogisticRegression(), calibration="isotonic")
    with pytest.raises(sklearn.exceptions.NotFittedError):
        model.score(X, Y)
    before = model.fit(X, Y).predict_proba(X)
    with pytest.raises(InvalidParameter, match="fewer instances than folds"):
        model.set_params(cv=1000).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_a_column_of_classes_stays_one():
    column = (np.arange(240) % 3)[:, np.newaxis]
    model = AbstainingClassifier(LogisticRegression()).fit(X, column)
    two = column[:, 0] < 2
    assert model.score(X[two], column[two]) == model.score(X[two], column[two, 0])


def test_the_scorer_knows_the_names():
    labels = pd.DataFrame(Y, columns=list("abcd"))
    model = AbstainingClassifier(LogisticRegression()).fit(X, labels)
    with pytest.raises(abstain.InvalidLabels, match="another order"):
        abstain.make_abstention_scorer()(model, X, labels[list("dcba")])


def test_intervals_are_those_of_the_calibration_or_of_the_estimator():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 4))
    y = (X[:, :3] + random.normal(size=(300, 3)) > [0, 1, 9]).astype(int)  # the last label is never relevant
    frame = pd.DataFrame(y, columns=["sky", "sea", "sand"])
    model = abstain.AbstainingClassifier(LogisticRegression(), calibration="venn-abers").fit(X, frame)
    box, p = model.predict_intervals(X[:20]), model.predict_proba(X[:20])
    assert (box.lower <= p + 1e-12).all()
    assert (p <= box.upper + 1e-12).all()
    assert abstain.decide(box).label_names == ("sky", "sea", "sand")
    np.testing.assert_allclose(box.upper[:, 2], 1 / 301)
    assert model.predict_intervals(X[:20], rule="hurwicz", optimism=0.5).rule == "hurwicz"
    credal = abstain.AbstainingClassifier(abstain.learners.make("credal-forest"), calibration=None).fit(X, frame)
    lower, upper = credal.estimator_.predict_intervals(X[:20])
    box = credal.predict_intervals(X[:20])
    np.testing.assert_array_equal(box.lower, lower)
    np.testing.assert_array_equal(box.upper, upper)
    for other in ("isotonic", None):
        plain = abstain.AbstainingClassifier(LogisticRegression(), calibration=other).fit(X, frame)
        with pytest.raises(abstain.InvalidParameter, match="gives no intervals"):
            plain.predict_intervals(X)
    single = abstain.AbstainingClassifier(LogisticRegression(), calibration="venn-abers").fit(X, y[:, 0])
    with pytest.raises(abstain.InvalidParameter, match="single target"):
        single.predict_intervals(X)
