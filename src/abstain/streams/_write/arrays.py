"""Decisions as npy and npz files; −1 stands for what is left open."""

import shutil
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from abstain._core.prediction import Prediction
from abstain._utils.atomic import spill_file
from abstain._utils.errors import InvalidDataset
from abstain.streams._formats.columns import arrow
from abstain.streams._read.batches import Batch
from abstain.streams._write.layout import Layout, Sink


class NpySink(Sink):
    """A dense table. How many rows it has is written over the beginning when that is known."""

    def __init__(self, layout: Layout, target: IO[bytes]) -> None:
        if layout.is_sparse:
            raise InvalidDataset("an npy file cannot hold sparse answers; use npz, parquet, csv or arrow")
        self.layout, self.target, self.n_rows = layout, target, 0
        self._write_header()

    def _write_header(self) -> None:
        descr, shape = self.layout.code_dtype.str, (self.n_rows, len(self.layout.labels))
        npy.write_array_header_2_0(self.target, {"descr": descr, "fortran_order": False, "shape": shape})

    def write(self, batch: Batch, prediction: Prediction) -> None:
        self.target.write(np.ascontiguousarray(prediction.codes).data)
        self.n_rows += len(batch)

    def finish(self) -> None:
        self.target.seek(0)
        self._write_header()  # NumPy leaves room for any number of rows: it is as long as the first one


class NpzSink(Sink):
    """A dense table, or a CSR matrix as `scipy.sparse.load_npz` reads it, with the names of labels and rows."""

    def __init__(self, layout: Layout, target: IO[bytes], output: Path) -> None:
        self.layout, self.target = layout, target
        codes = layout.code_dtype
        self._ids: _Column | None = None
        if layout.rows_named:
            is_number = arrow("pyarrow.types").is_integer(layout.id_type)
            self._ids = _Column(output, np.int64) if is_number else _Texts(output)
        self._columns = {"values": _Column(output, codes, len(layout.labels))}
        if layout.is_sparse:
            wide = np.int32 if len(layout.labels) <= np.iinfo(np.int32).max else np.int64
            self._columns = {
                "data": _Column(output, codes),
                "indices": _Column(output, wide),
                "indptr": _Column(output, np.int64),
            }
            self._columns["indptr"].append(np.zeros(1, np.int64))
        self.n_rows = 0

    def write(self, batch: Batch, prediction: Prediction) -> None:
        codes = prediction.codes
        if self.layout.is_sparse:
            start = self._columns["data"].n_rows
            self._columns["data"].append(codes.data)
            self._columns["indices"].append(codes.indices)
            self._columns["indptr"].append(codes.indptr[1:].astype(np.int64) + start)
        else:
            self._columns["values"].append(codes)
        if self._ids is not None:
            self._ids.append(self.layout.ids(batch))
        self.n_rows += len(batch)

    def finish(self) -> None:
        columns = self._columns | ({} if self._ids is None else {"index": self._ids})
        arrays: dict[str, Any] = {}
        if self.layout.is_sparse:
            arrays = {"format": b"csr", "_is_array": True, "shape": (self.n_rows, len(self.layout.labels))}
        if self.layout.has_names:
            arrays["label_names"] = np.array(self.layout.labels, np.str_)
        with zipfile.ZipFile(self.target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, column in columns.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    column.copy_to(entry)
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w") as entry:
                    npy.write_array(entry, np.asanyarray(array), allow_pickle=False)


class _Column:
    """An array on the disk that grows along its first axis; nobody sees it, and it leaves nothing behind."""

    def __init__(self, output: Path, dtype: Any, width: int | None = None) -> None:
        self.dtype, self.width = np.dtype(dtype), width
        self.n_rows = 0
        self.file = spill_file(self, output)

    def append(self, rows: Any) -> None:
        """More rows."""
        self.file.write(np.ascontiguousarray(rows, self.dtype).data)
        self.n_rows += len(rows)

    def copy_to(self, target: IO[bytes]) -> None:
        """The whole array as an npy file."""
        self._write_header(target)
        self.file.seek(0)
        shutil.copyfileobj(self.file, target, 1 << 20)

    def _write_header(self, target: IO[bytes]) -> None:
        shape = (self.n_rows,) if self.width is None else (self.n_rows, self.width)
        npy.write_array_header_2_0(target, {"descr": self.dtype.str, "fortran_order": False, "shape": shape})


class _Texts(_Column):
    """The same of texts, all of which NumPy keeps as long as the longest one."""

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
