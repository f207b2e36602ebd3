"""Whole tables in files of any format, with the names of labels and rows.

What is written is read back as it was: the numbers exactly, the names, and which labels are abstentions. A file is
either written whole or not at all.
"""

import os
from collections.abc import Hashable, Sequence
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.prediction import ABSTAIN, PartialRanking, Prediction
from abstain._core.tables import Matrix, Table, read_matrix
from abstain._utils.atomic import atomic_write, require_writable
from abstain._utils.errors import InvalidDataset, InvalidOutput, MissingFile, quoted
from abstain.streams._formats.base import TableContent
from abstain.streams._formats.input_file import InputFile, naming_file
from abstain.streams._formats.names import is_default_index, require_unique
from abstain.streams._formats.registry import format_of, require_content_of

__all__ = ["Table", "read_table", "write_table"]


def read_table(path: str | os.PathLike[str], *, index: str | None = None, labels: Sequence[str] | None = None) -> Table:
    """Read the table in a file, with the names of its labels and its rows.

    Parameters
    ----------
    path : path
        Its ending tells the format: ``.csv``, ``.csv.gz``, ``.parquet``, ``.arrow`` (also ``.feather``, ``.ipc``),
        ``.arrows`` (a stream), ``.npy`` or ``.npz``. All but the last two need pyarrow. An npz file may also come from
        `scipy.sparse.save_npz`, or from `numpy.savez` with one 2-D array; an npy file is mapped, not read.
    index : str, optional
        The column with the names of the rows. By default it is the first column if that holds text (not mostly numbers)
        or is called "id", "index" or nothing, or the one that pandas has written. Row names 0, 1, 2 … are none.
    labels : sequence of str, optional
        The columns to take, in this order; others may hold anything. By default all. In CSV and Parquet, columns
        called 0, 1, 2 … are labels without names.

    Returns
    -------
    Table
        Empty cells are NaN: `PartialPrediction` takes them for abstentions.

    Raises
    ------
    InvalidDataset
        It names the file, and where in it which text is not a number.
    MissingFile
        If there is no such file.

    Examples
    --------
    >>> import abstain, tempfile
    >>> from pathlib import Path, PurePath
    >>> from abstain import Table, read_table, write_table
    >>> prediction = abstain.decide(Table([[0.97, 0.55], [0.3, 0.04]], ["sky", "sea"], ["a", "b"]), penalty=0.2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(prediction, Path(folder) / "answers.csv")
    ...     print((Path(folder) / "answers.csv").read_text())
    ...     table = read_table(Path(folder) / "answers.csv")
    "id","sky","sea"
    "a",1,
    "b",,0
    >>> table
    Table of 2 rows × 2 labels (float64): 'sky', 'sea'; rows 'a', 'b'
    >>> abstain.PartialPrediction(table)
    PartialPrediction of 2 instances × 2 labels: 50.0% abstained
       sky  sea
    a    1    ?
    b    ?    0
    """
    file = Path(path)
    source = InputFile(file, format_of(file), PurePath(file.name))
    if not file.exists():
        raise MissingFile(f"{file}: there is no such file")
    if not file.is_file():
        found = "is a folder" if file.is_dir() else "can be read only once; save it as a file"
        raise InvalidDataset(f"{file}: {found}")
    with naming_file(file):
        require_content_of(source)
        content = source.format.read(source, index, None if labels is None else list(labels))
    matrix, _ = read_matrix(content.values, str(file), InvalidDataset)
    return Table(matrix, None if content.label_names is None else tuple(content.label_names), content.row_names)


def write_table(table: Any, path: str | os.PathLike[str]) -> None:
    """Write a table to a file, whole or not at all.

    Parameters
    ----------
    table : array-like of shape (n_instances, n_labels), PartialPrediction or PartialRanking
        Abstentions become empty cells, in npz −1. The names of labels and rows are written as text, row names that
        are whole numbers as such. What is sparse stays so in npz, and is filled with zeros in the other formats.
    path : path
        Its ending tells the format, as for `read_table`. CSV does not keep types: each number is written so that it is
        the same once it is given its type again, and row names that are whole numbers are read as such.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path, PurePath
    >>> from scipy import sparse
    >>> from abstain import read_table, write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(sparse.random_array((1000, 50), density=0.01, rng=0), Path(folder) / "p.npz")
    ...     read_table(Path(folder) / "p.npz")
    Table of 1000 rows × 50 labels (sparse float64)
    """
    if isinstance(table, str | os.PathLike):
        raise TypeError(f"write_table(table, path): the table comes first, but that is the path {quoted(str(table))}")
    file = Path(path)
    output_format = format_of(file, InvalidOutput)
    require_writable(file)
    if isinstance(table, Prediction):
        codes, axes = table.codes, table.axes
        if sparse.issparse(codes) and isinstance(table, PartialRanking):
            codes = table.to_dense()  # what a sparse ranking does not store has a position all the same
        abstained = codes == ABSTAIN
    else:
        codes, axes = read_matrix(table, "table", InvalidDataset)
        abstained = None
    names, rows = _label_names(axes.label_names, file), _row_names(axes.index, file)
    with atomic_write(file) as target:
        output_format.write(target, file, TableContent(_native(codes), names, rows), abstained)


def _native(values: Matrix) -> Matrix:
    """Return the numbers in a type that every format has."""
    if values.dtype.kind == "f" and values.dtype.itemsize not in (4, 8):
        return values.astype(np.float32 if values.dtype.itemsize == 2 else np.float64)
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _label_names(names: tuple[Hashable, ...] | None, file: Path) -> list[str] | None:
    """Return the names as text; None if they just count."""
    if names is None or is_default_index(names):
        return None
    texts = [_text(name, file) for name in names]
    with naming_file(file):
        require_unique(texts)
    return texts


def _row_names(index: Any, file: Path) -> NDArray[Any] | None:
    """Return the names as whole numbers or as text; None if they just count."""
    if index is None or is_default_index(index):
        return None
    if all(
        isinstance(name, int | np.integer) and not isinstance(name, bool) and abs(int(name)) < 2**63 for name in index
    ):
        return np.array(list(index), dtype=np.int64)
    return np.array([_text(name, file) for name in index], dtype=np.str_)


def _text(name: Hashable, file: Path) -> str:
    text = str(name)
    if "\0" in text or text != text.encode(errors="ignore").decode():  # a lone surrogate has no bytes
        raise InvalidDataset(f"{file}: the name {quoted(text)} cannot be written as text")
    return text
