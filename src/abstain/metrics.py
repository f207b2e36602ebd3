"""Scores that understand abstention: ``*_loss`` and error rates, lower is better; ``*_capture_rate``, higher is better.

An abstained label is neither right nor wrong: it costs what the penalty says, and it is left out of the error rates.
Where everything is abstained on there is nothing to be wrong about, and the rates are nan, not 0 or 1. For Dask
collections and lazy predictions the scores are lazy too: Dask arrays without dimensions, whose ``compute()`` gives the
number. This module may import `_core` and `_utils`; begin with `generalized_loss`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.belief import of_single_labels, read_belief
from abstain._core.blocks import Block
from abstain._core.expected_bounds import expected_loss_bounds, expected_loss_of_joint
from abstain._core.intervals import Intervals
from abstain._core.joint import Joint
from abstain._core.losses import Loss, LossLike, as_loss
from abstain._core.penalties import BoundPenalty, Penalty, PenaltyLike, as_penalty
from abstain._core.prediction import PartialPrediction, PartialRanking, Prediction
from abstain._core.tables import Matrix, dense
from abstain._core.truth import Truth, aligned_blocks, differ, read_truth, require_same_table
from abstain._utils.backends import lazy_backend
from abstain._utils.errors import InvalidLabels, InvalidLoss, InvalidPenalty

__all__ = [
    "abstention_rate",
    "answered_error_rate",
    "error_capture_rate",
    "expected_generalized_loss",
    "generalized_loss",
]


def __dir__() -> list[str]:
    return __all__


Tables: TypeAlias = Mapping[str, Any]
"""Tables about the same rows, by the names of the parameters that take them."""
Losses: TypeAlias = Callable[..., NDArray[np.float64]]
"""A function of tables, given by name, that returns the loss of each row."""
Counter: TypeAlias = Callable[..., tuple[float, float]]
"""A function of tables, given by name, that returns a part and a whole, each of which adds up over blocks of rows."""


@overload
def generalized_loss(
    y_true: Any,
    prediction: Any,
    *,
    loss: LossLike,
    penalty: PenaltyLike,
    per_instance: Literal[False] = False,
    missing_values: float | None = None,
) -> float: ...
@overload
def generalized_loss(
    y_true: Any,
    prediction: Any,
    *,
    loss: LossLike,
    penalty: PenaltyLike,
    per_instance: Literal[True],
    missing_values: float | None = None,
) -> NDArray[np.float64]: ...
@overload
def generalized_loss(
    y_true: Any,
    prediction: Any,
    *,
    loss: LossLike,
    penalty: PenaltyLike,
    per_instance: bool,
    missing_values: float | None = None,
) -> float | NDArray[np.float64]: ...
def generalized_loss(
    y_true: Any,
    prediction: Any,
    *,
    loss: LossLike,
    penalty: PenaltyLike,
    per_instance: bool = False,
    missing_values: float | None = None,
) -> float | NDArray[np.float64]:
    """ℓ(y_D, ŷ_D) + f(|A|): what the answers cost when the truth is known, plus what the abstentions cost.

    Parameters
    ----------
    y_true : array-like, frame or sparse matrix of shape (n_instances, n_labels)
        1 for labels that are relevant, 0 for the others.
    prediction : PartialPrediction, PartialRanking (for the rank loss), or array-like of shape (n_instances, n_labels)
        The answers: 1, 0, or −1 for an abstention.
    loss : str or Loss
        As for `abstain.decide`.
    penalty : number, Penalty, function, table or "none"
        As for `abstain.decide`. With "none" an abstention costs infinitely much.
    per_instance : bool, default=False
        Whether to return one value for each instance, and not their mean.
    missing_values : None, np.nan or -1, default=None
        What stands for an unknown label in `y_true`: NaN (also None, null and pandas.NA), −1, or (None) nothing, and
        every entry must be 0 or 1. Unknown labels cost nothing, answered or abstained, so that only scores by the same
        `y_true` can be compared. This needs a loss and a penalty that are sums over labels: `Hamming`,
        `DecomposableLoss`; a number, `PerLabel`.

    Returns
    -------
    float, or ndarray of shape (n_instances,)

    Examples
    --------
    >>> from abstain.metrics import generalized_loss
    >>> generalized_loss([[1, 0, 1], [0, 0, 1]], [[1, -1, 0], [0, 0, 1]], loss="hamming", penalty=0.1)
    0.55
    """
    work = partial(_realized, loss=as_loss(loss), penalty=as_penalty(penalty), missing_values=missing_values)
    return _mean("generalized_loss", work, {"y_true": y_true, "prediction": prediction}, per_instance=per_instance)


@overload
def expected_generalized_loss(
    probabilities: Any, prediction: Any, *, loss: LossLike, penalty: PenaltyLike, per_instance: Literal[False] = False
) -> float: ...
@overload
def expected_generalized_loss(
    probabilities: Any, prediction: Any, *, loss: LossLike, penalty: PenaltyLike, per_instance: Literal[True]
) -> NDArray[np.float64]: ...
@overload
def expected_generalized_loss(
    probabilities: Any, prediction: Any, *, loss: LossLike, penalty: PenaltyLike, per_instance: bool
) -> float | NDArray[np.float64]: ...
def expected_generalized_loss(
    probabilities: Any, prediction: Any, *, loss: LossLike, penalty: PenaltyLike, per_instance: bool = False
) -> float | NDArray[np.float64]:
    """E[ℓ(y_D, ŷ_D)] + f(|A|) of any partial prediction, optimal or not.

    The labels are independent given the instance, unless a joint distribution says how they depend on each other.

    Parameters
    ----------
    probabilities : array-like, frame, sparse matrix, Intervals, Samples or Mixture of shape (n_instances, n_labels)
        As for `abstain.decide`.
    prediction, loss, penalty, per_instance
        As for `generalized_loss`.

    Returns
    -------
    float, or ndarray of shape (n_instances,)
        For `Intervals`, the least and the greatest value: an ndarray of shape (2,) or (n_instances, 2).

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
    tables = {"probabilities": probabilities, "prediction": prediction}
    return _mean("expected_loss", work, tables, per_instance=per_instance)


def abstention_rate(prediction: Any) -> float:
    """Σ |A| / (n · m): the share of labels that are abstained on.

    Parameters
    ----------
    prediction : PartialPrediction, PartialRanking, or array-like of shape (n_instances, n_labels)
        As for `generalized_loss`.

    Returns
    -------
    float

    Examples
    --------
    >>> from abstain.metrics import abstention_rate
    >>> abstention_rate([[1, -1, 0], [0, 0, 1]])
    0.16666666666666666
    """
    return _rate("abstention_rate", _abstentions, {"prediction": prediction})


def answered_error_rate(y_true: Any, prediction: Any, *, missing_values: float | None = None) -> float:
    """Wrong answers / answers: how often the machine is wrong where it answers; nan where it never does.

    Parameters
    ----------
    y_true : array-like, frame or sparse matrix of shape (n_instances, n_labels)
        As for `generalized_loss`.
    prediction : PartialPrediction, or array-like of shape (n_instances, n_labels)
        As for `generalized_loss`.
    missing_values : None, np.nan or -1, default=None
        What stands for an unknown label in `y_true`: NaN (also None, null and pandas.NA), −1, or (None) nothing.
        Answers to unknown labels are not counted.

    Returns
    -------
    float

    Examples
    --------
    >>> from abstain.metrics import answered_error_rate
    >>> answered_error_rate([[1, 0, 1], [0, 0, 1]], [[1, -1, 0], [0, 0, 1]])
    0.2
    >>> answered_error_rate([[1, 0, 1], [None, 0, 1]], [[1, -1, 0], [0, 0, 1]], missing_values=float("nan"))
    0.25
    """
    count = partial(wrong_answers, missing_values=missing_values)
    return _rate("answered_error_rate", count, {"y_true": y_true, "prediction": prediction})


def error_capture_rate(
    y_true: Any, prediction: Any, full_prediction: Any, *, missing_values: float | None = None
) -> float:
    """Errors of the full prediction on abstained labels / all its errors: the share caught; nan without errors.

    Parameters
    ----------
    y_true, prediction
        As for `answered_error_rate`.
    full_prediction : PartialPrediction without abstentions, or array-like of shape (n_instances, n_labels)
        The answers without abstention, for example ``abstain.decide(probabilities, loss, penalty="none")``.
    missing_values : None, np.nan or -1, default=None
        As for `answered_error_rate`: unknown labels are not counted.

    Returns
    -------
    float

    Examples
    --------
    >>> from abstain.metrics import error_capture_rate
    >>> error_capture_rate([[1, 0, 1]], [[1, -1, 0]], [[1, 1, 0]])
    0.5
    """
    tables = {"y_true": y_true, "prediction": prediction, "full_prediction": full_prediction}
    return _rate("error_capture_rate", partial(caught_errors, missing_values=missing_values), tables)


def _mean(name: str, losses: Losses, tables: Tables, *, per_instance: bool) -> Any:
    """Return the mean loss of the instances, or the loss of each; lazy if any table is."""
    if not per_instance:
        return _rate(name, partial(_total_and_number, losses=losses), tables)
    if (backend := lazy_backend(*tables.values())) is not None:
        return backend.by_row(name, losses, **tables)
    return losses(**tables)


def _rate(name: str, count: Counter, tables: Tables) -> Any:
    """Return the quotient of two numbers that add up over blocks of rows; lazy if any table is."""
    if (backend := lazy_backend(*tables.values())) is not None:
        return backend.reduced(name, count, _quotient, **tables)
    return _quotient(count(**tables))


def _quotient(counts: tuple[Any, float]) -> Any:
    part, whole = counts
    if isinstance(part, np.ndarray):
        return part / whole if whole else np.full(part.shape, np.nan)
    return float(part / whole) if whole else float("nan")


def _total_and_number(losses: Losses, **tables: Any) -> tuple[Any, float]:
    """Return the total loss, or its bounds, and the number of instances."""
    each = losses(**tables)
    return each.sum(axis=0) if each.ndim > 1 else float(each.sum()), len(each)


def _abstentions(prediction: Any) -> tuple[float, float]:
    """Return the number of abstained labels, and of labels."""
    answers = prediction if isinstance(prediction, Prediction) else PartialPrediction(prediction)
    n, m = answers.shape
    return int(answers.n_abstained.sum()), n * m


def wrong_answers(y_true: Any, prediction: Any, missing_values: float | None = None) -> tuple[float, float]:
    """Return the number of wrong answers, and of answers, to labels that are known."""
    answers = _as_labels(prediction)
    truth = _read_truth_of(answers, y_true, missing_values)
    n_unknown = 0 if truth.unknown is None else _count(truth.unknown)
    answers = _answered_rightly(answers, truth.unknown)
    n, m = answers.shape
    n_abstained = int(answers.n_abstained.sum())
    # An abstained label differs from the truth, whatever that is: these are not errors.
    return _count(differ(truth.values, answers.labels)) - n_abstained, n * m - n_abstained - n_unknown


def caught_errors(
    y_true: Any, prediction: Any, full_prediction: Any, missing_values: float | None = None
) -> tuple[float, float]:
    """Return the number of errors of the full prediction on abstained labels, and of all its errors."""
    answers, full = _as_labels(prediction), _as_labels(full_prediction)
    truth = _read_truth_of(answers, y_true, missing_values)
    require_same_table(truth.axes, truth.values, full, "y_true")
    if full.n_abstained.any():
        i = int(np.argmax(full.n_abstained > 0))
        raise InvalidLabels(f"full_prediction: {full.axes.row(i)} abstains; a full prediction answers every label")
    wrong = differ(truth.values, _answered_rightly(full, truth.unknown).labels)
    abstained = answers.abstained
    caught = wrong.multiply(abstained) if sparse.issparse(wrong) else wrong & dense(abstained)
    return _count(caught), _count(wrong)


def _count(where: Matrix) -> int:
    return int(where.count_nonzero() if sparse.issparse(where) else np.count_nonzero(where))


def _realized(
    y_true: Any, prediction: Any, loss: Loss, penalty: Penalty, missing_values: float | None
) -> NDArray[np.float64]:
    """Return the generalised loss of each instance, given the truth."""
    answers = _as_partial(prediction, loss)
    if loss.is_decomposable:
        truth = _read_truth_of(answers, y_true, missing_values)
    else:
        refusal = f"the {loss.title} loss of a row needs all its labels: leave out such rows, or score by Hamming"
        truth = _read_truth_of(answers, y_true, missing_values, refusal)
        if truth.unknown is not None:
            raise InvalidLabels(f"{truth.first_unknown()} is unknown; {refusal}")
    if truth.unknown is not None:
        if not _is_sum_over_labels(penalty.bind(answers.shape[1])):
            raise InvalidPenalty(
                f"{truth.first_unknown()} is unknown; {penalty!r} depends on all abstentions of a row: leave out such "
                "rows, or score with a number or PerLabel"
            )
        assert isinstance(answers, PartialPrediction)
        answers = _answered_rightly(answers, truth.unknown)

    def realized(block: Block, y: NDArray[Any], codes: NDArray[Any]) -> NDArray[np.float64]:
        return loss.realized(block, y.astype(np.bool_), codes)

    return _generalized(realized, truth.values, answers, loss, penalty)


def _expected(probabilities: Any, prediction: Any, loss: Loss, penalty: Penalty) -> NDArray[np.float64]:
    """Return the expected generalised loss of each instance."""
    answers = _as_partial(prediction, loss)
    table = read_belief(probabilities)
    if loss.is_decomposable:
        table = of_single_labels(table)
    require_same_table(table.axes, table.matrix, answers, "probabilities")
    if isinstance(table, Intervals):
        loss.accept_intervals()
        without_loss = _generalized(None, table.matrix, answers, loss, penalty)
        return without_loss[:, np.newaxis] + expected_loss_bounds(table, loss, answers)

    if isinstance(table, Joint):
        without_loss = _generalized(None, table.matrix, answers, loss, penalty)
        return without_loss + expected_loss_of_joint(table, loss, answers)

    def expected(block: Block, p: NDArray[Any], codes: NDArray[Any]) -> NDArray[np.float64]:
        return loss.expected(block, p.astype(np.float64), codes)

    return _generalized(expected, table.values(), answers, loss, penalty)


def _generalized(
    loss_of_block: Callable[[Block, NDArray[Any], NDArray[Any]], NDArray[np.float64]] | None,
    table: Matrix,
    answers: Prediction,
    loss: Loss,
    penalty: Penalty,
) -> NDArray[np.float64]:
    """Return the penalty of each instance plus its loss, which is computed block by block if it is asked for."""
    loss.check(answers.shape[1])
    if sparse.issparse(table) or sparse.issparse(answers.codes):
        loss.accept_sparse()
    for priced in (loss, penalty):
        answers.axes.require_labels(priced.label_names, repr(priced))
    bound = penalty.bind(answers.shape[1])
    total = bound.charge(answers.n_abstained, None if bound.label_costs is None else answers.abstained)
    if loss_of_block is None:
        return total
    for block, values, codes in aligned_blocks(table, answers, loss.entries_per_block):
        total[block.rows] += loss_of_block(block, values, codes)
    return total


def _as_partial(prediction: Any, loss: Loss) -> Prediction:
    if isinstance(prediction, Prediction):
        if not isinstance(prediction, loss.prediction_type):
            wanted = "a PartialRanking" if loss.gives_rankings else "labels, not a ranking"
            raise InvalidLoss(f"{loss!r} scores {wanted}; the prediction is a {type(prediction).__name__}")
        return prediction
    return loss.prediction_type(prediction)


def _as_labels(prediction: Any) -> PartialPrediction:
    if isinstance(prediction, PartialRanking):
        raise InvalidLabels("a ranking answers no label; score it with generalized_loss and the rank loss")
    return prediction if isinstance(prediction, PartialPrediction) else PartialPrediction(prediction)


def _read_truth_of(answers: Prediction, y_true: Any, missing_values: float | None, refusal: str = "") -> Truth:
    truth = read_truth(y_true, missing_values, refusal=refusal)
    require_same_table(truth.axes, truth.values, answers, "y_true")
    return truth


def _answered_rightly(answers: PartialPrediction, unknown: Matrix | None) -> PartialPrediction:
    """Return answers that are 0 where the truth is unknown, as its table is: neither errors nor abstentions."""
    if unknown is None:
        return answers
    codes = answers.codes
    if sparse.issparse(codes):
        codes = codes - codes.multiply(unknown)
        codes.eliminate_zeros()
    else:
        codes = np.where(dense(unknown), 0, codes)
    return PartialPrediction.from_codes(codes, answers.axes)


def _is_sum_over_labels(penalty: BoundPenalty) -> bool:
    """Whether each abstention of a row costs the same, or what the label costs, whatever the others are."""
    counts = penalty.counts
    with np.errstate(invalid="ignore"):  # 0 · ∞
        return penalty.slope is not None or bool(np.allclose(counts, counts[1] * np.arange(len(counts))))
