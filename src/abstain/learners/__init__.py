"""The learners of the paper and of its extension, by name, and the one we recommend.

Their parts are scikit-learn's; they reach the optima of its per-label loops, with solvers that suit the data.
"""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any

from sklearn.ensemble import ExtraTreesClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline

from abstain.learners._binary import BinaryLogisticRegression, PlattScaledSVM
from abstain.learners._chains import ChainEnsemble
from abstain.learners._nystroem import NystroemMap

__all__ = ["NAMES", "make", "recommended"]


def __dir__() -> list[str]:
    return __all__


STRATEGIES: dict[str, Callable[[Any, Any, int | None], Any]] = {
    "br": lambda base, random_state, n_jobs: MultiOutputClassifier(base, n_jobs=n_jobs),
    "cc": lambda base, random_state, n_jobs: ClassifierChain(base),
    "ecc": lambda base, random_state, n_jobs: ChainEnsemble(base, random_state=random_state, n_jobs=n_jobs),
}
BASES: dict[str, Callable[[], Any]] = {
    "lr": BinaryLogisticRegression,
    "svm": PlattScaledSVM,
    "nystroem-svm": partial(PlattScaledSVM, "linear"),
}
NAMES = tuple(f"{strategy}-{base}" for strategy in STRATEGIES for base in BASES)
"""``br`` binary relevance, ``cc`` a chain, ``ecc`` 50 chains; ``lr`` logistic regression, ``svm``, ``nystroem-svm``."""


N_TREES = 200
MOST_FEATURES_TRIED = 100
VOTES_OF_A_TREE = 300_000  # leaves × labels; with inner nodes and both classes, 32 bytes each


def make(name: str, *, random_state: Any = 0, n_jobs: int | None = None) -> Any:
    """A scikit-learn estimator with ``predict_proba``: how labels are learnt, and by what.

    ==================== ===========================================================================================
    ``br-…``             binary relevance: each label by itself
    ``cc-…``             a classifier chain in the order of the labels: each from the features and the labels before
    ``ecc-…``            the mean of 50 chains in random orders: 50 times the work
    ``…-lr``             logistic regression, C = 1
    ``…-svm``            support vector machine with RBF kernel, Platt-scaled by five-fold cross-validation
    ``…-nystroem-svm``   for large n: a linear one on 500 features of a Nyström map of that kernel (the map is made
                         once, of the features alone; a chain adds its labels to the mapped features)
    ==================== ===========================================================================================

    Parameters
    ----------
    name : str
        One of `NAMES`.
    random_state : int, RandomState or None, default=0
        Draws the orders of an ensemble's chains and the points of a Nyström map.
    n_jobs : int, default=None
        Labels, or chains of an ensemble, fitted at once.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> import abstain
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=3, random_state=0)
    >>> model = abstain.learners.make("br-lr").fit(X, Y)
    >>> abstain.label_probabilities(model, X).shape
    (100, 3)
    """
    if name not in NAMES:
        raise unknown("learner", name, NAMES, ", ".join(NAMES))
    strategy, _, base = name.partition("-")
    learner = STRATEGIES[strategy](BASES[base](), random_state, n_jobs)
    return make_pipeline(NystroemMap(random_state=random_state), learner) if "nystroem" in base else learner


def unknown(what: str, name: str, names: Sequence[str], shown: str) -> ValueError:
    """What to say of a name that is none of the names."""
    close = get_close_matches(str(name).lower(), names, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return ValueError(f"there is no {what} {name!r}{hint} (there are {shown})")


def recommended(n_instances: int, n_features: int, n_labels: int, n_jobs: int | None = None) -> ExtraTreesClassifier:
    """Extremely randomised trees that learn all labels at once: good on most data, fast, and nothing to tune.

    Their votes are no probabilities (they keep off 0 and 1): calibrate them, as `AbstainingClassifier` does. Each split
    tries 30 % of the features, at most 100. Leaves have two instances or more, so many that a tree's votes for all
    labels take about 10 MB. Beyond some 10⁷ instances × labels a linear learner (``br-lr``) is the better choice.
    """
    return ExtraTreesClassifier(
        n_estimators=N_TREES,
        max_features=min(MOST_FEATURES_TRIED, max(1, round(0.3 * n_features))),
        min_samples_leaf=max(2, round(n_instances * n_labels / VOTES_OF_A_TREE)),
        n_jobs=n_jobs,
        random_state=0,
    )
