"""Truth of which some entries are unknown, and weights: the same from every kind of table, or an error with a place."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from abstain import InvalidLabels, InvalidParameter, Table
from abstain._core.probabilities import Probabilities
from abstain._core.tables import RowSlice
from abstain._core.truth import read_partial_truth, read_sample_weight, read_truth

NAN = np.nan
ROWS = [[1, None, 0], [0, 1, None], [None, 1, None]]
NUMBERS = np.array(ROWS, dtype=float)
VALUES = [[1, 0, 0], [0, 1, 0], [0, 1, 0]]
UNKNOWN = [[False, True, False], [False, False, True], [True, False, True]]
NAMES = ["sky", "sea", "sun"]
FRAME = pd.DataFrame(NUMBERS, columns=NAMES)
COLUMNS = dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True))
TABLES = {
    "lists": ROWS,
    "array": NUMBERS,
    "float32": NUMBERS.astype(np.float32),
    "objects": np.array(ROWS, dtype=object),
    "objects with pandas.NA": np.where(np.isnan(NUMBERS), pd.NA, np.array(VALUES, dtype=object)),
    "masked": np.ma.MaskedArray(VALUES, UNKNOWN),
    "pandas": FRAME,
    "pandas objects": pd.DataFrame(ROWS, columns=NAMES, dtype=object),
    "pandas Int8": FRAME.astype("Int8"),
    "pandas boolean": FRAME.astype("boolean"),
    "pandas of several types": FRAME.astype({"sky": "Int64", "sea": object, "sun": "Float32"}),
    "pandas of pyarrow": FRAME.astype("Int64").astype("int64[pyarrow]"),
    "polars": pl.DataFrame(COLUMNS),
    "polars booleans": pl.DataFrame(COLUMNS).cast(pl.Boolean),
    "lazy": pl.DataFrame(COLUMNS).lazy(),
    "pyarrow": pa.table(COLUMNS),
    "Table": Table(NUMBERS, NAMES),
    "rows of a table": RowSlice(pd.DataFrame(ROWS, columns=NAMES, dtype=object), 5),
    "sparse": sparse.csr_array(NUMBERS),
    "csc": sparse.csc_matrix(NUMBERS),
}


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_says_what_is_unknown(kind):
    truth = read_truth(TABLES[kind], NAN)
    assert truth.values.dtype == np.int8
    assert truth.unknown.dtype == np.bool_
    assert sparse.issparse(truth.values) == sparse.issparse(truth.unknown) == (kind in ("sparse", "csc"))
    np.testing.assert_array_equal(dense(truth.values), VALUES)
    np.testing.assert_array_equal(dense(truth.unknown), UNKNOWN)
    assert truth.axes.label_names in (None, tuple(NAMES))


@pytest.mark.parametrize("make", [np.array, pd.DataFrame, sparse.csr_array, lambda t: np.array(t, np.int8)])
def test_minus_one_is_unknown_if_asked_for(make):
    truth = read_truth(make(np.where(UNKNOWN, -1, VALUES)), -1)
    np.testing.assert_array_equal(dense(truth.values), VALUES)
    np.testing.assert_array_equal(dense(truth.unknown), UNKNOWN)


@pytest.mark.parametrize("missing_values", [NAN, np.float32(NAN), -1, -1.0, np.int8(-1)])
def test_a_truth_without_unknown_entries_has_no_mask(missing_values):
    for table in (VALUES, np.array(VALUES, bool), sparse.csr_array(VALUES), pd.DataFrame(VALUES)):
        truth = read_truth(table, missing_values)
        assert truth.unknown is None
        np.testing.assert_array_equal(dense(truth.values), VALUES)


@pytest.mark.parametrize("column", [[None, None], [pd.NA, pd.NA], [NAN, NAN]])
def test_a_label_that_nobody_has_looked_at(column):
    for frame in (pd.DataFrame({"a": [0, 1], "b": column}), pd.DataFrame({"a": [0, 1], "b": column}, dtype=object)):
        np.testing.assert_array_equal(read_truth(frame, NAN).unknown, [[False, True], [False, True]])
    for frame in (pl.DataFrame({"a": [0, 1], "b": [None, None]}), pa.table({"a": [0, 1], "b": [None, None]})):
        np.testing.assert_array_equal(read_truth(frame, NAN).unknown, [[False, True], [False, True]])


def test_columns_of_the_same_name_keep_their_values():
    frame = pd.DataFrame([[1, None], [0, 1]], columns=["a", "a"], dtype=object)
    np.testing.assert_array_equal(read_truth(frame, NAN).unknown, [[False, True], [False, False]])


def test_the_tables_that_were_given_stay_as_they_are():
    given = np.where(UNKNOWN, -1, VALUES)
    thin = sparse.csr_array(given)
    for table in (given, thin):
        read_truth(table, -1)
    np.testing.assert_array_equal(given, np.where(UNKNOWN, -1, VALUES))
    np.testing.assert_array_equal(thin.toarray(), given)


@pytest.mark.parametrize("kind", TABLES)
def test_unknown_entries_are_errors_that_name_the_keyword(kind):
    row = r"row [05]( \(index 0\))?, column 1( \(label 'sea'\))?"
    message = rf"y_true: {row} is nan; the truth is 0 or 1; pass missing_values=np.nan if that stands for an unknown"
    with pytest.raises(InvalidLabels, match=message):
        read_truth(TABLES[kind])
    with pytest.raises(InvalidLabels, match=rf"{row} is nan; the truth is 0 or 1$"):
        read_truth(TABLES[kind], -1)


@pytest.mark.parametrize(
    ("table", "missing_values", "message"),
    [
        ([[0, -1]], None, r"row 0, column 1 is -1; the truth is 0 or 1; pass missing_values=-1 if"),
        (sparse.csr_array([[0, -1]]), None, r"row 0, column 1 is -1; the truth is 0 or 1; pass missing_values=-1 if"),
        ([[0, -1]], NAN, r"row 0, column 1 is -1; the truth is 0 or 1$"),
        ([[0, 2]], NAN, r"row 0, column 1 is 2; the truth is 0 or 1$"),
        ([[0, 2]], None, r"row 0, column 1 is 2; the truth is 0 or 1$"),
        ([[None, "1"]], NAN, r"row 0, column 1 is '1'; the truth is 0 or 1$"),
        (pd.DataFrame({"a": [1, None], "b": ["s", None]}), NAN, "column 1 .* is 's'; .* .pass the label columns only"),
        ([["1", "0"]], NAN, "expected an n × m table of numbers, got list of dtype <U1"),
        ([[1, None], [1]], NAN, "y_true: cannot be read as an array"),
    ],
)
def test_what_is_neither_0_nor_1_nor_unknown(table, missing_values, message):
    with pytest.raises(InvalidLabels, match=message):
        read_truth(table, missing_values)


@pytest.mark.parametrize("missing_values", ["nan", 0, 1, True, -2, np.inf, [NAN], pd.NA])
def test_other_values_cannot_stand_for_unknown(missing_values):
    with pytest.raises(InvalidParameter, match=r"missing_values is .*; expected None \(every label is known\), np.nan"):
        read_truth(VALUES, missing_values)


def test_names_and_shapes_are_those_of_the_probabilities():
    p = Probabilities(pd.DataFrame(np.full((3, 3), 0.5), ["x", "y", "z"], NAMES))
    assert read_partial_truth(NUMBERS, NAN, p).unknown.sum() == 4
    with pytest.raises(InvalidLabels, match=r"y_true has shape \(2, 3\); the probabilities have \(3, 3\)"):
        read_partial_truth(NUMBERS[:2], NAN, p)
    with pytest.raises(InvalidLabels, match="y_true has the same labels in another order"):
        read_partial_truth(FRAME.set_axis(["x", "y", "z"]).astype(object)[["sea", "sky", "sun"]], NAN, p)
    with pytest.raises(InvalidLabels, match="y_true has the same rows in another order"):
        read_partial_truth(FRAME.set_axis(["y", "x", "z"]).astype(object), NAN, p)


P = Probabilities(pd.DataFrame(np.full((3, 2), 0.5), ["x", "y", "z"], ["a", "b"]))


def test_weights_of_rows_and_of_entries():
    rows, entries = [1.0, 2.5, 0.0], [[1, 2], [0, 3.5], [0, 0]]
    assert read_sample_weight(None, P) is None
    for vector in (rows, tuple(rows), np.array(rows, np.float32), pd.Series(rows, ["x", "y", "z"]), pl.Series(rows)):
        np.testing.assert_array_equal(read_sample_weight(vector, P), rows)
    framed = pd.DataFrame(entries, ["x", "y", "z"], ["a", "b"])
    for table in (entries, np.array(entries), framed, sparse.csc_array(entries)):
        np.testing.assert_array_equal(read_sample_weight(table, P), entries)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"sample_weight has shape \(2,\); expected \(3,\) or \(3, 2\)"),
        (np.ones((3, 3)), r"sample_weight has shape \(3, 3\); expected \(3,\) or \(3, 2\)"),
        (np.ones((3, 1)), r"sample_weight has shape \(3, 1\); expected \(3,\) or \(3, 2\)"),
        (2.0, "sample_weight: expected an n × m table"),
        ([1, -1, 1], r"sample_weight: row 1 \(index 'y'\) is -1.0; a weight is a finite number ≥ 0"),
        ([1, np.inf, 1], r"sample_weight: row 1 \(index 'y'\) is inf; a weight"),
        ([[1, 1], [1, 1], [1, NAN]], r"sample_weight: row 2 \(index 'z'\), column 1 \(label 'b'\) is nan; a weight"),
        ([0, 0, 0], "all weights are 0"),
        (["a", "b", "c"], "sample_weight: expected an n × m table of numbers"),
    ],
)
def test_invalid_weights(weights, message):
    with pytest.raises(InvalidParameter, match=message):
        read_sample_weight(weights, P)


def test_weights_are_about_the_same_rows_and_labels():
    with pytest.raises(InvalidLabels, match="sample_weight has the same rows in another order: row 0 is 'y'"):
        read_sample_weight(pd.Series([1, 2, 3], ["y", "x", "z"]), P)
    with pytest.raises(InvalidLabels, match="sample_weight has other labels: column 1 is 'c'"):
        read_sample_weight(pd.DataFrame(np.ones((3, 2)), ["x", "y", "z"], ["a", "c"]), P)
