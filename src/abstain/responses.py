"""What a fitted classifier says of its labels, in one shape.

scikit-learn's multi-label classifiers answer ``predict_proba`` in several ways: forests, nearest neighbours and
`MultiOutputClassifier` with a list of (n, 2) arrays, chains, one-vs-rest and neural networks with one (n, m) array, and
a label that was constant in training with one column instead of two.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from abstain.errors import InvalidProbabilities

SHORTEST_ODDS = 1e-4  # scores end where the probabilities p and 1 − p get there: ensembles of trees give exact zeros


def label_probabilities(estimator: Any, X: Any) -> NDArray[np.float64]:
    """P(label is relevant | x), from any fitted classifier: always one (n, m) array.

    Parameters
    ----------
    estimator : fitted classifier with ``predict_proba``
        Any of scikit-learn's, or one that behaves alike. Of a single target the classes are the labels.
    X : array-like of shape (n, n_features)
        What the estimator accepts.

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
    response = estimator.predict_proba(X)
    if not isinstance(response, list):
        return np.asarray(response, dtype=np.float64)
    classes = getattr(estimator, "classes_", [np.arange(np.shape(p)[1]) for p in response])
    columns = zip(response, classes, strict=True)
    return np.column_stack([_relevant(np.asarray(p), np.asarray(c), j) for j, (p, c) in enumerate(columns)])


def label_scores(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Log-odds of the probabilities, or the decision function of a classifier without: (n, m), higher is more relevant.

    Calibration works on these: a sigmoid of the log-odds can leave good probabilities as they are.
    """
    if hasattr(estimator, "predict_proba"):
        return logit(np.clip(label_probabilities(estimator, X), SHORTEST_ODDS, 1.0 - SHORTEST_ODDS))
    scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
    return scores if scores.ndim == 2 else np.column_stack([-scores, scores])


def _relevant(probabilities: NDArray[Any], classes: NDArray[Any], j: int) -> NDArray[np.float64]:
    """P(class 1) of a label with the classes 0 and 1, or only one of them."""
    if not np.isin(classes, (0, 1)).all():
        raise InvalidProbabilities(f"predict_proba: label {j} has the classes {classes.tolist()}; expected 0 and 1")
    one = np.flatnonzero(classes == 1)
    return probabilities[:, one[0]].astype(np.float64) if len(one) else np.zeros(len(probabilities))
