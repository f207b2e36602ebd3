"""Penalties that a user writes, wherever a penalty is taken: right against brute force, or a clear error."""

import pickle

import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from tests.oracles.monotonicity import slow_is_monotone
from tests.support.cases import random_probabilities

import abstain
from abstain import InvalidPenalty, metrics
from abstain._core import exhaustive
from abstain._core.losses import LOSSES
from abstain._core.penalties import BoundPenalty
from abstain.streams import Job, decide_files

M = 4


class FirstOnesFree(abstain.Penalty):
    """Some abstentions are free, each further one costs the same."""

    def __init__(self, cost, free):
        self.cost, self.free = cost, free

    def bind(self, n_labels):
        return BoundPenalty(self.cost * np.maximum(np.arange(n_labels + 1) - self.free, 0))


class Pairs(abstain.Penalty):
    """Two labels are looked at for the price of one: whole numbers, as a list."""

    def bind(self, n_labels):
        return BoundPenalty([(a + 1) // 2 for a in range(n_labels + 1)])


class Experts(abstain.Penalty):
    """Label i costs more than label i − 1, and every abstention a fee."""

    def bind(self, n_labels):
        fee = 0.05
        return BoundPenalty(fee * np.arange(n_labels + 1), slope=fee, label_costs=np.linspace(0.0, 0.3, n_labels))


class AtMostOne(abstain.Penalty):
    def bind(self, n_labels):
        return BoundPenalty(np.where(np.arange(n_labels + 1) > 1, np.inf, 0.0))


COUNTING = {"free": FirstOnesFree(0.1, 2), "pairs": Pairs(), "one": AtMostOne()}
OWN = COUNTING | {"experts": Experts()}
own = pytest.mark.parametrize("penalty", OWN.values(), ids=OWN)


@own
@pytest.mark.parametrize("loss", LOSSES)
def test_decisions_are_those_of_brute_force(loss, penalty):
    p = random_probabilities(24, M)
    if isinstance(penalty, Experts) and loss != "hamming":
        with pytest.raises(InvalidPenalty, match="cannot honour PerLabel costs"):
            abstain.decide(p, loss, penalty)
        return
    found, brute = abstain.decide(p, loss, penalty), exhaustive.decide(p, loss, penalty)
    np.testing.assert_allclose(found.expected_loss, brute.expected_loss, rtol=0, atol=1e-11)
    again = metrics.expected_generalized_loss(p, found, loss=loss, penalty=penalty, per_instance=True)
    np.testing.assert_allclose(again, found.expected_loss, rtol=0, atol=1e-11)


@own
def test_every_back_end_decides_alike(penalty, tmp_path):
    p = np.where(np.random.default_rng(1).random((30, M)) < 0.3, 0.0, random_probabilities(30, M))
    expected = abstain.decide(p, penalty=penalty)
    lazy = abstain.decide(da.from_array(p, chunks=(7, M)), penalty=penalty)
    np.testing.assert_array_equal(lazy.compute().labels, expected.labels)
    thin = abstain.decide(sparse.csr_array(p), penalty=penalty)
    np.testing.assert_allclose(thin.expected_loss, expected.expected_loss, atol=1e-12)
    kept = pickle.loads(pickle.dumps(penalty))
    np.testing.assert_array_equal(abstain.decide(p, penalty=kept).labels, expected.labels)
    np.save(tmp_path / "p.npy", p)
    decide_files(tmp_path / "p.npy", tmp_path / "q.npy", Job("hamming", penalty))
    np.testing.assert_array_equal(np.load(tmp_path / "q.npy"), expected.labels)


@pytest.mark.parametrize("penalty", COUNTING.values(), ids=COUNTING)
def test_profiles_and_monotonicity(penalty):
    p = random_probabilities(24, M)
    profiled = abstain.risk_profile(p, loss="f1").decide(penalty)
    np.testing.assert_allclose(profiled.expected_loss, abstain.decide(p, "f1", penalty).expected_loss, atol=1e-11)
    assert abstain.is_monotone("hamming", penalty, n_labels=3).holds == slow_is_monotone("hamming", penalty, 3)


@pytest.fixture(scope="module")
def fitted():
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 6))
    Y = (X @ random.normal(size=(6, M)) + random.normal(size=(120, M)) > 0).astype(int)
    return abstain.AbstainingClassifier(LogisticRegression(), penalty=0.3).fit(X[:80], Y[:80]), X[80:], Y[80:]


@own
def test_classifiers_and_scorers(penalty, fitted):
    model, X, Y = fitted
    p, answers = model.predict_proba(X), model.decide(X, penalty=penalty)
    np.testing.assert_array_equal(answers.labels, abstain.decide(p, penalty=penalty).labels)
    scorer = abstain.make_abstention_scorer(loss="hamming", penalty=penalty)
    assert scorer(model, X, Y) == pytest.approx(-metrics.generalized_loss(Y, answers, loss="hamming", penalty=penalty))


def test_penalties_of_ones_own_are_parts_of_others():
    free = FirstOnesFree(0.1, 1)
    np.testing.assert_allclose(abstain.Capped(free, 2).bind(3).counts, [0, 0, 0.1, np.inf])
    np.testing.assert_allclose((abstain.PerLabel([0.1, 0.2, 0.3]) + free).bind(3).counts, [0, 0, 0.1, 0.2])
    for combined in (abstain.Capped(Experts(), 1), abstain.PerLabel([0.1, 0.2, 0.3]) + Experts()):
        with pytest.raises(InvalidPenalty, match=r"a counting penalty; .* prices labels one by one"):
            combined.bind(3)


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (BoundPenalty([0.0, 0.1, 0.2]), r"Bad.bind\(3\): counts: expected 4 numbers, got 3"),
        (BoundPenalty(np.zeros(5)), r"Bad.bind\(3\): counts: expected 4 numbers, got 5"),
        (BoundPenalty([0.1, 0.1, 0.2, 0.3]), r"expected f\(0\) = 0 and numbers ≥ 0"),
        (BoundPenalty([0.0, 0.1, np.nan, 0.3]), r"expected f\(0\) = 0 and numbers ≥ 0"),
        (BoundPenalty([0.0, -0.1, 0.2, 0.3]), r"expected f\(0\) = 0 and numbers ≥ 0"),
        (BoundPenalty([0.0, 0.1, 0.2, np.inf], slope=0.1), "slope is 0.1, but the counts are not"),
        (BoundPenalty([0.0, np.inf, np.inf, np.inf], is_concave=True), "is_concave is True, but some numbers"),
        (BoundPenalty([0.0, 0.1, 0.5, 1.0], is_concave=True), "is_concave is True, but the step from 1 to 2"),
        (BoundPenalty(np.zeros(4), label_costs=np.ones(2)), "label_costs: expected 3 numbers, got 2"),
        (BoundPenalty(np.zeros(4), label_costs=[1, np.inf, 1]), "the cost of label 1 is inf"),
        (np.zeros(4), r"Bad.bind\(3\) gives a ndarray; expected a BoundPenalty"),
    ],
)
def test_what_is_no_penalty_is_named(bound, message):
    class Bad(abstain.Penalty):
        def bind(self, n_labels):
            return bound

    for refused in (lambda: abstain.decide([0.1, 0.5, 0.7], "f1", Bad()), lambda: abstain.Capped(Bad(), 1).bind(3)):
        with pytest.raises(InvalidPenalty, match=message):
            refused()


@pytest.mark.parametrize("kind", ["job", "classifier", "loss", "object", "number of a kind", "dict"])
def test_what_only_carries_a_penalty_is_none(kind):
    given = {
        "job": Job("hamming", 0.2),
        "classifier": abstain.AbstainingClassifier(penalty=abstain.Linear(0.3)),
        "loss": abstain.Hamming(),
        "object": object(),
        "number of a kind": 1j,
        "dict": {"a": 0.1},
    }[kind]
    with pytest.raises(
        InvalidPenalty, match=r"^penalty is .*(Job|AbstainingClassifier|Hamming|object|1j|'a').*; a penal"
    ):
        abstain.decide([0.1, 0.5], penalty=given)
