"""Tables in files of arrays: a dense array, or a CSR matrix as scipy keeps it."""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Self

import numpy as np
from scipy import sparse

from abstain._core.tables import Matrix, Table
from abstain._utils.errors import InvalidDataset
from abstain.streams._formats.array_files import ArrayFile
from abstain.streams._formats.base import ArrayFormat
from abstain.streams._formats.column_files import NUMBER_BYTES, batch_height
from abstain.streams._formats.columns import arrow
from abstain.streams._formats.input_file import InputFile
from abstain.streams._formats.names import positions, require_unique
from abstain.streams._formats.numpy_files import only_table
from abstain.streams._read.batches import Batch
from abstain.streams._read.ids import Ids, id_type
from abstain.streams._read.source_table import SourceTable


class ArrayTable(SourceTable):
    """A dense array, or a CSR matrix as scipy keeps it, with the names of its labels and rows if it has them."""

    def __init__(self, file: InputFile, id_column: str | None, labels: Sequence[str] | None) -> None:
        self.file = file
        arrays = self._open_arrays()
        self.is_sparse = "format" in arrays.names
        shape, dtype = arrays.header("data" if self.is_sparse else only_table(arrays.names))
        self.is_single_precision = dtype == np.float32
        shape = tuple(arrays["shape"].tolist()) if self.is_sparse else shape
        if self.is_sparse and (kind := arrays["format"].item()) not in (b"csr", "csr"):
            raise InvalidDataset(
                f"the matrix is stored as {bytes(kind).decode()}; expected csr, whose rows can be read"
            )
        if len(shape) != 2:
            raise InvalidDataset(f"expected a table, got {len(shape)} dimensions {shape}")
        self.n_rows, self._width = shape
        self.n_rows_estimated = self.n_rows
        names = list(map(str, arrays["label_names"])) if "label_names" in arrays.names else None
        n_ids = arrays.header("index")[0][0] if "index" in arrays.names else self.n_rows
        if (names is not None and len(names) != self._width) or n_ids != self.n_rows:
            raise InvalidDataset(f"the names of labels or rows do not fit a table of {self.n_rows} × {self._width}")
        self._columns = [str(j) for j in range(self._width)] if names is None else names
        require_unique(self._columns)
        self._id_column_at: int | None = None
        if id_column is not None:
            (self._id_column_at,) = positions([id_column], self._columns)
            self.id_name, self.id_type = id_column, arrow().float64()
            labels = [name for name in self._columns if name != id_column] if labels is None else labels
        elif "index" in arrays.names:
            self.id_name, self.id_type = "id", id_type(arrow().from_numpy_dtype(arrays.header("index")[1]))
        self._label_columns = None if labels is None else positions(labels, self._columns)
        self.label_names = (None if names is None else tuple(names)) if labels is None else tuple(labels)
        self.n_labels = self._width if self._label_columns is None else len(self._label_columns)
        if self.n_labels == 0:
            raise InvalidDataset("there is no label; at least one is needed")

    def _open_arrays(self) -> ArrayFile:
        assert isinstance(self.file.format, ArrayFormat)
        return self.file.format.open_arrays(self.file)

    def with_labels(self, names: Sequence[str]) -> Self:
        table = copy(self)
        table._label_columns = positions(names, self._columns)
        table.label_names, table.n_labels = tuple(names), len(names)
        return table

    def batches(self, rows_before: int = 0) -> Iterator[Batch]:
        arrays = self._open_arrays()
        index = arrays["index"] if "index" in arrays.names and self._id_column_at is None else None
        for rows, values in self._sparse_blocks(arrays) if self.is_sparse else self._dense_blocks(arrays):
            ids = None if index is None else arrow().array(index[rows])
            if self._id_column_at is not None:
                ids = arrow().array(
                    values[:, [self._id_column_at]].toarray()[:, 0] if self.is_sparse else values[:, self._id_column_at]
                )
            chosen = values if self._label_columns is None else values[:, self._label_columns]
            table = Table(chosen, self.label_names, None if ids is None else Ids(ids.cast(self.id_type)))
            yield Batch(table, self.file.name, rows.start, rows_before)

    def _dense_blocks(self, arrays: ArrayFile) -> Iterator[tuple[slice, Matrix]]:
        values = arrays[only_table(arrays.names)]
        if values.dtype.kind not in "fiub":
            raise InvalidDataset(f"expected numbers, got dtype {values.dtype}")
        height = batch_height(NUMBER_BYTES * self._width)
        for first in range(0, len(values), height):
            yield slice(first, first + height), np.array(values[first : first + height], order="C")
            arrays.release_memory()

    def _sparse_blocks(self, arrays: ArrayFile) -> Iterator[tuple[slice, Matrix]]:
        assert self.n_rows is not None
        data, indices, indptr = arrays["data"], arrays["indices"], arrays["indptr"]
        max_rows, max_entries = batch_height(indptr.dtype.itemsize), batch_height(NUMBER_BYTES + 4)
        fits = len(indptr) == self.n_rows + 1 and len(data) == len(indices)
        for k in range(0, self.n_rows if fits else 0, max_rows):
            some = indptr[k : k + 1 + max_rows]
            fits = fits and not np.any(some[1:] < some[:-1])
            arrays.release_memory()
        if not fits:
            raise InvalidDataset("the sparse matrix is broken: its parts do not fit each other")
        first = 0
        while first < self.n_rows:
            start = int(indptr[first])
            last = int(np.searchsorted(indptr[: first + max_rows], start + max_entries, side="right")) - 1
            last = min(max(first + 1, last), self.n_rows)
            stored = slice(start, int(indptr[last]))
            index_dtype = np.int32 if max(stored.stop - start, self._width) <= np.iinfo(np.int32).max else np.int64
            starts = (indptr[first : last + 1] - start).astype(index_dtype)
            parts = np.array(data[stored]), indices[stored].astype(index_dtype), starts
            yield slice(first, last), sparse.csr_array(parts, (last - first, self._width))
            arrays.release_memory()
            first = last
