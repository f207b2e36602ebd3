"""Long tables: a row for each stored probability, with the instance's name and the label's."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.tables import Table
from abstain._utils.errors import InvalidDataset, quoted
from abstain.streams._formats.column_files import ColumnReader, QuoteRow
from abstain.streams._formats.columns import arrow, stack_columns
from abstain.streams._formats.names import positions
from abstain.streams._read.batches import Batch
from abstain.streams._read.ids import Ids, find_empty, id_type
from abstain.streams._read.source_table import SourceTable

LABEL_COLUMN = "label"
VALUE_COLUMNS = "probability", "answer", "relevant"
"""Names of the column of numbers: of probabilities, of decisions, of the truth."""


@dataclass(frozen=True)
class ColumnNames:
    """The names of columns that the user gave: of the ids, and of the labels and the numbers of long tables."""

    ids: str | None = None
    label: str | None = None
    value: str | None = None

    @property
    def are_long(self) -> bool:
        """Whether a column is given that only long tables have."""
        return self.label is not None or self.value is not None

    def long_names(self, names: Sequence[str]) -> tuple[str, str]:
        """Return the columns of the labels and of the numbers: those given, or those with a default name."""
        value = next((name for name in VALUE_COLUMNS if name in names), VALUE_COLUMNS[0])
        return self.label or LABEL_COLUMN, self.value or value

    def look_long(self, names: Sequence[str]) -> bool:
        """Whether a table has the columns of a long one, and just these unless they are given."""
        return set(self.long_names(names)) <= set(names) and (self.are_long or len(names) == 3)


class LongTable(SourceTable):
    """A long table as sparse rows: the rows of an instance follow each other; what is not listed has probability 0."""

    is_sparse = True

    def __init__(self, reader: ColumnReader, columns: ColumnNames, labels: Sequence[str] | None) -> None:
        self.reader, self.file = reader, reader.file
        names = reader.schema.names
        label, value = columns.long_names(names)
        for name, given, option in ((label, columns.label, "label"), (value, columns.value, "value")):
            if given is None and name not in names:
                there = ", ".join(map(quoted, names[:8]))
                raise InvalidDataset(
                    f"there is no column {quoted(name)}; name it (--{option}-column): there are {there}"
                )
        self._label_column, self.long_columns = label, (label, value)
        self._label_column_at, self._value_column_at = positions([label, value], names)
        self.is_single_precision = reader.schema.types[self._value_column_at] == arrow().float32()
        others = [j for j in range(len(names)) if j not in (self._label_column_at, self._value_column_at)]
        if columns.ids is None and not others:
            raise InvalidDataset(
                f"there is no column beside {quoted(label)} and {quoted(value)} with the names of the rows"
            )
        self._id_column_at = others[0] if columns.ids is None else positions([columns.ids], names)[0]
        self.id_name, self.id_type = names[self._id_column_at], id_type(reader.schema.types[self._id_column_at])
        self.label_names = None if labels is None else tuple(labels)
        self.n_labels = 0 if labels is None else len(labels)

    def with_labels(self, names: Sequence[str]) -> Self:
        table = copy(self)
        table.label_names, table.n_labels = tuple(names), len(names)
        return table

    def find_labels(self, known: Any) -> Any:
        """Return the labels known so far and those that occur here, in the order in which they come."""
        if not self.file.is_repeatable:
            raise InvalidDataset(
                "is a long table that can be read only once: say that it is long (--form long), or name its labels"
            )
        pa, compute = arrow(), arrow("pyarrow.compute")
        known = pa.array([], pa.string()) if known is None else known
        for read in self.reader.column_batches([self._label_column_at], []):
            new = compute.unique(read.columns[0].cast(pa.string())).drop_null()
            known = compute.unique(pa.concat_arrays([known, new]))
        return known

    def batches(self, rows_before: int = 0) -> Iterator[Batch]:
        pa, n_rows = arrow(), 0
        columns = [self._id_column_at, self._label_column_at, self._value_column_at]
        rest: list[Any] | None = None
        begin, quotes = (
            0,
            list[tuple[int, QuoteRow]](),
        )  # the first record that is in no batch yet, and how it is quoted
        for read in self.reader.column_batches(columns, [self._value_column_at]):
            quotes += [] if read.quote is None else [(read.first_row, read.quote)]
            found = [Ids(read.columns[0]).array, read.columns[1].cast(pa.string()), read.columns[2]]
            if rest is not None:
                found = [pa.concat_arrays(pair) for pair in zip(rest, found, strict=True)]
            for name, column in zip((self.id_name, self._label_column), found, strict=False):
                if (empty := find_empty(column)) is not None:
                    place = f"line {_record(quotes, begin + empty)[0]}" if quotes else f"row {begin + empty}"
                    raise InvalidDataset(
                        f"{place} has nothing in column {quoted(name)}; every row needs an instance and a label"
                    )
            starts = self._starts(found[0])
            if len(starts) == 0:
                continue
            end = int(starts[-1])  # the last instance may go on in the next batch
            rest = [column.slice(end) for column in found]
            if len(starts) > 1:
                quote = partial(_record, quotes, first=begin) if quotes else None
                yield self._batch([column.slice(0, end) for column in found], starts, n_rows, rows_before, quote)
                n_rows += len(starts) - 1
            begin += end
            quotes = [quotes[k] for k in range(len(quotes)) if k + 1 == len(quotes) or quotes[k + 1][0] > begin]
        if rest is not None:
            quote = partial(_record, quotes, first=begin) if quotes else None
            yield self._batch(rest, np.array([0, len(rest[0])]), n_rows, rows_before, quote)

    def _starts(self, ids: Any) -> NDArray[np.intp]:
        """Return where instances begin."""
        changes = arrow("pyarrow.compute").not_equal(ids.slice(1), ids.slice(0, max(0, len(ids) - 1)))
        starts: NDArray[np.intp] = 1 + np.flatnonzero(changes.to_numpy(zero_copy_only=False))
        return np.concatenate([[0], starts]) if len(ids) else starts

    def _batch(
        self, columns: list[Any], starts: NDArray[np.intp], n_rows: int, rows_before: int, record: QuoteRow | None
    ) -> Batch:
        assert self.label_names is not None
        pa, compute = arrow(), arrow("pyarrow.compute")
        ids, labels, values = columns
        at = compute.index_in(labels, value_set=pa.array(self.label_names, pa.string()))
        names = Ids(ids.take(pa.array(starts[:-1])))
        indptr = starts

        def describe_cell(_: int, row: int) -> str:
            named = f"{self.id_name} {quoted(ids[row].as_py())}, label {quoted(labels[row].as_py())}"
            return f"{named}: {quoted(values[row].as_py())}"

        data = stack_columns([values], describe_cell)[:, 0]
        if at.null_count:  # labels that were not asked for
            taken = at.is_valid().to_numpy(zero_copy_only=False)
            at, data = at.drop_null(), data[taken]
            indptr = np.concatenate([[0], np.cumsum(taken)])[starts]
        indices = np.array(at)  # sorted in place
        matrix = sparse.csr_array((data, indices, indptr.astype(np.int32)), (len(names), self.n_labels))
        matrix.sort_indices()
        self._require_labels_once(matrix, names)
        quote = None if record is None else partial(self._quote, record, labels, starts)
        return Batch(Table(matrix, self.label_names, names), self.file.name, n_rows, rows_before, quote=quote)

    def _quote(self, record: QuoteRow, labels: Any, starts: NDArray[np.intp], i: int, j: int) -> tuple[int, str]:
        """Return the line that lists label j of row i, or else the first one of the row, and the text of the number."""
        name = (self.label_names or ())[j]
        entries = range(int(starts[i]), int(starts[i + 1]))
        line, cells = record(next((k for k in entries if labels[k].as_py() == name), entries[0]))
        return line, cells[self._value_column_at]

    def _require_labels_once(self, matrix: sparse.csr_array, names: Ids) -> None:
        same = matrix.indices[1:] == matrix.indices[:-1]
        within = np.ones(len(same), bool)
        ends = matrix.indptr[1:-1]
        within[ends[(ends > 0) & (ends <= len(same))] - 1] = False
        twice = np.flatnonzero(same & within)
        if len(twice):
            row = int(np.searchsorted(matrix.indptr, twice[0], side="right")) - 1
            label = (self.label_names or ())[matrix.indices[twice[0]]]
            raise InvalidDataset(f"{self.id_name} {quoted(names[row])} lists label {quoted(label)} twice")


def _record(quotes: Sequence[tuple[int, QuoteRow]], record: int, first: int = 0) -> tuple[int, list[str]]:
    """Return the line and the cells of a record, counted from the first one, given how parts of the file are quoted."""
    start, quote = next(each for each in reversed(quotes) if each[0] <= first + record)
    return quote(first + record - start)
