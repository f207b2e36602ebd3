"""Rank loss: partial rankings instead of label sets."""

import numpy as np
from numpy.typing import NDArray

from abstain._core.blocks import Block
from abstain._core.kernels import ranking
from abstain._core.losses.base import BlockProfile, Codes, Counts, Loss, start_at
from abstain._utils.types import Floats


class Rank(Loss):
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
    tie_scale = 0.0
    order_key_type = np.int32

    def __repr__(self) -> str:
        return "Rank()"

    def profile(self, block: Block, p: Floats, out: BlockProfile) -> None:
        out.order_keys[:] = np.argsort(-p, axis=1)
        ranking.order_equals_by_label(p, out.order_keys)
        ranking.profile_of_ranking(p, out.order_keys, out.values, out.start)

    def attain(
        self, block: Block, p: Floats, profile: BlockProfile, n_abstained: NDArray[np.intp], codes: Codes
    ) -> None:
        ranking.positions_around_gap(profile.order_keys, start_at(profile, n_abstained), n_abstained, codes)

    def highest_cost(self, n_labels: int) -> float:
        return (n_labels - 1) / 4  # a pair is in the wrong order with a chance of p_j · (1 − p_i) ≤ ¼, as p_j ≤ p_i

    def realized(self, block: Block, truth: NDArray[np.bool_], codes: Codes) -> Floats:
        # There are q labels before position q; before t relevant labels there are t(t − 1)/2 relevant ones in all.
        relevant = truth & (codes >= 0)
        count = relevant.sum(axis=1)
        misplaced: Floats = np.where(relevant, codes, 0).sum(axis=1) - count * (count - 1) / 2
        return misplaced

    def expected(self, block: Block, p: Floats, codes: Codes) -> Floats:
        order = np.argsort(codes, axis=1)
        position = np.take_along_axis(codes, order, axis=1)
        ranked = position >= 0
        chance = np.take_along_axis(p, order, axis=1)
        irrelevant = np.where(ranked, 1.0 - chance, 0.0)
        # Labels of probability 0 that a packed row does not show leave gaps between the positions.
        not_shown = position - np.cumsum(ranked, axis=1) + 1
        # Shifted by one, so that a label is not before itself: subtracting it would lose small differences.
        irrelevant_before = not_shown + np.cumsum(np.pad(irrelevant, ((0, 0), (1, 0)))[:, :-1], axis=1)
        risk: Floats = np.where(ranked, chance * irrelevant_before, 0.0).sum(axis=1)
        return risk

    def savings(self, block: Block, p: Floats, codes: Codes, rows: Counts, columns: Counts) -> Floats:
        saved = np.empty(len(rows))
        ranking.savings_of_ranking(p, codes, rows, columns, saved)
        return saved
