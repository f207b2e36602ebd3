"""The risk profile, the least expected loss for every number of abstentions, and the cost path that follows from it."""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.belief import Belief
from abstain._core.blocks import Block
from abstain._core.expected_bounds import ExpectedLossBounds, accept_intervals
from abstain._core.intervals import Intervals
from abstain._core.joint import Joint
from abstain._core.kernels import packing
from abstain._core.kernels.choice import tipped
from abstain._core.kernels.hull import lower_hull
from abstain._core.losses import Loss
from abstain._core.losses.base import BlockAnswers, BlockProfile
from abstain._core.losses.two_ends import TwoEndedLoss
from abstain._core.penalties import BoundPenalty, Linear, PenaltyLike, as_penalty
from abstain._core.prediction import Prediction, PredictionT
from abstain._core.prediction_writer import PredictionWriter
from abstain._core.tables import Axes
from abstain._utils.errors import InvalidLoss, InvalidPenalty
from abstain._utils.threads import for_each
from abstain._utils.types import Floats
from abstain._utils.wording import plural


class CostSteps(NamedTuple):
    """The break points of a `CostPath`, instance by instance, with increasing cost within each.

    Attributes
    ----------
    corner : int array of shape (n_steps,)
        The place in the path's flat arrays.
    row : int array of shape (n_steps,)
        The instance.
    cost : float array of shape (n_steps,)
        The break cost.
    size : int array of shape (n_steps,)
        How many labels more are answered from this cost on.
    """

    corner: NDArray[np.int64]
    row: NDArray[np.int64]
    cost: Floats
    size: NDArray[np.int64]


class CostPath:
    """The best number of abstentions for every linear cost, exactly: corners of the lower convex hull of the profile.

    Instance i abstains on ``n_abstained(i)[j]`` labels for costs from ``costs(i)[j]`` up to, not including,
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

    def __init__(self, indptr: NDArray[np.int64], costs: Floats, counts: NDArray[np.int64], tie_scale: float) -> None:
        self.indptr = indptr
        """Where the corners of each instance begin in the flat arrays; as in CSR, one number more than instances."""
        self.flat_costs = costs
        """The costs of all instances, one after the other."""
        self.flat_counts = counts
        """How many labels are abstained from each of these costs on."""
        self.tie_scale = tie_scale
        """The `Loss.tie_scale` of the loss, which determines which costs are equal."""

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __repr__(self) -> str:
        return f"CostPath of {plural(len(self), 'instance')}: {plural(len(self.flat_costs) - len(self), 'break point')}"

    def costs(self, i: int) -> Floats:
        """Return 0, then the costs at which instance i abstains on fewer labels."""
        return self.flat_costs[self._corners(i)]

    def n_abstained(self, i: int) -> NDArray[np.int64]:
        """Return how many labels instance i abstains on from each of its costs on."""
        return self.flat_counts[self._corners(i)]

    def steps(self) -> CostSteps:
        """Return the break points of all instances in flat arrays."""
        is_step = np.ones(len(self.flat_costs), np.bool_)
        is_step[self.indptr[:-1]] = False  # the first corner of an instance has cost 0
        corner = np.flatnonzero(is_step)
        row = np.repeat(np.arange(len(self)), np.diff(self.indptr))[corner]
        size = self.flat_counts[corner - 1] - self.flat_counts[corner]
        return CostSteps(corner, row, self.flat_costs[corner], size)

    def _corners(self, i: int) -> slice:
        i = range(len(self))[i]
        return slice(self.indptr[i], self.indptr[i + 1])

    @property
    def break_points(self) -> Floats:
        """All costs > 0 at which a decision changes, increasing; of costs that differ by rounding only, the highest."""
        costs = np.sort(self.flat_costs[self.flat_costs > 0])
        return costs[last_of_equals(costs, self.tie_scale)]

    def at(self, cost: float) -> NDArray[np.int64]:
        """Return how many labels each instance abstains on at this cost."""
        return self.flat_counts[self.corner_at(cost)]

    def corner_at(self, cost: float) -> NDArray[np.int64]:
        """Return the place of each instance in the flat arrays at this cost."""
        passed = np.concatenate([[0], np.cumsum(self.flat_costs <= tipped(Linear(cost).cost, self.tie_scale))])
        corner: NDArray[np.int64] = self.indptr[:-1] + passed[self.indptr[1:]] - passed[self.indptr[:-1]] - 1
        return corner


def last_of_equals(costs: Floats, tie_scale: float) -> NDArray[np.intp]:
    """Return the index of the last of each run of equal costs; costs are equal if decisions at them are the same."""
    return np.flatnonzero(np.append(costs[1:], np.inf) > tipped(costs, tie_scale))


def require_profile(loss: Loss, n_labels: int, axes: Axes, is_sparse: bool) -> None:
    """Raise `InvalidLoss` or `InvalidLabels` if a loss has no risk profile for such a table."""
    loss.check(n_labels)
    axes.require_labels(loss.label_names, repr(loss))
    if is_sparse and not loss.zeros_cost_nothing:
        raise InvalidLoss(
            f"the profile of {loss!r} on sparse probabilities would be dense: with zero_division=0, leaving open "
            "what is stored does not make the risk 0. Use zero_division=1, a dense array, or abstain.decide."
        )


class RiskProfile(Generic[PredictionT]):
    """The least expected loss of each instance for every number of abstentions. Made by `abstain.risk_profile`.

    It reads the probabilities again when it decides, so they must not be changed meanwhile.

    Attributes
    ----------
    loss : Loss
        The loss.
    probabilities : Probabilities, Intervals or Joint
        The validated probabilities.
    is_hull : bool
        Whether only the corners of the lower convex hull are known, which decide for linear and concave penalties;
        elsewhere `values` is infinite. So it is for joint distributions, but for the rank loss.
    """

    def __init__(self: "RiskProfile[Prediction]", probabilities: Belief, loss: Loss) -> None:
        require_profile(loss, probabilities.n_labels, probabilities.axes, probabilities.is_sparse)
        has_gap = isinstance(probabilities, Intervals) and isinstance(loss, TwoEndedLoss)
        if isinstance(probabilities, Intervals):
            accept_intervals(loss, probabilities, None)
        self.loss = loss
        self.probabilities = probabilities
        is_joint = isinstance(probabilities, Joint)
        if is_joint:
            loss.accept_joint()
        self.is_hull = is_joint and loss.joint_profile_is_hull
        self._packed: list[tuple[Block, BlockProfile]] = []
        if probabilities.is_sparse:
            blocks = probabilities.blocks(loss.entries_per_block)
            self._packed = [(block, loss.empty_profile(block.shape, with_gap=has_gap)) for block in blocks]
        else:
            shape = probabilities.n_rows, probabilities.n_labels
            self._dense = loss.empty_profile(shape, with_gap=has_gap or is_joint, with_answers=is_joint)

        if isinstance(probabilities, Joint):
            joint = probabilities
            joint.for_each_block(
                lambda block: loss.profile_joint(joint.load(block), joint.limits, self._dense.rows(block.rows))
            )
            return

        def profile_block(piece: tuple[Block, BlockProfile]) -> None:
            loss.profile(piece[0], probabilities.load(piece[0]), piece[1])

        for_each(profile_block, self.pieces(loss.entries_per_block))

    def pieces(self, entries: int = Loss.entries_per_block) -> list[tuple[Block, BlockProfile]]:
        """Return blocks of about so many entries, each with its part of the profile.

        A sparse table keeps the blocks for which the profile was computed.
        """
        if self.probabilities.is_sparse:
            return self._packed
        return [(block, self._dense.rows(block.rows)) for block in self.probabilities.blocks(entries)]

    @property
    def dense_profile(self) -> BlockProfile:
        """The profile of a dense table as one block of all rows."""
        return self._dense

    def __repr__(self) -> str:
        n, m = self.probabilities.n_rows, self.probabilities.n_labels
        return f"RiskProfile of {plural(n, 'instance')} × {plural(m, 'label')} for {self.loss!r}"

    @property
    def values(self) -> Any:
        """The least expected loss of instance i with a abstentions, (n_instances, n_labels + 1).

        It is infinite where a is not allowed (`Rank`). For sparse probabilities it is a CSR array: from as many
        abstentions as an instance has stored entries on, it is 0 (for `Rank` also where one label would be left).
        """
        if not self.probabilities.is_sparse:
            values = self._dense.values.view()
            values.flags.writeable = False
            return values
        source = self.probabilities.matrix
        data = np.empty(len(source.data))
        for block, profile in self.pieces():
            n_hidden = source.shape[1] - block.shape[1]
            packing.unpack(source.indptr, _with_hidden(profile.values, n_hidden), block.rows, data)
        indices = np.arange(len(data), dtype=source.indptr.dtype)
        indices -= np.repeat(source.indptr[:-1], np.diff(source.indptr))
        shape = (self.probabilities.n_rows, self.probabilities.n_labels + 1)
        return sparse.csr_array((data, indices, source.indptr.copy()), shape)

    @property
    def total_gap(self) -> float:
        """How much less the least expected losses of all instances together can be: 0 where they are proved optimal."""
        return float(sum(0.0 if part.gap is None else part.gap.max(axis=1).sum() for _, part in self.pieces()))

    def decide(self, penalty: PenaltyLike = 0.1) -> PredictionT:
        """Return the optimal partial prediction for a counting penalty, as `abstain.decide`, from the known profile.

        Parameters
        ----------
        penalty : float, counting Penalty, callable f(a), array-like of shape (n_labels + 1,), or "none", default=0.1
            The cost of abstaining on a labels.

        Returns
        -------
        PartialPrediction, or PartialRanking for losses that score rankings
        """
        bound = as_penalty(penalty).bind(self.probabilities.n_labels)
        bound.require_counting()
        if self.probabilities.is_sparse:
            bound.require_nondecreasing()
        if self.is_hull and not (bound.is_concave and np.isfinite(bound.counts).all()):
            raise InvalidPenalty(
                f"the profile of {self.loss!r} for a joint distribution knows only the corners of its lower hull: "
                "enough for finite linear and concave penalties; use abstain.decide for others"
            )

        def decide_block(block: Block, profile: BlockProfile, answers: BlockAnswers) -> None:
            if profile.answers is not None:
                self.loss.decide_from_answers(profile, bound, answers)
                return
            p, costs = self.probabilities.load(block), bound.narrowed(block.shape[1])
            self.loss.decide_from_profile(block, p, profile, costs, answers)

        return self._predict(decide_block, bound)

    def with_n_abstained(self, n_abstained: NDArray[Any]) -> PredictionT:
        """Return the best partial prediction with given numbers of abstentions; no penalty is charged.

        Parameters
        ----------
        n_abstained : int array of shape (n_instances,)
            How many labels of each instance are abstained.

        Returns
        -------
        PartialPrediction, or PartialRanking for losses that score rankings
        """

        def attain_block(block: Block, profile: BlockProfile, answers: BlockAnswers) -> None:
            count = n_abstained[block.rows].astype(np.intp)
            at = np.arange(len(count)), count
            if profile.answers is not None:
                answers.codes[:] = profile.answers[at]
            else:
                self.loss.attain(block, self.probabilities.load(block), profile, count, answers.codes)
            answers.expected[:] = profile.values[at]
            if profile.gap is not None and answers.gap is not None:
                answers.gap[:] = profile.gap[at]

        return self._predict(attain_block, BoundPenalty(np.zeros(self.probabilities.n_labels + 1)))

    def _predict(
        self, answer_block: Callable[[Block, BlockProfile, BlockAnswers], None], costs: BoundPenalty
    ) -> PredictionT:
        """Answer all blocks, each with its part of the profile; the costs are those of abstentions."""
        writer = PredictionWriter(self.probabilities, self.loss)

        def work(piece: tuple[Block, BlockProfile]) -> None:
            block, profile = piece
            answers = writer.buffers(block)
            answer_block(block, profile, answers)
            writer.write(block, answers)

        for_each(work, self.pieces())
        prediction = writer.finish()
        if isinstance(self.probabilities, Intervals):
            prediction.with_bounds(ExpectedLossBounds(self.probabilities, self.loss, costs))
        return cast(PredictionT, prediction)

    def path(self, *, max_abstained: int | None = None) -> CostPath:
        """Return the best numbers of abstentions for all linear costs.

        Parameters
        ----------
        max_abstained : int, optional
            How many labels of an instance may be abstained; all by default.
        """
        n = self.probabilities.n_rows
        sizes = np.empty(n, np.int64)
        pieces = self.pieces()
        found: dict[int, tuple[Floats, NDArray[np.int64]]] = {}

        def work(k: int) -> None:
            block, values = pieces[k][0], pieces[k][1].values
            if max_abstained is not None:
                values = np.ascontiguousarray(values[:, : max_abstained + 1])
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


def _with_hidden(values: Floats, n_hidden: int) -> Floats:
    """Return the profile of packed rows if labels that are not stored may be abstained, too; these have no risk."""
    least = values.copy()
    if n_hidden >= values.shape[1]:
        np.minimum.accumulate(values, axis=1, out=least)
    else:
        for shift in range(1, n_hidden + 1):
            np.minimum(least[:, shift:], values[:, :-shift], out=least[:, shift:])
    return np.where(np.isinf(values), values, least)
