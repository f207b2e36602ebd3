"""F-measure and Jaccard index: how much the labels answered 1 overlap with the relevant ones."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from abstain._core.blocks import Block
from abstain._core.joint import SearchLimits
from abstain._core.kernels import overlap, overlap_of_joint
from abstain._core.kernels.bounds import Bounds, as_bounds
from abstain._core.kernels.components import Components, RowPenalties
from abstain._core.kernels.overlap_of_joint import OverlapLimits
from abstain._core.kernels.quadrature import longest_reach, reciprocal_rule
from abstain._core.kernels.sample_overlap import OverlapMeasure
from abstain._core.losses.base import BlockAnswers, BlockProfile, Codes, Counts, read_parameter, start_at
from abstain._core.losses.two_ends import Ends, TwoEndedLoss, sorted_decreasing
from abstain._core.penalties import BoundPenalty
from abstain._utils.errors import InvalidLoss
from abstain._utils.numbers import read_number
from abstain._utils.types import Floats

LAGRANGIAN_STEPS = 100
"""Subgradient steps of the lower bound for samples."""

LABELS_OF_FULL_LIMIT = 20
"""The node limit is for so many labels; a node of more takes longer."""

UNCERTIFIED_SHARE = 20
"""Of so many nodes one is visited if nothing is to be proved."""


class OverlapLoss(TwoEndedLoss):
    """1 minus the measure of the answered labels: 1 on the most likely ones, 0 on the least likely."""

    entries_per_block = 1 << 14
    takes_sparse = True
    takes_joint = True

    def __init__(self, zero_division: float = 1.0) -> None:
        self.zero_division = read_parameter(zero_division, "zero_division", self, "0 or 1", lambda x: x in (0, 1))
        self.zeros_cost_nothing = self.zero_division == 1

    @abstractmethod
    def rule(self, n_labels: int) -> overlap.OverlapRule:
        """Return how one more label changes the expected measure, for blocks of at most n_labels labels."""

    @abstractmethod
    def measure(self, n_labels: int) -> OverlapMeasure:
        """Return the measure as searches for labels that depend on each other take it."""

    @abstractmethod
    def size(self, true_positives: Counts, predicted: Counts, relevant: Counts) -> Floats | Counts:
        """Return the number by which the true positives are divided."""

    def profile(self, block: Block, p: Floats | Bounds, out: BlockProfile) -> None:
        if isinstance(p, Bounds):
            self.profile_bounds(block, p, out)
            return
        assert out.start is not None
        ranked = sorted_decreasing(as_bounds(p))
        out.order_keys[:] = ranked.low
        self.profile_ends(ranked, out.values, out.start)

    def attain(
        self, block: Block, p: Floats | Bounds, profile: BlockProfile, n_abstained: NDArray[np.intp], codes: Codes
    ) -> None:
        if isinstance(p, Bounds):
            self.attain_bounds(block, p, profile, n_abstained, codes)
        else:
            overlap.answer_around_gap(p, profile.order_keys, start_at(profile, n_abstained), n_abstained, codes)

    def decide(self, block: Block, p: Floats | Bounds, penalty: BoundPenalty, out: BlockAnswers) -> None:
        if isinstance(p, Bounds):
            self.decide_bounds(block, p, penalty, out)
        else:
            self._decide_all(p, [penalty], out)

    def decide_and_count(
        self, block: Block, p: Floats | Bounds, penalty: BoundPenalty, other: BoundPenalty, out: BlockAnswers
    ) -> NDArray[np.intp]:
        if isinstance(p, Bounds):
            return self.decide_and_count_bounds(block, p, penalty, other, out)
        return self._decide_all(p, [penalty, other], out)

    def _decide_all(self, p: Floats, penalties: Sequence[BoundPenalty], out: BlockAnswers) -> NDArray[np.intp]:
        """Write the answers for the first penalty, and return the numbers of abstentions for the last one."""
        ranked = sorted_decreasing(as_bounds(p))
        start, n_abstained, losses = self._best_ends(ranked, penalties)
        out.expected[:] = losses[0] + penalties[0].counts[n_abstained[0]]
        overlap.answer_around_gap(p, ranked.low, start[0], n_abstained[0], out.codes)
        return n_abstained[-1]

    def best_ends(self, ranked: Bounds, penalty: BoundPenalty) -> Ends:
        return Ends(*(found[0] for found in self._best_ends(ranked, [penalty])))

    def _best_ends(self, ranked: Bounds, penalties: Sequence[BoundPenalty]) -> Ends:
        """Return the best ends for each penalty: arrays of shape (n_penalties, n)."""
        shape = len(penalties), ranked.shape[0]
        start, n_abstained, losses = np.empty(shape, np.int32), np.empty(shape, np.intp), np.empty(shape)
        counted, ties = zip(*(penalty.counted(self.tie_scale) for penalty in penalties), strict=True)
        concave = np.array([penalty.is_concave for penalty in penalties])
        rule = self.rule(ranked.shape[1])
        overlap.decide_overlap(
            ranked, np.array(counted), np.array(ties), concave, self.zero_division, rule, start, n_abstained, losses
        )
        return Ends(start, n_abstained, losses)

    def profile_ends(self, ranked: Bounds, values: Floats, start: NDArray[np.int32]) -> None:
        overlap.profile_of_overlap(ranked, self.zero_division, self.rule(ranked.shape[1]), values, start)

    def answer_sides(self, bounds: Bounds, sides: Codes, codes: Codes) -> None:
        codes[:] = sides

    def search_joint(
        self, joint: Components, penalties: RowPenalties, limits: SearchLimits, codes: Codes, gap: Floats
    ) -> None:
        measure = self.measure(joint.shape[1])
        overlap_of_joint.decide_overlap_of_joint(
            joint, penalties, measure, _overlap_limits(limits, joint.shape[1]), codes, gap
        )

    def profile_joint(self, joint: Components, limits: SearchLimits, out: BlockProfile) -> None:
        assert out.answers is not None
        assert out.gap is not None
        measure = self.measure(joint.shape[1])
        overlap_of_joint.hull_of_overlap(
            joint, measure, _overlap_limits(limits, joint.shape[1]), out.values, out.answers, out.gap
        )
        out.gap[np.isinf(out.values)] = 0.0

    def realized(self, block: Block, truth: NDArray[np.bool_], codes: Codes) -> Floats:
        predicted, answered = codes == 1, codes >= 0
        true_positives, false_positives = (truth & predicted).sum(axis=1), (~truth & predicted).sum(axis=1)
        false_negatives = (truth & (codes == 0)).sum(axis=1)
        return self.of_counts(true_positives, false_positives, false_negatives, answered.sum(axis=1))

    def highest_cost(self, n_labels: int) -> float:
        return 1.0

    def of_counts(
        self, true_positives: Counts, false_positives: Counts, false_negatives: Counts, answered: Counts
    ) -> Floats:
        size = self.size(true_positives, true_positives + false_positives, true_positives + false_negatives)
        value = true_positives / np.where(true_positives > 0, size, 1.0)
        value = np.where(true_positives + false_positives + false_negatives > 0, value, self.zero_division)
        return np.where(answered > 0, 1.0 - value, 0.0)

    def expected(self, block: Block, p: Floats | Bounds, codes: Codes) -> Floats:
        value = np.empty(p.shape[0])
        overlap.expected_overlap(as_bounds(p), codes, self.zero_division, self.rule(p.shape[1]), value)
        return 1.0 - value

    def savings(self, block: Block, p: Floats | Bounds, codes: Codes, rows: Counts, columns: Counts) -> Floats:
        saved = np.empty(len(rows))
        overlap.savings_of_overlap(as_bounds(p), codes, rows, columns, self.zero_division, self.rule(p.shape[1]), saved)
        return saved


class FMeasure(OverlapLoss):
    """ℓ = 1 − F_β,  F_β = (1 + β²) · TP / (predicted + β² · relevant), counted among the answered labels.

    TP (true positives) are the labels answered 1 that are relevant. β = 1 is the harmonic mean of precision and recall;
    a large β is recall, a small one precision.

    Parameters
    ----------
    beta : float > 0, default=1.0
        How many times as important recall is as precision.
    zero_division : {0, 1}, default=1.0
        The value of F where nothing is predicted and nothing is relevant (0/0). Without any answer, the loss is 0.

    Examples
    --------
    >>> import abstain
    >>> abstain.decide([0.95, 0.9, 0.5, 0.1, 0.02], abstain.FMeasure(), penalty=0.05).labels
    array([[ 1,  1, -1,  0,  0]], dtype=int8)
    """

    name = "f1"
    description = "What counts is how well the labels answered yes agree with the relevant ones."
    unit_description = "an instance with an F1 of 0 costs 1"
    text_forms = ("f1", "fbeta:2")

    def __init__(self, beta: float = 1.0, zero_division: float = 1.0) -> None:
        super().__init__(zero_division)
        self.beta = read_parameter(beta, "beta", self, "a finite number > 0", lambda x: 0 < x < np.inf)

    @classmethod
    def from_text(cls, text: str) -> "FMeasure":
        name, _, beta = text.partition(":")
        if name == "fbeta":
            return cls(beta=read_number(beta))
        if text != cls.name:
            raise InvalidLoss(f"{text!r} is neither 'f1' nor 'fbeta:' with a number")
        return cls()

    @property
    def title(self) -> str:
        return f"F{self.beta:g}"

    @property
    def axis_title(self) -> str:
        return f"1 − {self.title}"

    def __repr__(self) -> str:
        return f"FMeasure(beta={self.beta:g}, zero_division={self.zero_division:g})"

    def rule(self, n_labels: int) -> overlap.OverlapRule:
        return _f_rule(self.beta, n_labels)

    def measure(self, n_labels: int) -> OverlapMeasure:
        precision_share, recall_share = _shares(self.beta)
        return OverlapMeasure(precision_share, recall_share, recall_share, self.zero_division, self.rule(n_labels))

    def size(self, true_positives: Counts, predicted: Counts, relevant: Counts) -> Floats | Counts:
        precision_share, recall_share = _shares(self.beta)
        return precision_share * predicted + recall_share * relevant


class Jaccard(OverlapLoss):
    """ℓ = 1 − J,  J = TP / (predicted or relevant), counted among the answered labels; TP are the true positives.

    Parameters
    ----------
    zero_division : {0, 1}, default=1.0
        The value of J where nothing is predicted and nothing is relevant (0/0). Without any answer, the loss is 0.

    Examples
    --------
    >>> import abstain
    >>> abstain.decide([0.9, 0.6, 0.4, 0.1], abstain.Jaccard(), penalty=0.1).labels
    array([[ 1, -1, -1,  0]], dtype=int8)
    """

    name = "jaccard"
    title = "Jaccard"
    axis_title = "1 − Jaccard"
    description = "What counts is the overlap of the labels answered yes with the relevant ones."
    unit_description = "an instance with a Jaccard index of 0 costs 1"
    text_forms = ("jaccard",)

    def __repr__(self) -> str:
        return f"Jaccard(zero_division={self.zero_division:g})"

    def rule(self, n_labels: int) -> overlap.OverlapRule:
        return _jaccard_rule(n_labels)

    def measure(self, n_labels: int) -> OverlapMeasure:
        return OverlapMeasure(1.0, 1.0, 0.0, self.zero_division, self.rule(n_labels))

    def size(self, true_positives: Counts, predicted: Counts, relevant: Counts) -> Floats | Counts:
        return predicted + relevant - true_positives


def _overlap_limits(limits: SearchLimits, n_labels: int) -> OverlapLimits:
    nodes = limits.node_limit if limits.certify else limits.node_limit // UNCERTIFIED_SHARE
    nodes = min(nodes, nodes * LABELS_OF_FULL_LIMIT // n_labels)
    return OverlapLimits(max(1, nodes), LAGRANGIAN_STEPS, limits.certify)


def _shares(beta: float) -> tuple[float, float]:
    """1 / (1 + β²) and β² / (1 + β²): the weights of precision and recall, exact for any β."""
    return 1.0 / (1.0 + beta * beta), 1.0 / (1.0 + (1.0 / beta) * (1.0 / beta))


@cache
def _f_rule(beta: float, n_labels: int) -> overlap.OverlapRule:
    """F = TP / x with x = (predicted + β²·relevant) / (1 + β²), between 1 and n_labels wherever TP > 0."""
    exponents, weights = _rule_for(n_labels)
    precision_share, recall_share = _shares(beta)
    fade = -np.expm1(-exponents * recall_share)
    return overlap.OverlapRule(weights, np.exp(-exponents * precision_share), np.exp(-exponents), fade, fade)


@cache
def _jaccard_rule(n_labels: int) -> overlap.OverlapRule:
    """J = TP / x with x = predicted + relevant among those answered 0, between 1 and n_labels."""
    exponents, weights = _rule_for(n_labels)
    step = np.exp(-exponents)
    return overlap.OverlapRule(weights, step, step, np.zeros_like(step), -np.expm1(-exponents))


def _rule_for(n_labels: int) -> tuple[Floats, Floats]:
    if n_labels > longest_reach():
        raise InvalidLoss(f"F-measure and Jaccard: {n_labels} labels in a row; at most {longest_reach()} are supported")
    return reciprocal_rule(n_labels)
