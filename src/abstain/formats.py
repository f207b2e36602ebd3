"""How each kind of file holds a table: values, names of labels, names of rows.

Inner rooms of `tables`: what goes wrong is raised without the name of the file, which the door adds.
"""

import csv
import gzip
import io
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain.errors import InvalidDataset

INDEX_NAMES = "id", "index", "", "__index_level_0__"
"""A first column of this name holds the names of the rows: what we write, and what pandas does."""

MISSING = None, "", "NA", "N/A", "null", "NULL"
"""How a cell without a number may be written, in a column that Arrow takes for text."""

FRACTION = re.compile(r"\s*-?\d*\.\d+(e-?\d+)?\s*", re.IGNORECASE)

# How a format reads: the file, the index and the labels asked for → values, names of labels, names of rows.
Parts = tuple[Any, Sequence[str] | None, Any]
Read = Callable[[Path, str | None, list[str] | None], Parts]
# How it writes: where to, values, names of labels, names of rows, and which cells to leave empty.
Write = Callable[[IO[bytes], Any, list[str] | None, NDArray[Any] | None, Any], None]


def counts(names: Any) -> bool:
    """Whether names are just 0, 1, 2 …"""
    return list(names) == list(range(len(names)))


def require_different(names: Sequence[str]) -> None:
    """Raise `InvalidDataset` if two columns have the same name."""
    if len(set(names)) < len(names):
        twice = next(name for j, name in enumerate(names) if name in names[:j])
        raise InvalidDataset(f"two columns are called {twice!r}")


def _positions(wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Where the wanted columns are."""
    at = {name: j for j, name in enumerate(names)}
    for name in wanted:
        if name not in at:
            close = get_close_matches(str(name), names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(map(repr, names[:8]))}"
            raise InvalidDataset(f"there is no column {name!r}{hint}")
    return [at[name] for name in wanted]


# --- CSV and Parquet, by way of Arrow ---------------------------------------------------------------------------------


def _arrow(module: str = "pyarrow") -> Any:
    """A module of pyarrow, which not everybody needs."""
    try:
        return import_module(module)
    except ImportError as reason:
        raise ImportError("CSV and Parquet files need pyarrow: pip install 'abstain[files]'") from reason


def _open(file: Path) -> IO[bytes]:
    return gzip.open(file, "rb") if file.name.lower().endswith(".gz") else file.open("rb")  # type: ignore[return-value]


def _read_csv(file: Path, index: str | None, labels: list[str] | None) -> Parts:
    pa, arrow = _arrow(), _arrow("pyarrow.csv")
    header = next((cells for _, cells in _records(file)), [])
    if not header:
        raise InvalidDataset("there are no columns")
    with _open(file) as source:
        _require_header(header, source.readline())
    # Row names are read as text: 007 is not 7. A blank line is a row without its only cell, or else nothing.
    text = {name: pa.string() for name in (index, header[0] if header[0] in INDEX_NAMES else None) if name is not None}
    try:
        with _open(file) as source:
            table = arrow.read_csv(
                source,
                read_options=arrow.ReadOptions(use_threads=False),
                parse_options=arrow.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(header) > 1),
                convert_options=arrow.ConvertOptions(column_types=text),
            )
    except pa.ArrowInvalid as reason:
        for line, cells in _records(file):
            if cells and len(cells) != len(header):
                found = f"{len(cells)} cell{'' if len(cells) == 1 else 's'}"
                raise InvalidDataset(f"line {line} has {found}, expected {len(header)}") from reason
        raise
    return _from_arrow(table, index, labels, _names_in_text, lambda row, j: _cell_of_csv(file, row, j))


def _require_header(cells: list[str], line: bytes) -> None:
    """Raise `InvalidDataset` if a first line does not name columns, all differently, with commas between them."""
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(cells[0].split(mark)) > len(cells):
            raise InvalidDataset(f"the columns seem to be separated by {name}; expected commas (and points in numbers)")
    # Whoever calls a column 0.5 puts that in quotes, as we do.
    if b'"' not in line and all(FRACTION.fullmatch(cell) for cell in cells):
        shown = ", ".join(cells[:3])
        raise InvalidDataset(
            f"the first line ({shown}{', …' if len(cells) > 3 else ''}) looks like data, not like names"
        )
    require_different(cells)


def _records(file: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines where records end, and their cells: slow, for the header and for messages."""
    with _open(file) as source, io.TextIOWrapper(source, encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text)
        try:
            for cells in reader:
                yield reader.line_num, cells
        except csv.Error as reason:
            raise InvalidDataset(f"line {reader.line_num} cannot be read ({reason})") from reason


def _cell_of_csv(file: Path, row: int, column: int) -> str:
    records = _records(file)
    alone = len(next(records)[1]) == 1
    rows = (record for record in records if record[1] or alone)
    line, cells = next(record for i, record in enumerate(rows) if i == row)
    return f"line {line}, column {column + 1}: {cells[column]!r}"


def _read_parquet(file: Path, index: str | None, labels: list[str] | None) -> Parts:
    parquet = _arrow("pyarrow.parquet")
    with parquet.ParquetFile(file) as source:
        table = source.read()
    require_different(table.column_names)
    if index is None:  # pandas puts the index last, and says so
        written = (table.schema.pandas_metadata or {}).get("index_columns", [])
        index = next((name for name in written if name in table.column_names), None)
    return _from_arrow(
        table, index, labels, list, lambda row, j: f"row {row}, column {j + 1}: {table.column(j)[row].as_py()!r}"
    )


def _from_arrow(
    table: Any,
    index: str | None,
    labels: list[str] | None,
    read_names: Callable[[list[Any]], list[Any]],
    cell: Callable[[int, int], str],
) -> Parts:
    names = table.column_names
    at: int | None = None
    if index is not None:
        (at,) = _positions([index], names)
    elif names and (names[0] in INDEX_NAMES or _holds_names(table.column(0))):
        at = 0
    taken = [j for j in range(len(names)) if j != at] if labels is None else _positions(labels, names)
    if not taken:
        raise InvalidDataset("there are no columns of numbers")
    columns = [_numbers(table.column(j), j, names[j], cell) for j in taken]
    values = np.empty((table.num_rows, len(taken)), np.result_type(*columns))
    for j, column in enumerate(columns):
        values[:, j] = column
    rows = None if at is None else read_names(table.column(at).to_pylist())
    called = [names[j] for j in taken]
    unnamed = called == [str(j) for j in range(len(called))]  # columns must be called something
    return values, None if unnamed else called, None if rows is None or (index is None and counts(rows)) else rows


def _holds_names(column: Any) -> bool:
    """Whether a column is text, and not numbers with a slip of the pen."""
    if not _arrow("pyarrow.types").is_string(column.type):
        return False
    numbers = [text for text in column.to_pylist() if _is_number(text)]
    return 2 * len(numbers) <= len(column) and not any("." in str(number) for number in numbers)


def _names_in_text(column: list[Any]) -> list[Any]:
    """Row names: whole numbers if each of them is written as one, else text."""
    try:
        numbers = [int(name) for name in column]
    except (TypeError, ValueError):
        return ["" if name is None else name for name in column]
    return numbers if [str(number) for number in numbers] == [str(name) for name in column] else column


def _numbers(column: Any, j: int, name: str, cell: Callable[[int, int], str]) -> NDArray[Any]:
    types = _arrow("pyarrow.types")
    kind = column.type
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_boolean(kind) and not column.null_count:
        return column.to_numpy()
    if types.is_boolean(kind):
        return column.cast("int8").to_numpy()
    if types.is_integer(kind) or types.is_floating(kind):
        return column.to_numpy()
    for row, value in enumerate(column.to_pylist()):
        if not _is_number(value):
            raise InvalidDataset(f"{cell(row, j)} is not a number (column {name!r} has type {kind})")
    return np.array([np.nan if value in MISSING else float(value) for value in column.to_pylist()])


def _is_number(value: Any) -> bool:
    try:
        float("nan" if value in MISSING else value)
    except (TypeError, ValueError):
        return False
    return True


def _to_arrow(values: Any, names: list[str] | None, rows: NDArray[Any] | None, left_open: Any) -> Any:
    pa = _arrow()
    dense = values.toarray() if sparse.issparse(values) else values
    labels = [str(j) for j in range(dense.shape[1])] if names is None else names
    empty = left_open.toarray() if sparse.issparse(left_open) else left_open
    columns = [
        pa.array(np.ascontiguousarray(column), mask=None if empty is None else empty[:, j], from_pandas=True)
        for j, column in enumerate(dense.T)
    ]
    if rows is None and labels[0] in INDEX_NAMES:  # or the first label would be taken for the names of the rows
        rows = np.arange(len(dense))
    if rows is not None:
        free = next(name for name in (*INDEX_NAMES, uuid4().hex) if name not in labels)
        labels, columns = [free, *labels], [pa.array(rows.tolist()), *columns]
    return pa.Table.from_arrays(columns, names=labels)


def _write_csv(target: IO[bytes], *parts: Any) -> None:
    _arrow("pyarrow.csv").write_csv(_to_arrow(*parts), target)


def _write_csv_gz(target: IO[bytes], *parts: Any) -> None:
    with gzip.GzipFile(fileobj=target, mode="wb", filename="", mtime=0) as packed:  # same table, same bytes
        _arrow("pyarrow.csv").write_csv(_to_arrow(*parts), packed)


def _write_parquet(target: IO[bytes], *parts: Any) -> None:
    _arrow("pyarrow.parquet").write_table(_to_arrow(*parts), target)


# --- npz --------------------------------------------------------------------------------------------------------------


def _read_npz(file: Path, index: str | None, labels: list[str] | None) -> Parts:
    if not zipfile.is_zipfile(file):
        raise InvalidDataset("is not an npz file, or not all of it")
    with file.open("rb") as source:  # np.load leaves a broken file open if it opens it itself
        arrays = np.load(source, allow_pickle=False)
        names = arrays["label_names"].tolist() if "label_names" in arrays else None
        rows = arrays["index"].tolist() if "index" in arrays else None
        values: Any = sparse.csr_array(sparse.load_npz(file)) if "format" in arrays else _only_table(arrays)
    if values.ndim != 2:
        raise InvalidDataset(f"expected a table, got {values.ndim} dimensions {values.shape}")
    n, m = values.shape
    if (names is not None and len(names) != m) or (rows is not None and len(rows) != n):
        raise InvalidDataset(f"the names of labels or rows do not fit a table of {n} × {m}")
    called = [str(j) for j in range(m)] if names is None else names
    require_different(called)
    if index is not None:
        (at,) = _positions([index], called)
        rows = (values[:, [at]].toarray() if sparse.issparse(values) else values[:, at]).ravel().tolist()
        labels = [name for name in called if name != index] if labels is None else labels
    if labels is None:
        return values, names, rows
    return values[:, _positions(labels, called)], labels, rows


def _only_table(arrays: Any) -> NDArray[Any]:
    tables = [name for name in arrays if name not in ("label_names", "index")]
    if "values" in tables:
        tables = ["values"]
    if len(tables) != 1:
        raise InvalidDataset(f"expected one table, got {len(tables)} arrays: {', '.join(tables)}")
    return arrays[tables[0]]


def _write_npz(target: IO[bytes], values: Any, names: list[str] | None, rows: NDArray[Any] | None, _: Any) -> None:
    arrays: dict[str, Any] = {"values": values}
    if sparse.issparse(values):  # as scipy.sparse.save_npz has it, so that load_npz reads it too
        arrays = {"format": b"csr", "_is_array": True, "shape": values.shape, "data": values.data}
        arrays |= {"indices": values.indices, "indptr": values.indptr}
    if names is not None:
        arrays["label_names"] = np.array(names, dtype=np.str_)
    if rows is not None:
        arrays["index"] = rows
    np.savez_compressed(target, **arrays)


FORMATS: dict[str, tuple[Read, Write]] = {
    ".csv": (_read_csv, _write_csv),
    ".csv.gz": (_read_csv, _write_csv_gz),
    ".parquet": (_read_parquet, _write_parquet),
    ".npz": (_read_npz, _write_npz),
}
