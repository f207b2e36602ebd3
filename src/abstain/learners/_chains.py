"""An ensemble of classifier chains in random orders."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.multioutput import ClassifierChain
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

N_CHAINS = 50


class ChainEnsemble(ClassifierMixin, BaseEstimator):
    """The mean of the probabilities of classifier chains, each with the labels in another random order.

    Parameters
    ----------
    estimator : classifier
        Learns each label from the features and the labels before it.
    n_chains : int, default=50
        Number of chains.
    random_state : int, RandomState or None, default=None
        Draws the orders.
    n_jobs : int, default=None
        Chains fitted at once.
    """

    def __init__(
        self, estimator: Any, n_chains: int = N_CHAINS, *, random_state: Any = None, n_jobs: int | None = None
    ) -> None:
        self.estimator = estimator
        self.n_chains = n_chains
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, Y: Any, **params: Any) -> Self:
        """Fit every chain to all labels, Y of shape (n_instances, n_labels)."""
        Y = np.asarray(Y)
        random = check_random_state(self.random_state)
        orders = [random.permutation(Y.shape[1]) for _ in range(self.n_chains)]
        self.classes_ = [np.array([0, 1])] * Y.shape[1]
        self.chains_ = Parallel(n_jobs=self.n_jobs)(
            delayed(ClassifierChain(clone(self.estimator), order=order).fit)(X, Y, **params) for order in orders
        )
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the mean probabilities of the chains, of shape (n_instances, n_labels)."""
        check_is_fitted(self)
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")  # one table after the other: they can be large
        probabilities = parallel(delayed(chain.predict_proba)(X) for chain in self.chains_)
        total = np.array(next(probabilities))
        for table in probabilities:
            total += table
        return total / len(self.chains_)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return 1 for labels that are more probable than not, else 0."""
        return (self.predict_proba(X) > 0.5).astype(np.int64)
