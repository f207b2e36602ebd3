"""Joint distributions of instances that the models which they come from have not seen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from abstain._core.joint import Joint

MAX_ROWS = 1000
"""How many held-out instances are kept: enough to tell differences that matter, and few enough to decide quickly."""


@dataclass(frozen=True)
class HeldOut:
    """Some instances held out in one fold.

    Attributes
    ----------
    rows : int array of shape (n_instances,)
        Their numbers in the training data.
    joint : Joint
        Their joint distributions, whose marginals are the (calibrated) probabilities of the labels.
    """

    rows: NDArray[np.intp]
    joint: Joint


def some_of(n: int, number: int, n_folds: int) -> NDArray[np.intp]:
    """Return which of the n instances that are held out in a fold, given by its number, are kept; in order."""
    n_kept = min(n, max(1, MAX_ROWS // n_folds))
    return np.sort(np.random.default_rng([n, number]).permutation(n)[:n_kept])


def n_instances(held_out: Sequence[HeldOut]) -> int:
    """Return how many instances there are in all folds."""
    return sum(len(part.rows) for part in held_out)
