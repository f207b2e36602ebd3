"""Risk–coverage curves: the loss of the answers against the share of labels answered."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from abstain._core.losses import Loss, LossLike
from abstain._utils.errors import InvalidLoss, InvalidParameter
from abstain._utils.html import chart
from abstain._utils.types import Floats
from abstain._utils.wording import plural
from abstain.curves._bootstrap import Band, Bootstrap
from abstain.curves._break_points import merge_scored_paths
from abstain.curves._rates import area_under_rate, coverage_band, divide_by_coverage, rate_at, read_share


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve:
    """The risk for each share of answered labels that some cost leads to; labels of equal cost are answered together.

    Attributes
    ----------
    loss : Loss
    costs : float array of shape (n_points,)
        The cost of an abstention from which on a point holds; increasing.
    coverage : float array of shape (n_points,)
        The share of labels answered; increasing to 1.
    risk : float array of shape (n_points,)
        The average loss of an instance, or of an answer (nan where there is none).
    per : {"instance", "answer"}
    band : Band or None
        Confidence band of the risk against the coverage.
    """

    loss: Loss
    costs: Floats
    coverage: Floats
    risk: Floats
    per: Literal["instance", "answer"] = "instance"
    band: Band | None = None

    @property
    def area(self) -> float:
        """AURC: the mean risk when all coverages are equally likely; lower is better.

        Between two points, and below the first, the labels that would be answered next are taken to be picked at
        random, so the loss of the answers grows linearly: from 0 without any. Per instance that is the trapezoidal
        rule. Per answer the risk is that line over the coverage.
        """
        if self.per == "answer":
            return area_under_rate(self.coverage, self.risk)
        return float(np.trapezoid(np.append(0.0, self.risk), np.append(0.0, self.coverage)))

    def at(self, coverage: float) -> float:
        """Return the risk at any coverage, where labels between two points are picked at random."""
        share = read_share(coverage, "coverage")
        if self.per == "answer":
            return rate_at(share, self.coverage, self.risk)
        return float(np.interp(share, np.append(0.0, self.coverage), np.append(0.0, self.risk)))

    def __repr__(self) -> str:
        size = f"{plural(len(self.costs), 'point')}, AURC {self.area:.4g}"
        return f"RiskCoverageCurve for {self.loss!r} per {self.per}: {size}, risk {self.risk[-1]:.4g} at full coverage"

    def _repr_html_(self) -> str:
        return chart(repr(self), self.coverage, self.risk, ("coverage", "risk"))


def risk_coverage_curve(
    y_true: Any,
    probabilities: Any,
    *,
    loss: LossLike = "hamming",
    per: Literal["instance", "answer"] = "instance",
    n_bootstrap: int = 0,
    confidence: float = 0.95,
    random_state: Any = None,
) -> RiskCoverageCurve:
    """Σ ℓ(y_D, ŷ_D) / n against Σ |D| / (n · m): what answering more labels costs.

    With ``per="answer"`` it is Σ ℓ(y_D, ŷ_D) / Σ |D|, for the Hamming loss the share of wrong answers: what selective
    classification calls the risk. Other losses are no sums over labels, and are refused.

    Parameters
    ----------
    y_true : array-like of shape (n_instances, n_labels)
        The truth, 0 or 1.
    probabilities : array-like of shape (n_instances, n_labels)
        P(label is relevant), as for `abstain.decide`.
    loss : str or Loss, default="hamming"
        What wrong answers cost, as for `abstain.decide`.
    per : {"instance", "answer"}, default="instance"
        What the loss is divided by.
    n_bootstrap : int, default=0
        Number of bootstrap samples for the curve's ``band``; 0 for no band, 200 will do.
    confidence : float, default=0.95
        The share of the samples that the band holds, at each point by itself.
    random_state : int, Generator or None, default=None
        Draws the samples.

    Returns
    -------
    curve : RiskCoverageCurve

    Examples
    --------
    >>> from abstain.curves import risk_coverage_curve
    >>> curve = risk_coverage_curve([[1, 0], [1, 0]], [[0.9, 0.8], [0.4, 0.1]])
    >>> curve.coverage, curve.risk
    (array([0.  , 0.5 , 0.75, 1.  ]), array([0. , 0. , 0.5, 1. ]))
    >>> curve.area, round(curve.at(0.6), 3)
    (0.25, 0.2)
    """
    if per not in ("instance", "answer"):
        raise InvalidParameter(f"per is {per!r}; expected 'instance' or 'answer'")
    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    merged = merge_scored_paths(probabilities, y_true, loss, "a risk–coverage curve")
    known = merged.outcomes
    if per == "answer" and not known.loss.is_decomposable:
        raise InvalidLoss(
            f"{known.loss!r} is not a sum over labels, so there is no risk per answer; use per='instance', or "
            "accuracy_rejection_curve for the share of wrong answers"
        )
    assert known.realized is not None
    coverage = merged.totals(known.answered) / (len(known) * known.n_labels)
    losses = merged.means(known.realized)
    risk = divide_by_coverage(losses / known.n_labels, coverage) if per == "answer" else losses
    band = coverage_band(merged, known.realized, bootstrap, per_answer=per == "answer") if bootstrap else None
    return RiskCoverageCurve(known.loss, merged.costs, coverage, risk, per, band)
