"""The naive credal classifier, against all vertices of its sets of probabilities."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.naive_bayes import CategoricalNB

from abstain.learners._bins import QuantileBins
from abstain.learners._naive_credal import NaiveCredalClassifier

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 2)).round(1)
Y = (X @ [[1.0, -0.5, 2.0], [0.5, 1.0, 0.0]] + RANDOM.normal(size=(40, 3)) > [0.0, 1.5, 0.5]).astype(int)
NEW = np.vstack([RANDOM.normal(size=(8, 2)), [[-9.0, 9.0], [9.0, np.nan], [np.nan, np.nan]]])
WEIGHT = RANDOM.integers(0, 4, 40)


def codes_the_slow_way(model, x):
    """The bin of each feature; None if the value is missing."""
    return [
        None if np.isnan(value) else sum(value > cut for cut in cuts)
        for value, cuts in zip(x, model.bins_.cuts, strict=True)
    ]


def vertices(counts, s):
    """All s rows on one of the outcomes, for each of them: the extreme points of the imprecise Dirichlet model."""
    return [(counts + s * (np.arange(len(counts)) == k)) / (counts.sum() + s) for k in range(len(counts))]


def bounds_the_slow_way(model, rows, x, y, s):
    """The least and the greatest P(1 | x) over the vertices of all local sets: of the label, and of each feature."""
    training = [codes_the_slow_way(model, row) for row in rows]
    bins = codes_the_slow_way(model, x)
    sets = [vertices(np.array([np.sum(y == 0), np.sum(y == 1)]), s)]
    known = [i for i, bin_ in enumerate(bins) if bin_ is not None]
    for i, value in itertools.product(known, (0, 1)):
        seen = [codes[i] for codes, label in zip(training, y, strict=True) if label == value and codes[i] is not None]
        sets.append(vertices(np.bincount(np.array(seen, int), minlength=model.bins_.n_bins), s))
    found = []
    for prior, *likelihoods in itertools.product(*sets):
        irrelevant, relevant = prior
        for k, i in enumerate(known):
            irrelevant *= likelihoods[2 * k][bins[i]]
            relevant *= likelihoods[2 * k + 1][bins[i]]
        if irrelevant + relevant > 0:
            found.append(relevant / (irrelevant + relevant))
    return min(found), max(found)


@pytest.mark.parametrize("s", [0.3, 1, 2, 8.0])
def test_bounds_are_those_over_all_vertices(s):
    features = X.copy()
    features[::7, 0] = np.nan
    model = NaiveCredalClassifier(s=s, n_bins=3).fit(features, Y)
    lower, upper = model.predict_intervals(NEW)
    slow = [[bounds_the_slow_way(model, features, x, y, s) for y in Y.T] for x in NEW]
    np.testing.assert_allclose(np.stack([lower, upper], axis=2), slow, atol=1e-12)


def test_the_point_is_naive_bayes_with_the_prior_in_the_middle():
    """scikit-learn's, with alpha = s / bins; its prior of the label is not smoothed, so the s / 2 are given to it."""
    s, n_bins = 1.5, 3
    model = NaiveCredalClassifier(s=s, n_bins=n_bins).fit(X, Y)
    training, new = (np.array([codes_the_slow_way(model, row) for row in rows], dtype=int) for rows in (X, NEW[:-2]))
    for j, y in enumerate(Y.T):
        prior = (np.bincount(y) + s / 2) / (len(y) + s)
        slow = CategoricalNB(alpha=s / n_bins, min_categories=n_bins, class_prior=prior).fit(training, y)
        np.testing.assert_allclose(model.predict_proba(NEW[:-2])[:, j], slow.predict_proba(new)[:, 1])


def test_without_features_that_are_known_the_interval_is_that_of_the_label():
    model = NaiveCredalClassifier(s=2).fit(X, Y)
    relevant = Y.sum(axis=0)
    lower, upper = model.predict_intervals(NEW[-1:])
    np.testing.assert_allclose(lower[0], relevant / 42)
    np.testing.assert_allclose(upper[0], (relevant + 2) / 42)
    np.testing.assert_allclose(model.predict_proba(NEW[-1:])[0], (relevant + 1) / 42)


def test_a_feature_that_is_always_missing_or_constant_changes_nothing():
    model = NaiveCredalClassifier().fit(X, Y)
    wider = NaiveCredalClassifier().fit(np.column_stack([X, np.full(40, np.nan), np.full(40, 5.0)]), Y)
    new = np.column_stack([NEW, np.ones(len(NEW)), np.full(len(NEW), np.nan)])
    np.testing.assert_array_equal(wider.predict_proba(new), model.predict_proba(NEW))
    np.testing.assert_array_equal(wider.predict_intervals(new), model.predict_intervals(NEW))


def test_an_instance_of_weight_w_counts_as_w_instances():
    weighted = NaiveCredalClassifier(n_bins=4).fit(X, Y, sample_weight=WEIGHT)
    repeated = NaiveCredalClassifier(n_bins=4).fit(np.repeat(X, WEIGHT, axis=0), np.repeat(Y, WEIGHT, axis=0))
    np.testing.assert_array_equal(weighted.bins_.cuts, repeated.bins_.cuts)
    np.testing.assert_allclose(weighted.predict_intervals(NEW), repeated.predict_intervals(NEW))
    np.testing.assert_allclose(weighted.predict_proba(NEW), repeated.predict_proba(NEW))


def test_labels_that_were_constant_in_training():
    constant = np.column_stack([np.zeros(40), np.ones(40), Y[:, 0]]).astype(int)
    model = NaiveCredalClassifier(s=2).fit(X, constant)
    lower, upper = model.predict_intervals(NEW)
    probabilities = model.predict_proba(NEW)
    np.testing.assert_allclose(probabilities[:, :2], np.tile([1 / 42, 41 / 42], (len(NEW), 1)))
    assert (lower[:, 0] == 0).all()
    assert (upper[:, 1] == 1).all()
    assert (upper[:-1, 0] > 1 / 21).all()  # wider than the label's frequency alone: nothing is known of its other value
    np.testing.assert_array_equal(lower[:, 2], NaiveCredalClassifier(s=2).fit(X, Y).predict_intervals(NEW)[0][:, 0])


@pytest.mark.parametrize("n_bins", [2, 6])
def test_bins_have_about_as_many_rows_each(n_bins):
    values = RANDOM.normal(size=(600, 3))
    bins = QuantileBins.fit(values, np.ones(600), n_bins=n_bins)
    counts = np.stack([np.bincount(codes, minlength=n_bins) for codes in bins(values, slice(0, 3)).T])
    np.testing.assert_array_equal(counts, 600 // n_bins)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
def test_a_feature_of_two_values_has_two_bins_however_rare_one_is(share):
    values = (np.arange(100) < 100 * share).astype(float)[:, np.newaxis]
    codes = QuantileBins.fit(values, np.ones(100), n_bins=6)(values, slice(0, 1))
    assert len(np.unique(codes[values == 0])) == len(np.unique(codes[values == 1])) == 1
    assert codes[values == 0][0] != codes[values == 1][0]


def test_every_bin_that_can_be_reached_has_training_rows():
    values = np.round(RANDOM.exponential(size=(80, 5)))
    bins = QuantileBins.fit(values, np.ones(80), n_bins=6)
    anything = np.tile(np.linspace(-3.0, 30.0, 500)[:, np.newaxis], 5)
    for of_training, of_anything in zip(bins(values, slice(0, 5)).T, bins(anything, slice(0, 5)).T, strict=True):
        assert set(of_anything) <= set(of_training)


def test_sparse_features_are_as_dense_ones(monkeypatch):
    from abstain.learners import _bins, _credal

    features = X * (RANDOM.random(X.shape) < 0.6)
    dense = NaiveCredalClassifier().fit(features, Y).predict_intervals(features)
    monkeypatch.setattr(_bins, "FEATURES_PER_BLOCK", 1)
    monkeypatch.setattr(_credal, "MAX_VALUES_PER_BLOCK", 14)
    for container in (np.asarray, sparse.csr_array, sparse.csc_matrix):
        model = NaiveCredalClassifier().fit(container(features), sparse.csr_array(Y))
        np.testing.assert_array_equal(model.predict_intervals(container(features)), dense)
