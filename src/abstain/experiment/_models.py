"""The learners of an experiment, by name: ``br-lr``, ``ecc-lr``, ``trees``, ``br-lr+sigmoid``, …"""

from typing import Any

from abstain._core.prediction import PartialPrediction
from abstain._utils.errors import InvalidParameter
from abstain._utils.suggestions import did_you_mean
from abstain.calibration._methods import NAMES as METHODS
from abstain.learners._classifier import AbstainingClassifier
from abstain.learners._recommended import N_TREES, TREES_TITLE, extra_trees, seconds_to_fit_trees
from abstain.learners._registry import LEARNERS

TREES = "trees"
CALIBRATION_FOLDS = 5
CALIBRATIONS = tuple(method for method in METHODS if method != "none")
NAMES = tuple(f"{base}{suffix}" for base in (*LEARNERS, TREES) for suffix in ("", *(f"+{m}" for m in CALIBRATIONS)))
"""The papers' learners and extremely randomised trees, each as it is or with its labels calibrated."""


def require_learner(name: str) -> None:
    """Raise `InvalidParameter` if there is no such learner."""
    if name not in NAMES:
        calibrated = ", ".join(f"+{method}" for method in CALIBRATIONS)
        raise InvalidParameter(
            f"there is no learner {name!r}{did_you_mean(name, NAMES, normalize=str.lower)} "
            f"(there are {', '.join(LEARNERS)} and {TREES}, each as it is or with {calibrated})"
        )


def make(name: str, shape: tuple[int, int, int], random_state: int) -> AbstainingClassifier[PartialPrediction]:
    """Return the learner for training data of this shape: (n_instances, n_features, n_labels)."""
    base, _, calibration = name.partition("+")
    if base == TREES:
        n, d, m = shape
        estimator: Any = extra_trees(n_instances=n, n_features=d, n_labels=m, random_state=random_state)
    else:
        estimator = LEARNERS[base].make(random_state=random_state, n_jobs=None)
    return AbstainingClassifier(estimator, calibration=calibration or None, cv=CALIBRATION_FOLDS)


def settings(model: AbstainingClassifier[PartialPrediction]) -> dict[str, str]:
    """Return all parameters that determine what the model learns."""
    parameters: dict[str, Any] = model.get_params(deep=True)
    return {
        key: type(value).__name__ if hasattr(value, "get_params") else repr(value)
        for key, value in sorted(parameters.items())
    }


def title(name: str) -> str:
    """Return the learner in words; the name itself, if it is not known."""
    base, _, calibration = name.partition("+")
    words = TREES_TITLE if base == TREES else LEARNERS[base].title if base in LEARNERS else base
    return f"{words}, {calibration} calibration" if calibration else words


def n_fits(name: str, n_labels: int) -> int:
    """Return how many models of one label, or trees, are fitted."""
    base, _, calibration = name.partition("+")
    return _n_repeats(calibration) * (N_TREES if base == TREES else LEARNERS[base].n_fits(n_labels))


def seconds(name: str, shape: tuple[int, int, int]) -> float:
    """Return roughly how long a fit takes, so that a long one counts for more in the progress than a short one."""
    base, _, calibration = name.partition("+")
    once = seconds_to_fit_trees(*shape[:2]) if base == TREES else LEARNERS[base].seconds(*shape)
    return _n_repeats(calibration) * once


def _n_repeats(calibration: str) -> int:
    """Return how often a learner is fitted: once, and for a calibration once more for each fold."""
    return 1 + CALIBRATION_FOLDS if calibration else 1
