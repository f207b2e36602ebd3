"""Calibration: whether probabilities are as often right as they claim, and how to make them so.

Decisions are only as good as the probabilities; `AbstainingClassifier(calibration=…)` calibrates, and this floor
measures and draws whether that is needed and whether it has helped. It imports `_core` and `_utils`. Begin reading at
`_diagnostics.py`; `_display.py` draws its reliability curves, `_calibrators.py` is used by `learners`.
"""

from abstain.calibration._diagnostics import (
    BrierDecomposition,
    ReliabilityCurve,
    brier_decomposition,
    brier_score_loss,
    calibration_error,
    reliability_curve,
)
from abstain.calibration._display import ReliabilityDisplay

__all__ = [
    "BrierDecomposition",
    "ReliabilityCurve",
    "ReliabilityDisplay",
    "brier_decomposition",
    "brier_score_loss",
    "calibration_error",
    "reliability_curve",
]


def __dir__() -> list[str]:
    return __all__
