"""Multi-label classification with partial abstention, optimal for the loss and the cost of abstaining.

>>> import abstain
>>> abstain.decide([0.97, 0.55, 0.08], loss="hamming", penalty=0.2).labels
array([[ 1, -1,  0]], dtype=int8)

Begin with `decide`. The other names follow what comes next: `AbstainingClassifier` (learn, then decide), `metrics` and
`curves` (what abstaining achieves), `budget` and `guarantee` (which penalty to choose), `review` (what humans look at),
`streams` and `integrations` (data that does not fit into memory), `report` (a page to explore).
"""

from importlib import import_module

TYPE_CHECKING = False  # importing typing for it would take longer than all the rest of this module
if TYPE_CHECKING:
    from abstain import (
        budget as budget,
        calibration as calibration,
        curves as curves,
        datasets as datasets,
        experiment as experiment,
        guarantee as guarantee,
        integrations as integrations,
        learners as learners,
        metrics as metrics,
        review as review,
        streams as streams,
    )
    from abstain._core import exhaustive as exhaustive
    from abstain._core.decision import decide as decide, risk_profile as risk_profile
    from abstain._core.intervals import Intervals as Intervals
    from abstain._core.joint import Mixture as Mixture, Samples as Samples
    from abstain._core.losses import (
        DecomposableLoss as DecomposableLoss,
        FMeasure as FMeasure,
        Hamming as Hamming,
        Jaccard as Jaccard,
        Loss as Loss,
        Rank as Rank,
        SubsetZeroOne as SubsetZeroOne,
    )
    from abstain._core.penalties import (
        BoundPenalty as BoundPenalty,
        Capped as Capped,
        Concave as Concave,
        Counting as Counting,
        Linear as Linear,
        Penalty as Penalty,
        PerLabel as PerLabel,
    )
    from abstain._core.predict_proba import label_probabilities as label_probabilities
    from abstain._core.prediction import (
        ABSTAIN as ABSTAIN,
        PartialPrediction as PartialPrediction,
        PartialRanking as PartialRanking,
    )
    from abstain._core.profile import CostPath as CostPath, RiskProfile as RiskProfile
    from abstain._core.properties import (
        Verdict as Verdict,
        is_monotone as is_monotone,
        is_uncertainty_aligned as is_uncertainty_aligned,
    )
    from abstain._core.tables import Table as Table
    from abstain._report import report as report
    from abstain._utils.errors import (
        AbstainError as AbstainError,
        DatasetWarning as DatasetWarning,
        DownloadFailed as DownloadFailed,
        FitFailed as FitFailed,
        InvalidBudget as InvalidBudget,
        InvalidDataset as InvalidDataset,
        InvalidGuarantee as InvalidGuarantee,
        InvalidLabels as InvalidLabels,
        InvalidLoss as InvalidLoss,
        InvalidOutput as InvalidOutput,
        InvalidParameter as InvalidParameter,
        InvalidPenalty as InvalidPenalty,
        InvalidProbabilities as InvalidProbabilities,
        MissingFile as MissingFile,
        NoProbabilities as NoProbabilities,
        ProbabilityWarning as ProbabilityWarning,
        TemporaryFileFailed as TemporaryFileFailed,
    )
    from abstain.learners._classifier import AbstainingClassifier as AbstainingClassifier
    from abstain.learners._distribution import label_distribution as label_distribution
    from abstain.learners._scorer import make_abstention_scorer as make_abstention_scorer
    from abstain.review import ReviewQueue as ReviewQueue, review_queue as review_queue
    from abstain.streams._tables import read_table as read_table, write_table as write_table

__version__ = "0.1.0"

# Nothing is imported before it is first used: a command line that only shows its help, or is interrupted while it
# starts, does not wait for numpy and numba; and deciding needs no scikit-learn. Type checkers read the imports above,
# which must list the same names (tests/test_public.py).
_SUBMODULES = {
    "budget": "abstain.budget",
    "calibration": "abstain.calibration",
    "curves": "abstain.curves",
    "datasets": "abstain.datasets",
    "exhaustive": "abstain._core.exhaustive",
    "experiment": "abstain.experiment",
    "guarantee": "abstain.guarantee",
    "integrations": "abstain.integrations",
    "learners": "abstain.learners",
    "metrics": "abstain.metrics",
    "review": "abstain.review",
    "streams": "abstain.streams",
}
_EXPORTS = {
    "abstain._core.decision": ("decide", "risk_profile"),
    "abstain._core.intervals": ("Intervals",),
    "abstain._core.joint": ("Mixture", "Samples"),
    "abstain._core.losses": ("DecomposableLoss", "FMeasure", "Hamming", "Jaccard", "Loss", "Rank", "SubsetZeroOne"),
    "abstain._core.penalties": ("BoundPenalty", "Capped", "Concave", "Counting", "Linear", "Penalty", "PerLabel"),
    "abstain._core.predict_proba": ("label_probabilities",),
    "abstain._core.prediction": ("ABSTAIN", "PartialPrediction", "PartialRanking"),
    "abstain._core.profile": ("CostPath", "RiskProfile"),
    "abstain._core.properties": ("Verdict", "is_monotone", "is_uncertainty_aligned"),
    "abstain._core.tables": ("Table",),
    "abstain._report": ("report",),
    "abstain._utils.errors": (
        "AbstainError",
        "DatasetWarning",
        "DownloadFailed",
        "FitFailed",
        "InvalidBudget",
        "InvalidDataset",
        "InvalidGuarantee",
        "InvalidLabels",
        "InvalidLoss",
        "InvalidOutput",
        "InvalidParameter",
        "InvalidPenalty",
        "InvalidProbabilities",
        "MissingFile",
        "NoProbabilities",
        "ProbabilityWarning",
        "TemporaryFileFailed",
    ),
    "abstain.learners._classifier": ("AbstainingClassifier",),
    "abstain.learners._distribution": ("label_distribution",),
    "abstain.learners._scorer": ("make_abstention_scorer",),
    "abstain.review": ("ReviewQueue", "review_queue"),
    "abstain.streams._tables": ("read_table", "write_table"),
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}
__all__ = sorted([*_SUBMODULES, *_MODULE_OF])


if not TYPE_CHECKING:  # a type checker would take every misspelt name for one that is found here

    def __getattr__(name):
        if name in _MODULE_OF:
            found = getattr(import_module(_MODULE_OF[name]), name)
        elif name in _SUBMODULES:
            found = import_module(_SUBMODULES[name])
        else:
            raise AttributeError(f"module 'abstain' has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
