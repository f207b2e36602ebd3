"""Partial predictions and rankings as their users see them."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from tests.support.cases import random_probabilities

import abstain
from abstain import PartialPrediction, PartialRanking

P = random_probabilities(30, 6)


def test_codes():
    prediction = abstain.decide(P, penalty=0.2)
    assert prediction.labels.dtype == np.int8
    assert abstain.ABSTAIN == -1
    np.testing.assert_array_equal(prediction.abstained, prediction.labels == -1)
    np.testing.assert_array_equal(prediction.n_abstained, (prediction.labels == -1).sum(axis=1))
    assert len(prediction) == 30


def test_frame():
    frame = abstain.decide(P, penalty=0.2).to_frame(list("abcdef"))
    assert list(frame.columns) == list("abcdef")
    assert set(frame.dtypes.astype(str)) == {"Int8"}
    assert frame.isna().to_numpy().sum() == abstain.decide(P, penalty=0.2).n_abstained.sum()
    with pytest.raises(ValueError, match="2 names for 6 labels"):
        abstain.decide(P).to_frame(["a", "b"])
    ranking = abstain.decide(P, "rank", 0.1).to_frame()
    assert set(ranking.dtypes.astype(str)) == {"Int32"}


def test_ranking():
    ranking = abstain.decide(P, "rank", 0.05)
    assert ranking.positions.dtype == np.int32
    for i in range(len(ranking)):
        order = ranking.order(i)
        assert ranking.positions[i, order].tolist() == list(range(len(order)))
        assert (np.diff(P[i, order]) <= 0).all()
    relevant = np.random.default_rng(0).integers(0, 2, P.shape)
    complete = ranking.fill(relevant).positions
    assert (np.sort(complete, axis=1) == np.arange(6)).all()
    for i in range(len(ranking)):
        left_out = ranking.abstained[i]
        first, ranked, last = (
            complete[i, x] for x in (left_out & (relevant[i] == 1), ~left_out, left_out & (relevant[i] == 0))
        )
        everything = np.concatenate([np.sort(first), np.sort(ranked), np.sort(last)])
        assert everything.tolist() == list(range(6))
        assert np.argsort(ranked).tolist() == np.argsort(ranking.positions[i, ~left_out]).tolist()


def test_predictions_from_elsewhere():
    prediction = PartialPrediction([[1, 0, -1]], label_names=["a", "b", "c"])
    assert prediction.n_abstained.tolist() == [1]
    assert np.isnan(prediction.expected_loss).all()
    assert "33.3% abstained" in repr(prediction)
    assert PartialRanking([[1, 0, -1]]).order(0).tolist() == [1, 0]
    with pytest.raises(abstain.InvalidLabels, match="row 0, column 1 is 2; a label is 1, 0 or −1"):
        PartialPrediction([[1, 2]])
    with pytest.raises(abstain.InvalidLabels, match=r"row 1 is \[0, 0\]"):
        PartialRanking([[0, 1], [0, 0]])


def test_frames_go_back_and_forth():
    prediction = abstain.decide(P, penalty=0.2)
    np.testing.assert_array_equal(PartialPrediction(prediction.to_frame()).labels, prediction.labels)
    ranking = abstain.decide(P, "rank", penalty=0.2)
    np.testing.assert_array_equal(PartialRanking(ranking.to_frame()).positions, ranking.positions)


def test_pickle_and_copy():
    for loss in ("hamming", "rank"):
        profile = abstain.risk_profile(P, loss=loss)
        for twin in (pickle.loads(pickle.dumps(profile)), copy.deepcopy(profile)):
            np.testing.assert_array_equal(twin.decide(0.2).codes, profile.decide(0.2).codes)
        twin = pickle.loads(pickle.dumps(profile.decide(0.2)))
        np.testing.assert_array_equal(twin.codes, profile.decide(0.2).codes)


def test_what_does_not_fit():
    with pytest.raises(abstain.InvalidLabels, match=r"expected_loss has shape \(2,\); there are 1 instances"):
        PartialPrediction([[1, 0]], expected_loss=[0.1, 0.2])
    with pytest.raises(abstain.InvalidLabels, match="label_names is 5"):
        abstain.decide(P).to_frame(5)
    with pytest.raises(abstain.InvalidLabels, match="a different name for each"):
        abstain.decide(pl.DataFrame({"a": [0.5], "b": [0.5]})).to_frame(["x", "x"])


def test_text():
    text = repr(abstain.decide(pd.DataFrame(P, columns=list("abcdef")), penalty=0.2))
    assert text.startswith("PartialPrediction of 30 instances × 6 labels:")
    assert "?" in text
    assert "…" in text
    assert len(text.splitlines()) == 11


def wide_table():
    p = np.full((2, 100), 0.01)
    p[0, [97, 3]], p[0, [50, 99]], p[1, :6] = 0.99, 0.5, 0.4
    return pd.DataFrame(p, columns=[f"code {j}" for j in range(99)] + ["x" * 5000], index=["id-1", "id-2"])


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame,
        lambda frame: abstain.Table(
            sparse.csr_array(frame.to_numpy() * (frame.to_numpy() > 0.1)), list(frame.columns), list(frame.index)
        ),
    ],
)
def test_of_many_labels_those_are_shown_that_are_not_answered_no(convert):
    prediction = abstain.decide(convert(wide_table()), penalty=0.2)
    assert repr(prediction).splitlines()[1:] == [
        "      yes              ask",
        f"id-1  code 3, code 97  code 50, {'x' * 23}…",
        "id-2  –                code 0, code 1, code 2, code 3 + 2 more",
    ]
    html = prediction._repr_html_()
    assert 'nowrap">code 3, code 97</td>' in html
    assert 'nowrap">id-1</th>' in html  # an id is not broken at its hyphen
    ranking = repr(abstain.decide(convert(wide_table()), "rank", 0.1))
    assert ranking.splitlines()[1].split() == ["ranked", "first", "not", "ranked"]
    assert ranking.splitlines()[2].startswith("id-1  code 3, code 97")
    assert repr(prediction.fill([{"id": "id-1", "label": "code 50", "answer": 1}])).count("code 50") == 1
    assert len(repr(abstain.decide(np.zeros((0, 20))))) < 100


def test_html_is_escaped():
    html = abstain.decide(pd.DataFrame(P, columns=["<script>", *"bcdef"]), penalty=0.2)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert html.count("<tr>") == 10
