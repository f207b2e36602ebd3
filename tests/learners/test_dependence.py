"""`AbstainingClassifier` decides from joint distributions where that pays."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import abstain
from abstain import AbstainingClassifier, InvalidParameter
from abstain._core.losses import as_loss
from abstain._core.penalties import as_penalty
from abstain.learners import _classifier
from abstain.learners._dependence import Dependence, Z
from abstain.learners._held_out import HeldOut
from abstain.metrics import generalized_loss


def all_or_nothing(n, seed=0):
    """Labels that come together or not at all; which of both, the features hardly tell."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    together = X[:, 0] + 2.0 * random.normal(size=n) > 0
    noise = random.random((n, 5)) < 0.03
    return X, (together[:, np.newaxis] ^ noise).astype(int)


def unrelated(n, seed=0):
    """Labels that are independent given the features."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 5))
    return X, (X + random.normal(size=X.shape) > 0).astype(int)


X, Y = all_or_nothing(400)
NEW, TRUTH = all_or_nothing(400, seed=1)
ESTIMATORS = {
    "neighbours": KNeighborsClassifier(40),
    "forest": RandomForestClassifier(30, min_samples_leaf=10, random_state=0),
    "forest in a pipeline": make_pipeline(
        StandardScaler(), RandomForestClassifier(10, min_samples_leaf=9, random_state=0)
    ),
    "probabilistic chain": abstain.learners.make("pcc-lr"),
    "chains": abstain.learners.make("ecc-lr").set_params(n_chains=3),
    "credal trees": abstain.learners.make("credal-forest").set_params(n_trees=30),
    "recommended": abstain.learners.recommended(cv=3, n_jobs=1),
}


@pytest.mark.parametrize("calibration", [None, "sigmoid"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_dependence_is_used_where_it_pays(name, calibration):
    if name == "recommended" and calibration is not None:
        pytest.skip("it is calibrated already")
    model = AbstainingClassifier(ESTIMATORS[name], loss="subset", penalty=0.1, calibration=calibration, cv=3).fit(X, Y)
    found = model.dependence_
    assert found.uses_joint
    assert found.n_instances == 400
    assert found.difference < -Z * found.standard_error < 0
    assert found.difference == found.joint_loss - found.independent_loss
    assert "# joint: held-out SubsetZeroOne()" in repr(model)
    joint = model.label_distribution(NEW)
    np.testing.assert_allclose(joint.marginals.values, model.predict_proba(NEW), atol=1e-6)
    mixed = joint.with_independence(found.share)
    np.testing.assert_array_equal(model.decide(NEW).labels, abstain.decide(mixed, "subset", 0.1).labels)
    np.testing.assert_array_equal(model.predict(NEW), abstain.decide(mixed, "subset", "none").labels)
    alone = clone(model).set_params(dependence="independent").fit(X, Y)
    np.testing.assert_allclose(alone.predict_proba(NEW), model.predict_proba(NEW))
    assert not alone.dependence_.uses_joint
    assert model.score(NEW, TRUTH) > alone.score(NEW, TRUTH) + 0.02
    realized = generalized_loss(TRUTH, model.decide(NEW), loss="subset", penalty=0.1)
    assert realized == pytest.approx(found.joint_loss, abs=0.08), "the promise of held-out instances holds"


def test_it_is_not_used_where_it_does_not_pay():
    features, labels = unrelated(400)
    model = AbstainingClassifier(KNeighborsClassifier(40), loss="subset", penalty=0.1, cv=3).fit(features, labels)
    assert model.dependence_.was_compared
    assert not model.dependence_.uses_joint
    assert "# independent: held-out" in repr(model)
    new, _ = unrelated(50, seed=1)
    by_hand = abstain.decide(model.predict_proba(new), "subset", 0.1)
    np.testing.assert_array_equal(model.decide(new).labels, by_hand.labels)


class CountedNeighbors(KNeighborsClassifier):
    fits = 0

    def fit(self, X, y):
        CountedNeighbors.fits += 1
        return super().fit(X, y)


@pytest.mark.parametrize(
    ("loss", "dependence", "fits"), [("hamming", "auto", 1), ("subset", "auto", 4), ("subset", "joint", 1)]
)
def test_nothing_is_fitted_that_is_not_needed(loss, dependence, fits):
    CountedNeighbors.fits = 0
    AbstainingClassifier(CountedNeighbors(), loss=loss, cv=3, dependence=dependence).fit(X, Y)
    assert CountedNeighbors.fits == fits
    CountedNeighbors.fits = 0
    AbstainingClassifier(CountedNeighbors(), loss=loss, cv=3, dependence=dependence, calibration="sigmoid").fit(X, Y)
    assert CountedNeighbors.fits == 4, "the folds of the calibration serve for both"


def test_the_recommended_learner_compares_on_its_own_folds(monkeypatch):
    def none_of_it(*_, **__):
        raise AssertionError("cross-fitted once more")

    monkeypatch.setattr(_classifier, "cross_fit", none_of_it)
    model = AbstainingClassifier(loss="rank", penalty=0.2, cv=3, n_jobs=1).fit(X, Y)
    assert model.dependence_.was_compared
    assert AbstainingClassifier(cv=3, n_jobs=1).fit(X, Y).estimator_.held_out_ == []


def test_other_losses_are_decided_as_if_labels_were_independent():
    model = AbstainingClassifier(KNeighborsClassifier(40), loss="subset", penalty=0.1, cv=3).fit(X, Y)
    for loss in ("rank", "hamming"):
        np.testing.assert_array_equal(
            model.decide(NEW, loss=loss).codes, abstain.decide(model.predict_proba(NEW), loss, 0.1).codes
        )
    joint = AbstainingClassifier(KNeighborsClassifier(40), loss="subset", dependence="joint").fit(X, Y)
    for loss in ("rank", "subset"):
        expected = abstain.decide(joint.label_distribution(NEW), loss, 0.3)
        np.testing.assert_array_equal(joint.decide(NEW, loss=loss, penalty=0.3).codes, expected.codes)
    np.testing.assert_array_equal(
        joint.set_params(dependence="independent").decide(NEW).codes,
        abstain.decide(joint.predict_proba(NEW), "subset", 0.1).codes,
    )


@pytest.mark.parametrize(
    ("estimator", "loss", "reason"),
    [
        (KNeighborsClassifier(), "hamming", "sum over labels"),
        (MultiOutputClassifier(LogisticRegression()), "subset", "no joint distribution"),
        (LogisticRegression(), "rank", "no joint distribution"),
    ],
)
def test_why_nothing_was_compared(estimator, loss, reason):
    model = AbstainingClassifier(estimator, loss=loss).fit(X, Y)
    assert not model.dependence_.uses_joint
    assert not model.dependence_.was_compared
    assert reason in str(model.dependence_)
    assert "#" not in repr(model)


def test_what_cannot_be_cross_fitted_is_decided_as_before():
    few = AbstainingClassifier(KNeighborsClassifier(3), loss="subset", cv=5).fit(
        X[:4], [[0, 1], [1, 1], [1, 0], [0, 0]]
    )
    assert "cross-fitting failed" in few.dependence_.reason
    one = AbstainingClassifier(KNeighborsClassifier(3), loss="subset").fit(X, Y[:, :1])
    assert "only one label" in one.dependence_.reason
    flat = AbstainingClassifier(KNeighborsClassifier(3), loss="subset").fit(X, np.tile([0, 1], (400, 1)))
    assert "fewer than two labels varied" in flat.dependence_.reason
    single = AbstainingClassifier(KNeighborsClassifier(3), loss="subset").fit(X, np.arange(400) % 3)
    assert not single.dependence_.uses_joint
    frozen = FrozenEstimator(RandomForestClassifier(5).fit(X, Y))
    assert not AbstainingClassifier(frozen, loss="subset").fit(X, Y).dependence_.uses_joint


@pytest.mark.parametrize("calibration", [None, "sigmoid"])
@pytest.mark.parametrize("name", ["neighbours", "forest", "probabilistic chain", "recommended"])
def test_constant_labels(name, calibration):
    if name == "recommended" and calibration is not None:
        pytest.skip("it is calibrated already")
    wider = np.column_stack([np.zeros(400, int), Y, np.ones(400, int)])
    model = AbstainingClassifier(
        ESTIMATORS[name], loss="subset", penalty=0.1, cv=3, calibration=calibration, dependence="joint"
    ).fit(X, wider)
    joint = model.label_distribution(NEW)
    np.testing.assert_allclose(joint.marginals.values, model.predict_proba(NEW), atol=1e-6)
    assert (model.predict(NEW)[:, [0, -1]] == [0, 1]).all()
    one = AbstainingClassifier(ESTIMATORS[name], dependence="joint").fit(X, wider[:, :2])
    np.testing.assert_allclose(one.label_distribution(NEW).marginals.values, one.predict_proba(NEW), atol=1e-6)


def test_names_are_kept():
    frame = pd.DataFrame(X, index=[f"row {i}" for i in range(400)]).add_prefix("x")
    labels = pd.DataFrame(Y, columns=list("abcde"), index=frame.index)
    model = AbstainingClassifier(ESTIMATORS["forest"], loss="subset", dependence="joint").fit(frame, labels)
    answers = model.decide(frame[:3]).to_frame()
    assert answers.columns.tolist() == list("abcde")
    assert answers.index.tolist() == ["row 0", "row 1", "row 2"]
    assert abstain.label_distribution(model, frame[:3]).marginals.label_names == tuple("abcde")


def test_weights_count():
    """Where the labels depend on each other, instances weigh nothing."""
    features, labels = unrelated(400)
    held_out = [
        HeldOut(np.arange(400), abstain.label_distribution(KNeighborsClassifier(30).fit(X, Y), X)),
        HeldOut(
            np.arange(400, 800), abstain.label_distribution(KNeighborsClassifier(30).fit(features, labels), features)
        ),
    ]
    weight = np.repeat([0.0, 1.0], 400)
    options = np.vstack([Y, labels]), as_loss("subset"), as_penalty(0.1)
    plain = Dependence.compared(held_out, options[0], None, *options[1:])
    weighted = Dependence.compared(held_out, options[0], weight, *options[1:])
    assert plain.difference < -0.02
    joint = held_out[1].joint
    losses = [
        generalized_loss(labels, abstain.decide(table, "subset", 0.1), loss="subset", penalty=0.1, per_instance=True)
        for table in (joint.with_independence(weighted.share), joint.marginals)
    ]
    difference = losses[0] - losses[1]
    assert weighted.difference == pytest.approx(difference.mean())
    assert weighted.standard_error == pytest.approx(difference.std() / np.sqrt(400))


def test_mistakes():
    with pytest.raises(InvalidParameter, match="dependence is 'both'; expected one of 'auto', 'independent', 'joint'"):
        AbstainingClassifier(KNeighborsClassifier(), dependence="both").fit(X, Y)
    with pytest.raises(InvalidParameter, match="dependence='joint': LogisticRegression has no joint distribution"):
        AbstainingClassifier(LogisticRegression(), dependence="joint").fit(X, Y)
    with pytest.raises(InvalidParameter, match="classes of a vector exclude each other"):
        AbstainingClassifier(KNeighborsClassifier(), dependence="joint").fit(X, Y[:, 0])
    forest = AbstainingClassifier(ESTIMATORS["forest"]).fit(X, Y)
    with pytest.raises(InvalidParameter, match='which was not kept; fit with dependence="joint"'):
        forest.label_distribution(NEW)
    with pytest.raises(InvalidParameter, match=r"LogisticRegression has no joint|MultiOutputClassifier has no joint"):
        AbstainingClassifier(LogisticRegression()).fit(X, Y).label_distribution(NEW)
    single = AbstainingClassifier(KNeighborsClassifier()).fit(X, np.arange(400) % 3)
    with pytest.raises(InvalidParameter, match="single target"):
        single.label_distribution(NEW)


@pytest.mark.slow
@parametrize_with_checks([AbstainingClassifier(KNeighborsClassifier(), loss="subset", calibration="sigmoid", cv=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
