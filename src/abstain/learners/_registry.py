"""Learners by name: the papers', a strategy (how labels are learnt) with a base (what learns one); and credal ones."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils import check_random_state

from abstain._utils.errors import InvalidParameter
from abstain._utils.suggestions import did_you_mean
from abstain.learners._binary import PLATT_FOLDS, BinaryLogisticRegression, PlattScaledSVM
from abstain.learners._chains import N_CHAINS, ChainEnsemble
from abstain.learners._credal_forest import N_TREES, CredalForestClassifier
from abstain.learners._naive_credal import NaiveCredalClassifier
from abstain.learners._nystroem import NystroemMap
from abstain.learners._probabilistic_chain import ProbabilisticChain


@dataclass(frozen=True)
class Strategy:
    """How labels are learnt by learners of one label."""

    name: str
    title: str
    make: Callable[[Any, Any, int | None], Any]
    """(base learner, random_state, n_jobs) → classifier of all labels."""
    n_fits_per_label: int = 1
    uses_other_labels: bool = True
    """Whether a label is also learnt from other labels, so that there are more features."""


@dataclass(frozen=True)
class Base:
    """A learner of one label."""

    name: str
    title: str
    make: Callable[[], Any]
    seconds_per_fit: Callable[[int, float], float]
    """(n_instances, n_features) → roughly how long one fit takes."""
    n_fits: int = 1
    """Models fitted for one label, cross-validation included."""
    on_nystroem_map: bool = False


@dataclass(frozen=True)
class Learner:
    """A strategy with a base."""

    strategy: Strategy
    base: Base

    @property
    def name(self) -> str:
        """The name of the learner, for example ``"br-lr"``."""
        return f"{self.strategy.name}-{self.base.name}"

    @property
    def title(self) -> str:
        """The learner in words."""
        return f"{self.strategy.title} with {self.base.title}"

    def make(self, *, random_state: Any, n_jobs: int | None) -> Any:
        """Return the classifier, not fitted."""
        learner = self.strategy.make(self.base.make(), random_state, n_jobs)
        return make_pipeline(NystroemMap(random_state=random_state), learner) if self.base.on_nystroem_map else learner

    def n_fits(self, n_labels: int) -> int:
        """Return how many models of one label are fitted."""
        return n_labels * self.strategy.n_fits_per_label * self.base.n_fits

    def seconds(self, n_instances: int, n_features: int, n_labels: int) -> float:
        """Return roughly how long a fit takes on one core."""
        width = n_features + (n_labels / 2 if self.strategy.uses_other_labels else 0)
        return self.n_fits(n_labels) * self.base.seconds_per_fit(n_instances, width)


@dataclass(frozen=True)
class CredalLearner:
    """A learner of all labels that gives intervals of probabilities, too."""

    name: str
    title: str
    make_classifier: Callable[[Any, int | None], Any]
    """(random_state, n_jobs) → classifier."""
    n_fits: Callable[[int], int]
    """n_labels → how many models of one label, or trees, are fitted."""
    seconds: Callable[[int, int, int], float]
    """(n_instances, n_features, n_labels) → roughly how long a fit takes on one core."""

    def make(self, *, random_state: Any, n_jobs: int | None) -> Any:
        """Return the classifier, not fitted."""
        return self.make_classifier(random_state, n_jobs)


STRATEGIES = (
    Strategy(
        "br",
        "binary relevance",
        lambda base, random_state, n_jobs: MultiOutputClassifier(base, n_jobs=n_jobs),
        uses_other_labels=False,
    ),
    Strategy("cc", "classifier chain", lambda base, random_state, n_jobs: ClassifierChain(base)),
    Strategy(
        "ecc",
        "ensemble of classifier chains",
        lambda base, random_state, n_jobs: ChainEnsemble(base, random_state=random_state, n_jobs=n_jobs),
        n_fits_per_label=N_CHAINS,
    ),
)
BASES = (
    Base("lr", "logistic regression", BinaryLogisticRegression, lambda n, d: 5e-4 + 4e-10 * n * d**2),
    Base(
        "svm",
        "support vector machines",
        PlattScaledSVM,
        lambda n, d: 1e-2 + 3e-10 * n**2 * d,
        n_fits=1 + PLATT_FOLDS,
    ),
    Base(
        "nystroem-svm",
        "Nyström-approximated SVMs",
        partial(PlattScaledSVM, "linear"),
        lambda n, d: 2e-5 * n,
        n_fits=1 + PLATT_FOLDS,
        on_nystroem_map=True,
    ),
)
PROBABILISTIC_CHAIN = Learner(
    Strategy(
        "pcc",
        "probabilistic classifier chain",
        lambda base, random_state, n_jobs: ProbabilisticChain(
            base, random_state=int(check_random_state(random_state).randint(2**31 - 1))
        ),
    ),
    BASES[0],
)
CREDAL = (
    CredalLearner(
        "ncc",
        "naive credal classifiers",
        lambda random_state, n_jobs: NaiveCredalClassifier(),
        lambda n_labels: n_labels,
        lambda n, d, m: 1e-2 + 2e-8 * n * d + 1e-9 * n * d * m,
    ),
    CredalLearner(
        "credal-forest",
        "credal trees",
        lambda random_state, n_jobs: CredalForestClassifier(random_state=random_state, n_jobs=n_jobs),
        lambda n_labels: N_TREES,
        lambda n, d, m: N_TREES * 1e-7 * n * d,
    ),
)
LEARNERS: dict[str, Learner | CredalLearner] = {
    **{learner.name: learner for learner in (Learner(strategy, base) for strategy in STRATEGIES for base in BASES)},
    PROBABILISTIC_CHAIN.name: PROBABILISTIC_CHAIN,
    **{learner.name: learner for learner in CREDAL},
}
NAMES = tuple(LEARNERS)
"""``br`` binary relevance, ``cc`` a chain, ``ecc`` 50 chains; ``lr`` logistic regression, ``svm``, ``nystroem-svm``.

``pcc-lr`` is a chain whose probabilities are the marginals of its joint distribution.
And, with intervals of probabilities, ``ncc``, the naive credal classifier, and ``credal-forest``, credal trees.
"""


def make(name: str, *, random_state: Any = 0, n_jobs: int | None = None) -> Any:
    """Return a scikit-learn estimator with ``predict_proba``: how labels are learnt, and by what.

    ==================== ===========================================================================================
    ``br-…``             binary relevance: each label by itself
    ``cc-…``             a classifier chain in the order of the labels: each from the features and the labels before
    ``ecc-…``            the mean of 50 chains in random orders: 50 times the work
    ``pcc-lr``           a probabilistic classifier chain: the joint distribution of the labels by the chain rule, and
                         its marginals, sampled where there are more than 1000 label vectors
    ``…-lr``             logistic regression, C = 1
    ``…-svm``            support vector machine with RBF kernel, Platt-scaled by five-fold cross-validation
    ``…-nystroem-svm``   for large n: a linear one on 500 features of a Nyström map of that kernel (the map is made
                         once, of the features alone; a chain adds its labels to the mapped features)
    ``ncc``              naive credal classifier of each label by itself: naive Bayes on binned features, with intervals
    ``credal-forest``    extremely randomised trees, with intervals from the numbers of instances in their leaves
    ==================== ===========================================================================================

    Parameters
    ----------
    name : str
        One of `NAMES`.
    random_state : int, RandomState or None, default=0
        Draws the orders of an ensemble's chains, the points of a Nyström map, and trees.
    n_jobs : int, default=None
        Labels, chains of an ensemble, or trees, fitted at once.

    Returns
    -------
    estimator : classifier
        Not fitted. The credal ones also have ``predict_intervals(X)``, a tuple of the lower and the upper probabilities
        (``abstain.Intervals(*model.predict_intervals(X))`` is for `decide`): those that all priors of s instances
        allow, by the imprecise Dirichlet model (parameter ``s``, 2 by default).

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> import abstain
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=3, random_state=0)
    >>> model = abstain.learners.make("br-lr").fit(X, Y)
    >>> abstain.label_probabilities(model, X).shape
    (100, 3)

    Intervals of probabilities, which grow with s:

    >>> model = abstain.learners.make("ncc").set_params(s=1).fit(X, Y)
    >>> lower, upper = model.predict_intervals(X[:2])
    >>> lower.shape, upper.shape
    ((2, 3), (2, 3))
    """
    if name not in NAMES:
        hint = did_you_mean(name, NAMES, normalize=str.lower)
        raise InvalidParameter(f"there is no learner {name!r}{hint} (there are {', '.join(NAMES)})")
    return LEARNERS[name].make(random_state=random_state, n_jobs=n_jobs)
