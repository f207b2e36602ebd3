"""The learners by name reach the optima of scikit-learn's own per-label loops."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.svm import SVC
from tests.support.data import DATA, needs_data

from abstain import AbstainingClassifier, InvalidLabels, InvalidParameter, label_probabilities, learners
from abstain.datasets import load_mulan
from abstain.learners._binary import BinaryLogisticRegression, PlattScaledSVM
from abstain.learners._chains import ChainEnsemble
from abstain.learners._nystroem import NystroemMap

pytestmark = pytest.mark.slow

X, Y = make_multilabel_classification(n_samples=150, n_features=8, n_classes=4, random_state=3)
X = X.astype(float)
CONVERGED = LogisticRegression(tol=1e-9, max_iter=100_000)


def columns(model, features):
    """Of a list with an (n, 2) array for each label, or of an (n, m) array."""
    answer = model.predict_proba(features)
    return np.column_stack([p[:, 1] for p in answer]) if isinstance(answer, list) else answer


def test_every_name_is_there():
    assert (
        *("br-lr", "br-svm", "br-nystroem-svm"),
        *("cc-lr", "cc-svm", "cc-nystroem-svm"),
        *("ecc-lr", "ecc-svm", "ecc-nystroem-svm"),
        *("pcc-lr", "ncc", "credal-forest"),
    ) == learners.NAMES


@pytest.mark.parametrize("name", learners.NAMES)
def test_every_learner_learns(name):
    model = learners.make(name)
    if name.startswith("ecc"):  # 50 chains take their time, and three do the same
        final = model if isinstance(model, ChainEnsemble) else model[-1]
        final.set_params(n_chains=3)
    for features in (X, sparse.csr_array(X), pd.DataFrame(X).add_prefix("x")):
        probabilities = label_probabilities(clone(model).fit(features, Y), features)
        assert probabilities.shape == Y.shape
        assert np.mean((probabilities > 0.5) == Y) > 0.8


@pytest.mark.parametrize("name", ["br-lr", "cc-lr", "ecc-lr", "br-svm", "cc-nystroem-svm"])
def test_constant_and_rare_labels(name):
    rare = np.column_stack([np.zeros(150), np.ones(150), np.arange(150) == 0, np.arange(150) < 3, Y[:, 0]]).astype(int)
    model = learners.make(name)
    if name == "ecc-lr":
        model.set_params(n_chains=2)
    probabilities = label_probabilities(model.fit(X, rare), X)
    assert (probabilities[:, 0] == 0).all()
    assert (probabilities[:, 1] == 1).all()
    assert (probabilities[:, 2:4].mean(axis=0) < 0.1).all()
    assert np.mean((probabilities[:, 4] > 0.5) == Y[:, 0]) > 0.8


def test_binary_relevance_with_logistic_regression():
    slow = MultiOutputClassifier(CONVERGED).fit(X, Y)
    np.testing.assert_allclose(columns(learners.make("br-lr").fit(X, Y), X), columns(slow, X), atol=1e-5)


def test_a_chain_is_in_the_order_of_the_labels():
    slow = ClassifierChain(CONVERGED, order=[0, 1, 2, 3]).fit(X, Y)
    np.testing.assert_allclose(learners.make("cc-lr").fit(X, Y).predict_proba(X), slow.predict_proba(X), atol=1e-5)


def test_logistic_regression_of_sparse_and_wide_features():
    wide = np.random.default_rng(0).normal(size=(60, 1200)) * (np.random.default_rng(1).random((60, 1200)) < 0.05)
    y = Y[:60, 0]
    expected = CONVERGED.fit(wide, y).predict_proba(wide)
    for features in (wide, sparse.csr_matrix(wide)):
        found = BinaryLogisticRegression().fit(features, y)
        assert found.model_.solver == "newton-cg"
        np.testing.assert_allclose(found.predict_proba(features), expected, atol=1e-4)


def test_support_vector_machines_are_platt_scaled():
    slow = CalibratedClassifierCV(SVC(), cv=5, ensemble=False, method="sigmoid").fit(X, Y[:, 0])
    np.testing.assert_allclose(PlattScaledSVM().fit(X, Y[:, 0]).predict_proba(X), slow.predict_proba(X))


def test_an_ensemble_is_the_mean_of_its_chains():
    model = ChainEnsemble(BinaryLogisticRegression(), 3, random_state=5).fit(X, Y)
    orders = [chain.order_.tolist() for chain in model.chains_]
    assert len({tuple(order) for order in orders}) > 1
    slow = [ClassifierChain(CONVERGED, order=order).fit(X, Y).predict_proba(X) for order in orders]
    np.testing.assert_allclose(model.predict_proba(X), np.mean(slow, axis=0), atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X) > 0.5)
    assert learners.make("ecc-lr").n_chains == 50


def test_ensembles_are_reproducible_on_any_number_of_cores():
    def answers(seed, n_jobs):
        model = learners.make("ecc-lr", random_state=seed, n_jobs=n_jobs).set_params(n_chains=4)
        return model.fit(X, Y).predict_proba(X)

    np.testing.assert_allclose(answers(1, None), answers(1, 2), rtol=1e-12)
    assert not np.allclose(answers(1, None), answers(2, None))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_the_nystroem_map_of_all_points_is_the_kernel_of_the_machine(container):
    mapped = NystroemMap(1000, random_state=0).fit_transform(container(X))
    np.testing.assert_allclose(mapped @ mapped.T, rbf_kernel(X, gamma=1 / (8 * X.var())), atol=1e-6)


def test_learners_can_be_weighted_and_wrapped():
    weights = np.random.default_rng(0).integers(1, 3, 150)
    repeated = np.repeat(np.arange(150), weights)
    weighted = learners.make("br-lr").fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(
        columns(weighted, X), columns(learners.make("br-lr").fit(X[repeated], Y[repeated]), X), atol=1e-5
    )
    wrapped = AbstainingClassifier(learners.make("cc-lr"), calibration="sigmoid").fit(X, Y)
    assert wrapped.decide(X).shape == Y.shape


def test_labels_are_0_and_1():
    for name in ("br-lr", "cc-svm"):
        with pytest.raises(InvalidLabels, match=r"a label is 0 or 1; this one has the values \[-1, 1\]"):
            learners.make(name).fit(X, 2 * Y - 1)


def test_a_wrong_name_is_answered_with_a_right_one():
    with pytest.raises(InvalidParameter, match=r"there is no learner 'br-lrr'; did you mean 'br-lr'\?"):
        learners.make("br-lrr")
    with pytest.raises(InvalidParameter, match=r"there is no learner 7 \(there are br-lr"):
        learners.make(7)


@needs_data
def test_cal500_is_at_the_optimum():
    """Newton's method ends where lbfgs would, given time; the default tolerance stops it 0.01 away."""
    cal500 = load_mulan(DATA / "CAL500" / "cal500.arff.gz")
    some = cal500.target[:, 20:26]
    slow = MultiOutputClassifier(CONVERGED).fit(cal500.data, some)
    found = learners.make("br-lr").fit(cal500.data, some)
    np.testing.assert_allclose(columns(found, cal500.data), columns(slow, cal500.data), atol=1e-4)
