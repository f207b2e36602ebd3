"""Joint distributions of the labels of each instance: what is known is how labels depend on each other, too."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.blocks import Block
from abstain._core.kernels import checking, merging
from abstain._core.kernels.components import Components, share_of
from abstain._core.probabilities import Probabilities, rounding_slack
from abstain._core.tables import Axes, Matrix, Table, as_array, read_matrix
from abstain._utils.errors import InvalidProbabilities
from abstain._utils.frames import is_frame
from abstain._utils.threads import for_each
from abstain._utils.types import Floats

SUM_TOLERANCE = 1e-6
"""How far from 1 the weights of an instance may sum up because of rounding."""

NODE_LIMIT = 20_000
"""Nodes, cuts or steps that the search for the best decision of an instance may take, by default."""


class SearchLimits(NamedTuple):
    """How much work a decision from a joint distribution may take.

    Attributes
    ----------
    node_limit : int
        Nodes of a branch and bound, of an instance.
    certify : bool
        Whether time is spent on proving how good a decision is that is not known to be optimal.
    """

    node_limit: int
    certify: bool


class Joint(ABC):
    """A joint distribution of the labels of each instance: a weighted sum of components with independent labels.

    `Samples` and `Mixture` are made by users. `decide`, `risk_profile`, `budget.solve`, `review_queue` and
    `metrics.expected_generalized_loss` take them in place of probabilities.
    """

    noun: str
    """What a component is called in errors."""
    is_sparse = False
    least_per_block = 0

    def __init__(
        self, values: Any, weights: Any, what: str, *, label_names: Any, node_limit: int, certify: bool
    ) -> None:
        self._limits = _read_limits(node_limit, certify)
        names, index = None, None
        if is_frame(values):
            table, axes = read_matrix(values, what, InvalidProbabilities)
            values, names = table, axes.label_names
        array, rounding = as_array(values)
        if array.dtype.kind not in "fiub" or array.ndim not in (2, 3) or 0 in array.shape[1:]:
            raise InvalidProbabilities(
                f"{what}: expected numbers of shape (n_instances, n_{self.noun}s, n_labels), or (n_{self.noun}s, "
                f"n_labels) shared by all instances, got {array.shape} of {array.dtype}"
            )
        if is_frame(weights):
            weights, axes = read_matrix(weights, "weights", InvalidProbabilities)
            index = axes.index
        if label_names is not None:
            names = tuple(Axes().names(array.shape[-1], label_names))
        self.axes = Axes(names, index)
        self._what, self._slack = what, max(rounding_slack(array.dtype), rounding)
        self.is_shared = array.ndim == 2
        """Whether all instances have the same components, with weights of their own."""
        self._values = self._checked_values(array)
        self._weights = self._read_weights(weights)
        if self.is_shared:
            self._merge_shared()
        self.n_rows = self._weights.shape[0] if self.is_shared else len(self._values)
        self.n_labels: int = self._values.shape[-1]
        self._rows: NDArray[np.intp] | None = None
        self.matrix: Matrix = self._compute_marginals()
        """The marginal probabilities, (n_instances, n_labels)."""

    @abstractmethod
    def _checked_values(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the labels or probabilities in the type that kernels take; raise an error that names a bad one."""

    def _first_bad_value(self, is_good: Callable[[NDArray[Any]], NDArray[np.bool_]], array: NDArray[Any]) -> str:
        """Return where the first bad value is, and what it is."""
        for i in range(len(array)):
            bad = np.argwhere(~is_good(array[i]))
            if len(bad):
                place = tuple(map(int, bad[0]))
                at = f"{self.noun} {i}" if self.is_shared else f"row {i}, {self.noun} {place[0]}"
                return f"{self._what}: {at}, {self.axes.label(place[-1])} is {array[i][place]}"
        raise AssertionError("there is no bad value")

    def _read_weights(self, weights: Any) -> Any:
        """Return the weights, dense or CSR (of shared components), normalised; None where all components count alike.

        Weights of shape (n_components,) hold for all instances, or are those of a single instance if the components
        are shared.
        """
        n_components = self._values.shape[-2]
        if weights is None:
            return np.full((1, n_components), 1.0 / n_components) if self.is_shared else None
        if sparse.issparse(weights):
            if not self.is_shared:
                raise InvalidProbabilities(f"weights: sparse weights are for {self.noun}s that all instances share")
            table = sparse.csr_array(weights).astype(np.float64)
            table.sum_duplicates()
            self._require_weights(table.data, lambda at: int(np.searchsorted(table.indptr, at, side="right")) - 1)
            expected = (table.shape[0], n_components)
        else:
            given, _ = as_array(weights)
            if given.dtype.kind not in "fiub" or given.ndim not in (1, 2):
                raise InvalidProbabilities(f"weights: expected numbers, got {given.shape} of {given.dtype}")
            self._require_weights(given.ravel(), lambda at: at // given.shape[-1] if given.ndim == 2 else 0)
            table = np.atleast_2d(given).astype(np.float64)
            expected = (given.shape[0] if self.is_shared else len(self._values), n_components)
            if given.ndim == 1:
                expected = (1, n_components)
        if table.shape != expected:
            rows = "" if expected[0] == 1 else "n_instances × "
            raise InvalidProbabilities(
                f"weights have shape {table.shape}; expected {expected}, {rows}n_{self.noun}s of {self._what}"
            )
        sums = np.asarray(table.sum(axis=1)).ravel()
        bad = np.flatnonzero(~(np.abs(sums - 1.0) <= SUM_TOLERANCE))
        if len(bad):
            raise InvalidProbabilities(
                f"weights: {self.axes.row(int(bad[0]))} sums up to {sums[bad[0]]:g}; the weights of an instance sum up "
                "to 1 (divide each row by its sum)"
            )
        if sparse.issparse(table):
            table.data /= np.repeat(sums, np.diff(table.indptr))
            return table
        return table / sums[:, np.newaxis]

    def _merge_shared(self) -> None:
        """Make one of equal components, with the sum of their weights."""
        distinct, which = np.unique(self._values, axis=0, return_inverse=True)
        if len(distinct) < len(self._values):
            size = len(self._values), len(distinct)
            sums = sparse.csr_array((np.ones(size[0]), (np.arange(size[0]), which.ravel())), size)
            self._values, self._weights = distinct, self._weights @ sums

    def _require_weights(self, values: NDArray[Any], row_of: Callable[[int], int]) -> None:
        bad = np.flatnonzero(~((values >= 0) & np.isfinite(values)))
        if len(bad):
            raise InvalidProbabilities(
                f"weights: {self.axes.row(row_of(int(bad[0])))} has {values[bad[0]]}; expected numbers ≥ 0"
            )

    def _compute_marginals(self) -> Floats:
        if self.is_shared:
            p = self._values.astype(np.float64)
            return share_of(np.asarray(self._weights @ p), np.asarray(self._weights @ (1.0 - p)))
        marginals = np.empty((self.n_rows, self.n_labels))

        def average(block: Block) -> None:
            p = self._values[block.rows].astype(np.float64)
            if self._weights is None:
                marginals[block.rows] = share_of(p.sum(axis=1), (1.0 - p).sum(axis=1))
            else:
                weights = (self._weights if len(self._weights) == 1 else self._weights[block.rows])[:, np.newaxis]
                marginals[block.rows] = share_of((weights @ p)[:, 0], (weights @ (1.0 - p))[:, 0])

        for_each(average, self._row_blocks(1 << 18))
        return marginals

    @property
    def marginals(self) -> Table:
        """The probability of each label, with the names of labels and rows: what decisions of single labels need."""
        return Table(self.matrix, self.axes.label_names, self.axes.index)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of instances and of labels."""
        return self.n_rows, self.n_labels

    @property
    def n_components(self) -> int:
        """Number of components of each instance."""
        return int(self._values.shape[-2])

    @property
    def limits(self) -> SearchLimits:
        """How much work a decision may take."""
        return self._limits

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        size = f"{self.n_rows} instance{'' if self.n_rows == 1 else 's'} × {self.n_labels} labels"
        return f"{type(self).__name__} of {size}: {self.n_components} {self.noun}s" + (
            " shared by all" if self.is_shared else " each"
        )

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("joint distributions are not taken here; pass their marginals (probabilities of single labels)")

    # What follows is what `Probabilities` has, too: decisions read any of them block by block.

    @property
    def widest(self) -> int:
        """The number of labels."""
        return self.n_labels

    def take(self, rows: NDArray[np.intp]) -> "Joint":
        """Return some of the rows."""
        part = copy(self)
        part.n_rows, part.matrix = len(rows), self.matrix[rows]
        if self.axes.index is not None:
            part.axes = Axes(self.axes.label_names, np.asarray(self.axes.index)[rows], self.axes.library)
        if self._weights is not None and self._weights.shape[0] > 1:
            part._weights = self._weights[rows]
        elif self.is_shared:
            part._weights = np.repeat(self._weights, len(rows), axis=0)
        if not self.is_shared:
            part._values = self._values[rows]
        return part

    def marginal_probabilities(self) -> Probabilities:
        """Return the marginals as decisions read them."""
        return Probabilities(self.marginals)

    def blocks(self, entries: int) -> Iterator[Block]:
        """Yield all rows in blocks of about so many entries of components."""
        return self._row_blocks(entries)

    def _row_blocks(self, entries: int) -> Iterator[Block]:
        height = max(1, entries // (self.n_components * self.n_labels))
        shape_of_table = np.broadcast_to(np.float64(0), (self.n_rows, self.n_labels))
        for first in range(0, self.n_rows, height):
            rows = slice(first, min(first + height, self.n_rows))
            yield Block(rows, (rows.stop - first, self.n_labels), shape_of_table)

    def load(self, block: Block) -> Components:
        """Return the components of some rows, equal ones merged, and those of weight 0 left out."""
        rows: slice = block.rows
        n, k = rows.stop - rows.start, self.n_components
        if self.is_shared:
            weights = self._weights[rows]
            if not sparse.issparse(weights):
                weights = sparse.csr_array(weights)
            weights.eliminate_zeros()
            return Components(
                weights.indptr.astype(np.int64), weights.data, weights.indices.astype(np.int64), self._values
            )
        values = np.ascontiguousarray(self._values[rows]).reshape(n * k, self.n_labels)
        if self._weights is None:
            weights = np.full((n, k), 1.0 / k)
        else:
            weights = np.ascontiguousarray(np.broadcast_to(self._weights, (self.n_rows, k))[rows])
        return merge_components(weights, values)

    def warn_if_softmax(self, *, stacklevel: int = 3) -> None:
        """Warn if every row of the marginals adds up to 1, as for `Probabilities`."""
        self.marginal_probabilities().warn_if_softmax(stacklevel=stacklevel + 1)


class Samples(Joint):
    """Samples of the labels of each instance, with weights: the joint distribution that they stand for.

    Sampled from a probabilistic classifier chain, or the label vectors of neighbours or of training rows that fall into
    the same leaves; see `label_distribution`.

    Parameters
    ----------
    labels : array-like of shape (n_instances, n_samples, n_labels), or (n_samples, n_labels)
        0 or 1: possible truths. A table of shape (n_samples, n_labels) is shared by all instances, which differ in
        their weights; a data frame brings the names of the labels. bool and int8 are not copied (memory maps).
    weights : array-like or sparse matrix of shape (n_instances, n_samples), or (n_samples,), optional
        The probability of each sample: ≥ 0, and 1 in sum for each instance; by default all count alike. Sparse weights
        are for shared samples.
    label_names : sequence of n_labels names, optional
    node_limit : int > 0, default=20000
        How many nodes the search for the best decision of an instance may take; what it leaves open is in the `gap` of
        the prediction.
    certify : bool, default=True
        Whether F-measure and Jaccard spend time on proving how good their decision is. Without, `gap` is larger.

    Attributes
    ----------
    marginals : Table
        The probability of each label.
    shape : (int, int)
        Number of instances and of labels.
    n_components : int
        Number of samples of each instance.

    Examples
    --------
    Each answer alone would be wrong in two of five cases, but the errors come together:

    >>> import abstain
    >>> joint = abstain.Samples([[[0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 1, 1]]])
    >>> abstain.decide(joint, loss="subset", penalty=0.25).labels
    array([[0, 0, 0, 0]], dtype=int8)
    >>> abstain.decide(joint.marginals, loss="subset", penalty=0.25).labels
    array([[-1, -1, -1, -1]], dtype=int8)
    """

    noun = "sample"

    def __init__(
        self, labels: Any, weights: Any = None, *, label_names: Sequence[Any] | None = None,
        node_limit: int = NODE_LIMIT, certify: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(labels, weights, "labels", label_names=label_names, node_limit=node_limit, certify=certify)

    def _checked_values(self, array: NDArray[Any]) -> NDArray[Any]:
        def is_label(values: NDArray[Any]) -> NDArray[np.bool_]:
            return (values == 0) | (values == 1)

        if array.dtype == np.bool_:
            return array.view(np.uint8)
        is_byte = array.dtype in (np.uint8, np.int8)
        good: list[bool] = []
        for_each(lambda i: good.append(bool(is_label(array[i]).all())), range(len(array)))
        if not all(good):
            raise InvalidProbabilities(
                f"{self._first_bad_value(is_label, array)}; a sample holds 0 or 1 (for probabilities of components "
                "there is Mixture)"
            )
        return array.view(np.uint8) if is_byte else array.astype(np.uint8)


class Mixture(Joint):
    """A mixture of components in each of which the labels are independent: members of an ensemble, latent classes.

    Parameters
    ----------
    weights : array-like or sparse matrix of shape (n_instances, n_components), or (n_components,); or None
        The probability of each component: ≥ 0, and 1 in sum; None: all count alike.
    probabilities : array-like of shape (n_instances, n_components, n_labels), or (n_components, n_labels)
        The probability of each label in each component; a table of shape (n_components, n_labels) is shared by all
        instances, which differ in their weights.
    label_names, node_limit, certify
        As for `Samples`.

    Attributes
    ----------
    marginals : Table
        The probability of each label.
    shape : (int, int)
        Number of instances and of labels.
    n_components : int
        Number of components of each instance.

    Examples
    --------
    In one of ten cases everything is irrelevant:

    >>> import abstain
    >>> joint = abstain.Mixture([0.9, 0.1], [[[0.99] * 8, [0.01] * 8]])
    >>> abstain.decide(joint, loss="subset", penalty=0.05)
    PartialPrediction of 1 instance × 8 labels: 0.0% abstained, expected loss 0.1695
       0  1  2  3  4  5  6  7
    0  1  1  1  1  1  1  1  1
    >>> abstain.decide(joint.marginals, loss="subset", penalty=0.05).n_abstained
    array([8])
    """

    noun = "component"

    def __init__(
        self, weights: Any, probabilities: Any, *, label_names: Sequence[Any] | None = None,
        node_limit: int = NODE_LIMIT, certify: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            probabilities, weights, "probabilities", label_names=label_names, node_limit=node_limit, certify=certify
        )

    def _checked_values(self, array: NDArray[Any]) -> NDArray[Any]:
        slack, clipped = self._slack, []

        def check(i: int) -> None:
            values = np.ascontiguousarray(array[i], np.float64).ravel()
            clipped.append(not checking.all_inside(values, 0.0, 1.0))
            if clipped[-1] and not checking.all_inside(values, -slack, 1.0 + slack):
                raise InvalidProbabilities(
                    f"{self._first_bad_value(lambda x: (x >= -slack) & (x <= 1 + slack), array)}; a probability is a "
                    "number from 0 to 1"
                )

        for_each(check, range(len(array)))
        values = array.astype(np.float64, copy=False)
        return np.clip(values, 0.0, 1.0) if any(clipped) else values


def merge_components(weights: Floats, values: NDArray[Any]) -> Components:
    """Return the components of rows that have equally many: equal ones merged, those of weight 0 left out.

    Parameters
    ----------
    weights : float array of shape (n, k)
        Sum up to 1 for each row.
    values : uint8 or float64 array of shape (n * k, m)
        Labels of samples or probabilities, row by row.
    """
    n, k = weights.shape
    indptr, index, summed = np.zeros(n + 1, np.int64), np.empty(n * k, np.int64), np.empty(n * k)
    merging.merge_equal(weights, _words(values), indptr, index, summed)
    size = int(indptr[-1])
    return Components(indptr, summed[:size], index[:size], values)


def _words(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the values of each component as words that are equal where the values are."""
    if values.dtype != np.uint8:
        return (values + 0.0).view(np.uint64)  # −0 becomes 0
    bits = np.packbits(values, axis=1)
    return np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.uint64)


def _read_limits(node_limit: Any, certify: Any) -> SearchLimits:
    if isinstance(node_limit, bool) or not isinstance(node_limit, int | np.integer) or node_limit < 1:
        raise InvalidProbabilities(f"node_limit is {node_limit!r}; expected a whole number > 0")
    return SearchLimits(int(node_limit), bool(certify))
