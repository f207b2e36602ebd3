"""Rank loss: partial rankings instead of label sets."""

import numpy as np
from numpy.typing import NDArray

from abstain._core.blocks import Block
from abstain._core.joint import SearchLimits
from abstain._core.kernels import ranking, ranking_of_joint
from abstain._core.kernels.bounds import Bounds, as_bounds
from abstain._core.kernels.choice import choose
from abstain._core.kernels.codes import ABSTAIN
from abstain._core.kernels.components import Components, RowPenalties
from abstain._core.kernels.two_ends import FIRST
from abstain._core.losses.base import BlockAnswers, BlockProfile, Codes, Counts, start_at
from abstain._core.losses.two_ends import Ends, TwoEndedLoss
from abstain._core.penalties import BoundPenalty
from abstain._utils.types import Floats


class Rank(TwoEndedLoss):
    """ℓ = the number of pairs of ranked labels in the wrong order, an irrelevant one before a relevant one.

    The labels are ranked by decreasing probability, some in the middle are abstained, and
    E[ℓ] = Σ p_j · (1 − p_i) over the ranked pairs, i before j. One label alone is no ranking: with m > 1 labels
    either none or at least two are ranked.

    Examples
    --------
    The paper's worked example: with c = 0.03 the first and the last label are ranked.

    >>> import abstain
    >>> abstain.decide([0.9, 0.8, 0.7, 0.3], abstain.Rank(), penalty=0.03).positions
    array([[ 0, -1, -1,  1]], dtype=int32)
    """

    name = "rank"
    title = "Rank"
    axis_title = "rank loss"
    description = "The answer is an order: what is relevant should come first."
    unit_description = "a pair of labels in the wrong order costs 1"
    text_forms = ("rank",)
    gives_rankings = True
    takes_sparse = True
    takes_joint = True
    joint_profile_is_hull = False
    tie_scale = 0.0
    order_key_type = np.int32

    def __repr__(self) -> str:
        return "Rank()"

    def profile(self, block: Block, p: Floats | Bounds, out: BlockProfile) -> None:
        if isinstance(p, Bounds):
            self.profile_bounds(block, p, out)
            return
        assert out.start is not None
        out.order_keys[:] = np.argsort(-p, axis=1)
        ranking.order_equals_by_label(p, out.order_keys)
        self.profile_ends(as_bounds(np.take_along_axis(p, out.order_keys, axis=1)), out.values, out.start)

    def attain(
        self, block: Block, p: Floats | Bounds, profile: BlockProfile, n_abstained: NDArray[np.intp], codes: Codes
    ) -> None:
        if isinstance(p, Bounds):
            self.attain_bounds(block, p, profile, n_abstained, codes)
        else:
            ranking.positions_around_gap(profile.order_keys, start_at(profile, n_abstained), n_abstained, codes)

    def decide(self, block: Block, p: Floats | Bounds, penalty: BoundPenalty, out: BlockAnswers) -> None:
        if isinstance(p, Bounds):
            self.decide_bounds(block, p, penalty, out)
        else:
            super().decide(block, p, penalty, out)

    def decide_and_count(
        self, block: Block, p: Floats | Bounds, penalty: BoundPenalty, other: BoundPenalty, out: BlockAnswers
    ) -> NDArray[np.intp]:
        if isinstance(p, Bounds):
            return self.decide_and_count_bounds(block, p, penalty, other, out)
        return super().decide_and_count(block, p, penalty, other, out)

    def search_joint(
        self, joint: Components, penalties: RowPenalties, limits: SearchLimits, codes: Codes, gap: Floats
    ) -> None:
        ranking_of_joint.decide_ranking(
            joint,
            joint.marginals(),
            penalties.counts,
            penalties.tie,
            penalties.label_costs,
            limits.node_limit,
            codes,
            gap,
        )

    def profile_joint(self, joint: Components, limits: SearchLimits, out: BlockProfile) -> None:
        ranking_of_joint.profile_of_joint(joint, joint.marginals(), limits.node_limit, out.values, out.answers, out.gap)

    def best_ends(self, ranked: Bounds, penalty: BoundPenalty) -> Ends:
        profile, n = self.empty_profile(ranked.shape), ranked.shape[0]
        assert profile.start is not None
        self.profile_ends(ranked, profile.values, profile.start)
        n_abstained, expected = np.empty(n, np.intp), np.empty(n)
        counted, tie = penalty.counted(self.tie_scale)
        choose(profile.values, penalty.counts, counted, tie, self.tie_scale, n_abstained, expected)
        return Ends(start_at(profile, n_abstained), n_abstained, profile.values[np.arange(n), n_abstained])

    def profile_ends(self, ranked: Bounds, values: Floats, start: NDArray[np.int32]) -> None:
        ranking.profile_of_ranking(ranked, values, start)

    def answer_sides(self, bounds: Bounds, sides: Codes, codes: Codes) -> None:
        # Each side by its own end, then by the other one, then by label; the abstained labels come last.
        is_first, abstained = sides == FIRST, sides == ABSTAIN
        own = np.where(is_first, bounds.low, bounds.high)
        other = np.where(is_first, bounds.high, bounds.low)
        order = np.lexsort((-other, -own, ~is_first, abstained), axis=1)
        np.put_along_axis(codes, order, np.arange(sides.shape[1], dtype=codes.dtype)[np.newaxis], axis=1)
        codes[abstained] = ABSTAIN

    def highest_cost(self, n_labels: int) -> float:
        return (n_labels - 1) / 4  # a pair is in the wrong order with a chance of p_j · (1 − p_i) ≤ ¼, as p_j ≤ p_i

    def with_answer(self, codes: Codes, label: int) -> Codes:
        return _with_label_at_each_place(codes, label)

    def realized(self, block: Block, truth: NDArray[np.bool_], codes: Codes) -> Floats:
        # There are q labels before position q; before t relevant labels there are t(t − 1)/2 relevant ones in all.
        relevant = truth & (codes >= 0)
        count = relevant.sum(axis=1)
        misplaced: Floats = np.where(relevant, codes, 0).sum(axis=1) - count * (count - 1) / 2
        return misplaced

    def expected(self, block: Block, p: Floats | Bounds, codes: Codes) -> Floats:
        order = np.argsort(codes, axis=1)
        position = np.take_along_axis(codes, order, axis=1)
        ranked = position >= 0
        # Labels of probability 0 that a packed row does not show leave gaps between the positions.
        not_shown = position - np.cumsum(ranked, axis=1) + 1
        low, high = (np.take_along_axis(end, order, axis=1) for end in as_bounds(p))
        chance = low
        if isinstance(p, Bounds):
            # E[ℓ] grows with the probability of a label iff more irrelevant labels are expected before it than relevant
            # ones after it. The worst case has the first labels at low and the others at high.
            relevant_after = _sum_before(np.where(ranked, high, 0.0)[:, ::-1])[:, ::-1]
            irrelevant_before = not_shown + _sum_before(np.where(ranked, 1.0 - low, 0.0))
            chance = np.where(irrelevant_before <= relevant_after, low, high)
        irrelevant_before = not_shown + _sum_before(np.where(ranked, 1.0 - chance, 0.0))
        risk: Floats = np.where(ranked, chance * irrelevant_before, 0.0).sum(axis=1)
        return risk

    def savings(self, block: Block, p: Floats | Bounds, codes: Codes, rows: Counts, columns: Counts) -> Floats:
        saved = np.empty(len(rows))
        if isinstance(p, Bounds):
            before = self.expected(block, p, codes)
            for k, (row, column) in enumerate(zip(rows, columns, strict=True)):
                places = _with_label_at_each_place(codes[row], column)
                worst = self.expected(block, p.take(np.full(len(places), row)), places)
                saved[k] = worst.min() - before[row]
        else:
            ranking.savings_of_ranking(p, codes, rows, columns, saved)
        return saved


def _sum_before(values: Floats) -> Floats:
    """Return the sum of the values before each one.

    Shifted by one, so that a value is not before itself: subtracting it would lose small differences.
    """
    sums: Floats = np.cumsum(np.pad(values, ((0, 0), (1, 0)))[:, :-1], axis=1)
    return sums


def _with_label_at_each_place(positions: Codes, label: int) -> Codes:
    """Return a ranking with a further label at every place, a row each."""
    places = np.append(0, np.sort(positions[positions >= 0]) + 1)
    moved = positions + (positions >= places[:, np.newaxis])
    moved[:, label] = places
    return moved
