"""Decisions on a Spark DataFrame: each Arrow batch of rows is decided where it is, on the executors.

Only this file knows Spark. Decisions, and errors about probabilities, are those of `abstain.decide`.
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

RecordBatch: TypeAlias = Any  # of pyarrow, which has no types

__all__ = ["decide"]

FLOAT_TYPES = FloatType, DoubleType
NUMBER_TYPES = NumericType, BooleanType

MAX_SHOWN_COLUMNS = 3
"""Columns by which an error identifies a row."""
MAX_SHOWN_CHARACTERS = 40
"""Length of a value in an error."""


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
    """Decide on each row of a Spark DataFrame, as `abstain.decide` does, where the row is.

    Every column of probabilities is replaced by the answers of its label: 1, 0, or null for an abstention (for the rank
    loss the position, 0 = first, or null). All other columns pass through as they are. Nothing is computed until
    Spark is asked for the result; the executors need `abstain`, as they need any package.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        A column of numbers for each label, or (`column`) one column with all of them. A value that is missing or no
        probability fails the job with a message that names the row, the label and the value;
        ``frame.dropna(subset=labels)`` leaves rows with gaps out.
    loss : str or Loss, default="hamming"
        As for `abstain.decide`. Costs per label are in the order of `labels`.
    penalty : float, str, Penalty or callable, default=0.1
        As for `abstain.decide`. Costs per label are in the order of `labels`.
    labels : sequence of str, optional
        Which columns hold probabilities. By default all columns of type float and double. A whole number or a decimal
        is not taken for a probability unless it is named: if there is such a column and it is not called "id" or
        "index", then the labels must be named. With `column`, what its entries are called.
    column : str, optional
        A column with all probabilities of a row: an array of numbers, or a vector of Spark's ML library. It is replaced
        by an array of answers, or, if `labels` names its entries, by one column for each label.
    expected_loss : str, optional
        The name of a further column, the last one, with the expected generalised loss of each row.

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
    task = _Task(
        source, as_loss(loss), as_penalty(penalty), _identifying_columns(fields, source), expected_loss is not None
    )
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
    """The names of rows in errors: their number within the partition, and the values of other columns."""

    first: int = 0
    """The number of the first row within the partition."""
    others: tuple[tuple[str, Any], ...] = ()
    """Names and Arrow columns that identify rows."""

    def row(self, i: int) -> str:
        """Return the number of row i, and the values that identify it."""
        number = f"row {self.first + i} of partition {_context().partitionId()}"
        known = [f"{name} {_shown(column[i].as_py())}" for name, column in self.others]
        return f"{number} ({', '.join(known)})" if known else number

    def label(self, j: int) -> str:
        """Return the name of label j, or its position in the array."""
        return f"entry {j}" if self.label_names is None else f"label {self.label_names[j]!r}"

    def cell(self, j: int, i: int) -> str:
        """Return how an error names the value of row i and label j."""
        return f"{self.row(i)}, {self.label(j)}"

    def require_no_nulls(self, values: Any, where: Callable[[int], str]) -> None:
        """Raise `InvalidProbabilities` if a value is missing."""
        if values.null_count:
            i = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
            raise InvalidProbabilities(f"probabilities: {where(i)} is null; a probability is a number from 0 to 1")


@dataclass(frozen=True)
class _Columns:
    """One column for each label."""

    at: tuple[int, ...]
    label_names: tuple[str, ...]

    def fields(self, answer: DataType) -> dict[int, list[StructField]]:
        """Return the new columns, by the position of the column that they replace."""
        return {at: [StructField(name, answer)] for at, name in zip(self.at, self.label_names, strict=True)}

    def read(self, batch: RecordBatch, rows: _Rows, width: int | None) -> NDArray[Any]:
        """Return the probabilities of a batch, n × m."""
        columns = [batch.column(at) for at in self.at]
        for j, column in enumerate(columns):
            rows.require_no_nulls(column, partial(rows.cell, j))
        return stack_columns(columns, rows.cell)

    def write(self, codes: NDArray[Any]) -> dict[int, list[Any]]:
        """Return the answers as Arrow columns, by the position of the column that they replace."""
        return {at: [column] for at, column in zip(self.at, _columns(codes), strict=True)}


@dataclass(frozen=True)
class _Array:
    """One column with the probabilities of all labels, replaced by one column unless the labels have names."""

    at: int
    name: str
    label_names: tuple[str, ...] | None

    def fields(self, answer: DataType) -> dict[int, list[StructField]]:
        """Return the new columns, by the position of the column that they replace."""
        if self.label_names is None:
            return {self.at: [StructField(self.name, ArrayType(answer))]}
        return {self.at: [StructField(name, answer) for name in self.label_names]}

    def read(self, batch: RecordBatch, rows: _Rows, width: int | None) -> NDArray[Any]:
        """Return the probabilities of a batch, n × m; m is the width, or that of the first row."""
        arrays = batch.column(self.at)
        rows.require_no_nulls(arrays, lambda i: f"{rows.row(i)}, column {self.name!r}")
        lengths = arrays.value_lengths().to_numpy()
        m = int(lengths[0]) if width is None else width
        if (lengths != m).any():
            i = int(np.argmax(lengths != m))
            expected = "as many as rows before it" if self.label_names is None else "one for each label"
            raise InvalidProbabilities(
                f"probabilities: {rows.row(i)} has {lengths[i]} in column {self.name!r}; expected {m}, {expected}"
            )
        flat = arrays.flatten()
        rows.require_no_nulls(flat, lambda k: rows.cell(k % m, k // m))
        values: NDArray[Any] = flat.to_numpy().reshape(len(arrays), m)
        return values

    def write(self, codes: NDArray[Any]) -> dict[int, list[Any]]:
        """Return the answers as one Arrow column of lists, or as one column for each label."""
        if self.label_names is not None:
            return {self.at: _columns(codes)}
        n, m = codes.shape
        offsets = np.arange(n + 1, dtype=np.int32) * np.int32(m)
        return {self.at: [pa.ListArray.from_arrays(offsets, _with_nulls(codes.ravel()))]}


@dataclass(frozen=True)
class _Task:
    """Decides on the partitions of a frame, on the executors."""

    source: _Columns | _Array
    loss: Loss
    penalty: Penalty
    identifying_columns: tuple[tuple[int, str], ...]
    """Positions and names of the columns by which errors identify rows."""
    with_expected_loss: bool

    def check(self) -> None:
        """Raise an error here, not on the executors, if the loss or the penalty does not fit the labels."""
        if (names := self.source.label_names) is not None:
            decide_table(Probabilities(Table(np.empty((0, len(names))), names)), self.loss, self.penalty)

    def decide(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Decide on the batches of a partition; Spark shows errors about the data without a traceback."""
        try:
            yield from self._decide_batches(batches)
        except InvalidProbabilities as mistake:
            raise mistake.with_traceback(None) from None

    def _decide_batches(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        os.environ.setdefault("ABSTAIN_NUM_THREADS", str(_context().cpus()))  # the other cores have their own tasks
        names = self.source.label_names
        width, first = None if names is None else len(names), 0
        for batch in batches:
            if batch.num_rows == 0:
                continue
            rows = _Rows(
                names, first=first, others=tuple((name, batch.column(at)) for at, name in self.identifying_columns)
            )
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
        if not isinstance(field.dataType, NUMBER_TYPES):
            hint = " (a column of arrays is passed as column=)" if _holds_arrays(field.dataType) else ""
            raise InvalidDataset(f"{_describe(field)}, expected numbers{hint}")
    return _Columns(tuple(at), names)


def _guess_labels(fields: Sequence[StructField]) -> tuple[str, ...]:
    """Return all columns of floats; other numbers may be labels or not, so there must be none except ids."""
    for field in fields:
        is_number, is_float = isinstance(field.dataType, NumericType), isinstance(field.dataType, FLOAT_TYPES)
        if is_number and not is_float and field.name not in INDEX_NAMES:
            raise InvalidDataset(f"{_describe(field)} and may be a label or not; name the labels with labels=")
    names = tuple(field.name for field in fields if isinstance(field.dataType, FLOAT_TYPES))
    if not names:
        raise InvalidDataset(
            "there are no columns of float or double; name the labels with labels=, or a column of arrays with column="
        )
    return names


def _find_array(fields: Sequence[StructField], column: str, labels: Sequence[str] | None) -> _Array:
    (at,) = positions([column], [field.name for field in fields])
    if not _holds_arrays(fields[at].dataType):
        raise InvalidDataset(f"{_describe(fields[at])}, expected arrays of numbers, or vectors")
    return _Array(at, column, None if labels is None else _as_names(labels))


def _as_names(labels: Sequence[str]) -> tuple[str, ...]:
    if isinstance(labels, str):
        raise InvalidLabels(f"labels is {labels!r}; expected a list of names")
    require_unique(labels)
    return tuple(labels)


def _describe(field: StructField) -> str:
    return f"column {field.name!r} has type {field.dataType.simpleString()}"


def _is_vector(kind: DataType) -> bool:
    return isinstance(kind, UserDefinedType) and kind.simpleString() == "vector"


def _holds_arrays(kind: DataType) -> bool:
    return _is_vector(kind) or (isinstance(kind, ArrayType) and isinstance(kind.elementType, NUMBER_TYPES))


def _as_floats(column: Column, kind: DataType) -> Column:
    """Convert other numbers and vectors to doubles; floats and doubles are kept."""
    if _is_vector(kind):
        from pyspark.ml.functions import vector_to_array  # takes a while, and executors do not need it

        return vector_to_array(column)
    if isinstance(kind, ArrayType):
        return column if isinstance(kind.elementType, FLOAT_TYPES) else column.cast(ArrayType(DoubleType()))
    return column if isinstance(kind, FLOAT_TYPES) else column.cast(DoubleType())


def _identifying_columns(fields: Sequence[StructField], source: _Columns | _Array) -> tuple[tuple[int, str], ...]:
    """Return positions and names of the columns by which errors identify rows, first those called "id" or "index"."""
    taken = source.fields(ByteType())
    short = [
        (at, field.name)
        for at, field in enumerate(fields)
        if at not in taken and isinstance(field.dataType, IntegralType | StringType | DateType)
    ]
    return tuple(sorted(short, key=lambda one: one[1] not in INDEX_NAMES)[:MAX_SHOWN_COLUMNS])


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None  # there is one in every task
    return context


def _columns(codes: NDArray[Any]) -> list[Any]:
    return [_with_nulls(column) for column in np.ascontiguousarray(codes.T)]


def _with_nulls(codes: NDArray[Any]) -> Any:
    """Return an Arrow array of answers, null where abstained."""
    return pa.array(codes, mask=codes == ABSTAIN)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"
