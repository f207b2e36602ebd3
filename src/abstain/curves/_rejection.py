"""Accuracy–rejection curves: the share of right answers against the share of labels abstained on."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from abstain._core.losses import Loss, LossLike
from abstain._utils.html import chart
from abstain._utils.types import Floats
from abstain._utils.wording import plural
from abstain.curves._bootstrap import Band, Bootstrap
from abstain.curves._break_points import count_errors, merge_scored_paths
from abstain.curves._rates import area_under_rate, coverage_band, divide_by_coverage, rate_at, read_share


@dataclass(frozen=True, eq=False)
class AccuracyRejectionCurve:
    """The share of right answers for each share of abstained labels that some cost leads to.

    Attributes
    ----------
    loss : Loss
    costs : float array of shape (n_points,)
        The cost of an abstention from which on a point holds; increasing.
    rejection : float array of shape (n_points,)
        The share of labels abstained on; decreasing to 0.
    accuracy : float array of shape (n_points,)
        The share of right ones among the answers; nan where there is none.
    band : Band or None
        Confidence band of the accuracy against the rejection.
    """

    loss: Loss
    costs: Floats
    rejection: Floats
    accuracy: Floats
    band: Band | None = None

    @property
    def area(self) -> float:
        """The mean accuracy when all rejections are equally likely; higher is better.

        Between two points the labels to abstain on next are taken to be picked at random. It is 1 minus the area
        under the risk–coverage curve of the error rate.
        """
        return 1.0 - area_under_rate(1.0 - self.rejection, 1.0 - self.accuracy)

    @property
    def ideal_area(self) -> float:
        """1 − e − (1 − e) · ln(1 − e): if all wrong labels, a share e, were abstained on before any right one."""
        error = float(1.0 - self.accuracy[-1])
        return 0.0 if error == 1 else 1.0 - error - (1.0 - error) * float(np.log1p(-error))

    def at(self, rejection: float) -> float:
        """Return the accuracy at any rejection, where labels between two points are picked at random."""
        share = read_share(rejection, "rejection")
        return 1.0 - rate_at(1.0 - share, 1.0 - self.rejection, 1.0 - self.accuracy)

    def __repr__(self) -> str:
        size = f"{plural(len(self.costs), 'point')}, area {self.area:.4g} (ideal {self.ideal_area:.4g})"
        return f"AccuracyRejectionCurve for {self.loss!r}: {size}, accuracy {self.accuracy[-1]:.4g} without rejection"

    def _repr_html_(self) -> str:
        return chart(repr(self), self.rejection, self.accuracy, ("labels left open", "accuracy of the answers"))


def accuracy_rejection_curve(
    y_true: Any,
    probabilities: Any,
    *,
    loss: LossLike = "hamming",
    n_bootstrap: int = 0,
    confidence: float = 0.95,
    random_state: Any = None,
) -> AccuracyRejectionCurve:
    """Right answers / answers against Σ |A| / (n · m): how reliable the answers become with more abstentions.

    Parameters
    ----------
    y_true : array-like of shape (n_instances, n_labels)
        The truth, 0 or 1.
    probabilities : array-like of shape (n_instances, n_labels)
        P(label is relevant), as for `abstain.decide`.
    loss : str or Loss, default="hamming"
        What wrong answers cost, as for `abstain.decide`; not the rank loss, whose rankings answer no label. The loss
        determines on which labels to abstain; right and wrong answers are counted whatever it is.
    n_bootstrap : int, default=0
        Number of bootstrap samples for the curve's ``band``; 0 for no band, 200 will do.
    confidence : float, default=0.95
        The share of the samples that the band holds, at each point by itself.
    random_state : int, Generator or None, default=None
        Draws the samples.

    Returns
    -------
    curve : AccuracyRejectionCurve

    Examples
    --------
    >>> from abstain.curves import accuracy_rejection_curve
    >>> curve = accuracy_rejection_curve([[1, 0], [1, 0]], [[0.9, 0.8], [0.4, 0.1]])
    >>> curve.rejection, curve.accuracy.round(3)
    (array([1.  , 0.5 , 0.25, 0.  ]), array([  nan, 1.   , 0.667, 0.5  ]))
    >>> round(curve.area, 3), round(curve.ideal_area, 3)
    (0.847, 0.847)
    """
    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    merged = merge_scored_paths(probabilities, y_true, loss, "an accuracy–rejection curve")
    known = merged.outcomes
    wrong, _ = count_errors(known, "an accuracy–rejection curve")
    n_entries = len(known) * known.n_labels
    answered = merged.totals(known.answered)
    accuracy = divide_by_coverage((answered - merged.totals(wrong)) / n_entries, answered / n_entries)
    band = None
    if bootstrap:
        errors = coverage_band(merged, wrong, bootstrap, per_answer=True)
        band = Band(1.0 - errors.x[::-1], 1.0 - errors.high[::-1], 1.0 - errors.low[::-1], errors.confidence)
    return AccuracyRejectionCurve(known.loss, merged.costs, (n_entries - answered) / n_entries, accuracy, band)
