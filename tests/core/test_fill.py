"""What humans answer comes back to the labels it is about, whatever its form and its order."""

import io
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from tests.support.cases import random_probabilities

import abstain
from abstain import PartialPrediction, PartialRanking

N, M = 30, 6
P = random_probabilities(N, M)
TRUTH = np.random.default_rng(0).integers(0, 2, P.shape).astype(np.int8)
NAMES = ["sky", "sea", "sand", "sun", "0", "a, b"]
IDS = [f"img-{i:03}" for i in range(N)]
FRAME = pd.DataFrame(P, index=IDS, columns=NAMES)


def reviewed(prediction, queue):
    """What a perfect reviewer answers, in the order of the queue."""
    return TRUTH[queue.row, queue.label].tolist()


def complete(prediction):
    return np.where(prediction.abstained, TRUTH, prediction.labels)


def shuffled(records, seed=1):
    return [records[k] for k in np.random.default_rng(seed).permutation(len(records))]


def records_of(prediction, queue):
    frame = queue.to_frame()
    names = zip(list(frame["id"]), list(frame["label"]), reviewed(prediction, queue), strict=True)
    return [{"id": row, "label": label, "answer": answer} for row, label, answer in names]


FORMS = {
    "list of dicts": lambda records: records,
    "dict of columns": lambda records: {key: [record[key] for record in records] for key in ("id", "label", "answer")},
    "pandas": pd.DataFrame,
    "pandas with gaps": lambda records: pd.DataFrame(records).astype({"answer": "Int8"}),
    "polars": lambda records: pl.DataFrame(records, infer_schema_length=None),
    "polars lazy": lambda records: pl.LazyFrame(records, infer_schema_length=None),
    "pyarrow": lambda records: pa.Table.from_pylist(records),
    "csv": lambda records: pd.read_csv(io.StringIO(pd.DataFrame(records).to_csv(index=False)), dtype={"label": str}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("probabilities", [P, FRAME], ids=["numbers", "names"])
def test_records_in_any_order(probabilities, form):
    prediction = abstain.decide(probabilities, penalty=0.2)
    queue = abstain.review_queue(probabilities, prediction)
    records = shuffled(records_of(prediction, queue))
    assert len(records) > 20
    filled = prediction.fill(FORMS[form](records))
    np.testing.assert_array_equal(filled.labels, complete(prediction), strict=True)
    assert filled.label_names == prediction.label_names
    assert filled.axes.index is prediction.axes.index
    assert np.isnan(filled.expected_loss).all()
    assert (prediction.labels == -1).any(), "the prediction itself is left as it is"


@pytest.mark.parametrize("probabilities", [P, FRAME, sparse.csr_array(P * (P > 0.2))], ids=["array", "frame", "sparse"])
@pytest.mark.parametrize("loss", ["hamming", "f1", "rank"])
def test_the_order_of_the_queue(probabilities, loss):
    """Answers in the order in which reviews are most valuable reach the labels they are about."""
    prediction = abstain.decide(probabilities, loss, 0.05)
    queue = abstain.review_queue(probabilities, prediction, loss=loss)
    assert (np.diff(queue.row) < 0).any(), "it is not the order of the table"
    filled = prediction.fill(queue.with_answers(reviewed(prediction, queue)))
    assert filled.n_abstained.sum() == 0
    expected = prediction.fill(TRUTH)
    np.testing.assert_array_equal(filled.to_dense(), expected.to_dense())
    if loss != "rank":
        labels = prediction.to_dense()
        np.testing.assert_array_equal(filled.to_dense(), np.where(labels == -1, TRUTH, labels))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_the_frame_of_the_queue_comes_back_with_answers(library):
    table = {
        "pandas": FRAME,
        "polars": pl.from_pandas(FRAME),
        "pyarrow": pa.Table.from_pandas(FRAME, preserve_index=False),
    }
    probabilities = table[library]
    prediction = abstain.decide(probabilities, penalty=0.2)
    queue = abstain.review_queue(probabilities, prediction)
    frame = queue.with_answers(reviewed(prediction, queue)).to_frame()
    assert type(frame) is type(probabilities)
    filled = prediction.fill(frame)
    np.testing.assert_array_equal(filled.labels, complete(prediction))
    assert type(filled.to_frame()) is type(probabilities)
    assert filled.label_names == tuple(NAMES)


def test_a_table_of_the_shape_of_the_prediction():
    prediction = abstain.decide(P, penalty=0.2)
    expected = complete(prediction)
    only_answers = np.where(prediction.abstained, TRUTH, np.nan)
    for table in (
        TRUTH,
        TRUTH.tolist(),
        pd.DataFrame(TRUTH),
        sparse.csr_array(TRUTH),
        only_answers,
        TRUTH.astype(bool),
    ):
        np.testing.assert_array_equal(prediction.fill(table).labels, expected, strict=True)
    assert prediction.fill(PartialPrediction(TRUTH)).labels.tolist() == expected.tolist()


def test_what_is_not_answered_stays_abstained():
    prediction = abstain.decide(FRAME, penalty=0.2)
    queue = abstain.review_queue(FRAME, prediction)
    answers = reviewed(prediction, queue)
    half = len(answers) // 2
    expected = prediction.labels.copy()
    expected[queue.row[:half], queue.label[:half]] = answers[:half]
    records = records_of(prediction, queue)
    missing = [{**record, "answer": None} for record in records[half:]]
    table = np.where(expected == -1, np.nan, expected)
    for given in (
        records[:half],
        shuffled(records[:half] + missing),
        pd.DataFrame(records[:half] + missing),
        queue.with_answers(answers[:half] + [None] * (len(answers) - half)),
        table,
        pd.DataFrame(table, index=IDS, columns=NAMES),
        PartialPrediction(expected),
    ):
        filled = prediction.fill(given)
        np.testing.assert_array_equal(filled.labels, expected, strict=True)
    later = filled.fill(records[half:])
    np.testing.assert_array_equal(later.labels, complete(prediction))
    assert later.label_names == tuple(NAMES)
    assert list(later.axes.index) == IDS


def test_an_own_table_may_call_its_labels_id_label_and_answer():
    p = pd.DataFrame([[0.5, 0.9, 0.5]], columns=["id", "label", "answer"])
    prediction = abstain.decide(p, penalty=0.2)
    answers = pd.DataFrame([[1, 0, 0]], columns=["id", "label", "answer"])
    assert prediction.fill(answers).labels.tolist() == [[1, 1, 0]]


def test_a_flat_list_is_for_one_instance_or_one_label():
    prediction = abstain.decide([0.9, 0.5, 0.1, 0.6], penalty=0.2)
    assert prediction.fill([0, 1]).labels.tolist() == [[1, 0, 0, 1]]
    assert prediction.fill([0, 1, 0, 0]).labels.tolist() == [[1, 1, 0, 0]]  # a row of the table
    one_open = PartialPrediction([[1, 0], [0, -1]])
    assert one_open.fill([1]).labels.tolist() == [[1, 0], [0, 1]]
    done = PartialPrediction([[1, 0], [0, 1]])
    assert done.fill([]).labels.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("answers", [[1, 0], np.array([1, 0]), pd.Series([1, 0]), (1, 0)])
def test_a_flat_list_for_several_instances_is_refused(answers):
    prediction = PartialPrediction([[1, -1], [-1, 0]])
    with pytest.raises(abstain.InvalidLabels, match=r"flat list of 2 does not say .* queue\.with_answers"):
        prediction.fill(answers)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([[1, 1, 1], [0, 0]], "cannot be read as an array"),
        (np.zeros((2, 6)), r"shape \(2, 6\); expected a table of shape \(30, 6\)"),
        (np.full((30, 6), 2), "is 2; an answer is 1 or 0, or missing"),
        ([{"id": "img-000", "label": "sky"}], "record 0 has no 'answer'"),
        ({"label": ["sky"], "answer": [1]}, "the dict has no 'id'"),
        ({"id": [], "label": ["sky"], "answer": [1]}, "different lengths"),
        (pd.DataFrame({"label": ["sky"], "answer": [1]}), "the frame has no 'id'"),
        ([{"id": "img-99", "label": "sky", "answer": 1}], "record 0 has the id 'img-99', which is no row"),
        ([{"id": "img-000", "label": "Sky", "answer": 1}], "record 0 has the label 'Sky', which is no label"),
        ([{"id": "img-000", "label": "sky", "answer": "yes"}], "label 'sky'.* is 'yes'; an answer is 1 or 0"),
        (FRAME.iloc[::-1], "the same rows in another order"),
        (FRAME[NAMES[::-1]], "the same labels in another order"),
    ],
)
def test_what_is_wrong_is_named(answers, message):
    with pytest.raises(abstain.InvalidLabels, match=message):
        abstain.decide(FRAME, penalty=0.2).fill(answers)


def test_answers_that_contradict_each_other_or_the_prediction():
    prediction = PartialPrediction([[1, -1], [-1, 0]], label_names=["sky", "sea"])
    twice = [{"id": 0, "label": "sea", "answer": 1}, {"id": "0", "label": "sea", "answer": 1}]
    assert prediction.fill(twice).labels.tolist() == [[1, 1], [-1, 0]]
    twice[1]["answer"] = 0
    with pytest.raises(abstain.InvalidLabels, match=r"record 1 .*says 0, an earlier record 1; keep one"):
        prediction.fill(twice)
    with pytest.raises(abstain.InvalidLabels, match=r"row 0, column 0 \(label 'sky'\) is not abstained"):
        prediction.fill([{"id": 0, "label": "sky", "answer": 0}])
    with pytest.raises(abstain.InvalidLabels, match="record 0 has the id 2, which is no row"):
        prediction.fill([{"id": 2, "label": "sky", "answer": 0}])


def test_rows_of_the_same_name_are_not_told_apart():
    prediction = PartialPrediction(pd.DataFrame([[None, 1], [None, 0]], index=["x", "x"], dtype=float))
    with pytest.raises(abstain.InvalidLabels, match="rows of the same name"):
        prediction.fill([{"id": "x", "label": 0, "answer": 1}])


def test_a_queue_of_another_table_is_refused():
    prediction = abstain.decide(FRAME, penalty=0.2)
    queue = abstain.review_queue(FRAME, prediction)
    with pytest.raises(abstain.InvalidLabels, match="the queue has none yet"):
        prediction.fill(queue)
    with pytest.raises(abstain.InvalidLabels, match=rf"has 1 for {len(queue)} labels in the queue"):
        queue.with_answers([1])
    with pytest.raises(abstain.InvalidLabels, match="answer 1 is 'no'; an answer is 1 or 0"):
        queue.with_answers([1, "no"] + [0] * (len(queue) - 2))
    answered = queue.with_answers([1] * len(queue))
    other = abstain.decide(FRAME.rename(index={"img-003": "img-3"}), penalty=0.2)
    with pytest.raises(abstain.InvalidLabels, match="the queue has other rows"):
        other.fill(answered)
    with pytest.raises(abstain.InvalidLabels, match="is not in the prediction of shape"):
        PartialPrediction([[-1]]).fill(answered)
    sure = abstain.decide(FRAME, penalty="none")
    with pytest.raises(abstain.InvalidLabels, match="is not abstained in this prediction"):
        sure.fill(answered)


def test_a_filled_prediction_goes_where_others_go():
    prediction = abstain.decide(FRAME, penalty=0.2)
    filled = prediction.fill(TRUTH)
    wrong = abstain.metrics.answered_error_rate(TRUTH, filled)
    machine = abstain.metrics.answered_error_rate(TRUTH, prediction) * (1 - abstain.metrics.abstention_rate(prediction))
    assert wrong == pytest.approx(machine)
    frame = filled.to_frame()
    assert list(frame.index) == IDS
    assert list(frame.columns) == NAMES
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(filled)).labels, filled.labels)


def test_sparse_predictions():
    matrix = sparse.csr_array(np.where(P > 0.3, P, 0.0))
    here, there = abstain.decide(matrix, penalty=0.1), abstain.decide(matrix.toarray(), penalty=0.1)
    queue = abstain.review_queue(matrix, here)
    records = shuffled(records_of(here, queue))
    expected = there.fill(TRUTH).labels
    for given in (TRUTH, sparse.csr_array(TRUTH), records, queue.with_answers(reviewed(here, queue))):
        filled = here.fill(given)
        np.testing.assert_array_equal(filled.labels.toarray(), expected)
        assert set(filled.labels.data) == {1}
    some = here.fill(records[:3])
    assert some.n_abstained.sum() == here.n_abstained.sum() - 3
    np.testing.assert_array_equal(some.labels.toarray(), there.fill(records[:3]).labels)
    empty = PartialPrediction(sparse.csr_array((2, 3), dtype=np.int8))
    with pytest.raises(abstain.InvalidLabels, match="is not abstained"):
        empty.fill([{"id": 0, "label": 0, "answer": 1}])


def test_a_ranking_that_is_answered_in_part():
    ranking = PartialRanking([[1, -1, 0, -1, -1]])
    some = ranking.fill([{"id": 0, "label": 4, "answer": 1}, {"id": 0, "label": 1, "answer": 0}])
    assert some.positions.tolist() == [[2, 3, 1, -1, 0]]
    assert some.fill([1]).positions.tolist() == [[3, 4, 2, 0, 1]]
