"""One file of probabilities, whatever its kind and form, as batches."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any, Self

from abstain._core.tables import Table
from abstain._utils.errors import InvalidDataset, quoted
from abstain.streams._formats.columns import arrow, counted_index, find_index, label_positions, stack
from abstain.streams._formats.names import labels_called, positions
from abstain.streams._read.batches import Batch, Ids, id_type
from abstain.streams._read.column_readers import Piece, Quote, Reader
from abstain.streams._read.files import File


class Part(ABC):
    """The probabilities in one file; only names have been read."""

    file: File
    label_names: tuple[str, ...] | None
    n_labels: int
    is_sparse: bool
    id_name: str | None = None
    id_type: Any = None
    n_rows: int | None = None
    n_rows_estimated: int | None = None

    @abstractmethod
    def batches(self, rows_before: int = 0) -> Iterator[Batch]:
        """The rows, a few megabytes at a time."""

    def ids(self) -> Iterator[tuple[int, Ids]]:
        """The names of the rows, with the number of the first of them; nothing if they have none."""
        for batch in self.batches():
            if batch.ids is not None:
                yield batch.first_row, batch.ids

    @abstractmethod
    def with_labels(self, names: Sequence[str]) -> Self:
        """The same file, with its labels in this order."""

    def like(self, first: "Part") -> "Part":
        """The same file with its labels in the order of another, which must have the same."""
        if (self.label_names is None) != (first.label_names is None) or self.n_labels != first.n_labels:
            theirs = set(first.label_names or ())
            if self.label_names is None or first.label_names is None or theirs <= set(self.label_names):
                count = f"{self.n_labels} {'unnamed ' if self.label_names is None else ''}labels"
                extra = [name for name in self.label_names or () if name not in theirs]
                hint = f", among them {quoted(extra[0])}" if extra and first.label_names else ""
                raise InvalidDataset(f"has {count}{hint}; {first.file.name} has {first.n_labels}")
        if self.label_names == first.label_names:
            return self
        assert first.label_names is not None
        return self.with_labels(first.label_names)

    def require_same_kind(self, first: "Part") -> None:
        """Raise `InvalidDataset` if this file cannot follow another: other ids, or sparse after dense."""
        told = [
            f"{'sparse' if part.is_sparse else 'dense'} with "
            + ("no ids" if part.id_type is None else f"ids of type {part.id_type}")
            for part in (self, first)
        ]
        if told[0] != told[1]:
            raise InvalidDataset(f"is {told[0]}, but {first.file.name} is {told[1]}")


class WidePart(Part):
    """A column for each label."""

    is_sparse = False

    def __init__(self, reader: Reader, id_column: str | None, labels: Sequence[str] | None) -> None:
        self.reader, self.file = reader, reader.file
        self.n_rows = reader.n_rows
        self.n_rows_estimated = reader.n_rows_estimated
        schema, names = reader.schema, reader.schema.names
        counted = counted_index(schema, id_column, reader.n_rows)
        self._counted = None if counted is None else counted[1]
        self._id_at = None if counted else find_index(schema, id_column, reader.first_holds_names)
        self._taken = label_positions(names, self._id_at, labels)
        self.label_names = labels_called([names[j] for j in self._taken])
        self.n_labels = len(self._taken)
        if self._id_at is not None:
            self.id_name, self.id_type = names[self._id_at], id_type(schema.types[self._id_at])
        elif counted is not None:
            self.id_name, self.id_type = counted[0], arrow().int64()

    def with_labels(self, names: Sequence[str]) -> Self:
        part = copy(self)
        part._taken = positions(names, self.reader.schema.names)
        part.label_names, part.n_labels = labels_called(names), len(names)
        return part

    def batches(self, rows_before: int = 0) -> Iterator[Batch]:
        columns = [*([] if self._id_at is None else [self._id_at]), *self._taken]
        for piece in self.reader.pieces(columns, self._taken):
            batch = self._batch(piece, rows_before)
            del piece  # or what was read as a whole would stay while more is read
            yield batch
            del batch

    def _batch(self, piece: Piece, rows_before: int) -> Batch:
        ids = self._ids(piece)
        try:
            values = stack(piece.columns[-self.n_labels :], partial(self._misfit, piece))
        except InvalidDataset as reason:
            raise InvalidDataset(f"{reason}; choose the columns of numbers (--labels)") from reason
        quote = None if piece.quote is None else partial(self._quote, piece.quote)
        table = Table(values, self.label_names, ids)
        return Batch(table, self.file.name, piece.first_row, rows_before, quote=quote)

    def ids(self) -> Iterator[tuple[int, Ids]]:
        if self.id_type is not None:
            for piece in self.reader.pieces([self._taken[0] if self._id_at is None else self._id_at], []):
                ids = self._ids(piece)
                assert ids is not None
                yield piece.first_row, ids

    def _ids(self, piece: Piece) -> Ids | None:
        if self._counted is not None:
            rows = self._counted[piece.first_row : piece.first_row + len(piece.columns[0])]
            return Ids(arrow().array(rows, arrow().int64()))
        return None if self._id_at is None else Ids(piece.columns[0])

    def _misfit(self, piece: Piece, j: int, row: int) -> str:
        found = piece.columns[len(piece.columns) - self.n_labels + j][row].as_py()
        return f"row {piece.first_row + row}, column {self._taken[j] + 1}: {quoted(found)}"

    def _quote(self, quote: Quote, row: int, j: int) -> tuple[int, str]:
        line, cells = quote(row)
        return line, cells[self._taken[j]] if cells else ""
