"""The paper's desirable properties, as checks that return a verdict with a witness."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain.errors import InvalidLoss
from abstain.kernels.choice import TIE
from abstain.losses import Hamming, LossLike, SubsetZeroOne, as_loss
from abstain.losses.overlap import OverlapLoss
from abstain.metrics import Partial, aligned_blocks, require_same_table
from abstain.penalties import BoundPenalty, PenaltyLike, as_penalty
from abstain.prediction import ABSTAIN, PartialPrediction
from abstain.probabilities import Probabilities

MOST_LABELS = 200


@dataclass(frozen=True)
class Verdict:
    """Whether a property holds; if not, a witness: what violates it. Usable as a truth value."""

    holds: bool
    witness: Any = None

    def __bool__(self) -> bool:
        return self.holds


@dataclass(frozen=True)
class Step:
    """Two answers to one truth; `after` is better on one label (wrong → abstained → right), and yet dearer."""

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


def is_monotone(loss: LossLike, penalty: PenaltyLike, m: int) -> Verdict:
    """Whether right is never dearer than abstained, nor abstained than wrong, for m labels.

    A generalised loss is monotone if it never grows when one label goes from wrong to abstained or from abstained to
    right, whatever the truth and the other answers. Hamming is if and only if the penalty's steps lie between 0 and the
    smallest cost of an error; the F-measure is not.

    Examples
    --------
    >>> import abstain
    >>> bool(abstain.is_monotone("hamming", 0.3, m=10))
    True
    >>> abstain.is_monotone("f1", 0.1, m=2).witness
    Step(truth=(0, 1), before=(1, 0), after=(-1, 0), loss_before=1.0, loss_after=1.1)
    """
    chosen = as_loss(loss)
    chosen.check(m)
    bound = as_penalty(penalty).bind(m)
    chosen.accept(bound)
    if isinstance(chosen, Hamming):
        return _decomposable_is_monotone(chosen, bound, m)
    if isinstance(chosen, OverlapLoss | SubsetZeroOne):
        return _counted_is_monotone(chosen, bound, m)
    raise InvalidLoss(
        f"{chosen!r} ranks labels: none of them is right or wrong by itself, so monotonicity is not defined"
    )


def is_uncertainty_aligned(prediction: Any, probabilities: Any) -> Verdict:
    """Whether each instance abstains on its most uncertain labels, u_i = 2 · min(p_i, 1 − p_i).

    Optimal predictions are for Hamming with equal costs and for subset 0/1; for the rank loss they need not be.

    Examples
    --------
    >>> import abstain
    >>> p = [0.9, 0.8, 0.7, 0.3]
    >>> bool(abstain.is_uncertainty_aligned(abstain.decide(p, "hamming", 0.15), p))
    True
    >>> abstain.is_uncertainty_aligned(abstain.decide(p, "rank", 0.03), p).witness.answered_label
    3
    """
    partial: Partial = prediction if isinstance(prediction, Partial) else PartialPrediction(prediction)
    table = Probabilities(probabilities)
    require_same_table(table.axes, table.matrix, partial, "probabilities")
    table.check()
    for block, p, codes in aligned_blocks(table.matrix, partial, 1 << 18):
        uncertainty = 2.0 * np.minimum(p, 1.0 - p)
        answered = np.where(codes != ABSTAIN, uncertainty, -np.inf)
        abstained = np.where(codes == ABSTAIN, uncertainty, np.inf)
        inverted = np.flatnonzero(answered.max(axis=1) > abstained.min(axis=1) + TIE)
        if len(inverted):
            i = inverted[0]
            row = int(np.arange(len(partial))[block.rows][i])
            labels = block.labels(int(i)).tolist()
            worst, least = int(answered[i].argmax()), int(abstained[i].argmin())
            found = Inversion(row, labels[worst], labels[least], float(answered[i, worst]), float(abstained[i, least]))
            return Verdict(False, found)
    return Verdict(True)


def _decomposable_is_monotone(loss: Hamming, penalty: BoundPenalty, m: int) -> Verdict:
    """Each label by itself: one more abstention costs between nothing and an error."""
    own = np.zeros(m) if penalty.label_costs is None else penalty.label_costs
    with np.errstate(invalid="ignore"):
        steps = np.nan_to_num(np.diff(penalty.counts), nan=0.0)
    errors = np.stack([np.broadcast_to(loss.false_positive, m), np.broadcast_to(loss.false_negative, m)])
    for a, step in enumerate(steps):
        for i in range(m):
            for y in (0, 1):
                if step + own[i] < -TIE:
                    return Verdict(False, _step(loss, penalty, i, y, a, right=True))
                if step + own[i] > errors[y, i] + TIE:
                    return Verdict(False, _step(loss, penalty, i, y, a, right=False))
    return Verdict(True)


def _step(loss: Hamming, penalty: BoundPenalty, i: int, y: int, a: int, right: bool) -> Step:
    """Label i between abstained and answered, with a others abstained and the rest right."""
    truth = np.zeros(len(penalty.counts) - 1, int)
    truth[i] = y
    others = [j for j in range(len(truth)) if j != i]
    silent, spoken = truth.copy(), truth.copy()
    silent[others[:a]] = spoken[others[:a]] = ABSTAIN
    silent[i], spoken[i] = ABSTAIN, y if right else 1 - y
    own = 0.0 if penalty.label_costs is None else float(penalty.label_costs[others[:a]].sum())
    price = 0.0 if penalty.label_costs is None else float(penalty.label_costs[i])
    error = float(np.broadcast_to(loss.false_negative if y else loss.false_positive, len(truth))[i])
    when_silent = own + price + float(penalty.counts[a + 1])
    when_spoken = own + float(penalty.counts[a]) + (0.0 if right else error)
    if right:
        return Step(tuple(truth.tolist()), tuple(silent.tolist()), tuple(spoken.tolist()), when_silent, when_spoken)
    return Step(tuple(truth.tolist()), tuple(spoken.tolist()), tuple(silent.tolist()), when_spoken, when_silent)


def _counted_is_monotone(loss: OverlapLoss | SubsetZeroOne, penalty: BoundPenalty, m: int) -> Verdict:
    """Losses that depend only on how many labels play each role: all roles of the answered labels are tried."""
    if m > MOST_LABELS:
        raise InvalidLoss(f"is_monotone tries all counts for {loss!r}: at most {MOST_LABELS} labels, got {m}")
    for hits in range(m + 1):
        rest = np.arange(m - hits + 1)
        rights, extra, missed = np.meshgrid(rest, rest, rest, indexing="ij")

        def total(hits: int, rights: Any, extra: Any, missed: Any) -> NDArray[np.float64]:
            answered = hits + rights + extra + missed
            allowed = np.minimum(answered, m)
            return loss.of_counts(np.full_like(rights, hits), extra, missed, answered) + penalty.counts[m - allowed]

        possible = hits + rights + extra + missed < m
        silent = total(hits, rights, extra, missed)
        for role, (h, r, e, x) in {
            "hit": (1, 0, 0, 0),
            "right": (0, 1, 0, 0),
            "extra": (0, 0, 1, 0),
            "missed": (0, 0, 0, 1),
        }.items():
            spoken = total(hits + h, rights + r, extra + e, missed + x)
            better = role in ("hit", "right")
            with np.errstate(invalid="ignore"):
                worse = spoken > silent + TIE if better else silent > spoken + TIE
            bad = np.flatnonzero((worse & possible).ravel())
            if len(bad):
                at = bad[0]
                counts = hits, int(rights.flat[at]), int(extra.flat[at]), int(missed.flat[at])
                return Verdict(False, _counted_step(counts, role, float(silent.flat[at]), float(spoken.flat[at]), m))
    return Verdict(True)


def _counted_step(counts: tuple[int, int, int, int], role: str, silent: float, spoken: float, m: int) -> Step:
    hits, rights, extra, missed = counts
    truth_and_answer = [(1, 1)] * hits + [(0, 0)] * rights + [(0, 1)] * extra + [(1, 0)] * missed
    label = {"hit": (1, 1), "right": (0, 0), "extra": (0, 1), "missed": (1, 0)}[role]
    n_open = m - 1 - len(truth_and_answer)
    truth = (label[0], *(y for y, _ in truth_and_answer), *[0] * n_open)
    answers = (*(answer for _, answer in truth_and_answer), *[ABSTAIN] * n_open)
    if role in ("hit", "right"):
        return Step(truth, (ABSTAIN, *answers), (label[1], *answers), silent, spoken)
    return Step(truth, (label[1], *answers), (ABSTAIN, *answers), spoken, silent)
