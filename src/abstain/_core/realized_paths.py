"""The decisions for all linear costs and what they turn out to cost, along the cost path of each instance."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.blocks import Block
from abstain._core.kernels.counting import count_outcomes
from abstain._core.losses import Loss, LossLike, as_loss
from abstain._core.losses.base import BlockProfile
from abstain._core.probabilities import Probabilities
from abstain._core.profile import CostPath, RiskProfile
from abstain._core.tables import Axes, dense
from abstain._core.truth import read_truth_for
from abstain._utils.threads import for_each
from abstain._utils.types import Floats

REFUSAL = "what is wrong is counted at every cost, over all labels: leave out the rows with unknown labels"


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The expected and the realized loss at each corner of a `CostPath`, and the numbers of right and wrong answers.

    All arrays are laid out as the path's ``flat_costs``: the corners of instance i are at
    ``path.indptr[i]:path.indptr[i + 1]``, the one with most abstentions first. The counts are None for rankings, and
    whatever needs the truth is None without it.
    """

    loss: Loss
    path: CostPath
    axes: Axes
    n_labels: int
    expected: Floats
    """The expected loss of the answers, without a penalty."""
    realized: Floats | None
    """The loss of the answers, given the truth."""
    true_positives: NDArray[np.int32] | None
    """Relevant labels answered 1."""
    false_positives: NDArray[np.int32] | None
    """Irrelevant labels answered 1."""
    false_negatives: NDArray[np.int32] | None
    """Relevant labels answered 0."""
    caught: NDArray[np.int32] | None
    """Abstained labels that the complete prediction gets wrong."""

    def __len__(self) -> int:
        return len(self.path)

    @property
    def answered(self) -> NDArray[np.int64]:
        """The number of answered labels at each corner."""
        return self.n_labels - self.path.flat_counts

    @property
    def wrong(self) -> NDArray[np.int32] | None:
        """The number of wrong answers at each corner."""
        if self.false_positives is None or self.false_negatives is None:
            return None
        return self.false_positives + self.false_negatives

    def corner_at(self, cost: float) -> NDArray[np.int64]:
        """Return the place of each instance in the flat arrays at a linear cost."""
        return self.path.corner_at(cost)


def outcomes(probabilities: Any, y_true: Any = None, loss: LossLike = "hamming") -> Outcomes:
    """Return the decisions for all linear costs, with their expected and realized losses.

    Parameters
    ----------
    probabilities : array-like, data frame or sparse matrix of shape (n_instances, n_labels)
        As for `abstain.decide`. Sparse probabilities are made dense.
    y_true : array-like of 0 and 1 of shape (n_instances, n_labels), optional
        Without it, only expected losses are computed.
    loss : {"hamming", "rank", "f1", "jaccard", "subset"} or Loss, default="hamming"
        The loss.

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
    truth = None if y_true is None else dense(read_truth_for(table, y_true, refusal=REFUSAL))
    chosen = as_loss(loss)
    profile = RiskProfile(table, chosen)
    path = profile.path()
    size = len(path.flat_costs)
    expected, realized, counts = np.empty(size), np.empty(size), np.empty((4, size), np.int32)

    def score_block(piece: tuple[Block, BlockProfile]) -> None:
        block, known = piece
        part = _BlockCorners(block, table.load(block), known, path)
        expected[part.corners] = known.values[part.row, part.n_abstained]
        if truth is None:
            return
        score = _score_labelwise if chosen.is_labelwise else _score_one_by_one
        scores = score(chosen, part, truth[block.rows])
        realized[part.corners], counts[:, part.corners] = scores.realized, scores.counts

    for_each(score_block, profile.pieces(chosen.entries_per_block))
    has_counts = truth is not None and not chosen.gives_rankings
    true_positives, false_positives, false_negatives, caught = counts if has_counts else [None] * 4
    return Outcomes(
        chosen,
        path,
        table.axes,
        table.n_labels,
        expected,
        None if truth is None else realized,
        true_positives,
        false_positives,
        false_negatives,
        caught,
    )


class _BlockCorners:
    """The corners of a block of consecutive instances: the instance of each, and its number of abstentions."""

    def __init__(self, block: Block, p: Floats, profile: BlockProfile, path: CostPath) -> None:
        self.block, self.p, self.profile = block, p, profile
        self.indptr = path.indptr[block.rows.start : block.rows.stop + 1]
        self.corners = slice(self.indptr[0], self.indptr[-1])
        self.row = np.repeat(np.arange(len(p)), np.diff(self.indptr))
        self.n_abstained = path.flat_counts[self.corners].astype(np.intp)

    def answers(self, loss: Loss, n_abstained: NDArray[np.intp]) -> NDArray[Any]:
        """Return the best answers with n_abstained[i] abstentions of instance i."""
        codes = np.empty(self.block.shape, loss.prediction_type.code_type)
        loss.attain(self.block, self.p, self.profile, n_abstained, codes)
        return codes


class _Scores(NamedTuple):
    """The realized loss at each corner, and the rows of counts; the counts are undefined for rankings."""

    realized: Floats
    counts: NDArray[np.int32]
    """True positives, false positives, false negatives, and abstained errors of the complete prediction."""


def _score_labelwise(loss: Loss, part: _BlockCorners, y: NDArray[np.int8]) -> _Scores:
    """Each label has one answer, given from some cost on: the scores of all corners are running totals."""
    fn, fp = loss.block_error_costs(part.block)
    values = np.empty_like(part.profile.values)
    order = np.argsort(loss.label_risks(part.block, part.p), axis=1, kind="stable")
    complete = part.answers(loss, np.zeros(len(y), np.intp))
    codes, y, fn, fp = (
        np.take_along_axis(np.broadcast_to(table, order.shape), order, axis=1) for table in (complete, y, fn, fp)
    )
    is_true_positive, is_false_positive = (codes == 1) & (y == 1), (codes == 1) & (y == 0)
    is_false_negative = (codes == 0) & (y == 1)
    # Realized costs of labels add up in the same way as expected ones.
    loss.accumulate(np.where(is_false_negative, fn, np.where(is_false_positive, fp, 0.0)), values)
    totals = np.zeros((4, len(y), y.shape[1] + 1), np.int32)
    for total, happens in zip(totals[:3], (is_true_positive, is_false_positive, is_false_negative), strict=True):
        np.cumsum(happens, axis=1, out=total[:, 1:])
    wrong = totals[1] + totals[2]
    totals[3] = wrong[:, -1:] - wrong
    return _Scores(values[part.row, part.n_abstained], totals[:, part.row, y.shape[1] - part.n_abstained])


def _score_one_by_one(loss: Loss, part: _BlockCorners, y: NDArray[np.int8]) -> _Scores:
    """Score the first corner of all instances, then the second, and so on."""
    first, last = part.indptr[:-1] - part.indptr[0], part.indptr[1:] - part.indptr[0] - 1
    realized, counts = np.empty(len(part.row)), np.empty((4, len(part.row)), np.int32)
    found, relevant = np.empty((4, len(y)), np.int32), y.astype(np.bool_)
    is_error = (part.answers(loss, part.n_abstained[last]) != y).astype(np.int8)
    for step in range(int((last - first).max(initial=-1)) + 1):
        at = np.minimum(first + step, last)
        codes = part.answers(loss, part.n_abstained[at])
        realized[at] = loss.realized(part.block, relevant, codes)
        if not loss.gives_rankings:
            count_outcomes(y, codes, is_error, found)
            counts[:, at] = found
    return _Scores(realized, counts)
