"""Files with a text or an image for each row of a table."""

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from abstain._core.tables import Table
from abstain._utils.errors import InvalidDataset
from abstain._utils.extras import optional
from abstain.streams._formats.names import INDEX_NAMES

IMAGE_ENDINGS = ".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff"


def read_texts(
    path: str | os.PathLike[str], table: Table, column: str | None = None, id_column: str | None = None
) -> list[str | None]:
    """Return a text for each row of a table, in the same order; None where a cell is empty in Parquet.

    Parameters
    ----------
    path : str or path-like
        ``.txt`` with a line for each row, ``.csv`` or ``.parquet``. If it has a column with the names of the rows, and
        the rows of the table have names, these must be equal.
    table : Table
        The table whose rows the texts belong to.
    column : str, optional
        The column of the texts: "text" by default, or the only column besides the names of the rows.
    id_column : str, optional
        A name that the column with the names of the rows may have besides "id" and "index".

    Examples
    --------
    >>> import os, tempfile
    >>> from pathlib import Path
    >>> from abstain._core.tables import Table
    >>> from abstain._report.row_files import read_texts
    >>> table = Table([[0.9], [0.2]], index=["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "notes.csv"
    ...     _ = file.write_text(os.linesep.join(["id,text", "a,a beach", "b,a street"]))
    ...     read_texts(file, table)
    ['a beach', 'a street']
    """
    file = Path(path)
    try:
        names, rows = _read_columns(file)
    except (OSError, ValueError, csv.Error) as reason:
        raise InvalidDataset(f"{file}: cannot be read ({reason})") from reason
    id_names = INDEX_NAMES if id_column is None else (id_column, *INDEX_NAMES)
    text_column = _column_of(file, names, column, id_names)
    if len(rows) != len(table):
        raise InvalidDataset(f"{file}: there are {len(rows)} texts for {len(table)} rows")
    _require_same_rows(file, names, rows, table, id_names)
    return [None if row[text_column] is None else str(row[text_column]) for row in rows]


def find_images(folder: str | os.PathLike[str], table: Table) -> list[Path | None]:
    """Return for each row of a table the image in a folder that has its name, with or without an ending.

    Rows without names are called 0, 1, 2 …. Rows without an image get None; at least one image must be found.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from abstain._core.tables import Table
    >>> from abstain._report.row_files import find_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "b.png").touch()
    ...     [path and path.name for path in find_images(folder, Table([[0.9], [0.2]], index=["a", "b"]))]
    [None, 'b.png']
    """
    files = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in IMAGE_ENDINGS)
    by_name = {path.stem: path for path in files} | {path.name: path for path in files}
    ids = [str(i) for i in (range(len(table)) if table.index is None else table.index)]
    found = [by_name.get(name) for name in ids]
    if not any(found):
        raise InvalidDataset(f"{folder}: there is no picture called as a row is, such as {ids[0] + '.png'!r}")
    return found


def _read_columns(file: Path) -> tuple[list[str], list[Sequence[Any]]]:
    """Return the names of the columns, and the cells row by row."""
    kind = file.suffix.lower()
    if kind == ".txt":
        return ["text"], [(line,) for line in file.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")]
    if kind == ".csv":
        with file.open(encoding="utf-8-sig", newline="") as source:
            reader = csv.reader(source)
            names = next(reader, [])
            rows: list[Sequence[Any]] = []
            for cells in reader:
                if cells and len(cells) != len(names):
                    raise InvalidDataset(f"line {reader.line_num} has {len(cells)} cells, expected {len(names)}")
                rows += [cells] if cells else []
            return names, rows
    if kind == ".parquet":
        parquet = optional("pyarrow.parquet", "Parquet files need pyarrow")
        with parquet.ParquetFile(file) as source:
            table = source.read()
        return table.column_names, list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    raise InvalidDataset("unknown kind of file; expected a name that ends in .txt, .csv, .parquet")


def _column_of(file: Path, names: list[str], wanted: str | None, id_names: Sequence[str]) -> int:
    others = [name for name in names if name not in id_names]
    name = wanted if wanted is not None else others[0] if len(others) == 1 else "text"
    if name not in names:
        raise InvalidDataset(f"{file}: there is no column {name!r}; there are {', '.join(map(repr, names[:8]))}")
    return names.index(name)


def _require_same_rows(
    file: Path, names: list[str], rows: list[Sequence[Any]], table: Table, id_names: Sequence[str]
) -> None:
    column = next((j for j, name in enumerate(names) if name in id_names), None)
    if column is None or table.index is None:
        return
    for i, (row, name) in enumerate(zip(rows, table.index, strict=True)):
        if str(row[column]) != str(name):
            raise InvalidDataset(f"{file}: has other rows: row {i} is {row[column]!r}, expected {name!r}")
