"""A Nyström map of the RBF kernel, for data that are too large for a kernel machine."""

from typing import Any, Self

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.kernel_approximation import Nystroem
from sklearn.utils.validation import check_is_fitted, validate_data


class NystroemMap(TransformerMixin, BaseEstimator):
    """φ with φ(x)·φ(z) ≈ exp(−γ‖x − z‖²), γ = 1 / (number of features × variance of X): `SVC`'s default kernel.

    Parameters
    ----------
    n_components : int, default=500
        Number of instances that span the map; all of them, if there are fewer.
    random_state : int, RandomState or None, default=None
        Draws these instances.
    """

    def __init__(self, n_components: int = 500, *, random_state: Any = None) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the instances and the width of the kernel."""
        X = validate_data(self, X, accept_sparse="csr")
        variance = X.multiply(X).mean() - X.mean() ** 2 if hasattr(X, "multiply") else X.var()
        gamma = 1.0 / (X.shape[1] * variance) if variance else 1.0
        components = min(self.n_components, X.shape[0])
        self.map_ = Nystroem(gamma=gamma, n_components=components, random_state=self.random_state).fit(X)
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of the map, of shape (n_instances, n_components)."""
        check_is_fitted(self)
        return self.map_.transform(validate_data(self, X, accept_sparse="csr", reset=False))
