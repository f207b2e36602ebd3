"""Losses whose best prediction takes the likeliest labels first and the least likely last: F, Jaccard and rank.

From intervals of probabilities, a label counts with its lower end where it is first and with its upper end where it is
last. If the labels of greatest lower ends are taken first and those of least upper ends last, each side on its own, a
label can be on both sides. What that costs is a lower bound for every prediction, and if no label is on both sides it
is the best one. Otherwise either the label is not first, or it is not last: branch and bound. A loss may know a sharper
bound, and then searches by itself (`improve`).
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.blocks import Block
from abstain._core.kernels import two_ends
from abstain._core.kernels.bounds import Bounds
from abstain._core.kernels.choice import SLACK
from abstain._core.kernels.two_ends import FIRST, LAST
from abstain._core.losses.base import BlockAnswers, BlockProfile, Codes, Counts, Loss
from abstain._core.penalties import BoundPenalty
from abstain._utils.types import Floats

NODE_LABELS = 300_000
"""The labels of all nodes that branch and bound may visit for an instance; what is still open then is in the gap."""

NODES_AT_A_TIME = 32
"""Nodes of a row that are branched at once, at most: what a round costs besides, each of them would cost alone."""

NODES_PER_BRANCHED = 16
"""So many nodes a row has for each one that is branched at once: few are branched in vain."""


class Ends(NamedTuple):
    """How many labels are first, how many are abstained, and the expected loss, of each row."""

    start: NDArray[np.int32]
    n_abstained: NDArray[np.intp]
    losses: Floats

    def take(self, rows: NDArray[np.intp]) -> "Ends":
        """Return some of the rows."""
        return Ends(self.start[rows], self.n_abstained[rows], self.losses[rows])


class TwoEndedLoss(Loss):
    """A loss whose best prediction has the likeliest labels first, the least likely last, and abstains between them."""

    takes_intervals = True

    @abstractmethod
    def best_ends(self, ranked: Bounds, penalty: BoundPenalty) -> Ends:
        """Return the best sizes of both sides, given the rows of each end of the intervals sorted decreasing."""

    @abstractmethod
    def profile_ends(self, ranked: Bounds, values: Floats, start: NDArray[np.int32]) -> None:
        """Write the least loss for every number of abstentions, and how many labels are first then."""

    @abstractmethod
    def answer_sides(self, bounds: Bounds, sides: Codes, codes: Codes) -> None:
        """Write the answers that put the labels of sides 1 first and those of sides 0 last."""

    def improve(self, bounds: Bounds, compared: "Compared", found: "Found", limit: int) -> bool:
        """Make the found predictions the best ones; False if the loss leaves that to branch and bound.

        At most about `limit` labels of each row may be visited; what may be missing then goes into the gap.
        """
        return False

    def decide_bounds(self, block: Block, bounds: Bounds, penalty: BoundPenalty, out: BlockAnswers) -> None:
        """Write the answers of least worst-case loss of a block of intervals."""
        found = _Search(self, block, bounds, _ByPenalty(self, penalty)).run()
        self.answer_sides(bounds, found.sides, out.codes)
        out.expected[:] = found.losses + penalty.counts[found.n_abstained]
        if out.gap is not None:
            out.gap[:] = found.gap

    def profile_bounds(self, block: Block, bounds: Bounds, out: BlockProfile) -> None:
        """Write the least worst-case loss for every number of abstentions of a block of intervals."""
        assert out.start is not None
        n, m = bounds.shape
        ranked = sorted_decreasing(bounds)
        self.profile_ends(ranked, out.values, out.start)
        for a in range(m + 1):
            shared = _take_sides(bounds, ranked, out.start[:, a], np.full(n, a))[1]
            rows = np.flatnonzero((shared >= 0) & np.isfinite(out.values[:, a]))
            if len(rows):
                found = _Search(self, block, bounds.take(rows), _ByCount(self, np.full(len(rows), a))).run()
                out.values[rows, a] = found.losses
                if out.gap is not None:
                    out.gap[rows, a] = found.gap

    def attain_bounds(
        self, block: Block, bounds: Bounds, profile: BlockProfile, n_abstained: NDArray[np.intp], codes: Codes
    ) -> None:
        """Write the answers of least worst-case loss with given numbers of abstentions."""
        assert profile.start is not None
        start = profile.start[np.arange(len(n_abstained)), n_abstained]
        sides, shared = _take_sides(bounds, sorted_decreasing(bounds), start, n_abstained)
        rows = np.flatnonzero(shared >= 0)
        if len(rows):
            sides[rows] = _Search(self, block, bounds.take(rows), _ByCount(self, n_abstained[rows])).run().sides
        self.answer_sides(bounds, sides, codes)

    def decide_from_profile(
        self, block: Block, p: Floats | Bounds, profile: BlockProfile, penalty: BoundPenalty, out: BlockAnswers
    ) -> None:
        super().decide_from_profile(block, p, profile, penalty, out)
        if profile.gap is not None and out.gap is not None:
            least = (profile.values - profile.gap + penalty.counts).min(axis=1)
            out.gap[:] = np.where(profile.gap.any(axis=1), np.maximum(out.expected - least, 0.0), 0.0)

    def decide_and_count_bounds(
        self, block: Block, bounds: Bounds, penalty: BoundPenalty, other: BoundPenalty, out: BlockAnswers
    ) -> NDArray[np.intp]:
        """Decide for one penalty, and return how many labels of each row are abstained for another one."""
        self.decide_bounds(block, bounds, penalty, out)
        return _Search(self, block, bounds, _ByPenalty(self, other)).run().n_abstained


@dataclass
class Found:
    """The best sides of each row that were found, and how much better others could be.

    Attributes
    ----------
    sides : int8 array of shape (n, m)
        1 for labels that are first, 0 for those that are last, −1 for those that are abstained.
    losses, gap : float array of shape (n,)
    n_abstained : int array of shape (n,)
    """

    sides: Codes
    losses: Floats
    n_abstained: NDArray[np.intp]
    gap: Floats

    def take(self, rows: Counts) -> "Found":
        """Return a copy of some rows."""
        return Found(self.sides[rows], self.losses[rows], self.n_abstained[rows], self.gap[rows])

    def put(self, rows: Counts, found: "Found") -> None:
        """Replace some rows."""
        self.sides[rows], self.losses[rows] = found.sides, found.losses
        self.n_abstained[rows], self.gap[rows] = found.n_abstained, found.gap


class Compared(NamedTuple):
    """How predictions are compared: by the loss and counted[a], up to a relative difference of `tie`.

    Where only ≥ 0, a row abstains on so many labels. is_concave says that the steps of counted never grow.
    """

    counted: Floats
    tie: float
    is_concave: bool
    only: NDArray[np.intp]


@dataclass(frozen=True)
class _ByPenalty:
    """Search for the least loss and penalty."""

    loss: TwoEndedLoss
    penalty: BoundPenalty

    def solve(self, ranked: Bounds, rows: Counts) -> Ends:
        return self.loss.best_ends(ranked, self.penalty)

    def compared(self, rows: Counts, n_labels: int) -> Compared:
        counted, tie = self.penalty.counted(self.loss.tie_scale)
        return Compared(counted, tie, self.penalty.is_concave, np.full(len(rows), -1))

    def totals(self, losses: Floats, n_abstained: NDArray[np.intp]) -> Floats:
        total: Floats = losses + self.penalty.counted(self.loss.tie_scale)[0][n_abstained]
        return total

    def margin(self, totals: Floats) -> Floats:
        tie = self.penalty.counted(self.loss.tie_scale)[1]
        return max(tie, SLACK) * (self.loss.tie_scale + np.abs(totals))


@dataclass(frozen=True)
class _ByCount:
    """Search for the least loss with a given number of abstentions in each row."""

    loss: TwoEndedLoss
    n_abstained: NDArray[np.intp]

    def solve(self, ranked: Bounds, rows: Counts) -> Ends:
        profile, n_abstained = self.loss.empty_profile(ranked.shape), self.n_abstained[rows]
        assert profile.start is not None
        self.loss.profile_ends(ranked, profile.values, profile.start)
        at = np.arange(len(rows)), n_abstained
        return Ends(profile.start[at], n_abstained, profile.values[at])

    def compared(self, rows: Counts, n_labels: int) -> Compared:
        return Compared(np.zeros(n_labels + 1), 0.0, True, self.n_abstained[rows])

    def totals(self, losses: Floats, n_abstained: NDArray[np.intp]) -> Floats:
        return losses

    def margin(self, totals: Floats) -> Floats:
        return SLACK * (self.loss.tie_scale + np.abs(totals))


class _Nodes(NamedTuple):
    """Nodes of the search trees of several rows: in each, some labels must not be first, others must not be last.

    Attributes
    ----------
    parent : int array
        The number of the node from which it was branched; −1 for a root.
    label, side : int array
        The label that must not be on this side, besides what the parents say.
    row : int array
        The row of the block.
    least : float array
        A lower bound for what is in the node.
    n_abstained : int array
        The number of abstentions at that bound.
    shared : int array
        The label to branch on; −1 if the bound is attained.
    """

    parent: NDArray[np.intp]
    label: NDArray[np.intp]
    side: NDArray[np.int8]
    row: NDArray[np.intp]
    least: Floats
    n_abstained: NDArray[np.intp]
    shared: NDArray[np.intp]

    def __add__(self, other: "_Nodes") -> "_Nodes":  # type: ignore[override]
        both: Any = zip(self, other, strict=True)
        return _Nodes(*map(np.concatenate, both))


class _Search:
    """Branch and bound for all rows of a block at once, the node of least bound of each row first."""

    def __init__(self, loss: TwoEndedLoss, block: Block, bounds: Bounds, goal: _ByPenalty | _ByCount) -> None:
        self.loss, self.block, self.bounds, self.goal = loss, block, bounds, goal

    def run(self) -> Found:
        """Return the best sides of each row."""
        n, m = self.bounds.shape
        rows = np.arange(n)
        ends, sides, shared = self._solve(self.bounds, rows)
        self.found = Found(sides, ends.losses.copy(), ends.n_abstained.astype(np.intp), np.zeros(n))
        open_rows = np.flatnonzero(shared >= 0)
        if len(open_rows):
            self.found.losses[open_rows] = self._worst_case(sides[open_rows], open_rows)
            some = self.found.take(open_rows)
            if self.loss.improve(self.bounds.take(open_rows), self.goal.compared(open_rows, m), some, NODE_LABELS):
                self.found.put(open_rows, some)
                return self.found
            none, totals = np.full(len(open_rows), -1), self.goal.totals(ends.losses, ends.n_abstained)
            roots = _Nodes(
                none,
                none,
                none.astype(np.int8),
                open_rows,
                totals[open_rows],
                ends.n_abstained[open_rows],
                shared[open_rows],
            )
            self._branch(roots, m)
        return self.found

    def _solve(self, bounds: Bounds, rows: NDArray[np.intp]) -> tuple[Ends, Codes, NDArray[np.intp]]:
        ranked = sorted_decreasing(bounds)
        ends = self.goal.solve(ranked, rows)
        return ends, *_take_sides(bounds, ranked, ends.start, ends.n_abstained)

    def _worst_case(self, sides: Codes, rows: Counts) -> Floats:
        bounds, codes = self.bounds.take(rows), np.empty(sides.shape, self.loss.prediction_type.code_type)
        self.loss.answer_sides(bounds, sides, codes)
        return self.loss.expected(self.block, bounds, codes)

    def _branch(self, nodes: _Nodes, n_labels: int) -> None:
        """Search until no open node can hold anything better, or its row has used up its nodes."""
        found, limit = self.found, max(3, NODE_LABELS // n_labels)
        is_open = np.ones(len(nodes.row), np.bool_)
        while True:
            is_open &= self._may_be_better(nodes)
            size = np.bincount(nodes.row, minlength=len(found.losses))
            live = np.flatnonzero(is_open & (size[nodes.row] < limit))
            if len(live) == 0:
                break
            chosen = _best_of_each_row(nodes, live, size)
            is_open[chosen] = False
            children = self._children(nodes, chosen)
            nodes += children
            is_open = np.append(is_open, children.shared >= 0)
        left = np.flatnonzero(is_open)
        totals = self.goal.totals(found.losses, found.n_abstained)
        np.maximum.at(found.gap, nodes.row[left], totals[nodes.row[left]] - nodes.least[left])

    def _may_be_better(self, nodes: _Nodes) -> NDArray[np.bool_]:
        """Whether a node can hold a lower total than what was found, or an equal one with fewer abstentions."""
        totals = self.goal.totals(self.found.losses, self.found.n_abstained)
        best, margin = totals[nodes.row], self.goal.margin(totals)[nodes.row]
        fewer = nodes.n_abstained < self.found.n_abstained[nodes.row]
        return (nodes.least < best - margin) | (fewer & (nodes.least <= best + margin))

    def _children(self, nodes: _Nodes, chosen: NDArray[np.intp]) -> _Nodes:
        """Return two children of each node: the label that its sides share is not first, or not last."""
        side = np.repeat(np.array([FIRST, LAST], np.int8), len(chosen))
        chosen = np.concatenate([chosen, chosen])
        rows, label = nodes.row[chosen], nodes.shared[chosen]
        bounds = Bounds(self.bounds.low[rows], self.bounds.high[rows])
        at, ancestor = np.arange(len(rows)), chosen
        _forbid(bounds, at, label, side)
        while len(at):
            at, ancestor = at[nodes.parent[ancestor] >= 0], ancestor[nodes.parent[ancestor] >= 0]
            _forbid(bounds, at, nodes.label[ancestor], nodes.side[ancestor])
            ancestor = nodes.parent[ancestor]
        ends, sides, shared = self._solve(bounds, rows)
        losses = self._worst_case(sides, rows)
        order = np.argsort(rows, kind="stable")
        number = _number_within_row(rows[order])
        for k in range(number.max() + 1):  # one child of each row at a time
            some = order[number == k]
            self._keep_better(sides[some], losses[some], ends.n_abstained[some], rows[some])
        return _Nodes(
            chosen, label, side, rows, self.goal.totals(ends.losses, ends.n_abstained), ends.n_abstained, shared
        )

    def _keep_better(self, sides: Codes, losses: Floats, n_abstained: NDArray[np.intp], rows: Counts) -> None:
        found = self.found
        best = self.goal.totals(found.losses[rows], found.n_abstained[rows])
        totals, margin = self.goal.totals(losses, n_abstained), self.goal.margin(best)
        fewer = n_abstained < found.n_abstained[rows]
        better = (totals < best - margin) | (fewer & (totals <= best + margin))
        found.sides[rows[better]] = sides[better]
        found.losses[rows[better]] = losses[better]
        found.n_abstained[rows[better]] = n_abstained[better]


def _best_of_each_row(nodes: _Nodes, live: NDArray[np.intp], size: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the nodes of least bound of each row: so many as its own size says, or its answers depended on others."""
    live = live[np.lexsort((nodes.least[live], nodes.row[live]))]
    rows = nodes.row[live]
    return live[_number_within_row(rows) < np.clip(size[rows] // NODES_PER_BRANCHED, 1, NODES_AT_A_TIME)]


def _number_within_row(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return how many equal rows precede each one; equal rows follow each other."""
    first = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    return np.arange(len(rows)) - np.repeat(first, np.diff(np.append(first, len(rows))))


def _forbid(bounds: Bounds, at: Counts, label: Counts, side: Counts) -> None:
    """Widen the intervals of labels that must not be on a side, so that there they are worth nothing."""
    first = side == FIRST
    bounds.low[at[first], label[first]] = 0.0
    bounds.high[at[~first], label[~first]] = 1.0


def _take_sides(bounds: Bounds, ranked: Bounds, start: Counts, n_abstained: Counts) -> tuple[Codes, NDArray[np.intp]]:
    sides, shared = np.empty(bounds.shape, np.int8), np.empty(bounds.shape[0], np.intp)
    two_ends.take_sides(bounds, ranked, np.ascontiguousarray(start), n_abstained, sides, shared)
    return sides, shared


def sorted_decreasing(bounds: Bounds) -> Bounds:
    """Return the rows of each end of the intervals, sorted decreasing; of known probabilities only once."""
    low = _sorted_decreasing(bounds.low)
    return Bounds(low, low if bounds.high is bounds.low else _sorted_decreasing(bounds.high))


def _sorted_decreasing(p: Floats) -> Floats:
    out = np.negative(p)
    out.sort(axis=1)
    np.negative(out, out=out)
    return out
