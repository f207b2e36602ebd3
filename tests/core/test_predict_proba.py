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


# Outputs that a model has returned


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("n", "m"), [(7, 3), (7, 2), (2, 3), (1, 3), (7, 1), (3, 2)])
def test_outputs_are_read_as_those_of_a_classifier(shape, n, m):
    p = RANDOM.random((n, m))
    output = SHAPES[shape](p)
    np.testing.assert_array_equal(label_probabilities(output, np.zeros((n, 4))), p)
    if shape in ("(n, m)", "list of (n, 2)") or (shape == "(n, 2, m)" and m != 2):
        np.testing.assert_array_equal(label_probabilities(output), p)
    elif shape != "(n, 2, m)":
        with pytest.raises(abstain.InvalidProbabilities, match="two ways; pass X, too, for the number of instances"):
            label_probabilities(output)


def test_skorch_without_instances_is_told_by_its_sums():
    p = RANDOM.random((7, 2))
    np.testing.assert_array_equal(label_probabilities(SHAPES["(n, 2, m)"](p)), p)


def test_dicts_of_classes_as_the_onnx_runtime_has_them():
    p = RANDOM.random((5, 3))
    by_label = [[{0: 1.0 - value, 1: value} for value in column] for column in p.T]
    np.testing.assert_array_equal(label_probabilities(by_label), p)
    named = label_probabilities([dict(enumerate(row)) for row in p.tolist()])
    np.testing.assert_array_equal(named.values, p)
    assert named.label_names == (0, 1, 2)
    with pytest.raises(abstain.InvalidProbabilities, match=r"label 0 has the classes \['no', 'yes'\]"):
        label_probabilities([[{"no": 0.1, "yes": 0.9}]])


def test_all_outputs_of_a_session_are_not_a_list_of_labels():
    """The ONNX runtime returns the predicted labels before the probabilities."""
    p = np.array([[0.9, 0.8], [0.6, 0.3]])
    with pytest.raises(abstain.InvalidProbabilities, match="label 0 has rows that do not add up to 1"):
        label_probabilities([(p > 0.5).astype(int), p])


def test_outputs_are_checked():
    p = RANDOM.random((7, 3))
    with pytest.raises(abstain.InvalidProbabilities, match="has 7 rows; there are 6 instances"):
        label_probabilities(p, np.zeros((6, 1)))
    with pytest.raises(abstain.NoProbabilities, match="divide them by 100"):
        label_probabilities(100 * p)
    with pytest.raises(abstain.NoProbabilities, match=r'apply the sigmoid .* kind="logit"'):
        label_probabilities(np.log(p / (1 - p)))
    with pytest.raises(abstain.InvalidProbabilities, match=r"row 2, column 1 is nan"):
        label_probabilities(np.where(np.arange(21).reshape(7, 3) == 7, np.nan, p), kind="logit")


def test_logits():
    x = RANDOM.normal(0, 3, (7, 3))
    expected = 1 / (1 + np.exp(-x))
    np.testing.assert_allclose(label_probabilities(x, kind="logit"), expected, rtol=1e-14)
    np.testing.assert_allclose(label_probabilities(Fitted(x), np.zeros((7, 1)), kind="logit"), expected, rtol=1e-14)
    extreme = label_probabilities([[-1000.0, -700.0, 0.0, 40.0, 1000.0, np.inf]], kind="logit")
    np.testing.assert_allclose(extreme, [[0.0, np.exp(-700.0), 0.5, 1.0, 1.0, 1.0]], rtol=1e-14)
    single = label_probabilities(np.array([[-50.0]], np.float32), kind="logit")
    np.testing.assert_allclose(single, np.exp(-50.0), rtol=1e-14)
    with pytest.raises(abstain.InvalidProbabilities, match="what is not stored would have probability ½"):
        label_probabilities(sparse.csr_array(x), kind="logit")
    with pytest.raises(abstain.InvalidProbabilities, match="of two logits for each label, pass the difference"):
        label_probabilities(np.stack([x, -x], axis=2), kind="logit")
    with pytest.raises(abstain.InvalidParameter, match="kind is 'logits'; expected 'probability' or 'logit'"):
        label_probabilities(x, kind="logits")


def test_probabilities_are_no_logits():
    with pytest.warns(abstain.ProbabilityWarning, match="all numbers lie between 0 and 1") as caught:
        label_probabilities(RANDOM.random((10, 2)), kind="logit")
    assert caught[0].filename == __file__


def test_a_model_is_not_its_output():
    class Network:
        def predict(self, X):
            return X

    with pytest.raises(abstain.InvalidProbabilities, match="Network has no predict_proba; pass what it returns"):
        label_probabilities(Network(), [[0.1]])
    with pytest.raises(abstain.InvalidParameter, match=r"X is missing: Fitted\.predict_proba needs the instances"):
        label_probabilities(Fitted([[0.1]]))
    with pytest.raises(abstain.InvalidParameter, match="labels are for an output that names them"):
        label_probabilities(Fitted([[0.1]]), [[0]], labels=["sky"])
