"""One or more files of probabilities, answers or truth, as a stream of batches."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Any, Literal

from scipy.special import expit

from abstain._utils.errors import InvalidDataset, InvalidParameter
from abstain.streams._formats.base import ColumnFormat
from abstain.streams._formats.input_file import InputFile, naming_file
from abstain.streams._formats.registry import require_content_of
from abstain.streams._read.arrays import ArrayTable
from abstain.streams._read.batches import Batch
from abstain.streams._read.files import find_files
from abstain.streams._read.ids import Ids
from abstain.streams._read.long import ColumnNames, LongTable
from abstain.streams._read.source_table import SourceTable
from abstain.streams._read.wide import WideTable

Form = Literal["wide", "long"]
Kind = Literal["probability", "logit"]
Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


class Sources:
    """Several files with the same labels, one after the other, as `open_sources` returns them.

    Only their schemas have been read yet. Each call of `batches` reads everything from the beginning.

    Attributes
    ----------
    label_names : tuple of str, or None
        The names of the labels; None if they are numbered.
    n_labels : int
        The number of labels.
    is_sparse : bool
        Whether zeros are not stored.
    is_single_precision : bool
        Whether all numbers are float32.
    long_columns : tuple of str, or None
        The names of the columns of long tables with the labels and the numbers.
    id_name : str, or None
        The name of the column with the names of the rows; None if there is none.
    id_type : pyarrow.DataType, or None
        The type of that column.
    kind : {"probability", "logit"}
        What the files hold; `batches` gives the probabilities of logits.
    """

    def __init__(self, tables: Sequence[SourceTable], kind: Kind = "probability") -> None:
        self.kind: Kind = kind
        self._tables = tuple(tables)
        first = tables[0]
        self.label_names: tuple[str, ...] | None = first.label_names
        self.n_labels: int = first.n_labels
        self.is_sparse: bool = first.is_sparse
        self.is_single_precision: bool = all(table.is_single_precision for table in tables)
        self.long_columns: tuple[str, str] | None = first.long_columns
        self.id_name: str | None = first.id_name
        self.id_type: Any = first.id_type

    @property
    def files(self) -> list[str]:
        """The names of the files."""
        return [table.file.name for table in self._tables]

    @cached_property
    def n_rows(self) -> int | None:
        """The number of rows; None if the files do not state it."""
        known = [table.n_rows for table in self._tables]
        return None if None in known else sum(n for n in known if n is not None)

    @cached_property
    def n_rows_estimated(self) -> int | None:
        """About the number of rows, guessed from the beginning of each file; None if that is not possible."""
        guessed = [table.n_rows_estimated for table in self._tables]
        return None if None in guessed else sum(n for n in guessed if n is not None)

    @property
    def n_bytes(self) -> int | None:
        """The size of all files in bytes; None for standard input."""
        sizes = [table.file.n_bytes for table in self._tables]
        return None if None in sizes else sum(n for n in sizes if n is not None)

    @property
    def can_be_reopened(self) -> bool:
        """Whether all inputs are files, which unlike pipes can be read again."""
        return all(table.file.path is not None for table in self._tables)

    def each_file(self) -> Iterator["Sources"]:
        """Return each file by itself."""
        return (Sources([table], self.kind) for table in self._tables)

    def with_labels(self, names: Sequence[str]) -> "Sources":
        """Return the same files with some of their labels, in this order."""
        found = []
        for table in self._tables:
            with naming_file(table.file.name):
                found.append(table.with_labels(names))
        return Sources(found, self.kind)

    def require_labels(self) -> None:
        """Raise `InvalidDataset` if there is no label, as in a long table without rows."""
        if self.n_labels == 0:
            raise InvalidDataset(f"{self.files[0]}: there is no label; give the labels, or rows")

    def batches(self, n_rows_before: int = 0) -> Generator[Batch]:
        """Read all rows, a few megabytes at a time; the numbering of rows begins with `n_rows_before`."""
        for table in self._tables:
            n = 0
            with naming_file(table.file.name):
                for batch in table.batches(n_rows_before):
                    n = batch.first_row + len(batch)
                    yield batch if self.kind == "probability" else batch.with_values(expit(batch.table.values))
            n_rows_before += n

    @property
    def file(self) -> InputFile:
        """The first file."""
        return self._tables[0].file

    @property
    def is_long(self) -> bool:
        """Whether the tables are in long form."""
        return isinstance(self._tables[0], LongTable)

    def ids(self) -> Iterator[tuple[str, int, Ids]]:
        """Read the names of the rows, some at a time; yield them with their file and the number of the first one."""
        for table in self._tables:
            with naming_file(table.file.name):
                for first_row, ids in table.ids():
                    yield table.file.name, first_row, ids

    def id_of(self, file: str, row: int) -> Any:
        """Return the name of one row, read again; None if the file cannot be read again."""
        table = next(table for table in self._tables if table.file.name == file)
        if not table.file.is_repeatable:
            return None
        return next(ids[row - first] for first, ids in table.ids() if first <= row < first + len(ids))


def open_sources(
    inputs: Paths,
    *,
    form: Form | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    value_column: str | None = None,
    labels: Sequence[str] | None = None,
    format: str | None = None,  # noqa: A002 - as the command line calls it
    kind: Kind = "probability",
    passes: int = 1,
    row_groups: Sequence[int] | None = None,
) -> Sources:
    """Open files of probabilities, answers or truth, which may be larger than memory.

    Parameters
    ----------
    inputs : path, or sequence of paths
        Files, folders (all data files in them, in the order of their names; those that begin with "." or "_" are
        skipped), "-" for standard input, or a pipe. The format of a file is told by its ending, as for
        `abstain.read_table`, that of standard input and of pipes without one by their first bytes.
    form : {"wide", "long"}, optional
        Wide tables have a column for each label. Long ones have three: the row's name, the label's name and the
        probability; the rows of an instance follow each other, and what is not listed has probability 0. By default
        tables with three columns of which two are called "label" and "probability" are long.
    id_column : str, optional
        The column with the names of the rows; by default as for `read_table`.
    label_column, value_column : str, optional
        What long tables call the column with the names of the labels, by default "label", and the one with the numbers,
        by default "probability" (or "answer", or "relevant"). Tables for which either is given are long.
    labels : sequence of str, optional
        The labels to take, in this order. By default all: of long tables those that occur, for which they are read
        once more (standard input must then be called long here).
    format : str, optional
        The format of the files, where it is not told by their names: "csv", "arrows", …
    kind : {"probability", "logit"}, default="probability"
        What wide tables hold: numbers that are used as they are, or logits, of which the sigmoid is taken.
    passes : int, default=1
        How often `Sources.batches` will be called; standard input is copied to the disk if it is more than once.
    row_groups : sequence of int, optional
        Of a single Parquet file, only these (consecutive) row groups.

    Returns
    -------
    Sources

    Raises
    ------
    InvalidDataset
        If a file cannot be read, or if its labels are not those of the first file.
    MissingFile
        If there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abstain.streams import open_sources
    >>> from abstain import Table, write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(Table([[0.97, 0.55], [0.3, 0.04]], ["sky", "sea"], ["a", "b"]), Path(folder) / "p.parquet")
    ...     sources = open_sources(folder)
    ...     print(sources.label_names, sources.n_rows)
    ...     for batch in sources.batches():
    ...         print(batch.table)
    ('sky', 'sea') 2
    Table of 2 rows × 2 labels (float64): 'sky', 'sea'; rows 'a', 'b'
    """
    columns = ColumnNames(id_column, label_column, value_column)
    if form == "wide" and columns.are_long:
        raise InvalidParameter("form: wide tables have no label_column or value_column")
    form = "long" if columns.are_long else form
    if kind not in ("probability", "logit"):
        raise InvalidParameter(f"kind is {kind!r}; expected 'probability' or 'logit'")
    sources = open_as(inputs, ReadOptions(form, columns, labels, format), passes=passes, row_groups=row_groups)
    if kind == "logit" and sources.is_sparse:
        raise InvalidParameter(f"kind: what {sources.files[0]} does not list would be a logit of 0, a probability of ½")
    sources.kind = kind
    return sources


@dataclass(frozen=True)
class ReadOptions:
    """How files are to be read; without a form, tables that have the columns of long ones are long."""

    form: Form | None = None
    columns: ColumnNames = field(default_factory=ColumnNames)
    labels: Sequence[str] | None = None
    format: str | None = None


def open_as(
    inputs: Paths, options: ReadOptions, *, passes: int = 1, row_groups: Sequence[int] | None = None
) -> Sources:
    """Open files with options that have been checked; see `open_sources`."""
    files = find_files([inputs] if isinstance(inputs, str | PathLike) else inputs, options.format)
    for file in files:
        if passes > 1 or (options.form == "long" and options.labels is None):
            file.copy_to_disk()
    tables: list[SourceTable] = []
    for file in files:
        with naming_file(file.name):
            table = _open_source_table(file, options, row_groups)
            if tables:
                table.require_compatible(tables[0])
        tables.append(table)
    return Sources(_with_same_labels(tables) if options.labels is None else tables)


def _open_source_table(file: InputFile, options: ReadOptions, row_groups: Sequence[int] | None) -> SourceTable:
    """Open one file, whatever its format and form."""
    require_content_of(file)
    columns, labels = options.columns, None if options.labels is None else list(options.labels)
    if not isinstance(file.format, ColumnFormat):
        return ArrayTable(file, columns.ids, labels)
    reader = file.format.open_reader(file, row_groups)
    if options.form == "long" or (options.form is None and columns.look_long(reader.schema.names)):
        return LongTable(reader, columns, labels)
    return WideTable(reader, columns.ids, labels)


def _with_same_labels(tables: list[SourceTable]) -> list[SourceTable]:
    """Return the tables with their labels in the order of the first one, which must be those of all."""
    long_tables = [table for table in tables if isinstance(table, LongTable)]
    if long_tables:  # their labels are known only when they have been read
        known: Any = None
        for long_table in long_tables:
            with naming_file(long_table.file.name):
                known = long_table.find_labels(known)
        names = known.to_pylist()
        return [long_table.with_labels(names) for long_table in long_tables]
    reordered = tables[:1]
    for table in tables[1:]:
        with naming_file(table.file.name):
            reordered.append(table.reordered_like(tables[0]))
    return reordered
