"""What is accepted as probabilities, and the errors for everything else."""

import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from tests.support.cases import random_probabilities

import abstain
from abstain._core.losses import LOSSES
from abstain.metrics import expected_generalized_loss

P = random_probabilities(50, 7)
EXPECTED = abstain.decide(P, penalty=0.2).labels


def strided(p):
    wide = np.zeros((p.shape[0], 2 * p.shape[1]))
    wide[:, ::2] = p
    return wide[:, ::2]


def memory_map(p, folder):
    np.save(folder / "p.npy", p)
    return np.load(folder / "p.npy", mmap_mode="r")


class ArrayLike:
    """What torch and others offer: a view of their memory."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


@pytest.mark.parametrize(
    "convert",
    [
        lambda p: p.tolist(),
        lambda p: [tuple(row) for row in p.tolist()],
        np.asfortranarray,
        strided,
        lambda p: p[::-1][::-1],
        lambda p: p.astype(np.longdouble),
        lambda p: np.ma.masked_array(p),
        pd.DataFrame,
        lambda p: pl.DataFrame(p, schema=[str(j) for j in range(p.shape[1])], orient="row"),
        lambda p: pl.LazyFrame(p, schema=[str(j) for j in range(p.shape[1])], orient="row"),
        lambda p: pa.Table.from_pandas(pd.DataFrame(p)),
        lambda p: duckdb.from_arrow(pa.Table.from_pandas(pd.DataFrame(p))),
        lambda p: pd.DataFrame(p).astype("Float64"),
        lambda p: pd.DataFrame(p).astype({0: "Float64"}),
        ArrayLike,
    ],
)
def test_any_table_gives_the_same(convert, threads):
    np.testing.assert_array_equal(abstain.decide(convert(P), penalty=0.2).labels, EXPECTED)


@pytest.mark.parametrize(
    ("convert", "kind"),
    [
        (lambda frame: frame, pd.DataFrame),
        (pl.from_pandas, pl.DataFrame),
        (lambda frame: pl.from_pandas(frame).lazy(), pl.DataFrame),
        (pa.Table.from_pandas, pa.Table),
        (lambda frame: duckdb.from_arrow(pa.Table.from_pandas(frame)), pa.Table),
    ],
    ids=["pandas", "polars", "polars lazy", "pyarrow", "duckdb"],
)
def test_frames_of_any_library_keep_their_names(convert, kind):
    names = [f"label {j}" for j in range(P.shape[1])]
    table = convert(pd.DataFrame(P, columns=names))
    prediction = abstain.decide(table, penalty=0.2)
    assert prediction.label_names == tuple(names)
    answers = prediction.to_frame()
    assert type(answers) is kind
    np.testing.assert_array_equal(abstain.PartialPrediction(answers).labels, EXPECTED)
    queue = abstain.review_queue(table, prediction).to_frame()
    assert type(queue) is kind
    assert len(queue) == prediction.n_abstained.sum()
    assert abstain.Table(table).label_names == tuple(names)


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas, lambda frame: frame])
def test_missing_and_text_columns_of_frames_are_named(convert):
    frame = pd.DataFrame({"sky": [0.5, None], "sea": [0.1, 0.2]})
    with pytest.raises(abstain.InvalidProbabilities, match=r"row 1.*, column 0 \(label 'sky'\) is nan"):
        abstain.decide(convert(frame))
    assert abstain.PartialPrediction(convert(pd.DataFrame({"sky": [1.0, None]}))).labels.tolist() == [[1], [-1]]
    frame = pd.DataFrame({"sky": [0.5, 0.1], "id": ["a", "b"]})
    with pytest.raises(abstain.InvalidProbabilities, match=r"column 1 \(label 'id'\) has type .*, expected numbers"):
        abstain.decide(convert(frame))


def test_memory_map(tmp_path):
    np.testing.assert_array_equal(abstain.decide(memory_map(P, tmp_path), penalty=0.2).labels, EXPECTED)


def test_torch_tensor():
    torch = pytest.importorskip("torch", reason="torch is not installed; its tensors are read as any array-like is")
    np.testing.assert_array_equal(abstain.decide(torch.tensor(P), penalty=0.2).labels, EXPECTED)
    single = torch.tensor(P, dtype=torch.float32)
    np.testing.assert_array_equal(
        abstain.decide(single, penalty=0.2).labels, abstain.decide(single.numpy(), penalty=0.2).labels
    )
    with pytest.raises(abstain.InvalidProbabilities, match="grad"):
        abstain.decide(torch.tensor(P, requires_grad=True))


@pytest.mark.parametrize("loss", LOSSES)
def test_single_precision_is_read_as_it_is(loss):
    single = P.astype(np.float32)
    here, there = abstain.decide(single, loss), abstain.decide(single.astype(np.float64), loss)
    np.testing.assert_array_equal(here.codes, there.codes)
    np.testing.assert_array_equal(here.expected_loss, there.expected_loss)


@pytest.mark.parametrize("loss", LOSSES)
def test_input_is_not_changed(loss):
    before = P.copy()
    abstain.risk_profile(P, loss=loss).decide(0.1)
    abstain.decide(P, loss, abstain.Concave(0.2))
    np.testing.assert_array_equal(P, before)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_zero_instances(loss, convert):
    empty = convert(np.zeros((0, 4)))
    prediction = abstain.decide(empty, loss)
    assert prediction.shape == (0, 4)
    assert prediction.expected_loss.shape == (0,)
    assert abstain.risk_profile(empty, loss=loss).values.shape == (0, 5)
    assert len(abstain.risk_profile(empty, loss=loss).path()) == 0
    assert repr(prediction)
    assert prediction._repr_html_()


@pytest.mark.parametrize("loss", LOSSES)
def test_one_instance_and_one_label(loss):
    vector = abstain.decide(P[0], loss)
    np.testing.assert_array_equal(vector.codes, abstain.decide(P[:1], loss).codes)
    assert abstain.decide([[0.9], [0.5]], loss, "none").shape == (2, 1)


def test_frame_of_mixed_types():
    assert abstain.decide(pd.DataFrame({"a": [0.95], "b": [False], "c": [1]})).labels.tolist() == [[1, 0, 1]]


def test_rounding_is_forgiven():
    assert abstain.decide([1 + 1e-12, -1e-12, 0.5], penalty=0.1).labels.tolist() == [[1, 0, -1]]
    assert abstain.decide(np.array([1.0000002, 0.5], np.float32), penalty=0.1).expected_loss[0] == pytest.approx(0.1)


def test_names_and_index_are_kept():
    frame = pd.DataFrame([[0.95, 0.5], [0.1, 0.9]], columns=["sky", "sea"], index=["a", "b"])
    prediction = abstain.decide(frame, penalty=0.2)
    assert prediction.label_names == ("sky", "sea")
    result = prediction.to_frame()
    assert list(result.columns) == ["sky", "sea"]
    assert list(result.index) == ["a", "b"]
    assert result.loc["a", "sea"] is pd.NA
    assert result["sky"].tolist() == [1, 0]
    assert "sky" in repr(prediction)
    polars = abstain.decide(pl.DataFrame({"sky": [0.95], "sea": [0.5]}), penalty=0.2).to_frame()
    assert polars.to_dict(as_series=False) == {"sky": [1], "sea": [None]}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -0.1, 1.1, 1e300])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_bad_value_is_named(bad, as_sparse, threads):
    p = np.full((5000, 100), 0.25)
    p[4321, 7] = bad
    p[4900, 3] = -5.0
    with pytest.raises(abstain.InvalidProbabilities, match=re.escape(f"row 4321, column 7 is {bad}; a")):
        abstain.decide(sparse.csr_array(p) if as_sparse else p)
    with pytest.raises(abstain.InvalidProbabilities, match="row 4321, column 7"):
        abstain.risk_profile(sparse.csr_array(p) if as_sparse else p)


def test_bad_value_in_a_frame_is_named_as_the_user_does():
    frame = pd.DataFrame({"sky": [0.5, 0.5], "sea": [0.5, np.nan]}, index=["first", "second"])
    with pytest.raises(
        abstain.InvalidProbabilities, match=r"row 1 \(index 'second'\), column 1 \(label 'sea'\) is nan"
    ):
        abstain.decide(frame)
    with pytest.raises(abstain.InvalidProbabilities, match="label 'sea'"):
        abstain.decide(pl.DataFrame({"sky": [0.5], "sea": [None]}, schema={"sky": pl.Float64, "sea": pl.Float64}))
    with pytest.raises(abstain.InvalidProbabilities, match=r"column 0 \(label 'id'\) has type (object|str)"):
        abstain.decide(pd.DataFrame({"id": ["x"], "sky": [0.5]}))
    with pytest.raises(abstain.InvalidProbabilities, match=r"column 0 \(label 'id'\) has type String"):
        abstain.decide(pl.DataFrame({"id": ["x"], "sky": [0.5]}))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (0.5, "0 dimensions"),
        (np.zeros((2, 2, 2)), r"3 dimensions \(2, 2, 2\)"),
        (np.zeros((3, 0)), "no label"),
        ([], "no label"),
        (sparse.csr_array((3, 0)), "no label"),
        ([["a", "b"]], "table of numbers, got list"),
        ([[0.1, 0.2], [0.3]], "cannot be read"),
        (np.zeros((2, 2), complex), "table of numbers, got ndarray of dtype complex128"),
        (sparse.csr_array(np.eye(2, dtype=complex)), "expected numbers"),
        (np.ma.masked_array([[0.1, 0.2]], [[False, True]]), "row 0, column 1 is masked"),
        (None, "table of numbers, got NoneType"),
    ],
)
def test_what_is_no_table(table, message):
    with pytest.raises(abstain.InvalidProbabilities, match=message):
        abstain.decide(table)


def test_broken_sparse_matrix():
    broken = sparse.csr_array((np.array([0.5]), np.array([7]), np.array([0, 1])), shape=(1, 3))
    with pytest.raises(abstain.InvalidProbabilities, match="column outside 0 … 2"):
        abstain.decide(broken)


@pytest.mark.parametrize("labels", [3, 4])
def test_list_of_arrays_from_scikit_learn_is_recognised(labels):
    by_label = [np.full((5, 2 if j < 3 else 1), 0.5) for j in range(labels)]
    with pytest.raises(abstain.InvalidProbabilities, match=r"np\.column_stack"):
        abstain.decide(by_label)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", ["f2", "f4", "g", ">f8", ">f4"])
def test_any_precision(loss, dtype):
    p = np.round(P, 2).astype(dtype)
    expected = abstain.decide(p.astype(np.float64), loss, 0.1)
    for table in (p, sparse.csr_array(p.astype("g" if dtype == "f2" else p.dtype.newbyteorder("=")))):
        prediction = abstain.decide(table, loss, 0.1)
        np.testing.assert_array_equal(prediction.n_abstained, expected.n_abstained)
        again = expected_generalized_loss(table, prediction, loss=loss, penalty=0.1, per_instance=True)
        np.testing.assert_allclose(again, expected.expected_loss, rtol=0, atol=1e-11)
