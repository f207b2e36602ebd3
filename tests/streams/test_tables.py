"""Tables in files: what is written is read back, and what is wrong with a file is said with its place."""

import gzip
import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from tests.support.cases import random_probabilities

import abstain
from abstain import metrics
from abstain._utils.errors import InvalidDataset, InvalidOutput, MissingFile
from abstain.streams import Job, open_sources
from abstain.streams._formats import FORMATS
from abstain.streams._tables import Table, read_table, write_table

SUFFIXES = [".csv", ".csv.gz", ".parquet", ".npz"]
DTYPES = ["u1", "i1", "f4", "f8"]
P = random_probabilities(20, 3)

words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
common = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def is_whole(word):
    return re.fullmatch(r"-?(0|[1-9]\d*)", word, re.ASCII) is not None


@st.composite
def named_tables(draw):
    shape = draw(hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=5))
    dtype = draw(st.sampled_from(DTYPES))
    finite = {"allow_nan": False, "allow_infinity": False} if dtype[0] == "f" else {}
    values = draw(hnp.arrays(dtype, shape, elements=hnp.from_dtype(np.dtype(dtype), **finite)))
    names = draw(st.none() | st.lists(words, min_size=shape[1], max_size=shape[1], unique=True))
    rows = draw(st.none() | st.lists(words | st.integers(-9, 9), min_size=shape[0], max_size=shape[0]))
    return Table(sparse.csr_array(values) if draw(st.booleans()) else values, names, rows)


def dense(values):
    return values.toarray() if sparse.issparse(values) else values


def names_as_read(names, n):
    """Names that count are none; row names are whole numbers, or text."""
    if names is None or [str(name) for name in names] == [str(i) for i in range(n)]:
        return None
    texts = [str(name) for name in names]
    return [int(text) for text in texts] if all(is_whole(text) and text != "-0" for text in texts) else texts


@pytest.mark.parametrize("suffix", SUFFIXES)
@common
@given(table=named_tables())
def test_round_trip(suffix, table, tmp_path):
    before = dense(table.values).copy()
    path = tmp_path / f"table{suffix}"
    write_table(table, path)
    again = read_table(path)
    np.testing.assert_array_equal(dense(table.values), before)
    np.testing.assert_array_equal(dense(again.values).astype(before.dtype), before)
    counted = table.label_names is None or list(table.label_names) == [str(j) for j in range(table.shape[1])]
    assert again.label_names == (None if counted else table.label_names)
    rows = None if again.index is None else again.index.tolist()
    if suffix == ".npz" and rows is not None and isinstance(rows[0], str):
        assert rows == [str(name) for name in table.index]
    elif rows is not None or names_as_read(table.index, len(table)) is not None:
        assert [str(name) for name in rows] == [str(name) for name in table.index]
    if ".csv" not in suffix:
        assert again.values.dtype == before.dtype
    assert sparse.issparse(again.values) == (suffix == ".npz" and sparse.issparse(table.values))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["hamming", "rank"])
def test_partial_predictions_come_back(suffix, named, convert, loss, tmp_path):
    p = np.where(P < 0.1, 0, P)
    rows = [f"image {i}" for i in range(len(p))]
    probabilities = Table(convert(p), ["sky", "sea", "sun, or moon"], rows) if named else convert(p)
    prediction = abstain.decide(probabilities, loss, penalty=0.2)
    write_table(prediction, tmp_path / f"answers{suffix}")
    table = read_table(tmp_path / f"answers{suffix}")
    again = type(prediction)(table)
    np.testing.assert_array_equal(again.to_dense(), prediction.to_dense())
    assert again.n_abstained.sum() > 0
    assert again.label_names == prediction.label_names
    assert (again.axes.index is None) == (not named)
    if named:
        assert again.axes.index.tolist() == rows


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_single_label_that_is_left_open_keeps_its_row(suffix, tmp_path):
    write_table(abstain.PartialPrediction([[1], [-1], [0], [-1]]), tmp_path / f"one{suffix}")
    assert abstain.PartialPrediction(read_table(tmp_path / f"one{suffix}")).labels.tolist() == [[1], [-1], [0], [-1]]


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_names_travel(convert):
    names, rows = ("sky", "sea", "sun"), [f"r{i}" for i in range(len(P))]
    table, truth = Table(convert(P), names, rows), Table(convert((P > 0.4).astype(np.uint8)), names, rows)
    prediction = abstain.decide(table, penalty=0.2)
    assert prediction.label_names == names
    assert "r0" in repr(prediction)
    assert list(prediction.to_frame().index) == rows
    plain = metrics.generalized_loss(P > 0.4, abstain.decide(P, penalty=0.2), loss="hamming", penalty=0.2)
    assert metrics.generalized_loss(truth, prediction, loss="hamming", penalty=0.2) == pytest.approx(plain)
    assert abstain.PartialPrediction(truth).label_names == names
    assert metrics.generalized_loss(
        pd.DataFrame(P > 0.4, rows, list(names)), prediction, loss="hamming", penalty=0.2
    ) == (pytest.approx(plain))
    with pytest.raises(abstain.InvalidLabels, match="has other rows: row 0 is 'other', expected 'r0'"):
        metrics.generalized_loss(
            Table(truth.values, names, ["other", *rows[1:]]), prediction, loss="hamming", penalty=0.2
        )
    with pytest.raises(abstain.InvalidLabels, match="the same labels in another order"):
        metrics.generalized_loss(Table(truth.values, names[::-1], rows), prediction, loss="hamming", penalty=0.2)
    with pytest.raises(abstain.InvalidProbabilities, match=r"row 0 \(index 'a'\), column 1 \(label 'y'\) is 2"):
        abstain.decide(Table([[0.1, 2.0]], ["x", "y"], ["a"]))


def test_table_is_checked_and_shown():
    assert repr(Table(sparse.csr_array(np.eye(4)))) == "Table of 4 rows × 4 labels (sparse float64)"
    assert repr(Table([[1]], ["a"])) == "Table of 1 row × 1 label (int64): 'a'"
    assert repr(Table(np.eye(4), list("abcd"), range(4))).endswith(": 'a', 'b', 'c', …; rows 0, 1, 2, …")
    assert len(Table(np.eye(4))) == 4
    frame = pd.DataFrame([[0.5]], columns=["sky"], index=["a"])
    pd.testing.assert_frame_equal(Table(frame).to_frame(), frame)
    assert Table(sparse.csr_array(np.eye(2)), ["a", "b"], ["x", "y"]).to_frame().loc["x", "a"] == 1
    for arguments, message in [
        (([[1, 2]], ["a"]), "label_names has 1 names for 2 labels"),
        (([[1, 2]], None, ["a", "b"]), "index has 2 names for 1 rows"),
        (([["a"]],), "table of numbers"),
    ]:
        with pytest.raises(abstain.InvalidLabels, match=message):
            Table(*arguments)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "table",
    [
        P.tolist(),
        np.asfortranarray(P),
        P.astype(">f4"),
        P.astype(np.float16),
        P > 0.5,
        pd.DataFrame(P, columns=list("abc")),
        pl.DataFrame(P, schema=list("abc")),
        sparse.coo_array(P),
    ],
)
def test_anything_is_written(suffix, table, tmp_path):
    expected, axes = abstain._core.tables.read_matrix(table, "table", ValueError)
    if isinstance(expected, np.ndarray):
        expected.flags.writeable = False
    write_table(table, tmp_path / f"p{suffix}")
    again = read_table(tmp_path / f"p{suffix}")
    np.testing.assert_array_equal(dense(again.values).astype(expected.dtype), dense(expected))
    assert again.label_names == axes.label_names
    assert again.index is None


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_rows(suffix, tmp_path):
    write_table(Table(np.empty((0, 2)), ["a", "b"]), tmp_path / f"empty{suffix}")
    table = read_table(tmp_path / f"empty{suffix}")
    assert table.shape == (0, 2)
    assert table.label_names == ("a", "b")


def test_files_of_pandas_polars_numpy_and_scipy(tmp_path):
    frame = pd.DataFrame(P, columns=["sky", "sea", "sun"], index=[f"r{i}" for i in range(len(P))])
    for name, kept in [(None, frame), ("image", frame.rename_axis("image")), (None, frame.reset_index(drop=True))]:
        kept.to_csv(tmp_path / "p.csv")
        kept.to_parquet(tmp_path / "p.parquet")
        for file in ("p.csv", "p.parquet"):
            table = read_table(tmp_path / file, index=name if file == "p.csv" else None)
            np.testing.assert_array_equal(table.values, P)
            assert table.label_names == ("sky", "sea", "sun")
            assert (table.index is None) == isinstance(kept.index, pd.RangeIndex)
    pl.DataFrame(P, schema=["a", "b", "c"]).write_csv(tmp_path / "p.csv")
    np.testing.assert_array_equal(read_table(tmp_path / "p.csv").values, P)
    np.savez(tmp_path / "p.npz", P)
    np.testing.assert_array_equal(read_table(tmp_path / "p.npz").values, P)
    sparse.save_npz(tmp_path / "p.npz", sparse.coo_matrix(P))
    np.testing.assert_array_equal(read_table(tmp_path / "p.npz").values.toarray(), P)
    write_table(Table(sparse.csr_array(P), ["a", "b", "c"], [f"r{i}" for i in range(len(P))]), tmp_path / "p.npz")
    loaded = sparse.load_npz(tmp_path / "p.npz")
    assert isinstance(loaded, sparse.csr_array)
    np.testing.assert_array_equal(loaded.toarray(), P)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_are_chosen(suffix, tmp_path):
    path = tmp_path / f"t{suffix}"
    write_table(Table([[7, 1, 0], [8, 0, 1]], ["number", "sky", "sea"]), path)
    table = read_table(path, index="number")
    assert table.label_names == ("sky", "sea")
    assert table.index.tolist() == [7, 8]
    assert read_table(path, labels=["sea", "sky"]).values.tolist() == [[0, 1], [1, 0]]
    assert read_table(path, index="number", labels=["sea"]).values.tolist() == [[0], [1]]
    with pytest.raises(InvalidDataset, match=r"t\..*: there is no column 'skyy'; did you mean 'sky'\?"):
        read_table(path, labels=["skyy"])
    with pytest.raises(InvalidDataset, match="there is no column 'quux'; there are 'number', 'sky', 'sea'"):
        read_table(path, index="quux")


def test_text_beside_the_labels_does_no_harm(tmp_path):
    (tmp_path / "t.csv").write_text("sky,note,sea\n0.5,hello,1\n")
    assert read_table(tmp_path / "t.csv", labels=["sky", "sea"]).values.tolist() == [[0.5, 1.0]]


def test_line_is_counted_right_in_a_single_column(tmp_path):
    (tmp_path / "t.csv").write_text("sky\n0.5\n\noops\n")
    with pytest.raises(InvalidDataset, match="line 4, column 1: 'oops' is not a number"):
        read_table(tmp_path / "t.csv", labels=["sky"])


def test_row_names_with_leading_zeros_stay_text(tmp_path):
    (tmp_path / "t.csv").write_text("\ufeffid,sky\n007,1\n8,0\n\n", encoding="utf-8")
    assert read_table(tmp_path / "t.csv").index.tolist() == ["007", "8"]
    (tmp_path / "t.csv").write_text("id,sky\n7,1\n8,0\n")
    assert read_table(tmp_path / "t.csv").index.tolist() == [7, 8]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sky,sea\n0.5,1\n0.25,oops\n", "line 3, column 2: 'oops' is not a number"),
        ('id,sky,sea\n"a\nb",0.5,1\n\nc,x y,1\n', "line 5, column 2: 'x y' is not a number"),
        ("sky,sea\n0.5,2020-01-01\n", "line 2, column 2: '2020-01-01' is not a number"),
        ("sky,sea\n0.5,1\n0.5,1,2\n", "line 3 has 3 cells, expected 2"),
        ("sky,sea\n0.5,1\n0.5\n", "line 3 has 1 cell, expected 2"),
        ("sky,sky\n0.5,1\n", "two columns are called 'sky'"),
        ("", "there are no columns"),
        ("id\na\n", "there are no columns of numbers"),
        ("0.1,0.9\n0.2,0.8\n", "the first line (0.1, 0.9) looks like data, not like names"),
        ("id;sky;sea\na;0,5;1\n", "the columns seem to be separated by semicolons; expected commas"),
        ("id\tsky\na\t0.5\n", "the columns seem to be separated by tabs; expected commas"),
    ],
)
def test_what_is_wrong_with_a_csv_file(text, message, packed, tmp_path):
    file = tmp_path / ("t.csv.gz" if packed else "t.csv")
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    with pytest.raises(InvalidDataset, match=re.escape(f"{file}: {message}")):
        read_table(file)


def test_another_encoding(tmp_path):
    (tmp_path / "t.csv").write_bytes("id,größe\na,0.5\n".encode("latin-1"))
    with pytest.raises(
        InvalidDataset, match=r"t\.csv: is no text in UTF-8 \(byte 0xf6 at 5\); save it in that encoding"
    ):
        read_table(tmp_path / "t.csv")


def test_missing_cells_are_nan(tmp_path):
    (tmp_path / "t.csv").write_text("sky,sea,sun\n0.5,,\n,1,\n")
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv").values, [[0.5, np.nan, np.nan], [np.nan, 1, np.nan]])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_broken_files(suffix, tmp_path):
    file = tmp_path / f"t{suffix}"
    with pytest.raises(MissingFile, match=rf"t{re.escape(suffix)}: there is no such file"):
        read_table(file)
    write_table(np.random.default_rng(0).random((200, 5)), file)
    whole = file.read_bytes()
    if suffix != ".csv":  # half of a CSV file may be one
        file.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(InvalidDataset, match=rf"t{re.escape(suffix)}: (cannot be read|.* or not all of it)"):
            read_table(file)
    file.write_bytes(b"\x93\xff\x00 not a table at all \xfe")
    with pytest.raises(InvalidDataset, match=rf"t{re.escape(suffix)}: "):
        read_table(file)


def test_parquet_with_text(tmp_path):
    pd.DataFrame({"sky": [0.5, 1.0], "sea": ["0", "oops"]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidDataset, match=r"t.parquet: row 1, column 2: 'oops' is not a number"):
        read_table(tmp_path / "t.parquet")


def test_npz_that_is_no_table(tmp_path):
    file = tmp_path / "t.npz"
    for arrays, message in [
        ({"a": P, "b": P}, "expected one table, got 2 arrays: a, b"),
        ({"a": P[0]}, "1 dimensions"),
        ({"a": np.array([[None, 1]])}, "allow_pickle=False"),
        ({"a": np.array([["x"]])}, "expected an n × m table of numbers"),
        ({"values": P, "label_names": np.array(["a"])}, "do not fit a table of 20 × 3"),
        ({"values": P, "label_names": np.array(["a", "b", "a"])}, "two columns are called 'a'"),
        ({}, "expected one table, got 0 arrays"),
    ]:
        np.savez(file, **arrays)
        with pytest.raises(InvalidDataset, match=message):
            read_table(file)
    with file.open("wb") as target:
        np.save(target, P)
    with pytest.raises(InvalidDataset, match=r"is not npz, but a NumPy array; call it \.npy"):
        read_table(file)


def test_unknown_suffix(tmp_path):
    message = r"t\.xlsx: unknown kind of file; .* \.csv, \.csv\.gz, \.parquet, \.arrow, .*\.npz$"
    with pytest.raises(InvalidDataset, match=message):
        read_table(tmp_path / "t.xlsx")
    with pytest.raises(InvalidOutput, match=message):
        write_table(P, tmp_path / "t.xlsx")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("bad", ["nul", "surrogate", "twice", "broken"])
def test_failing_write_leaves_the_old_file(suffix, bad, tmp_path, monkeypatch):
    file = tmp_path / f"t{suffix}"
    write_table(P, file)
    old = file.read_bytes()
    names = {"nul": ["a\0", "b", "c"], "surrogate": ["\ud800", "b", "c"], "twice": ["a", "b", "a"]}.get(bad)
    if bad == "broken":

        def fail(target, *_):
            target.write(b"half of it")
            raise OSError("disk full")

        monkeypatch.setitem(FORMATS, suffix, replace(FORMATS[suffix], open_writer=fail))
    with pytest.raises(
        OSError if bad == "broken" else InvalidDataset, match="disk full" if bad == "broken" else "t\\."
    ):
        write_table(Table(P, names), file)
    assert file.read_bytes() == old
    assert list(tmp_path.iterdir()) == [file]


def test_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_table(P, tmp_path / "nowhere" / "t.npz")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_without_pyarrow(suffix, tmp_path, monkeypatch):
    write_table(P, tmp_path / f"t{suffix}")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, f"pyarrow.{suffix[1:]}", None)
    for act in (read_table, lambda path: write_table(P, path)):
        with pytest.raises(ImportError, match=r"pip install pyarrow"):
            act(tmp_path / f"t{suffix}")


def test_a_slip_in_the_first_column_is_no_name(tmp_path):
    file = tmp_path / "p.csv"
    file.write_text("sky,sea\n0.5,0.25\n0.1o,0.5\n0.75,1\n")
    with pytest.raises(InvalidDataset, match=r"p\.csv: line 3, column 1: '0\.1o' is not a number"):
        read_table(file)
    file.write_text("sky,sea\n0.5,1\nx0.3,2\n")
    with pytest.raises(InvalidDataset, match=r"p\.csv: line 3, column 1: 'x0\.3' is not a number"):
        read_table(file)
    file.write_text("picture,sea\n12,0.25\na,0.5\nb,1\n")
    assert read_table(file).index.tolist() == ["12", "a", "b"]


def test_names_of_digits(tmp_path):
    table = Table(np.eye(2), ["0", "1"], ["10", "11"])
    write_table(table, tmp_path / "t.npz")
    again = read_table(tmp_path / "t.npz")
    assert (again.label_names, list(again.index)) == (("0", "1"), ["10", "11"])
    write_table(table, tmp_path / "t.parquet")
    assert list(read_table(tmp_path / "t.parquet").index) == ["10", "11"]
    write_table(Table(np.eye(2), None, [2**70, 1]), tmp_path / "t.parquet")
    assert list(read_table(tmp_path / "t.parquet").index) == [str(2**70), "1"]


# --- which texts are numbers ------------------------------------------------------------------------------------------

NUMBERS = {"0.5": 0.5, " .5": 0.5, "1.": 1.0, "+1": 1.0, "5E-1": 0.5, "0e5": 0.0}
NO_NUMBERS = ["0_1", "1_0.5", "٣", "１", "0.٣", "0x1", "1e", "\xa01", "1,0", "½", "yes"]
EMPTY = ["", "NA", "#N/A", "n/a", "nan", "NaN", "null", "-1.#IND"]


@pytest.mark.parametrize("other", ["0.25", "oops"])
@pytest.mark.parametrize("cell", NO_NUMBERS)
def test_only_plain_decimals_are_numbers(cell, other, tmp_path):
    """Whether Arrow reads the column at once, or it is read as text since another cell is none."""
    (tmp_path / "p.csv").write_text(f'id,x,y\na,0.5,0.5\nb,"{cell}",{other}\n')
    with pytest.raises(InvalidDataset, match=rf"p\.csv: line 3, column 2: {re.escape(repr(cell))} is not a number"):
        read_table(tmp_path / "p.csv")
    (batch,) = open_sources(tmp_path / "p.csv").batches()
    with pytest.raises(abstain.InvalidProbabilities, match=rf"line 3 .* is {re.escape(repr(cell))}; a probability"):
        Job("hamming", 0.1).decide_batch(batch)


@pytest.mark.parametrize("other", ["0.25", "oops"])
@pytest.mark.parametrize("cell", [*NUMBERS, *EMPTY])
def test_numbers_and_empty_cells_do_not_depend_on_other_cells(cell, other, tmp_path):
    (tmp_path / "p.csv").write_text(f'id,x,y\na,0.5,0.5\nb,"{cell}",{other}\n')
    expected = NUMBERS.get(cell, np.nan)
    assert read_table(tmp_path / "p.csv", labels=["x"]).values[1, 0] == pytest.approx(expected, nan_ok=True, abs=0)
    (batch,) = open_sources(tmp_path / "p.csv").batches()
    assert batch.table.values[1, 0] == pytest.approx(expected, nan_ok=True, abs=0)


def test_digits_of_other_scripts_are_no_numbers_in_a_text_column_of_parquet(tmp_path):
    for cell in NO_NUMBERS:
        pq.write_table(pa.table({"id": ["a", "b"], "x": ["0.5", cell]}), tmp_path / "p.parquet")
        with pytest.raises(InvalidDataset, match=rf"row 1, column 2: {re.escape(repr(cell))} is not a number"):
            read_table(tmp_path / "p.parquet")
