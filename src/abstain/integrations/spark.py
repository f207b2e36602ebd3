"""Decisions on a Spark DataFrame: each Arrow batch of rows is decided where it is, on the executors.

Only this file knows Spark. What it decides, and every word on what is wrong with a probability, is `abstain.decide`'s.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from abstain._core.decision import decide_table
from abstain._core.losses import Loss, LossLike, as_loss
from abstain._core.penalties import Penalty, PenaltyLike, as_penalty
from abstain._core.prediction import ABSTAIN
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Axes, Table
from abstain._utils.errors import InvalidDataset, InvalidLabels, InvalidProbabilities
from abstain._utils.extras import missing
from abstain.streams._formats.columns import stack_columns
from abstain.streams._formats.names import INDEX_NAMES, positions, require_unique

try:
    import pyarrow as pa
    from pyspark import TaskContext
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.functions import col
    from pyspark.sql.types import (
        ArrayType,
        BooleanType,
        ByteType,
        DataType,
        DateType,
        DoubleType,
        FloatType,
        IntegerType,
        IntegralType,
        NumericType,
        StringType,
        StructField,
        StructType,
        UserDefinedType,
    )
except ImportError as reason:
    raise missing("abstain.integrations.spark needs pyspark and pyarrow", "pyspark", "pyarrow") from reason

Batch: TypeAlias = Any  # a pyarrow.RecordBatch

__all__ = ["decide"]

FLOATS = FloatType, DoubleType
NUMBERS = NumericType, BooleanType

SHOWN_COLUMNS, SHOWN_LETTERS = 3, 40


def __dir__() -> list[str]:
    return __all__


def decide(
    frame: DataFrame,
    loss: LossLike = "hamming",
    penalty: PenaltyLike = 0.1,
    *,
    labels: Sequence[str] | None = None,
    column: str | None = None,
    expected_loss: str | None = None,
) -> DataFrame:
    """`abstain.decide` on each row of a Spark DataFrame: the same answers, lazily, in the same place.

    Every column of probabilities is replaced by the answers of its label: 1, 0, or null where it is left open (for the
    rank loss the position, 0 = first, or null). All other columns pass through as they are. Nothing is computed until
    Spark is asked for the result; the executors need `abstain`, as they need any package.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        A column of numbers for each label, or (`column`) one column with all of them. A value that is missing or no
        probability fails the job with a message that names the row, the label and the value;
        ``frame.dropna(subset=labels)`` leaves rows with gaps out.
    loss, penalty
        As for `abstain.decide`. Costs per label are in the order of `labels`.
    labels : names, optional
        Which columns hold probabilities. By default all columns of type float and double. A whole number or a decimal
        is not taken for a probability unless it is named: if there is such a column and it is not called "id" or
        "index", then the labels must be named. With `column`, what its entries are called.
    column : name, optional
        A column with all probabilities of a row: an array of numbers, or a vector of Spark's ML library. It is replaced
        by an array of answers, or, if `labels` names its entries, by one column for each label.
    expected_loss : name, optional
        A further column of this name, the last one, with the expected generalised loss of each row.

    Returns
    -------
    pyspark.sql.DataFrame
        Answers are tinyint, positions are int, both nullable.

    Examples
    --------
    >>> import abstain.integrations.spark
    >>> frame = spark.createDataFrame([(7, 0.9375, 0.5), (8, 0.375, 0.125)], "id int, sky double, sea double")
    >>> abstain.integrations.spark.decide(frame, penalty=0.25, expected_loss="expected").show()
    +---+----+----+--------+
    | id| sky| sea|expected|
    +---+----+----+--------+
    |  7|   1|NULL|  0.3125|
    |  8|NULL|   0|   0.375|
    +---+----+----+--------+
    <BLANKLINE>
    """
    if not isinstance(frame, DataFrame):
        raise TypeError(f"frame is of type {type(frame).__name__}; expected a Spark DataFrame")
    require_unique(frame.columns)
    fields = frame.schema.fields
    source = _find_columns(fields, labels) if column is None else _find_array(fields, column, labels)
    task = _Task(source, as_loss(loss), as_penalty(penalty), _telling(fields, source), expected_loss is not None)
    task.check()
    replaced = source.fields(IntegerType() if task.loss.gives_rankings else ByteType())
    result = [new for at, field in enumerate(fields) for new in replaced.get(at, [field])]
    if expected_loss is not None:
        result.append(StructField(expected_loss, DoubleType()))
    require_unique([field.name for field in result])

    # mapInArrow looks columns up by name, and would take a dot in a name for a part of a struct.
    numbered = frame.toDF(*map(str, range(len(fields))))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")  # which is not used here
        floats = {str(at): _as_floats(col(str(at)), fields[at].dataType) for at in replaced}
        return numbered.withColumns(floats).mapInArrow(task.decide, StructType(result))


@dataclass(frozen=True)
class _Rows(Axes):
    """How errors name the rows of a batch: by their number within the partition, and by what other columns say."""

    first: int = 0
    others: tuple[tuple[str, Any], ...] = ()  # names and Arrow columns

    def row(self, i: int) -> str:
        """The number, and what else is known of the row."""
        number = f"row {self.first + i} of partition {_context().partitionId()}"
        known = [f"{name} {_shown(column[i].as_py())}" for name, column in self.others]
        return f"{number} ({', '.join(known)})" if known else number

    def label(self, j: int) -> str:
        """The name, or which entry of the array it is."""
        return f"entry {j}" if self.label_names is None else f"label {self.label_names[j]!r}"

    def cell(self, j: int, i: int) -> str:
        """How an error message names what row i has for label j."""
        return f"{self.row(i)}, {self.label(j)}"

    def require_all(self, values: Any, where: Callable[[int], str]) -> None:
        """Raise `InvalidProbabilities` if something is missing."""
        if values.null_count:
            i = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
            raise InvalidProbabilities(f"probabilities: {where(i)} is null; a probability is a number from 0 to 1")


@dataclass(frozen=True)
class _Columns:
    """One column for each label."""

    at: tuple[int, ...]
    label_names: tuple[str, ...]

    def fields(self, answer: DataType) -> dict[int, list[StructField]]:
        """What becomes of which columns."""
        return {at: [StructField(name, answer)] for at, name in zip(self.at, self.label_names, strict=True)}

    def read(self, batch: Batch, rows: _Rows, width: int | None) -> NDArray[Any]:
        """The probabilities of a batch, n × m."""
        columns = [batch.column(at) for at in self.at]
        for j, column in enumerate(columns):
            rows.require_all(column, partial(rows.cell, j))
        return stack_columns(columns, rows.cell)

    def write(self, codes: NDArray[Any]) -> dict[int, list[Any]]:
        """The answers as Arrow columns, by what they replace."""
        return {at: [column] for at, column in zip(self.at, _columns(codes), strict=True)}


@dataclass(frozen=True)
class _Array:
    """One column with the probabilities of all labels: answered by one column, too, unless the labels have names."""

    at: int
    name: str
    label_names: tuple[str, ...] | None

    def fields(self, answer: DataType) -> dict[int, list[StructField]]:
        """What becomes of the column."""
        if self.label_names is None:
            return {self.at: [StructField(self.name, ArrayType(answer))]}
        return {self.at: [StructField(name, answer) for name in self.label_names]}

    def read(self, batch: Batch, rows: _Rows, width: int | None) -> NDArray[Any]:
        """The probabilities of a batch, n × m; m is the width, or that of the first row."""
        arrays = batch.column(self.at)
        rows.require_all(arrays, lambda i: f"{rows.row(i)}, column {self.name!r}")
        lengths = arrays.value_lengths().to_numpy()
        m = int(lengths[0]) if width is None else width
        if (lengths != m).any():
            i = int(np.argmax(lengths != m))
            expected = "as many as rows before it" if self.label_names is None else "one for each label"
            raise InvalidProbabilities(
                f"probabilities: {rows.row(i)} has {lengths[i]} in column {self.name!r}; expected {m}, {expected}"
            )
        flat = arrays.flatten()
        rows.require_all(flat, lambda k: rows.cell(k % m, k // m))
        values: NDArray[Any] = flat.to_numpy().reshape(len(arrays), m)
        return values

    def write(self, codes: NDArray[Any]) -> dict[int, list[Any]]:
        """The answers as one Arrow column of lists, or as one column for each label."""
        if self.label_names is not None:
            return {self.at: _columns(codes)}
        n, m = codes.shape
        offsets = np.arange(n + 1, dtype=np.int32) * np.int32(m)
        return {self.at: [pa.ListArray.from_arrays(offsets, _with_gaps(codes.ravel()))]}


@dataclass(frozen=True)
class _Task:
    """What an executor does with a partition."""

    source: _Columns | _Array
    loss: Loss
    penalty: Penalty
    telling: tuple[tuple[int, str], ...]  # positions and names of the columns by which errors tell rows apart
    with_expected_loss: bool

    def check(self) -> None:
        """Refuse here, not on the executors, a loss or a penalty that does not fit the labels."""
        if (names := self.source.label_names) is not None:
            decide_table(Probabilities(Table(np.empty((0, len(names))), names)), self.loss, self.penalty)

    def decide(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The batches of a partition, each with its answers; of a mistake in the data Spark shows the message alone."""
        try:
            yield from self._decided(batches)
        except InvalidProbabilities as mistake:
            raise mistake.with_traceback(None) from None

    def _decided(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        os.environ.setdefault("ABSTAIN_NUM_THREADS", str(_context().cpus()))  # the other cores have their own tasks
        names = self.source.label_names
        width, first = None if names is None else len(names), 0
        for batch in batches:
            if batch.num_rows == 0:
                continue
            rows = _Rows(names, first=first, others=tuple((name, batch.column(at)) for at, name in self.telling))
            table = Probabilities(self.source.read(batch, rows, width))
            table.axes = rows
            prediction = decide_table(table, self.loss, self.penalty)
            answers = self.source.write(prediction.codes)
            columns = [new for at, column in enumerate(batch.columns) for new in answers.get(at, [column])]
            if self.with_expected_loss:
                columns.append(pa.array(prediction.expected_loss))
            yield pa.RecordBatch.from_arrays(columns, [str(at) for at in range(len(columns))])
            width, first = table.n_labels, first + batch.num_rows


def _find_columns(fields: Sequence[StructField], labels: Sequence[str] | None) -> _Columns:
    names = _guess_labels(fields) if labels is None else _as_names(labels)
    at = positions(names, [field.name for field in fields])
    for field in (fields[j] for j in at):
        if not isinstance(field.dataType, NUMBERS):
            hint = " (a column of arrays is passed as column=)" if _holds_arrays(field.dataType) else ""
            raise InvalidDataset(f"{_described(field)}, expected numbers{hint}")
    return _Columns(tuple(at), names)


def _guess_labels(fields: Sequence[StructField]) -> tuple[str, ...]:
    """All floats; a whole number may be anything, so it must not be there unless its name tells."""
    for field in fields:
        is_number, is_float = isinstance(field.dataType, NumericType), isinstance(field.dataType, FLOATS)
        if is_number and not is_float and field.name not in INDEX_NAMES:
            raise InvalidDataset(f"{_described(field)} and may be a label or not; name the labels with labels=")
    names = tuple(field.name for field in fields if isinstance(field.dataType, FLOATS))
    if not names:
        raise InvalidDataset(
            "there are no columns of float or double; name the labels with labels=, or a column of arrays with column="
        )
    return names


def _find_array(fields: Sequence[StructField], column: str, labels: Sequence[str] | None) -> _Array:
    (at,) = positions([column], [field.name for field in fields])
    if not _holds_arrays(fields[at].dataType):
        raise InvalidDataset(f"{_described(fields[at])}, expected arrays of numbers, or vectors")
    return _Array(at, column, None if labels is None else _as_names(labels))


def _as_names(labels: Sequence[str]) -> tuple[str, ...]:
    if isinstance(labels, str):
        raise InvalidLabels(f"labels is {labels!r}; expected a list of names")
    require_unique(labels)
    return tuple(labels)


def _described(field: StructField) -> str:
    return f"column {field.name!r} has type {field.dataType.simpleString()}"


def _is_vector(kind: DataType) -> bool:
    return isinstance(kind, UserDefinedType) and kind.simpleString() == "vector"


def _holds_arrays(kind: DataType) -> bool:
    return _is_vector(kind) or (isinstance(kind, ArrayType) and isinstance(kind.elementType, NUMBERS))


def _as_floats(column: Column, kind: DataType) -> Column:
    """Floats and doubles stay what they are; Spark turns other numbers and vectors into doubles."""
    if _is_vector(kind):
        from pyspark.ml.functions import vector_to_array  # takes a while, and executors do not need it

        return vector_to_array(column)
    if isinstance(kind, ArrayType):
        return column if isinstance(kind.elementType, FLOATS) else column.cast(ArrayType(DoubleType()))
    return column if isinstance(kind, FLOATS) else column.cast(DoubleType())


def _telling(fields: Sequence[StructField], source: _Columns | _Array) -> tuple[tuple[int, str], ...]:
    """Columns that tell rows apart, those first that are called as such columns are."""
    taken = source.fields(ByteType())
    short = [
        (at, field.name)
        for at, field in enumerate(fields)
        if at not in taken and isinstance(field.dataType, IntegralType | StringType | DateType)
    ]
    return tuple(sorted(short, key=lambda one: one[1] not in INDEX_NAMES)[:SHOWN_COLUMNS])


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None  # there is one in every task
    return context


def _columns(codes: NDArray[Any]) -> list[Any]:
    return [_with_gaps(column) for column in np.ascontiguousarray(codes.T)]


def _with_gaps(codes: NDArray[Any]) -> Any:
    """An Arrow array of answers, null where abstained."""
    return pa.array(codes, mask=codes == ABSTAIN)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_LETTERS else f"{text[:SHOWN_LETTERS]}…"
