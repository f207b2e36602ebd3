"""Scores of each label in narrow bins: all that calibration needs to know of a table, whatever its number of rows.

Scores are log-odds, clipped to ±`LIMIT`, in bins of width `WIDTH`. A bin keeps the weight of its entries, of the
relevant ones, and the mean score. Groups of batches of rows can be merged, so that files of any size can be calibrated.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from abstain._utils.types import Floats

LIMIT = 16.0  # |log-odds| beyond which probabilities (1e-7) are not told apart
WIDTH = 1.0 / 64.0
N_BINS = int(2 * LIMIT / WIDTH) + 1
CERTAIN = 2.0  # the log-odds of 0 and 1 in a table that has nothing between them
MIN_ENTRIES = 100.0  # to know the range of a label's scores: 2 % of new ones are then beyond it
NO_WEIGHT = 1e-9
MAX_CELLS = 1 << 22  # of a table of counts; where there are more, entries are sorted instead


@dataclass(frozen=True)
class Groups:
    """Entries of all labels, one label after the other, in groups of about equal scores, which increase.

    Attributes
    ----------
    cells : int array of shape (n_groups,)
        label · N_BINS + bin; increasing.
    weight : float array of shape (n_groups,)
        The weight of all entries.
    relevant : float array of shape (n_groups,)
        The weight of the relevant ones.
    weighted_scores : float array of shape (n_groups,)
        Σ weight · score.
    n_labels : int
    """

    cells: NDArray[np.int64]
    weight: Floats
    relevant: Floats
    weighted_scores: Floats
    n_labels: int

    @classmethod
    def of(cls, scores: Floats, labels: NDArray[np.intp], relevant: Floats, weight: Floats, n_labels: int) -> Self:
        """Group entries, given as vectors: score (within ±`LIMIT`), label, whether it is relevant, and weight."""
        bins = np.rint((scores + LIMIT) / WIDTH).astype(np.int64)
        return cls._summed(bins + labels * N_BINS, np.array([weight, weight * relevant, weight * scores]), n_labels)

    @classmethod
    def merged(cls, parts: list[Self]) -> Self:
        """Return the groups of all entries together."""
        cells = np.concatenate([part.cells for part in parts])
        sums = np.hstack([[part.weight, part.relevant, part.weighted_scores] for part in parts])
        return cls._summed(cells, sums, parts[0].n_labels)

    @classmethod
    def _summed(cls, cells: NDArray[np.int64], sums: Floats, n_labels: int) -> Self:
        n_cells = n_labels * N_BINS
        if n_cells <= min(MAX_CELLS, 4 * len(cells)):
            found = np.flatnonzero(np.bincount(cells, sums[0], n_cells))
            totals = [_sums(cells, line, n_cells)[found] for line in sums]
        else:
            found, index = np.unique(cells, return_inverse=True)
            totals = [_sums(index, line, len(found)) for line in sums]
            kept = totals[0] > 0
            found, totals = found[kept], [line[kept] for line in totals]
        return cls(found, totals[0], totals[1], totals[2], n_labels)

    @property
    def scores(self) -> Floats:
        """The mean score of each group."""
        return self.weighted_scores / self.weight

    @property
    def labels(self) -> NDArray[np.int64]:
        """The label of each group."""
        return self.cells // N_BINS

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Where the groups of each label begin, and where those of the last one end."""
        return np.searchsorted(self.cells, np.arange(self.n_labels + 1) * N_BINS).astype(np.int64)

    def with_certain_scores_moved(self) -> "Groups":
        """Return the groups with probabilities of exactly 0 and 1 at half the odds of the most certain other entry.

        Votes of trees and of neighbours are often 0, which is no log-odds, and no certainty either.
        """
        scores, bins = self.scores, self.cells % N_BINS
        lowest, highest = bins == 0, bins == N_BINS - 1
        others = scores[~(lowest | highest)]
        low, high = (others.min() - np.log(2), others.max() + np.log(2)) if len(others) else (-CERTAIN, CERTAIN)
        scores[lowest], scores[highest] = max(low, -LIMIT), min(high, LIMIT)
        return replace(self, weighted_scores=scores * self.weight)

    def with_all_labels(self) -> "Groups":
        """Return the groups, with one of almost no weight at log-odds 0 for each label that has none."""
        absent = np.setdiff1d(np.arange(self.n_labels), self.labels)
        nothing = np.full(len(absent), NO_WEIGHT)
        added = Groups(absent * N_BINS + N_BINS // 2, nothing, nothing / 2, np.zeros(len(absent)), self.n_labels)
        return Groups.merged([self, added]) if len(absent) else self

    def ranges(self) -> tuple[Floats, Floats]:
        """Return the lowest and the highest score of each label; those of all labels, if it has few entries."""
        indptr, scores = self.indptr, self.scores
        low = np.full(self.n_labels, scores.min() if len(scores) else -LIMIT)
        high = np.full(self.n_labels, scores.max() if len(scores) else LIMIT)
        some = np.flatnonzero(self.totals()[0] >= MIN_ENTRIES)
        low[some], high[some] = scores[indptr[some]], scores[indptr[some + 1] - 1]
        return low, high

    def totals(self) -> tuple[Floats, Floats]:
        """Return the weight of each label's entries, and of its relevant ones."""
        labels = self.labels
        return _sums(labels, self.weight, self.n_labels), _sums(labels, self.relevant, self.n_labels)


def _sums(places: NDArray[np.int64], values: Floats, n_places: int) -> Floats:
    """Return the sum of the values at each place."""
    return np.bincount(places, values, n_places).astype(np.float64, copy=False)
