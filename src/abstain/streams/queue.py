"""The review queue of a stream: every label left open, the most valuable review first, however many there are.

What comes in is sorted in runs that fit in memory; runs are kept in a nameless file on the disk and merged at the end,
a chunk of each at a time.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain.errors import InvalidDataset, InvalidProbabilities
from abstain.formats import kind_of
from abstain.formats.columns import arrow
from abstain.losses import Loss
from abstain.prediction import PartialPrediction, PartialRanking
from abstain.reviews import ReviewQueue, review_queue
from abstain.streams.batches import Batch
from abstain.streams.repair import find_bad
from abstain.streams.sinks import open_table

RUN = 1 << 20  # entries sorted in memory
CHUNK = 1 << 13  # entries of each run that are in memory while runs are merged
WRITTEN = 1 << 18  # entries written at a time


class QueueWriter:
    """Takes the decisions on batch after batch, and writes their queue at the end: whole, or not at all.

    Parameters
    ----------
    path : path
        Where to write the queue, with the columns id, label, probability and saves; the ending tells the format.
    label_names : sequence of str
    id_type : Arrow type
        Of the rows' names, or numbers.
    """

    def __init__(self, path: str | os.PathLike[str], label_names: Sequence[str], id_type: Any) -> None:
        pa = arrow()
        self.path = Path(path)
        if kind_of(self.path) in (".npy", ".npz"):
            raise InvalidDataset(f"{path}: holds no text; write the queue to .csv, .csv.gz, .parquet or .arrow")
        self.n_entries = 0
        self._names = pa.array([str(name) for name in label_names], pa.string())
        self._schema = pa.schema(
            [("id", id_type), ("label", pa.int32()), ("probability", pa.float64()), ("saves", pa.float64())]
        )
        self._pending: list[Any] = []
        self._n_pending = 0
        self._runs: list[list[tuple[int, int]]] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        schema = self._schema.set(1, arrow().field("label", arrow().string()))
        self._write = self._stack.enter_context(open_table(self.path, schema))
        self._spill = self._stack.enter_context(tempfile.TemporaryFile(dir=self.path.parent))
        return self

    def __exit__(self, *reason: Any) -> None:
        self._stack.__exit__(*reason)

    def add(self, batch: Batch, prediction: PartialPrediction | PartialRanking, loss: Loss) -> None:
        """The labels of some more rows that were left open.

        Where the batch holds no probability, a review saves as much as if nothing were known, p = ½.
        """
        pa = arrow()
        try:
            queue, is_known = review_queue(batch.table, prediction, loss), None
        except InvalidProbabilities:
            queue, is_known = _guessed(batch, prediction, loss)
        ids = (batch.row_numbers() if batch.ids is None else batch.ids).array
        columns = [
            ids.take(pa.array(queue.row)).cast(self._schema.field("id").type),
            pa.array(queue.label.astype(np.int32)),
            pa.array(queue.probability, mask=None if is_known is None else ~is_known),
            pa.array(queue.saves),
        ]
        self._pending.append(pa.record_batch(columns, schema=self._schema))
        self._n_pending += len(queue)
        self.n_entries += len(queue)
        if self._n_pending >= RUN:
            self._keep_run()

    def finish(self) -> None:
        """Write the queue; it appears at the end of the ``with`` block, after what is written within that."""
        if self._runs and self._n_pending:
            self._keep_run()
        for entries in self._merged() if self._runs else [self._sorted()]:
            for first in range(0, len(entries), WRITTEN):
                some = entries.slice(first, WRITTEN)
                self._write(some.set_column(1, "label", self._names.take(some.column(1))))

    def _sorted(self) -> Any:
        """What waits, in order: of equals what came first."""
        pa = arrow()
        pieces = [piece for piece in self._pending if len(piece)]
        self._pending, self._n_pending = [], 0
        whole = pa.Table.from_batches(pieces, self._schema).combine_chunks()
        if len(pieces) > 1:
            order = np.argsort(-whole.column("saves").to_numpy(), kind="stable")
            whole = whole.take(pa.array(order))
        batches = whole.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=self._schema)

    def _keep_run(self) -> None:
        whole, run = self._sorted(), []
        for first in range(0, len(whole), CHUNK):
            data = whole.slice(first, CHUNK).serialize()
            run.append((self._spill.tell(), data.size))
            self._spill.write(data)
        self._runs.append(run)

    def _merged(self) -> Iterator[Any]:
        """All runs as one, piece by piece.

        What comes no later than the end of the first chunk to end, of those that are not the last of their run, is in
        memory; so it is in order.
        """
        pa = arrow()
        self._spill.flush()
        heads = [_Head(self._load(run, 0), 1, run) for run in self._runs]
        while heads:
            unfinished = [(-head.saves[-1], r) for r, head in enumerate(heads) if head.following < len(head.run)]
            worst, last = min(unfinished, default=(np.inf, len(heads)))
            taken, left = [], []
            for r, head in enumerate(heads):
                size = int(np.searchsorted(-head.saves, worst, side="right" if r <= last else "left"))
                taken.append(head.entries.slice(0, size))
                rest = head.entries.slice(size)
                if len(rest):
                    left.append(_Head(rest, head.following, head.run))
                elif head.following < len(head.run):
                    left.append(_Head(self._load(head.run, head.following), head.following + 1, head.run))
            heads = left
            whole = pa.Table.from_batches(taken).combine_chunks()
            order = np.argsort(-whole.column("saves").to_numpy(), kind="stable")
            yield whole.take(pa.array(order)).combine_chunks().to_batches()[0]

    def _load(self, run: list[tuple[int, int]], chunk: int) -> Any:
        start, size = run[chunk]
        self._spill.seek(start)
        return arrow("pyarrow.ipc").read_record_batch(arrow().py_buffer(self._spill.read(size)), self._schema)


class _Head(NamedTuple):
    """The part of a run that is in memory, and which chunk follows."""

    entries: Any
    following: int
    run: list[tuple[int, int]]

    @property
    def saves(self) -> NDArray[np.float64]:
        saves: NDArray[np.float64] = self.entries.column("saves").to_numpy()
        return saves


def _guessed(
    batch: Batch, prediction: PartialPrediction | PartialRanking, loss: Loss
) -> tuple[ReviewQueue, NDArray[np.bool_]]:
    """The queue of rows that hold something else than probabilities, and which of its entries do not."""
    rows, columns, _ = find_bad(batch)
    matrix, m = batch.table.values.astype(np.float64), batch.table.shape[1]
    if sparse.issparse(matrix):
        matrix = matrix.tolil()
    matrix[rows, columns] = 0.5
    queue = review_queue(batch.with_values(matrix).table, prediction, loss)
    return queue, ~np.isin(queue.row * m + queue.label, rows * m + columns)
