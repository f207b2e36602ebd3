"""CSV files, plain or compressed with gzip."""

import gzip
import io
import math
from collections.abc import Iterator, Sequence
from typing import IO, Any

from abstain._utils.errors import quoted
from abstain._utils.numbers import MISSING, is_number
from abstain.streams._formats.base import ColumnFormat, TableContent
from abstain.streams._formats.column_files import N_INSPECTED_ROWS, ColumnBatch, ReadOnceReader
from abstain.streams._formats.columns import arrow, find_index, holds_names, label_positions, stack_columns
from abstain.streams._formats.csv_records import (
    data_records,
    end_of_first_record,
    records,
    require_cells,
    require_header,
    whole_records,
)
from abstain.streams._formats.input_file import InputFile
from abstain.streams._formats.names import INDEX_NAMES, label_names_from, row_names_from


class CsvReader(ReadOnceReader):
    """CSV, plain or compressed, cut into chunks of whole records."""

    def __init__(self, file: InputFile, row_groups: Sequence[int] | None = None) -> None:
        super().__init__(file)

    def _open(self) -> tuple[IO[bytes], Any]:
        source = self.file.open()
        if self.file.format is CSV_GZIP:
            source = arrow().CompressedInputStream(source, "gzip")
        chunks = whole_records(source)
        text = next(chunks, b"").removeprefix(b"\xef\xbb\xbf")
        end = end_of_first_record(text)
        return source, (chunks, text[:end], text[end:])

    def _inspect(self, opened: Any) -> tuple[Any, bool]:
        _, head, rest = opened[1]
        header = next((cells for _, cells in records(io.BytesIO(head))), [])
        require_header(header, head)
        if self.file.path is not None and self.file.format is CSV and rest:  # rows are of similar length
            self.n_rows_estimated = int(self.file.path.stat().st_size / len(rest) * rest.count(b"\n"))
        pa = arrow()
        schema = pa.schema([(name, pa.string()) for name in header])
        rows = data_records(io.BytesIO(rest), len(header))
        first = [cells[0] if cells else "" for _, (_, cells) in zip(range(N_INSPECTED_ROWS), rows, strict=False)]
        return schema, bool(first) and holds_names(pa.array(first))

    def column_batches(self, columns: Sequence[int], numbers: Sequence[int]) -> Iterator[ColumnBatch]:
        source, (chunks, head, text) = self._take_opened()
        row, line = 0, 1 + head.count(b"\n")
        with source:
            while text is not None:
                if text.strip() or (text and len(self.schema) == 1):
                    batch = self._parse(text, columns, numbers, row, line)
                    row += len(batch.columns[0])
                    line += text.count(b"\n")
                    yield batch
                else:
                    line += text.count(b"\n")
                text = next(chunks, None)

    def _parse(self, text: bytes, columns: Sequence[int], numbers: Sequence[int], row: int, line: int) -> ColumnBatch:
        pa, csv_files, names = arrow(), arrow("pyarrow.csv"), self.schema.names
        wanted, values = set(columns), set(numbers)

        def quote(i: int) -> tuple[int, list[str]]:
            return next(record for k, record in enumerate(data_records(io.BytesIO(text), len(names), line)) if k == i)

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
                _text_as_numbers(table.column(k)) if j in values else table.column(k) for k, j in enumerate(columns)
            ]
        return ColumnBatch([column.combine_chunks() for column in found], row, quote)


def _text_as_numbers(column: Any) -> Any:
    """Return a column of text as numbers: null where a cell is empty, infinity where it is no number."""
    return arrow().chunked_array([arrow().array(map(_number, column.to_pylist()), "float64")])


def _number(text: str) -> float | None:
    if text in MISSING:
        return None
    # Infinity is neither a probability nor a label, nor is it missing.
    return float(text) if is_number(text) else {"true": 1.0, "false": 0.0}.get(text.lower(), math.inf)


def read_whole(file: InputFile, index: str | None, labels: list[str] | None) -> TableContent:
    """Read a whole CSV file: types are those of all rows, which batches do not know."""
    pa, csv_files = arrow(), arrow("pyarrow.csv")
    with _open_text(file) as source:
        header = next((cells for _, cells in records(source)), [])
    with _open_text(file) as source:
        require_header(header, source.readline())
    # Row names are read as text: 007 is not 7. A blank line is a row without its only cell, or else nothing.
    text = {name: pa.string() for name in (index, header[0] if header[0] in INDEX_NAMES else None) if name is not None}
    try:
        with _open_text(file) as source:
            table = csv_files.read_csv(
                source,
                read_options=csv_files.ReadOptions(use_threads=False),
                parse_options=csv_files.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(header) > 1),
                convert_options=csv_files.ConvertOptions(column_types=text),
            )
    except pa.ArrowInvalid as reason:
        with _open_text(file) as source:
            require_cells(source, len(header), reason)
        raise
    at = find_index(table.schema, index, lambda: holds_names(table.column(0)))
    taken = label_positions(header, at, labels)
    values = stack_columns([table.column(j) for j in taken], lambda j, row: _quote_cell(file, row, taken[j]))
    rows = None if at is None else _row_names(table.column(at).to_pylist())
    label_names = label_names_from([header[j] for j in taken])
    return TableContent(values, label_names, row_names_from(rows, is_requested=index is not None))


def _open_text(file: InputFile) -> IO[bytes]:
    assert file.path is not None
    return gzip.open(file.path, "rb") if file.format is CSV_GZIP else file.open()  # type: ignore[return-value]


def _quote_cell(file: InputFile, row: int, column: int) -> str:
    with _open_text(file) as source:
        header = next(cells for _, cells in records(source))
    with _open_text(file) as source:
        rows = data_records(source, len(header))
        line, cells = next(record for i, record in enumerate(rows) if i == row + 1)
        return f"line {line}, column {column + 1}: {quoted(cells[column])}"


def _row_names(column: list[Any]) -> list[Any]:
    """Return row names as whole numbers if each of them is written as one, else as text."""
    try:
        numbers = [int(name) for name in column]
    except (TypeError, ValueError):
        return ["" if name is None else name for name in column]
    return numbers if [str(number) for number in numbers] == [str(name) for name in column] else column


class CsvWriter:
    """Record batches as CSV."""

    def __init__(self, target: IO[bytes], schema: Any) -> None:
        self._writer = arrow("pyarrow.csv").CSVWriter(target, schema)

    def write(self, columns: Any) -> None:
        self._writer.write_batch(columns)

    def finish(self) -> None:
        self._writer.close()


class CsvGzipWriter(CsvWriter):
    """Record batches as compressed CSV: the same bytes from the same table."""

    def __init__(self, target: IO[bytes], schema: Any) -> None:
        self._compressed = gzip.GzipFile(fileobj=target, mode="wb", filename="", mtime=0)
        super().__init__(self._compressed, schema)  # type: ignore[arg-type]

    def finish(self) -> None:
        super().finish()
        self._compressed.close()


CSV = ColumnFormat(
    name="csv",
    endings=(".csv",),
    is_streamable=True,
    open_reader=CsvReader,
    open_writer=CsvWriter,
    read_whole=read_whole,
)
CSV_GZIP = ColumnFormat(
    name="csv.gz",
    endings=(".csv.gz",),
    magic=b"\x1f\x8b",
    description="packed with gzip; call packed CSV .csv.gz, or unpack it",
    is_streamable=True,
    open_reader=CsvReader,
    open_writer=CsvGzipWriter,
    read_whole=read_whole,
)
