"""What the decisions for every cost turn out to be: along each instance's cost path, the answers, right or wrong."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from abstain._core.blocks import Block
from abstain._core.kernels import labelwise
from abstain._core.kernels.tally import tally
from abstain._core.losses import Loss, LossLike, as_loss
from abstain._core.losses.base import BlockProfile
from abstain._core.losses.labelwise import LabelwiseLoss, free
from abstain._core.probabilities import Probabilities
from abstain._core.profile import CostPath, RiskProfile
from abstain._core.tables import Axes, dense
from abstain._core.truth import truth_beside
from abstain._utils.threads import for_each


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Each corner of a `CostPath`, with what it costs and how often it is right.

    All arrays are laid out as the path's ``flat_costs``: the corners of instance i are at
    ``path.indptr[i]:path.indptr[i + 1]``, the one that leaves most labels open first. The counts are None of rankings,
    and all that needs the truth is None without it.
    """

    loss: Loss
    path: CostPath
    axes: Axes
    n_labels: int
    expected: NDArray[np.float64]
    """The expected loss of the answers, without a penalty."""
    realized: NDArray[np.float64] | None
    """Their loss, given the truth."""
    hits: NDArray[np.int32] | None
    """Relevant labels answered 1."""
    false_alarms: NDArray[np.int32] | None
    """Irrelevant labels answered 1."""
    misses: NDArray[np.int32] | None
    """Relevant labels answered 0."""
    caught: NDArray[np.int32] | None
    """Labels left open that the complete prediction gets wrong."""

    def __len__(self) -> int:
        return len(self.path)

    @property
    def answered(self) -> NDArray[np.int64]:
        """How many labels are answered at each corner."""
        return self.n_labels - self.path.flat_counts

    @property
    def wrong(self) -> NDArray[np.int32] | None:
        """How many answers are wrong at each corner."""
        return None if self.misses is None or self.false_alarms is None else self.misses + self.false_alarms

    def corner_at(self, cost: float) -> NDArray[np.int64]:
        """Where in the flat arrays each instance is at a linear cost."""
        return self.path.corner_at(cost)


def outcomes(probabilities: Any, y_true: Any = None, loss: LossLike = "hamming") -> Outcomes:
    """All decisions for linear costs, and what becomes of them.

    Parameters
    ----------
    probabilities, loss
        As for `abstain.decide`. Sparse probabilities are made dense: there is an outcome for every label.
    y_true : n × m table of 0 and 1, optional
        Without it, only what is expected is known.

    Examples
    --------
    >>> from abstain._core.realized_paths import outcomes
    >>> found = outcomes([0.9, 0.8, 0.4], [1, 0, 0])
    >>> found.path.flat_costs, found.answered
    (array([0. , 0.1, 0.2, 0.4]), array([0, 1, 2, 3]))
    >>> found.wrong, found.expected.round(1)
    (array([0, 0, 1, 1], dtype=int32), array([0. , 0.1, 0.3, 0.7]))
    """
    table = Probabilities(probabilities)
    table.make_dense()
    truth = None if y_true is None else dense(truth_beside(table, y_true))
    chosen = as_loss(loss)
    profile = RiskProfile(table, chosen)
    path = profile.path()
    return Outcomes(chosen, path, table.axes, table.n_labels, *_follow(profile, path, truth))


def _follow(profile: RiskProfile, path: CostPath, truth: NDArray[np.int8] | None) -> list[Any]:
    """The arrays of `Outcomes`, block by block."""
    size, loss = len(path.flat_costs), profile.loss
    expected = np.empty(size)
    realized = None if truth is None else np.empty(size)
    counts = None if truth is None or loss.gives_rankings else np.empty((4, size), np.int32)

    def work(piece: tuple[Block, BlockProfile]) -> None:
        block, known = piece
        walk = _Walk(block, profile.load(block), known, path)
        expected[walk.corners] = known.values[walk.row, walk.n_open]
        if truth is None or realized is None:
            return
        y = truth[block.rows]
        scored = _score_nested(loss, walk, y) if isinstance(loss, LabelwiseLoss) else _score_one_by_one(loss, walk, y)
        realized[walk.corners], found = scored
        if counts is not None:
            counts[:, walk.corners] = found

    for_each(work, profile.pieces(loss.entries_per_block))
    return [expected, realized, *([None] * 4 if counts is None else counts)]


class _Walk:
    """The corners of a block of consecutive instances: whose each is, and how many labels it leaves open."""

    def __init__(self, block: Block, p: NDArray[np.float64], known: BlockProfile, path: CostPath) -> None:
        self.block, self.p, self.known = block, p, known
        self.indptr = path.indptr[block.rows.start : block.rows.stop + 1]
        self.corners = slice(self.indptr[0], self.indptr[-1])
        self.row = np.repeat(np.arange(len(p)), np.diff(self.indptr))
        self.n_open = path.flat_counts[self.corners].astype(np.intp)

    def answers(self, loss: Loss, n_open: NDArray[np.intp]) -> NDArray[Any]:
        """The best answers of each instance with so many labels open."""
        codes = np.empty(self.block.shape, np.int32 if loss.gives_rankings else np.int8)
        loss.attain(self.block, self.p, self.known, n_open, codes)
        return codes


Scored: TypeAlias = tuple[NDArray[np.float64], NDArray[np.int32]]
"""Of each corner: the loss, and hits, false alarms, misses and caught errors, one row each (no meaning of rankings)."""


def _score_nested(loss: LabelwiseLoss, walk: _Walk, y: NDArray[np.int8]) -> Scored:
    """Each label has one answer, given from some cost on: the scores of all corners are running totals."""
    fn, fp = loss.costs(walk.block)
    scores, values = np.empty_like(walk.p), np.empty_like(walk.known.values)
    labelwise.score(walk.p, fn, fp, free(walk.p), scores)
    order = np.argsort(scores, axis=1, kind="stable")  # of labels that are equally certain, the first one first
    complete = walk.answers(loss, np.zeros(len(y), np.intp))
    codes, y, fn, fp = (
        np.take_along_axis(np.broadcast_to(table, order.shape), order, axis=1) for table in (complete, y, fn, fp)
    )
    is_hit, is_alarm, is_miss = (codes == 1) & (y == 1), (codes == 1) & (y == 0), (codes == 0) & (y == 1)
    # What labels turn out to cost adds up in the same way as what they were expected to.
    loss.accumulate(np.where(is_miss, fn, np.where(is_alarm, fp, 0.0)), values)
    totals = np.zeros((4, len(y), y.shape[1] + 1), np.int32)
    for total, happens in zip(totals[:3], (is_hit, is_alarm, is_miss), strict=True):
        np.cumsum(happens, axis=1, out=total[:, 1:])
    wrong = totals[1] + totals[2]
    totals[3] = wrong[:, -1:] - wrong
    return values[walk.row, walk.n_open], totals[:, walk.row, y.shape[1] - walk.n_open]


def _score_one_by_one(loss: Loss, walk: _Walk, y: NDArray[np.int8]) -> Scored:
    """The first corner of all instances, the second …"""
    first, last = walk.indptr[:-1] - walk.indptr[0], walk.indptr[1:] - walk.indptr[0] - 1
    realized, counts = np.empty(len(walk.row)), np.empty((4, len(walk.row)), np.int32)
    found, relevant = np.empty((4, len(y)), np.int32), y.astype(np.bool_)
    is_error = (walk.answers(loss, walk.n_open[last]) != y).astype(np.int8)
    for step in range(int((last - first).max(initial=-1)) + 1):
        at = np.minimum(first + step, last)
        codes = walk.answers(loss, walk.n_open[at])
        realized[at] = loss.realized(walk.block, relevant, codes)
        if not loss.gives_rankings:
            tally(y, codes, is_error, *found)
            counts[:, at] = found
    return realized, counts
