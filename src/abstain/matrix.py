"""The door for tables: any array-like, frame or sparse matrix becomes a 2-D NumPy array or CSR, with its names.

Nothing is copied that NumPy can view. What rows and labels are called travels along in `Axes`.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain.errors import InvalidLabels

Matrix: TypeAlias = Any  # an n × m NDArray or sparse.csr_array; `sparse.issparse` tells


@dataclass(frozen=True)
class Axes:
    """What the rows and the labels of a table are called, and the library of the frame they came in."""

    label_names: tuple[Hashable, ...] | None = None
    index: Any = None
    library: str = "pandas"

    def row(self, i: int) -> str:
        """How an error message names row i."""
        return f"row {i}" if self.index is None else f"row {i} (index {self.index[i]!r})"

    def label(self, j: int) -> str:
        """How an error message names column j."""
        return f"column {j}" if self.label_names is None else f"column {j} (label {self.label_names[j]!r})"

    def names(self, n_labels: int, given: Sequence[Hashable] | None = None) -> list[Hashable]:
        """Names for the labels: those given, those that came with the table, or numbers."""
        if given is not None:
            if len(given) != n_labels:
                raise InvalidLabels(f"label_names has {len(given)} names for {n_labels} labels")
            return list(given)
        return list(range(n_labels) if self.label_names is None else self.label_names)


def read_matrix(table: Any, what: str, error: type[ValueError]) -> tuple[Matrix, Axes]:
    """Any table as a 2-D array of numbers or a CSR array with sorted, unique columns; a vector is one row."""
    axes = Axes()
    if sparse.issparse(table):
        return _read_sparse(table, what, error), axes
    if hasattr(table, "columns") and hasattr(table, "to_numpy"):
        table, axes = _read_frame(table, what, error)
    try:
        array = np.asarray(table)
    except Exception as reason:
        raise error(f"{what}: cannot be read as an array ({reason})") from reason
    if isinstance(table, np.ma.MaskedArray) and np.ma.is_masked(table):
        i, *rest = np.argwhere(np.ma.getmaskarray(table))[0]
        raise error(f"{what}: row {i}{f', column {rest[0]}' if rest else ''} is masked; every value must be there")
    if array.dtype.kind not in "fiub":
        raise error(f"{what}: expected numbers, got dtype {array.dtype}")
    if array.ndim == 1:
        array = array[np.newaxis]
    if array.ndim != 2:
        raise error(
            f"{what}: expected an n × m table or one row of m labels, got {array.ndim} dimensions {array.shape}"
        )
    if array.shape[1] == 0:
        raise error(f"{what}: there is no label (shape {array.shape}); at least one is needed")
    return array, axes


def _read_sparse(table: Any, what: str, error: type[ValueError]) -> sparse.csr_array:
    if table.ndim != 2:
        raise error(f"{what}: expected an n × m sparse matrix, got {table.ndim} dimension")
    if table.shape[1] == 0:
        raise error(f"{what}: there is no label (shape {table.shape}); at least one is needed")
    if table.dtype.kind not in "fiub":
        raise error(f"{what}: expected numbers, got dtype {table.dtype}")
    matrix = sparse.csr_array(table)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _read_frame(table: Any, what: str, error: type[ValueError]) -> tuple[NDArray[Any], Axes]:
    """The values of a pandas or polars frame, missing ones as NaN, and what its rows and columns are called."""
    library = type(table).__module__.partition(".")[0]
    axes = Axes(tuple(table.columns), getattr(table, "index", None), library)
    if library not in ("pandas", "polars"):
        return table.to_numpy(), axes
    for j, name in enumerate(table.columns):
        column = table.iloc[:, j] if library == "pandas" else table[name]
        numeric = (
            column.dtype.kind in "fiub" if library == "pandas" else column.dtype.is_numeric() or column.dtype == bool
        )
        if not numeric:
            raise error(
                f"{what}: {axes.label(j)} has type {column.dtype}, expected numbers (pass the label columns only)"
            )
    if library == "pandas":
        plain = len(set(table.dtypes)) == 1 and isinstance(table.dtypes.iloc[0], np.dtype)
        return table.to_numpy() if plain else table.to_numpy(dtype=np.float64, na_value=np.nan), axes
    return table.to_numpy(), axes
