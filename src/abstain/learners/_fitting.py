"""Fit any estimator to any target: constant labels are left out, and the output has one shape."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import BaseCrossValidator
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from abstain._core.joint import Joint
from abstain._core.predict_proba import is_vector_of_one_label, label_probabilities, label_scores
from abstain._core.tables import Matrix, dense
from abstain._core.targets import Target
from abstain._utils.errors import InvalidLabels, InvalidParameter
from abstain._utils.types import Floats
from abstain.calibration import Calibration
from abstain.learners._blend import BlendedClassifier
from abstain.learners._credal import CredalClassifier
from abstain.learners._folds import fill_gaps, rows_of
from abstain.learners._held_out import HeldOut, some_of
from abstain.learners._verbose import reported


@dataclass(frozen=True)
class LabelModel:
    """A fitted estimator, and the labels that its columns stand for; the others were constant in training.

    Attributes
    ----------
    estimator : fitted classifier
    columns : int array
        The labels that the estimator has learnt.
    frequencies : float array of shape (n_labels,)
        How often each label was relevant in training: 0 or 1 for those that were constant.
    n_instances : int
        The number of instances in training.
    """

    estimator: Any
    columns: NDArray[np.intp]
    frequencies: NDArray[np.float64]
    n_instances: int

    def probabilities(self, X: Any) -> Matrix:
        """Return P(label is relevant), of shape (n_instances, n_labels); CSR if the estimator gives that."""
        return self._for_all_labels(self._learnt(X, label_probabilities), self.frequencies)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores to calibrate, of shape (n_instances, n_labels); nan for labels constant in training."""
        unknown = np.full(len(self.frequencies), np.nan)
        scores: NDArray[np.float64] = self._for_all_labels(self._learnt(X, label_scores), unknown)
        return scores

    def calibrated(self, X: Any, calibration: Calibration) -> NDArray[np.float64]:
        """Return calibrated probabilities; labels constant in training get (relevant + ½) / (instances + 1)."""
        base_rates = (self.frequencies * self.n_instances + 0.5) / (self.n_instances + 1.0)
        learnt = calibration.transform(self._learnt(X, label_scores))
        probabilities: NDArray[np.float64] = self._for_all_labels(learnt, base_rates)
        return probabilities

    def probabilities_of_scores(self, scores: Floats, calibration: Calibration | None) -> Floats:
        """Return probabilities of all labels, given the scores of those that the estimator has learnt."""
        if calibration is None:
            learnt, constants = scores, self.frequencies
        else:
            learnt = calibration.transform(scores)
            constants = (self.frequencies * self.n_instances + 0.5) / (self.n_instances + 1.0)
        probabilities: Floats = self._for_all_labels(learnt, constants)
        return probabilities

    def intervals(self, X: Any, calibration: Calibration | None) -> tuple[Floats, Floats]:
        """Return lower and upper probabilities, of a calibration by venn-abers or of the estimator itself.

        Those of labels that are constant in training are [k / (n + 1), (k + 1) / (n + 1)], with k of n relevant.
        """
        counts = self.frequencies * self.n_instances
        if calibration is None:
            none = np.empty((_num_samples(X), 0))
            learnt = list(self.estimator.predict_intervals(X)) if len(self.columns) else [none, none]
        else:
            box = calibration.intervals(self._learnt(X, label_scores))
            learnt = [box.lower, box.upper]
        constants = counts / (self.n_instances + 1.0), (counts + 1.0) / (self.n_instances + 1.0)
        lower, upper = map(self._for_all_labels, learnt, constants)
        return lower, upper

    def _learnt(self, X: Any, predict: Callable[[Any, Any], Matrix]) -> Matrix:
        """Return what the estimator predicts of the labels that it has learnt."""
        if len(self.columns) == 0:
            return np.empty((_num_samples(X), 0))
        predicted = predict(self.estimator, X)
        if len(self.columns) == 1 and is_vector_of_one_label(self.estimator):
            predicted = predicted[:, 1:]
        if predicted.shape[1] != len(self.columns):
            raise InvalidLabels(
                f"{type(self.estimator).__name__} answers {predicted.shape[1]} labels, expected {len(self.columns)}"
            )
        return predicted

    def _for_all_labels(self, predicted: Matrix, constants: NDArray[np.float64]) -> Matrix:
        """Return predictions of all labels, with a constant for each that the estimator has not learnt."""
        if len(self.columns) == len(constants):
            return predicted
        if sparse.issparse(predicted):
            return self._sparse_for_all_labels(predicted)
        result = np.tile(constants, (len(predicted), 1))
        result[:, self.columns] = predicted
        return result

    def _sparse_for_all_labels(self, predicted: sparse.csr_array) -> sparse.csr_array:
        """Return sparse predictions, with 1 stored for each label that was always relevant in training."""
        shape = predicted.shape[0], len(self.frequencies)
        learnt = sparse.csr_array((predicted.data, self.columns[predicted.indices], predicted.indptr), shape)
        always = np.flatnonzero(self.frequencies == 1)
        if len(always) == 0:
            return learnt
        indices, indptr = np.tile(always, shape[0]), np.arange(shape[0] + 1) * len(always)
        return learnt + sparse.csr_array((np.ones(len(indices), learnt.dtype), indices, indptr), shape)


class CrossFit(NamedTuple):
    """What models say of instances that they have not seen.

    Attributes
    ----------
    rows : int array of shape (n_instances,)
        The instances held out, in their order.
    scores : float array of shape (n_instances, n_labels)
    held_out : list of HeldOut
        Joint distributions of some of them, by fold; their marginals are not calibrated.
    """

    rows: NDArray[np.intp]
    scores: Floats
    held_out: list[HeldOut]


def fit_labels(estimator: Any, X: Any, target: Target, params: Mapping[str, Any]) -> LabelModel:
    """Return a clone of the estimator, fitted to the labels that are not constant.

    A frozen one keeps all labels, and the recommended learner and credal ones take whatever table there is.
    """
    relevant = np.asarray(target.labels.sum(axis=0, dtype=np.int64)).ravel()
    frequencies = relevant / target.labels.shape[0]  # scipy's mean of ones need not be 1
    if target.vector is not None:
        model = clone(estimator)
        model.fit(X, target.vector, **params)
        present = np.flatnonzero(np.isin(target.classes, model.classes_))
        return LabelModel(model, present, np.zeros(len(target.classes)), len(target.vector))
    is_frozen = isinstance(estimator, FrozenEstimator)
    is_ours = isinstance(estimator, BlendedClassifier | CredalClassifier)
    columns = np.flatnonzero((frequencies > 0) & (frequencies < 1) | is_frozen | is_ours)
    takes_labels = is_frozen or len(columns) == 1 or _takes_many_labels(estimator)
    model = clone(estimator) if takes_labels else _one_per_label(estimator)
    if len(columns) < len(frequencies):
        _narrow_parameters(model, columns, len(frequencies))
    labels = target.labels if len(columns) == len(frequencies) else target.labels[:, columns]
    if len(columns) == 1 and not is_ours:
        model = _fit_one_label(model, X, dense(labels)[:, 0], params)
    elif len(columns):
        model = _fit_many_labels(model, X, labels, params)
    fitted = LabelModel(model, columns, frequencies, target.labels.shape[0])
    if is_frozen:
        fitted.scores(_safe_indexing(X, [0]))  # a wrong number of labels is an error now, not when predicting
    return fitted


def require_classifier(estimator: Any, *, calibrated: bool) -> None:
    """Raise an error if an estimator lacks a method that is needed."""
    name = type(estimator).__name__
    if not hasattr(estimator, "fit"):
        hint = f"; abstain.learners.make({estimator!r}) makes a learner by its name" if name == "str" else ""
        raise InvalidParameter(f"estimator is {estimator!r}; expected a classifier{hint}")
    if hasattr(estimator, "predict_proba"):
        return
    if not hasattr(estimator, "decision_function"):
        raise InvalidParameter(f"{name} has neither predict_proba nor decision_function; is it a classifier?")
    if not calibrated:
        raise InvalidParameter(
            f"{name} has no predict_proba; calibration='auto' makes probabilities of its decision function"
        )


def _takes_many_labels(estimator: Any) -> bool:
    if hasattr(estimator, "refit") and hasattr(estimator, "estimator"):  # a search: ask its estimator
        return _takes_many_labels(estimator.estimator)
    if not hasattr(estimator, "__sklearn_tags__"):  # not scikit-learn's: it must handle tables
        return True
    tags = get_tags(estimator)
    return tags.target_tags.multi_output or (tags.classifier_tags is not None and tags.classifier_tags.multi_label)


def _narrow_parameters(model: Any, columns: NDArray[np.intp], n_labels: int) -> None:
    """Adapt parameters given per label, a chain's order and lists of class weights, to the labels that are learnt."""
    for name, value in model.get_params(deep=True).items():
        parameter = name.rpartition("__")[2]
        if not isinstance(value, list | tuple | np.ndarray) or len(value) != n_labels:
            continue
        if parameter == "class_weight":
            model.set_params(**{name: [value[j] for j in columns]})
        elif parameter == "order" and sorted(value) == list(range(n_labels)):
            kept = [j for j in value if j in columns]
            model.set_params(**{name: np.searchsorted(columns, kept).tolist()})


def _one_per_label(estimator: Any) -> Any:
    """Return binary relevance; one-vs-rest for a classifier that has only a decision function."""
    if hasattr(estimator, "predict_proba"):
        return MultiOutputClassifier(clone(estimator))
    return OneVsRestClassifier(clone(estimator))


def _fit_one_label(model: Any, X: Any, y: NDArray[np.int8], params: Mapping[str, Any]) -> Any:
    """Fit to a vector, which most classifiers want; those for several outputs refuse it and get one column."""
    try:
        return model.fit(X, y, **params)
    except (IndexError, ValueError):
        return model.fit(X, y[:, np.newaxis], **params)


def _fit_many_labels(model: Any, X: Any, labels: Matrix, params: Mapping[str, Any]) -> Any:
    """Fit to a table of labels; a sparse one is made dense for estimators that do not take it."""
    if sparse.issparse(labels) and _may_take_sparse_labels(model):
        try:
            return model.fit(X, labels, **params)
        except (AttributeError, IndexError, NotImplementedError, TypeError, ValueError):
            model = clone(model)
    return model.fit(X, dense(labels, "y"), **params)


def _may_take_sparse_labels(estimator: Any) -> bool:
    """Return whether to try sparse labels: of scikit-learn's own, only one-vs-rest takes them for what they are."""
    if hasattr(estimator, "steps"):  # a pipeline
        return _may_take_sparse_labels(estimator.steps[-1][1])
    if hasattr(estimator, "refit") and hasattr(estimator, "estimator"):  # a search
        return _may_take_sparse_labels(estimator.estimator)
    known = type(estimator).__module__.partition(".")[0] in ("sklearn", "abstain")
    return isinstance(estimator, OneVsRestClassifier) or not known


def cross_fit(
    estimator: Any,
    X: Any,
    target: Target,
    folds: BaseCrossValidator,
    *,
    n_jobs: int | None,
    params: Mapping[str, Any],
    split_params: Mapping[str, Any],
    verbose: int,
    distribution: Callable[[LabelModel, Any, Target, Mapping[str, Any], Any], Joint] | None = None,
) -> CrossFit:
    """Return what models that have not seen them say of the instances held out, in the order of the instances.

    Instances that are never held out, such as the first ones of a `TimeSeriesSplit`, are not among them. With a
    function (model, its training features, target and parameters, X) → joint distribution of X, some of the instances
    of each fold also get joint distributions.
    """
    (X,) = indexable(X)

    def held_out(k: int, train: NDArray[np.intp], test: NDArray[np.intp]) -> tuple[Floats, HeldOut | None]:
        vector = None if target.vector is None else target.vector[train]
        train_target = Target(target.labels[train], target.classes, vector=vector)
        train_params = {name: rows_of(value, train, target.labels.shape[0]) for name, value in params.items()}
        features = _safe_indexing(X, train)
        model = fit_labels(estimator, features, train_target, train_params)
        scores = model.scores(_safe_indexing(X, test))
        if distribution is None:
            return scores, None
        rows = test[some_of(len(test), k, len(splits))]
        joint = distribution(model, features, train_target, train_params, _safe_indexing(X, rows))
        return scores, HeldOut(rows, joint)

    splits = list(folds.split(X, target.labels if target.vector is None else target.vector, **split_params))
    with reported(verbose, f"{type(estimator).__name__}, {len(splits)} folds"):
        parts = Parallel(n_jobs=n_jobs)(delayed(held_out)(k, *split) for k, split in enumerate(splits))
    rows = np.concatenate([test for _, test in splits])
    order = np.argsort(rows, kind="stable")
    scores = fill_gaps(np.vstack([scores for scores, _ in parts])[order])
    return CrossFit(rows[order], scores, [kept for _, kept in parts if kept is not None])
