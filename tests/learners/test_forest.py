"""The votes of trees that keep rows instead of values."""

import numpy as np
import pytest
from scipy import sparse

from abstain.learners import _forest
from abstain.learners._forest import LabelForest

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(120, 6)) * (RANDOM.random((120, 6)) < 0.7)
WEIGHTS = RANDOM.random(120) * (RANDOM.random(120) < 0.9)


def labels(m):
    return (X @ RANDOM.normal(size=(6, m)) > 0.5).astype(np.int8)


def votes_the_slow_way(forest, Y, rows):
    """The mean over trees of the weighted mean of the labels of all training rows in the same leaf."""
    total, n_trees = np.zeros((len(rows), Y.shape[1])), 0
    for part in forest.forests:
        of_training, of_rows = part.apply(X), part.apply(rows)
        for t in range(of_training.shape[1]):
            for i in range(len(rows)):
                same = of_training[:, t] == of_rows[i, t]
                total[i] += np.average(Y[same], axis=0, weights=WEIGHTS[same])
            n_trees += 1
    return total / n_trees


@pytest.mark.parametrize("m", [1, 3, 40])
def test_votes_are_means_of_labels_in_leaves(m):
    Y = labels(m)
    forest = LabelForest.fit(X, Y, WEIGHTS, n_trees=50, seed=1, n_jobs=None)
    assert sum(map(len, forest.trees)) == 50
    assert len(forest.forests) == (2 if m > _forest.MAX_TARGETS else 1)
    rows = RANDOM.normal(size=(15, 6))
    np.testing.assert_allclose(forest.votes(rows), votes_the_slow_way(forest, Y, rows), atol=1e-6)


def test_few_labels_are_those_of_the_trees_themselves():
    """Without combinations, the value that scikit-learn's regressor keeps in a leaf is the mean of the labels."""
    Y = labels(3)
    forest = LabelForest.fit(X, Y, WEIGHTS, n_trees=10, seed=1, n_jobs=None)
    np.testing.assert_allclose(forest.votes(X), forest.forests[0].predict(X), atol=1e-6)


def test_blocks_of_rows_change_nothing(monkeypatch):
    forest = LabelForest.fit(X, labels(4), WEIGHTS, n_trees=5, seed=1, n_jobs=None)
    whole = forest.votes(X)
    monkeypatch.setattr(_forest, "ROWS_PER_BLOCK", 7)
    np.testing.assert_array_equal(forest.votes(X), whole)


def test_sparse_features_and_jobs():
    """Sparse trees may draw other splits, but are as good."""
    Y = labels(5)
    dense = LabelForest.fit(X, Y, np.ones(120), n_trees=40, seed=1, n_jobs=None)
    loose = LabelForest.fit(sparse.csr_array(X), Y, np.ones(120), n_trees=40, seed=1, n_jobs=2)
    assert (np.abs(dense.votes(X) - Y) < 0.5).mean() > 0.95
    assert (np.abs(loose.votes(sparse.csr_array(X)) - Y) < 0.5).mean() > 0.95
    again = LabelForest.fit(X, Y, np.ones(120), n_trees=40, seed=1, n_jobs=2)
    np.testing.assert_array_equal(dense.votes(X), again.votes(X))


def test_leaves_grow_with_the_data(monkeypatch):
    monkeypatch.setattr(_forest, "MAX_VALUES_PER_TREE", 60)
    forest = LabelForest.fit(X, labels(5), np.ones(120), n_trees=3, seed=1, n_jobs=None)
    sizes = np.concatenate([np.diff(tree.first) for tree in forest.trees[0]])
    assert sizes[sizes > 0].min() >= 10
