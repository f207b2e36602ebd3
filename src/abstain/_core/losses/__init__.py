"""The losses and their registry.

Begin with `base.Loss`; a new loss is one file here, registered in `LOSSES`.
"""

from typing import Literal, TypeAlias

from abstain._core.losses.base import Loss
from abstain._core.losses.hamming import DecomposableLoss, Hamming
from abstain._core.losses.overlap import FMeasure, Jaccard
from abstain._core.losses.rank import Rank
from abstain._core.losses.subset import SubsetZeroOne
from abstain._utils.errors import InvalidLoss

__all__ = [
    "LOSSES",
    "DecomposableLoss",
    "FMeasure",
    "Hamming",
    "Jaccard",
    "LabelLossLike",
    "Loss",
    "LossLike",
    "Rank",
    "RankingLossLike",
    "SubsetZeroOne",
    "as_loss",
]

LabelLossLike: TypeAlias = (
    Literal["hamming", "f1", "jaccard", "subset"] | DecomposableLoss | FMeasure | Jaccard | SubsetZeroOne
)
"""Losses that are known to score labels: their decisions are of type `PartialPrediction`."""
RankingLossLike: TypeAlias = Literal["rank"] | Rank
"""Losses that are known to score rankings: their decisions are of type `PartialRanking`."""
LossLike: TypeAlias = str | Loss
"""A loss, or the name of a registered one."""

LOSSES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (FMeasure, Hamming, Jaccard, Rank, SubsetZeroOne) if loss.name is not None
}
"""Every loss that comes with the library, by name.

Command line, displays, experiments and report take their titles and sentences from the attributes of these classes
(`title`, `axis_title`, `description`, `unit_description`, `text_forms`), and what a loss can do from `highest_cost`,
`is_decomposable`, `answers_are_nested`, `takes_sparse` and `gives_rankings`.
"""


def as_loss(loss: LossLike) -> Loss:
    """Return a loss that was given by name or as an object."""
    if isinstance(loss, Loss):
        if loss.is_decomposable != isinstance(loss, DecomposableLoss):
            raise InvalidLoss(
                f"{type(loss).__name__}.is_decomposable is {loss.is_decomposable}; a loss that is a sum over labels is "
                "a subclass of abstain.DecomposableLoss that defines error_costs, and no other loss is one"
            )
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]()
    accepted = ", ".join(repr(name) for name in LOSSES)
    raise InvalidLoss(f"loss is {loss!r}; expected one of {accepted}, or a loss such as abstain.Hamming()")
