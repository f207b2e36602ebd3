"""Out-of-fold probabilities on disk: one Parquet file for each fold, checked when it is read.

A file carries its settings and a sha256 of its numbers. Its name has a fingerprint of the settings: other settings,
another file. It is a plain table (`abstain.read_table` reads it): nothing in it is ever executed.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._utils.atomic import atomic_write, remove_stale_files
from abstain.experiment._plan import Fold

METADATA_KEY = b"abstain"


class FoldPrediction(NamedTuple):
    """The probabilities of a fold, and how many seconds the fit took."""

    probabilities: NDArray[np.float64]
    seconds: float


class Store:
    """A folder with the probabilities of the folds fitted so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, fold: Fold) -> Path:
        """Return the file for the probabilities of a fold."""
        return self.folder / f"{fold.name}.parquet"

    def write(self, fold: Fold, prediction: FoldPrediction) -> None:
        """Write the probabilities of a fold."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = ["id", *map(str, fold.problem.label_names)]
        table = pa.Table.from_arrays([pa.array(fold.rows[1]), *map(pa.array, prediction.probabilities.T)], names=names)
        metadata = {
            "settings": fold.settings,
            "sha256": _checksum(fold.rows[1], prediction.probabilities),
            "seconds": prediction.seconds,
        }
        table = table.replace_schema_metadata({METADATA_KEY: json.dumps(metadata, sort_keys=True)})
        with atomic_write(self.path(fold)) as target:
            pq.write_table(table, target)

    def read(self, fold: Fold) -> FoldPrediction | None:
        """Return the probabilities of a fold, or None if they are missing or not as they were written."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.path(fold)) as file:  # read_table would make columns of folders like a=b
                table = file.read()
            metadata = json.loads(table.schema.metadata[METADATA_KEY])
            rows, *labels = (column.to_numpy() for column in table.columns)
            prediction = FoldPrediction(np.ascontiguousarray(np.stack(labels, axis=1)), float(metadata["seconds"]))
            is_intact = metadata["sha256"] == _checksum(rows, prediction.probabilities)
            is_of_fold = metadata["settings"] == fold.settings and np.array_equal(rows, fold.rows[1])
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
            return None
        return prediction if is_intact and is_of_fold else None

    def prepare(self) -> None:
        """Make the folder, and remove half-written files of a killed run in it or beside it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_stale_files(self.folder)
        remove_stale_files(self.folder.parent)


def _checksum(rows: NDArray[Any], probabilities: NDArray[np.float64]) -> str:
    digest = hashlib.sha256(repr(probabilities.shape).encode())
    digest.update(np.ascontiguousarray(rows, np.int64).data)
    digest.update(np.ascontiguousarray(probabilities, np.float64).data)
    return digest.hexdigest()
