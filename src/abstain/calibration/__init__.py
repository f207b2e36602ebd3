"""Calibration: whether probabilities are as often right as they claim, and how to make them so.

Decisions are only as good as the probabilities. `fit` learns, from scores of any model and the truth, what their
probabilities should be; the other functions measure and draw whether that is needed and whether it has helped. This
floor imports `_core` and `_utils`. Begin reading at `_fit.py`; the methods are in `_methods.py`, the diagnostics in
`_diagnostics.py`.
"""

from abstain.calibration._calibration import Calibration
from abstain.calibration._diagnostics import (
    BrierDecomposition,
    ReliabilityCurve,
    brier_decomposition,
    brier_score_loss,
    calibration_error,
    reliability_curve,
)
from abstain.calibration._display import ReliabilityDisplay
from abstain.calibration._fit import fit

__all__ = [
    "BrierDecomposition",
    "Calibration",
    "ReliabilityCurve",
    "ReliabilityDisplay",
    "brier_decomposition",
    "brier_score_loss",
    "calibration_error",
    "fit",
    "reliability_curve",
]


def __dir__() -> list[str]:
    return __all__
