"""Parquet files: some row groups at a time, or page by page if these are large."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Any

from abstain._utils.atomic import temporary_file
from abstain.streams._formats.base import ColumnFormat, TableContent
from abstain.streams._formats.column_files import N_INSPECTED_ROWS, ColumnBatch, ColumnReader, value_bytes
from abstain.streams._formats.columns import arrow, from_arrow, holds_names
from abstain.streams._formats.input_file import InputFile
from abstain.streams._formats.names import require_unique
from abstain.streams._sizes import SIZES

BUFFER_BYTES = 1 << 18
"""Bytes that are read at a time from each column."""


class ParquetReader(ColumnReader):
    """Reads some row groups at a time, a few columns after the other: many columns side by side take much memory.

    Row groups that are too large for that are read page by page; if they also have many columns, they are unpacked to
    the disk before.
    """

    def __init__(self, file: InputFile, row_groups: Sequence[int] | None = None) -> None:
        super().__init__(file)
        with self._open() as source:
            self.schema = source.schema_arrow
            self._sizes = [source.metadata.row_group(k).num_rows for k in range(source.metadata.num_row_groups)]
        require_unique(self.schema.names)
        self.row_groups = list(range(len(self._sizes))) if row_groups is None else list(row_groups)
        self.n_rows = self.n_rows_estimated = sum(self._sizes[k] for k in self.row_groups)
        self._first_row = sum(self._sizes[: self.row_groups[0]]) if self.row_groups else 0

    @contextmanager
    def _open(self) -> Iterator[Any]:
        with ExitStack() as stack:  # Arrow closes only what it has opened itself
            source = stack.enter_context(self.file.open()) if self.file.path is None else self.file.path
            parquet = arrow("pyarrow.parquet").ParquetFile(source, buffer_size=BUFFER_BYTES, pre_buffer=False)
            yield stack.enter_context(parquet)

    def first_holds_names(self) -> bool:
        name = self.schema.names[:1]
        with self._open() as source:
            first = next(source.iter_batches(N_INSPECTED_ROWS, self.row_groups, columns=name), None)
        return first is not None and holds_names(first.column(0))

    def column_batches(self, columns: Sequence[int], numbers: Sequence[int]) -> Iterator[ColumnBatch]:
        every, types, height = self.schema.names, self.schema.types, self._height(columns, numbers)
        names, row_bytes = [every[j] for j in columns], sum(value_bytes(types[j]) for j in columns)
        row = self._first_row
        with self._open() as source:
            for groups in self._grouped(height):
                if sum(self._sizes[k] for k in groups) * row_bytes <= SIZES.row_groups_read_bytes:
                    parts: Iterator[list[Any]] = iter([_read_columns(source, groups, names)])
                elif len(columns) <= SIZES.columns_read_together:
                    parts = _by_pages(source, groups, names, height)
                else:
                    parts = _by_way_of_disk(source, groups, names, height)
                for found in parts:
                    yield from ColumnBatch(found, row).sliced(height)
                    row += len(found[0])
                    del found  # before more is read

    def _grouped(self, n_rows: int) -> Iterator[list[int]]:
        """Group consecutive row groups: each group has one of them, or several with at most `n_rows` rows in all."""
        group: list[int] = []
        for k in self.row_groups:
            if group and sum(self._sizes[i] for i in [*group, k]) > n_rows:
                yield group
                group = []
            group.append(k)
        if group:
            yield group


def _columns_called(table: Any, names: Sequence[str]) -> list[Any]:
    """Return these columns of what was read, which may have more: a dot in a name may stand for something nested."""
    found = dict(zip(table.schema.names, table.columns, strict=True))
    return [found[name] for name in names]


def _read_columns(source: Any, groups: list[int], names: list[str]) -> list[Any]:
    """Read whole columns, a few after the other."""
    found = []
    for first in range(0, len(names), SIZES.columns_read_together):
        some = names[first : first + SIZES.columns_read_together]
        found += [
            column.combine_chunks() for column in _columns_called(source.read_row_groups(groups, columns=some), some)
        ]
    return found


def _by_pages(source: Any, groups: list[int], names: list[str], height: int) -> Iterator[list[Any]]:
    """Read the columns of some rows at a time, page by page."""
    for batch in source.iter_batches(height, groups, columns=names):
        found = _columns_called(batch, names)
        del batch
        yield found
        del found  # before more is read


def _by_way_of_disk(source: Any, groups: list[int], names: list[str], height: int) -> Iterator[list[Any]]:
    """Read the columns of some rows at a time, after a few columns after the other were unpacked to the disk."""
    ipc, readers = arrow("pyarrow.ipc"), []
    every = source.schema_arrow  # made anew whenever it is asked for, which takes long if there are many columns
    with ExitStack() as stack:
        for first in range(0, len(names), SIZES.columns_read_together):
            some = names[first : first + SIZES.columns_read_together]
            spill = stack.enter_context(temporary_file())
            schema = arrow().schema([every.field(name) for name in some])
            with ipc.new_file(spill, schema) as writer:
                for columns in _by_pages(source, groups, some, height):
                    writer.write_batch(arrow().record_batch(columns, schema=schema))
            readers.append(ipc.open_file(spill))
        for k in range(readers[0].num_record_batches):
            yield [column for reader in readers for column in reader.get_batch(k).columns]


class ParquetWriter:
    """Record batches, gathered into row groups."""

    def __init__(self, target: IO[bytes], schema: Any) -> None:
        self._writer = arrow("pyarrow.parquet").ParquetWriter(target, schema)
        self._gathered: list[Any] = []
        self._n_rows = self._n_bytes = 0

    def write(self, columns: Any) -> None:
        self._gathered.append(columns)
        self._n_rows += columns.num_rows
        self._n_bytes += columns.nbytes
        if self._n_rows >= SIZES.row_group_rows or self._n_bytes >= SIZES.row_group_bytes:
            self._write_group()

    def _write_group(self) -> None:
        if self._gathered:
            self._writer.write_table(arrow().Table.from_batches(self._gathered))
            self._gathered, self._n_rows, self._n_bytes = [], 0, 0

    def finish(self) -> None:
        self._write_group()
        self._writer.close()


def read_whole(file: InputFile, index: str | None, labels: list[str] | None) -> TableContent:
    """Read a whole Parquet file, all columns side by side: nothing needs to be small."""
    with arrow("pyarrow.parquet").ParquetFile(file.path) as source:
        return TableContent(*from_arrow(source.read(), index, labels))


PARQUET = ColumnFormat(
    name="parquet",
    endings=(".parquet",),
    magic=b"PAR1",
    description="a Parquet file; call it .parquet",
    has_row_groups=True,
    open_reader=ParquetReader,
    open_writer=ParquetWriter,
    read_whole=read_whole,
)
