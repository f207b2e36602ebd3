"""What is accepted as probabilities, and the errors for everything else."""

import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.neighbors import KNeighborsClassifier
from tests.support.cases import random_probabilities

import abstain
from abstain._core.losses import LOSSES
from abstain.metrics import expected_generalized_loss

RANDOM = np.random.default_rng(0)
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


class Tensor:
    """As PyTorch's: NumPy gets it only when it is detached, on the CPU, and of a type that NumPy knows."""

    def __init__(self, values, dtype="torch.float32", *, requires_grad=True, device="cuda"):
        self.values, self.dtype, self.requires_grad, self.device = values, dtype, requires_grad, device
        self.ndim, self.shape = values.ndim, values.shape

    def detach(self):
        return Tensor(self.values, self.dtype, requires_grad=False, device=self.device)

    def cpu(self):
        return Tensor(self.values, self.dtype, requires_grad=self.requires_grad, device="cpu")

    def float(self):
        return Tensor(self.values, "torch.float32", requires_grad=self.requires_grad, device=self.device)

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad or self.device != "cpu" or self.dtype == "torch.bfloat16":
            raise TypeError("can't convert to numpy")
        return self.values


def rounded_to_bfloat16(values):
    """Return the nearest numbers with 8 significant bits, as float32."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def test_tensors_of_any_kind():
    for tensor in (Tensor(P, "torch.float64"), [Tensor(row, "torch.float64") for row in P]):
        np.testing.assert_array_equal(abstain.decide(tensor, penalty=0.2).labels, EXPECTED)
    assert abstain.decide(Tensor(P, "torch.float64")).expected_loss.tolist() == abstain.decide(P).expected_loss.tolist()
    half = rounded_to_bfloat16(P)
    for read in (
        lambda p: abstain.decide(p, "f1").codes,
        lambda p: abstain.calibration.brier_score_loss(P > 0.5, p),
        abstain.label_probabilities,
    ):
        np.testing.assert_array_equal(read(Tensor(half, "torch.bfloat16")), read(half))


def test_rounding_of_bfloat16_is_forgiven():
    """What follows 1 is 1.0078125: a sigmoid gives no more than 1, but a sum of marginals can be rounded up to it."""
    rounded = np.array([[1.0078125, -0.00390625, 0.5]], np.float32)
    for table in (Tensor(rounded, "torch.bfloat16"), abstain.label_probabilities(Tensor(rounded, "torch.bfloat16"))):
        assert abstain.decide(table).labels.tolist() == [[1, 0, -1]]
    with pytest.raises(abstain.InvalidProbabilities, match=r"row 0, column 0 is 1\.0078125;"):
        abstain.decide(rounded)
    with pytest.raises(abstain.InvalidProbabilities, match=r"row 0, column 1 is 1\.015625;"):
        abstain.decide(Tensor(np.array([[0.5, 1.015625]], np.float32), "torch.bfloat16"))


def test_bfloat16_of_ml_dtypes():
    """The type that the arrays of JAX and TensorFlow have in NumPy."""
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes, which comes with JAX, is not installed")
    table = P.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(table.astype(np.float32), rounded_to_bfloat16(P))
    np.testing.assert_array_equal(abstain.decide(table).labels, abstain.decide(rounded_to_bfloat16(P)).labels)
    assert abstain.decide(np.array([[1.0078125, 0.5]], ml_dtypes.bfloat16)).labels.tolist() == [[1, -1]]


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
        ([[[0.1, 0.2], [0.3]]], "cannot be read"),
        (np.zeros((2, 2), complex), "table of numbers, got ndarray of dtype complex128"),
        (sparse.csr_array(np.eye(2, dtype=complex)), "expected numbers"),
        (np.ma.masked_array([[0.1, 0.2]], [[False, True]]), "row 0, column 1 is masked"),
        (None, "table of numbers, got NoneType"),
    ],
)
def test_what_is_no_table(table, message):
    with pytest.raises(abstain.InvalidProbabilities, match=message):
        abstain.decide(table)
    with pytest.raises(abstain.InvalidProbabilities):
        abstain.label_probabilities(table)


def test_broken_sparse_matrix():
    broken = sparse.csr_array((np.array([0.5]), np.array([7]), np.array([0, 1])), shape=(1, 3))
    with pytest.raises(abstain.InvalidProbabilities, match="column outside 0 … 2"):
        abstain.decide(broken)


@pytest.mark.parametrize("labels", [3, 4])
def test_list_of_arrays_from_scikit_learn_is_recognised(labels):
    by_label = [np.full((5, 2 if j < 3 else 1), 0.5) for j in range(labels)]
    with pytest.raises(abstain.InvalidProbabilities, match=r"pass abstain\.label_probabilities\(probabilities\)"):
        abstain.decide(by_label)
    with pytest.raises(abstain.InvalidProbabilities, match=r"pass np\.concatenate\(probabilities\)"):
        abstain.decide([np.full((5, 7), 0.5), np.full((2, 7), 0.5)])


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


# Numbers of another scale


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize(
    ("values", "hint"),
    [
        (RANDOM.normal(0.5, 0.25, (1000, 3)), "are these logits"),  # most lie within [0, 1]
        (np.where(RANDOM.random((1000, 3)) < 0.1, 97.0, RANDOM.integers(0, 2, (1000, 3))), "are these per cent"),
        (np.where(RANDOM.random((1000, 3)) < 0.2, -1.0, RANDOM.random((1000, 3)) * 100), "are these per cent"),
        (RANDOM.random((1000, 3)) * 9, "are these per cent? divide them by 100; or logits"),
        (np.where(np.arange(3000).reshape(1000, 3) % 600 == 7, 97.0, 0.5), ""),  # five slips
        (np.where(np.arange(3000).reshape(1000, 3) % 600 == 7, -0.2, 0.5), ""),
        (np.where(RANDOM.random((1000, 3)) < 0.5, -1.0, 0.5), ""),  # −1 marks what is missing
        (np.where(RANDOM.random((1000, 3)) < 0.5, np.nan, 0.5), ""),
    ],
)
def test_hints_at_the_scale(values, hint, as_sparse):
    with pytest.raises(abstain.InvalidProbabilities, match=r"^probabilities: row \d+, column \d is ") as caught:
        abstain.decide(sparse.csr_array(values) if as_sparse else values)
    said = str(caught.value).partition("a probability is a number from 0 to 1")[2]
    assert said.removeprefix("; ").startswith(hint)
    assert bool(said) == bool(hint)
    assert isinstance(caught.value, abstain.NoProbabilities) == bool(hint)


def test_rows_without_entries_say_nothing_of_the_scale():
    table = np.zeros((1000, 3))
    table[::100, 1] = 97.0
    with pytest.raises(abstain.NoProbabilities, match="divide them by 100"):
        abstain.decide(sparse.csr_array(table))


# Classes of which exactly one is right

SOFTMAX = RANDOM.dirichlet(np.ones(4), 50)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array, lambda p: p.astype(np.float16), pd.DataFrame])
@pytest.mark.parametrize(
    "use",
    [
        abstain.decide,
        lambda p: abstain.risk_profile(p),
        lambda p: abstain.budget.solve(p, rate=0.1),
        lambda p: abstain.guarantee.control(p, SOFTMAX > 0.5, target=0.1),
        lambda p: abstain.report(p, losses=["hamming"]),
    ],
    ids=["decide", "risk_profile", "solve", "control", "report"],
)
def test_rows_that_add_up_to_one_are_warned_of_once(use, convert):
    with pytest.warns(abstain.ProbabilityWarning, match="every row adds up to 1, as a softmax") as caught:
        use(convert(SOFTMAX))
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "table",
    [
        SOFTMAX[:20],
        RANDOM.dirichlet(np.ones(2), 50),
        np.vstack([SOFTMAX[:30], [[0.2, 0.2, 0.2, 0.2]]]),
        SOFTMAX * 0.995,
    ],
    ids=["few rows", "two labels", "one row does not", "nearly"],
)
def test_other_rows_are_not_warned_of(table):
    abstain.decide(table)


def test_softmax_in_bfloat16():
    with pytest.warns(abstain.ProbabilityWarning):
        abstain.decide(Tensor(rounded_to_bfloat16(SOFTMAX), "torch.bfloat16"))


def test_classes_of_a_single_target_are_not_warned_of():
    X = RANDOM.normal(size=(60, 2))
    y = RANDOM.integers(0, 4, 60)
    model = abstain.AbstainingClassifier(KNeighborsClassifier()).fit(X, y)
    model.decide(X), model.score(X, y), abstain.make_abstention_scorer()(KNeighborsClassifier().fit(X, y), X, y)
    several = abstain.AbstainingClassifier(KNeighborsClassifier()).fit(X, np.eye(4, dtype=int)[y])
    with pytest.warns(abstain.ProbabilityWarning):
        several.decide(X)
