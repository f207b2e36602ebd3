"""Files of named columns: the interface of what reads them batch by batch, and of what writes them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Protocol

from abstain.streams._formats.columns import arrow
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
