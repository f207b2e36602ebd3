"""Spark decides as `abstain.decide` does, bit for bit: on a real session of two cores, in one JVM for all tests."""

import doctest
import os
import re
import shutil
import sys
from decimal import Decimal
from functools import reduce
from importlib import import_module

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pytest
from tests.support.cases import LOSS_CASES, PENALTY_CASES, make_loss, make_penalty, random_probabilities

import abstain

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install pyspark pyarrow")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java 17 or later, and there is no java here", allow_module_level=True)

from pyspark import SparkContext
from pyspark.errors import PythonException
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import DataFrame, SparkSession, functions as sql
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

import abstain.integrations.spark

N, M = 60, 5
P = random_probabilities(N, M)
NAMES = ["sky", "sea", "sun", "sand", "ship"]


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.memory", "512m")
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")  # short tests: start soon, not run fast
            .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", "7")  # several batches for each partition
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        gateway = session.sparkContext._gateway
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # which ends the JVM
        gateway.proc.wait()
        SparkContext._gateway = SparkContext._jvm = None


def wide(spark, p=P):
    """An id and a column for each label, in two partitions."""
    table = pa.table({"id": np.arange(len(p)), **{name: p[:, j] for j, name in enumerate(NAMES)}})
    return spark.createDataFrame(table)


def arrays(spark, p=P):
    """An id and a column of arrays, in two partitions."""
    return wide(spark, p).select("id", sql.array(*NAMES).alias("p"))


def as_codes(rows):
    return [[-1 if code is None else code for code in row] for row in rows]


def assert_same(table, local):
    """The same answers and the same `expected` losses, in the order of the ids."""
    table = table.sort_by("id")
    codes = np.column_stack([table[name].fill_null(-1).to_numpy() for name in NAMES])
    assert codes.dtype == local.codes.dtype
    np.testing.assert_array_equal(codes, local.codes)
    np.testing.assert_array_equal(table["expected"].to_numpy(), local.expected_loss)


def assert_all_same(frame, cases):
    """Many decisions in one job, which takes little longer than one of them."""
    decided = (
        abstain.integrations.spark.decide(frame, loss, penalty, expected_loss="expected").withColumn("case", sql.lit(k))
        for k, (loss, penalty) in enumerate(cases)
    )
    together = reduce(DataFrame.union, decided).toArrow()
    for k, (loss, penalty) in enumerate(cases):
        assert_same(together.filter(pa.compute.equal(together["case"], k)), abstain.decide(P, loss, penalty))


@pytest.mark.parametrize("ranks", [False, True])
def test_every_loss(spark, ranks):
    losses = [loss for case in LOSS_CASES if (loss := make_loss(case, M)).gives_rankings == ranks]
    assert_all_same(wide(spark), [(loss, abstain.Concave(0.2)) for loss in losses])


def test_every_penalty(spark):
    assert_all_same(wide(spark), [("hamming", make_penalty(case, M)) for case in PENALTY_CASES])


def test_labels_are_taken_in_the_order_they_are_named(spark):
    some, at = ["sun", "sky", "ship"], [2, 0, 4]
    costs = abstain.PerLabel([0.05, 0.2, 0.4])
    result = abstain.integrations.spark.decide(wide(spark), penalty=costs, labels=some)
    assert result.columns == ["id", *NAMES]
    rows = result.collect()
    assert (
        as_codes([row[name] for name in some] for row in rows)
        == abstain.decide(P[:, at], penalty=costs).labels.tolist()
    )
    assert [[row.sea, row.sand] for row in rows] == P[:, [1, 3]].tolist()


def test_single_precision_is_read_as_it_is(spark):
    single = P.astype(np.float32)
    single[0, :2] = np.float32([1.0000002, -2e-7])  # rounding that is forgiven in single precision
    result = abstain.integrations.spark.decide(wide(spark, single), expected_loss="expected")
    assert_same(result.toArrow(), abstain.decide(single))


def test_other_numbers_become_double(spark):
    hundredths = np.round(100 * P).astype(int)
    rows = [
        (i, Decimal(int(a)) / 100, bool(b > 50), int(c > 50), float(d) / 100, Decimal(int(e)) / 100)
        for i, (a, b, c, d, e) in enumerate(hundredths)
    ]
    schema = "id long, sky decimal(3,2), sea boolean, sun bigint, sand double, ship decimal(38,18)"
    result = abstain.integrations.spark.decide(
        spark.createDataFrame(rows, schema), "f1", 0.05, labels=NAMES, expected_loss="expected"
    )
    assert_same(
        result.toArrow(), abstain.decide(np.array([[float(value) for value in row[1:]] for row in rows]), "f1", 0.05)
    )


def test_everything_else_stays_as_and_where_it_is(spark):
    schema = StructType(
        [
            StructField("when.it was", StringType(), True, {"comment": "a dot, a space, and a note"}),
            StructField("sky", FloatType(), False, {"comment": "a probability"}),
            StructField("id", LongType(), False),
            StructField("sea", DoubleType()),
            StructField("tags", ArrayType(StringType())),
            StructField("features", VectorUDT()),
        ]
    )
    rows = [
        ("noon", 0.5, 1, 0.9, ["a", None], Vectors.dense(1.0, 2.0)),
        (None, 0.25, 2, 0.2, None, Vectors.sparse(2, {1: 3.0})),
    ]
    frame = (
        spark.createDataFrame(rows, schema)
        .withColumn("at", sql.timestamp_micros(sql.lit(1_700_000_000_123_456)))
        .withColumn("map", sql.create_map(sql.lit("x"), sql.struct(sql.lit(1).alias("y"))))
        .withColumn("nothing", sql.lit(None))
    )
    result = abstain.integrations.spark.decide(frame, penalty=0.3, expected_loss="expected")
    fields = {field.name: field for field in frame.schema.fields}
    fields |= {name: StructField(name, ByteType()) for name in ("sky", "sea")}
    assert result.schema.fields == [*fields.values(), StructField("expected", DoubleType())]
    before, after = frame.collect(), result.collect()
    kept = [name for name in frame.columns if name not in ("sky", "sea")]
    assert [[row[name] for name in kept] for row in after] == [[row[name] for name in kept] for row in before]
    assert [(row.sky, row.sea) for row in after] == [(None, 1), (0, 0)]


@pytest.mark.parametrize(
    ("kind", "dtype", "loss"),
    [("float", np.float32, "rank"), ("double", np.float64, "jaccard"), ("decimal(38,38)", np.float64, "hamming")],
)
def test_a_column_of_arrays(spark, kind, dtype, loss):
    p = P.astype(dtype) if kind != "decimal(38,38)" else np.where(P == 1, 0.5, P)  # it holds numbers below 1
    frame = arrays(spark, p).withColumn("p", sql.col("p").cast(f"array<{kind}>"))
    local = abstain.decide(p, loss, abstain.Concave(0.3))
    options = {"column": "p", "expected_loss": "expected"}
    result = abstain.integrations.spark.decide(frame, loss, abstain.Concave(0.3), **options)
    answer = IntegerType() if loss == "rank" else ByteType()
    assert result.schema.fields[1:] == [StructField("p", ArrayType(answer)), StructField("expected", DoubleType())]
    rows = result.collect()
    assert as_codes(row.p for row in rows) == local.codes.tolist()
    assert [row.expected for row in rows] == local.expected_loss.tolist()
    named = abstain.integrations.spark.decide(frame, loss, abstain.Concave(0.3), labels=NAMES, **options)
    assert named.columns == ["id", *NAMES, "expected"]
    assert_same(named.toArrow(), local)


def test_a_column_of_vectors(spark):
    def vector(i, p):
        return Vectors.dense(p) if i % 2 else Vectors.sparse(M, np.flatnonzero(p), p[p != 0])

    frame = spark.createDataFrame([(i, vector(i, p)) for i, p in enumerate(P)], ["id", "probability"])
    result = abstain.integrations.spark.decide(
        frame, "f1", column="probability", labels=NAMES, expected_loss="expected"
    )
    assert_same(result.toArrow(), abstain.decide(P, "f1"))


@pytest.mark.parametrize(("make", "options"), [(wide, {}), (arrays, {"column": "p"})])
def test_empty_partitions_and_empty_frames(spark, make, options):
    scattered = abstain.integrations.spark.decide(make(spark, P[:3]).repartition(8), **options)
    answers = [row[1] if options else row[1:] for row in sorted(scattered.collect())]
    assert as_codes(answers) == abstain.decide(P[:3]).labels.tolist()
    nothing = abstain.integrations.spark.decide(make(spark, P[:0]), **options)
    assert nothing.columns == scattered.columns
    assert nothing.collect() == []


def test_batches_of_any_size(spark):
    p = random_probabilities(30_000, M)
    size = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(size)
    try:
        spark.conf.set(size, "10000")
        frame = wide(spark, p)
        assert_same(
            abstain.integrations.spark.decide(frame, "subset", expected_loss="expected").toArrow(),
            abstain.decide(p, "subset"),
        )
        spark.conf.set(size, "0")  # all rows of a partition at once
        assert_same(
            abstain.integrations.spark.decide(frame, "subset", expected_loss="expected").toArrow(),
            abstain.decide(p, "subset"),
        )
    finally:
        spark.conf.set(size, before)


def test_tasks_keep_to_their_core(spark, monkeypatch):
    monkeypatch.delenv("ABSTAIN_NUM_THREADS", raising=False)

    def penalty(a):
        return 0.1 * a * int(os.environ.get("ABSTAIN_NUM_THREADS", "7"))

    answers = [row[1:] for row in abstain.integrations.spark.decide(wide(spark), penalty=penalty).collect()]
    assert as_codes(answers) == abstain.decide(P, penalty=0.1).labels.tolist()


# A task that fails takes its Python process along, and a new one takes seconds to start: one partition is enough here.


def anonymous(spark):
    """Arrays without an id, one of them with a bad entry."""
    p = P.copy()
    p[41, 2] = np.nan
    return arrays(spark, p).select("p").coalesce(1)


def described(spark):
    """A row with a bad value, and several columns that tell of it."""
    schema = "a string, b string, c int, id int, sky double"
    return spark.createDataFrame([("x" * 100, None, 3, 4, 1.5)], schema).coalesce(1)


def replaced(name, expression):
    """A frame in which row 41 has something else in this column."""

    def prepare(spark):
        frame = arrays(spark) if name == "p" else wide(spark)
        other = sql.when(sql.col("id") == 41, sql.expr(expression)).otherwise(sql.col(name))
        return frame.withColumn(name, other).coalesce(1)

    return prepare


@pytest.mark.parametrize(
    ("prepare", "options", "message"),
    [
        (
            described,
            {"labels": ["sky"]},
            f"row 0 of partition 0 (id 4, a '{'x' * 39}…, b None), label 'sky' is 1.5; a probability is a number",
        ),
        (anonymous, {"column": "p"}, "row 41 of partition 0, entry 2 is nan; a probability is a number from 0 to 1"),
        (replaced("sun", "null"), {}, "(id 41), label 'sun' is null; a probability is a number from 0 to 1"),
        (replaced("p", "null"), {"column": "p"}, "(id 41), column 'p' is null; a probability"),
        (
            replaced("p", "array(0.5D, 0.5D, 0.5D, null, 0.5D)"),
            {"column": "p", "labels": NAMES},
            "(id 41), label 'sand' is null; a probability",
        ),
        (
            replaced("p", "slice(p, 1, 3)"),
            {"column": "p", "labels": NAMES},
            "(id 41) has 3 in column 'p'; expected 5, one for each label",
        ),
        (
            replaced("p", "slice(p, 1, 3)"),
            {"column": "p"},
            "(id 41) has 3 in column 'p'; expected 5, as many as rows before it",
        ),
    ],
)
def test_what_is_no_probability_is_named_once_it_is_asked_for(spark, prepare, options, message):
    result = abstain.integrations.spark.decide(prepare(spark), **options)  # lazy: nothing has been looked at
    with pytest.raises(PythonException, match=re.escape("InvalidProbabilities: probabilities: row ")) as caught:
        result.collect()
    assert message in str(caught.value)


def test_rows_with_gaps_can_be_left_out(spark):
    frame = replaced("sun", "null")(spark).dropna(subset=NAMES)
    result = abstain.integrations.spark.decide(frame, expected_loss="expected")
    assert_same(result.toArrow(), abstain.decide(np.delete(P, 41, axis=0)))


@pytest.mark.parametrize(
    ("schema", "options", "error", "message"),
    [
        (
            "age int, sky double",
            {},
            abstain.InvalidDataset,
            "column 'age' has type int and may be a label or not; name",
        ),
        ("price decimal(9,2), sky double", {}, abstain.InvalidDataset, "column 'price' has type decimal(9,2) and may"),
        ("id int, name string", {}, abstain.InvalidDataset, "there are no columns of float or double; name the labels"),
        ("sky double", {"labels": ["sly"]}, abstain.InvalidDataset, "there is no column 'sly'; did you mean 'sky'?"),
        ("sky double", {"labels": "sky"}, abstain.InvalidLabels, "labels is 'sky'; expected a list of names"),
        ("sky double", {"labels": ["sky", "sky"]}, abstain.InvalidDataset, "two columns are called 'sky'"),
        ("sky double", {"labels": []}, abstain.InvalidLabels, "there is no label"),
        ("sky string", {"labels": ["sky"]}, abstain.InvalidDataset, "column 'sky' has type string, expected numbers"),
        ("p array<double>", {"labels": ["p"]}, abstain.InvalidDataset, "(a column of arrays is passed as column=)"),
        ("p array<string>", {"column": "p"}, abstain.InvalidDataset, "has type array<string>, expected arrays of"),
        ("p array<double>", {"column": "q"}, abstain.InvalidDataset, "there is no column 'q'"),
        ("id int, p array<double>", {"column": "p", "labels": ["id"]}, abstain.InvalidDataset, "called 'id'"),
        ("sky double, x double", {"expected_loss": "x"}, abstain.InvalidDataset, "two columns are called 'x'"),
        ("x double, x double", {}, abstain.InvalidDataset, "two columns are called 'x'"),
        ("sky double", {"loss": "hummming"}, abstain.InvalidLoss, "loss is 'hummming'; expected one of"),
        ("sky double", {"penalty": -1}, abstain.InvalidPenalty, "the cost is -1"),
        ("sky double", {"penalty": [0, 1, 2]}, abstain.InvalidPenalty, "has 3 values; 1 labels need 2"),
        ("sky double", {"loss": "f1", "penalty": abstain.PerLabel([1.0])}, abstain.InvalidPenalty, "not a sum over"),
        (
            "sky double, sea double",
            {"penalty": abstain.PerLabel(pd.Series({"sea": 0.3, "sky": 0.1}))},
            abstain.InvalidLabels,
            "the same labels in another order",
        ),
    ],
)
def test_what_does_not_fit_is_said_at_once(spark, schema, options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        abstain.integrations.spark.decide(spark.createDataFrame([], schema), **options)


def test_only_spark_frames():
    with pytest.raises(TypeError, match="frame is of type list; expected a Spark DataFrame"):
        abstain.integrations.spark.decide([[0.5]])


def test_the_example(spark):
    (example,) = doctest.DocTestFinder().find(abstain.integrations.spark.decide, "decide", globs={"spark": spark})
    assert doctest.DocTestRunner().run(example) == (0, 3)


def test_without_pyspark(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "abstain.integrations.spark")
    with pytest.raises(
        ImportError, match=r"abstain\.integrations\.spark needs pyspark and pyarrow: pip install pyspark pyarrow"
    ):
        import_module("abstain.integrations.spark")
