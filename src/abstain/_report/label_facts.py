"""What the page shows about the probabilities of each label: how common it is, and how well it is calibrated."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain.calibration._diagnostics import ReliabilityCurve, calibration_error, reliability_curve

BINS: Any = {"n_bins": 20, "strategy": "log-odds", "min_count": 10}  # of a reliability curve


def label_facts(p: NDArray[np.float64], y: NDArray[np.bool_] | None) -> list[dict[str, float | None]]:
    """Return prevalence, mean probability and calibration error of each label; without the truth, only the mean."""
    m = p.shape[1]
    prevalence = [None] * m if y is None else y.mean(axis=0).tolist()
    errors = [None] * m if y is None else np.asarray(calibration_error(y, p, average=None)).tolist()
    return [
        {"prevalence": share, "meanProbability": mean, "calibrationError": error}
        for share, mean, error in zip(prevalence, p.mean(axis=0).tolist(), errors, strict=True)
    ]


def reliability_facts(p: NDArray[np.float64], y: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the reliability curve of all entries, and that of each label, in the bins of `ReliabilityDisplay`."""
    pooled = reliability_curve(y, p, **BINS)
    labels = reliability_curve(y, p, **BINS, average=None)
    return {"pooled": _points(pooled), "labels": [_points(curve) for curve in labels]}


def _points(curve: ReliabilityCurve) -> dict[str, list[float]]:
    low, high = curve.interval()
    lines = {"predicted": curve.predicted, "observed": curve.observed, "low": low, "high": high}
    # Six digits are more than a chart shows, and halve the size for thousands of labels.
    points = {name: [float(f"{value:.6g}") for value in line] for name, line in lines.items()}
    return points | {"count": curve.count.tolist()}
