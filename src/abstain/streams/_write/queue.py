"""The review queue of a stream: every abstention, the most valuable review first, however many there are.

Entries are sorted in runs that fit in memory; runs are kept in temporary files and merged at the end, a chunk of each
at a time. When there are many runs, some are merged into a longer one before, since a chunk of each has to fit, too.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.losses import Loss
from abstain._core.prediction import Prediction
from abstain._core.tables import Axes
from abstain._utils.atomic import spill_file
from abstain._utils.errors import InvalidOutput, InvalidProbabilities
from abstain.review._queue import ReviewQueue, review_queue
from abstain.streams._bad_values import find_bad_values
from abstain.streams._formats.base import ColumnFormat
from abstain.streams._formats.columns import arrow
from abstain.streams._formats.registry import format_of
from abstain.streams._read.batches import Batch
from abstain.streams._sizes import SIZES
from abstain.streams._write.sinks import open_column_writer


class QueueWriter:
    """Takes the decisions on batch after batch, and writes their queue at the end: whole, or not at all.

    Parameters
    ----------
    path : path
        Where to write the queue, with the columns id, label, probability and saves; the ending tells the format.
    label_names : sequence of str
    id_type : Arrow type
        Of the rows' names, or numbers.
    with_ends : bool, default=False
        Whether the probabilities are intervals, whose ends get the columns lower and upper.
    """

    def __init__(
        self, path: str | os.PathLike[str], label_names: Sequence[str], id_type: Any, *, with_ends: bool = False
    ) -> None:
        pa = arrow()
        self.path = Path(path)
        if not isinstance(format_of(self.path, InvalidOutput), ColumnFormat):
            raise InvalidOutput(f"{path}: holds no text; write the queue to .csv, .csv.gz, .parquet or .arrow")
        self.n_entries = 0
        self._names = pa.array([str(name) for name in label_names], pa.string())
        numbers = "probability", "saves", *(("lower", "upper") if with_ends else ())
        self._schema = pa.schema([("id", id_type), ("label", pa.int32()), *((name, pa.float64()) for name in numbers)])
        self._pending: list[Any] = []
        self._n_pending = 0
        self._levels: list[_Level] = []  # each has longer runs, of earlier entries
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        schema = self._schema.set(1, arrow().field("label", arrow().string()))
        self._write = self._stack.enter_context(open_column_writer(self.path, schema))
        return self

    def __exit__(self, *reason: Any) -> None:
        self._stack.__exit__(*reason)

    def add(self, batch: Batch, prediction: Prediction, loss: Loss) -> None:
        """Add the abstentions in some more rows.

        Where the batch holds something that is no probability, a review saves as much as if p were ½.
        """
        codes = prediction.codes
        n_splits = -(-(codes.nnz if sparse.issparse(codes) else codes.size) // SIZES.queue_run_entries)
        if n_splits <= 1:
            self._add(batch, prediction, loss)
            return
        for rows in np.array_split(np.arange(len(batch)), min(n_splits, len(batch))):
            part = batch.take(rows)
            axes = Axes(part.table.label_names, part.ids)
            some = type(prediction).from_codes(codes[rows], axes, prediction.expected_loss[rows])
            self._add(part, some, loss)

    def _add(self, batch: Batch, prediction: Prediction, loss: Loss) -> None:
        pa = arrow()
        try:
            queue, is_known = review_queue(batch.probabilities, prediction, loss=loss), None
        except InvalidProbabilities:
            queue, is_known = _queue_with_unknown(batch, prediction, loss)
        ids = (batch.row_numbers() if batch.ids is None else batch.ids).array
        columns = [
            ids.take(pa.array(queue.row)).cast(self._schema.field("id").type),
            pa.array(queue.label.astype(np.int32)),
            pa.array(queue.probability, mask=None if is_known is None else ~is_known),
            pa.array(queue.saves),
            *(() if queue.bounds is None else map(pa.array, np.ascontiguousarray(queue.bounds.T))),
        ]
        self._pending.append(pa.record_batch(columns, schema=self._schema))
        self._n_pending += len(queue)
        self.n_entries += len(queue)
        if self._n_pending >= SIZES.queue_run_entries:
            self._store_run()

    def finish(self) -> None:
        """Write the queue; it appears at the end of the ``with`` block, after what is written within that."""
        if self._levels and self._n_pending:
            self._store_run()
        runs = [run for level in reversed(self._levels) for run in level.runs]
        for entries in _merge(runs) if runs else [self._sort_pending()]:
            for first in range(0, len(entries), SIZES.queue_written_entries):
                some = entries.slice(first, SIZES.queue_written_entries)
                self._write(some.set_column(1, "label", self._names.take(some.column(1))))

    def _sort_pending(self) -> Any:
        """Return the pending entries in order: of equal ones, the first to come is first."""
        pa = arrow()
        pieces = [piece for piece in self._pending if len(piece)]
        self._pending, self._n_pending = [], 0
        whole, is_sorted = pa.Table.from_batches(pieces, self._schema).combine_chunks(), len(pieces) <= 1
        del pieces
        if not is_sorted:
            order = np.argsort(-whole.column("saves").to_numpy(), kind="stable")
            whole = whole.take(pa.array(order))
        batches = whole.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=self._schema)

    def _store_run(self) -> None:
        entries: Iterator[Any] = iter([self._sort_pending()])
        for level in self._levels:
            level.add_run(entries)
            if len(level.runs) < SIZES.queue_merged_runs:
                return
            entries = level.merge_all()
        file = self._stack.enter_context(spill_file(self, self.path))
        self._levels.append(_Level(file, self._schema))
        self._levels[-1].add_run(entries)


class _Run(NamedTuple):
    """Sorted entries in a file: where each chunk of them begins, and its size."""

    file: IO[bytes]
    schema: Any
    chunks: list[tuple[int, int]]

    def load(self, chunk: int) -> Any:
        start, size = self.chunks[chunk]
        self.file.seek(start)
        return arrow("pyarrow.ipc").read_record_batch(arrow().py_buffer(self.file.read(size)), self.schema)


class _Level:
    """Runs of about the same length, in one file."""

    def __init__(self, file: IO[bytes], schema: Any) -> None:
        self._file, self._schema = file, schema
        self.runs: list[_Run] = []

    def add_run(self, entries: Iterator[Any]) -> None:
        """Store one more run: sorted entries, piece by piece."""
        chunks = []
        self._file.seek(0, os.SEEK_END)
        for piece in entries:
            for first in range(0, len(piece), SIZES.queue_chunk_entries):
                data = piece.slice(first, SIZES.queue_chunk_entries).serialize()
                chunks.append((self._file.tell(), data.size))
                self._file.write(data)
        self._file.flush()
        self.runs.append(_Run(self._file, self._schema, chunks))

    def merge_all(self) -> Iterator[Any]:
        """Yield all runs merged into one, and remove them."""
        yield from _merge(self.runs)
        self.runs = []
        self._file.seek(0)
        self._file.truncate()


def _merge(runs: Sequence[_Run]) -> Iterator[Any]:
    """Merge runs, piece by piece; of equal entries, those of the first run come first.

    Of the chunks in memory that are not the last of their run, one ends first: all entries up to its end are in memory,
    and can be put in order.
    """
    pa = arrow()
    heads = [_Head(run.load(0), 1, run) for run in runs]
    while heads:
        unfinished = [(-head.saves[-1], r) for r, head in enumerate(heads) if head.following < len(head.run.chunks)]
        worst, last = min(unfinished, default=(np.inf, len(heads)))
        taken, left = [], []
        for r, head in enumerate(heads):
            size = int(np.searchsorted(-head.saves, worst, side="right" if r <= last else "left"))
            taken.append(head.entries.slice(0, size))
            rest = head.entries.slice(size)
            if len(rest):
                left.append(_Head(rest, head.following, head.run))
            elif head.following < len(head.run.chunks):
                left.append(_Head(head.run.load(head.following), head.following + 1, head.run))
        heads = left
        whole = pa.Table.from_batches(taken).combine_chunks()
        order = np.argsort(-whole.column("saves").to_numpy(), kind="stable")
        yield whole.take(pa.array(order)).combine_chunks().to_batches()[0]


class _Head(NamedTuple):
    """The chunk of a run that is in memory, and which chunk follows."""

    entries: Any
    following: int
    run: _Run

    @property
    def saves(self) -> NDArray[np.float64]:
        saves: NDArray[np.float64] = self.entries.column("saves").to_numpy()
        return saves


def _queue_with_unknown(batch: Batch, prediction: Prediction, loss: Loss) -> tuple[ReviewQueue, NDArray[np.bool_]]:
    """Return the queue of rows with bad values, and which of its entries have a known probability."""
    rows, columns, _ = find_bad_values(batch)
    matrix, m = batch.table.values.astype(np.float64), batch.table.shape[1]
    if sparse.issparse(matrix):
        matrix = matrix.tolil()
    matrix[rows, columns] = 0.5
    queue = review_queue(batch.with_values(matrix).table, prediction, loss=loss)
    return queue, ~np.isin(queue.row * m + queue.label, rows * m + columns)
