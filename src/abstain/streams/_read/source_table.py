"""One file of probabilities, answers or truth, whatever its format and form, to be read by batch."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Self

from abstain._utils.errors import InvalidDataset, quoted
from abstain.streams._formats.input_file import InputFile
from abstain.streams._read.batches import Batch
from abstain.streams._read.ids import Ids


class SourceTable(ABC):
    """A table in one file, to be read by batch; only its schema has been read."""

    file: InputFile
    label_names: tuple[str, ...] | None
    n_labels: int
    is_sparse: bool
    is_single_precision: bool = False
    """Whether all numbers are float32."""
    long_columns: tuple[str, str] | None = None
    """The columns of a long table with the labels and the numbers."""
    id_name: str | None = None
    id_type: Any = None
    n_rows: int | None = None
    n_rows_estimated: int | None = None

    @abstractmethod
    def batches(self, rows_before: int = 0) -> Iterator[Batch]:
        """Read the rows, a few megabytes at a time."""

    def ids(self) -> Iterator[tuple[int, Ids]]:
        """Read the names of the rows, each time with the number of the first one; nothing if they have none."""
        for batch in self.batches():
            if batch.ids is not None:
                yield batch.first_row, batch.ids

    @abstractmethod
    def with_labels(self, names: Sequence[str]) -> Self:
        """Return the table with its labels in this order."""

    def reordered_like(self, first: "SourceTable") -> "SourceTable":
        """Return the table with its labels in the order of another one, which must have the same labels."""
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

    def require_compatible(self, first: "SourceTable") -> None:
        """Raise `InvalidDataset` if this file cannot follow another one: other ids, or sparse after dense."""
        kinds = [
            f"{'sparse' if table.is_sparse else 'dense'} with "
            + ("no ids" if table.id_type is None else f"ids of type {table.id_type}")
            for table in (self, first)
        ]
        if kinds[0] != kinds[1]:
            raise InvalidDataset(f"is {kinds[0]}, but {first.file.name} is {kinds[1]}")
