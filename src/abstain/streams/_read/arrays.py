"""npy and npz files: arrays that are mapped where they lie, or unpacked to the disk if they are packed."""

import mmap
import shutil
import struct
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import copy
from typing import IO, Any, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.tables import Matrix, Table
from abstain._utils.atomic import temporary_file
from abstain._utils.errors import InvalidDataset
from abstain.streams._formats.arrays import only_table
from abstain.streams._formats.columns import arrow
from abstain.streams._formats.names import positions, require_different
from abstain.streams._read.batches import NUMBER_BYTES, Batch, Ids, batch_height, id_type
from abstain.streams._read.files import File
from abstain.streams._read.wide import Part

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
LOCAL_HEADER = 30  # bytes before the name of an entry of a zip file


class ArrayPart(Part):
    """A dense array, or a CSR matrix as scipy keeps it, with the names of its labels and rows if it has them."""

    def __init__(self, file: File, id_column: str | None, labels: Sequence[str] | None) -> None:
        self.file = file
        arrays = _Arrays(file)
        self.is_sparse = "format" in arrays.names
        shape = tuple(arrays["shape"].tolist()) if self.is_sparse else arrays.shape(only_table(arrays.names))
        if self.is_sparse and (kind := arrays["format"].item()) not in (b"csr", "csr"):
            raise InvalidDataset(
                f"the matrix is stored as {bytes(kind).decode()}; expected csr, whose rows can be read"
            )
        if len(shape) != 2:
            raise InvalidDataset(f"expected a table, got {len(shape)} dimensions {shape}")
        self.n_rows, self._width = shape
        self.n_rows_estimated = self.n_rows
        names = list(map(str, arrays["label_names"])) if "label_names" in arrays.names else None
        n_ids = arrays.shape("index")[0] if "index" in arrays.names else self.n_rows
        if (names is not None and len(names) != self._width) or n_ids != self.n_rows:
            raise InvalidDataset(f"the names of labels or rows do not fit a table of {self.n_rows} × {self._width}")
        self._called = [str(j) for j in range(self._width)] if names is None else names
        require_different(self._called)
        self._id_at: int | None = None
        if id_column is not None:
            (self._id_at,) = positions([id_column], self._called)
            self.id_name, self.id_type = id_column, arrow().float64()
            labels = [name for name in self._called if name != id_column] if labels is None else labels
        elif "index" in arrays.names:
            self.id_name, self.id_type = "id", id_type(arrow().from_numpy_dtype(arrays.head("index")[1]))
        self._taken = None if labels is None else positions(labels, self._called)
        self.label_names = (None if names is None else tuple(names)) if labels is None else tuple(labels)
        self.n_labels = self._width if self._taken is None else len(self._taken)
        if self.n_labels == 0:
            raise InvalidDataset("there is no label; at least one is needed")

    def with_labels(self, names: Sequence[str]) -> Self:
        part = copy(self)
        part._taken = positions(names, self._called)
        part.label_names, part.n_labels = tuple(names), len(names)
        return part

    def batches(self, rows_before: int = 0) -> Iterator[Batch]:
        arrays = _Arrays(self.file)
        index = arrays["index"] if "index" in arrays.names and self._id_at is None else None
        for rows, values in self._sparse(arrays) if self.is_sparse else self._dense(arrays):
            ids = None if index is None else arrow().array(index[rows])
            if self._id_at is not None:
                ids = arrow().array(
                    values[:, [self._id_at]].toarray()[:, 0] if self.is_sparse else values[:, self._id_at]
                )
            chosen = values if self._taken is None else values[:, self._taken]
            table = Table(chosen, self.label_names, None if ids is None else Ids(ids.cast(self.id_type)))
            yield Batch(table, self.file.name, rows.start, rows_before)

    def _dense(self, arrays: "_Arrays") -> Iterator[tuple[slice, Matrix]]:
        values = arrays[only_table(arrays.names)]
        if values.dtype.kind not in "fiub":
            raise InvalidDataset(f"expected numbers, got dtype {values.dtype}")
        height = batch_height(NUMBER_BYTES * self._width)
        for first in range(0, len(values), height):
            yield slice(first, first + height), np.array(values[first : first + height], order="C")
            arrays.let_go()

    def _sparse(self, arrays: "_Arrays") -> Iterator[tuple[slice, Matrix]]:
        assert self.n_rows is not None
        data, indices, indptr = arrays["data"], arrays["indices"], arrays["indptr"]
        most_rows, most_entries = batch_height(indptr.dtype.itemsize), batch_height(NUMBER_BYTES + 4)
        fits = len(indptr) == self.n_rows + 1 and len(data) == len(indices)
        for k in range(0, self.n_rows if fits else 0, most_rows):
            some = indptr[k : k + 1 + most_rows]
            fits = fits and not np.any(some[1:] < some[:-1])
            arrays.let_go()
        if not fits:
            raise InvalidDataset("the sparse matrix is broken: its parts do not fit each other")
        first = 0
        while first < self.n_rows:
            start = int(indptr[first])
            last = int(np.searchsorted(indptr[: first + most_rows], start + most_entries, side="right")) - 1
            last = min(max(first + 1, last), self.n_rows)
            stored = slice(start, int(indptr[last]))
            narrow = np.int32 if max(stored.stop - start, self._width) <= np.iinfo(np.int32).max else np.int64
            begins = (indptr[first : last + 1] - start).astype(narrow)
            parts = np.array(data[stored]), indices[stored].astype(narrow), begins
            yield slice(first, last), sparse.csr_array(parts, (last - first, self._width))
            arrays.let_go()
            first = last


class _Arrays:
    """The arrays of a file by name, mapped; an npy file has one, "values"."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._mapped: dict[str, NDArray[Any]] = {}
        self.names = ["values"]
        if file.kind == ".npz":
            with file.open() as source:
                if not zipfile.is_zipfile(source):
                    raise InvalidDataset("is not an npz file, or not all of it")
                with zipfile.ZipFile(source) as archive:
                    self.names = [name.removesuffix(".npy") for name in archive.namelist()]

    def head(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        with self._file.open() as source:
            if self._file.kind == ".npy":
                shape, _, dtype = _header(source)
            else:
                with zipfile.ZipFile(source) as archive, archive.open(f"{name}.npy") as entry:
                    shape, _, dtype = _header(entry)
        return shape, dtype

    def shape(self, name: str) -> tuple[int, ...]:
        return self.head(name)[0]

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._mapped:
            with self._file.open() as source:
                self._mapped[name] = self._map(source, name)
        return self._mapped[name]

    def _map(self, source: IO[bytes], name: str) -> NDArray[Any]:
        """An array where it lies in a file, or where it is unpacked to."""
        if self._file.kind == ".npy":
            return _map(source, 0)
        with zipfile.ZipFile(source) as archive:
            info = archive.getinfo(f"{name}.npy")
            if info.compress_type != zipfile.ZIP_STORED:
                with temporary_file() as unpacked, archive.open(info) as entry:
                    shutil.copyfileobj(entry, unpacked, 1 << 20)
                    unpacked.flush()
                    return _map(unpacked, 0)  # the mapping keeps it
            source.seek(info.header_offset)
            lengths = struct.unpack("<HH", source.read(LOCAL_HEADER)[-4:])
        return _map(source, info.header_offset + LOCAL_HEADER + sum(lengths))

    def let_go(self) -> None:
        """Free the memory of what has been read: it can be read again."""
        for array in self._mapped.values():
            with suppress(AttributeError):  # an empty array is not mapped
                array._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def _header(source: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(source)
    if version not in HEADERS:
        raise InvalidDataset(f"npy format {version[0]}.{version[1]} is not known")
    shape, is_fortran, dtype = HEADERS[version](source)
    if dtype.hasobject:
        raise InvalidDataset("holds Python objects; expected numbers")
    return shape, is_fortran, dtype


def _map(source: IO[bytes], start: int) -> NDArray[Any]:
    source.seek(start)
    shape, is_fortran, dtype = _header(source)
    if 0 in shape or not shape:
        return np.fromfile(source, dtype, 0 if shape else 1).reshape(shape)
    order: Any = "F" if is_fortran else "C"
    return np.memmap(source, dtype, "r", source.tell(), shape, order)
