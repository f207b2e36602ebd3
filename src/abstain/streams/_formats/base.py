"""The interface of a file format: how its files are named, recognised, read and written."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from scipy import sparse

from abstain._core.tables import Matrix
from abstain.streams._formats.array_files import ArrayFile, ArraySpec, ArrayWriter
from abstain.streams._formats.column_files import ColumnReader, ColumnWriter
from abstain.streams._formats.columns import arrow, from_arrow, to_arrow

if TYPE_CHECKING:
    from abstain.streams._formats.input_file import InputFile


class TableContent(NamedTuple):
    """A whole table as a file holds it."""

    values: Matrix
    label_names: Sequence[str] | None
    row_names: Any


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
