"""Are the probabilities what they claim? Decisions are only as good as they are.

`AbstainingClassifier(calibration=…)` calibrates; here is how to see whether it is needed, and whether it has helped.
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
