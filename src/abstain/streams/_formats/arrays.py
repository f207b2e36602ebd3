"""npy and npz: arrays as NumPy and scipy keep them."""

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._utils.errors import InvalidDataset
from abstain.streams._formats.names import positions, require_different


def read_npz(file: Path, index: str | None, labels: list[str] | None) -> Any:
    """All of an npz file: one table, or a matrix as scipy keeps it."""
    if not zipfile.is_zipfile(file):
        raise InvalidDataset("is not an npz file, or not all of it")
    with file.open("rb") as source:  # np.load leaves a broken file open if it opens it itself
        arrays = np.load(source, allow_pickle=False)
        names = arrays["label_names"].tolist() if "label_names" in arrays else None
        rows = arrays["index"].tolist() if "index" in arrays else None
        values: Any = sparse.csr_array(sparse.load_npz(file)) if "format" in arrays else arrays[only_table(arrays)]
    if values.ndim != 2:
        raise InvalidDataset(f"expected a table, got {values.ndim} dimensions {values.shape}")
    return _chosen(values, names, rows, index, labels)


def read_npy(file: Path, index: str | None, labels: list[str] | None) -> Any:
    """A table in an npy file, left where it is: what is looked at is read."""
    values = np.load(file, mmap_mode="r", allow_pickle=False)
    if values.ndim != 2:
        raise InvalidDataset(f"expected a table, got {values.ndim} dimensions {values.shape}")
    return _chosen(values, None, None, index, labels)


def _chosen(values: Any, names: Any, rows: Any, index: str | None, labels: list[str] | None) -> Any:
    n, m = values.shape
    if (names is not None and len(names) != m) or (rows is not None and len(rows) != n):
        raise InvalidDataset(f"the names of labels or rows do not fit a table of {n} × {m}")
    called = [str(j) for j in range(m)] if names is None else names
    require_different(called)
    if index is not None:
        (at,) = positions([index], called)
        rows = (values[:, [at]].toarray() if sparse.issparse(values) else values[:, at]).ravel().tolist()
        labels = [name for name in called if name != index] if labels is None else labels
    if labels is None:
        return values, names, rows
    return values[:, positions(labels, called)], labels, rows


def only_table(names: Any) -> str:
    """Which of the arrays in a file is the table."""
    tables = [name for name in names if name not in ("label_names", "index")]
    if "values" in tables:
        tables = ["values"]
    if len(tables) != 1:
        raise InvalidDataset(f"expected one table, got {len(tables)} arrays: {', '.join(tables)}")
    return tables[0]


def write_npz(target: IO[bytes], values: Any, names: list[str] | None, rows: NDArray[Any] | None, _: Any) -> None:
    """A table as npz."""
    arrays: dict[str, Any] = {"values": values}
    if sparse.issparse(values):  # as scipy.sparse.save_npz has it, so that load_npz reads it too
        arrays = {"format": b"csr", "_is_array": True, "shape": values.shape, "data": values.data}
        arrays |= {"indices": values.indices, "indptr": values.indptr}
    if names is not None:
        arrays["label_names"] = np.array(names, dtype=np.str_)
    if rows is not None:
        arrays["index"] = rows
    np.savez_compressed(target, **arrays)


def write_npy(target: IO[bytes], values: Any, names: list[str] | None, rows: NDArray[Any] | None, _: Any) -> None:
    """A table as npy, which has no place for names."""
    np.save(target, values.toarray() if sparse.issparse(values) else values)
