"""probabilities × loss × penalty → the optimal partial prediction."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.blocks import Block, StoredEntries
from abstain._core.losses import Loss, LossLike, as_loss
from abstain._core.penalties import BoundPenalty, Penalty, PenaltyLike, as_penalty
from abstain._core.prediction import Prediction
from abstain._core.prediction_writer import PredictionWriter
from abstain._core.probabilities import Probabilities
from abstain._core.profile import RiskProfile
from abstain._core.tables import Axes
from abstain._utils.backends import lazy_backend
from abstain._utils.threads import for_each


def decide(probabilities: Any, loss: LossLike = "hamming", penalty: PenaltyLike = 0.1) -> Prediction:
    """Argmin over all partial predictions ŷ of E[ℓ(y_D, ŷ_D)] + f(|A|), for each instance.

    D are the answered, A the abstained labels; the labels are taken to be independent given the instance (which
    matters for the rank, F and Jaccard losses and for subset 0/1, not for Hamming). Of predictions that are equally
    good, one with fewest abstentions is given, and a label at p = ½ is answered 0.

    Parameters
    ----------
    probabilities : array-like, frame or sparse matrix of shape (n, m), or one instance as a vector
        P(label is relevant). Frames keep their label names and index. What a sparse matrix does not store has
        probability 0. A Dask array or data frame is decided lazily, a block of rows at a time.
    loss : "hamming", "rank", "f1", "jaccard", "subset", or a loss object
        What wrong answers cost.
    penalty : number, `Linear`, `Concave`, `Capped`, `PerLabel`, function f(a), table f(0) … f(m), or "none"
        What abstaining on a labels costs. A number c is ``Linear(c)``; "none" (or an infinite cost) forbids abstention
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
    return decide_table(Probabilities(probabilities), chosen, priced)


def decide_table(table: Probabilities, loss: Loss, penalty: Penalty) -> Prediction:
    """The optimal partial prediction for probabilities that have been read."""
    return decide_bound(table, loss, bind_penalty(loss, penalty, table.n_labels, table.axes, is_sparse=table.is_sparse))


def decide_bound(table: Probabilities, loss: Loss, costs: BoundPenalty) -> Prediction:
    """The optimal partial prediction for costs of abstaining that are known to go with the loss and the table."""
    writer = PredictionWriter(table, loss)

    def work(block: Block) -> None:
        codes, expected = writer.buffers(block)
        loss.decide(block, table.load(block), costs.narrowed(block.shape[1]), codes, expected)
        writer.write(block, codes, expected)

    def work_as_stored(stretch: StoredEntries) -> None:
        loss.decide_entries(stretch, table.load_entries(stretch), costs, *writer.buffers(stretch))

    if table.is_sparse and loss.decides_by_entry(costs):
        for_each(work_as_stored, table.stored_entries())
    else:
        for_each(work, table.blocks(loss.entries_per_block))
    return writer.finish()


def bind_penalty(loss: Loss, penalty: Penalty, n_labels: int, axes: Axes, *, is_sparse: bool) -> BoundPenalty:
    """Return what abstaining costs in a table of these labels; raise if loss, penalty and table do not go together."""
    loss.check(n_labels)
    costs = penalty.bind(n_labels)
    loss.accept(costs)
    axes.require_labels(loss.label_names, repr(loss))
    axes.require_labels(penalty.label_names, repr(penalty))
    if is_sparse:
        loss.accept_sparse()
        costs.require_nondecreasing()
    return costs


def decide_and_count(
    table: Probabilities, loss: Loss, penalty: Penalty, other: Penalty
) -> tuple[Prediction, NDArray[np.intp]]:
    """The decision for one counting penalty, and how many labels of each instance another would leave open."""
    bound, also = penalty.bind(table.n_labels), other.bind(table.n_labels)
    writer, n_abstained = PredictionWriter(table, loss), np.empty(table.n_rows, np.intp)

    def work(block: Block) -> None:
        codes, expected = writer.buffers(block)
        narrow = bound.narrowed(block.shape[1]), also.narrowed(block.shape[1])
        n_abstained[block.rows] = loss.decide_and_count(block, table.load(block), *narrow, codes, expected)
        writer.write(block, codes, expected)

    for_each(work, table.blocks(loss.entries_per_block))
    return writer.finish(), n_abstained


def risk_profile(probabilities: Any, *, loss: LossLike = "hamming") -> RiskProfile:
    """r(a) = min { E[ℓ(y_D, ŷ_D)] : |A| = a } for a = 0 … m: all that a decision needs to know of the loss.

    Any counting penalty is then decided by ``profile.decide(penalty)`` at the price of looking up the best a, and
    ``profile.path()`` gives the answer for all linear costs at once.

    Parameters
    ----------
    probabilities, loss
        As for `decide`. Of a Dask collection the profile is lazy (`ChunkedProfile`).

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
    table = Probabilities(probabilities)
    if table.is_sparse:
        chosen.accept_sparse()
    return RiskProfile(table, chosen)
