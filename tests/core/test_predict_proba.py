"""`predict_proba` in every shape that classifiers have: always one (n, m) array, or a refusal."""

import numpy as np
import pytest
from scipy import sparse

import abstain
from abstain import label_probabilities

RANDOM = np.random.default_rng(0)


class Fitted:
    """A classifier that answers with this."""

    def __init__(self, response):
        self.response = response

    def predict_proba(self, X):
        return self.response


def both_classes(p):
    return np.stack([1.0 - p, p], axis=2)


SHAPES = {
    "(n, m)": lambda p: p,
    "list of (n, 2)": lambda p: list(both_classes(p).transpose(1, 0, 2)),
    "(n, m, 2)": both_classes,
    "(n, 2, m)": lambda p: both_classes(p).transpose(0, 2, 1),  # skorch
    "(m, n, 2)": lambda p: both_classes(p).transpose(1, 0, 2),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("n", "m"), [(7, 3), (7, 2), (2, 3), (1, 3), (7, 1), (2, 1), (3, 2)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_one_shape(shape, n, m, dtype):
    p = RANDOM.random((n, m)).astype(dtype)
    X = np.zeros((n, 4))
    response = SHAPES[shape](p)
    if shape == "(m, n, 2)" and n == m:
        pytest.skip("told apart from (n, m, 2) by nothing")
    found = label_probabilities(Fitted(response), X)
    assert found.shape == (n, m)
    np.testing.assert_allclose(found, p, rtol=0, atol=1e-3 if dtype == np.float16 else 0)


@pytest.mark.parametrize("shape", ["(n, m, 2)", "(n, 2, m)"])
def test_two_instances_of_two_labels_cannot_be_told_from_a_stacked_list(shape):
    """(2, 2, 2): which axis adds up to one is known, but (n, m, 2) and (m, n, 2) look alike."""
    p = np.array([[0.9, 0.2], [0.6, 0.7]])
    X = np.zeros((2, 1))
    if shape == "(n, 2, m)":
        np.testing.assert_array_equal(label_probabilities(Fitted(SHAPES[shape](p)), X), p)
        return
    with pytest.raises(abstain.InvalidProbabilities, match=r"shape \(2, 2, 2\) for 2 instances, .*two ways"):
        label_probabilities(Fitted(SHAPES[shape](p)), X)


@pytest.mark.parametrize("error", [0.0, 5e-4])
def test_where_both_axes_add_up_to_one_both_ways_agree(error):
    """[[a, 1 − a], [1 − a, a]]: within rounding there is no other such table."""
    a = RANDOM.random(5)
    twice = np.array([[a, 1 - a], [1 - a - error, a]]).transpose(2, 0, 1)
    found = label_probabilities(Fitted(twice), np.zeros((5, 1)))
    np.testing.assert_allclose(found, np.column_stack([1 - a, a]), atol=1e-3)


@pytest.mark.parametrize(
    "response", [np.full((5, 3, 2), 0.9), np.full((5, 2, 3), 0.9), np.zeros((5, 3, 4)), np.full((4, 3, 2), 0.5)]
)
def test_axes_that_are_no_classes_are_refused(response):
    with pytest.raises(abstain.InvalidProbabilities, match=r"gives an array of shape \(.*\) for 5 instances; expected"):
        label_probabilities(Fitted(response), [[0.0]] * 5)


def test_sparse_and_odd():
    matrix = sparse.csr_array([[0.0, 0.5]])
    assert label_probabilities(Fitted(matrix), [[0]]).nnz == 1
    with pytest.raises(abstain.InvalidProbabilities, match=r"shape \(3,\)"):
        label_probabilities(Fitted(np.zeros(3)), [[0]])
