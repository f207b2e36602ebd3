"""probabilities × loss × penalty → the optimal partial prediction.

`decide` reads what it is given, `decide_table` binds the penalty to the table, `decide_bound` decides block by block;
everything that decides in this package ends there. Decisions are made from a `Belief`: `Probabilities`, `Intervals` or
a `Joint` distribution. These are read block by block in the same way, and for each a `Loss` has a method that decides a
block of it.
"""

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from abstain._core.belief import Belief, of_single_labels, read_belief
from abstain._core.blocks import Block, StoredEntries
from abstain._core.expected_bounds import ExpectedLossBounds, accept_intervals
from abstain._core.intervals import Intervals
from abstain._core.joint import Joint
from abstain._core.losses import LabelLossLike, Loss, LossLike, RankingLossLike, as_loss
from abstain._core.penalties import BoundPenalty, Penalty, PenaltyLike, as_penalty
from abstain._core.prediction import PartialPrediction, PartialRanking, Prediction
from abstain._core.prediction_writer import PredictionWriter
from abstain._core.profile import RiskProfile
from abstain._core.tables import Axes
from abstain._utils.backends import lazy_backend
from abstain._utils.threads import for_each


@overload
def decide(probabilities: Any, loss: LabelLossLike = "hamming", penalty: PenaltyLike = 0.1) -> PartialPrediction: ...
@overload
def decide(probabilities: Any, loss: RankingLossLike, penalty: PenaltyLike = 0.1) -> PartialRanking: ...
@overload
def decide(probabilities: Any, loss: LossLike, penalty: PenaltyLike = 0.1) -> Prediction: ...
def decide(probabilities: Any, loss: LossLike = "hamming", penalty: PenaltyLike = 0.1) -> Prediction:
    """Argmin over all partial predictions ŷ of E[ℓ(y_D, ŷ_D)] + f(|A|), for each instance.

    D are the answered, A the abstained labels. The labels are taken to be independent given the instance (which
    matters for the rank, F and Jaccard losses and for subset 0/1, not for Hamming), unless a joint distribution,
    `Samples` or `Mixture`, says how they depend on each other. Of predictions that are equally
    good, one with fewest abstentions is returned, and a label at p = ½ is answered 0.

    Parameters
    ----------
    probabilities : array-like, data frame, sparse matrix or records of shape (n_instances, n_labels), or (n_labels,)
        P(label is relevant). Frames keep their label names and index. What a sparse matrix does not store has
        probability 0. A Dask array or data frame is decided lazily, a chunk at a time. Tensors of PyTorch, TensorFlow
        and JAX are read as they are, in any precision. Records name the labels of each row: a dict {label: score},
        whose order is kept, or a list of {"label": …, "score": …}, which are sorted by name; every row must have a
        score for every label. `Intervals` are decided by their rule, as a rule by the worst case; of `Samples` and
        `Mixture`, the expected loss is that of the joint distribution. A `ProbabilityWarning` is given if all rows add
        up to 1.
    loss : {"hamming", "rank", "f1", "jaccard", "subset"} or Loss, default="hamming"
        The cost of wrong answers.
    penalty : float, Penalty, callable f(a), array-like of shape (n_labels + 1,), or "none", default=0.1
        The cost of abstaining on a labels. A number c is ``Linear(c)``; "none" (or an infinite cost) forbids abstention
        and gives the optimal complete prediction.

    Returns
    -------
    PartialPrediction, or PartialRanking for the rank loss
        For a Dask collection, its lazy counterpart: ``compute()`` gives the prediction.

    Examples
    --------
    >>> import abstain
    >>> abstain.decide([[0.97, 0.55, 0.08], [0.30, 0.04, 0.88]], loss="hamming", penalty=0.2)
    PartialPrediction of 2 instances × 3 labels: 33.3% abstained, expected loss 0.335
       0  1  2
    0  1  ?  0
    1  ?  0  1
    """
    chosen, priced = as_loss(loss), as_penalty(penalty)
    if (backend := lazy_backend(probabilities)) is not None:
        return backend.decide(probabilities, chosen, priced)
    table = read_belief(probabilities)
    table.warn_if_softmax()
    return decide_table(table, chosen, priced)


def decide_table(table: Belief, loss: Loss, penalty: Penalty) -> Prediction:
    """Return the optimal partial prediction for probabilities that have been read."""
    if loss.is_decomposable:
        table = of_single_labels(table)
    if isinstance(table, Joint):
        loss.accept_joint()
        return decide_bound(table, loss, fit_penalty(loss, penalty, table.n_labels, table.axes))
    costs = bind_penalty(loss, penalty, table.n_labels, table.axes, is_sparse=table.is_sparse)
    if isinstance(table, Intervals):
        accept_intervals(loss, table, costs)
    return decide_bound(table, loss, costs)


def decide_bound(table: Belief, loss: Loss, costs: BoundPenalty) -> Prediction:
    """Return the optimal partial prediction for costs from `bind_penalty`."""
    if isinstance(table, Joint):
        return _decide_joint(table, loss, costs)
    writer = PredictionWriter(table, loss)
    is_skeptical = isinstance(table, Intervals) and table.rule == "skeptical"
    decide = loss.decide_skeptically if is_skeptical else loss.decide

    def decide_block(block: Block) -> None:
        answers = writer.buffers(block)
        decide(block, table.load(block), costs.narrowed(block.shape[1]), answers)
        writer.write(block, answers)

    def decide_stored(stored: StoredEntries) -> None:
        loss.decide_entries(stored, table.load_entries(stored), costs, writer.buffers(stored))

    if table.is_sparse and loss.decides_by_entry(costs) and not is_skeptical:
        for_each(decide_stored, table.stored_entries())
    else:
        for_each(decide_block, table.blocks(max(loss.entries_per_block, table.least_per_block)))
    prediction = writer.finish()
    return (
        prediction.with_bounds(ExpectedLossBounds(table, loss, costs)) if isinstance(table, Intervals) else prediction
    )


def _decide_joint(joint: Joint, loss: Loss, costs: BoundPenalty) -> Prediction:
    """Return the best partial prediction that is found for joint distributions."""
    writer = PredictionWriter(joint, loss)

    def decide_block(block: Block) -> None:
        loss.decide_joint(block, joint.load(block), costs, joint.limits, writer.buffers(block))

    joint.for_each_block(decide_block)
    return writer.finish()


def bind_penalty(loss: Loss, penalty: Penalty, n_labels: int, axes: Axes, *, is_sparse: bool) -> BoundPenalty:
    """Return the penalty for a table of these labels; raise an error if loss, penalty and table do not fit together."""
    costs = fit_penalty(loss, penalty, n_labels, axes)
    loss.accept(costs)
    if is_sparse:
        loss.accept_sparse()
        costs.require_nondecreasing()
    return costs


def fit_penalty(loss: Loss, penalty: Penalty, n_labels: int, axes: Axes) -> BoundPenalty:
    """Return any penalty for these labels; raise an error if loss, penalty and labels do not fit together."""
    loss.check(n_labels)
    costs = penalty.bind(n_labels)
    axes.require_labels(loss.label_names, repr(loss))
    axes.require_labels(penalty.label_names, repr(penalty))
    return costs


def decide_and_count(
    table: Belief, loss: Loss, penalty: Penalty, other: Penalty
) -> tuple[Prediction, NDArray[np.intp]]:
    """Return the decision for one counting penalty, and the numbers of abstentions of each instance for another."""
    bound, other_bound = penalty.bind(table.n_labels), other.bind(table.n_labels)
    writer, n_abstained = PredictionWriter(table, loss), np.empty(table.n_rows, np.intp)

    def decide_block(block: Block) -> None:
        answers, m = writer.buffers(block), block.shape[1]
        n_abstained[block.rows] = loss.decide_and_count(
            block, table.load(block), bound.narrowed(m), other_bound.narrowed(m), answers
        )
        writer.write(block, answers)

    for_each(decide_block, table.blocks(loss.entries_per_block))
    return writer.finish(), n_abstained


@overload
def risk_profile(probabilities: Any, *, loss: LabelLossLike = "hamming") -> RiskProfile[PartialPrediction]: ...
@overload
def risk_profile(probabilities: Any, *, loss: RankingLossLike) -> RiskProfile[PartialRanking]: ...
@overload
def risk_profile(probabilities: Any, *, loss: LossLike) -> RiskProfile[Prediction]: ...
def risk_profile(probabilities: Any, *, loss: LossLike = "hamming") -> RiskProfile[Any]:
    """r(a) = min { E[ℓ(y_D, ŷ_D)] : |A| = a } for a = 0 … m, for each instance: the least expected loss.

    It contains all that a decision needs: ``profile.decide(penalty)`` looks up the best a for any counting penalty, and
    ``profile.path()`` gives the decisions for all linear costs at once.

    Parameters
    ----------
    probabilities : array-like, data frame, sparse matrix or records of shape (n_instances, n_labels), or (n_labels,)
        As for `decide`.
    loss : {"hamming", "rank", "f1", "jaccard", "subset"} or Loss, default="hamming"
        The cost of wrong answers.

    Returns
    -------
    RiskProfile
        For a Dask collection, its lazy counterpart.

    Examples
    --------
    >>> import abstain
    >>> profile = abstain.risk_profile([0.9, 0.8, 0.7, 0.3], loss="hamming")
    >>> profile.values.round(3)
    array([[0.9, 0.6, 0.3, 0.1, 0. ]])
    >>> profile.decide(abstain.Linear(0.25)).labels, profile.decide(abstain.Linear(0.15)).labels
    (array([[ 1,  1, -1, -1]], dtype=int8), array([[ 1, -1, -1, -1]], dtype=int8))
    """
    chosen = as_loss(loss)
    if (backend := lazy_backend(probabilities)) is not None:
        return backend.risk_profile(probabilities, chosen)
    table = read_belief(probabilities)
    table.warn_if_softmax()
    if chosen.is_decomposable:
        table = of_single_labels(table)
    if table.is_sparse:
        chosen.accept_sparse()
    return RiskProfile(table, chosen)
