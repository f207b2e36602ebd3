"""The joint distributions that fitted models imply, against slow and obviously right ones."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import abstain
from abstain import InvalidParameter, Mixture, Samples, label_distribution, label_probabilities, learners
from abstain.learners import _chain_sampling
from abstain.learners._forest import LabelForest
from abstain.learners._leaf_vectors import leaves_of, vectors_of

X, Y = make_multilabel_classification(n_samples=150, n_features=8, n_classes=4, n_labels=2, random_state=3)
X = X.astype(float)
TRAINING, NEW = (X[:110], Y[:110]), X[110:]


def chances(joint):
    """The probability of each label vector in each row, as dicts."""
    parts = joint._all_components()
    result = [{} for _ in range(joint.n_rows)]
    for row, weight, index in zip(parts.row, parts.weights, parts.index, strict=True):
        vector = tuple(parts.values[index].tolist())
        result[row][vector] = result[row].get(vector, 0.0) + weight
    return result


def assert_same(joint, expected, **tolerance):
    for found, wanted in zip(chances(joint), expected, strict=True):
        assert found == pytest.approx({vector: p for vector, p in wanted.items() if p > 0}, **tolerance)


def of_leaves(of_training, of_new, labels, weights):
    """The mean over trees of the weighted shares of the label vectors of training rows in the same leaf."""
    result = []
    n_trees = of_training.shape[1]
    for leaves in of_new:
        row = {}
        for t in range(n_trees):
            same = np.flatnonzero((of_training[:, t] == leaves[t]) & (weights[t] > 0))
            for i in same:
                share = weights[t][i] / weights[t][same].sum() / n_trees
                row[tuple(labels[i].tolist())] = row.get(tuple(labels[i].tolist()), 0.0) + share
        result.append(row)
    return result


FORESTS = {
    "random forest": RandomForestClassifier(7, min_samples_leaf=3, random_state=0),
    "small bags": RandomForestClassifier(7, max_samples=0.4, random_state=0),
    "without bags": RandomForestClassifier(7, bootstrap=False, min_samples_leaf=5, random_state=0),
    "extra trees": ExtraTreesClassifier(7, min_samples_leaf=4, random_state=0),
    "tree": DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", FORESTS)
def test_forests_give_label_vectors_in_the_same_leaves(name, weighted):
    weight = np.random.default_rng(0).integers(0, 3, 110).astype(float) if weighted else np.ones(110)
    forest = FORESTS[name].fit(*TRAINING, sample_weight=weight if weighted else None)
    joint = label_distribution(forest, NEW, training=(*TRAINING, weight) if weighted else TRAINING)
    bags = getattr(forest, "estimators_samples_", None) if getattr(forest, "bootstrap", False) else None
    of_training, of_new = (forest.apply(rows).reshape(len(rows), -1) for rows in (X[:110], NEW))
    weights = [weight] * of_training.shape[1]
    if bags is not None:
        once = np.ones(110) if hasattr(forest, "_sample_weight") else weight
        weights = [once * np.bincount(bag, minlength=110) for bag in bags]
    assert isinstance(joint, Samples)
    assert_same(joint, of_leaves(of_training, of_new, Y, weights), abs=1e-6)
    np.testing.assert_allclose(joint.marginals.values, label_probabilities(forest, NEW), atol=1e-6)


@pytest.mark.parametrize("m", [3, 40])
def test_our_own_forests_keep_their_rows(m):
    labels = (X[:110] @ np.random.default_rng(m).normal(size=(8, m)) > 1.0).astype(np.int8)
    weight = np.random.default_rng(0).random(110)
    forest = LabelForest.fit(X[:110], labels, weight, n_trees=50, seed=1, n_jobs=None)
    joint = vectors_of(forest).distribution(leaves_of(forest, NEW))
    of_training, of_new = leaves_of(forest, X[:110]), leaves_of(forest, NEW)
    assert_same(joint, of_leaves(of_training, of_new, labels, [weight] * of_training.shape[1]), abs=1e-6)
    np.testing.assert_allclose(joint.marginals.values, forest.votes(NEW), atol=1e-6)


@pytest.mark.parametrize("weights", ["uniform", "distance", lambda distances: 1 / (1 + distances)])
def test_neighbours_give_their_label_vectors(weights):
    model = KNeighborsClassifier(9, weights=weights).fit(*TRAINING)
    joint = label_distribution(model, NEW)
    np.testing.assert_allclose(joint.marginals.values, label_probabilities(model, NEW), atol=1e-12)
    distances, neighbours = model.kneighbors(NEW)
    given = {"uniform": np.ones_like, "distance": lambda d: 1 / d}.get(weights, weights)(distances)
    expected = []
    for near, weight in zip(neighbours, given, strict=True):
        row = {}
        for i, w in zip(near, weight, strict=True):
            row[tuple(Y[i].tolist())] = row.get(tuple(Y[i].tolist()), 0.0) + w / weight.sum()
        expected.append(row)
    assert_same(joint, expected, abs=1e-12)


def test_neighbours_within_a_radius():
    model = RadiusNeighborsClassifier(30.0, weights="distance").fit(*TRAINING)
    joint = label_distribution(model, NEW)
    np.testing.assert_allclose(joint.marginals.values, label_probabilities(model, NEW), atol=1e-12)
    with pytest.raises(InvalidParameter, match="row 1 has no neighbours within the radius"):
        label_distribution(model, np.vstack([X[:1], X[:1] + 1e6]))


def by_the_chain_rule(chain, rows):
    """The product of the probabilities of all labels, for all 2^m label vectors."""
    m = len(chain.estimators_)
    result = [{} for _ in rows]
    for vector in product([0, 1], repeat=m):
        before = np.array([vector[j] for j in chain.order_], float)
        p = np.ones(len(rows))
        for k, estimator in enumerate(chain.estimators_):
            both = np.hstack([rows, np.tile(before[:k], (len(rows), 1))])
            p *= estimator.predict_proba(both)[:, list(estimator.classes_).index(int(before[k]))]
        for i in range(len(rows)):
            result[i][vector] = p[i]
    return result


CHAINS = {
    "logistic regression": ClassifierChain(LogisticRegression(max_iter=1000), order=[2, 0, 3, 1]),
    "naive Bayes": ClassifierChain(GaussianNB(), order=[3, 2, 1, 0]),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_with_few_labels_are_exact(name):
    chain = CHAINS[name].fit(*TRAINING)
    assert_same(label_distribution(chain, NEW), by_the_chain_rule(chain, NEW), abs=1e-12)
    assert_same(label_distribution(chain, NEW, samples=16), by_the_chain_rule(chain, NEW), abs=1e-12)


@pytest.mark.parametrize("name", CHAINS)
def test_samples_of_chains_are_as_frequent_as_they_are_probable(name, monkeypatch):
    chain = CHAINS[name].fit(*TRAINING)
    exact = by_the_chain_rule(chain, NEW[:4])
    runs = [chances(label_distribution(chain, NEW[:4], samples=15, random_state=seed)) for seed in range(400)]
    for i in range(4):
        for vector, p in exact[i].items():
            drawn = np.array([run[i].get(vector, 0.0) for run in runs])
            error = max(drawn.std() / 20, 1e-3)
            assert abs(drawn.mean() - p) < 4.5 * error
            assert drawn.std() <= np.sqrt(p * (1 - p) / 15) * 1.3 + 0.02, "no noisier than independent samples"
    one = label_distribution(chain, NEW, samples=15, random_state=7)
    assert chances(one) == chances(label_distribution(chain, NEW, samples=15, random_state=7))
    assert chances(one)[5:8] == chances(label_distribution(chain, NEW[5:8], samples=15, random_state=7))
    monkeypatch.setattr(_chain_sampling, "MAX_VALUES_PER_BLOCK", 1)
    assert chances(one) == chances(label_distribution(chain, NEW, samples=15, random_state=7))


def test_ensembles_of_chains_are_means_of_chains():
    ensemble = learners.make("ecc-lr").set_params(n_chains=3).fit(*TRAINING)
    parts = [by_the_chain_rule(chain, NEW) for chain in ensemble.chains_]
    expected = [{v: sum(part[i][v] for part in parts) / 3 for v in parts[0][i]} for i in range(len(NEW))]
    assert_same(label_distribution(ensemble, NEW), expected, abs=1e-12)
    assert_same(label_distribution(ensemble.chains_, NEW), expected, abs=1e-12)
    sampled = label_distribution(ensemble, NEW, samples=40)
    wanted = np.array([[sum(p * v[j] for v, p in row.items()) for j in range(4)] for row in expected])
    assert np.abs(sampled.marginals.values - wanted).max() < 0.12


def test_a_probabilistic_chain_has_the_marginals_of_its_joint_distribution():
    model = learners.make("pcc-lr").fit(*TRAINING)
    joint = label_distribution(model, NEW)
    assert_same(joint, by_the_chain_rule(model.chain_, NEW), abs=1e-12)
    np.testing.assert_allclose(model.predict_proba(NEW), joint.marginals.values)
    thin = learners.make("pcc-lr").fit(sparse.csr_array(TRAINING[0]), TRAINING[1])
    np.testing.assert_allclose(thin.predict_proba(sparse.csr_array(NEW)), joint.marginals.values, atol=1e-3)


def test_labels_of_chains_that_are_constant():
    constant = np.column_stack([Y[:, :2], np.ones(150, int)])
    model = learners.make("pcc-lr").fit(X, constant)
    assert (label_distribution(model, X).marginals.values[:, 2] == 1).all()
    bayes = ClassifierChain(GaussianNB()).fit(X, constant)
    assert (label_distribution(bayes, X).marginals.values[:, 2] == 1).all()


def test_lists_of_models_are_mixtures():
    models = [MultiOutputClassifier(LogisticRegression(C=c, max_iter=1000)).fit(*TRAINING) for c in (0.01, 1.0)]
    joint = label_distribution(models, NEW)
    assert isinstance(joint, Mixture)
    wanted = np.stack([label_probabilities(model, NEW) for model in models], axis=1)
    np.testing.assert_array_equal(joint._values, wanted)
    neighbours = [KNeighborsClassifier(k).fit(*TRAINING) for k in (3, 8)]
    both = [chances(label_distribution(model, NEW)) for model in neighbours]
    expected = [
        {v: (one.get(v, 0.0) + two.get(v, 0.0)) / 2 for v in {*one, *two}} for one, two in zip(*both, strict=True)
    ]
    assert_same(label_distribution(neighbours, NEW), expected, abs=1e-12)


def test_pipelines_searches_and_frozen_models():
    scaled = make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)).fit(*TRAINING)
    joint = label_distribution(scaled, NEW, training=TRAINING)
    np.testing.assert_allclose(joint.marginals.values, label_probabilities(scaled, NEW), atol=1e-6)
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [3, 9]}, cv=2).fit(*TRAINING)
    for model in (search, FrozenEstimator(search), make_pipeline(FrozenEstimator(search))):
        joint = label_distribution(model, NEW)
        np.testing.assert_allclose(joint.marginals.values, label_probabilities(search, NEW), atol=1e-12)


def test_the_recommended_learner():
    constant = np.column_stack([Y, np.zeros(150, int)])
    model = learners.recommended(cv=3, n_jobs=1).fit(X[:110], constant[:110])
    joint = label_distribution(model, NEW)
    np.testing.assert_allclose(joint.marginals.values, model.predict_proba(NEW), atol=1e-6)
    forest = model._forest()
    raw = chances(vectors_of(forest).distribution(leaves_of(forest, NEW)))
    seen = {vector for row in raw for vector in row}
    heavy = [{v[:4] for v, p in row.items() if p > 0.05} for row in chances(joint)]
    assert all(row <= seen for row in heavy), "no label vectors of any weight but those of the training data"


def test_credal_trees():
    model = learners.make("credal-forest").fit(*TRAINING)
    joint = label_distribution(model, NEW)
    np.testing.assert_allclose(joint.marginals.values, model.predict_proba(NEW), atol=1e-6)


def test_names():
    frame = pd.DataFrame(X[:110], index=[f"row {i}" for i in range(110)])
    labels = pd.DataFrame(Y[:110], columns=["sky", "sea", "sun", "sand"], index=frame.index)
    forest = RandomForestClassifier(5, random_state=0).fit(frame.to_numpy(), labels)
    marginals = label_distribution(forest, frame.to_numpy(), training=(frame.to_numpy(), labels)).marginals
    assert marginals.label_names == ("sky", "sea", "sun", "sand")
    neighbours = KNeighborsClassifier().fit(frame.add_prefix("x"), labels)
    joint = label_distribution(neighbours, frame.add_prefix("x"), label_names=list("abcd"))
    assert joint.marginals.label_names == tuple("abcd")
    assert joint.marginals.index.equals(frame.index)
    with pytest.raises(abstain.InvalidLabels, match="3 names for 4 labels"):
        label_distribution(neighbours, frame.add_prefix("x"), label_names=list("abc"))


@pytest.mark.parametrize("loss", ["hamming", "rank", "subset", "f1", "jaccard"])
def test_they_are_decided(loss):
    joint = label_distribution(KNeighborsClassifier(9).fit(*TRAINING), NEW)
    best = abstain.decide(joint, loss, 0.1)
    alone = abstain.decide(joint.marginals, loss, 0.1)
    of_alone = abstain.metrics.expected_generalized_loss(joint, alone, loss=loss, penalty=0.1, per_instance=True)
    assert (best.expected_loss <= of_alone + 1e-9).all()


class OwnJoint:
    """A model of a user's own."""

    def __init__(self, answer):
        self.answer = answer

    def label_distribution(self, X):
        return self.answer


def test_models_of_ones_own():
    joint = Samples(np.ones((len(NEW), 3, 2), int))
    assert label_distribution(OwnJoint(joint), NEW).shape == joint.shape
    with pytest.raises(InvalidParameter, match="expected Samples or Mixture of 40 instances"):
        label_distribution(OwnJoint(NEW), NEW)
    with pytest.raises(InvalidParameter, match="expected Samples or Mixture of 3 instances"):
        label_distribution(OwnJoint(joint), NEW[:3])


def test_mistakes():
    forest = RandomForestClassifier(3, random_state=0).fit(*TRAINING)
    with pytest.raises(InvalidParameter, match=r"does not keep the data .* pass training=\(X, y\)"):
        label_distribution(forest, NEW)
    with pytest.raises(InvalidParameter, match=r"training has 150 instances × 4 labels; .* was fitted to 110 × 4"):
        label_distribution(forest, NEW, training=(X, Y))
    with pytest.raises(InvalidParameter, match=r"expected \(X, y\) or"):
        label_distribution(forest, NEW, training=X)
    independent = MultiOutputClassifier(LogisticRegression(max_iter=1000)).fit(*TRAINING)
    with pytest.raises(InvalidParameter, match=r"MultiOutputClassifier has no joint distribution .* There are forests"):
        label_distribution(independent, NEW)
    with pytest.raises(InvalidParameter, match="MLPClassifier has no joint"):
        label_distribution(MLPClassifier(), NEW)
    with pytest.raises(InvalidParameter, match="RidgeClassifier has no predict_proba"):
        label_distribution(ClassifierChain(RidgeClassifier()).fit(*TRAINING), NEW)
    crossed = ClassifierChain(LogisticRegression(max_iter=1000), cv=2, chain_method="predict_proba").fit(*TRAINING)
    with pytest.raises(InvalidParameter, match="use ClassifierChain with cv=None"):
        label_distribution(crossed, NEW)
    with pytest.raises(InvalidParameter, match="model 1, MultiOutputClassifier, has no joint distribution"):
        label_distribution([KNeighborsClassifier().fit(*TRAINING), independent], NEW)
    with pytest.raises(InvalidParameter, match="list of models is empty"):
        label_distribution([], NEW)
    with pytest.raises(InvalidParameter, match="samples is 0"):
        label_distribution(forest, NEW, samples=0)
    classes = KNeighborsClassifier().fit(X[:110], np.arange(110) % 3)
    with pytest.raises(InvalidParameter, match="classes other than 0 and 1"):
        label_distribution(classes, NEW)
