"""The learners of an experiment, by name: ``br-lr``, ``ecc-lr``, ``trees``, ``br-lr+sigmoid``, …"""

from typing import Any

from abstain import learners
from abstain.calibration._calibrators import METHODS
from abstain.learners._binary import FOLDS as PLATT_FOLDS
from abstain.learners._chains import N_CHAINS
from abstain.learners._classifier import AbstainingClassifier

FOLDS = 5  # of the calibration
NAMES = tuple(f"{base}{suffix}" for base in (*learners.NAMES, "trees") for suffix in ("", *(f"+{m}" for m in METHODS)))
"""The papers' learners and the trees we recommend, each as it is or with its labels calibrated."""


def require_learner(name: str) -> None:
    """Raise ValueError if there is no such learner."""
    if name not in NAMES:
        calibrated = " or ".join(f"+{method}" for method in METHODS)
        shown = f"{', '.join(learners.NAMES)} and trees, each as it is or with {calibrated}"
        raise learners.unknown("learner", name, NAMES, shown)


def make(name: str, shape: tuple[int, int, int], seed: int) -> AbstainingClassifier:
    """The learner for so many training instances, features and labels."""
    base, _, calibration = name.partition("+")
    if base == "trees":
        estimator: Any = learners.recommended(*shape).set_params(random_state=seed)
    else:
        estimator = learners.make(base, random_state=seed)
    return AbstainingClassifier(estimator, calibration=calibration or None, cv=FOLDS)


def settings(model: AbstainingClassifier) -> dict[str, str]:
    """All that determines what the model learns."""
    parameters: dict[str, Any] = model.get_params(deep=True)
    return {
        key: type(value).__name__ if hasattr(value, "get_params") else repr(value)
        for key, value in sorted(parameters.items())
    }


def n_fits(name: str, n_labels: int) -> int:
    """How many models of one label, or trees, it takes."""
    base, _, calibration = name.partition("+")
    once = learners.N_TREES if base == "trees" else n_labels * (N_CHAINS if base.startswith("ecc") else 1)
    platt = 1 + PLATT_FOLDS if base.endswith("svm") else 1
    return once * platt * (1 + FOLDS if calibration else 1)


def work(name: str, shape: tuple[int, int, int]) -> float:
    """About how many seconds it takes, so that a long fit counts for more in the progress than a short one."""
    n, d, m = shape
    base = name.partition("+")[0]
    width = d + (0 if base.startswith("br") else m / 2)
    if base == "trees":
        once = 1e-7 * n * d
    elif base.endswith("-lr"):
        once = 5e-4 + 4e-10 * n * width**2
    elif "nystroem" in base:
        once = 2e-5 * n
    else:
        once = 1e-2 + 3e-10 * n**2 * width
    return n_fits(name, m) * once
