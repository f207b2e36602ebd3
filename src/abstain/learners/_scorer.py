"""A scorer for model selection: the generalised loss of a model that may abstain."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from abstain._core.decision import decide_table
from abstain._core.losses import LossLike, as_loss
from abstain._core.penalties import PenaltyLike, as_penalty
from abstain._core.predict_proba import is_vector_of_one_label, label_probabilities
from abstain._core.prediction import Prediction
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Table
from abstain._core.targets import Target, read_target
from abstain.metrics import generalized_loss


class AbstentionScorer(BaseEstimator):
    """−(ℓ(y_D, ŷ_D) + f(|A|)) of the optimal partial predictions, on average: higher is better.

    A callable ``scorer(estimator, X, y)`` for any classifier with ``predict_proba``, as `make_abstention_scorer` gives.
    """

    def __init__(self, *, loss: LossLike = "hamming", penalty: PenaltyLike = 0.1) -> None:
        self.loss = loss
        self.penalty = penalty

    def score(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of a fitted classifier; instances may be weighted."""
        probabilities = label_probabilities(estimator, X)
        target = read_target(y, getattr(estimator, "classes_", None) if np.ndim(y) == 1 else None)
        if target.labels.shape[1] == 1 and is_vector_of_one_label(estimator):
            probabilities = probabilities[:, 1:]
        table = Table(probabilities, getattr(estimator, "label_names_", None))
        prediction = decide_table(Probabilities(table), as_loss(self.loss), as_penalty(self.penalty))
        return self.score_prediction(prediction, target, sample_weight)

    __call__ = score

    def score_prediction(self, prediction: Prediction, target: Target, sample_weight: Any) -> float:
        """Return the score of a given prediction."""
        truth = Table(target.labels, target.label_names)
        losses = generalized_loss(truth, prediction, loss=self.loss, penalty=self.penalty, per_instance=True)
        return -float(np.average(losses, weights=sample_weight))


def make_abstention_scorer(*, loss: LossLike = "hamming", penalty: PenaltyLike = 0.1) -> AbstentionScorer:
    """Return a scorer for `GridSearchCV`, `cross_validate` and the like: −(ℓ(y_D, ŷ_D) + f(|A|)), higher is better.

    It decides from the probabilities of any classifier, so that models are chosen by their generalised loss when they
    may abstain. The penalty is what an abstention costs you: a given, not a parameter to search.

    Parameters
    ----------
    loss : str or Loss, default="hamming"
        What wrong answers cost, as for `abstain.decide`.
    penalty : number, str or Penalty, default=0.1
        What abstaining costs, as for `abstain.decide`.

    Returns
    -------
    scorer : callable ``scorer(estimator, X, y, sample_weight=None)``

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from abstain import make_abstention_scorer
    >>> X, Y = make_multilabel_classification(n_samples=200, n_classes=3, random_state=0)
    >>> search = GridSearchCV(
    ...     KNeighborsClassifier(), {"n_neighbors": [1, 5, 25]}, scoring=make_abstention_scorer(loss="f1", penalty=0.05)
    ... )
    >>> search.fit(X, Y).best_params_
    {'n_neighbors': 25}
    """
    as_loss(loss), as_penalty(penalty)  # mistakes raise errors here, not in the middle of a search
    return AbstentionScorer(loss=loss, penalty=penalty)
