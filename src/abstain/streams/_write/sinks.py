"""Decisions or probabilities, written as they come: files that appear when they are complete, or standard output."""

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from abstain._core.tables import Matrix
from abstain._utils.atomic import atomic_write, require_writable
from abstain._utils.errors import InvalidOutput
from abstain.streams._formats.array_files import ArrayWriter
from abstain.streams._formats.base import ArrayFormat, ColumnFormat, Format
from abstain.streams._formats.column_files import ColumnWriter
from abstain.streams._formats.columns import arrow
from abstain.streams._formats.registry import format_called, format_of, list_names
from abstain.streams._read.batches import Batch
from abstain.streams._sizes import SIZES
from abstain.streams._write.output_layout import OutputLayout


class Sink(ABC):
    """Takes values for each row and label, batch by batch: codes of decisions, or probabilities."""

    @abstractmethod
    def write(self, batch: Batch, values: Matrix) -> None:
        """Write the values for the rows of a batch."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is still missing at the end of the file."""


class ColumnSink(Sink):
    """Values as columns."""

    def __init__(self, layout: OutputLayout, writer: ColumnWriter) -> None:
        self.layout, self.writer = layout, writer

    def write(self, batch: Batch, values: Matrix) -> None:
        self.writer.write(self.layout.columns(self.layout.ids(batch), values))

    def finish(self) -> None:
        self.writer.finish()


class RowGroupSink(ColumnSink):
    """Wide tables, gathered before they are made into columns: a batch with many columns has few rows."""

    def __init__(self, layout: OutputLayout, writer: ColumnWriter) -> None:
        super().__init__(layout, writer)
        dtype, m = layout.values.dtype, len(layout.labels)
        height = max(1, min(SIZES.row_group_rows, SIZES.row_group_bytes // (m * dtype.itemsize)))
        self._values = np.empty((height, m), dtype)
        self._ids: list[Any] = []
        self._n_rows = 0

    def write(self, batch: Batch, values: Matrix) -> None:
        ids, first = self.layout.ids(batch), 0
        while first < len(values):
            some = values[first : first + len(self._values) - self._n_rows]
            self._values[self._n_rows : self._n_rows + len(some)] = some
            self._ids.append(ids.slice(first, len(some)))
            self._n_rows += len(some)
            first += len(some)
            if self._n_rows == len(self._values):
                self._write_group()

    def _write_group(self) -> None:
        if self._n_rows:
            ids = arrow().concat_arrays(self._ids)
            self.writer.write(self.layout.columns(ids, self._values[: self._n_rows]))
            self._ids, self._n_rows = [], 0

    def finish(self) -> None:
        self._write_group()
        super().finish()


class ArraySink(Sink):
    """Values as arrays."""

    def __init__(self, layout: OutputLayout, writer: ArrayWriter) -> None:
        self.layout, self.writer = layout, writer

    def write(self, batch: Batch, values: Matrix) -> None:
        self.writer.write(values, self.layout.ids(batch) if self.layout.rows_named else None)

    def finish(self) -> None:
        self.writer.finish()


@contextmanager
def open_sink(output: str | os.PathLike[str], layout: OutputLayout, format: str | None = None) -> Iterator[Sink]:  # noqa: A002
    """Open an output for values: a file that appears only when all of them are there, or "-", standard output.

    Parameters
    ----------
    output : path, or "-"
        Its ending tells the format, as for `abstain.read_table`.
    layout : OutputLayout
        The columns of the output.
    format : str, optional
        The format where that is not told by a name; by default CSV on standard output.
    """
    with _open_target(output, format) as (found, target):
        sink = _make_sink(found, layout, target, Path(output))
        with _finishing(sink, target):
            yield sink


def _make_sink(found: Format, layout: OutputLayout, target: Any, output: Path) -> Sink:
    if isinstance(found, ArrayFormat):
        if layout.is_sparse and not found.holds_sparse:
            raise InvalidOutput(f"an {found.name} file cannot hold a sparse table; use npz, parquet, csv or arrow")
        return ArraySink(layout, found.open_writer(target, layout.array_spec, output))
    assert isinstance(found, ColumnFormat)
    make = RowGroupSink if found.has_row_groups and not layout.is_sparse else ColumnSink
    return make(layout, found.open_writer(target, layout.schema))


@contextmanager
def open_column_writer(output: str | os.PathLike[str], schema: Any) -> Iterator[Callable[[Any], None]]:
    """Open an output for any columns, whole or not there at all: a function that writes record batches."""
    with _open_target(output, None) as (found, target):
        if not isinstance(found, ColumnFormat):
            raise InvalidOutput(f"{output}: holds no text; write {list_names(only_columns=True)}")
        writer = found.open_writer(target, schema)
        with _finishing(writer, target):
            yield writer.write


class StoppableTarget:
    """A file to write to that ignores all data once it is stopped, so that no writer completes a broken file."""

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

    def stop(self) -> None:
        """Ignore all data from now on."""
        self._target = None

    def close(self) -> None:
        """Do nothing: the target is closed by those who opened it."""


@contextmanager
def _finishing(writer: Sink | ColumnWriter, target: StoppableTarget) -> Iterator[None]:
    """Write the end of a file only if all before it was written."""
    try:
        yield
        writer.finish()
    except BaseException:
        target.stop()
        with suppress(Exception):  # or it would be finished by the garbage collector
            writer.finish()
        raise


@contextmanager
def _open_target(output: str | os.PathLike[str], format: str | None) -> Iterator[tuple[Format, Any]]:  # noqa: A002
    """Open an output; yield its format and where its bytes go."""
    if os.fspath(output) == "-":
        found = format_called(format or "csv", InvalidOutput)
        if not found.is_streamable:
            raise InvalidOutput(f"standard output can be {list_names(only_streamable=True)}, not {found.name}")
        if sys.stdout is None:
            raise InvalidOutput("standard output is closed; give a file")
        yield found, StoppableTarget(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    file = Path(output)
    found = format_called(format, InvalidOutput) if format else format_of(file, InvalidOutput)
    require_writable(file)
    with atomic_write(file) as target:
        yield found, StoppableTarget(target)
