"""What decisions are made from: probabilities of labels, intervals of them, or joint distributions."""

from typing import Any, TypeAlias

from abstain._core.intervals import Intervals
from abstain._core.joint import Joint
from abstain._core.probabilities import Probabilities

Belief: TypeAlias = Probabilities | Intervals | Joint
"""Each is read block by block in the same way; what a loss gets to see of a block differs."""


def read_belief(table: Any) -> Belief:
    """Return intervals and joint distributions as they are, and any other table as probabilities."""
    return table if isinstance(table, Intervals | Joint) else Probabilities(table)


def of_single_labels(belief: Belief) -> Probabilities | Intervals:
    """Return what is known of each label by itself, of a joint its marginals: all that sums over labels need."""
    return belief.marginal_probabilities() if isinstance(belief, Joint) else belief
