"""Records of scores with the names of their labels, as text classifiers return them."""

import re

import numpy as np
import pandas as pd
import pytest

import abstain
from abstain.metrics import generalized_loss

NAMES = ["sky", "sea", "boat"]
P = np.array([[0.9, 0.55, 0.08], [0.3, 0.04, 0.88], [0.5, 0.97, 0.6]])


def dicts(p=P, names=NAMES):
    """As in spaCy's doc.cats: in the order of the model."""
    return [dict(zip(names, row, strict=True)) for row in p.tolist()]


def entries(p=P, names=NAMES):
    """As from a Hugging Face pipeline: each row is sorted by score."""
    rows = [[{"label": name, "score": score} for name, score in row.items()] for row in dicts(p, names)]
    return [sorted(row, key=lambda entry: -entry["score"]) for row in rows]


def zero_shot(p=P, names=NAMES):
    rows = [{entry["label"]: entry["score"] for entry in row} for row in entries(p, names)]
    return [{"sequence": "a text", "labels": list(row), "scores": list(row.values())} for row in rows]


def test_dicts_keep_the_order_of_the_model():
    found = abstain.decide(dicts(), penalty=0.2)
    assert found.label_names == tuple(NAMES)
    np.testing.assert_array_equal(found.labels, abstain.decide(P, penalty=0.2).labels)
    other_order = [*dicts()[:1], *({name: row[name] for name in reversed(NAMES)} for row in dicts()[1:])]
    np.testing.assert_array_equal(abstain.decide(other_order, penalty=0.2).labels, found.labels)


@pytest.mark.parametrize("records", [entries, zero_shot])
def test_what_is_sorted_by_score_is_sorted_by_name(records):
    found = abstain.decide(records(), penalty=0.2)
    assert found.label_names == ("boat", "sea", "sky")
    np.testing.assert_array_equal(found.labels, abstain.decide(P[:, [2, 1, 0]], penalty=0.2).labels)
    numbered = abstain.decide(records(np.full((2, 12), 0.3), [f"LABEL_{j}" for j in range(12)]))
    assert numbered.label_names == tuple(f"LABEL_{j}" for j in range(12))


@pytest.mark.parametrize(
    ("record", "labels"), [(dicts()[0], [[1, -1, 0]]), (entries()[0], [[0, -1, 1]]), (zero_shot()[0], [[0, -1, 1]])]
)
def test_one_record_is_one_row(record, labels):
    np.testing.assert_array_equal(abstain.decide(record, penalty=0.2).labels, labels)


def test_wherever_probabilities_are_taken():
    frame = pd.DataFrame(P, columns=NAMES)
    y = pd.DataFrame((P > 0.5).astype(int), columns=NAMES)
    prediction = abstain.decide(dicts(), penalty=0.2)
    np.testing.assert_array_equal(
        abstain.risk_profile(dicts(), loss="f1").values, abstain.risk_profile(frame, loss="f1").values
    )
    assert repr(abstain.review_queue(dicts(), prediction)) == repr(abstain.review_queue(frame, prediction))
    assert abstain.budget.solve(dicts(), count=2).price == abstain.budget.solve(frame, count=2).price
    assert abstain.calibration.calibration_error(y, dicts()) == abstain.calibration.calibration_error(y, frame)
    logits = np.log(P / (1 - P))
    calibration = abstain.calibration.fit(dicts(logits), y, method="sigmoid", kind="logit")
    assert calibration.label_names == tuple(NAMES)
    np.testing.assert_array_equal(calibration.transform(dicts(logits)).values, calibration.transform(logits))
    with pytest.raises(abstain.InvalidLabels, match="the same labels in another order"):
        generalized_loss(y, abstain.decide(entries(), penalty=0.2), loss="hamming", penalty=0.2)


@pytest.mark.parametrize(("lacking", "having"), [(1, 0), (0, 1)])
def test_a_label_that_is_not_in_a_row_is_unknown(lacking, having):
    from_spacy, from_pipeline = dicts()[:2], entries()[:2]
    from_spacy[lacking].pop("sea")
    absent = from_pipeline[lacking].pop()["label"]  # as with top_k=2
    for records, label in ((from_spacy, "sea"), (from_pipeline, absent)):
        said = f"row {lacking} has no score for label '{label}', which row {having} has; a score that is not there is"
        with pytest.raises(abstain.InvalidProbabilities, match=f"{said} unknown, and not 0: .*top_k=None"):
            abstain.decide(records)


@pytest.mark.parametrize(
    "entries_of_texts",
    [
        [{"label": "sea", "score": 0.9}, {"label": "sea", "score": 0.8}],
        [{"label": "sea", "score": 0.7}, {"label": "sky", "score": 0.8}],
    ],
)
def test_the_best_label_of_each_text_is_no_row(entries_of_texts):
    """What a pipeline returns for two texts without top_k=None looks like the scores of one."""
    with pytest.raises(abstain.InvalidProbabilities, match=r"the best label of each of 2 texts\? Pass top_k=None"):
        abstain.decide(entries_of_texts)
    if entries_of_texts[0]["label"] != entries_of_texts[1]["label"]:
        assert abstain.decide([entries_of_texts]).shape == (1, 2)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"sky": 0.9}, {"sky": "0.9"}], "row 1, label 'sky' is '0.9'; expected a number"),
        ([{"sky": 0.9}, {"sky": None}], "row 1, label 'sky' is None; expected a number"),
        ({"sky": [0.9, 0.1], "sea": [0.3, 0.2]}, "row 0, label 'sky' is [0.9, 0.1]; expected a number"),
        ([{"sky": 0.9}, [0.3]], "row 1 is [0.3]; expected a record of all labels, {label: score} or [{"),
        (entries()[0][0], "row 0 is {'label': 'sky', 'score': 0.9}; expected a record of all labels"),
        ([{"sky": 0.9, "sea": 0.1}, {"sky": 0.9, "sea": 1.5}], "row 1, column 1 (label 'sea') is 1.5; a probability"),
        ([[*entries()[0], {"label": "sea", "score": 0.1}]], "row 0 has two scores for label 'sea'"),
        ([{}], "there is no label"),
    ],
)
def test_what_is_wrong_is_named(records, message):
    with pytest.raises(abstain.InvalidProbabilities, match=re.escape(message)):
        abstain.decide(records)


def test_per_cent_and_logits_in_records():
    with pytest.raises(abstain.NoProbabilities, match="divide them by 100"):
        abstain.decide(dicts(100 * P))
    with pytest.raises(abstain.NoProbabilities, match="apply the sigmoid"):
        abstain.decide(entries(np.log(P / (1 - P))))


def test_truth_and_answers_are_not_read_from_records():
    """A record of a truth that does not name a label could mean 0, or that nobody has looked."""
    prediction = abstain.decide(dicts())
    truth = [{"sky": 1, "sea": 0, "boat": 0}] * 3
    for read in (
        lambda: generalized_loss(truth, prediction, loss="hamming", penalty=0.1),
        lambda: abstain.guarantee.control(P, truth, target=0.1),
        lambda: abstain.PartialPrediction(truth),
        lambda: abstain.Table(truth),
    ):
        with pytest.raises(abstain.InvalidLabels, match="only probabilities are read from records"):
            read()


def test_label_probabilities_of_records():
    table = abstain.label_probabilities(entries(), labels=["sky", "sea", "boat"])
    assert table.label_names == tuple(NAMES)
    np.testing.assert_array_equal(table.values, P)
    assert abstain.label_probabilities(dicts()).label_names == tuple(NAMES)
    np.testing.assert_array_equal(abstain.label_probabilities(entries(), labels=["boat"]).values, P[:, 2:])
    logits = abstain.label_probabilities(dicts(np.log(P / (1 - P))), kind="logit")
    np.testing.assert_allclose(logits.values, P, rtol=1e-12)
    with pytest.raises(abstain.InvalidLabels, match=r"labels: the output has no label 'sun', only \('boat', 'sea'"):
        abstain.label_probabilities(entries(), labels=["sky", "sun"])
    with pytest.raises(abstain.InvalidLabels, match="labels: the output names no labels"):
        abstain.label_probabilities(P, labels=["sky"])
