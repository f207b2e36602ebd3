"""The check that no two rows have the same name, in bounded memory however many rows there are."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._utils.atomic import spill_file
from abstain._utils.errors import InvalidDataset, quoted
from abstain.streams._arrow_kernels import hash_numbers, hash_texts
from abstain.streams._formats.columns import arrow
from abstain.streams._read.batches import Batch
from abstain.streams._read.ids import Ids, find_empty
from abstain.streams._read.sources import Sources
from abstain.streams._sizes import SIZES

N_BUCKETS = 256
"""Parts of the range of all hashes, which are compared one after the other."""
ROW_BITS = 40
"""Bits for the number of a row within its file; the number of the file is above them."""

Hashed = NDArray[np.uint64]  # two hashes of each row, and its number


class UniqueIds:
    """Collects the names of rows, and raises an error if one occurs twice.

    Each name is kept as 128 bits of hash (which two different names of 10¹² would share with a probability of 10⁻¹⁵),
    sorted in runs that go to the disk when there are many. At the end the runs are compared, bucket by bucket.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._pending: list[Hashed] = []
        self._n_pending = 0
        self._file: Any = None
        self._runs: list[tuple[int, NDArray[np.intp]]] = []  # where each begins in the file, and its buckets in it
        self._n_written = 0

    def checked(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield the batches; raise `InvalidDataset` if two rows that are close to each other have the same name."""
        for batch in batches:
            if batch.ids is not None:
                if (empty := find_empty(batch.ids.array)) is not None:
                    raise InvalidDataset(f"{batch.place(empty)} has no id; every row needs one, and none twice")
                self.add(batch.ids, batch.file, batch.first_row)
            yield batch

    def add(self, ids: Ids, file: str, first_row: int) -> None:
        """Add the names of some more rows of a file."""
        if (empty := find_empty(ids.array)) is not None:
            raise InvalidDataset(f"{file}: row {first_row + empty} has no id; every row needs one, and none twice")
        number = (self._sources.files.index(file) << ROW_BITS) + first_row
        hashed = np.empty((len(ids), 3), np.uint64)
        _hash(ids.array, hashed[:, :2])
        hashed[:, 2] = np.arange(number, number + len(ids))
        self._pending.append(hashed)
        self._n_pending += len(ids)
        if self._n_pending >= SIZES.id_run_rows:
            self._write_run()

    def finish(self) -> None:
        """Compare all names."""
        if not self._runs:
            self._sorted_run()
            return
        self._write_run()
        for k in range(N_BUCKETS):
            runs = [self._read(start, buckets[k], buckets[k + 1]) for start, buckets in self._runs]
            self._require_unique(np.concatenate(runs))

    def _sorted_run(self) -> Hashed:
        run = np.concatenate([*self._pending, np.empty((0, 3), np.uint64)])
        self._pending, self._n_pending = [], 0
        return self._require_unique(run)

    def _write_run(self) -> None:
        run = self._sorted_run()
        self._file = self._file or spill_file(self)
        limits = np.arange(1, N_BUCKETS, dtype=np.uint64) << np.uint64(56)
        buckets = np.concatenate([[0], np.searchsorted(run[:, 0], limits), [len(run)]])
        self._file.seek(0, 2)
        self._file.write(run.data)
        self._runs.append((self._n_written, buckets))
        self._n_written += len(run)

    def _read(self, start: int, first: int, last: int) -> Hashed:
        self._file.seek(24 * (start + int(first)))
        return np.fromfile(self._file, np.uint64, 3 * int(last - first)).reshape(-1, 3)

    def _require_unique(self, hashed: Hashed) -> Hashed:
        hashed = hashed[np.argsort(hashed[:, 0], kind="stable")]
        same = hashed[1:, 0] == hashed[:-1, 0]
        if same.any():  # rare: then the second hash decides
            hashed = hashed[np.lexsort((hashed[:, 2], hashed[:, 1], hashed[:, 0]))]
            duplicates = np.flatnonzero((hashed[1:, :2] == hashed[:-1, :2]).all(axis=1))
            if len(duplicates):
                at = min(duplicates, key=lambda k: int(hashed[k + 1, 2]))
                self._raise_duplicate(int(hashed[at, 2]), int(hashed[at + 1, 2]))
        return hashed

    def _raise_duplicate(self, first: int, second: int) -> None:
        files = self._sources.files
        (file, row), (other, at) = ((files[number >> ROW_BITS], number % (1 << ROW_BITS)) for number in (second, first))
        name = self._sources.id_of(file, row)
        called = "the same id" if name is None else f"the id {quoted(name)}"
        hint = "; the rows of an instance must follow each other" if self._sources.is_long else ""
        raise InvalidDataset(f"{file}: row {row} has {called}, as row {at} of {other} has{hint}")


def _hash(array: Any, hashes: NDArray[np.uint64]) -> None:
    """Compute two hashes of each name: of whole numbers, or of text, as which everything else is taken."""
    pa, types = arrow(), arrow("pyarrow.types")
    if types.is_integer(array.type):
        hash_numbers(array.to_numpy(zero_copy_only=False).astype(np.uint64), hashes)
        return
    text = array if types.is_large_string(array.type) or types.is_string(array.type) else array.cast(pa.large_string())
    _, offsets, data = text.buffers()
    kind = np.int64 if types.is_large_string(text.type) else np.int32
    at = np.frombuffer(offsets, kind)[text.offset : text.offset + len(text) + 1]
    hash_texts(at, np.frombuffer(data or b"", np.uint8), hashes)
