"""Multi-label classification that knows when to stay silent.

>>> import abstain
>>> abstain.decide([0.97, 0.55, 0.08], loss="hamming", penalty=0.2).labels
array([[ 1, -1,  0]], dtype=int8)
"""

from abstain import exhaustive, metrics
from abstain.decision import decide, risk_profile
from abstain.errors import InvalidLabels, InvalidLoss, InvalidPenalty, InvalidProbabilities
from abstain.losses import FMeasure, Hamming, Jaccard, Loss, Rank, SubsetZeroOne
from abstain.penalties import Concave, Linear, Penalty, PerLabel
from abstain.prediction import ABSTAIN, PartialPrediction, PartialRanking
from abstain.profile import CostPath, RiskProfile
from abstain.properties import Verdict, is_monotone, is_uncertainty_aligned

__all__ = [
    "ABSTAIN",
    "Concave",
    "CostPath",
    "FMeasure",
    "Hamming",
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
    "RiskProfile",
    "SubsetZeroOne",
    "Verdict",
    "decide",
    "exhaustive",
    "is_monotone",
    "is_uncertainty_aligned",
    "metrics",
    "risk_profile",
]
__version__ = "0.1.0"
