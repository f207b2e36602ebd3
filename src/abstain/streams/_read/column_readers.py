"""Columns of CSV, Parquet and Arrow files, a bounded number of rows at a time."""

import io
import math
import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, Any

from abstain._utils.atomic import temporary_file
from abstain._utils.errors import InvalidDataset
from abstain._utils.numbers import MISSING, is_number
from abstain.streams._formats.columns import arrow, holds_names
from abstain.streams._formats.names import require_different
from abstain.streams._formats.text import records, require_cells, require_header, rows_of
from abstain.streams._read.batches import BATCH_BYTES, NUMBER_BYTES, batch_height
from abstain.streams._read.files import File

END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"  # as Arrow ends its streams
LOOKED_AT = 1000  # rows from which it is guessed whether a column holds names
TEXT_CHUNK = 1 << 23  # bytes of text at a time
LONGEST_RECORD = 1 << 25  # bytes: what is longer is a quote that was not meant as one
BUFFER = 1 << 18  # bytes read at a time from each column of a Parquet file
FEW = 64  # columns of a Parquet file that are read side by side: their pages take about as much as READ_BYTES
READ_BYTES = 8 * BATCH_BYTES  # row groups up to this size are read as a whole
TEXT_BYTES = 16  # what a text is taken to occupy, which no file tells


Quote = Callable[[int], tuple[int, list[str]]]
"""The line and the cells of a row of text, counted from the first one."""


@dataclass(frozen=True)
class Piece:
    """Some rows of a file: the columns asked for, the number of the first row, and how errors quote text."""

    columns: list[Any]
    first_row: int
    quote: Quote | None = None


class Reader(ABC):
    """A file that holds columns; only their names have been read."""

    schema: Any
    n_rows: int | None = None
    n_rows_estimated: int | None = None

    def __init__(self, file: File) -> None:
        self.file = file

    @abstractmethod
    def first_holds_names(self) -> bool:
        """Whether the first column seems to hold the names of the rows."""

    @abstractmethod
    def pieces(self, columns: Sequence[int], numbers: Sequence[int]) -> Iterator[Piece]:
        """The columns, piece by piece; `numbers` are those of them that hold numbers, which text does not tell."""

    def _height(self, columns: Sequence[int], numbers: Sequence[int]) -> int:
        """How many rows make a piece, which becomes a batch."""
        types, values = self.schema.types, set(numbers)
        others = sum(_value_bytes(types[j]) for j in columns if j not in values)
        return batch_height(NUMBER_BYTES * len(values) + others)


def open_reader(file: File, row_groups: Sequence[int] | None = None) -> Reader:
    """The reader for a kind of file."""
    if file.kind == ".parquet":
        return ParquetReader(file, row_groups)
    if file.kind == ".arrows":
        return StreamReader(file)
    return CsvReader(file) if file.kind.startswith(".csv") else ArrowReader(file)


def _value_bytes(kind: Any) -> int:
    """How many bytes a value of this Arrow type takes in a column."""
    return max(1, kind.bit_width // 8) if arrow("pyarrow.types").is_primitive(kind) else TEXT_BYTES


def _sliced(columns: list[Any], first_row: int, height: int) -> Iterator[Piece]:
    for first in range(0, len(columns[0]), height):
        yield Piece([column.slice(first, height) for column in columns], first_row + first)


class ParquetReader(Reader):
    """Some row groups at a time, a few columns after the other: to read many columns side by side takes much memory.

    Row groups that are too large for that are read page by page; if they have many columns, too, they are unpacked to
    the disk before.
    """

    def __init__(self, file: File, row_groups: Sequence[int] | None = None) -> None:
        super().__init__(file)
        with self._open() as source:
            self.schema = source.schema_arrow
            self._sizes = [source.metadata.row_group(k).num_rows for k in range(source.metadata.num_row_groups)]
        require_different(self.schema.names)
        self.row_groups = list(range(len(self._sizes))) if row_groups is None else list(row_groups)
        self.n_rows = self.n_rows_estimated = sum(self._sizes[k] for k in self.row_groups)
        self._first_row = sum(self._sizes[: self.row_groups[0]]) if self.row_groups else 0

    @contextmanager
    def _open(self) -> Iterator[Any]:
        with ExitStack() as stack:  # Arrow closes only what it has opened itself
            source = stack.enter_context(self.file.open()) if self.file.path is None else self.file.path
            parquet = arrow("pyarrow.parquet").ParquetFile(source, buffer_size=BUFFER, pre_buffer=False)
            yield stack.enter_context(parquet)

    def first_holds_names(self) -> bool:
        name = self.schema.names[:1]
        with self._open() as source:
            first = next(source.iter_batches(LOOKED_AT, self.row_groups, columns=name), None)
        return first is not None and holds_names(first.column(0))

    def pieces(self, columns: Sequence[int], numbers: Sequence[int]) -> Iterator[Piece]:
        every, types, height = self.schema.names, self.schema.types, self._height(columns, numbers)
        names, row_bytes = [every[j] for j in columns], sum(_value_bytes(types[j]) for j in columns)
        row = self._first_row
        with self._open() as source:
            for groups in self._together(height):
                if sum(self._sizes[k] for k in groups) * row_bytes <= READ_BYTES:
                    parts: Iterator[list[Any]] = iter([_side_by_side(source, groups, names)])
                elif len(columns) <= FEW:
                    parts = _by_pages(source, groups, names, height)
                else:
                    parts = _unpacked(source, groups, names, height)
                for found in parts:
                    yield from _sliced(found, row, height)
                    row += len(found[0])
                    del found  # before more is read

    def _together(self, n_rows: int) -> Iterator[list[int]]:
        """Row groups that follow each other, no more rows in all than that if there are several."""
        together: list[int] = []
        for k in self.row_groups:
            if together and sum(self._sizes[i] for i in [*together, k]) > n_rows:
                yield together
                together = []
            together.append(k)
        if together:
            yield together


def _picked(table: Any, names: Sequence[str]) -> list[Any]:
    """These columns of what was read; it may have more, since a dot in a name may stand for something nested."""
    found = dict(zip(table.schema.names, table.columns, strict=True))
    return [found[name] for name in names]


def _side_by_side(source: Any, groups: list[int], names: list[str]) -> list[Any]:
    """Whole columns, a few after the other."""
    found = []
    for first in range(0, len(names), FEW):
        some = names[first : first + FEW]
        found += [column.combine_chunks() for column in _picked(source.read_row_groups(groups, columns=some), some)]
    return found


def _by_pages(source: Any, groups: list[int], names: list[str], height: int) -> Iterator[list[Any]]:
    for batch in source.iter_batches(height, groups, columns=names):
        found = _picked(batch, names)
        del batch
        yield found
        del found  # before more is read


def _unpacked(source: Any, groups: list[int], names: list[str], height: int) -> Iterator[list[Any]]:
    """The same by way of the disk, where a few columns after the other are laid so that rows can be read."""
    ipc, readers = arrow("pyarrow.ipc"), []
    every = source.schema_arrow  # made anew whenever it is asked for, which takes long if there are many columns
    with ExitStack() as stack:
        for first in range(0, len(names), FEW):
            some = names[first : first + FEW]
            spill = stack.enter_context(temporary_file())
            schema = arrow().schema([every.field(name) for name in some])
            with ipc.new_file(spill, schema) as writer:
                for columns in _by_pages(source, groups, some, height):
                    writer.write_batch(arrow().record_batch(columns, schema=schema))
            readers.append(ipc.open_file(spill))
        for k in range(readers[0].num_record_batches):
            yield [column for reader in readers for column in reader.get_batch(k).columns]


class ArrowReader(Reader):
    """An Arrow file, mapped: what has been read is let go."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        with self._map() as (reader, _):
            self.schema = reader.schema
            self._holds_names = reader.num_record_batches > 0 and holds_names(
                reader.get_batch(0).column(0).slice(0, LOOKED_AT)
            )
        require_different(self.schema.names)

    @contextmanager
    def _map(self) -> Iterator[tuple[Any, mmap.mmap]]:
        with self.file.open() as source:
            mapped = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ)
        # The mapping lives as long as anything that was read from it.
        yield arrow("pyarrow.ipc").open_file(arrow().py_buffer(mapped)), mapped

    def first_holds_names(self) -> bool:
        return self._holds_names

    def pieces(self, columns: Sequence[int], numbers: Sequence[int]) -> Iterator[Piece]:
        row, height = 0, self._height(columns, numbers)
        with self._map() as (reader, mapped):
            for k in range(reader.num_record_batches):
                batch = reader.get_batch(k)
                for piece in _sliced([batch.column(j) for j in columns], row, height):
                    yield piece
                    mapped.madvise(mmap.MADV_DONTNEED)
                row += batch.num_rows


class _Once(Reader):
    """A file that may be standard input: there it stays open once it has told its names."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        opened = self._open()
        self.schema, self._holds_names = self._look(opened)
        self._opened: Any = opened
        if file.is_repeatable:
            opened[0].close()
            self._opened = None

    @abstractmethod
    def _open(self) -> tuple[IO[bytes], Any]:
        """The open file, and what has been read of it."""

    @abstractmethod
    def _look(self, opened: Any) -> tuple[Any, bool]:
        """Its schema, and whether the first column holds names."""

    def first_holds_names(self) -> bool:
        return self._holds_names

    def _begin(self) -> Any:
        opened, self._opened = self._opened or self._open(), None
        return opened


class _Watched(io.RawIOBase):
    """A file of which the last bytes read are known."""

    def __init__(self, source: Any) -> None:
        self._source, self.last = source, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._source.read(size)
        self.last = (self.last + data[-len(END_OF_STREAM) :])[-len(END_OF_STREAM) :]
        return data

    def close(self) -> None:
        self._source.close()
        super().close()


class StreamReader(_Once):
    """An Arrow stream, batch by batch."""

    def _open(self) -> tuple[Any, Any]:
        source = _Watched(self.file.open())
        stream = arrow("pyarrow.ipc").open_stream(source)
        return source, (stream, next(stream, None))

    def _look(self, opened: Any) -> tuple[Any, bool]:
        stream, first = opened[1]
        require_different(stream.schema.names)
        return stream.schema, first is not None and holds_names(first.column(0).slice(0, LOOKED_AT))

    def pieces(self, columns: Sequence[int], numbers: Sequence[int]) -> Iterator[Piece]:
        source, (stream, batch) = self._begin()
        row, height = 0, self._height(columns, numbers)
        with source:
            while batch is not None:
                yield from _sliced([batch.column(j) for j in columns], row, height)
                row += batch.num_rows
                del batch  # before more is read
                batch = next(stream, None)
            if source.last != END_OF_STREAM:
                raise InvalidDataset(f"ends after row {row - 1} without the mark of an end: it was cut off")


class CsvReader(_Once):
    """CSV, cut into chunks of whole records."""

    def _open(self) -> tuple[IO[bytes], Any]:
        source = self.file.open()
        if self.file.kind == ".csv.gz":
            source = arrow().CompressedInputStream(source, "gzip")
        chunks = _whole_records(source)
        text = next(chunks, b"").removeprefix(b"\xef\xbb\xbf")
        end = _end_of_first_record(text)
        return source, (chunks, text[:end], text[end:])

    def _look(self, opened: Any) -> tuple[Any, bool]:
        _, head, rest = opened[1]
        header = next((cells for _, cells in records(io.BytesIO(head))), [])
        require_header(header, head)
        if self.file.path is not None and self.file.kind == ".csv" and rest:  # rows are of similar length
            self.n_rows_estimated = int(self.file.path.stat().st_size / len(rest) * rest.count(b"\n"))
        pa = arrow()
        schema = pa.schema([(name, pa.string()) for name in header])
        rows = rows_of(io.BytesIO(rest), len(header))
        first = [cells[0] if cells else "" for _, (_, cells) in zip(range(LOOKED_AT), rows, strict=False)]
        return schema, bool(first) and holds_names(pa.array(first))

    def pieces(self, columns: Sequence[int], numbers: Sequence[int]) -> Iterator[Piece]:
        source, (chunks, head, text) = self._begin()
        row, line = 0, 1 + head.count(b"\n")
        with source:
            while text is not None:
                if text.strip() or (text and len(self.schema) == 1):
                    piece = self._parse(text, columns, numbers, row, line)
                    row += len(piece.columns[0])
                    line += text.count(b"\n")
                    yield piece
                else:
                    line += text.count(b"\n")
                text = next(chunks, None)

    def _parse(self, text: bytes, columns: Sequence[int], numbers: Sequence[int], row: int, line: int) -> Piece:
        pa, csv_files, names = arrow(), arrow("pyarrow.csv"), self.schema.names
        wanted, values = set(columns), set(numbers)

        def quote(i: int) -> tuple[int, list[str]]:
            return next(record for k, record in enumerate(rows_of(io.BytesIO(text), len(names), line)) if k == i)

        def read(types: dict[str, Any]) -> Any:
            return csv_files.read_csv(
                pa.BufferReader(text),
                read_options=csv_files.ReadOptions(column_names=names),
                parse_options=csv_files.ParseOptions(
                    newlines_in_values=b'"' in text, ignore_empty_lines=len(names) > 1
                ),
                convert_options=csv_files.ConvertOptions(
                    column_types=types, include_columns=[names[j] for j in columns], strings_can_be_null=False
                ),
            )

        types = {name: pa.float64() if j in values else pa.string() for j, name in enumerate(names) if j in wanted}
        try:
            table = read(types)
            found = [table.column(k) for k in range(len(columns))]
        except pa.ArrowInvalid as reason:
            require_cells(io.BytesIO(text), len(names), reason, line)
            table = read(dict.fromkeys(types, pa.string()))
            found = [
                _what_is_number(table.column(k)) if j in values else table.column(k) for k, j in enumerate(columns)
            ]
        return Piece([column.combine_chunks() for column in found], row, quote)


def _what_is_number(column: Any) -> Any:
    """A column of text as numbers; whoever finds that one is missing can quote what is there instead."""
    return arrow().chunked_array([arrow().array(map(_number, column.to_pylist()), "float64")])


def _number(text: str) -> float | None:
    if text in MISSING:
        return None
    # Infinity is neither a probability nor a label, nor is it missing.
    return float(text) if is_number(text) else {"true": 1.0, "false": 0.0}.get(text.lower(), math.inf)


def _whole_records(source: Any) -> Iterator[bytes]:
    """A text in chunks that end where records do; where only CR ends lines, LF does."""
    rest, only_cr, n_lines = b"", None, 0
    while data := source.read(TEXT_CHUNK):
        if only_cr is None:
            only_cr = b"\r" in data and b"\n" not in data
        text = rest + (data.replace(b"\r", b"\n") if only_cr else data)
        end = _end_of_last_record(text)
        rest = text[end:]
        n_lines += text.count(b"\n", 0, end)
        if len(rest) > LONGEST_RECORD:
            raise InvalidDataset(f"a quote in line {n_lines + 1} has no end within {LONGEST_RECORD >> 20} MB")
        if end:
            yield text[:end]
    if rest:
        yield rest


def _end_of_last_record(text: bytes) -> int:
    """The end of the last line that does not end within quotes."""
    end, open_quotes = len(text), text.count(b'"') % 2
    while end:
        start = text.rfind(b"\n", 0, end) + 1
        open_quotes = (open_quotes + text.count(b'"', start, end)) % 2
        if start == 0 or not open_quotes:
            return start
        end = start - 1
    return 0


def _end_of_first_record(text: bytes) -> int:
    end = text.find(b"\n") + 1
    while end and text.count(b'"', 0, end) % 2:
        end = text.find(b"\n", end) + 1
    return end or len(text)
