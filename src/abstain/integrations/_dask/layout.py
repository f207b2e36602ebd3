"""What is known of a table before any of it is computed: its labels, its type, and its chunks."""

from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from scipy import sparse

from abstain._core.tables import Axes, read_matrix


@dataclass(frozen=True)
class ChunkLayout:
    """The chunks of a table, each with some of the rows and all labels."""

    sizes: tuple[float, ...]
    """Number of rows of each chunk; nan where it is not known."""
    n_labels: int
    axes: Axes
    """The names of the labels; for a frame also its index, without any row."""
    is_sparse: bool = False
    divisions: tuple[Any, ...] | None = None
    """The index values between which the partitions of a frame lie; None for an array."""

    def __str__(self) -> str:
        rows = f"{self.n_rows} instances" if self.is_known else "instances"
        return f"{rows} × {self.n_labels} labels in {len(self.sizes)} block{'' if len(self.sizes) == 1 else 's'}"

    @property
    def n_rows(self) -> float:
        """Number of rows, or nan."""
        return sum(self.sizes)

    @property
    def is_known(self) -> bool:
        """Whether the number of rows is known, of each chunk and in all."""
        return not np.isnan(self.n_rows)

    def offsets(self) -> list[tuple[int, str]]:
        """Return the number of the first row of each chunk; if it is not known, 0 and the name of the partition."""
        before = np.concatenate([[0.0], np.cumsum(self.sizes)[:-1]])
        return [(0, f"partition {k}") if np.isnan(first) else (int(first), "") for k, first in enumerate(before)]


def layout_of(table: Any, what: str, error: type[ValueError]) -> ChunkLayout:
    """Return the layout of a Dask array (with whole rows in each chunk) or data frame."""
    if isinstance(table, da.Array):
        if table.ndim != 2:
            raise error(f"{what}: expected an n × m Dask array, got {table.ndim} dimensions {table.shape}")
        m = table.shape[1]
        if np.isnan(m):
            raise error(f"{what}: the Dask array does not know how many labels it has; call its compute_chunk_sizes()")
        is_sparse = sparse.issparse(table._meta)
        like: Any = sparse.csr_array((0, m), dtype=table.dtype) if is_sparse else np.empty((0, m), table.dtype)
        _, axes = read_matrix(like, what, error)
        return ChunkLayout(tuple(table.chunks[0]), m, axes, is_sparse)
    if not hasattr(type(table), "npartitions") or getattr(table, "ndim", 0) != 2:
        raise error(f"{what}: expected a Dask array or data frame of n × m numbers, got {type(table).__name__}")
    _, axes = read_matrix(table._meta, what, error)
    return ChunkLayout((np.nan,) * table.npartitions, len(table.columns), axes, divisions=tuple(table.divisions))
