"""Tables about the same instances in several files: the same labels, and the same rows batch by batch."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.tables import Table
from abstain._utils.errors import InvalidDataset, InvalidLabels, quoted, some_of
from abstain.streams._formats.columns import arrow
from abstain.streams._prefetch import prefetch
from abstain.streams._read.batches import Batch
from abstain.streams._read.ids import Ids, comparable
from abstain.streams._read.long import ColumnNames
from abstain.streams._read.sources import Form, Paths, ReadOptions, Sources, open_as


def open_aligned(
    files: Mapping[str, Paths],
    *,
    form: Form | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    value_column: str | None = None,
    labels: Sequence[str] | None = None,
    format: str | None = None,  # noqa: A002 - as the command line calls it
    options_for: str | None = None,
    same_labels: bool = False,
) -> dict[str, Sources]:
    """Open tables about the same labels, each with its labels in the order of the first wide one.

    Long tables list just the labels that occur; if all tables are long, the labels are those of any of them.

    Parameters
    ----------
    files : mapping from names to paths
        The files of each table: "probabilities", "prediction" or "truth".
    form, id_column, label_column, value_column, labels, format
        As for `open_sources`, for all tables; but `label_column` and `value_column` make only those long that have such
        columns.
    options_for : str, optional
        The only table that `form` and `format` are about.
    same_labels : bool, default=False
        Whether wide tables must have the same labels, unless `labels` chooses some; otherwise the labels that the first
        one does not have are left out of the others.

    Returns
    -------
    dict from names to Sources
    """
    columns = ColumnNames(id_column, label_column, value_column)

    def opened(name: str, labels: Sequence[str] | None) -> Sources:
        given = (form, format) if options_for in (None, name) else (None, None)
        return open_as(files[name], ReadOptions(given[0], columns, labels, given[1]))

    tables = {name: opened(name, labels) for name in files}
    if columns.are_long and not any(sources.is_long for sources in tables.values()):
        wanted = " and ".join(quoted(column) for column in (label_column, value_column) if column is not None)
        raise InvalidDataset(f"no table has the columns of a long one: there is no column {wanted}")
    if same_labels and labels is None:
        _require_same_labels(tables.values())
    wide = next((sources for sources in tables.values() if not sources.is_long), None)
    names = dict.fromkeys(label for sources in tables.values() for label in sources.label_names or ())
    wanted_labels = tuple(names) if wide is None else wide.label_names
    if wide is not None and wanted_labels is None and any(sources.is_long for sources in tables.values()):
        wanted_labels = tuple(map(str, range(wide.n_labels)))  # as unnamed labels are called in long tables
    for name, sources in tables.items():
        if wanted_labels is None or sources.label_names in (None, wanted_labels):
            continue
        unknown = next((label for label in sources.label_names or () if label not in wanted_labels), None)
        if unknown is not None and sources.is_long:
            raise InvalidLabels(
                f"{sources.files[0]}: there is no label {quoted(unknown)} in {(wide or sources).files[0]}"
            )
        if not sources.can_be_reopened:
            raise InvalidLabels(
                f"{sources.files[0]}: the labels must be the same as in the other table, in the same order"
            )
        tables[name] = opened(name, wanted_labels)
    return tables


def _require_same_labels(tables: Iterable[Sources]) -> None:
    """Raise `InvalidLabels` if a wide table has labels that another one does not have."""
    named = [sources for sources in tables if not sources.is_long and sources.label_names is not None]
    for ours, theirs in permutations(named, 2):
        known = set(theirs.label_names or ())
        if alone := [name for name in ours.label_names or () if name not in known]:
            raise InvalidLabels(
                f"{ours.files[0]} has {some_of(alone)}, which {theirs.files[0]} does not have; both must have the same "
                "labels (--labels chooses some of them)"
            )


def aligned_batches(tables: dict[str, Sources]) -> Generator[dict[str, Batch]]:
    """Yield the same rows of all tables, batch by batch.

    One table determines the rows: a wide one, or else the probabilities, which list most. Other long tables may omit
    rows.
    """
    wide = [name for name in ("prediction", "truth", "probabilities") if name in tables and not tables[name].is_long]
    if not wide and "probabilities" not in tables:
        raise InvalidDataset(
            "prediction and truth are both in long form, where rows without any 1 are not listed: give a table that "
            "has all rows, in wide form or as the probabilities"
        )
    leader = wide[0] if wide else "probabilities"
    others = {name: sources for name, sources in tables.items() if name != leader}
    with ExitStack() as stack:
        cursors = {
            name: _Cursor(sources, stack.enter_context(prefetch(sources.batches()))) for name, sources in others.items()
        }
        for batch in stack.enter_context(closing(tables[leader].batches())):
            done = 0
            while done < len(batch):
                # Wide tables come in batches of their own sizes: take the rows that all of them have.
                available = [cursor.n_available() for cursor in cursors.values() if not cursor.may_omit_rows]
                size = min([len(batch) - done, *available])
                if size == 0:
                    short = next(
                        cursor for cursor in cursors.values() if not cursor.may_omit_rows and cursor.n_available() == 0
                    )
                    raise InvalidLabels(f"{short.files} has only {short.n_rows} rows; {batch.row(done)} is one more")
                part = _cut(batch, done, size)
                yield {leader: part} | {name: cursor.rows_for(part) for name, cursor in cursors.items()}
                done += size
        for cursor in cursors.values():
            cursor.require_end(", ".join(tables[leader].files))


def _cut(batch: Batch, first: int, size: int) -> Batch:
    return batch if size == len(batch) else batch.take(np.arange(first, first + size))


class _Cursor:
    """The next rows of one table; long tables omit rows in which there is nothing to list."""

    def __init__(self, sources: Sources, batches: Iterator[Batch]) -> None:
        self.sources, self.may_omit_rows = sources, sources.is_long
        self.n_rows = 0
        self._batches = batches
        self._batch: Batch | None = None
        self._n_used = 0

    @property
    def files(self) -> str:
        return ", ".join(self.sources.files)

    def n_available(self) -> int:
        """Return how many rows of the present batch, or of the next one, are left; 0 at the end."""
        while self._batch is None or self._n_used == len(self._batch):
            self._batch, self._n_used = next(self._batches, None), 0
            if self._batch is None:
                return 0
        return len(self._batch) - self._n_used

    def rows_for(self, leader: Batch) -> Batch:
        """Return the rows that belong to these rows of the leading table."""
        return self._listed_rows(leader) if self.may_omit_rows else self._next_rows(leader)

    def _next_rows(self, leader: Batch) -> Batch:
        assert self._batch is not None
        part = _cut(self._batch, self._n_used, len(leader))
        self._n_used += len(leader)
        self.n_rows += len(leader)
        _require_same_ids(leader, part)
        return part

    def _listed_rows(self, leader: Batch) -> Batch:
        """Return a row for each row of the leading table, empty if it is not listed."""
        compute = arrow("pyarrow.compute")
        names = (leader.row_numbers() if leader.ids is None else leader.ids).array
        values, at, listed = [], [], []
        while self.n_available():
            assert self._batch is not None
            assert self._batch.ids is not None
            ids, known = comparable(self._batch.ids.array.slice(self._n_used), names)
            place = compute.index_in(ids, value_set=known)
            found = int(np.argmin(np.append(place.is_valid().to_numpy(zero_copy_only=False), False)))
            values.append(self._batch.table.values[self._n_used : self._n_used + found])
            at.append(place.slice(0, found).to_numpy(zero_copy_only=False))
            listed.append((self._batch, self._n_used))
            self._n_used += found
            self.n_rows += found
            if found < len(ids):
                break
        rows = np.concatenate([np.empty(0, np.intp), *at]).astype(np.intp)
        if np.any(np.diff(rows) <= 0):
            i = int(np.argmax(np.diff(rows) <= 0)) + 1
            raise InvalidLabels(
                f"{self.files}: id {quoted(names[int(rows[i])].as_py())} comes in another order than in {leader.file}"
            )
        matrix = _insert_rows(values, rows, (len(leader), self.sources.n_labels))

        def quote(i: int, j: int) -> tuple[int, str]:
            k = next(k for k, some in enumerate(at) if i in some)
            batch, first = listed[k]
            assert batch.quote is not None
            return batch.quote(first + int(np.flatnonzero(at[k] == i)[0]), j)

        is_text = any(batch.quote is not None for batch, _ in listed)
        table = Table(matrix, self.sources.label_names, Ids(names))
        return Batch(table, self.files, leader.first_row, quote=quote if is_text else None)

    def require_end(self, leaders: str) -> None:
        """Raise `InvalidLabels` if there are rows that the leading table does not have."""
        if self.n_available():
            assert self._batch is not None
            raise InvalidLabels(f"{self._batch.row(self._n_used)} is not in {leaders}, or comes in another order there")


def _insert_rows(values: Sequence[Any], rows: NDArray[np.intp], shape: tuple[int, int]) -> sparse.csr_array:
    """Return sparse rows at given positions among empty ones."""
    stored = sparse.vstack([sparse.csr_array((0, shape[1])), *values], format="csr")
    lengths = np.zeros(shape[0], np.int64)
    lengths[rows] = np.diff(stored.indptr)
    return sparse.csr_array((stored.data, stored.indices, np.concatenate([[0], np.cumsum(lengths)])), shape)


def _require_same_ids(ours: Batch, theirs: Batch) -> None:
    if ours.ids is None or theirs.ids is None:
        return
    differ = ours.ids.differ(theirs.ids)
    if differ.any():
        i = int(np.argmax(differ))
        raise InvalidLabels(
            f"{theirs.row(i)} stands beside {ours.row(i)}: the rows must be the same, in the same order"
        )
