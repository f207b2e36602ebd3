"""What the decisions for every cost turn out to be: along each instance's cost path, the answers, right or wrong."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain.alignment import read_truth
from abstain.decision import risk_profile
from abstain.errors import InvalidLabels
from abstain.kernels.tally import tally
from abstain.losses import Loss, LossLike, as_loss
from abstain.losses.base import BlockProfile
from abstain.matrix import Axes
from abstain.probabilities import Block, Probabilities
from abstain.profile import CostPath, RiskProfile
from abstain.threads import for_each


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
    >>> from abstain.outcomes import outcomes
    >>> found = outcomes([0.9, 0.8, 0.4], [1, 0, 0])
    >>> found.path.flat_costs, found.answered
    (array([0. , 0.1, 0.2, 0.4]), array([0, 1, 2, 3]))
    >>> found.wrong, found.expected.round(1)
    (array([0, 0, 1, 1], dtype=int32), array([0. , 0.1, 0.3, 0.7]))
    """
    table = Probabilities(probabilities)
    if table.is_sparse:
        table.matrix, table.is_sparse = table.matrix.toarray(), False
    truth = None if y_true is None else _truth_of(table, y_true)
    chosen = as_loss(loss)
    profile = risk_profile(table.matrix, chosen)
    path = profile.path()
    return Outcomes(chosen, path, table.axes, table.n_labels, *_follow(profile, path, truth))


def _truth_of(table: Probabilities, y_true: Any) -> NDArray[np.int8]:
    truth, axes = read_truth(y_true)
    if truth.shape != table.matrix.shape:
        raise InvalidLabels(f"y_true has shape {truth.shape}; the probabilities have {table.matrix.shape}")
    table.axes.require_same(axes, "y_true")
    return truth.toarray() if sparse.issparse(truth) else np.ascontiguousarray(truth)


def _follow(profile: RiskProfile, path: CostPath, truth: NDArray[np.int8] | None) -> list[Any]:
    """The arrays of `Outcomes`, corner by corner: the first of all instances, the second …"""
    size, loss = len(path.flat_costs), profile.loss
    expected = np.empty(size)
    realized = None if truth is None else np.empty(size)
    counts = None if truth is None or loss.gives_rankings else np.empty((4, size), np.int32)

    def work(piece: tuple[Block, BlockProfile]) -> None:
        block, known = piece
        first, last = path.indptr[:-1][block.rows], path.indptr[1:][block.rows] - 1
        rows = np.arange(len(first))
        p = profile.load(block)
        codes = np.empty(block.shape, np.int32 if loss.gives_rankings else np.int8)
        found = np.empty((4, len(first)), np.int32)
        if truth is not None:
            y = truth[block.rows]
            relevant = y.astype(np.bool_)
            loss.attain(block, p, known, path.flat_counts[last].astype(np.intp), codes)
            is_error = (codes != y).astype(np.int8)
        for step in range(int((last - first).max(initial=-1)) + 1):
            at = np.minimum(first + step, last)
            open_labels = path.flat_counts[at].astype(np.intp)
            expected[at] = known.values[rows, open_labels]
            if truth is None or realized is None:
                continue
            loss.attain(block, p, known, open_labels, codes)
            realized[at] = loss.realized(block, relevant, codes)
            if counts is not None:
                tally(y, codes, is_error, *found)
                counts[:, at] = found

    for_each(work, profile.pieces(loss.entries_per_block))
    return [expected, realized, *([None] * 4 if counts is None else counts)]
