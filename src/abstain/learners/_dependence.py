"""Whether deciding from joint distributions pays for a loss, by the realised loss of instances held out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias, get_args

import numpy as np

from abstain._core.decision import decide_table
from abstain._core.joint import Joint
from abstain._core.losses import Loss, LossLike, as_loss
from abstain._core.penalties import Penalty, PenaltyLike, as_penalty
from abstain._core.tables import Matrix, dense
from abstain._core.targets import Target
from abstain._utils.types import Floats
from abstain.learners._held_out import HeldOut
from abstain.metrics import generalized_loss

DependenceChoice: TypeAlias = Literal["auto", "independent", "joint"]
DEPENDENCES = get_args(DependenceChoice)
SHARES = (0.0, 0.2, 0.5)
"""Shares of independence that are tried, as long as they get better."""
Z = 1.645
"""How many standard errors a joint decision must be better by: one-sided 95 %."""


@dataclass(frozen=True)
class Dependence:
    """Whether a classifier decides from joint distributions, and why.

    Attributes
    ----------
    uses_joint : bool
    reason : str
        Why, in words.
    loss, penalty : Loss and Penalty, or None
        For which loss and penalty the realised losses are; None if nothing was compared.
    share : float
        The share of independence in the joint distributions (`Samples.with_independence`).
    independent_loss, joint_loss : float
        The realised generalised losses of held-out instances, on average; nan if nothing was compared.
    standard_error : float
        Of their difference.
    n_instances : int
        How many instances were compared.
    """

    uses_joint: bool
    reason: str
    loss: Loss | None = None
    penalty: Penalty | None = None
    share: float = 0.0
    independent_loss: float = np.nan
    joint_loss: float = np.nan
    standard_error: float = np.nan
    n_instances: int = 0

    @property
    def difference(self) -> float:
        """joint_loss − independent_loss: less than 0 if the joint distribution pays."""
        return self.joint_loss - self.independent_loss

    @property
    def was_compared(self) -> bool:
        """Whether realised losses were compared."""
        return self.n_instances > 0

    def __str__(self) -> str:
        chosen = "joint" if self.uses_joint else "independent"
        if not self.was_compared:
            return f"{chosen}: {self.reason}"
        share = f", {self.share:.0%} independence" if self.share else ""
        return (
            f"{chosen}: held-out {self.loss!r} with {self.penalty!r} is {self.joint_loss:.4f} from joint distributions"
            f"{share}, {self.independent_loss:.4f} from probabilities (difference {self.difference:+.4f} ± "
            f"{self.standard_error:.4f})"
        )

    def for_loss(self, loss: Loss) -> bool:
        """Whether a loss is decided from joint distributions; sums over labels need none."""
        if not self.uses_joint or loss.is_decomposable:
            return False
        return self.loss is None or self.loss.is_same_as(loss)

    @classmethod
    def compared(
        cls, held_out: Sequence[HeldOut], labels: Matrix, weight: Floats | None, loss: Loss, penalty: Penalty
    ) -> Self:
        """Compare the decisions on held-out instances, and choose the better one if that is beyond noise.

        Parameters
        ----------
        held_out : sequence of HeldOut
        labels : array or sparse matrix of shape (n_training_rows, n_labels)
        weight : float array of shape (n_training_rows,), optional
        loss : Loss
        penalty : Penalty
        """
        rows = np.concatenate([part.rows for part in held_out])
        truths = [dense(labels[part.rows], "y") for part in held_out]
        given = np.ones(len(rows)) if weight is None else np.asarray(weight, np.float64)[rows]

        def realized(share: float | None) -> Floats:
            parts = [
                _realized(truth, part.joint, share, loss, penalty) for truth, part in zip(truths, held_out, strict=True)
            ]
            return np.concatenate(parts)

        independent = realized(None)
        best, best_share = realized(SHARES[0]), SHARES[0]
        for share in SHARES[1:]:
            tried = realized(share)
            if np.average(tried, weights=given) >= np.average(best, weights=given):
                break
            best, best_share = tried, share
        losses = [float(np.average(each, weights=given)) for each in (independent, best)]
        deviations = given * (best - independent - (losses[1] - losses[0]))
        error = float(np.sqrt((deviations**2).sum()) / given.sum())
        pays = losses[1] - losses[0] < -Z * error
        reason = (
            "the joint distribution lowers the held-out loss beyond noise"
            if pays
            else "the joint distribution does not lower the held-out loss beyond noise"
        )
        return cls(pays, reason, loss, penalty, best_share, losses[0], losses[1], error, len(rows))


def _realized(truth: Matrix, joint: Joint, share: float | None, loss: Loss, penalty: Penalty) -> Floats:
    """Return the generalised loss of each decision with a share of independence; None: from the marginals."""
    if share is None:
        decision = decide_table(joint.marginal_probabilities(), loss, penalty)
    else:
        decision = decide_table(joint.with_independence(share).with_limits(certify=False), loss, penalty)
    losses: Floats = generalized_loss(truth, decision, loss=loss, penalty=penalty, per_instance=True)
    return losses


@dataclass(frozen=True)
class DependenceQuestion:
    """Whether joint distributions are to be used, before anything has been learnt.

    Attributes
    ----------
    is_open : bool
        Whether that is to be found out by comparison.
    keeps_distribution : bool
        Whether what joint distributions need is to be kept.
    uses_joint : bool
        What is done if nothing is compared.
    reason : str
        Why nothing is compared.
    """

    is_open: bool
    keeps_distribution: bool
    uses_joint: bool = False
    reason: str = ""

    @classmethod
    def of(cls, choice: DependenceChoice, exists: bool, loss: Loss, n_labels: int) -> Self:
        """Return the question, given the user's choice, and whether there is a joint distribution."""
        if choice == "joint":
            return cls(False, True, True, "as dependence='joint' says")
        if choice == "independent":
            return cls(False, False, False, "as dependence='independent' says")
        if loss.is_decomposable:
            return cls(False, False, False, f"{loss!r} is a sum over labels, for which dependence does not matter")
        if not exists:
            return cls(False, False, False, "the estimator has no joint distribution of the labels")
        if n_labels < 2:
            return cls(False, False, False, "there is only one label")
        if not loss.takes_joint:
            return cls(False, True, False, f"{loss!r} does not take joint distributions")
        return cls(True, True)

    def closed(self, reason: str) -> "DependenceQuestion":
        """Return the question, answered with no for a reason."""
        return replace(self, is_open=False, reason=reason)

    def answered(
        self,
        held_out: Sequence[HeldOut],
        target: Target,
        weight: Floats | None,
        loss: LossLike,
        penalty: PenaltyLike,
    ) -> Dependence:
        """Return what is done, by comparison if the question is open."""
        if not self.is_open:
            return Dependence(self.uses_joint, self.reason)
        if not held_out:
            return Dependence(False, "fewer than two labels varied in training")
        return Dependence.compared(held_out, target.labels, weight, as_loss(loss), as_penalty(penalty))
