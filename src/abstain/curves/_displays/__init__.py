"""The curves, drawn: computing them is `abstain.curves`' work.

As in scikit-learn, a display holds what was computed and draws it: ``from_predictions`` and ``from_estimator`` do both,
``plot`` draws again, on other axes or beside another model.
"""

from abstain.curves._displays.capture import ErrorCaptureDisplay
from abstain.curves._displays.cost import CostCurveDisplay
from abstain.curves._displays.coverage import RiskCoverageDisplay
from abstain.curves._displays.rejection import AccuracyRejectionDisplay

__all__ = ["AccuracyRejectionDisplay", "CostCurveDisplay", "ErrorCaptureDisplay", "RiskCoverageDisplay"]
