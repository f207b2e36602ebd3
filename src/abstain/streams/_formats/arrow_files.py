"""Arrow files (also called Feather or IPC) and Arrow streams."""

import io
import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from abstain._utils.errors import InvalidDataset
from abstain.streams._formats.base import ColumnFormat
from abstain.streams._formats.column_files import N_INSPECTED_ROWS, ColumnBatch, ColumnReader, ReadOnceReader
from abstain.streams._formats.columns import arrow, holds_names
from abstain.streams._formats.input_file import InputFile
from abstain.streams._formats.names import require_unique

END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
"""How Arrow ends its streams."""


class ArrowReader(ColumnReader):
    """An Arrow file, mapped to memory that is released once it has been read."""

    def __init__(self, file: InputFile, row_groups: Sequence[int] | None = None) -> None:
        super().__init__(file)
        with self._map() as (reader, _):
            self.schema = reader.schema
            self._first_holds_names = reader.num_record_batches > 0 and holds_names(
                reader.get_batch(0).column(0).slice(0, N_INSPECTED_ROWS)
            )
        require_unique(self.schema.names)

    @contextmanager
    def _map(self) -> Iterator[tuple[Any, mmap.mmap]]:
        with self.file.open() as source:
            mapped = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
        # The mapping lives as long as anything that was read from it.
        yield arrow("pyarrow.ipc").open_file(arrow().py_buffer(mapped)), mapped

    def first_holds_names(self) -> bool:
        return self._first_holds_names

    def column_batches(self, columns: Sequence[int], numbers: Sequence[int]) -> Iterator[ColumnBatch]:
        row, height = 0, self._height(columns, numbers)
        with self._map() as (reader, mapped):
            for k in range(reader.num_record_batches):
                batch = reader.get_batch(k)
                for part in ColumnBatch([batch.column(j) for j in columns], row).sliced(height):
                    yield part
                    mapped.madvise(mmap.MADV_DONTNEED)
                row += batch.num_rows


class _TailStream(io.RawIOBase):
    """A stream that remembers the last bytes that were read."""

    def __init__(self, source: Any) -> None:
        self._source, self.tail = source, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._source.read(size)
        self.tail = (self.tail + data[-len(END_OF_STREAM) :])[-len(END_OF_STREAM) :]
        return data

    def close(self) -> None:
        self._source.close()
        super().close()


class ArrowStreamReader(ReadOnceReader):
    """An Arrow stream, record batch by record batch."""

    def __init__(self, file: InputFile, row_groups: Sequence[int] | None = None) -> None:
        super().__init__(file)

    def _open(self) -> tuple[Any, Any]:
        source = _TailStream(self.file.open())
        stream = arrow("pyarrow.ipc").open_stream(source)
        return source, (stream, next(stream, None))

    def _inspect(self, opened: Any) -> tuple[Any, bool]:
        stream, first = opened[1]
        require_unique(stream.schema.names)
        return stream.schema, first is not None and holds_names(first.column(0).slice(0, N_INSPECTED_ROWS))

    def column_batches(self, columns: Sequence[int], numbers: Sequence[int]) -> Iterator[ColumnBatch]:
        source, (stream, batch) = self._take_opened()
        row, height = 0, self._height(columns, numbers)
        with source:
            while batch is not None:
                yield from ColumnBatch([batch.column(j) for j in columns], row).sliced(height)
                row += batch.num_rows
                del batch  # before more is read
                batch = next(stream, None)
            if source.tail != END_OF_STREAM:
                raise InvalidDataset(f"ends after row {row - 1} without the mark of an end: it was cut off")


class ArrowWriter:
    """Record batches, written one by one to an Arrow file or stream."""

    def __init__(self, target: IO[bytes], schema: Any) -> None:
        self._writer = self._open(target, schema)

    def _open(self, target: IO[bytes], schema: Any) -> Any:
        return arrow("pyarrow.ipc").new_file(target, schema)

    def write(self, columns: Any) -> None:
        self._writer.write_batch(columns)

    def finish(self) -> None:
        self._writer.close()


class ArrowStreamWriter(ArrowWriter):
    """Record batches, written one by one to an Arrow stream."""

    def _open(self, target: IO[bytes], schema: Any) -> Any:
        return arrow("pyarrow.ipc").new_stream(target, schema)


ARROW = ColumnFormat(
    name="arrow",
    endings=(".arrow", ".feather", ".ipc"),
    magic=b"ARROW1",
    description="an Arrow file; call it .arrow",
    stdout_name="arrows",
    open_reader=ArrowReader,
    open_writer=ArrowWriter,
)
ARROW_STREAM = ColumnFormat(
    name="arrows",
    endings=(".arrows",),
    magic=b"\xff\xff\xff\xff",
    description="an Arrow stream; call it .arrows",
    is_streamable=True,
    stdout_name="arrows",
    open_reader=ArrowStreamReader,
    open_writer=ArrowStreamWriter,
)
