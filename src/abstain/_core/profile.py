"""The risk profile: least expected loss for every number of abstentions. One profile answers every counting penalty."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.blocks import Block
from abstain._core.kernels import packing
from abstain._core.kernels.choice import tipped
from abstain._core.kernels.hull import lower_hull
from abstain._core.losses import Loss
from abstain._core.losses.base import BlockProfile
from abstain._core.penalties import Linear, PenaltyLike, as_penalty
from abstain._core.prediction import Prediction
from abstain._core.prediction_writer import PredictionWriter
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Axes
from abstain._utils.errors import InvalidLoss
from abstain._utils.threads import for_each
from abstain._utils.wording import plural


class CostPath:
    """The best number of abstentions for every linear cost, exactly: corners of the lower convex hull of the profile.

    Instance i leaves ``n_abstained(i)[j]`` labels open for costs from ``costs(i)[j]`` up to, not including,
    ``costs(i)[j + 1]``; the first of its costs is 0, and beyond the last one every label is answered.

    Examples
    --------
    >>> import abstain
    >>> path = abstain.risk_profile([0.9, 0.8, 0.7, 0.3], loss="rank").path()
    >>> path.costs(0), path.n_abstained(0)
    (array([0.   , 0.015, 0.14 , 0.3  ]), array([4, 2, 1, 0]))
    >>> path.at(0.2)
    array([1])
    """

    def __init__(
        self, indptr: NDArray[np.int64], costs: NDArray[np.float64], counts: NDArray[np.int64], tie_scale: float
    ) -> None:
        self.indptr = indptr
        """Where the corners of each instance begin in the flat arrays; as in CSR, one number more than instances."""
        self.flat_costs = costs
        """The costs of all instances, one after the other."""
        self.flat_counts = counts
        """How many labels are left open from each of these costs on."""
        self.tie_scale = tie_scale
        """The `Loss.tie_scale` of the loss: which costs are equal depends on it."""

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __repr__(self) -> str:
        return f"CostPath of {plural(len(self), 'instance')}: {plural(len(self.flat_costs) - len(self), 'break point')}"

    def costs(self, i: int) -> NDArray[np.float64]:
        """0, then the costs at which instance i abstains on fewer labels."""
        return self.flat_costs[self._of(i)]

    def n_abstained(self, i: int) -> NDArray[np.int64]:
        """How many labels instance i leaves open from each of its costs on."""
        return self.flat_counts[self._of(i)]

    def _of(self, i: int) -> slice:
        i = range(len(self))[i]
        return slice(self.indptr[i], self.indptr[i + 1])

    @property
    def break_points(self) -> NDArray[np.float64]:
        """All costs > 0 at which anything changes, increasing; of costs that differ by rounding only, the highest."""
        costs = np.sort(self.flat_costs[self.flat_costs > 0])
        return costs[last_of_equals(costs, self.tie_scale)]

    def at(self, cost: float) -> NDArray[np.int64]:
        """How many labels each instance leaves open at this cost."""
        return self.flat_counts[self.corner_at(cost)]

    def corner_at(self, cost: float) -> NDArray[np.int64]:
        """Where in the flat arrays each instance is at this cost."""
        passed = np.concatenate([[0], np.cumsum(self.flat_costs <= tipped(Linear(cost).cost, self.tie_scale))])
        corner: NDArray[np.int64] = self.indptr[:-1] + passed[self.indptr[1:]] - passed[self.indptr[:-1]] - 1
        return corner


def last_of_equals(costs: NDArray[np.float64], tie_scale: float) -> NDArray[np.intp]:
    """Where in increasing costs each run of equal ones ends: at all of these, decisions are the same."""
    return np.flatnonzero(np.append(costs[1:], np.inf) > tipped(costs, tie_scale))


def require_profile(loss: Loss, n_labels: int, axes: Axes, is_sparse: bool) -> None:
    """Raise `InvalidLoss` or `InvalidLabels` if there is no profile of a loss for such a table."""
    loss.check(n_labels)
    axes.require_labels(loss.label_names, repr(loss))
    if is_sparse and not loss.zeros_cost_nothing:
        raise InvalidLoss(
            f"the profile of {loss!r} on sparse probabilities would be dense: with zero_division=0, leaving open "
            "what is stored does not make the risk 0. Use zero_division=1, a dense array, or abstain.decide."
        )


class RiskProfile:
    """What any number of abstentions would buy, for each instance. Made by `abstain.risk_profile`.

    It reads the probabilities again when it decides, so they must not be changed meanwhile.
    """

    def __init__(self, probabilities: Probabilities, loss: Loss) -> None:
        require_profile(loss, probabilities.n_labels, probabilities.axes, probabilities.is_sparse)
        self.loss = loss
        self._probabilities = probabilities
        self._packed: list[tuple[Block, BlockProfile]] = []
        if probabilities.is_sparse:
            blocks = probabilities.blocks(loss.entries_per_block)
            self._packed = [(block, loss.empty_profile(block.shape)) for block in blocks]
        else:
            self._whole = loss.empty_profile((probabilities.n_rows, probabilities.n_labels))

        def work(piece: tuple[Block, BlockProfile]) -> None:
            loss.profile(piece[0], probabilities.load(piece[0]), piece[1])

        for_each(work, self.pieces(loss.entries_per_block))

    def pieces(self, entries: int = Loss.entries_per_block) -> list[tuple[Block, BlockProfile]]:
        """Blocks with their part of the profile; looking up is quick, so large ones pay once it is computed."""
        if self._probabilities.is_sparse:
            return self._packed
        return [(block, self._whole.of(block.rows)) for block in self._probabilities.blocks(entries)]

    @property
    def probabilities(self) -> Probabilities:
        """What the profile is made of."""
        return self._probabilities

    def load(self, block: Block) -> NDArray[np.float64]:
        """The probabilities of a block."""
        return self._probabilities.load(block)

    def __repr__(self) -> str:
        n, m = self._probabilities.n_rows, self._probabilities.n_labels
        return f"RiskProfile of {plural(n, 'instance')} × {plural(m, 'label')} for {self.loss!r}"

    @property
    def values(self) -> Any:
        """(n, m + 1): the least expected loss of instance i with a abstentions; inf where a is not allowed (`Rank`).

        Of sparse probabilities a CSR array: from as many abstentions as an instance has stored entries on, it is 0 (for
        `Rank` also where one label would be left).
        """
        if not self._probabilities.is_sparse:
            values = self._whole.values.view()
            values.flags.writeable = False
            return values
        source = self._probabilities.matrix
        data = np.empty(len(source.data))
        for block, profile in self.pieces():
            hidden = source.shape[1] - block.shape[1]
            packing.unpack(source.indptr, _with_hidden(profile.values, hidden), block.rows, data)
        indices = np.arange(len(data), dtype=source.indptr.dtype)
        indices -= np.repeat(source.indptr[:-1], np.diff(source.indptr))
        shape = (self._probabilities.n_rows, self._probabilities.n_labels + 1)
        return sparse.csr_array((data, indices, source.indptr.copy()), shape)

    def decide(self, penalty: PenaltyLike = 0.1) -> Prediction:
        """The optimal partial prediction for a further counting penalty; as `abstain.decide`, from what is known."""
        bound = as_penalty(penalty).bind(self._probabilities.n_labels)
        bound.require_counting()
        if self._probabilities.is_sparse:
            bound.require_nondecreasing()
        writer = PredictionWriter(self._probabilities, self.loss)

        def work(piece: tuple[Block, BlockProfile]) -> None:
            block, profile = piece
            codes, expected = writer.buffers(block)
            p = self._probabilities.load(block)
            self.loss.decide_from_profile(block, p, profile, bound.narrowed(block.shape[1]), codes, expected)
            writer.write(block, codes, expected)

        for_each(work, self.pieces())
        return writer.finish()

    def with_counts(self, n_abstained: NDArray[Any]) -> Prediction:
        """The best partial prediction that leaves just so many labels of each instance open; no penalty is charged."""
        writer = PredictionWriter(self._probabilities, self.loss)

        def work(piece: tuple[Block, BlockProfile]) -> None:
            block, profile = piece
            codes, expected = writer.buffers(block)
            count = n_abstained[block.rows].astype(np.intp)
            self.loss.attain(block, self._probabilities.load(block), profile, count, codes)
            expected[:] = profile.values[np.arange(len(count)), count]
            writer.write(block, codes, expected)

        for_each(work, self.pieces())
        return writer.finish()

    def path(self, most: int | None = None) -> CostPath:
        """All break points of the linear cost, with the number of abstentions between them; of at most so many."""
        n = self._probabilities.n_rows
        sizes = np.empty(n, np.int64)
        pieces = self.pieces()
        found: dict[int, tuple[NDArray[np.float64], NDArray[np.int64]]] = {}

        def work(k: int) -> None:
            block, (whole, _, _) = pieces[k]
            values = whole if most is None else np.ascontiguousarray(whole[:, : most + 1])
            breaks, counts = np.empty(values.shape), np.empty(values.shape, np.int64)
            size = np.empty(len(values), np.int64)
            lower_hull(values, self.loss.tie_scale, breaks, counts, size)
            sizes[block.rows] = size + 1
            inside = np.arange(values.shape[1]) <= size[:, np.newaxis]
            costs = np.concatenate([np.zeros((len(values), 1)), breaks[:, :-1]], axis=1)
            found[k] = costs[inside], counts[inside]

        for_each(work, range(len(pieces)))
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        costs, counts = np.empty(indptr[-1]), np.empty(indptr[-1], np.int64)
        for k, (block, _) in enumerate(pieces):
            rows = np.arange(n)[block.rows]
            length = sizes[rows]
            within = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
            at = np.repeat(indptr[rows], length) + within
            costs[at], counts[at] = found[k]
        return CostPath(indptr, costs, counts, self.loss.tie_scale)


def _with_hidden(values: NDArray[np.float64], n_hidden: int) -> NDArray[np.float64]:
    """The least risks where labels that are not stored may be left open as well, which changes nothing else."""
    least = values.copy()
    if n_hidden >= values.shape[1]:
        np.minimum.accumulate(values, axis=1, out=least)
    else:
        for shift in range(1, n_hidden + 1):
            np.minimum(least[:, shift:], values[:, :-shift], out=least[:, shift:])
    return np.where(np.isinf(values), values, least)
