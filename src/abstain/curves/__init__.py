"""Exact curves along all costs of an abstention: one point for every cost at which a decision changes.

Every curve lists its points by increasing cost, from abstaining on everything that is not certain to answering
everything; `abstain.decide` at the cost of a point gives the decisions that were scored there, and nothing is sampled
on a grid. The floor imports `_core`, `_utils` and `calibration`. Begin reading at `_break_points.py`, which all curves
are made from, then at `_cost.py`; `_displays.py` draws them.
"""

from abstain.curves._bootstrap import Band
from abstain.curves._capture import ErrorCaptureCurve, error_capture_curve
from abstain.curves._cost import CostCurve, CostPoint, cost_curve
from abstain.curves._coverage import RiskCoverageCurve, risk_coverage_curve
from abstain.curves._displays import (
    AccuracyRejectionDisplay,
    CostCurveDisplay,
    ErrorCaptureDisplay,
    RiskCoverageDisplay,
)
from abstain.curves._labels import LabelTable, label_table
from abstain.curves._rejection import AccuracyRejectionCurve, accuracy_rejection_curve

__all__ = [
    "AccuracyRejectionCurve",
    "AccuracyRejectionDisplay",
    "Band",
    "CostCurve",
    "CostCurveDisplay",
    "CostPoint",
    "ErrorCaptureCurve",
    "ErrorCaptureDisplay",
    "LabelTable",
    "RiskCoverageCurve",
    "RiskCoverageDisplay",
    "accuracy_rejection_curve",
    "cost_curve",
    "error_capture_curve",
    "label_table",
    "risk_coverage_curve",
]


def __dir__() -> list[str]:
    return __all__
