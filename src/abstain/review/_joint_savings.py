"""What reviews save where labels depend on each other: the answer to one label says something about the others, too."""

import numpy as np
from numpy.typing import NDArray

from abstain._core.blocks import Block
from abstain._core.joint import Joint, SearchLimits, merge_components
from abstain._core.kernels.components import Components
from abstain._core.losses import Loss
from abstain._core.losses.base import BlockAnswers, Codes
from abstain._core.penalties import Linear
from abstain._core.prediction import ABSTAIN
from abstain._utils.types import Floats


def savings_of_joint(joint: Joint, loss: Loss, codes: Codes) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return the rows and labels of all abstentions, and what a review of each saves.

    That is how much the best answer to the label alone would add to E[ℓ], as without dependence, plus what knowing the
    label saves on the others, C(joint) − Σ_v P(y_j = v) · C(joint given y_j = v), where C is the least expected loss of
    answering all labels but j, by the machine alone.

    Parameters
    ----------
    joint : Joint
    loss : Loss
    codes : int array of shape (n_instances, n_labels)
        The answers.
    """
    row, label = (part.astype(np.int64) for part in np.nonzero(codes == ABSTAIN))
    saved = np.zeros(len(row))

    def compute(block: Block) -> None:
        components = joint.load(block)
        before = loss.expected_of_joint(components, codes[block.rows])
        for k in range(*np.searchsorted(row, [block.rows.start, block.rows.stop])):
            i = int(row[k]) - block.rows.start
            own = components.take(i)
            answered = loss.with_answer(codes[row[k]], int(label[k]))
            least = min(loss.expected_of_joint(own, answers[np.newaxis])[0] for answers in answered)
            saved[k] = least - before[i] + _information(own, int(label[k]), loss, joint.limits)

    joint.for_each_block(compute)
    return row, label, saved


def _information(components: Components, label: int, loss: Loss, limits: SearchLimits) -> float:
    """Return what knowing a label of a single row saves on the others."""
    values, weights = components.values[components.index], components.weights
    relevant = weights * values[:, label]
    chance = relevant.sum()
    if values.shape[1] == 1 or not 0.0 < chance < 1.0:
        return 0.0
    cases = np.stack([weights, relevant / chance, (weights - relevant) / (1.0 - chance)])
    others = np.delete(np.arange(values.shape[1]), label)
    rest = merge_components(cases, np.tile(values[:, others], (3, 1)))
    n, m = rest.shape
    answers = BlockAnswers(np.empty((n, m), loss.prediction_type.code_type), np.empty(n), np.zeros(n))
    block = Block(slice(0, n), (n, m), answers.codes)
    loss.restricted(others, m + 1).decide_joint(block, rest, Linear(np.inf).bind(m), limits, answers)
    before, given_1, given_0 = answers.expected
    return max(0.0, float(before - chance * given_1 - (1.0 - chance) * given_0))
