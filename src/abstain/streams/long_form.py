"""Long tables: a row for each stored probability, with the instance's name and the label's."""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain.errors import InvalidDataset
from abstain.formats.columns import arrow, stack
from abstain.formats.names import positions
from abstain.matrix import Table
from abstain.streams.batches import Batch, Ids, id_type
from abstain.streams.parts import Part
from abstain.streams.readers import Reader

LABEL = "label"
VALUES = "probability", "answer", "relevant"
"""What the column of numbers may be called: of probabilities, of decisions, of the truth."""


def looks_long(schema: Any) -> bool:
    """Whether a table has three columns, one of them called "label" and another one as the numbers may be."""
    return len(schema.names) == 3 and LABEL in schema.names and any(name in schema.names for name in VALUES)


class LongPart(Part):
    """A long table as sparse rows: the rows of an instance follow each other; what is not listed has probability 0."""

    is_sparse = True

    def __init__(self, reader: Reader, id_column: str | None, labels: Sequence[str] | None) -> None:
        self.reader, self.file = reader, reader.file
        names = reader.schema.names
        value = next((name for name in VALUES if name in names), VALUES[0])
        self._label_at, self._value_at = positions([LABEL, value], names)
        others = [j for j in range(len(names)) if j not in (self._label_at, self._value_at)]
        if id_column is None and not others:
            raise InvalidDataset(f"there is no column beside {LABEL!r} and {value!r} with the names of the rows")
        self._id_at = others[0] if id_column is None else positions([id_column], names)[0]
        self.id_name, self.id_type = names[self._id_at], id_type(reader.schema.types[self._id_at])
        self.label_names = None if labels is None else tuple(labels)
        self.n_labels = 0 if labels is None else len(labels)

    def with_labels(self, names: Sequence[str]) -> Self:
        part = copy(self)
        part.label_names, part.n_labels = tuple(names), len(names)
        return part

    def find_labels(self, known: Any) -> Any:
        """The labels known so far and those that occur here, in the order in which they come."""
        if not self.file.is_repeatable:
            raise InvalidDataset(
                "is a long table that can be read only once: say that it is long (--form long), or name its labels"
            )
        pa, compute = arrow(), arrow("pyarrow.compute")
        known = pa.array([], pa.string()) if known is None else known
        for piece in self.reader.pieces([self._label_at], []):
            new = compute.unique(piece.columns[0].cast(pa.string())).drop_null()
            known = compute.unique(pa.concat_arrays([known, new]))
        return known

    def batches(self, rows_before: int = 0) -> Iterator[Batch]:
        pa, n_rows = arrow(), 0
        columns = [self._id_at, self._label_at, self._value_at]
        rest: list[Any] | None = None
        for piece in self.reader.pieces(columns, [self._value_at]):
            found = [Ids(piece.columns[0]).array, piece.columns[1].cast(pa.string()), piece.columns[2]]
            if rest is not None:
                found = [pa.concat_arrays(pair) for pair in zip(rest, found, strict=True)]
            for name, column in ((self.id_name, found[0]), (LABEL, found[1])):
                if column.null_count:
                    raise InvalidDataset(f"column {name!r} has an empty cell; every row needs an instance and a label")
            starts = self._starts(found[0])
            if len(starts) == 0:
                continue
            end = int(starts[-1])  # the last instance may go on in the next piece
            rest = [column.slice(end) for column in found]
            if len(starts) > 1:
                yield self._batch([column.slice(0, end) for column in found], starts, n_rows, rows_before)
                n_rows += len(starts) - 1
        if rest is not None:
            yield self._batch(rest, np.array([0, len(rest[0])]), n_rows, rows_before)

    def _starts(self, ids: Any) -> NDArray[np.intp]:
        """Where instances begin."""
        changes = arrow("pyarrow.compute").not_equal(ids.slice(1), ids.slice(0, max(0, len(ids) - 1)))
        starts: NDArray[np.intp] = 1 + np.flatnonzero(changes.to_numpy(zero_copy_only=False))
        return np.concatenate([[0], starts]) if len(ids) else starts

    def _batch(self, columns: list[Any], starts: NDArray[np.intp], n_rows: int, rows_before: int) -> Batch:
        assert self.label_names is not None
        pa, compute = arrow(), arrow("pyarrow.compute")
        ids, labels, values = columns
        at = compute.index_in(labels, value_set=pa.array(self.label_names, pa.string()))
        names = Ids(ids.take(pa.array(starts[:-1])))
        indptr = starts

        def quote(_: int, row: int) -> str:
            return f"{self.id_name} {ids[row].as_py()!r}, label {labels[row].as_py()!r}: {values[row].as_py()!r}"

        data = stack([values], quote)[:, 0]
        if at.null_count:  # labels that were not asked for
            taken = at.is_valid().to_numpy(zero_copy_only=False)
            at, data = at.drop_null(), data[taken]
            indptr = np.concatenate([[0], np.cumsum(taken)])[starts]
        indices = np.array(at)  # sorted in place
        matrix = sparse.csr_array((data, indices, indptr.astype(np.int32)), (len(names), self.n_labels))
        matrix.sort_indices()
        self._require_once(matrix, names)
        return Batch(Table(matrix, self.label_names, names), self.file.name, n_rows, rows_before)

    def _require_once(self, matrix: sparse.csr_array, names: Ids) -> None:
        same = matrix.indices[1:] == matrix.indices[:-1]
        within = np.ones(len(same), bool)
        ends = matrix.indptr[1:-1]
        within[ends[(ends > 0) & (ends <= len(same))] - 1] = False
        twice = np.flatnonzero(same & within)
        if len(twice):
            row = int(np.searchsorted(matrix.indptr, twice[0], side="right")) - 1
            label = (self.label_names or ())[matrix.indices[twice[0]]]
            raise InvalidDataset(f"{self.id_name} {names[row]!r} lists label {label!r} twice")
