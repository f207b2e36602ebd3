"""The common base of sums over labels and subset 0/1: the best prediction answers the labels of least risk."""

import numpy as np
from numpy.typing import NDArray

from abstain._core.blocks import Block
from abstain._core.kernels import labelwise
from abstain._core.kernels.bounds import Bounds, as_bounds
from abstain._core.losses.base import BlockProfile, Codes, Loss
from abstain._utils.types import Floats


class LabelwiseLoss(Loss):
    """A loss that answers the m − a labels of least risk, whatever their number; `accumulate` adds up what they cost.

    The order keys of its profile are the risks of each row, increasing.
    """

    profile_has_start = False
    answers_are_nested = True
    is_labelwise = True
    takes_intervals = True

    def profile(self, block: Block, p: Floats | Bounds, out: BlockProfile) -> None:
        labelwise.score(as_bounds(p), self.block_error_costs(block), np.zeros((1, p.shape[1])), out.order_keys)
        out.order_keys.sort(axis=1)
        self.accumulate(out.order_keys, out.values)

    def attain(
        self, block: Block, p: Floats | Bounds, profile: BlockProfile, n_abstained: NDArray[np.intp], codes: Codes
    ) -> None:
        no_prices = np.zeros((1, p.shape[1]))
        costs = self.block_error_costs(block)
        labelwise.answer_most_certain(as_bounds(p), costs, no_prices, profile.order_keys, n_abstained, codes)
