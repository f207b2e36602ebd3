"""Out-of-fold probabilities on disk: one Parquet file for each fold, whole and checked or not used.

A file carries its settings and a sha256 of its numbers. Its name has a fingerprint of the settings: other settings,
another file. It is a plain table (`abstain.read_table` reads it), so that nothing in it is ever executed.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._utils.atomic import atomic_write, remove_stale_files
from abstain.experiment._plan import Fold

KEY = b"abstain"


class Kept(NamedTuple):
    """The probabilities of a fold, and how many seconds it took to fit."""

    probabilities: NDArray[np.float64]
    seconds: float


class Store:
    """The probabilities that are already there, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, fold: Fold) -> Path:
        """Where a fold's probabilities are, or will be."""
        return self.folder / f"{fold.name}.parquet"

    def write(self, fold: Fold, kept: Kept) -> None:
        """Keep the probabilities of a fold."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = ["id", *map(str, fold.problem.label_names)]
        table = pa.Table.from_arrays([pa.array(fold.rows[1]), *map(pa.array, kept.probabilities.T)], names=names)
        about = {
            "settings": fold.settings,
            "sha256": _checksum(fold.rows[1], kept.probabilities),
            "seconds": kept.seconds,
        }
        table = table.replace_schema_metadata({KEY: json.dumps(about, sort_keys=True)})
        with atomic_write(self.path(fold)) as target:
            pq.write_table(table, target)

    def read(self, fold: Fold) -> Kept | None:
        """The probabilities of a fold, or None if they are not there or not as they were written."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.path(fold)) as file:  # read_table would make columns of folders like a=b
                table = file.read()
            about = json.loads(table.schema.metadata[KEY])
            rows, *labels = (column.to_numpy() for column in table.columns)
            kept = Kept(np.ascontiguousarray(np.stack(labels, axis=1)), float(about["seconds"]))
            is_whole = about["sha256"] == _checksum(rows, kept.probabilities) and about["settings"] == fold.settings
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
            return None
        return kept if is_whole and np.array_equal(rows, fold.rows[1]) else None

    def prepare(self) -> None:
        """Make the folder, and remove what a killed run has left half-written in it or beside it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_stale_files(self.folder)
        remove_stale_files(self.folder.parent)


def _checksum(rows: NDArray[Any], probabilities: NDArray[np.float64]) -> str:
    found = hashlib.sha256(repr(probabilities.shape).encode())
    found.update(np.ascontiguousarray(rows, np.int64).data)
    found.update(np.ascontiguousarray(probabilities, np.float64).data)
    return found.hexdigest()
