"""What Hamming and subset 0/1 share: the best partial prediction answers the labels that are cheapest to answer."""

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from abstain.kernels import certainty
from abstain.kernels.choice import choose
from abstain.losses.base import BlockProfile, Codes, Floats, Loss
from abstain.penalties import BoundPenalty
from abstain.probabilities import Block


class CertaintyLoss(Loss):
    """Answer the m − a labels with the smallest scores; what they cost together is up to the subclass."""

    has_gap = False

    @abstractmethod
    def costs(self, block: Block) -> tuple[Floats, Floats]:
        """What a false negative and a false positive cost, per label: one row for all, or a row per instance."""

    @abstractmethod
    def accumulate(self, sorted_scores: Floats, base: Floats, values: Floats) -> None:
        """values[i, a] from the m − a smallest scores; base[i] is what abstaining on all labels costs."""

    def profile(self, block: Block, p: Floats, out: BlockProfile) -> None:
        self._profile(block, p, _free(p), out)

    def attain(
        self, block: Block, p: Floats, profile: BlockProfile, n_abstained: NDArray[np.intp], codes: Codes
    ) -> None:
        certainty.answer_most_certain(p, *self.costs(block), _free(p), profile.guide, n_abstained, codes)

    def decide(self, block: Block, p: Floats, penalty: BoundPenalty, codes: Codes, expected: Floats) -> None:
        price = _free(p) if penalty.label_costs is None else block.per_label(penalty.label_costs)
        profile, n_abstained = self.empty_profile(p.shape), np.empty(len(p), np.intp)
        self._profile(block, p, price, profile)
        choose(profile.values, penalty.counts, self.unit, n_abstained, expected)
        certainty.answer_most_certain(p, *self.costs(block), price, profile.guide, n_abstained, codes)

    def _profile(self, block: Block, p: Floats, price: Floats, out: BlockProfile) -> None:
        certainty.score(p, *self.costs(block), price, out.guide)
        out.guide.sort(axis=1)
        self.accumulate(out.guide, np.broadcast_to(price.sum(axis=1), len(p)), out.values)


def _free(p: Floats) -> Floats:
    return np.zeros((1, p.shape[1]))
