"""Multi-label classification that knows when to stay silent.

>>> import abstain
>>> abstain.decide([0.97, 0.55, 0.08], loss="hamming", penalty=0.2).labels
array([[ 1, -1,  0]], dtype=int8)
"""

from importlib import import_module

TYPE_CHECKING = False  # importing typing for it would take longer than all the rest of this module
if TYPE_CHECKING:
    from typing import Any

    from abstain import (
        budget,
        calibration,
        curves,
        datasets,
        displays,
        exhaustive,
        experiment,
        guarantee,
        learners,
        metrics,
        streams,
    )
    from abstain.classifier import AbstainingClassifier
    from abstain.decision import decide, risk_profile
    from abstain.errors import (
        DatasetWarning,
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
    from abstain.reporting import report
    from abstain.responses import label_probabilities
    from abstain.reviews import ReviewQueue, review_queue
    from abstain.scoring import make_abstention_scorer
    from abstain.tables import read_table, write_table

__all__ = [
    "ABSTAIN",
    "AbstainingClassifier",
    "Capped",
    "Concave",
    "CostPath",
    "DatasetWarning",
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

# Nothing is imported before it is first asked for: a command line that only shows its help, or is interrupted while it
# starts, does not wait for numpy and numba; and deciding needs no scikit-learn.
_HOMES = {
    "abstain.classifier": ("AbstainingClassifier",),
    "abstain.decision": ("decide", "risk_profile"),
    "abstain.errors": (
        "DatasetWarning",
        "DownloadFailed",
        "FitFailed",
        "InvalidBudget",
        "InvalidDataset",
        "InvalidGuarantee",
        "InvalidLabels",
        "InvalidLoss",
        "InvalidPenalty",
        "InvalidProbabilities",
    ),
    "abstain.losses": ("DecomposableLoss", "FMeasure", "Hamming", "Jaccard", "Loss", "Rank", "SubsetZeroOne"),
    "abstain.matrix": ("Table",),
    "abstain.penalties": ("Capped", "Concave", "Linear", "Penalty", "PerLabel"),
    "abstain.prediction": ("ABSTAIN", "PartialPrediction", "PartialRanking"),
    "abstain.profile": ("CostPath", "RiskProfile"),
    "abstain.properties": ("Verdict", "is_monotone", "is_uncertainty_aligned"),
    "abstain.reporting": ("report",),
    "abstain.responses": ("label_probabilities",),
    "abstain.reviews": ("ReviewQueue", "review_queue"),
    "abstain.scoring": ("make_abstention_scorer",),
    "abstain.tables": ("read_table", "write_table"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> "Any":
    if name in _HOME_OF:
        found = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = found
        return found
    if not name.startswith("_"):
        try:
            return import_module(f"abstain.{name}")
        except ModuleNotFoundError as reason:
            if reason.name != f"abstain.{name}":
                raise
    raise AttributeError(f"module 'abstain' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
