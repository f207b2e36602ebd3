"""Joint distributions of the labels of each instance: what is known is how labels depend on each other, too."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from copy import copy
from numbers import Real
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.blocks import Block
from abstain._core.kernels import checking, merging
from abstain._core.kernels.components import Components, share_of
from abstain._core.probabilities import Probabilities, rounding_slack
from abstain._core.tables import Axes, Matrix, Table, as_array, dense, read_matrix
from abstain._core.tilting import (
    change_labels,
    distinct,
    independent_samples,
    own_tables,
    shared_table,
    shift,
    tilt,
)
from abstain._utils.backends import lazy_backend
from abstain._utils.errors import InvalidParameter, InvalidProbabilities, quoted
from abstain._utils.frames import is_frame
from abstain._utils.threads import for_each
from abstain._utils.types import Floats

SUM_TOLERANCE = 1e-6
"""How far from 1 the weights of an instance may sum up because of rounding."""

SEARCHED_ENTRIES = 1 << 15
"""Entries of components per block that is searched: few, so that an interrupted search ends soon."""

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
    progress : bool
        Whether a progress bar is shown meanwhile.
    """

    node_limit: int
    certify: bool
    progress: bool


class Joint(ABC):
    """A joint distribution of the labels of each instance: a weighted sum of components with independent labels.

    `Samples` and `Mixture` are made by users. `decide`, `risk_profile`, `budget.solve`, `review_queue` and
    `metrics.expected_generalized_loss` take them in place of probabilities.
    """

    noun: str
    """What a component is called in errors."""
    is_sparse = False
    least_per_block = 0

    def __init__(self, values: Any, weights: Any, what: str, *, label_names: Any, limits: SearchLimits) -> None:
        self._limits = limits
        for name, table in ((what, values), ("weights", weights)):
            if lazy_backend(table) is not None:
                raise InvalidProbabilities(
                    f"{name}: joint distributions of Dask collections are not supported; decide a partition at a time, "
                    f"with abstain.{type(self).__name__} of its rows"
                )
        names, index = None, None
        if is_frame(values):
            table, axes = read_matrix(values, what, InvalidProbabilities)
            values, names = table, axes.label_names
        array, rounding = _read_array(values, what)
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
            given, _ = _read_array(weights, "weights")
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

        for_each(average, self.blocks(1 << 18))
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

    def with_marginals(self, probabilities: Any) -> Self:
        """Return the joint distribution that is nearest to this one and has other marginals: calibrated ones, say.

        Weights of samples become w · exp(λ·y), with λ such that the marginals are those given. Of all weights with
        these marginals they have the least relative entropy to the present ones. Where there are none with a reasonable
        λ (say, all samples lack a label), what remains is made up for by parts of the heaviest samples in which that
        label is changed. In a mixture, the log-odds of each label become greater by the same number in all components;
        where these have probability 0 or 1, they move towards the target alike.

        Parameters
        ----------
        probabilities : array-like, data frame or `Table` of shape (n_instances, n_labels)
            The marginals that are wanted.

        Returns
        -------
        joint : Samples or Mixture
            Its marginals are those given, up to 1e-6.

        Examples
        --------
        >>> import abstain
        >>> joint = abstain.Samples([[0, 0], [1, 1], [1, 0]], [[0.5, 0.25, 0.25]])
        >>> joint.marginals.values
        array([[0.5 , 0.25]])
        >>> joint.with_marginals([[0.8, 0.6]]).marginals.values.round(6)
        array([[0.8, 0.6]])
        """
        return self._with_marginals(self._read_targets(probabilities))

    def with_independence(self, share: float, *, samples: int = 100, random_state: int = 0) -> Self:
        """Return a joint distribution of the same marginals in which a share of the weight has independent labels.

        Parameters
        ----------
        share : float from 0 to 1
            The weight of the product of the marginals; that of the present components becomes 1 − share.
        samples : int, default=100
            By how many samples that product is represented, for `Samples`; a mixture gets it as one more component.
        random_state : int, default=0
            Draws these samples. Those of an instance do not depend on the other instances.

        Returns
        -------
        joint : Samples or Mixture

        Examples
        --------
        >>> import abstain
        >>> joint = abstain.Mixture([0.5, 0.5], [[[0.9, 0.9], [0.1, 0.1]]])
        >>> more = joint.with_independence(0.2)
        >>> more.n_components, more.marginals.values
        (3, array([[0.5, 0.5]]))
        """
        weight, n_samples = _read_share(share), _read_samples(samples)
        return self._with_independence(weight, n_samples, random_state) if weight > 0 else copy(self)

    def with_limits(
        self, *, node_limit: int | None = None, certify: bool | None = None, progress: bool | None = None
    ) -> Self:
        """Return the same joint distribution with other limits of the work that a decision may take.

        Parameters
        ----------
        node_limit : int > 0, optional
        certify, progress : bool, optional
            As for `Samples`; by default they stay what they are.

        Returns
        -------
        joint : Samples or Mixture
        """
        other = copy(self)
        other._limits = _read_limits(
            self._limits.node_limit if node_limit is None else node_limit,
            self._limits.certify if certify is None else certify,
            self._limits.progress if progress is None else progress,
        )
        return other

    def named(self, label_names: tuple[Hashable, ...] | None, index: Any) -> Self:
        """Return the same joint distribution with other names of labels and rows."""
        other = copy(self)
        other.axes = Axes(label_names, index)
        return other

    def with_constant_labels(self, columns: NDArray[np.intp], constants: NDArray[np.uint8]) -> Self:
        """Return the joint distribution of more labels: those of this one are the columns, the others are constant."""
        other = copy(self)
        other._values = np.broadcast_to(
            constants.astype(self._values.dtype), (*self._values.shape[:-1], len(constants))
        ).copy()
        other._values[..., columns] = self._values
        other.matrix = np.tile(constants.astype(np.float64), (self.n_rows, 1))
        other.matrix[:, columns] = self.matrix
        other.n_labels = len(constants)
        return other

    @abstractmethod
    def _with_marginals(self, targets: Floats) -> Self:
        """Return the joint distribution with these marginals."""

    @abstractmethod
    def _with_independence(self, share: float, n_samples: int, seed: int) -> Self:
        """Return the joint distribution with a share, greater than 0, of independence."""

    def _read_targets(self, probabilities: Any) -> Floats:
        """Return the marginals that are wanted, checked."""
        wanted = Probabilities(probabilities)
        if (wanted.n_rows, wanted.n_labels) != self.shape:
            raise InvalidProbabilities(
                f"probabilities have shape {(wanted.n_rows, wanted.n_labels)}; the joint distribution has {self.shape}"
            )
        self.axes.require_same(wanted.axes, "probabilities")
        return np.ascontiguousarray(dense(wanted.values(), "probabilities"), np.float64)

    def _all_components(self) -> Components:
        """Return the components of all rows."""
        return self.load(Block(slice(0, self.n_rows), self.shape, self._values))

    def _replaced(self, values: NDArray[Any], weights: Any) -> Self:
        """Return a joint distribution with other components of the same labels and rows."""
        other = copy(self)
        other._values, other._weights, other.is_shared = values, weights, values.ndim == 2
        other.matrix = other._compute_marginals()
        return other

    def marginal_probabilities(self) -> Probabilities:
        """Return the marginals as decisions read them."""
        return Probabilities(self.marginals)

    def for_each_block(self, task: Callable[[Block], None]) -> None:
        """Run a task on every block, with a progress bar if that was asked for."""
        if not self._limits.progress:
            for_each(task, self.blocks())
            return
        from tqdm import tqdm

        with tqdm(total=self.n_rows, unit=" rows", unit_scale=True, dynamic_ncols=True) as bar:

            def work(block: Block) -> None:
                task(block)
                bar.update(block.shape[0])

            for_each(work, self.blocks())

    def blocks(self, entries: int = SEARCHED_ENTRIES) -> Iterator[Block]:
        """Yield all rows in blocks of about so many entries of components."""
        n_components = self.n_components
        if sparse.issparse(self._weights):
            n_components = self._weights.nnz // max(1, self.n_rows) + 1
        height = max(1, entries // (n_components * self.n_labels))
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
    progress : bool, default=False
        Whether decisions, profiles and review queues show a progress bar.

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
    >>> abstain.decide(joint, loss="subset", penalty=0.2).labels
    array([[0, 0, 0, 0]], dtype=int8)
    >>> abstain.decide(joint.marginals, loss="subset", penalty=0.2).labels
    array([[-1, -1, -1, -1]], dtype=int8)
    """

    noun = "sample"

    def __init__(
        self, labels: Any, weights: Any = None, *, label_names: Sequence[Any] | None = None,
        node_limit: int = NODE_LIMIT, certify: bool = True, progress: bool = False,
    ) -> None:  # fmt: skip
        limits = _read_limits(node_limit, certify, progress)
        super().__init__(labels, weights, "labels", label_names=label_names, limits=limits)

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

    def _with_marginals(self, targets: Floats) -> Self:
        return self._reweighted(lambda samples: tilt(samples, targets), targets)

    def _with_independence(self, share: float, n_samples: int, seed: int) -> Self:
        targets = self.matrix
        product = independent_samples(targets, n_samples, seed)
        if self.is_shared:
            old = self._all_components()
            table, number = distinct(product.labels)
            columns = np.concatenate([old.index, len(old.values) + number])
            rows = np.concatenate([old.row, product.rows])
            given = np.concatenate([(1.0 - share) * old.weights, share * product.weights])
            values: NDArray[Any] = np.concatenate([old.values, table])
            weights: Any = sparse.csr_array((given, (rows, columns)), shape=(self.n_rows, len(values)))
            weights.sum_duplicates()
        else:
            labels = product.labels.reshape(self.n_rows, n_samples, self.n_labels)
            values = np.concatenate([self._values, labels], axis=1)
            k = self.n_components
            weights = np.full((self.n_rows, values.shape[1]), share / n_samples)
            weights[:, :k] = (1.0 - share) * (1.0 / k if self._weights is None else self._weights)
        # Samples of the product have its marginals up to 1 / n_samples; what is left is mended as for any marginals.
        return self._replaced(values, weights)._reweighted(lambda samples: samples.weights.copy(), targets)

    def _reweighted(self, reweigh: Callable[[Components], Floats], targets: Floats) -> Self:
        """Return the samples with other weights, and some with other labels such that the marginals are the targets."""
        samples = self._all_components()
        weights = reweigh(samples)
        new = change_labels(samples._replace(weights=weights), targets)
        if self.is_shared:
            return self._replaced(*shared_table(samples, weights, new))
        return self._replaced(*own_tables(samples, self.n_components, weights, new))


class Mixture(Joint):
    """A mixture of components in each of which the labels are independent: members of an ensemble, latent classes.

    Parameters
    ----------
    weights : array-like or sparse matrix of shape (n_instances, n_components), or (n_components,); or None
        The probability of each component: ≥ 0, and 1 in sum; None: all count alike.
    probabilities : array-like of shape (n_instances, n_components, n_labels), or (n_components, n_labels)
        The probability of each label in each component; a table of shape (n_components, n_labels) is shared by all
        instances, which differ in their weights.
    label_names, node_limit, certify, progress
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
        node_limit: int = NODE_LIMIT, certify: bool = True, progress: bool = False,
    ) -> None:  # fmt: skip
        limits = _read_limits(node_limit, certify, progress)
        super().__init__(probabilities, weights, "probabilities", label_names=label_names, limits=limits)

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

    def _with_marginals(self, targets: Floats) -> Self:
        components = self._all_components()
        return self._of_rows(components, components.weights, shift(components, targets))

    def _with_independence(self, share: float, n_samples: int, seed: int) -> Self:
        old = self._all_components()
        n = self.n_rows
        indptr = old.indptr + np.arange(n + 1)
        last = indptr[1:] - 1
        is_old = np.ones(indptr[-1], np.bool_)
        is_old[last] = False
        weights, values = np.empty(indptr[-1]), np.empty((indptr[-1], self.n_labels))
        weights[is_old], weights[last] = (1.0 - share) * old.weights, share
        values[is_old], values[last] = old.values[old.index], self.matrix
        return self._of_rows(Components(indptr, weights, old.index, values), weights, values)

    def _of_rows(self, components: Components, weights: Floats, values: Floats) -> Self:
        """Return the mixture of components that each row has for itself, one after the other."""
        width = np.diff(components.indptr)
        n, k = self.n_rows, int(width.max(initial=1))
        if (width == k).all():
            return self._replaced(values.reshape(n, k, self.n_labels), weights.reshape(n, k))
        table = sparse.csr_array((weights, np.arange(len(weights)), components.indptr), shape=(n, len(weights)))
        return self._replaced(values, table)


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


def _read_array(table: Any, what: str) -> tuple[NDArray[Any], float]:
    """Return an array and how far its numbers may have been rounded; raise `InvalidProbabilities` if it is none."""
    try:
        return as_array(table)
    except ValueError as reason:
        raise InvalidProbabilities(f"{what}: cannot be read as an array ({reason})") from reason


def _read_share(share: Any) -> float:
    if isinstance(share, bool) or not isinstance(share, Real) or not 0 <= float(share) <= 1:
        raise InvalidParameter(f"share is {quoted(share)}; expected a number from 0 to 1")
    return float(share)


def _read_samples(samples: Any) -> int:
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 1:
        raise InvalidParameter(f"samples is {quoted(samples)}; expected a whole number > 0")
    return int(samples)


def _read_limits(node_limit: Any, certify: Any, progress: Any) -> SearchLimits:
    if isinstance(node_limit, bool) or not isinstance(node_limit, int | np.integer) or node_limit < 1:
        raise InvalidProbabilities(f"node_limit is {node_limit!r}; expected a whole number > 0")
    return SearchLimits(int(node_limit), bool(certify), bool(progress))
