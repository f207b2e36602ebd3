"""The names of rows, kept as Arrow arrays."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._utils.errors import InvalidDataset
from abstain.streams._formats.columns import arrow


class Ids:
    """The names of rows as an Arrow array, made into Python objects only where one is looked at."""

    def __init__(self, array: Any) -> None:
        kind = id_type(array.type)
        self.array = array if array.type == kind else array.cast(kind)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, at: Any) -> Any:
        return self.array[at].to_pylist() if isinstance(at, slice) else self.array[int(at)].as_py()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array.to_pylist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array.to_pylist(), dtype=object if dtype is None else dtype)

    def equals(self, other: Any) -> bool:
        """Whether both name the same rows in the same order."""
        return isinstance(other, Ids) and len(self) == len(other) and not self.differ(other).any()

    def differ(self, other: "Ids") -> NDArray[np.bool_]:
        """Return which rows do not have the same name; a number may be written as text."""
        ours, theirs = comparable(self.array, other.array)
        differ: NDArray[np.bool_] = arrow("pyarrow.compute").not_equal(ours, theirs).to_numpy(zero_copy_only=False)
        return differ

    def take(self, rows: NDArray[np.intp]) -> "Ids":
        """Return the names of some of the rows."""
        return Ids(self.array.take(arrow().array(rows)))


def find_empty(names: Any) -> int | None:
    """Return the position of the first name that is missing or an empty text, if there is one."""
    compute, is_string = arrow("pyarrow.compute"), arrow("pyarrow.types").is_string(names.type)
    empty = compute.fill_null(compute.equal(names, ""), True) if is_string else names.is_null()
    at = compute.index(empty, True).as_py()
    return None if at < 0 else int(at)


def id_type(arrow_type: Any) -> Any:
    """Return the Arrow type in which row names are kept: one for all text, one for all whole numbers that fit."""
    pa, types = arrow(), arrow("pyarrow.types")
    if types.is_dictionary(arrow_type):
        return id_type(arrow_type.value_type)
    if types.is_nested(arrow_type):
        raise InvalidDataset(f"the names of the rows have type {arrow_type}; expected text or numbers")
    if types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type):
        return pa.string()
    return pa.int64() if types.is_integer(arrow_type) and arrow_type != pa.uint64() else arrow_type


def comparable(ours: Any, theirs: Any) -> tuple[Any, Any]:
    """Return two arrays of names in one type, which is text if their types differ."""
    if ours.type == theirs.type:
        return ours, theirs
    return ours.cast(arrow().string()), theirs.cast(arrow().string())
