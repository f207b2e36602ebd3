"""npy and npz files: arrays as NumPy and scipy keep them, mapped where they lie or unpacked to the disk."""

import mmap
import shutil
import struct
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.tables import Matrix
from abstain._utils.atomic import temporary_file
from abstain._utils.errors import InvalidDataset
from abstain.streams._formats.base import ArrayFormat, TableContent
from abstain.streams._formats.input_file import InputFile
from abstain.streams._formats.names import positions, require_unique
from abstain.streams._formats.numpy_writers import NpyWriter, NpzWriter

HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
ZIP_HEADER_BYTES = 30
"""Bytes before the name of an entry of a zip file."""


def only_table(names: Iterable[str]) -> str:
    """Return which of the arrays in a file is the table."""
    tables = [name for name in names if name not in ("label_names", "index")]
    if "values" in tables:
        tables = ["values"]
    if len(tables) != 1:
        raise InvalidDataset(f"expected one table, got {len(tables)} arrays: {', '.join(tables)}")
    return tables[0]


class MappedArrays(ABC):
    """The arrays of a file by name, mapped to the disk."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._mapped: dict[str, NDArray[Any]] = {}

    @abstractmethod
    def header(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Return the shape and the type of an array."""

    @abstractmethod
    def _map(self, source: IO[bytes], name: str) -> NDArray[Any]:
        """Map an array where it lies in the open file, or where it is unpacked to."""

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._mapped:
            with self._file.open() as source:
                self._mapped[name] = self._map(source, name)
        return self._mapped[name]

    def release_memory(self) -> None:
        """Free the memory of what has been read; it can be read again."""
        for array in self._mapped.values():
            with suppress(AttributeError):  # an empty array is not mapped
                array._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


class NpyArrays(MappedArrays):
    """The only array of an npy file, called "values"."""

    names: Sequence[str] = ("values",)

    def header(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        with self._file.open() as source:
            shape, _, dtype = _read_header(source)
        return shape, dtype

    def _map(self, source: IO[bytes], name: str) -> NDArray[Any]:
        return _map_at(source, 0)


class NpzArrays(MappedArrays):
    """The arrays of an npz file."""

    def __init__(self, file: InputFile) -> None:
        super().__init__(file)
        with file.open() as source:
            if not zipfile.is_zipfile(source):
                raise InvalidDataset("is not an npz file, or not all of it")
            with zipfile.ZipFile(source) as archive:
                self.names: Sequence[str] = [name.removesuffix(".npy") for name in archive.namelist()]

    def header(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        with (
            self._file.open() as source,
            zipfile.ZipFile(source) as archive,
            archive.open(f"{name}.npy") as entry,
        ):
            shape, _, dtype = _read_header(entry)
        return shape, dtype

    def _map(self, source: IO[bytes], name: str) -> NDArray[Any]:
        with zipfile.ZipFile(source) as archive:
            info = archive.getinfo(f"{name}.npy")
            if info.compress_type != zipfile.ZIP_STORED:
                with temporary_file() as unpacked, archive.open(info) as entry:
                    shutil.copyfileobj(entry, unpacked, 1 << 20)
                    unpacked.flush()
                    return _map_at(unpacked, 0)  # the mapping keeps it
            source.seek(info.header_offset)
            lengths = struct.unpack("<HH", source.read(ZIP_HEADER_BYTES)[-4:])
        return _map_at(source, info.header_offset + ZIP_HEADER_BYTES + sum(lengths))


def _read_header(source: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(source)
    if version not in HEADER_READERS:
        raise InvalidDataset(f"npy format {version[0]}.{version[1]} is not known")
    shape, is_fortran, dtype = HEADER_READERS[version](source)
    if dtype.hasobject:
        raise InvalidDataset("holds Python objects; expected numbers")
    return shape, is_fortran, dtype


def _map_at(source: IO[bytes], start: int) -> NDArray[Any]:
    source.seek(start)
    shape, is_fortran, dtype = _read_header(source)
    if 0 in shape or not shape:
        return np.fromfile(source, dtype, 0 if shape else 1).reshape(shape)
    order: Any = "F" if is_fortran else "C"
    return np.memmap(source, dtype, "r", source.tell(), shape, order)


def read_npy(file: InputFile, index: str | None, labels: list[str] | None) -> TableContent:
    """Map the table in an npy file: only the parts that are used are read."""
    assert file.path is not None
    return _select(TableContent(np.load(file.path, mmap_mode="r", allow_pickle=False), None, None), index, labels)


def read_npz(file: InputFile, index: str | None, labels: list[str] | None) -> TableContent:
    """Read a whole npz file: one table, or a matrix as scipy keeps it."""
    assert file.path is not None
    if not zipfile.is_zipfile(file.path):
        raise InvalidDataset("is not an npz file, or not all of it")
    with file.open() as source:  # np.load leaves a broken file open if it opens it itself
        arrays = np.load(source, allow_pickle=False)
        names = arrays["label_names"].tolist() if "label_names" in arrays else None
        rows = arrays["index"].tolist() if "index" in arrays else None
        is_sparse = "format" in arrays
        values: Matrix = sparse.csr_array(sparse.load_npz(file.path)) if is_sparse else arrays[only_table(arrays)]
    return _select(TableContent(values, names, rows), index, labels)


def _select(content: TableContent, index: str | None, labels: list[str] | None) -> TableContent:
    """Return the labels that were asked for, and the column with the names of the rows as such."""
    values, names, rows = content
    if values.ndim != 2:
        raise InvalidDataset(f"expected a table, got {values.ndim} dimensions {values.shape}")
    n, m = values.shape
    if (names is not None and len(names) != m) or (rows is not None and len(rows) != n):
        raise InvalidDataset(f"the names of labels or rows do not fit a table of {n} × {m}")
    columns = [str(j) for j in range(m)] if names is None else names
    require_unique(columns)
    if index is not None:
        (at,) = positions([index], columns)
        rows = (values[:, [at]].toarray() if sparse.issparse(values) else values[:, at]).ravel().tolist()
        labels = [name for name in columns if name != index] if labels is None else labels
    if labels is None:
        return TableContent(values, names, rows)
    return TableContent(values[:, positions(labels, columns)], labels, rows)


NPY = ArrayFormat(
    name="npy",
    endings=(".npy",),
    magic=b"\x93NUMPY",
    description="a NumPy array; call it .npy",
    names_rows=False,
    open_arrays=NpyArrays,
    open_writer=NpyWriter,
    read_whole=read_npy,
)
NPZ = ArrayFormat(
    name="npz",
    endings=(".npz",),
    magic=b"PK\x03\x04",
    description="a zip file, as Excel writes (.xlsx): save the table as CSV; call NumPy's arrays .npz",
    holds_sparse=True,
    open_arrays=NpzArrays,
    open_writer=NpzWriter,
    read_whole=read_npz,
)
