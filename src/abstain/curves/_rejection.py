"""How often answers are right against how many labels are left open."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from abstain._core.losses import Loss, LossLike
from abstain._utils.html import chart
from abstain._utils.types import Floats
from abstain._utils.wording import plural
from abstain.curves._bootstrap import Band, Bootstrap
from abstain.curves._break_points import require_answers, scored_sweep
from abstain.curves._coverage import area_under_rate, band_of_coverage, rate, rate_at, read_share


@dataclass(frozen=True, eq=False)
class AccuracyRejectionCurve:
    """The share of right answers for each share of open labels that some cost leads to."""

    loss: Loss
    costs: Floats
    """From which cost on, increasing."""
    rejection: Floats
    """The share of labels left open, decreasing to 0."""
    accuracy: Floats
    """The share of right ones among the answers; nan where there is none."""
    band: Band | None = None
    """Against the rejection."""

    @property
    def area(self) -> float:
        """The mean accuracy when all rejections are equally likely; higher is better.

        Between two points the labels that would be left open next are taken to be picked at random. It is 1 minus the
        area under the risk–coverage curve of the error rate.
        """
        return 1.0 - area_under_rate(1.0 - self.rejection, 1.0 - self.accuracy)

    @property
    def ideal_area(self) -> float:
        """1 − e − (1 − e) · ln(1 − e): if the wrong labels of all, a share e, were left open before any right one."""
        error = float(1.0 - self.accuracy[-1])
        return 0.0 if error == 1 else 1.0 - error - (1.0 - error) * float(np.log1p(-error))

    def at(self, rejection: float) -> float:
        """The accuracy at any rejection, where labels between two points are picked at random."""
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
    """Right answers / answers against Σ |A| / (n · m): how reliable the answers become as more labels are left open.

    Parameters
    ----------
    probabilities, loss
        As for `abstain.decide`; not the rank loss, whose rankings answer no label. The loss says which labels are left
        open; right and wrong answers are counted whatever it is.
    y_true : n × m table of 0 and 1
    n_bootstrap, confidence, random_state
        As for `cost_curve`.

    Examples
    --------
    >>> from abstain.curves import accuracy_rejection_curve
    >>> curve = accuracy_rejection_curve([[1, 0], [1, 0]], [[0.9, 0.8], [0.4, 0.1]])
    >>> curve.rejection, curve.accuracy.round(3)
    (array([1.  , 0.5 , 0.25, 0.  ]), array([  nan, 1.   , 0.667, 0.5  ]))
    >>> round(curve.area, 3), round(curve.ideal_area, 3)
    (0.847, 0.847)
    """
    draws = Bootstrap(n_bootstrap, confidence, random_state)
    found = scored_sweep(probabilities, y_true, loss, "an accuracy–rejection curve")
    known = found.outcomes
    wrong, _ = require_answers(known, "an accuracy–rejection curve")
    size = len(known) * known.n_labels
    answered = found.totals(known.answered)
    accuracy = rate((answered - found.totals(wrong)) / size, answered / size)
    band = None
    if draws:
        errors = band_of_coverage(found, wrong, known.n_labels, draws)
        band = Band(1.0 - errors.x[::-1], 1.0 - errors.high[::-1], 1.0 - errors.low[::-1], errors.confidence)
    return AccuracyRejectionCurve(known.loss, found.costs, (size - answered) / size, accuracy, band)
