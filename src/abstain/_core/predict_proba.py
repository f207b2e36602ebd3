"""The probabilities of a fitted classifier, in one shape.

scikit-learn's multi-label classifiers answer ``predict_proba`` in several ways: forests, nearest neighbours and
`MultiOutputClassifier` with a list of (n, 2) arrays, chains, one-vs-rest and neural networks with one (n, m) array, and
a label that was constant in training with one column instead of two. Others, such as skorch, have an axis of classes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.tables import Matrix, dense
from abstain._utils.errors import InvalidProbabilities

SUM_TOLERANCE = 1e-3  # probabilities of half precision add up to 1 as exactly as that


def label_probabilities(estimator: Any, X: Any) -> Matrix:
    """P(label is relevant | x), from any fitted classifier: always one (n, m) array, CSR if the classifier gives that.

    Parameters
    ----------
    estimator : fitted classifier with ``predict_proba``
        Any of scikit-learn's, or a compatible one. If the target was a single vector, the labels are its classes.
    X : array-like of shape (n_instances, n_features)
        Input of the estimator.

    Returns
    -------
    array or CSR array of shape (n_instances, n_labels)
        From (n, m) arrays, lists with an (n, 2) array for each label, and (n, m, 2), (n, 2, m) or (m, n, 2) arrays with
        an axis of two classes. Where a shape such as (n, 2, 2) could mean two things, the axis that adds up to 1 tells
        them apart; (n, n, 2) cannot be told apart, and is refused.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> import abstain
    >>> X, Y = make_multilabel_classification(n_samples=50, n_classes=3, random_state=0)
    >>> model = KNeighborsClassifier().fit(X, Y)
    >>> [p.shape for p in model.predict_proba(X)]
    [(50, 2), (50, 2), (50, 2)]
    >>> abstain.label_probabilities(model, X).shape
    (50, 3)
    """
    if not hasattr(estimator, "predict_proba"):
        raise InvalidProbabilities(
            f"{type(estimator).__name__} has no predict_proba; AbstainingClassifier with a calibration makes "
            "probabilities of a decision function"
        )
    response = estimator.predict_proba(X)
    if isinstance(response, list | tuple):
        classes = getattr(estimator, "classes_", [None] * len(response))
        columns = zip(response, classes, strict=True)
        return np.column_stack([_relevant(np.asarray(p), c, j) for j, (p, c) in enumerate(columns)])
    if sparse.issparse(response):
        return sparse.csr_array(response)
    table = np.asarray(response, dtype=np.float64)
    if table.ndim == 3:
        return _relevant_of_classes(table, X, f"{type(estimator).__name__}.predict_proba")
    if table.ndim != 2:
        raise InvalidProbabilities(f"{type(estimator).__name__}.predict_proba gives an array of shape {table.shape}")
    return table


def _relevant_of_classes(table: NDArray[np.float64], X: Any, what: str) -> NDArray[np.float64]:
    """Return P(class 1) as (n, m) from an array with an axis of two classes, along which it sums to one."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    found: list[NDArray[np.float64]] = []
    if table.shape[2] == 2 and np.allclose(table.sum(axis=2), 1.0, rtol=0.0, atol=SUM_TOLERANCE):
        found += [table[:, :, 1]] if table.shape[0] == n else []  # (n, m, 2), as some neural networks have it
        found += [table[:, :, 1].T] if table.shape[1] == n else []  # (m, n, 2), a stacked list of labels
    if (
        table.shape[1] == 2
        and table.shape[0] == n
        and np.allclose(table.sum(axis=1), 1.0, rtol=0.0, atol=SUM_TOLERANCE)
    ):
        found += [table[:, 1, :]]  # (n, 2, m), as skorch has it
    if not found:
        raise InvalidProbabilities(
            f"{what} gives an array of shape {table.shape} for {n} instances; expected (n, m), or an axis of two "
            "classes whose probabilities add up to 1: (n, m, 2), (n, 2, m) or (m, n, 2)"
        )
    if any(not np.allclose(found[0], other, rtol=0.0, atol=2 * SUM_TOLERANCE) for other in found[1:]):
        raise InvalidProbabilities(
            f"{what} gives an array of shape {table.shape} for {n} instances, which can be read in two ways; pass "
            "another number of instances, or P(label is relevant) as one (n, m) array to abstain.decide"
        )
    return np.ascontiguousarray(found[0])


def is_vector_of_one_label(estimator: Any) -> bool:
    """Whether a classifier was fitted on one label as a vector of 0 and 1, so that it predicts two columns."""
    classes = getattr(estimator, "classes_", None)
    if classes is None or isinstance(classes, list | tuple):
        return False
    return np.shape(classes) == (2,) and list(classes) == [0, 1] and not getattr(estimator, "multilabel_", False)


def label_scores(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Return the probabilities, or the decision function of a classifier without `predict_proba`, to calibrate."""
    if gives_probabilities(estimator):
        probabilities = dense(label_probabilities(estimator, X), "predict_proba")
        if np.isnan(probabilities).any():
            i, j = np.argwhere(np.isnan(probabilities))[0]
            raise InvalidProbabilities(f"predict_proba: row {i}, column {j} is nan")
        return probabilities
    scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
    return scores if scores.ndim == 2 else np.column_stack([-scores, scores])


def gives_probabilities(estimator: Any) -> bool:
    """Whether the scores of a classifier are probabilities; else they are numbers of an unknown scale."""
    return hasattr(estimator, "predict_proba")


def _relevant(probabilities: NDArray[Any], classes: Any, j: int) -> NDArray[np.float64]:
    """Return P(class 1) of a label with the classes 0 and 1, or only one of them."""
    if probabilities.ndim != 2 or (classes is None and probabilities.shape[1] != 2):
        raise InvalidProbabilities(f"predict_proba: label {j} has shape {probabilities.shape}, expected (n, 2)")
    known = np.arange(2) if classes is None else np.asarray(classes)
    if not np.isin(known, (0, 1)).all():
        raise InvalidProbabilities(f"predict_proba: label {j} has the classes {known.tolist()}; expected 0 and 1")
    one = np.flatnonzero(known == 1)
    return probabilities[:, one[0]].astype(np.float64) if len(one) else np.zeros(len(probabilities))
