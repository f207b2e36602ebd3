"""`AbstainingClassifier`: any classifier with optimal partial abstention, as a scikit-learn estimator."""

from typing import Any, Generic, Self, overload

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, _safe_indexing, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from abstain._core.decision import decide_table
from abstain._core.intervals import IntervalRule, Intervals
from abstain._core.joint import Joint, Mixture, Samples
from abstain._core.losses import LabelLossLike, Loss, LossLike, RankingLossLike, as_loss
from abstain._core.penalties import PenaltyLike, as_penalty
from abstain._core.predict_proba import gives_probabilities
from abstain._core.prediction import PartialPrediction, PartialRanking, Prediction, PredictionT
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Matrix, Table, dense
from abstain._core.targets import Target, index_of, read_target, require_same_order
from abstain._utils.errors import InvalidParameter, quoted
from abstain._utils.types import Floats
from abstain.calibration import Calibration, fit as fit_calibration
from abstain.calibration._methods import require_method
from abstain.learners._blend import BlendedClassifier
from abstain.learners._dependence import DEPENDENCES, DependenceChoice, DependenceQuestion
from abstain.learners._distribution import (
    SUPPORTED,
    Sampling,
    Training,
    distribution_model,
    has_distribution,
    needs_training,
)
from abstain.learners._fitting import LabelModel, cross_fit, fit_labels, require_classifier
from abstain.learners._folds import folds_for
from abstain.learners._held_out import HeldOut
from abstain.learners._recommended import recommended
from abstain.learners._scorer import AbstentionScorer
from abstain.learners._verbose import reported


class AbstainingClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator, Generic[PredictionT]):
    """argmin E[ℓ(y_D, ŷ_D)] + f(|A|) with the probabilities of any classifier.

    Parameters
    ----------
    estimator : classifier, default=None
        Anything with ``predict_proba``, in any of scikit-learn's shapes; with a calibration, ``decision_function`` will
        do. One that knows only single targets learns label by label. A model that is already fitted goes in a
        `sklearn.frozen.FrozenEstimator`: its labels must be in y's order, and it is calibrated on data it has not seen.
        If it is not given, it is the learner we recommend, `abstain.learners.recommended`: trees and logistic
        regression, blended and calibrated.
    loss : str or Loss, default="hamming"
        What wrong answers cost, as for `abstain.decide`. Loss and penalty are used when deciding only, so that changing
        them (``set_params``, or `decide`'s arguments) never fits anything again.
    penalty : number, str or Penalty, default=0.1
        What abstaining costs, as for `abstain.decide`.
    calibration : {"auto", "temperature", "sigmoid", "beta", "isotonic", "venn-abers"}, default=None
        Calibrate the probabilities on cross-fitted scores, as `abstain.calibration.fit` does. The estimator itself is
        fitted to all data.
    cv : int or splitter, default=5
        The folds of cross-fitting; a number means shuffled folds. Where instances belong together or follow each other
        in time, shuffled folds are too optimistic: pass `sklearn.model_selection.GroupKFold` or `TimeSeriesSplit`.
    n_jobs : int, default=None
        Folds fitted at once; for the recommended learner trees grown, and blocks of labels fitted, at once.
    verbose : int, default=0
        If it is not 0, what is done is printed, with the time that it took.
    dependence : {"auto", "independent", "joint"}, default="auto"
        Whether decisions know how the labels depend on each other (`label_distribution`). "auto" does what pays for
        the loss and the penalty: if the estimator has a joint distribution, decisions from it and from the
        probabilities are compared on instances held out in the folds of ``cv``, and the joint distribution is used if
        its realised loss is lower beyond noise; for other losses than that of `fit` it is not used. Nothing is compared
        for sums over labels (Hamming), for which dependence does not matter, nor for estimators without a joint
        distribution. "joint" uses it without comparison, and raises an error if there is none.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The names of the labels, or 0 … n_labels − 1; for a single target its classes, which are then the labels.
    dependence_ : Dependence
        Whether decisions are made from joint distributions (``uses_joint``), and why; with the realised losses of both
        kinds of decision (``joint_loss``, ``independent_loss``, ``difference``, ``standard_error``), and the ``share``
        of independence that is mixed in.
    label_names_ : tuple or None
        The names of the labels, if they are known.
    calibration_ : abstain.calibration.Calibration or None
        The calibration of the labels that were not constant in training; None if there is none.
    estimator_ : classifier
        The fitted clone. It has not seen the labels that were constant in training: these have probability 0 or 1.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
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

    @overload
    def __init__(
        self: "AbstainingClassifier[PartialPrediction]",
        estimator: Any = None,
        *,
        loss: LabelLossLike = "hamming",
        penalty: PenaltyLike = 0.1,
        calibration: str | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        verbose: int = 0,
        dependence: DependenceChoice = "auto",
    ) -> None: ...

    @overload
    def __init__(
        self: "AbstainingClassifier[PartialRanking]",
        estimator: Any = None,
        *,
        loss: RankingLossLike,
        penalty: PenaltyLike = 0.1,
        calibration: str | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        verbose: int = 0,
        dependence: DependenceChoice = "auto",
    ) -> None: ...

    @overload
    def __init__(
        self: "AbstainingClassifier[Any]",
        estimator: Any = None,
        *,
        loss: LossLike,
        penalty: PenaltyLike = 0.1,
        calibration: str | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        verbose: int = 0,
        dependence: DependenceChoice = "auto",
    ) -> None: ...

    def __init__(
        self,
        estimator: Any = None,
        *,
        loss: LossLike = "hamming",
        penalty: PenaltyLike = 0.1,
        calibration: str | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        verbose: int = 0,
        dependence: DependenceChoice = "auto",
    ) -> None:
        self.estimator = estimator
        self.loss = loss
        self.penalty = penalty
        self.calibration = calibration
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.dependence = dependence

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Learn the probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            What the estimator accepts.
        y : array-like, frame or sparse matrix of shape (n_instances, n_labels), or array-like of shape (n_instances,)
            Labels of 0 and 1, or a vector of classes. The names of a frame's columns become the names of the labels. A
            sparse matrix stays sparse for estimators that take it: `sklearn.multiclass.OneVsRestClassifier`, and
            estimators that are not scikit-learn's.
        **params
            For the estimator's ``fit``, for example ``sample_weight`` (which the calibration then uses too), and with
            scikit-learn's metadata routing also for the splitter.

        Returns
        -------
        self : AbstainingClassifier
        """
        if self.calibration is not None:
            require_method(self.calibration, "calibration")
        as_loss(self.loss), as_penalty(self.penalty)  # mistakes raise errors before the work, not after
        require_classifier(self._estimator(), calibrated=self.calibration is not None)
        self._check_features(X, reset=True)
        target = read_target(y)
        check_consistent_length(X, target.labels)
        require_same_order(X, y)
        estimator, routed = self._estimator(), self._route(params)
        question = self._question(estimator, target)
        if question.is_open and isinstance(estimator, BlendedClassifier):
            estimator = clone(estimator).set_params(keep_held_out=True)
        is_given = self.estimator is not None
        with reported(self.verbose if is_given else 0, f"{type(estimator).__name__}, all instances"):
            model = fit_labels(estimator, X, target, routed.estimator.fit)
        own = None
        if isinstance(model.estimator, BlendedClassifier) and self.calibration is None:
            own, model.estimator.held_out_ = model.estimator.held_out_, []
        compares = question.is_open and own is None and len(model.columns) > 1
        calibration, crossed, failure = None, None, None
        if len(model.columns) and (self.calibration is not None or compares):
            try:
                crossed = cross_fit(
                    estimator,
                    X,
                    target,
                    folds_for(self.cv, target),
                    n_jobs=self.n_jobs if is_given else None,  # the recommended learner uses all cores itself
                    params=routed.estimator.fit,
                    split_params=routed.splitter.split,
                    verbose=self.verbose if is_given else 0,
                    distribution=_distribution_of_fold if compares else None,
                )
            except ValueError as error:  # without a calibration nobody has asked for folds
                if self.calibration is not None:
                    raise
                failure = error
        weight = _sample_weight(routed.estimator.fit)
        if self.calibration is not None and crossed is not None:
            calibration = fit_calibration(
                crossed.scores[:, model.columns],
                dense(target.labels, "y")[crossed.rows][:, model.columns],
                self.calibration,
                kind="probability" if gives_probabilities(estimator) else "score",
                sample_weight=None if weight is None else _safe_indexing(weight, crossed.rows),
            )
        if failure is not None:
            question = question.closed(f"cross-fitting failed: {failure}")
        held_out = own
        if crossed is not None and compares:
            places = crossed.scores[:, model.columns], crossed.rows
            held_out = [_with_probabilities(part, model, calibration, *places) for part in crossed.held_out]
        self.dependence_ = question.answered(held_out or [], target, weight, self.loss, self.penalty)
        self._joint_model = None
        if question.keeps_distribution:
            training = _training(X, target, model.columns, weight) if needs_training(estimator) else None
            self._joint_model = distribution_model(model.estimator, training) if len(model.columns) > 1 else None
        self._model, self.calibration_ = model, calibration
        self._label_type, self._is_single = target.dtype, target.vector is not None
        self.label_names_ = tuple(target.classes.tolist()) if self._is_single else target.label_names
        self.estimator_, self.classes_ = model.estimator, target.classes
        return self

    def predict_proba(self, X: Any) -> Matrix:
        """P(label is relevant | x), in one table whatever shape the estimator uses.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            What the estimator accepts.

        Returns
        -------
        probabilities : float array of shape (n_instances, n_labels)
            CSR if the estimator's is and nothing is calibrated; then decisions and predictions are CSR too.
        """
        check_is_fitted(self, "estimator_")
        self._check_features(X, reset=False)
        if self.calibration_ is None:
            return self._model.probabilities(X)
        probabilities = self._model.calibrated(X, self.calibration_)
        if self._is_single:  # each class was calibrated against the others, yet exactly one is right
            total = probabilities.sum(axis=1, keepdims=True)
            uniform = np.full_like(probabilities, 1.0 / probabilities.shape[1])
            return np.divide(probabilities, total, out=uniform, where=total > 0)
        return probabilities

    def label_distribution(self, X: Any) -> Samples | Mixture:
        """Return the joint distribution of the labels: that of the estimator, with the probabilities as its marginals.

        For `abstain.decide` with any loss and penalty; `decide` does that where it pays, or if it is told to
        (parameter ``dependence``). A forest of scikit-learn has one if it was compared or asked for when fitting: with
        ``dependence="joint"``, or with "auto" and a loss that is not a sum over labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            What the estimator accepts. The index of a frame is kept.

        Returns
        -------
        joint : Samples or Mixture

        Examples
        --------
        >>> import abstain
        >>> from sklearn.datasets import make_multilabel_classification
        >>> from sklearn.neighbors import KNeighborsClassifier
        >>> X, Y = make_multilabel_classification(n_samples=200, n_classes=3, random_state=0)
        >>> learner = abstain.AbstainingClassifier(KNeighborsClassifier(20), calibration="sigmoid").fit(X, Y)
        >>> joint = learner.label_distribution(X[:5])
        >>> bool(abs(joint.marginals.values - learner.predict_proba(X[:5])).max() < 1e-6)
        True
        """
        check_is_fitted(self, "estimator_")
        self._check_features(X, reset=False)
        if self._is_single:
            raise InvalidParameter(
                "label_distribution is for labels of which several can be relevant; of the classes of a single target, "
                "exactly one is"
            )
        probabilities = dense(self.predict_proba(X))
        if len(self._model.columns) < 2:
            alone = Mixture(None, probabilities[:, np.newaxis])
            return alone.named(self.label_names_, index_of(X))
        model = self._joint_model
        if model is None:
            if needs_training(self.estimator_) and has_distribution(self.estimator, with_training=True):
                raise InvalidParameter(
                    f"{type(self.estimator_).__name__} has a joint distribution only together with the data that it "
                    'was fitted to, which was not kept; fit with dependence="joint"'
                )
            model = distribution_model(self.estimator_, None)
        joint = _for_all_labels(model(X, Sampling()), self._model)
        named = joint.with_marginals(probabilities).named(self.label_names_, index_of(X))
        assert isinstance(named, Samples | Mixture)
        return named

    def predict_intervals(self, X: Any, *, rule: IntervalRule = "minimax", optimism: float | None = None) -> Intervals:
        """Return intervals of the probabilities, for decisions that hold for all probabilities in them.

        With ``calibration="venn-abers"`` they are those of the calibration. Without calibration they are the
        estimator's own, if it has a method `predict_intervals` that returns the lower and the upper ends, as the
        learners "ncc" and "credal-forest" have.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            What the estimator accepts. The index of a frame is kept.
        rule, optimism
            As for `abstain.Intervals`.

        Returns
        -------
        intervals : Intervals
            To be given to `abstain.decide` with a loss and a penalty.

        Examples
        --------
        >>> import abstain, numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> random = np.random.default_rng(0)
        >>> X = random.normal(size=(200, 2))
        >>> y = (X + random.normal(size=X.shape) > 0).astype(int)
        >>> learner = abstain.AbstainingClassifier(LogisticRegression(), calibration="venn-abers").fit(X, y)
        >>> box = learner.predict_intervals(X[:3])
        >>> abstain.decide(box, loss="f1", penalty=0.1).shape
        (3, 2)
        """
        check_is_fitted(self, "estimator_")
        self._check_features(X, reset=False)
        if self._is_single:
            raise InvalidParameter(
                "predict_intervals is for labels of which several can be relevant; of a single target, the "
                "probabilities of the classes depend on each other"
            )
        own = self.calibration_ is None and hasattr(self.estimator_, "predict_intervals")
        if not own and (self.calibration_ is None or self.calibration_.method != "venn-abers"):
            has = "no calibration" if self.calibration_ is None else f"calibration={self.calibration_.method!r}"
            raise InvalidParameter(
                f"predict_intervals: the classifier has {has}, and its estimator gives no intervals; use "
                'calibration="venn-abers", or calibration=None with an estimator that has predict_intervals'
            )
        lower, upper = self._model.intervals(X, self.calibration_)
        ends = (Table(end, self.label_names_, index_of(X)) for end in (lower, upper))
        return Intervals(*ends, rule=rule, optimism=optimism)

    @overload
    def decide(self, X: Any, *, loss: None = None, penalty: PenaltyLike | None = None) -> PredictionT: ...

    @overload
    def decide(self, X: Any, *, loss: LabelLossLike, penalty: PenaltyLike | None = None) -> PartialPrediction: ...

    @overload
    def decide(self, X: Any, *, loss: RankingLossLike, penalty: PenaltyLike | None = None) -> PartialRanking: ...

    @overload
    def decide(self, X: Any, *, loss: LossLike, penalty: PenaltyLike | None = None) -> Prediction: ...

    def decide(self, X: Any, *, loss: LossLike | None = None, penalty: PenaltyLike | None = None) -> Prediction:
        """Answer the labels that are sure enough, leave the others to a human.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            What the estimator accepts. The index of a frame is kept.
        loss : str or Loss, optional
            What wrong answers cost; the classifier's own loss, if it is not given.
        penalty : number, str or Penalty, optional
            What abstaining costs; the classifier's own penalty, if it is not given. Complete answers are `predict`'s.

        Returns
        -------
        prediction : PartialPrediction, or PartialRanking for the rank loss
        """
        chosen = as_loss(self.loss if loss is None else loss)
        priced = as_penalty(self.penalty if penalty is None else penalty)
        check_is_fitted(self, "estimator_")
        if self._decides_from_joint(chosen):
            return decide_table(self._joint_to_decide(X), chosen, priced)
        table = Probabilities(Table(self.predict_proba(X), self.label_names_, index_of(X)))
        if not self._is_single:  # the classes of a single target do add up to 1
            table.warn_if_softmax()
        return decide_table(table, chosen, priced)

    def predict(self, X: Any) -> Matrix:
        """Return the optimal complete prediction for the loss.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
            What the estimator accepts.

        Returns
        -------
        labels : array of shape (n_instances, n_labels)
            Labels of 0 and 1; for the rank loss positions (0 = first). For a single target the most probable class, of
            shape (n_instances,).
        """
        check_is_fitted(self, "estimator_")
        chosen = as_loss(self.loss)
        if self._decides_from_joint(chosen):
            complete = decide_table(self._joint_to_decide(X), chosen, as_penalty("none"))
        else:
            probabilities = self.predict_proba(X)
            if self._is_single:
                return self.classes_[dense(probabilities).argmax(axis=1)]
            complete = decide_table(Probabilities(probabilities), chosen, as_penalty("none"))
        return complete.positions if isinstance(complete, PartialRanking) else complete.labels.astype(self._label_type)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the negative generalised loss of `decide`, on average: higher is better.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_instances, n_features)
        y : array-like of shape (n_instances, n_labels) or (n_instances,)
        sample_weight : array-like of shape (n_instances,), optional

        Returns
        -------
        score : float
        """
        check_is_fitted(self, "estimator_")
        require_same_order(X, y)
        target = read_target(y, self.classes_ if self._is_single else None)
        scorer = AbstentionScorer(loss=self.loss, penalty=self.penalty)
        return scorer.score_prediction(self.decide(X), target, sample_weight)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which of fit's further parameters go to the estimator, and which to the splitter."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self._estimator(), method_mapping=MethodMapping().add(caller="fit", callee="fit"))
            .add(splitter=check_cv(self.cv), method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )

    def _decides_from_joint(self, loss: Loss) -> bool:
        return self.dependence != "independent" and self.dependence_.for_loss(loss)

    def _joint_to_decide(self, X: Any) -> Joint:
        """Return the joint distribution with its share of independence; no time is spent on certificates."""
        return self.label_distribution(X).with_independence(self.dependence_.share).with_limits(certify=False)

    def _question(self, estimator: Any, target: Target) -> DependenceQuestion:
        """Return whether dependence is to be used, not to be used, or to be compared."""
        if self.dependence not in DEPENDENCES:
            raise InvalidParameter(
                f"dependence is {quoted(self.dependence)}; expected one of {', '.join(map(repr, DEPENDENCES))}"
            )
        is_single = target.vector is not None
        exists = not is_single and has_distribution(estimator, with_training=True)
        if self.dependence == "joint":
            if is_single:
                raise InvalidParameter(
                    "dependence='joint' is for a table of labels; the classes of a vector exclude each other"
                )
            if not exists:
                raise InvalidParameter(
                    f"dependence='joint': {type(estimator).__name__} has no joint distribution of the labels. There "
                    f"are {SUPPORTED}"
                )
        return DependenceQuestion.of(self.dependence, exists, as_loss(self.loss), target.labels.shape[1])

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)
        answer = getattr(self, "dependence_", None)
        return text if answer is None or not answer.was_compared else f"{text}  # {answer}"

    def _check_features(self, X: Any, reset: bool) -> None:
        """Check the number and the names of the features; the estimator checks their values."""
        if getattr(X, "ndim", 2) == 1 and getattr(X.dtype, "kind", "O") in "fiub":
            raise InvalidParameter(
                "Expected a 2-D table of features, got a vector. Reshape your data: X.reshape(1, -1) for one instance, "
                "X.reshape(-1, 1) for one feature."
            )
        validate_data(self, X, reset=reset, skip_check_array=True)

    def _estimator(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        learner = recommended(cv=self.cv, n_jobs=self.n_jobs, verbose=self.verbose)
        if get_config()["enable_metadata_routing"]:
            learner.set_fit_request(sample_weight=True, groups=True)
        return learner

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


def _sample_weight(params: dict[str, Any]) -> Any:
    """Return the sample weights among the fit parameters, for the estimator itself or for a step inside; or None."""
    return next((value for name, value in params.items() if name.rpartition("__")[2] == "sample_weight"), None)


def _training(X: Any, target: Target, columns: NDArray[np.intp], weight: Any) -> Training:
    """Return what an estimator was fitted to, of the labels that it has learnt."""
    labels = dense(target.labels[:, columns], "y").astype(np.uint8)
    return Training(X, labels, np.ones(len(labels)) if weight is None else np.asarray(weight, np.float64))


def _for_all_labels(joint: Joint, model: LabelModel) -> Joint:
    """Return the joint distribution of all labels, given that of the labels that the estimator has learnt."""
    if len(model.columns) == len(model.frequencies):
        return joint
    return joint.with_constant_labels(model.columns, (model.frequencies == 1).astype(np.uint8))


def _distribution_of_fold(model: LabelModel, X: Any, target: Target, params: Any, new: Any) -> Joint:
    """Return the joint distributions of instances that the model of a fold has not seen."""
    if len(model.columns) < 2:
        probabilities = dense(model.probabilities(new))
        return Mixture(None, probabilities[:, np.newaxis])
    training = None
    if needs_training(model.estimator):
        training = _training(X, target, model.columns, _sample_weight(params))
    return _for_all_labels(distribution_model(model.estimator, training)(new, Sampling()), model)


def _with_probabilities(
    part: HeldOut, model: LabelModel, calibration: Calibration | None, scores: Floats, rows: NDArray[np.intp]
) -> HeldOut:
    """Return held-out instances with the (calibrated) probabilities of all labels, given the scores of all rows."""
    of_part = scores[np.searchsorted(rows, part.rows)]
    return HeldOut(part.rows, part.joint.with_marginals(model.probabilities_of_scores(of_part, calibration)))
