"""A probabilistic classifier chain: the labels' joint distribution by the chain rule."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.multioutput import ClassifierChain
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from abstain._core.joint import Samples
from abstain._utils.types import Floats
from abstain.learners._chain_sampling import N_SAMPLES, distribution_of_chains


class ProbabilisticChain(ClassifierMixin, BaseEstimator):
    """P(y | x) = Π P(y_j | x, y_1 … y_{j−1}), with a learner of one label for each factor.

    The fit is that of scikit-learn's `ClassifierChain`. Its probabilities are those of each label given the *predicted*
    labels before it; these are the marginals of the joint distribution (Dembczyński, Cheng, Hüllermeier 2010).

    Parameters
    ----------
    estimator : classifier
        Learns each label from the features and the labels before it.
    order : sequence of int, optional
        The order of the labels in the chain; by default that of the columns.
    samples : int, default=1000
        How many samples represent the joint distribution. If there are no more than that many label vectors, it is
        exact.
    random_state : int, default=0
        Draws the samples.
    """

    def __init__(self, estimator: Any, *, order: Any = None, samples: int = N_SAMPLES, random_state: int = 0) -> None:
        self.estimator = estimator
        self.order = order
        self.samples = samples
        self.random_state = random_state

    def fit(self, X: Any, Y: Any, **params: Any) -> Self:
        """Fit the chain to all labels, Y of shape (n_instances, n_labels)."""
        Y = np.asarray(Y)
        self.classes_ = [np.array([0, 1])] * Y.shape[1]
        self.chain_ = ClassifierChain(clone(self.estimator), order=self.order).fit(X, Y, **params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags

    def label_distribution(self, X: Any) -> Samples:
        """Return the joint distribution of the labels of each instance."""
        check_is_fitted(self)
        return distribution_of_chains([self.chain_], X, samples=self.samples, random_state=self.random_state)

    def predict_proba(self, X: Any) -> Floats:
        """Return the marginals of the joint distribution, of shape (n_instances, n_labels)."""
        return self.label_distribution(X).matrix

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return 1 for labels that are more probable than not, else 0."""
        return (self.predict_proba(X) > 0.5).astype(np.int64)
