"""Checks of the paper's desirable properties; a violation comes with an example."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.blocks import Block
from abstain._core.kernels.choice import TIE
from abstain._core.losses import Loss, LossLike, as_loss
from abstain._core.losses.base import Counts
from abstain._core.penalties import BoundPenalty, PenaltyLike, as_penalty
from abstain._core.prediction import ABSTAIN, PartialPrediction, Prediction
from abstain._core.probabilities import Probabilities
from abstain._core.truth import aligned_blocks, require_same_table
from abstain._utils.errors import InvalidLoss, InvalidParameter
from abstain._utils.types import Floats

MAX_LABELS_BY_COUNTS = 100  # all counts of four outcomes are tried
MAX_LABELS_EXHAUSTIVE = 7  # every truth with every answer: 6^m of them
OUTCOMES = ((1, 1), (0, 0), (0, 1), (1, 0))
"""Truth and answer of a label: true positive, true negative, false positive, false negative."""

Labels = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Verdict:
    """Whether a property holds; usable as a truth value.

    Attributes
    ----------
    holds : bool
        Whether the property holds.
    witness : Step, Inversion or None
        An example that violates it, if it does not hold.
    """

    holds: bool
    witness: Any = None

    def __bool__(self) -> bool:
        return self.holds


@dataclass(frozen=True)
class Step:
    """Two predictions for one truth: `after` is better on one label (wrong → abstained → right), but costs more."""

    truth: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    loss_before: float
    loss_after: float


@dataclass(frozen=True)
class Inversion:
    """An instance that answers a label although it is more uncertain than one it abstains on."""

    row: int
    answered_label: int
    abstained_label: int
    answered_uncertainty: float
    abstained_uncertainty: float


def is_monotone(loss: LossLike, penalty: PenaltyLike, *, n_labels: int) -> Verdict:
    """Whether a right answer never costs more than an abstention, nor an abstention more than a wrong answer.

    A generalised loss is monotone if it never grows when one label goes from wrong to abstained or from abstained to
    right, whatever the truth and the other answers. Hamming is if and only if the penalty's steps lie between 0 and the
    smallest cost of an error; the F-measure is not. For a user's loss that is neither a `DecomposableLoss` nor a
    function of counts (`Loss.of_counts`), every truth is tried with every answer: seven labels at most.

    Parameters
    ----------
    loss : {"hamming", "f1", "jaccard", "subset"} or Loss
        The loss.
    penalty : float, Penalty, callable f(a), array-like of shape (n_labels + 1,), or "none"
        The penalty.
    n_labels : int ≥ 1
        The number of labels.

    Returns
    -------
    Verdict
        With a `Step` as witness if the loss is not monotone.

    Examples
    --------
    >>> import abstain
    >>> bool(abstain.is_monotone("hamming", 0.3, n_labels=10))
    True
    >>> abstain.is_monotone("f1", 0.1, n_labels=2).witness
    Step(truth=(0, 1), before=(1, 0), after=(-1, 0), loss_before=1.0, loss_after=1.1)
    """
    chosen = as_loss(loss)
    if isinstance(n_labels, bool) or not isinstance(n_labels, int | np.integer) or n_labels < 1:
        raise InvalidParameter(f"n_labels is {n_labels!r}; expected a whole number ≥ 1")
    m = int(n_labels)
    chosen.check(m)
    bound = as_penalty(penalty).bind(m)
    chosen.accept(bound)
    if chosen.gives_rankings:
        raise InvalidLoss(
            f"{chosen!r} ranks labels: none of them is right or wrong by itself, so monotonicity is not defined"
        )
    if chosen.is_decomposable:
        return _decomposable_is_monotone(chosen, bound, m)
    nothing = np.zeros(1, np.int64)
    if chosen.of_counts(nothing, nothing, nothing, nothing) is not None:
        return _counted_is_monotone(chosen, bound, m)
    return _any_is_monotone(chosen, bound, m)


def is_uncertainty_aligned(probabilities: Any, prediction: Any) -> Verdict:
    """Whether each instance abstains on its most uncertain labels, u_i = 2 · min(p_i, 1 − p_i).

    Optimal predictions are for Hamming with equal costs and for subset 0/1; for the rank loss they need not be.

    Parameters
    ----------
    probabilities : array-like, data frame or sparse matrix of shape (n_instances, n_labels), or (n_labels,)
        P(label is relevant).
    prediction : PartialPrediction, PartialRanking, or array-like of shape (n_instances, n_labels)
        The prediction, for example of `abstain.decide`.

    Returns
    -------
    Verdict
        With an `Inversion` as witness if some instance does not.

    Examples
    --------
    >>> import abstain
    >>> p = [0.9, 0.8, 0.7, 0.3]
    >>> bool(abstain.is_uncertainty_aligned(p, abstain.decide(p, "hamming", 0.15)))
    True
    >>> abstain.is_uncertainty_aligned(p, abstain.decide(p, "rank", 0.03)).witness.answered_label
    3
    """
    partial: Prediction = prediction if isinstance(prediction, Prediction) else PartialPrediction(prediction)
    table = Probabilities(probabilities)
    require_same_table(table.axes, table.matrix, partial, "probabilities")
    for block, p, codes in aligned_blocks(table.values(), partial, 1 << 18):
        uncertainty = 2.0 * np.minimum(p, 1.0 - p)
        answered = np.where(codes != ABSTAIN, uncertainty, -np.inf)
        abstained = np.where(codes == ABSTAIN, uncertainty, np.inf)
        inverted = np.flatnonzero(answered.max(axis=1) > abstained.min(axis=1) + TIE)
        if len(inverted):
            i = inverted[0]
            row = int(np.arange(len(partial))[block.rows][i])
            worst, least = int(answered[i].argmax()), int(abstained[i].argmin())
            _, labels = block.places(np.array([i, i]), np.array([worst, least]))
            found = Inversion(
                row, int(labels[0]), int(labels[1]), float(answered[i, worst]), float(abstained[i, least])
            )
            return Verdict(False, found)
    return Verdict(True)


def _decomposable_is_monotone(loss: Loss, penalty: BoundPenalty, m: int) -> Verdict:
    """Check each label alone: one more abstention must cost between 0 and the cost of an error."""
    own = np.zeros(m) if penalty.label_costs is None else penalty.label_costs
    with np.errstate(invalid="ignore"):
        steps = np.diff(penalty.counts) if penalty.slope is None else np.full(m, penalty.slope)
    steps = np.nan_to_num(steps, nan=0.0, posinf=np.inf)
    false_negative, false_positive = loss.read_error_costs(m)
    for y, cost in ((0, false_positive), (1, false_negative)):
        for answer, n_abstained in ((y, int(steps.argmin())), (1 - y, int(steps.argmax()))):
            price = steps[n_abstained] + own
            rounding = (
                4 * np.finfo(float).eps * penalty.counts[n_abstained]
                if np.isfinite(penalty.counts[n_abstained])
                else 0.0
            )
            violates = price < -rounding if answer == y else price > cost * (1 + TIE) + rounding
            if violates.any():
                i = int(np.argmax(violates))
                truth = np.insert(np.zeros(m - 1, int), i, y)
                others = [ABSTAIN] * n_abstained + [0] * (m - 1 - n_abstained)
                return Verdict(False, _step(loss, penalty, truth, np.insert(others, i, ABSTAIN), i, answer))
    return Verdict(True)


def _counted_is_monotone(loss: Loss, penalty: BoundPenalty, m: int) -> Verdict:
    """Try all counts of the four outcomes, with one more label of each; for losses that depend on counts only."""
    if m > MAX_LABELS_BY_COUNTS:
        raise InvalidLoss(f"is_monotone tries all counts for {loss!r}: at most {MAX_LABELS_BY_COUNTS} labels, got {m}")

    def total(counts: Counts) -> Floats:
        true_positives, _, false_positives, false_negatives = counts
        answered = counts.sum(axis=0)
        losses = loss.of_counts(true_positives, false_positives, false_negatives, answered)
        assert losses is not None
        return losses + penalty.counts[m - answered]

    for n_true_positives in range(m):
        rest = np.indices((m - n_true_positives,) * 3).reshape(3, -1)
        counts = np.insert(rest[:, rest.sum(axis=0) < m - n_true_positives], 0, n_true_positives, axis=0)
        if_abstained = total(counts)
        for k, (y, answer) in enumerate(OUTCOMES):
            if_answered = total(counts + (np.arange(4) == k)[:, np.newaxis])
            violates = if_answered > if_abstained + TIE if answer == y else if_abstained > if_answered + TIE
            if violates.any():
                others = np.repeat(OUTCOMES, counts[:, np.argmax(violates)], axis=0)
                n_abstained = m - 1 - len(others)
                truth = np.array([y, *others[:, 0], *[0] * n_abstained])
                answers = np.array([ABSTAIN, *others[:, 1], *[ABSTAIN] * n_abstained])
                return Verdict(False, _step(loss, penalty, truth, answers, 0, answer))
    return Verdict(True)


def _any_is_monotone(loss: Loss, penalty: BoundPenalty, m: int) -> Verdict:
    """Try every truth with every prediction: each label once abstained and once answered."""
    if m > MAX_LABELS_EXHAUSTIVE:
        raise InvalidLoss(
            f"is_monotone tries every truth and answer for {loss!r}: at most {MAX_LABELS_EXHAUSTIVE} labels, got {m}. "
            "If the loss depends only on how many labels are right and wrong, define of_counts"
        )
    truths, answers = (np.array(list(product(values, repeat=m))) for values in ((0, 1), (0, 1, ABSTAIN)))
    truth, codes = np.repeat(truths, len(answers), axis=0), np.tile(answers, (len(truths), 1)).astype(np.int8)
    total = _total(loss, penalty, truth, codes)
    place = 3 ** np.arange(m)[::-1]  # as `product` counts: the last label changes first
    for i in range(m):
        abstained = np.flatnonzero(codes[:, i] == ABSTAIN)
        for answer in (0, 1):
            if_answered, if_abstained = total[abstained - (2 - answer) * place[i]], total[abstained]
            is_right = truth[abstained, i] == answer
            violates = np.where(is_right, if_answered > if_abstained + TIE, if_abstained > if_answered + TIE)
            if violates.any():
                at = abstained[np.argmax(violates)]
                return Verdict(False, _step(loss, penalty, truth[at], codes[at], i, answer))
    return Verdict(True)


def _total(loss: Loss, penalty: BoundPenalty, truth: Labels, codes: Labels) -> Floats:
    """Return the generalised loss of predictions, given the truth."""
    block = Block(slice(0, len(codes)), (len(codes), codes.shape[1]), codes)
    abstained = codes == ABSTAIN
    return loss.realized(block, truth.astype(bool), codes) + penalty.charge(abstained.sum(axis=1), abstained)


def _step(loss: Loss, penalty: BoundPenalty, truth: Labels, abstained: Labels, i: int, answer: int) -> Step:
    """Return the step between abstaining on label i and answering it, towards the better of the two."""
    answered = abstained.copy()
    answered[i] = answer
    before, after = (abstained, answered) if answer == truth[i] else (answered, abstained)
    losses = _total(loss, penalty, np.stack([truth, truth]), np.stack([before, after]))
    return Step(tuple(truth.tolist()), tuple(before.tolist()), tuple(after.tolist()), *losses.tolist())
