"""Multi-label classification that knows when to stay silent.

>>> import abstain
>>> abstain.decide([0.97, 0.55, 0.08], loss="hamming", penalty=0.2).labels
array([[ 1, -1,  0]], dtype=int8)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from abstain import budget, exhaustive, metrics
from abstain.decision import decide, risk_profile
from abstain.errors import (
    DownloadFailed,
    FitFailed,
    InvalidBudget,
    InvalidDataset,
    InvalidGuarantee,
    InvalidLabels,
    InvalidLoss,
    InvalidPenalty,
    InvalidProbabilities,
)
from abstain.losses import DecomposableLoss, FMeasure, Hamming, Jaccard, Loss, Rank, SubsetZeroOne
from abstain.matrix import Table
from abstain.penalties import Capped, Concave, Linear, Penalty, PerLabel
from abstain.prediction import ABSTAIN, PartialPrediction, PartialRanking
from abstain.profile import CostPath, RiskProfile
from abstain.properties import Verdict, is_monotone, is_uncertainty_aligned
from abstain.reviews import ReviewQueue, review_queue
from abstain.tables import read_table, write_table

if TYPE_CHECKING:
    from abstain import calibration, curves, datasets, displays, experiment, guarantee, learners, streams
    from abstain.classifier import AbstainingClassifier
    from abstain.reporting import report
    from abstain.responses import label_probabilities
    from abstain.scoring import make_abstention_scorer

__all__ = [
    "ABSTAIN",
    "AbstainingClassifier",
    "Capped",
    "Concave",
    "CostPath",
    "DecomposableLoss",
    "DownloadFailed",
    "FMeasure",
    "FitFailed",
    "Hamming",
    "InvalidBudget",
    "InvalidDataset",
    "InvalidGuarantee",
    "InvalidLabels",
    "InvalidLoss",
    "InvalidPenalty",
    "InvalidProbabilities",
    "Jaccard",
    "Linear",
    "Loss",
    "PartialPrediction",
    "PartialRanking",
    "Penalty",
    "PerLabel",
    "Rank",
    "ReviewQueue",
    "RiskProfile",
    "SubsetZeroOne",
    "Table",
    "Verdict",
    "budget",
    "calibration",
    "curves",
    "datasets",
    "decide",
    "displays",
    "exhaustive",
    "experiment",
    "guarantee",
    "is_monotone",
    "is_uncertainty_aligned",
    "label_probabilities",
    "learners",
    "make_abstention_scorer",
    "metrics",
    "read_table",
    "report",
    "review_queue",
    "risk_profile",
    "streams",
    "write_table",
]
__version__ = "0.1.0"

# What needs scikit-learn is imported when it is first asked for: deciding needs none of it.
_LATER = {
    "AbstainingClassifier": "abstain.classifier",
    "calibration": "abstain",
    "curves": "abstain",
    "datasets": "abstain",
    "displays": "abstain",
    "experiment": "abstain",
    "guarantee": "abstain",
    "label_probabilities": "abstain.responses",
    "learners": "abstain",
    "make_abstention_scorer": "abstain.scoring",
    "report": "abstain.reporting",
    "streams": "abstain",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'abstain' has no attribute {name!r}")
    home = _LATER[name]
    return import_module(f"abstain.{name}") if home == "abstain" else getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
