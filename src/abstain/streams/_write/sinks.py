"""Decisions, written as they come: files that appear only when they are whole, or standard output."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from abstain._core.prediction import Prediction
from abstain._utils.atomic import atomic_write, require_writable
from abstain._utils.errors import InvalidDataset
from abstain.streams._formats import kind_of
from abstain.streams._formats.columns import arrow
from abstain.streams._formats.text import packed
from abstain.streams._read.batches import BATCH_BYTES, Batch
from abstain.streams._read.files import STREAMABLE, known_kind
from abstain.streams._write.arrays import NpySink, NpzSink
from abstain.streams._write.layout import Layout, Sink

ROW_GROUP_ROWS, ROW_GROUP_BYTES = 1 << 20, 2 * BATCH_BYTES  # about how large a row group of Parquet is in memory


class Outlet:
    """Where bytes go; nowhere once something has gone wrong, so that no writer makes what is half look whole."""

    closed = False

    def __init__(self, target: IO[bytes]) -> None:
        self._target: IO[bytes] | None = target

    def write(self, data: Any) -> int:
        return len(data) if self._target is None else self._target.write(data)

    def tell(self) -> int:
        return 0 if self._target is None else self._target.tell()

    def seek(self, offset: int, whence: int = 0) -> int:
        return 0 if self._target is None else self._target.seek(offset, whence)

    def flush(self) -> None:
        if self._target is not None:
            self._target.flush()

    def shut(self) -> None:
        """Let nothing through any more."""
        self._target = None

    def close(self) -> None:
        """The target is closed by those who opened it."""


class TableWriter:
    """Columns into a file, a record batch at a time: an Arrow file or stream, and what is like them."""

    def __init__(self, kind: str, target: IO[bytes], schema: Any) -> None:
        ipc = arrow("pyarrow.ipc")
        self.writer = (ipc.new_stream if kind == ".arrows" else ipc.new_file)(target, schema)

    def write(self, columns: Any) -> None:
        """Some more rows."""
        self.writer.write_batch(columns)

    def finish(self) -> None:
        """Write what is still missing."""
        self.writer.close()


class CsvWriter(TableWriter):
    """CSV, packed if need be."""

    def __init__(self, kind: str, target: IO[bytes], schema: Any) -> None:
        self._packing = packed(target) if kind == ".csv.gz" else None
        self.writer = arrow("pyarrow.csv").CSVWriter(self._packing or target, schema)

    def finish(self) -> None:
        super().finish()
        if self._packing is not None:
            self._packing.close()


class ParquetWriter(TableWriter):
    """Parquet: what comes is gathered into row groups of some size."""

    def __init__(self, target: IO[bytes], schema: Any) -> None:
        self.writer = arrow("pyarrow.parquet").ParquetWriter(target, schema)
        self._gathered: list[Any] = []
        self._n_rows = self._n_bytes = 0

    def write(self, columns: Any) -> None:
        self._gathered.append(columns)
        self._n_rows += columns.num_rows
        self._n_bytes += columns.nbytes
        if self._n_rows >= ROW_GROUP_ROWS or self._n_bytes >= ROW_GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        if self._gathered:
            self.writer.write_table(arrow().Table.from_batches(self._gathered))
            self._gathered, self._n_rows, self._n_bytes = [], 0, 0

    def finish(self) -> None:
        self._write_group()
        super().finish()


class TableSink(Sink):
    """Decisions as columns."""

    def __init__(self, layout: Layout, writer: TableWriter) -> None:
        self.layout, self.writer = layout, writer

    def write(self, batch: Batch, prediction: Prediction) -> None:
        self.writer.write(self.layout.columns(self.layout.ids(batch), prediction.codes))

    def finish(self) -> None:
        self.writer.finish()


class RowGroupSink(TableSink):
    """Wide decisions, gathered before they are made into columns: a batch with many columns has few rows."""

    def __init__(self, layout: Layout, writer: TableWriter) -> None:
        super().__init__(layout, writer)
        code, m = layout.code_dtype, len(layout.labels)
        height = max(1, min(ROW_GROUP_ROWS, ROW_GROUP_BYTES // (m * code.itemsize)))
        self._codes = np.empty((height, m), code)
        self._ids: list[Any] = []
        self._n_rows = 0

    def write(self, batch: Batch, prediction: Prediction) -> None:
        ids, codes, first = self.layout.ids(batch), prediction.codes, 0
        while first < len(codes):
            some = codes[first : first + len(self._codes) - self._n_rows]
            self._codes[self._n_rows : self._n_rows + len(some)] = some
            self._ids.append(ids.slice(first, len(some)))
            self._n_rows += len(some)
            first += len(some)
            if self._n_rows == len(self._codes):
                self._write_group()

    def _write_group(self) -> None:
        if self._n_rows:
            ids = arrow().concat_arrays(self._ids)
            self.writer.write(self.layout.columns(ids, self._codes[: self._n_rows]))
            self._ids, self._n_rows = [], 0

    def finish(self) -> None:
        self._write_group()
        super().finish()


@contextmanager
def open_sink(output: str | os.PathLike[str], layout: Layout, format: str | None = None) -> Iterator[Sink]:  # noqa: A002
    """Where decisions are written: a file that appears only when all of them are there, or "-", standard output.

    Parameters
    ----------
    output : path, or "-"
        Its ending tells the format, as for `abstain.streams._tables.read_table`.
    layout : Layout
        What it is to look like.
    format : str, optional
        The format where that is not told by a name; by default CSV on standard output.
    """
    with _target(output, format) as (kind, target):
        if kind in (".npy", ".npz"):
            sink: Sink = NpySink(layout, target) if kind == ".npy" else NpzSink(layout, target, Path(output))
        else:
            kind_of_sink = RowGroupSink if kind == ".parquet" and not layout.is_sparse else TableSink
            sink = kind_of_sink(layout, _table_writer(kind, target, layout.schema))
        with _finishing(sink, target):
            yield sink


@contextmanager
def open_table(
    output: str | os.PathLike[str],
    schema: Any,
    format: str | None = None,  # noqa: A002
) -> Iterator[Callable[[Any], None]]:
    """The same for any columns: a function that writes record batches."""
    with _target(output, format) as (kind, target):
        if kind in (".npy", ".npz"):
            raise InvalidDataset(f"{output}: holds no text; write .parquet, .csv, .csv.gz, .arrow or .arrows")
        writer = _table_writer(kind, target, schema)
        with _finishing(writer, target):
            yield writer.write


@contextmanager
def _finishing(writer: Sink | TableWriter, target: Outlet) -> Iterator[None]:
    """The end of a file is written only if all before it was."""
    try:
        yield
        writer.finish()
    except BaseException:
        target.shut()
        with suppress(Exception):  # or it would try when nobody listens any more
            writer.finish()
        raise


def _table_writer(kind: str, target: IO[bytes], schema: Any) -> TableWriter:
    if kind == ".parquet":
        return ParquetWriter(target, schema)
    return (CsvWriter if kind.startswith(".csv") else TableWriter)(kind, target, schema)


@contextmanager
def _target(output: str | os.PathLike[str], format: str | None) -> Iterator[tuple[str, Any]]:  # noqa: A002
    """The kind of an output, and where its bytes go."""
    if os.fspath(output) == "-":
        kind = known_kind(format or "csv")
        if kind not in STREAMABLE:
            raise InvalidDataset(f"standard output can be csv, csv.gz or arrows, not {kind[1:]}")
        if sys.stdout is None:
            raise InvalidDataset("standard output is closed; give a file")
        yield kind, Outlet(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    file = Path(output)
    kind = known_kind(format) if format else kind_of(file)
    require_writable(file)
    with atomic_write(file) as target:
        yield kind, Outlet(target)
