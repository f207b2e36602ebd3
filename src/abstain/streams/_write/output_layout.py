"""The layout of decisions or probabilities in an output: wide, or long if they are sparse."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from abstain._core.prediction import ABSTAIN
from abstain.streams._arrow_kernels import split_columns
from abstain.streams._formats.array_files import ArraySpec
from abstain.streams._formats.columns import arrow, index_name
from abstain.streams._formats.names import INDEX_NAMES
from abstain.streams._read.batches import Batch
from abstain.streams._read.sources import Sources


class Values(NamedTuple):
    """What an output holds for each row and label."""

    column: str
    """What long tables call the column."""
    dtype: np.dtype[Any]


ANSWERS = Values("answer", np.dtype(np.int8))
POSITIONS = Values("position", np.dtype(np.int32))
PROBABILITIES = Values("probability", np.dtype(np.float64))


@dataclass(frozen=True)
class OutputLayout:
    """The columns of an output: one for each label, or those of a long table if the values are sparse.

    Long tables list what is stored: of answers, what is answered 1 and abstentions. Where rows have no names and need
    some, they are numbered.
    """

    labels: tuple[str, ...]
    labels_named: bool
    id_name: str | None
    id_type: Any
    rows_named: bool
    values: Values
    is_sparse: bool

    @classmethod
    def of(cls, sources: Sources, values: Values, *, numbered: bool = False) -> "OutputLayout":
        """Return the layout for values for the rows of some files; if `numbered`, rows without ids get numbers."""
        names = sources.label_names
        labels = tuple(str(j) for j in range(sources.n_labels)) if names is None else names
        id_name, id_type = sources.id_name, sources.id_type
        rows_named = numbered or id_type is not None
        if id_type is None and (numbered or sources.is_sparse or labels[0] in INDEX_NAMES):
            id_type = arrow().int64()
        if id_type is not None and (id_name is None or id_name in labels):
            id_name = index_name(labels)
        return cls(labels, names is not None, id_name, id_type, rows_named, values, sources.is_sparse)

    @property
    def array_spec(self) -> ArraySpec:
        """What a file of arrays is going to hold."""
        names, id_type = self.labels if self.labels_named else None, self.id_type if self.rows_named else None
        return ArraySpec(len(self.labels), self.values.dtype, names, id_type, self.is_sparse)

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema of the output."""
        pa = arrow()
        ids, kind = [] if self.id_type is None else [(self.id_name, self.id_type)], self._arrow_type
        if self.is_sparse:
            return pa.schema([*ids, ("label", pa.string()), (self.values.column, kind)])
        return pa.schema([*ids, *((name, kind) for name in self.labels)])

    def ids(self, batch: Batch) -> Any:
        """Return the names of the rows, or their numbers, as an Arrow array."""
        return (batch.row_numbers() if batch.ids is None else batch.ids).array

    def columns(self, ids: Any, values: Any) -> Any:
        """Return values for some rows as a record batch, with null for an abstention (−1)."""
        arrays = self._long_columns(ids, values) if self.is_sparse else self._wide_columns(ids, values)
        return arrow().record_batch(arrays, schema=self.schema)

    @cached_property
    def _label_texts(self) -> Any:
        return arrow().array(self.labels, arrow().string())

    @property
    def _arrow_type(self) -> Any:
        return arrow().from_numpy_dtype(self.values.dtype)

    def _wide_columns(self, ids: Any, values: Any) -> list[Any]:
        pa, (n, m), kind = arrow(), values.shape, self._arrow_type
        by_label, validity = np.empty((m, n), values.dtype), np.empty((m, -(-n // 8)), np.uint8)
        n_abstained = np.empty(m, np.int64)
        split_columns(values, by_label, validity, n_abstained)
        columns = [] if self.id_type is None else [ids]
        for j in range(m):
            buffers = [pa.py_buffer(validity[j]), pa.py_buffer(by_label[j])]
            columns.append(pa.Array.from_buffers(kind, n, buffers, int(n_abstained[j])))
        return columns

    def _long_columns(self, ids: Any, values: sparse.csr_array) -> list[Any]:
        pa = arrow()
        rows = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
        names = self._label_texts.take(pa.array(values.indices))
        listed = pa.array(values.data, mask=values.data == ABSTAIN)
        return [ids.take(pa.array(rows)), names, listed]
