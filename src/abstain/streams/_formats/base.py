"""The interface of a file format: how its files are named, recognised, read and written."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.tables import Matrix
from abstain.streams._formats.columns import arrow, from_arrow, to_arrow
from abstain.streams._sizes import SIZES

if TYPE_CHECKING:
    from abstain.streams._formats.input_file import InputFile

NUMBER_BYTES = 8
"""Memory of one number of a batch: whatever type it is stored as, decisions are made on float64."""
TEXT_BYTES = 16
"""Memory that one text is assumed to take, since no file states it."""
N_INSPECTED_ROWS = 1000
"""Rows from which it is guessed whether the first column holds the names of the rows."""

QuoteRow = Callable[[int], tuple[int, list[str]]]
"""The line number and the cells of a row of a text file, counted from the first row of a batch."""


def batch_height(row_bytes: int) -> int:
    """Return how many rows of the given size make a batch."""
    return max(1, SIZES.batch_bytes // max(1, row_bytes))


class TableContent(NamedTuple):
    """A whole table as a file holds it."""

    values: Matrix
    label_names: Sequence[str] | None
    row_names: Any


@dataclass(frozen=True)
class ColumnBatch:
    """Some rows of a file: the columns asked for, the number of the first row, and how errors quote text."""

    columns: list[Any]
    first_row: int
    quote: QuoteRow | None = None

    def sliced(self, height: int) -> Iterator["ColumnBatch"]:
        """Cut the rows into batches of a given height."""
        for first in range(0, len(self.columns[0]), height):
            yield ColumnBatch([column.slice(first, height) for column in self.columns], self.first_row + first)


class ColumnReader(ABC):
    """A file of named columns; only its schema has been read."""

    schema: Any
    n_rows: int | None = None
    n_rows_estimated: int | None = None

    def __init__(self, file: "InputFile") -> None:
        self.file = file

    @abstractmethod
    def first_holds_names(self) -> bool:
        """Whether the first column seems to hold the names of the rows."""

    @abstractmethod
    def column_batches(self, columns: Sequence[int], numbers: Sequence[int]) -> Iterator[ColumnBatch]:
        """Read some columns, batch by batch; `numbers` are those that hold numbers, which text does not state."""

    def _height(self, columns: Sequence[int], numbers: Sequence[int]) -> int:
        """Return how many rows make a batch."""
        types, values = self.schema.types, set(numbers)
        others = sum(value_bytes(types[j]) for j in columns if j not in values)
        return batch_height(NUMBER_BYTES * len(values) + others)


def value_bytes(arrow_type: Any) -> int:
    """Return how many bytes a value of this Arrow type takes in a column."""
    return max(1, arrow_type.bit_width // 8) if arrow("pyarrow.types").is_primitive(arrow_type) else TEXT_BYTES


class ReadOnceReader(ColumnReader):
    """A reader of what may be standard input, which stays open once its schema has been read."""

    def __init__(self, file: "InputFile") -> None:
        super().__init__(file)
        opened = self._open()
        self.schema, self._first_holds_names = self._inspect(opened)
        self._opened: Any = opened
        if file.is_repeatable:
            opened[0].close()
            self._opened = None

    @abstractmethod
    def _open(self) -> tuple[IO[bytes], Any]:
        """Return the open file, and what has been read of it."""

    @abstractmethod
    def _inspect(self, opened: Any) -> tuple[Any, bool]:
        """Return the schema, and whether the first column holds names."""

    def first_holds_names(self) -> bool:
        return self._first_holds_names

    def _take_opened(self) -> Any:
        """Return the file as it was opened for the schema, or open it again."""
        opened, self._opened = self._opened or self._open(), None
        return opened


class ColumnWriter(Protocol):
    """Writes a file of columns."""

    def write(self, columns: Any) -> None:
        """Write one more record batch."""

    def finish(self) -> None:
        """Write what is still missing at the end of the file."""


class ArrayFile(Protocol):
    """The arrays of a file by name."""

    names: Sequence[str]

    def header(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Return the shape and the type of an array."""

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array, mapped to the disk."""

    def release_memory(self) -> None:
        """Free the memory of what has been read; it can be read again."""


@dataclass(frozen=True)
class ArraySpec:
    """What a file of arrays is going to hold."""

    n_labels: int
    dtype: np.dtype[Any]
    label_names: Sequence[str] | None = None
    id_type: Any = None
    """The Arrow type of the rows' names; None if they have none."""
    is_sparse: bool = False


class ArrayWriter(Protocol):
    """Writes a table of numbers to a file of arrays."""

    def write(self, values: Matrix, ids: Any) -> None:
        """Write some more rows, and their names as an Arrow array if the rows have any."""

    def finish(self) -> None:
        """Write what is still missing at the end of the file."""


@dataclass(frozen=True, kw_only=True)
class Format(ABC):
    """A file format: `ColumnFormat` for tables of named columns, `ArrayFormat` for arrays of numbers."""

    name: str
    """As the command line calls it: "csv.gz"."""
    endings: tuple[str, ...]
    """Endings of file names, with their dots; the first one is written by default."""
    magic: bytes = b""
    """The first bytes of all files of this format; empty if there are none in common."""
    description: str = ""
    """How errors describe a file that begins so, and how it should be named."""
    is_streamable: bool = False
    """Whether it can be read from a pipe and written to one, from beginning to end."""
    stdout_name: str = "csv"
    """The format of decisions on standard output if the input has this format."""
    has_row_groups: bool = False
    """Whether row groups can be read by number, and wide decisions are best written many rows at a time."""
    names_rows: bool = True
    """Whether there is a place for the names of rows."""
    holds_sparse: bool = False
    """Whether a sparse table stays one."""

    @abstractmethod
    def read(self, file: "InputFile", index: str | None, labels: list[str] | None) -> TableContent:
        """Read a whole file; `index` and `labels` are as for `abstain.read_table`."""

    @abstractmethod
    def write(self, target: IO[bytes], file: Path, content: TableContent, abstained: Matrix | None) -> None:
        """Write a whole table to the open target, which becomes the file; what is abstained becomes an empty cell."""


@dataclass(frozen=True, kw_only=True)
class ColumnFormat(Format):
    """A format of named columns, which may hold text."""

    open_reader: Callable[["InputFile", Sequence[int] | None], ColumnReader]
    """Opens a file, or some row groups of it, to be read by batch."""
    open_writer: Callable[[IO[bytes], Any], ColumnWriter]
    """Begins to write columns of an Arrow schema."""
    read_whole: Callable[["InputFile", str | None, list[str] | None], TableContent] | None = None
    """Reads a whole file, if that is more than all batches one after the other."""

    def read(self, file: "InputFile", index: str | None, labels: list[str] | None) -> TableContent:
        if self.read_whole is not None:
            return self.read_whole(file, index, labels)
        reader = self.open_reader(file, None)
        batches = list(reader.column_batches(range(len(reader.schema)), []))
        columns = [
            arrow().chunked_array([batch.columns[j] for batch in batches], type_)
            for j, type_ in enumerate(reader.schema.types)
        ]
        return TableContent(*from_arrow(arrow().Table.from_arrays(columns, schema=reader.schema), index, labels))

    def write(self, target: IO[bytes], file: Path, content: TableContent, abstained: Matrix | None) -> None:
        table = to_arrow(content.values, content.label_names, content.row_names, abstained)
        writer = self.open_writer(target, table.schema)
        for batch in table.to_batches():
            writer.write(batch)
        writer.finish()


@dataclass(frozen=True, kw_only=True)
class ArrayFormat(Format):
    """A format of arrays of numbers, where −1 stands for an abstention."""

    open_arrays: Callable[["InputFile"], ArrayFile]
    """Opens a file to be read by batch."""
    open_writer: Callable[[IO[bytes], ArraySpec, Path], ArrayWriter]
    """Begins to write a table to the open target, which becomes the file at the path."""
    read_whole: Callable[["InputFile", str | None, list[str] | None], TableContent]
    """Reads a whole file."""

    def read(self, file: "InputFile", index: str | None, labels: list[str] | None) -> TableContent:
        return self.read_whole(file, index, labels)

    def write(self, target: IO[bytes], file: Path, content: TableContent, abstained: Matrix | None) -> None:
        values, label_names, row_names = content
        if sparse.issparse(values) and not self.holds_sparse:
            values = values.toarray()
        names = None if row_names is None else arrow().array(row_names.tolist())
        id_type = None if names is None else names.type
        spec = ArraySpec(values.shape[1], values.dtype, label_names, id_type, sparse.issparse(values))
        writer = self.open_writer(target, spec, file)
        writer.write(values, names)
        writer.finish()
