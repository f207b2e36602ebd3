"""`CredalForestClassifier`: extremely randomised trees with the imprecise Dirichlet model in their leaves."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from abstain._core.joint import Samples
from abstain._utils.errors import InvalidParameter, quoted
from abstain._utils.types import Floats
from abstain.learners._credal import DEFAULT_S, CredalClassifier
from abstain.learners._forest import LabelForest
from abstain.learners._leaf_vectors import leaves_of, vectors_of

N_TREES = 100


class CredalForestClassifier(CredalClassifier):
    """Means over trees of [n / (N + s), (n + s) / (N + s)], where n of the N instances in a leaf have the label.

    The trees are those of the recommended learner (`LabelForest`). The point, `predict_proba`, is the mean of n / N.
    Leaves are small, from two instances on, so that intervals are wide; with a greater s than the instances in a leaf,
    most contain ½. Missing values go to the side of a split that suits the training data. Labels that were constant
    in training are treated as others.

    Parameters
    ----------
    s : float, default=2
        How many instances of unknown outcome the imprecise Dirichlet model adds to each leaf; used when predicting
        only.
    n_trees : int, default=100
    random_state : int, RandomState or None, default=0
        Draws the trees.
    n_jobs : int, default=None
        Trees grown at once. Results do not depend on it.

    Attributes
    ----------
    classes_ : list of n_labels arrays [0, 1]
    forest_ : LabelForest
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        As everywhere in scikit-learn.
    """

    def __init__(
        self, *, s: float = DEFAULT_S, n_trees: int = N_TREES, random_state: Any = 0, n_jobs: int | None = None
    ) -> None:
        self.s = s
        self.n_trees = n_trees
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: Any, labels: NDArray[np.int8], weight: Floats) -> None:
        if not isinstance(self.n_trees, int | np.integer) or isinstance(self.n_trees, bool) or self.n_trees < 1:
            raise InvalidParameter(f"n_trees is {quoted(self.n_trees)}; expected a whole number from 1 on")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.forest_ = LabelForest.fit(X, labels, weight, n_trees=int(self.n_trees), seed=seed, n_jobs=self.n_jobs)

    def label_distribution(self, X: Any) -> Samples:
        """Return the joint distribution of the labels: the label vectors in the leaves. Its marginals are the point."""
        check_is_fitted(self)
        return vectors_of(self.forest_).distribution(leaves_of(self.forest_, self._check_features(X, reset=False)))

    def _point(self, X: Any, s: float) -> Floats:
        return self.forest_.votes(X)

    def _intervals(self, X: Any, s: float) -> tuple[Floats, Floats]:
        return self.forest_.intervals(X, s)
