"""What reviews save, against answering each open label both ways."""

import re

import numpy as np
import pytest
from scipy import sparse
from tests.support.cases import LOSS_CASES, make_loss, random_probabilities

import abstain
from abstain.metrics import expected_generalized_loss
from abstain.review._queue import review_queue


def slow_queue(p, prediction, loss):
    """Every label that is open, answered in every way: 1 or 0, or at every place of the ranking."""
    found = []
    codes = prediction.to_dense()
    for i, j in np.argwhere(codes == -1).tolist():
        answers = []
        for v in range(int(codes[i].max()) + 2) if loss.gives_rankings else (0, 1):
            answer = np.where(codes[i] >= v, codes[i] + 1, codes[i]) if loss.gives_rankings else codes[i].copy()
            answer[j] = v
            answers.append(answer)
        kind = abstain.PartialRanking if loss.gives_rankings else abstain.PartialPrediction
        costs = [expected_generalized_loss(p[i], kind(answer), loss=loss, penalty=0.0) for answer in answers]
        found.append(
            (i, j, p[i, j], min(costs) - expected_generalized_loss(p[i], kind(codes[i]), loss=loss, penalty=0.0))
        )
    return found


def penalty_for(loss):
    return 0.08 if loss.is_decomposable else 0.002


@pytest.mark.parametrize("case", LOSS_CASES)
@pytest.mark.parametrize("m", [1, 2, 7])
def test_savings_equal_those_of_answering_each_label(case, m):
    loss, p = make_loss(case, m), random_probabilities(24, m, seed=3)
    prediction = abstain.decide(p, loss, penalty_for(loss))
    queue = review_queue(p, prediction, loss=loss)
    slow = slow_queue(p, prediction, loss)
    assert len(queue) == len(slow) == prediction.n_abstained.sum()
    saved = {(i, j): (x, saves) for i, j, x, saves in slow}
    for i, j, x, saves in zip(queue.row, queue.label, queue.probability, queue.saves, strict=True):
        assert (x, saves) == (saved[i, j][0], pytest.approx(saved[i, j][1], abs=1e-12))
    keys = list(zip(-queue.saves, queue.row, queue.label, strict=True))
    assert keys == sorted(keys)
    assert m < 7 or len(queue) > 10


@pytest.mark.parametrize("case", LOSS_CASES)
def test_any_prediction_has_a_queue_not_only_the_best(case):
    m, random = 6, np.random.default_rng(5)
    loss, p = make_loss(case, m), random_probabilities(16, m, seed=4)
    if loss.gives_rankings:
        codes = np.full(p.shape, -1)
        for row in codes:
            some = random.permutation(m)[: random.integers(0, m)]
            row[some] = np.arange(len(some))
        prediction = abstain.PartialRanking(codes)
    else:
        prediction = abstain.PartialPrediction(random.integers(-1, 2, p.shape))
    queue = review_queue(p, prediction, loss=loss)
    slow = sorted(slow_queue(p, prediction, loss))
    order = np.lexsort((queue.label, queue.row))
    np.testing.assert_array_equal(np.column_stack([queue.row, queue.label])[order], [entry[:2] for entry in slow])
    np.testing.assert_allclose(queue.saves[order], [entry[3] for entry in slow], rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", LOSS_CASES)
def test_sparse_as_dense(case):
    m = 30
    loss, random = make_loss(case, m), np.random.default_rng(7)
    stored = np.where(random.random((40, m)) < 0.2, random_probabilities(40, m, seed=5), 0.0)
    stored[3] = 0.0
    prediction = abstain.decide(sparse.csr_array(stored), loss, penalty_for(loss))
    queue = review_queue(sparse.csr_array(stored), prediction, loss=loss)
    kind = type(prediction)
    dense = review_queue(stored, kind(prediction.to_dense()), loss=loss)
    assert len(queue) == len(dense) > 20
    order, of_dense = np.lexsort((queue.label, queue.row)), np.lexsort((dense.label, dense.row))
    np.testing.assert_array_equal(queue.row[order], dense.row[of_dense])
    np.testing.assert_array_equal(queue.label[order], dense.label[of_dense])
    np.testing.assert_array_equal(queue.probability[order], dense.probability[of_dense])
    np.testing.assert_allclose(queue.saves[order], dense.saves[of_dense], rtol=0, atol=1e-12)


def test_ties_come_by_row_then_label():
    queue = review_queue([[0.5, 0.4], [0.6, 0.5]], [[-1, -1], [-1, -1]])
    np.testing.assert_array_equal(queue.row, [0, 1, 0, 1])
    np.testing.assert_array_equal(queue.label, [0, 1, 1, 0])


def test_the_frame_has_names():
    table = abstain.Table([[0.9, 0.4], [0.45, 0.7]], ["sky", "sea"], ["a.png", "b.png"])
    frame = review_queue(table, abstain.decide(table, penalty=0.35)).to_frame()
    assert frame.to_dict("list") == {
        "id": ["b.png", "a.png"], "label": ["sky", "sea"], "probability": [0.45, 0.4], "saves": [0.45, 0.4],
    }  # fmt: skip
    empty = review_queue(table, abstain.decide(table, penalty=0.5)).to_frame()
    assert list(empty.columns) == ["id", "label", "probability", "saves"]
    assert len(empty) == 0


@pytest.mark.parametrize(
    ("prediction", "loss", "error", "message"),
    [
        ([[1, -1, 0]], "hamming", abstain.InvalidLabels, "probabilities has shape (1, 2); the prediction has (1, 3)"),
        ([[1, 2]], "hamming", abstain.InvalidLabels, "row 0, column 1 is 2"),
        (abstain.PartialRanking([[0, -1]]), "f1", abstain.InvalidLoss, "needs a PartialPrediction; the prediction is"),
        (abstain.PartialPrediction([[0, -1]]), "rank", abstain.InvalidLoss, "needs a PartialRanking"),
        ([[1, -1]], abstain.Hamming([1.0] * 3), abstain.InvalidLoss, "3 costs for 2 labels"),
    ],
)
def test_what_does_not_fit_is_refused(prediction, loss, error, message):
    with pytest.raises(error, match=re.escape(message)):
        review_queue([[0.3, 0.6]], prediction, loss=loss)
