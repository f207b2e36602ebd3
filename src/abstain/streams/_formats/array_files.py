"""Files of arrays of numbers: the interface of what reads them, and of what writes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from abstain._core.tables import Matrix


class ArrayFile(Protocol):
    """The arrays of a file by name."""

    names: Sequence[str]

    def header(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Return the shape and the type of an array."""

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array, mapped to the disk."""

    def release_memory(self) -> None:
        """Free the memory of what has been read; it can be read again."""


@dataclass(frozen=True)
class ArraySpec:
    """What a file of arrays is going to hold."""

    n_labels: int
    dtype: np.dtype[Any]
    label_names: Sequence[str] | None = None
    id_type: Any = None
    """The Arrow type of the rows' names; None if they have none."""
    is_sparse: bool = False


class ArrayWriter(Protocol):
    """Writes a table of numbers to a file of arrays."""

    def write(self, values: Matrix, ids: Any) -> None:
        """Write some more rows, and their names as an Arrow array if the rows have any."""

    def finish(self) -> None:
        """Write what is still missing at the end of the file."""
