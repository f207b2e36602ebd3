"""Tables of numbers, written as npy and npz files some rows at a time."""

import shutil
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from abstain._core.tables import Matrix
from abstain._utils.atomic import spill_file
from abstain.streams._formats.array_files import ArraySpec
from abstain.streams._formats.columns import arrow


class NpyWriter:
    """A dense table; the number of its rows is written over the beginning when it is known."""

    def __init__(self, target: IO[bytes], spec: ArraySpec, output: Path) -> None:
        self._target, self._spec, self._n_rows = target, spec, 0
        self._write_header()

    def _write_header(self) -> None:
        descr, shape = self._spec.dtype.str, (self._n_rows, self._spec.n_labels)
        npy.write_array_header_2_0(self._target, {"descr": descr, "fortran_order": False, "shape": shape})

    def write(self, values: Matrix, ids: Any) -> None:
        self._target.write(np.ascontiguousarray(values).data)
        self._n_rows += len(values)

    def finish(self) -> None:
        self._target.seek(0)
        self._write_header()  # NumPy leaves space for any number of rows: it is as long as the first one


class NpzWriter:
    """A dense table, or a CSR matrix as `scipy.sparse.load_npz` reads it, with the names of labels and rows.

    The arrays "values" (or "data", "indices", "indptr", "format", "shape" and "_is_array"), "label_names" and "index"
    are what `NpzArrays` and `read_npz` expect.
    """

    def __init__(self, target: IO[bytes], spec: ArraySpec, output: Path) -> None:
        self._target, self._spec, self._n_rows = target, spec, 0
        self._ids: _Column | None = None
        if spec.id_type is not None:
            is_number = arrow("pyarrow.types").is_integer(spec.id_type)
            self._ids = _Column(output, np.int64) if is_number else _TextColumn(output)
        self._columns = {"values": _Column(output, spec.dtype, spec.n_labels)}
        if spec.is_sparse:
            index_dtype = np.int32 if spec.n_labels <= np.iinfo(np.int32).max else np.int64
            self._columns = {
                "data": _Column(output, spec.dtype),
                "indices": _Column(output, index_dtype),
                "indptr": _Column(output, np.int64),
            }
            self._columns["indptr"].append(np.zeros(1, np.int64))

    def write(self, values: Matrix, ids: Any) -> None:
        if self._spec.is_sparse:
            start = self._columns["data"].n_rows
            self._columns["data"].append(values.data)
            self._columns["indices"].append(values.indices)
            self._columns["indptr"].append(values.indptr[1:].astype(np.int64) + start)
        else:
            self._columns["values"].append(values)
        if self._ids is not None:
            self._ids.append(ids)
        self._n_rows += values.shape[0]

    def finish(self) -> None:
        columns = self._columns | ({} if self._ids is None else {"index": self._ids})
        arrays: dict[str, Any] = {}
        if self._spec.is_sparse:
            arrays = {"format": b"csr", "_is_array": True, "shape": (self._n_rows, self._spec.n_labels)}
        if self._spec.label_names is not None:
            arrays["label_names"] = np.array(self._spec.label_names, np.str_)
        with zipfile.ZipFile(self._target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, column in columns.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    column.copy_to(entry)
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w") as entry:
                    npy.write_array(entry, np.asanyarray(array), allow_pickle=False)


class _Column:
    """An array in a temporary file that grows along its first axis."""

    def __init__(self, output: Path, dtype: Any, width: int | None = None) -> None:
        self.dtype, self.width = np.dtype(dtype), width
        self.n_rows = 0
        self.file = spill_file(self, output)

    def append(self, rows: Any) -> None:
        """Write some more rows."""
        self.file.write(np.ascontiguousarray(rows, self.dtype).data)
        self.n_rows += len(rows)

    def copy_to(self, target: IO[bytes]) -> None:
        """Copy the whole array as an npy file."""
        self._write_header(target)
        self.file.seek(0)
        shutil.copyfileobj(self.file, target, 1 << 20)

    def _write_header(self, target: IO[bytes]) -> None:
        shape = (self.n_rows,) if self.width is None else (self.n_rows, self.width)
        npy.write_array_header_2_0(target, {"descr": self.dtype.str, "fortran_order": False, "shape": shape})


class _TextColumn(_Column):
    """A growing array of texts, all of which NumPy keeps as long as the longest one."""

    def __init__(self, output: Path) -> None:
        super().__init__(output, np.str_)
        self._stream: Any = None
        self._longest = 1

    def append(self, rows: Any) -> None:
        pa, compute = arrow(), arrow("pyarrow.compute")
        texts = rows.cast(pa.large_string())
        batch = pa.record_batch([texts], names=["text"])
        self._stream = self._stream or arrow("pyarrow.ipc").new_stream(self.file, batch.schema)
        self._stream.write_batch(batch)
        self._longest = max(self._longest, compute.max(compute.utf8_length(texts)).as_py() or 1)
        self.n_rows += len(rows)

    def copy_to(self, target: IO[bytes]) -> None:
        self.dtype = np.dtype(f"U{self._longest}")
        self._write_header(target)
        if self._stream is None:
            return
        self._stream.close()
        self.file.seek(0)
        for batch in arrow("pyarrow.ipc").open_stream(self.file):
            texts: NDArray[np.str_] = np.array(batch.column(0).to_pylist(), self.dtype)
            target.write(texts.data if len(texts) else b"")
