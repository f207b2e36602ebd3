"""Learners: the papers' learners by name, the one we recommend, and `AbstainingClassifier`, which wraps any of them.

Their parts are scikit-learn's; they reach the optima of its per-label loops, with solvers that suit the data. The floor
imports `metrics`, `calibration`, `_core` and `_utils`. Begin reading at `_classifier.py`, or, for the learners
themselves, at `_registry.py` (the papers' and credal ones) and `_blend.py` (the one we recommend).
"""

from abstain.learners._recommended import recommended
from abstain.learners._registry import NAMES, make

__all__ = ["NAMES", "make", "recommended"]


def __dir__() -> list[str]:
    return __all__
