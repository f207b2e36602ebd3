"""Brute force: every partial prediction of a few labels, scored against every truth.

Slow and obviously right: the tests compare every loss and penalty with it.
"""

from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.belief import read_belief
from abstain._core.blocks import Block
from abstain._core.intervals import Intervals
from abstain._core.joint import Joint
from abstain._core.kernels.bounds import as_bounds
from abstain._core.kernels.choice import SLACK
from abstain._core.losses import Loss, LossLike, as_loss
from abstain._core.penalties import PenaltyLike, as_penalty
from abstain._core.prediction import ABSTAIN, Prediction
from abstain._utils.errors import InvalidProbabilities

__all__ = ["decide", "expected_losses", "partial_predictions", "partial_rankings"]

MAX_LABELS = 8


def __dir__() -> list[str]:
    return __all__


def decide(probabilities: Any, loss: LossLike = "hamming", penalty: PenaltyLike = 0.1) -> Prediction:
    """Return the optimal partial prediction, as `abstain.decide`, for at most eight labels, by trying all of them.

    Parameters
    ----------
    probabilities : array-like, data frame, Intervals, Samples or Mixture of shape (n_instances, n_labels)
        P(label is relevant). Of intervals every vertex is tried, and the worst one counts (minimax).
    loss : {"hamming", "rank", "f1", "jaccard", "subset"} or Loss, default="hamming"
        The cost of wrong answers.
    penalty : float, Penalty, callable f(a), array-like of shape (n_labels + 1,), or "none", default=0.1
        The cost of abstaining on a labels.

    Returns
    -------
    PartialPrediction, or PartialRanking for the rank loss

    Examples
    --------
    >>> from abstain import exhaustive
    >>> exhaustive.decide([0.9, 0.8, 0.7, 0.3], "rank", 0.03).positions
    array([[ 0, -1, -1,  1]], dtype=int32)
    """
    table, chosen = read_belief(probabilities), as_loss(loss)
    m = table.n_labels
    if table.is_sparse or m > MAX_LABELS:
        got = f"a sparse matrix of {m}" if table.is_sparse else m
        raise InvalidProbabilities(f"probabilities: brute force takes dense tables of ≤ {MAX_LABELS} labels, got {got}")
    chosen.check(m)
    if isinstance(table, Intervals) and table.rule != "minimax":
        raise InvalidProbabilities(f'intervals: brute force is for rule="minimax", not {table.rule!r}')
    codes = partial_rankings(m) if chosen.gives_rankings else partial_predictions(m)
    abstained = codes == ABSTAIN
    n_abstained, bound = abstained.sum(axis=1), as_penalty(penalty).bind(m)
    counts, tie = bound.counted(chosen.tie_scale)
    if isinstance(table, Joint):
        losses = _chances_of_joint(table) @ _loss_of_each_truth(chosen, codes)
    else:
        low, high = (np.asarray(end, dtype=np.float64) for end in as_bounds(table.values()))
        vertices = product((False, True), repeat=m) if isinstance(table, Intervals) else [(False,) * m]
        losses = np.full((table.n_rows, len(codes)), -np.inf)
        for is_high in vertices:
            np.maximum(losses, expected_losses(np.where(is_high, high, low), chosen, codes), out=losses)
    totals = losses + replace(bound, counts=counts).charge(n_abstained, abstained)
    least = totals.min(axis=1, keepdims=True)
    best = np.argmax(totals <= least + max(tie, SLACK) * (chosen.tie_scale + np.abs(least)), axis=1)
    expected = losses[np.arange(table.n_rows), best] + bound.charge(n_abstained, abstained)[best]
    return chosen.prediction_type.from_codes(codes[best], table.axes, expected)


def expected_losses(p: NDArray[np.float64], loss: Loss, codes: NDArray[Any]) -> NDArray[np.float64]:
    """E[ℓ] of each instance and each row of codes, as the plain sum over all 2^m truths.

    Parameters
    ----------
    p : float array of shape (n_instances, n_labels)
        P(label is relevant).
    loss : Loss
        The loss.
    codes : int array of shape (n_predictions, n_labels)
        Predictions, for example those of `partial_predictions`.

    Returns
    -------
    float array of shape (n_instances, n_predictions)
    """
    expected: NDArray[np.float64] = _chances(p) @ _loss_of_each_truth(loss, codes)
    return expected


def _truths(n_labels: int) -> NDArray[np.bool_]:
    return np.array(list(product((0, 1), repeat=n_labels)), dtype=bool)


def _loss_of_each_truth(loss: Loss, codes: NDArray[Any]) -> NDArray[np.float64]:
    block = Block(slice(0, len(codes)), codes.shape, codes)
    return np.stack([loss.realized(block, np.broadcast_to(y, codes.shape), codes) for y in _truths(codes.shape[1])])


def _chances(p: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([np.where(y, p, 1.0 - p).prod(axis=1) for y in _truths(p.shape[1])], axis=1)


def _chances_of_joint(joint: Joint) -> NDArray[np.float64]:
    parts = [joint.load(block) for block in joint.blocks(1 << 18)]
    return np.concatenate([part.of_rows(_chances(part.values[part.index].astype(np.float64))) for part in parts])


def partial_predictions(n_labels: int) -> NDArray[np.int8]:
    """Return all 3^m partial predictions of m labels, those with fewer abstentions first, 0 before 1.

    Parameters
    ----------
    n_labels : int

    Returns
    -------
    int8 array of shape (3 ** n_labels, n_labels)
    """
    codes = np.array(list(product((0, 1, ABSTAIN), repeat=n_labels)), dtype=np.int8)
    return codes[np.argsort((codes == ABSTAIN).sum(axis=1), kind="stable")]


def partial_rankings(n_labels: int) -> NDArray[np.int32]:
    """Return all rankings of some of m labels, those with fewer abstentions first; never of one label among several.

    Parameters
    ----------
    n_labels : int

    Returns
    -------
    int32 array of shape (n_rankings, n_labels)
        Positions from 0, −1 for labels that are not ranked.
    """
    found = []
    for n_ranked in range(n_labels, -1, -1):
        if n_ranked == 1 < n_labels:
            continue
        for order in permutations(range(n_labels), n_ranked):
            positions = np.full(n_labels, ABSTAIN, np.int32)
            positions[list(order)] = np.arange(n_ranked)
            found.append(positions)
    return np.array(found)
