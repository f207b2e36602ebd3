"""Entries of a table whose review saves something."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from abstain.budget._thresholds import find_threshold


class Entries(NamedTuple):
    """Entries that could be reviewed: row and label of each, and the value of its review, which is what it saves."""

    row: NDArray[np.int64]
    label: NDArray[np.int64]
    value: NDArray[np.float64]

    @classmethod
    def concatenate(cls, parts: Iterable[Self]) -> Self:
        """Return the entries of all parts, one part after the other."""
        row, label, value = (np.concatenate(column) for column in zip(cls.none(), *parts, strict=True))
        return cls(row.astype(np.int64, copy=False), label.astype(np.int64, copy=False), value)

    @classmethod
    def none(cls) -> Self:
        """Return no entries."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))

    def take(self, which: Any) -> "Entries":
        """Return the entries at these places, given by a slice, a mask or numbers."""
        return Entries(self.row[which], self.label[which], self.value[which])

    def by_place(self) -> "Entries":
        """Return the entries row by row, and within a row by label."""
        return self.take(np.lexsort((self.label, self.row)))

    def largest(self, count: int | None) -> tuple["Entries", float]:
        """Return the `count` entries of largest value (None: all), and the value of the next one, 0 if there is none.

        Of entries with equal values the first by row and label are taken.
        """
        if count is None or count >= len(self.value):
            return self, 0.0
        threshold = find_threshold(self.value, count)
        taken = self.value > threshold.value
        ties = np.flatnonzero(self.value == threshold.value)
        ties = ties[np.lexsort((self.label[ties], self.row[ties]))]
        taken[ties[: threshold.n_ties]] = True
        return self.take(taken), threshold.value
