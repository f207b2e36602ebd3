"""Every corner of every path, compared with deciding at its cost and scoring the answers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from tests.support.cases import LOSS_CASES, make_loss, random_probabilities, random_truth

import abstain
from abstain._core.realized_paths import outcomes
from abstain.metrics import answered_error_rate, error_capture_rate, expected_generalized_loss, generalized_loss


def costs_to_try(path):
    """Below, between and beyond the break points, and exactly at them."""
    breaks = path.break_points
    if len(breaks) > 24:
        breaks = breaks[:: len(breaks) // 24 + 1]
    between = (breaks[1:] + breaks[:-1]) / 2
    return [0.0, *breaks, *between, *(breaks * (1 + 1e-6)), 2.0 * breaks.max(initial=1.0), np.inf]


@pytest.mark.parametrize("case", LOSS_CASES, ids=str)
@pytest.mark.parametrize("m", [1, 2, 6])
def test_every_cost_is_as_decided(case, m):
    p, loss = random_probabilities(12, m), make_loss(case, m)
    y = random_truth(p)
    found = outcomes(p, y, loss)
    full = abstain.decide(p, loss, penalty="none")
    assert len(found) == 12
    assert found.loss is loss
    for cost in costs_to_try(found.path):
        at, decided = found.corner_at(cost), abstain.decide(p, loss, cost)
        np.testing.assert_array_equal(m - found.answered[at], decided.n_abstained)
        np.testing.assert_allclose(
            found.expected[at],
            expected_generalized_loss(p, decided, loss=loss, penalty=0.0, per_instance=True),
            atol=1e-11,
        )
        np.testing.assert_allclose(
            found.realized[at], generalized_loss(y, decided, loss=loss, penalty=0.0, per_instance=True), atol=1e-12
        )
        if loss.gives_rankings:
            assert (
                found.true_positives
                is found.false_positives
                is found.false_negatives
                is found.caught
                is found.wrong
                is None
            )
            continue
        codes, answered = decided.labels, decided.labels >= 0
        np.testing.assert_array_equal(found.true_positives[at], ((codes == 1) & (y == 1)).sum(axis=1))
        np.testing.assert_array_equal(found.false_positives[at], ((codes == 1) & (y == 0)).sum(axis=1))
        np.testing.assert_array_equal(found.false_negatives[at], ((codes == 0) & (y == 1)).sum(axis=1))
        np.testing.assert_array_equal(found.wrong[at], (answered & (codes != y)).sum(axis=1))
        np.testing.assert_array_equal(found.caught[at], (~answered & (full.labels != y)).sum(axis=1))
        rates = [answered_error_rate(y, decided), error_capture_rate(y, decided, full)]
        n_errors = (full.labels != y).sum()
        ours = [
            found.wrong[at].sum() / found.answered[at].sum() if answered.any() else np.nan,
            found.caught[at].sum() / n_errors if n_errors else np.nan,
        ]
        np.testing.assert_allclose(ours, rates)


@pytest.mark.parametrize("case", LOSS_CASES, ids=str)
def test_paths_end_with_everything_answered(case):
    p, loss = random_probabilities(40, 5), make_loss(case, 5)
    found = outcomes(p, random_truth(p), loss)
    last = found.path.indptr[1:] - 1
    assert (found.answered[last] == 5).all()
    if not loss.gives_rankings:
        assert (found.caught[last] == 0).all()
    first = found.path.indptr[:-1]
    assert (found.path.flat_costs[first] == 0).all()
    inside = np.setdiff1d(np.arange(len(found.answered)), first)
    assert (found.answered[inside] > found.answered[inside - 1]).all()


def test_without_the_truth_only_what_is_expected_is_known():
    p = random_probabilities(8, 3)
    found, with_truth = outcomes(p), outcomes(p, random_truth(p))
    np.testing.assert_array_equal(found.expected, with_truth.expected)
    assert (
        found.realized
        is found.true_positives
        is found.false_positives
        is found.false_negatives
        is found.caught
        is found.wrong
        is None
    )


@pytest.mark.parametrize("case", LOSS_CASES, ids=str)
def test_sparse_is_as_dense(case):
    p = np.where(np.random.default_rng(1).random((30, 6)) < 0.4, random_probabilities(30, 6), 0.0)
    y, loss = random_truth(p), make_loss(case, 6)
    dense = outcomes(p, y, loss)
    for thin in (
        outcomes(sparse.csr_array(p), sparse.csr_array(y), loss),
        outcomes(p, sparse.csc_array(y), loss),
        outcomes(abstain.Table(sparse.csr_array(p)), y, loss),
    ):
        for name in ("expected", "realized", "true_positives", "false_positives", "false_negatives", "caught"):
            np.testing.assert_array_equal(getattr(thin, name), getattr(dense, name))
        np.testing.assert_array_equal(thin.path.flat_costs, dense.path.flat_costs)


def test_many_blocks_and_threads(threads):
    p = random_probabilities(3000, 40)
    y = random_truth(p)
    for loss in ("hamming", "f1", "rank"):
        whole = outcomes(p[:600] if loss == "f1" else p, y[:600] if loss == "f1" else y, loss)
        part = outcomes(p[500:520], y[500:520], loss)
        where = slice(whole.path.indptr[500], whole.path.indptr[520])
        np.testing.assert_array_equal(part.realized, whole.realized[where])
        np.testing.assert_array_equal(part.expected, whole.expected[where])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_are_kept_and_held_to(frame):
    p = frame({"sun": [0.9, 0.2], "sea": [0.4, 0.5]})
    y = frame({"sun": [1, 0], "sea": [0, 1]})
    found = outcomes(p, y)
    assert found.axes.label_names == ("sun", "sea")
    with pytest.raises(abstain.InvalidLabels, match="another order"):
        outcomes(p, frame({"sea": [0, 1], "sun": [1, 0]}))
    priced = abstain.Hamming(false_negative=pd.Series({"sea": 2.0, "sun": 1.0}))
    with pytest.raises(abstain.InvalidLabels, match="another order"):
        outcomes(p, y, priced)


def test_rows_are_held_to():
    p = pd.DataFrame([[0.9], [0.2]], index=["a", "b"])
    with pytest.raises(abstain.InvalidLabels, match="the same rows in another order: row 0 is 'b'"):
        outcomes(p, pd.DataFrame([[1], [0]], index=["b", "a"]))


def test_no_instance_and_one_instance():
    assert len(outcomes(np.empty((0, 3)), np.empty((0, 3), int))) == 0
    one = outcomes([0.9, 0.4], [1, 1])
    np.testing.assert_allclose(one.path.flat_costs, [0.0, 0.1, 0.4])
    np.testing.assert_array_equal(one.false_negatives, [0, 0, 1])


def test_the_input_is_left_alone():
    p = sparse.csr_array(np.array([[0.0, 0.4], [0.7, 0.0]]))
    before = p.copy()
    outcomes(p, [[0, 1], [1, 0]])
    assert (p != before).nnz == 0
    assert p.nnz == before.nnz


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[0.5, 0.5]], [[1]]), abstain.InvalidLabels, r"y_true has shape \(1, 1\); the probabilities have \(1, 2\)"),
        (([[0.5]], [[2]]), abstain.InvalidLabels, "the truth is 0 or 1"),
        (([[1.5]], [[1]]), abstain.InvalidProbabilities, "a probability is a number from 0 to 1"),
        (([[np.nan]],), abstain.InvalidProbabilities, "a probability is a number from 0 to 1"),
        (([[0.5]], None, "zero-one"), abstain.InvalidLoss, "loss is 'zero-one'"),
        (([[0.5]], None, abstain.Hamming([1.0, 2.0])), abstain.InvalidLoss, "2 costs for 1 labels"),
    ],
)
def test_what_is_wrong(arguments, error, message):
    with pytest.raises(error, match=message):
        outcomes(*arguments)
