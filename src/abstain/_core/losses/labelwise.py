"""What sums over labels and subset 0/1 share: the best prediction answers the labels that are cheapest to answer."""

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from abstain._core.blocks import Block
from abstain._core.kernels import labelwise
from abstain._core.losses.base import BlockProfile, Codes, Floats, Loss


class LabelwiseLoss(Loss):
    """Answer the m − a labels with the smallest scores; what they cost together is up to the subclass."""

    has_gap = False
    answers_are_nested = True

    @abstractmethod
    def costs(self, block: Block) -> tuple[Floats, Floats]:
        """What a false negative and a false positive cost, per label: one row for all, or a row per instance."""

    @abstractmethod
    def accumulate(self, sorted_scores: Floats, values: Floats) -> None:
        """values[i, a] from the m − a smallest scores."""

    def profile(self, block: Block, p: Floats, out: BlockProfile) -> None:
        labelwise.score(p, *self.costs(block), free(p), out.order_keys)
        out.order_keys.sort(axis=1)
        self.accumulate(out.order_keys, out.values)

    def attain(
        self, block: Block, p: Floats, profile: BlockProfile, n_abstained: NDArray[np.intp], codes: Codes
    ) -> None:
        labelwise.answer_most_certain(p, *self.costs(block), free(p), profile.order_keys, n_abstained, codes)


def free(p: Floats) -> Floats:
    """No label has a price of its own."""
    return np.zeros((1, p.shape[1]))
