"""Subset 0/1 loss: 1 as soon as one answer of an instance is wrong."""

import numpy as np
from numpy.typing import NDArray

from abstain._core.blocks import Block
from abstain._core.joint import SearchLimits
from abstain._core.kernels import labelwise, subset_of_joint
from abstain._core.kernels.bounds import Bounds, as_bounds
from abstain._core.kernels.components import Components, RowPenalties
from abstain._core.kernels.labelwise import ErrorCosts
from abstain._core.losses.base import BlockProfile, Codes, Counts
from abstain._core.losses.labelwise import LabelwiseLoss
from abstain._utils.types import Floats


class SubsetZeroOne(LabelwiseLoss):
    """ℓ = 1 if any answered label is wrong, else 0.

    The risk of answering D is 1 − Π_{i∈D} max(p_i, 1 − p_i), least for the most certain labels.

    Examples
    --------
    >>> import abstain
    >>> abstain.decide([0.95, 0.6, 0.2], abstain.SubsetZeroOne(), penalty=0.25).labels
    array([[ 1, -1,  0]], dtype=int8)
    """

    name = "subset"
    title = "Subset 0/1"
    axis_title = "subset 0/1 loss"
    description = "One wrong answer spoils the whole instance."
    unit_description = "an instance with any wrong answer costs 1"
    text_forms = ("subset",)
    takes_sparse = True
    takes_joint = True

    def __repr__(self) -> str:
        return "SubsetZeroOne()"

    def block_error_costs(self, block: Block) -> ErrorCosts:
        ones = np.ones((1, block.shape[1]))
        return ErrorCosts(ones, ones)

    def accumulate(self, sorted_costs: Floats, values: Floats) -> None:
        labelwise.profile_of_product(sorted_costs, values)

    def search_joint(
        self, joint: Components, penalties: RowPenalties, limits: SearchLimits, codes: Codes, gap: Floats
    ) -> None:
        subset_of_joint.decide_subset(joint, penalties, limits.node_limit, codes, gap)

    def profile_joint(self, joint: Components, limits: SearchLimits, out: BlockProfile) -> None:
        assert out.answers is not None
        assert out.gap is not None
        subset_of_joint.hull_of_subset(joint, limits.node_limit, out.values, out.answers, out.gap)

    def realized(self, block: Block, truth: NDArray[np.bool_], codes: Codes) -> Floats:
        return np.where(truth, codes == 0, codes == 1).any(axis=1).astype(np.float64)

    def highest_cost(self, n_labels: int) -> float:
        return 0.5  # one more answer is wrong with a chance of ½ at most

    def of_counts(
        self, true_positives: Counts, false_positives: Counts, false_negatives: Counts, answered: Counts
    ) -> Floats:
        return (false_positives + false_negatives > 0).astype(np.float64)

    def expected(self, block: Block, p: Floats | Bounds, codes: Codes) -> Floats:
        return 1.0 - _probability_all_right(p, codes)

    def savings(self, block: Block, p: Floats | Bounds, codes: Codes, rows: Counts, columns: Counts) -> Floats:
        low, high = as_bounds(p)
        return _probability_all_right(p, codes)[rows] * np.minimum(high[rows, columns], 1.0 - low[rows, columns])


def _probability_all_right(p: Floats | Bounds, codes: Codes) -> Floats:
    """Return the probability that no answer of a row is wrong."""
    low, high = as_bounds(p)
    right: Floats = np.where(codes == 1, low, np.where(codes == 0, 1.0 - high, 1.0)).prod(axis=1)
    return right
