"""What abstaining buys, along all costs: exact curves, one point for every cost at which a decision changes.

Every curve lists its points by increasing cost, from leaving open all that is not certain to answering everything;
`abstain.decide` at the cost of a point gives the decisions that were scored there. Nothing is sampled on a grid.
"""

from abstain.curves.bootstrap import Band
from abstain.curves.capture import ErrorCaptureCurve, error_capture_curve
from abstain.curves.cost import CostCurve, CostPoint, cost_curve
from abstain.curves.coverage import RiskCoverageCurve, risk_coverage_curve
from abstain.curves.labels import LabelTable, label_table
from abstain.curves.rejection import AccuracyRejectionCurve, accuracy_rejection_curve

__all__ = [
    "AccuracyRejectionCurve",
    "Band",
    "CostCurve",
    "CostPoint",
    "ErrorCaptureCurve",
    "LabelTable",
    "RiskCoverageCurve",
    "accuracy_rejection_curve",
    "cost_curve",
    "error_capture_curve",
    "label_table",
    "risk_coverage_curve",
]
