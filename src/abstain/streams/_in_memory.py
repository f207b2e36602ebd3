"""Probabilities and truth from files that fit into memory, as tables with the same rows and labels."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np
from scipy import sparse

from abstain._core.tables import Table
from abstain.streams._alignment import aligned_batches
from abstain.streams._bad_values import bad_value_error, find_bad_values, find_wrong_truth, truth_error
from abstain.streams._read.batches import Batch
from abstain.streams._read.sources import Sources


def read_aligned(probabilities: Sources, truth: Sources | None = None) -> tuple[Table, Table | None]:
    """Read probabilities and truth as two tables with the same rows, in the same order.

    Rows and labels are matched as by `evaluate_files`; errors name the file and the line or row.

    Parameters
    ----------
    probabilities, truth : Sources
        What `open_aligned` returns; the truth is optional.

    Returns
    -------
    probabilities : Table of shape (n_instances, n_labels)
    truth : Table of shape (n_instances, n_labels), or None

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abstain.streams import open_aligned, read_aligned
    >>> from abstain import Table, write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     p, y = Path(folder) / "p.parquet", Path(folder) / "y.parquet"
    ...     write_table(Table([[0.97, 0.55], [0.3, 0.04]], ["sky", "sea"], ["a", "b"]), p)
    ...     write_table(Table([[0, 1], [1, 0]], ["sea", "sky"], ["a", "b"]), y)
    ...     read_aligned(**open_aligned({"probabilities": p, "truth": y}))[1].values
    array([[1, 0],
           [0, 1]])
    """
    sources = {"probabilities": probabilities} | ({} if truth is None else {"truth": truth})
    batches: dict[str, list[Batch]] = {name: [] for name in sources}
    with closing(aligned_batches(sources)) as aligned:
        for found in aligned:
            if len(find_bad_values(found["probabilities"])[0]):
                raise bad_value_error(found["probabilities"])
            if "truth" in found and len(find_wrong_truth(found["truth"])[0]):
                raise truth_error(found["truth"])
            for name, batch in found.items():
                batches[name].append(batch)
    tables = {name: _concatenated(batches[name], each) for name, each in sources.items()}
    return tables["probabilities"], tables.get("truth")


def _concatenated(batches: Sequence[Batch], sources: Sources) -> Table:
    """Return the rows of all batches as one table."""
    values: Any = [batch.table.values for batch in batches]
    if not values:
        return Table(np.empty((0, sources.n_labels)), sources.label_names)
    matrix = sparse.vstack(values, format="csr") if sparse.issparse(values[0]) else np.concatenate(values)
    ids = [batch.ids for batch in batches]
    index = None if ids[0] is None else [name for some in ids if some is not None for name in some]
    return Table(matrix, batches[0].table.label_names, index)
