"""From any classifier to reliable answers, in the way scikit-learn has taught us."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from abstain._core.decision import decide
from abstain._core.losses import LossLike, as_loss
from abstain._core.penalties import PenaltyLike, as_penalty
from abstain._core.prediction import PartialRanking, Prediction
from abstain._core.tables import Matrix, Table, dense
from abstain._core.targets import index_of, read_target, require_same_order
from abstain.calibration._calibrators import METHODS, fit_calibrators
from abstain.learners import recommended
from abstain.learners._fitting import cross_fit, fit_labels, folds_for, require_classifier
from abstain.learners._scorer import AbstentionScorer


class AbstainingClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """argmin E[ℓ(y_D, ŷ_D)] + f(|A|) with the probabilities of any classifier.

    Parameters
    ----------
    estimator : classifier, default=None
        Anything with ``predict_proba``, in whichever shape; with a calibration, ``decision_function`` will do. One that
        knows only single targets learns label by label. A model that is already fitted goes in a
        `sklearn.frozen.FrozenEstimator`: its labels must be in y's order, and it is calibrated on data it has not seen.
        None is the learner we recommend: extremely randomised trees whose votes are calibrated, by a sigmoid unless
        `calibration` says otherwise.
    loss, penalty
        As for `abstain.decide`: what wrong answers cost, and what abstaining costs. Both are used when deciding only,
        so that changing them (``set_params``, or `decide`'s arguments) never fits anything again.
    calibration : {"sigmoid", "isotonic"}, default=None
        Calibrate each label on cross-fitted scores. The estimator itself is fitted to all data.
    cv : int or splitter, default=5
        The folds of cross-fitting. A number means shuffled folds.
    n_jobs : int, default=None
        Folds fitted at once.

    Attributes
    ----------
    classes_ : array of shape (m,)
        The names of the labels, or 0 … m − 1. Of a single target: its classes, which are then the labels.
    label_names_ : tuple or None
        What the labels are called, if that is known.
    estimator_ : classifier
        The fitted clone. It has not seen the labels that were constant in training: these have probability 0 or 1.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from abstain import AbstainingClassifier
    >>> X, Y = make_multilabel_classification(n_samples=300, n_classes=4, random_state=0)
    >>> model = AbstainingClassifier(LogisticRegression(), penalty=0.2).fit(X[:200], Y[:200])
    >>> model.decide(X[200:203])
    PartialPrediction of 3 instances × 4 labels: 25.0% abstained, expected loss 0.3263
       0  1  2  3
    0  ?  0  1  0
    1  1  0  1  0
    2  ?  1  ?  1
    >>> model.predict(X[200:203])
    array([[0, 0, 1, 0],
           [1, 0, 1, 0],
           [1, 1, 0, 1]])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        loss: LossLike = "hamming",
        penalty: PenaltyLike = 0.1,
        calibration: str | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.loss = loss
        self.penalty = penalty
        self.calibration = calibration
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Learn the probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            What the estimator accepts.
        y : n × m table of 0 and 1 (array, frame or sparse matrix), or a vector of classes
            The names of a frame's columns become the names of the labels. A sparse matrix stays sparse for estimators
            that take it: `sklearn.multiclass.OneVsRestClassifier`, and such as are not scikit-learn's.
        **params
            For the estimator's ``fit``, for example ``sample_weight`` (which the calibration then uses too), and with
            scikit-learn's metadata routing also for the splitter.
        """
        if self.calibration not in (None, *METHODS):
            raise ValueError(f"calibration is {self.calibration!r}; expected None, {' or '.join(map(repr, METHODS))}")
        as_loss(self.loss), as_penalty(self.penalty)  # what is wrong with them is said before the work, not after
        method = self.calibration or (None if self.estimator is not None else "sigmoid")
        require_classifier(self._estimator(), calibrated=method is not None)
        self._look_at(X, reset=True)
        target = read_target(y)
        check_consistent_length(X, target.labels)
        require_same_order(X, y)
        estimator, routed = self._estimator(target.labels.shape), self._route(params)
        calibrators = None
        if method is not None:
            scores = cross_fit(
                estimator,
                X,
                target,
                folds_for(self.cv, target),
                n_jobs=None if self.estimator is None else self.n_jobs,  # the trees take the cores themselves
                params=routed.estimator.fit,
                split_params=routed.splitter.split,
            )
            weights = _weights(routed.estimator.fit)
            calibrators = fit_calibrators(scores, dense(target.labels, "y"), method=method, sample_weight=weights)
        model = fit_labels(estimator, X, target, routed.estimator.fit)
        self._model, self._calibrators = model, calibrators
        self._label_type, self._is_single = target.dtype, target.vector is not None
        self.label_names_ = tuple(target.classes.tolist()) if self._is_single else target.label_names
        self.estimator_, self.classes_ = model.estimator, target.classes
        return self

    def predict_proba(self, X: Any) -> Matrix:
        """P(label is relevant | x): one array of shape (n, m), whichever shape the estimator uses.

        It is CSR if the estimator's is and nothing is calibrated; then decisions and predictions are CSR too.
        """
        check_is_fitted(self, "estimator_")
        self._look_at(X, reset=False)
        if self._calibrators is None:
            return self._model.probabilities(X)
        probabilities: NDArray[np.float64] = self._calibrators(self._model.scores(X))
        if self._is_single:  # each class was calibrated against the others, yet exactly one is right
            total = probabilities.sum(axis=1, keepdims=True)
            even = np.full_like(probabilities, 1.0 / probabilities.shape[1])
            return np.divide(probabilities, total, out=even, where=total > 0)
        return probabilities

    def decide(self, X: Any, *, loss: LossLike | None = None, penalty: PenaltyLike | None = None) -> Prediction:
        """Answer the labels that are sure enough, leave the others to a human.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            What the estimator accepts. The index of a frame is kept.
        loss, penalty
            To be used instead of the classifier's own, which None stands for. Complete answers are `predict`'s.
        """
        table = Table(self.predict_proba(X), self.label_names_, index_of(X))
        return decide(table, self.loss if loss is None else loss, self.penalty if penalty is None else penalty)

    def predict(self, X: Any) -> Matrix:
        """The optimal complete prediction for the loss: labels of 0 and 1, for the rank loss positions (0 = first).

        Of a single target: the most probable class.
        """
        probabilities = self.predict_proba(X)
        if self._is_single:
            return self.classes_[dense(probabilities).argmax(axis=1)]
        complete = decide(probabilities, self.loss, penalty="none")
        return complete.positions if isinstance(complete, PartialRanking) else complete.labels.astype(self._label_type)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The negative generalised loss of `decide`, on average: higher is better."""
        check_is_fitted(self, "estimator_")
        require_same_order(X, y)
        target = read_target(y, self.classes_ if self._is_single else None)
        return AbstentionScorer(self.loss, self.penalty).score_of(self.decide(X), target, sample_weight)

    def get_metadata_routing(self) -> MetadataRouter:
        """Who is to be given which of fit's further parameters."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self._estimator(), method_mapping=MethodMapping().add(caller="fit", callee="fit"))
            .add(splitter=check_cv(self.cv), method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )

    def _look_at(self, X: Any, reset: bool) -> None:
        """Number and names of the features; what is in them is the estimator's business."""
        if getattr(X, "ndim", 2) == 1 and getattr(X.dtype, "kind", "O") in "fiub":
            raise ValueError(
                "Expected a 2-D table of features, got a vector. Reshape your data: X.reshape(1, -1) for one instance, "
                "X.reshape(-1, 1) for one feature."
            )
        validate_data(self, X, reset=reset, skip_check_array=True)

    def _estimator(self, target_shape: tuple[int, int] = (1, 1)) -> Any:
        if self.estimator is not None:
            return self.estimator
        n_instances, n_labels = target_shape
        trees = recommended(n_instances, getattr(self, "n_features_in_", 1), n_labels, self.n_jobs)
        return trees.set_fit_request(sample_weight=True) if get_config()["enable_metadata_routing"] else trees

    def _route(self, params: dict[str, Any]) -> Bunch:
        if get_config()["enable_metadata_routing"]:
            return process_routing(self, "fit", **params)
        return Bunch(estimator=Bunch(fit=params), splitter=Bunch(split={}))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self._estimator(), "__sklearn_tags__"):
            tags.input_tags = get_tags(self._estimator()).input_tags
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        return tags


def _weights(params: dict[str, Any]) -> Any:
    """The weights among the fit parameters, be they for the estimator itself or for a step inside."""
    return next((value for name, value in params.items() if name.rpartition("__")[2] == "sample_weight"), None)
