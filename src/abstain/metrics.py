"""Scores that understand abstention: ``*_loss`` and error rates, lower is better; ``*_capture_rate``, higher is better.

An abstained label is neither right nor wrong: it costs what the penalty says, and it leaves the error rates. Where
everything is abstained there is nothing to be wrong about, and the rates are nan, not 0 or 1.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain.alignment import Partial, aligned_blocks, differ, read_truth, require_same_table
from abstain.errors import InvalidLabels, InvalidLoss
from abstain.losses import Loss, LossLike, as_loss
from abstain.matrix import Matrix, dense
from abstain.penalties import PenaltyLike, as_penalty
from abstain.prediction import PartialPrediction, PartialRanking
from abstain.probabilities import Block, Probabilities

__all__ = [
    "abstention_rate",
    "answered_error_rate",
    "error_capture_rate",
    "expected_generalized_loss",
    "generalized_loss",
]


def generalized_loss(
    y_true: Any, prediction: Any, loss: LossLike, penalty: PenaltyLike, *, average: bool = True
) -> float | NDArray[np.float64]:
    """ℓ(y_D, ŷ_D) + f(|A|): what the answers cost when the truth is known, plus what the abstentions cost.

    Parameters
    ----------
    y_true : n × m table of 0 and 1
        What is relevant: an array, frame or sparse matrix.
    prediction : PartialPrediction, PartialRanking (for the rank loss), or an n × m table of 1, 0 and −1
        What was answered.
    loss, penalty
        As for `abstain.decide`. With ``penalty=None`` an abstention costs infinitely much.
    average : bool, default=True
        The mean over the instances, or one value for each.

    Examples
    --------
    >>> from abstain.metrics import generalized_loss
    >>> generalized_loss([[1, 0, 1], [0, 0, 1]], [[1, -1, 0], [0, 0, 1]], "hamming", 0.1)
    0.55
    """
    chosen, partial = as_loss(loss), _as_partial(prediction, as_loss(loss))
    truth, axes = read_truth(y_true)
    require_same_table(axes, truth, partial, "y_true")

    def realized(block: Block, y: NDArray[Any], codes: NDArray[Any]) -> NDArray[np.float64]:
        return chosen.realized(block, y.astype(np.bool_), codes)

    return _generalized(realized, truth, partial, chosen, penalty, average)


def expected_generalized_loss(
    probabilities: Any, prediction: Any, loss: LossLike, penalty: PenaltyLike, *, average: bool = True
) -> float | NDArray[np.float64]:
    """E[ℓ(y_D, ŷ_D)] + f(|A|) of any partial prediction, optimal or not, for independent labels.

    Parameters
    ----------
    probabilities
        As for `abstain.decide`.
    prediction, loss, penalty, average
        As for `generalized_loss`.

    Examples
    --------
    >>> import abstain
    >>> p = [0.9, 0.8, 0.7, 0.3]
    >>> best = abstain.decide(p, "f1", 0.05)
    >>> round(abstain.metrics.expected_generalized_loss(p, best, "f1", 0.05), 4)
    0.1719
    >>> round(abstain.metrics.expected_generalized_loss(p, [1, 1, 0, 0], "f1", 0.05), 4)
    0.2803
    """
    chosen, partial = as_loss(loss), _as_partial(prediction, as_loss(loss))
    table = Probabilities(probabilities)
    require_same_table(table.axes, table.matrix, partial, "probabilities")
    table.check()

    def expected(block: Block, p: NDArray[Any], codes: NDArray[Any]) -> NDArray[np.float64]:
        return chosen.expected(block, np.clip(p.astype(np.float64), 0.0, 1.0), codes)

    return _generalized(expected, table.matrix, partial, chosen, penalty, average)


def abstention_rate(prediction: Any) -> float:
    """Σ |A| / (n · m): the share of labels left open.

    Examples
    --------
    >>> from abstain.metrics import abstention_rate
    >>> abstention_rate([[1, -1, 0], [0, 0, 1]])
    0.16666666666666666
    """
    partial = prediction if isinstance(prediction, Partial) else PartialPrediction(prediction)
    n, m = partial.shape
    return float(partial.n_abstained.sum() / (n * m)) if n else float("nan")


def answered_error_rate(y_true: Any, prediction: Any) -> float:
    """Wrong answers / answers: how often the machine is wrong where it speaks; nan where it never does.

    Examples
    --------
    >>> from abstain.metrics import answered_error_rate
    >>> answered_error_rate([[1, 0, 1], [0, 0, 1]], [[1, -1, 0], [0, 0, 1]])
    0.2
    """
    truth, partial = _truth_and_labels(y_true, prediction)
    n, m = partial.shape
    n_answered = n * m - int(partial.n_abstained.sum())
    # An abstained label differs from the truth, whatever that is: these are not errors.
    n_wrong = int(differ(truth, partial.labels).sum()) - int(partial.n_abstained.sum())
    return n_wrong / n_answered if n_answered else float("nan")


def error_capture_rate(y_true: Any, prediction: Any, full_prediction: Any) -> float:
    """Errors of the full prediction on abstained labels / all its errors: what silence has caught; nan without errors.

    Parameters
    ----------
    y_true, prediction
        As for `answered_error_rate`.
    full_prediction : PartialPrediction without abstentions, or n × m table of 0 and 1
        What would have been answered otherwise, for example ``abstain.decide(probabilities, loss, penalty=None)``.

    Examples
    --------
    >>> from abstain.metrics import error_capture_rate
    >>> error_capture_rate([[1, 0, 1]], [[1, -1, 0]], [[1, 1, 0]])
    0.5
    """
    truth, partial = _truth_and_labels(y_true, prediction)
    _, full = _truth_and_labels(y_true, full_prediction)
    if full.n_abstained.any():
        i = int(np.argmax(full.n_abstained > 0))
        raise InvalidLabels(f"full_prediction: {full.axes.row(i)} abstains; a full prediction answers every label")
    wrong, left_open = differ(truth, full.labels), partial.abstained
    caught = wrong.multiply(left_open) if sparse.issparse(wrong) else wrong & dense(left_open)
    return float(caught.sum() / wrong.sum()) if wrong.sum() else float("nan")


def _generalized(
    loss_of_block: Callable[[Block, NDArray[Any], NDArray[Any]], NDArray[np.float64]],
    table: Matrix,
    partial: Partial,
    loss: Loss,
    penalty: PenaltyLike,
    average: bool,
) -> float | NDArray[np.float64]:
    loss.check(partial.shape[1])
    priced = as_penalty(penalty)
    for side in (loss, priced):
        partial.axes.require_labels(side.label_names, repr(side))
    total = priced.bind(partial.shape[1]).charge(partial.n_abstained, partial.abstained)
    for block, values, codes in aligned_blocks(table, partial, loss.entries_per_block):
        total[block.rows] += loss_of_block(block, values, codes)
    if not average:
        return total
    return float(total.mean()) if len(total) else float("nan")


def _as_partial(prediction: Any, loss: Loss) -> Partial:
    if isinstance(prediction, Partial):
        if isinstance(prediction, PartialRanking) != loss.gives_rankings:
            wanted = "a PartialRanking" if loss.gives_rankings else "labels, not a ranking"
            raise InvalidLoss(f"{loss!r} scores {wanted}; the prediction is a {type(prediction).__name__}")
        return prediction
    return PartialRanking(prediction) if loss.gives_rankings else PartialPrediction(prediction)


def _truth_and_labels(y_true: Any, prediction: Any) -> tuple[Matrix, PartialPrediction]:
    if isinstance(prediction, PartialRanking):
        raise InvalidLabels("a ranking answers no label; score it with generalized_loss and the rank loss")
    partial = prediction if isinstance(prediction, PartialPrediction) else PartialPrediction(prediction)
    truth, axes = read_truth(y_true)
    require_same_table(axes, truth, partial, "y_true")
    return truth, partial
