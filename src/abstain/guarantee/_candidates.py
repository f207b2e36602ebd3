"""The candidate costs, and what a labelled sample shows at each of them."""

import numpy as np
from numpy.typing import NDArray

from abstain._core.blocks import Block
from abstain._core.kernels.cost_grid import count_along_costs
from abstain._core.losses import Loss
from abstain._core.probabilities import Probabilities
from abstain._core.realized_paths import outcomes
from abstain._utils.types import Floats
from abstain.guarantee._risks import AnswerCounts

# Small costs by ratio, for targets that are hard to meet and for probabilities that claim too much; larger ones by
# difference. They are the same for all data: a choice that looked at the sample would have to be paid for.
COST_SHARES = np.concatenate([np.geomspace(1e-6, 0.05, 120, endpoint=False), np.linspace(0.05, 1.0, 181)])
"""Candidate costs as shares of the cost from which on everything is answered."""


def candidate_costs(loss: Loss, n_labels: int, *, per_label: bool) -> Floats:
    """Return all candidates in increasing order: one row of them, or for a sum over labels one for each label."""
    if per_label:
        return np.outer(loss.largest_risk(n_labels), COST_SHARES)
    return loss.highest_cost(n_labels) * COST_SHARES[np.newaxis]


def count_by_label(table: Probabilities, truth: NDArray[np.int8], loss: Loss, costs: Floats) -> AnswerCounts:
    """Return counts of shape (n_labels, n_candidates) over all instances; each label has candidates of its own."""
    total, counter = np.zeros((4, table.n_labels, costs.shape[1]), np.int32), _Counter(table, truth, loss, costs)
    for block in table.blocks(loss.entries_per_block):
        counts = np.zeros_like(total)
        counter.count(block, counts, by_label=True)
        total += counts
    return AnswerCounts(*total)


def count_by_instance(table: Probabilities, truth: NDArray[np.int8], loss: Loss, costs: Floats) -> AnswerCounts:
    """Return counts of shape (n_instances, n_candidates) at each cost that is common to all labels."""
    if not loss.is_decomposable:
        found = outcomes(table.matrix, truth, loss)
        corners = np.stack([found.corner_at(float(cost)) for cost in costs[0]], axis=1)
        known = found.true_positives, found.false_positives, found.false_negatives, found.answered
        return AnswerCounts(*(np.asarray(count)[corners].astype(np.int32, copy=False) for count in known))
    total, counter = np.zeros((4, table.n_rows, costs.shape[1]), np.int32), _Counter(table, truth, loss, costs)
    for block in table.blocks(loss.entries_per_block):
        counter.count(block, total[:, block.rows], by_label=False)
    return AnswerCounts(*total)


class _Counter:
    """Counts the answers of a sum over labels at all candidates at once."""

    def __init__(self, table: Probabilities, truth: NDArray[np.int8], loss: Loss, costs: Floats) -> None:
        self.table, self.truth, self.costs = table, truth, costs
        self.loss = loss

    def count(self, block: Block, counts: NDArray[np.int32], *, by_label: bool) -> None:
        """Add the four counts of a block, by label or by instance."""
        errors = self.loss.block_error_costs(block)
        count_along_costs(self.table.load(block), self.truth[block.rows], errors, self.costs, by_label, counts)
