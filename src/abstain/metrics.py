"""Scores that understand abstention: ``*_loss`` and error rates, lower is better; ``*_capture_rate``, higher is better.

An abstained label is neither right nor wrong: it costs what the penalty says, and it leaves the error rates. Where
everything is abstained there is nothing to be wrong about, and the rates are nan, not 0 or 1. Of Dask collections and
lazy predictions they are lazy too: Dask arrays without dimensions, whose ``compute()`` gives the number.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.blocks import Block
from abstain._core.losses import Loss, LossLike, as_loss
from abstain._core.penalties import Penalty, PenaltyLike, as_penalty
from abstain._core.prediction import PartialPrediction, PartialRanking, Prediction
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Matrix, dense
from abstain._core.truth import aligned_blocks, differ, read_truth, require_same_table
from abstain._utils.backends import lazy_backend
from abstain._utils.errors import InvalidLabels, InvalidLoss

__all__ = [
    "abstention_rate",
    "answered_error_rate",
    "error_capture_rate",
    "expected_generalized_loss",
    "generalized_loss",
]


def __dir__() -> list[str]:
    return __all__


def generalized_loss(
    y_true: Any, prediction: Any, *, loss: LossLike, penalty: PenaltyLike, per_instance: bool = False
) -> float | NDArray[np.float64]:
    """ℓ(y_D, ŷ_D) + f(|A|): what the answers cost when the truth is known, plus what the abstentions cost.

    Parameters
    ----------
    y_true : n × m table of 0 and 1
        What is relevant: an array, frame or sparse matrix.
    prediction : PartialPrediction, PartialRanking (for the rank loss), or an n × m table of 1, 0 and −1
        What was answered.
    loss, penalty
        As for `abstain.decide`. With ``penalty="none"`` an abstention costs infinitely much.
    per_instance : bool, default=False
        Whether to return one value for each instance, and not their mean.

    Examples
    --------
    >>> from abstain.metrics import generalized_loss
    >>> generalized_loss([[1, 0, 1], [0, 0, 1]], [[1, -1, 0], [0, 0, 1]], loss="hamming", penalty=0.1)
    0.55
    """
    work = partial(_realized, loss=as_loss(loss), penalty=as_penalty(penalty))
    return _averaged("generalized_loss", work, per_instance, y_true=y_true, prediction=prediction)


def expected_generalized_loss(
    probabilities: Any, prediction: Any, *, loss: LossLike, penalty: PenaltyLike, per_instance: bool = False
) -> float | NDArray[np.float64]:
    """E[ℓ(y_D, ŷ_D)] + f(|A|) of any partial prediction, optimal or not, for independent labels.

    Parameters
    ----------
    probabilities
        As for `abstain.decide`.
    prediction, loss, penalty, per_instance
        As for `generalized_loss`.

    Examples
    --------
    >>> import abstain
    >>> p = [0.9, 0.8, 0.7, 0.3]
    >>> best = abstain.decide(p, "f1", 0.05)
    >>> round(abstain.metrics.expected_generalized_loss(p, best, loss="f1", penalty=0.05), 4)
    0.1719
    >>> round(abstain.metrics.expected_generalized_loss(p, [1, 1, 0, 0], loss="f1", penalty=0.05), 4)
    0.2803
    """
    work = partial(_expected, loss=as_loss(loss), penalty=as_penalty(penalty))
    return _averaged("expected_loss", work, per_instance, probabilities=probabilities, prediction=prediction)


def abstention_rate(prediction: Any) -> float:
    """Σ |A| / (n · m): the share of labels left open.

    Examples
    --------
    >>> from abstain.metrics import abstention_rate
    >>> abstention_rate([[1, -1, 0], [0, 0, 1]])
    0.16666666666666666
    """
    return _rate("abstention_rate", _abstentions, prediction=prediction)


def answered_error_rate(y_true: Any, prediction: Any) -> float:
    """Wrong answers / answers: how often the machine is wrong where it speaks; nan where it never does.

    Examples
    --------
    >>> from abstain.metrics import answered_error_rate
    >>> answered_error_rate([[1, 0, 1], [0, 0, 1]], [[1, -1, 0], [0, 0, 1]])
    0.2
    """
    return _rate("answered_error_rate", wrong_answers, y_true=y_true, prediction=prediction)


def error_capture_rate(y_true: Any, prediction: Any, full_prediction: Any) -> float:
    """Errors of the full prediction on abstained labels / all its errors: what silence has caught; nan without errors.

    Parameters
    ----------
    y_true, prediction
        As for `answered_error_rate`.
    full_prediction : PartialPrediction without abstentions, or n × m table of 0 and 1
        What would have been answered otherwise, for example ``abstain.decide(probabilities, loss, penalty="none")``.

    Examples
    --------
    >>> from abstain.metrics import error_capture_rate
    >>> error_capture_rate([[1, 0, 1]], [[1, -1, 0]], [[1, 1, 0]])
    0.5
    """
    tables = {"y_true": y_true, "prediction": prediction, "full_prediction": full_prediction}
    return _rate("error_capture_rate", caught_errors, **tables)


def _averaged(name: str, losses: Callable[..., NDArray[np.float64]], per_instance: bool, **tables: Any) -> Any:
    """The mean of what each instance loses, or all of that; lazy if any table is."""
    if not per_instance:
        return _rate(name, partial(_total_and_number, losses=losses), **tables)
    if (backend := lazy_backend(*tables.values())) is not None:
        return backend.by_row(name, losses, **tables)
    return losses(*tables.values())


def _rate(name: str, count: Callable[..., tuple[float, float]], **tables: Any) -> Any:
    """The quotient of two numbers that add up over blocks of rows; lazy if any table is."""
    if (backend := lazy_backend(*tables.values())) is not None:
        return backend.reduced(name, count, _quotient, **tables)
    return _quotient(count(*tables.values()))


def _quotient(counts: tuple[float, float]) -> float:
    part, whole = counts
    return float(part / whole) if whole else float("nan")


def _total_and_number(*tables: Any, losses: Callable[..., NDArray[np.float64]]) -> tuple[float, float]:
    each = losses(*tables)
    return float(each.sum()), len(each)


def _abstentions(prediction: Any) -> tuple[float, float]:
    """Labels left open, and labels."""
    answers = prediction if isinstance(prediction, Prediction) else PartialPrediction(prediction)
    n, m = answers.shape
    return int(answers.n_abstained.sum()), n * m


def wrong_answers(y_true: Any, prediction: Any) -> tuple[float, float]:
    """Wrong answers, and answers."""
    truth, answers = _truth_and_labels(y_true, prediction)
    n, m = answers.shape
    n_open = int(answers.n_abstained.sum())
    # An abstained label differs from the truth, whatever that is: these are not errors.
    return _count(differ(truth, answers.labels)) - n_open, n * m - n_open


def caught_errors(y_true: Any, prediction: Any, full_prediction: Any) -> tuple[float, float]:
    """Errors of the full prediction on abstained labels, and all its errors."""
    truth, answers = _truth_and_labels(y_true, prediction)
    _, full = _truth_and_labels(y_true, full_prediction)
    if full.n_abstained.any():
        i = int(np.argmax(full.n_abstained > 0))
        raise InvalidLabels(f"full_prediction: {full.axes.row(i)} abstains; a full prediction answers every label")
    wrong, left_open = differ(truth, full.labels), answers.abstained
    caught = wrong.multiply(left_open) if sparse.issparse(wrong) else wrong & dense(left_open)
    return _count(caught), _count(wrong)


def _count(where: Matrix) -> int:
    return int(where.count_nonzero() if sparse.issparse(where) else np.count_nonzero(where))


def _realized(y_true: Any, prediction: Any, loss: Loss, penalty: Penalty) -> NDArray[np.float64]:
    """What each instance loses, the truth being known."""
    answers = _as_partial(prediction, loss)
    truth, axes = read_truth(y_true)
    require_same_table(axes, truth, answers, "y_true")

    def realized(block: Block, y: NDArray[Any], codes: NDArray[Any]) -> NDArray[np.float64]:
        return loss.realized(block, y.astype(np.bool_), codes)

    return _generalized(realized, truth, answers, loss, penalty)


def _expected(probabilities: Any, prediction: Any, loss: Loss, penalty: Penalty) -> NDArray[np.float64]:
    """What each instance is expected to lose."""
    answers = _as_partial(prediction, loss)
    table = Probabilities(probabilities)
    require_same_table(table.axes, table.matrix, answers, "probabilities")

    def expected(block: Block, p: NDArray[Any], codes: NDArray[Any]) -> NDArray[np.float64]:
        return loss.expected(block, p.astype(np.float64), codes)

    return _generalized(expected, table.values(), answers, loss, penalty)


def _generalized(
    loss_of_block: Callable[[Block, NDArray[Any], NDArray[Any]], NDArray[np.float64]],
    table: Matrix,
    answers: Prediction,
    loss: Loss,
    penalty: Penalty,
) -> NDArray[np.float64]:
    loss.check(answers.shape[1])
    if sparse.issparse(table) or sparse.issparse(answers.codes):
        loss.accept_sparse()
    for side in (loss, penalty):
        answers.axes.require_labels(side.label_names, repr(side))
    bound = penalty.bind(answers.shape[1])
    total = bound.charge(answers.n_abstained, None if bound.label_costs is None else answers.abstained)
    for block, values, codes in aligned_blocks(table, answers, loss.entries_per_block):
        total[block.rows] += loss_of_block(block, values, codes)
    return total


def _as_partial(prediction: Any, loss: Loss) -> Prediction:
    if isinstance(prediction, Prediction):
        if isinstance(prediction, PartialRanking) != loss.gives_rankings:
            wanted = "a PartialRanking" if loss.gives_rankings else "labels, not a ranking"
            raise InvalidLoss(f"{loss!r} scores {wanted}; the prediction is a {type(prediction).__name__}")
        return prediction
    return PartialRanking(prediction) if loss.gives_rankings else PartialPrediction(prediction)


def _truth_and_labels(y_true: Any, prediction: Any) -> tuple[Matrix, PartialPrediction]:
    if isinstance(prediction, PartialRanking):
        raise InvalidLabels("a ranking answers no label; score it with generalized_loss and the rank loss")
    answers = prediction if isinstance(prediction, PartialPrediction) else PartialPrediction(prediction)
    truth, axes = read_truth(y_true)
    require_same_table(axes, truth, answers, "y_true")
    return truth, answers
