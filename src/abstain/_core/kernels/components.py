"""What kernels decide from where labels depend on each other: the components of the joint distribution of each row.

A joint distribution is a weighted sum of components, in each of which the labels are independent. The probabilities of
a component are those of a mixture, or 0 and 1: then the component is a sample, a possible truth.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Components(NamedTuple):
    """The components of some rows; as in CSR, those of row i are number indptr[i] to indptr[i + 1] − 1.

    Attributes
    ----------
    indptr : int64 array of shape (n + 1,)
        Where the components of each row begin.
    weights : float64 array of shape (n_components,)
        Their weights: greater than 0, and 1 in sum for each row.
    index : int64 array of shape (n_components,)
        For each component, the row of `values` that has its probabilities.
    values : uint8 or float64 array of shape (n_values, m)
        The labels of samples, 0 or 1, which are distinct within a row; or the probabilities of components of a mixture.
    """

    indptr: NDArray[np.int64]
    weights: NDArray[np.float64]
    index: NDArray[np.int64]  # type: ignore[assignment]  # hides tuple.index
    values: NDArray[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of labels."""
        return len(self.indptr) - 1, self.values.shape[1]

    @property
    def are_samples(self) -> bool:
        """Whether the components are samples."""
        return self.values.dtype == np.uint8

    @property
    def row(self) -> NDArray[np.intp]:
        """The row that each component belongs to."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    def take(self, i: int) -> "Components":
        """Return the components of one row."""
        part = slice(self.indptr[i], self.indptr[i + 1])
        size = np.array([0, part.stop - part.start], np.int64)
        return Components(size, self.weights[part], self.index[part], self.values)

    def of_rows(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted sums over the components of each row, given a value (or several) of each component."""
        weighted = values * (self.weights if values.ndim == 1 else self.weights[:, np.newaxis])
        return np.add.reduceat(weighted, self.indptr[:-1], axis=0)

    def marginals(self) -> NDArray[np.float64]:
        """Return the probability of each label, (n, m)."""
        p = self.values[self.index].astype(np.float64)
        return share_of(self.of_rows(p), self.of_rows(1.0 - p))


def share_of(relevant: NDArray[np.float64], irrelevant: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of the first of two chances that add up to 1 but for rounding; 1 if the second is 0."""
    share: NDArray[np.float64] = relevant / (relevant + irrelevant)
    return share


class RowPenalties(NamedTuple):
    """The penalties by which kernels compare decisions from joint distributions.

    Attributes
    ----------
    counts : float64 array of shape (n, m + 1)
        counts[i, a]: what a abstentions cost in row i; infinite where they are forbidden. As `BoundPenalty.counted` has
        it.
    tie : float
        The relative difference up to which totals are equal.
    is_linear : bool
        Whether counts[i, a] is a · counts[i, 1] for all a.
    is_concave : bool
        Whether the steps of counts never grow while something is answered (a < m), and are finite.
    label_costs : float64 array of shape (m,)
        What abstaining on each label costs besides; 0 for penalties that only count.
    """

    counts: NDArray[np.float64]
    tie: float
    is_linear: bool
    is_concave: bool
    label_costs: NDArray[np.float64]
