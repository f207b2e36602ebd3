"""Wide tables: a column for each label."""

from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial
from typing import Self

from abstain._core.tables import Table
from abstain._utils.errors import InvalidDataset, quoted
from abstain.streams._formats.column_files import ColumnBatch, ColumnReader, QuoteRow
from abstain.streams._formats.columns import arrow, find_index, label_positions, range_index, stack_columns
from abstain.streams._formats.names import label_names_from, positions
from abstain.streams._read.batches import Batch
from abstain.streams._read.ids import Ids, id_type
from abstain.streams._read.source_table import SourceTable


class WideTable(SourceTable):
    """A table with a column for each label."""

    is_sparse = False

    def __init__(self, reader: ColumnReader, id_column: str | None, labels: Sequence[str] | None) -> None:
        self.reader, self.file = reader, reader.file
        self.n_rows = reader.n_rows
        self.n_rows_estimated = reader.n_rows_estimated
        schema, names = reader.schema, reader.schema.names
        counted = range_index(schema, id_column, reader.n_rows)
        self._range_index = None if counted is None else counted[1]
        self._id_column = None if counted else find_index(schema, id_column, reader.first_holds_names)
        self._label_columns = label_positions(names, self._id_column, labels)
        self.label_names = label_names_from([names[j] for j in self._label_columns])
        self.n_labels = len(self._label_columns)
        self.is_single_precision = all(schema.types[j] == arrow().float32() for j in self._label_columns)
        if self._id_column is not None:
            self.id_name, self.id_type = names[self._id_column], id_type(schema.types[self._id_column])
        elif counted is not None:
            self.id_name, self.id_type = counted[0], arrow().int64()

    def with_labels(self, names: Sequence[str]) -> Self:
        table = copy(self)
        table._label_columns = positions(names, self.reader.schema.names)
        table.label_names, table.n_labels = label_names_from(names), len(names)
        return table

    def batches(self, rows_before: int = 0) -> Iterator[Batch]:
        columns = [*([] if self._id_column is None else [self._id_column]), *self._label_columns]
        for found in self.reader.column_batches(columns, self._label_columns):
            batch = self._batch(found, rows_before)
            del found  # or what was read as a whole would stay in memory while more is read
            yield batch
            del batch

    def _batch(self, found: ColumnBatch, rows_before: int) -> Batch:
        ids = self._ids(found)
        try:
            values = stack_columns(found.columns[-self.n_labels :], partial(self._describe_cell, found))
        except InvalidDataset as reason:
            raise InvalidDataset(f"{reason}; choose the columns of numbers (--labels)") from reason
        quote = None if found.quote is None else partial(self._quote, found.quote)
        table = Table(values, self.label_names, ids)
        return Batch(table, self.file.name, found.first_row, rows_before, quote=quote)

    def ids(self) -> Iterator[tuple[int, Ids]]:
        if self.id_type is not None:
            for found in self.reader.column_batches(
                [self._label_columns[0] if self._id_column is None else self._id_column], []
            ):
                ids = self._ids(found)
                assert ids is not None
                yield found.first_row, ids

    def _ids(self, found: ColumnBatch) -> Ids | None:
        if self._range_index is not None:
            rows = self._range_index[found.first_row : found.first_row + len(found.columns[0])]
            return Ids(arrow().array(rows, arrow().int64()))
        return None if self._id_column is None else Ids(found.columns[0])

    def _describe_cell(self, found: ColumnBatch, j: int, row: int) -> str:
        value = found.columns[len(found.columns) - self.n_labels + j][row].as_py()
        return f"row {found.first_row + row}, column {self._label_columns[j] + 1}: {quoted(value)}"

    def _quote(self, quote: QuoteRow, row: int, j: int) -> tuple[int, str]:
        line, cells = quote(row)
        return line, cells[self._label_columns[j]] if cells else ""
