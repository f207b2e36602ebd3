"""The decision rules to choose from, and what becomes of a labelled sample under each of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.kernels.cost_grid import count_along_costs
from abstain._core.losses import DecomposableLoss, Loss
from abstain._core.probabilities import Probabilities
from abstain._core.realized_paths import outcomes
from abstain._utils.types import Floats
from abstain.guarantee._risks import Tally

# Small costs by ratio, for targets that are hard to meet and for probabilities that claim too much; larger ones by
# difference. They are the same for all data: a choice that looked at the sample would have to be paid for.
LADDER = np.concatenate([np.geomspace(1e-6, 0.05, 120, endpoint=False), np.linspace(0.05, 1.0, 181)])
"""Candidate costs as shares of the cost from which on everything is answered."""


def candidate_costs(loss: Loss, n_labels: int, per_label: bool) -> Floats:
    """All candidates, increasing: one row of them, or for a sum over labels one for each label."""
    if per_label and isinstance(loss, DecomposableLoss):
        return np.outer(loss.largest_risk(n_labels), LADDER)
    return loss.highest_cost(n_labels) * LADDER[np.newaxis]


def tally_of_labels(table: Probabilities, truth: NDArray[np.int8], loss: DecomposableLoss, costs: Floats) -> Tally:
    """What each label comes to at each cost of its own: (m, k), summed over the instances."""
    counts = np.zeros((4, table.n_labels, costs.shape[1]), np.int32)
    for block in table.blocks(loss.entries_per_block):
        climbed = np.zeros_like(counts)
        errors = loss.block_error_costs(block)
        count_along_costs(table.load(block), truth[block.rows], errors, costs, True, climbed)
        counts += climbed
    return Tally(*counts)


def tally_of_instances(table: Probabilities, truth: NDArray[np.int8], loss: Loss, costs: Floats) -> Tally:
    """What each instance comes to at each common cost: (n, k)."""
    if isinstance(loss, DecomposableLoss):
        counts = np.zeros((4, table.n_rows, costs.shape[1]), np.int32)
        for block in table.blocks(loss.entries_per_block):
            part = counts[:, block.rows]
            errors = loss.block_error_costs(block)
            count_along_costs(table.load(block), truth[block.rows], errors, costs, False, part)
        return Tally(*counts)
    found = outcomes(table.matrix, truth, loss)
    corners = np.stack([found.corner_at(float(cost)) for cost in costs[0]], axis=1)
    known: Any = (found.true_positives, found.false_positives, found.false_negatives, found.answered)
    return Tally(*(count[corners].astype(np.int32, copy=False) for count in known))
