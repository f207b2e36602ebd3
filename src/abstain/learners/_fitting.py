"""Any estimator, fitted to any target: what it cannot learn is set aside, what it says comes in one shape."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    BaseCrossValidator,
    KFold,
    StratifiedKFold,
    check_cv,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from abstain._core.predict_proba import is_vector_of_one_label, label_probabilities, label_scores
from abstain._core.tables import Matrix, dense
from abstain._core.targets import Target
from abstain._utils.errors import InvalidLabels


@dataclass(frozen=True)
class LabelModel:
    """A fitted estimator, and which labels its columns stand for. The others were constant in training."""

    estimator: Any
    columns: NDArray[np.intp]
    frequencies: NDArray[np.float64]
    """How often each label was relevant in training: 0 or 1 for those that were constant."""

    def probabilities(self, X: Any) -> Matrix:
        """P(label is relevant), n × m; CSR if the estimator gives that."""
        return self._spread(X, label_probabilities, self.frequencies)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """What calibration works on, n × m; nan for labels that were constant in training."""
        answers: NDArray[np.float64] = self._spread(X, label_scores, np.full(len(self.frequencies), np.nan))
        return answers

    def _spread(self, X: Any, ask: Any, elsewhere: NDArray[np.float64]) -> Matrix:
        if len(self.columns) == 0:
            return np.tile(elsewhere, (_num_samples(X), 1))
        answers = ask(self.estimator, X)
        if len(self.columns) == 1 and is_vector_of_one_label(self.estimator):
            answers = answers[:, 1:]
        if answers.shape[1] != len(self.columns):
            raise InvalidLabels(
                f"{type(self.estimator).__name__} answers {answers.shape[1]} labels, expected {len(self.columns)}"
            )
        if len(self.columns) == len(elsewhere):
            return answers
        if sparse.issparse(answers):
            return self._spread_stored(answers)
        everything = np.tile(elsewhere, (len(answers), 1))
        everything[:, self.columns] = answers
        return everything

    def _spread_stored(self, answers: sparse.csr_array) -> sparse.csr_array:
        """The same for what is sparse: stored are the answers, and 1 for labels that were relevant throughout."""
        shape = answers.shape[0], len(self.frequencies)
        known = sparse.csr_array((answers.data, self.columns[answers.indices], answers.indptr), shape)
        always = np.flatnonzero(self.frequencies == 1)
        if len(always) == 0:
            return known
        places = np.tile(always, shape[0]), np.arange(shape[0] + 1) * len(always)
        return known + sparse.csr_array((np.ones(len(places[0]), known.dtype), *places), shape)


def fit_labels(estimator: Any, X: Any, target: Target, params: Mapping[str, Any]) -> LabelModel:
    """A clone of the estimator, fitted to the labels that are not constant; a frozen one keeps all it knows."""
    relevant = np.asarray(target.labels.sum(axis=0, dtype=np.int64)).ravel()
    frequencies = relevant / target.labels.shape[0]  # scipy's mean of ones need not be 1
    if target.vector is not None:
        model = clone(estimator)
        model.fit(X, target.vector, **params)
        present = np.flatnonzero(np.isin(target.classes, model.classes_))
        return LabelModel(model, present, np.zeros(len(target.classes)))
    learnt_before = isinstance(estimator, FrozenEstimator)
    columns = np.flatnonzero((frequencies > 0) & (frequencies < 1) | learnt_before)
    as_it_is = learnt_before or len(columns) == 1 or _takes_many_labels(estimator)
    model = clone(estimator) if as_it_is else _label_by_label(estimator)
    if len(columns) < len(frequencies):
        _narrow_parameters(model, columns, len(frequencies))
    labels = target.labels if len(columns) == len(frequencies) else target.labels[:, columns]
    if len(columns) == 1:
        model = _fit_one_label(model, X, dense(labels)[:, 0], params)
    elif len(columns) > 1:
        model = _fit_many_labels(model, X, labels, params)
    fitted = LabelModel(model, columns, frequencies)
    if learnt_before:
        fitted.scores(_safe_indexing(X, [0]))  # whether its labels are as many is said now, not when it is asked
    return fitted


def require_classifier(estimator: Any, *, calibrated: bool) -> None:
    """Raise an error that says what an estimator lacks."""
    name = type(estimator).__name__
    if not hasattr(estimator, "fit"):
        hint = f"; abstain.learners.make({estimator!r}) makes a learner by its name" if name == "str" else ""
        raise TypeError(f"estimator is {estimator!r}; expected a classifier{hint}")
    if hasattr(estimator, "predict_proba"):
        return
    if not hasattr(estimator, "decision_function"):
        raise ValueError(f"{name} has neither predict_proba nor decision_function; is it a classifier?")
    if not calibrated:
        raise ValueError(
            f"{name} has no predict_proba; calibration='sigmoid' or 'isotonic' makes probabilities of its decision "
            "function"
        )


def _takes_many_labels(estimator: Any) -> bool:
    if hasattr(estimator, "refit") and hasattr(estimator, "estimator"):  # a search, which does not tell of its inside
        return _takes_many_labels(estimator.estimator)
    if not hasattr(estimator, "__sklearn_tags__"):  # not one of scikit-learn's: it has to know
        return True
    tags = get_tags(estimator)
    return tags.target_tags.multi_output or (tags.classifier_tags is not None and tags.classifier_tags.multi_label)


def _narrow_parameters(model: Any, columns: NDArray[np.intp], n_labels: int) -> None:
    """Parameters that speak of each label, a chain's order and lists of class weights, for the labels that are left."""
    for name, value in model.get_params(deep=True).items():
        what = name.rpartition("__")[2]
        if not isinstance(value, list | tuple | np.ndarray) or len(value) != n_labels:
            continue
        if what == "class_weight":
            model.set_params(**{name: [value[j] for j in columns]})
        elif what == "order" and sorted(value) == list(range(n_labels)):
            kept = [j for j in value if j in columns]
            model.set_params(**{name: np.searchsorted(columns, kept).tolist()})


def _label_by_label(estimator: Any) -> Any:
    """Binary relevance; one-vs-rest for a classifier that has nothing but a decision function."""
    if hasattr(estimator, "predict_proba"):
        return MultiOutputClassifier(clone(estimator))
    return OneVsRestClassifier(clone(estimator))


def _fit_one_label(model: Any, X: Any, y: NDArray[np.int8], params: Mapping[str, Any]) -> Any:
    """As a vector, which most classifiers want; those for several outputs refuse it and get a table of one column."""
    try:
        return model.fit(X, y, **params)
    except (IndexError, ValueError):
        return model.fit(X, y[:, np.newaxis], **params)


def _fit_many_labels(model: Any, X: Any, labels: Matrix, params: Mapping[str, Any]) -> Any:
    """As the table is; a sparse one is made dense for those who do not take it."""
    if sparse.issparse(labels) and _may_take_sparse_labels(model):
        try:
            return model.fit(X, labels, **params)
        except (AttributeError, IndexError, NotImplementedError, TypeError, ValueError):
            model = clone(model)
    return model.fit(X, dense(labels, "y"), **params)


def _may_take_sparse_labels(estimator: Any) -> bool:
    """Of scikit-learn's, one-vs-rest does, and others would take the table for something else; of others we can try."""
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
) -> NDArray[np.float64]:
    """The score of each instance and label, by a model that has not seen the instance."""
    (X,) = indexable(X)

    def held_out(train: NDArray[np.intp], test: NDArray[np.intp]) -> NDArray[np.float64]:
        part = Target(
            target.labels[train], target.classes, vector=None if target.vector is None else target.vector[train]
        )
        some = {name: rows_of(value, train, target.labels.shape[0]) for name, value in params.items()}
        return fit_labels(estimator, _safe_indexing(X, train), part, some).scores(_safe_indexing(X, test))

    y = target.labels if target.vector is None else target.vector
    parts = list(folds.split(X, y, **split_params))
    tested = np.sort(np.concatenate([test for _, test in parts]))
    if not np.array_equal(tested, np.arange(y.shape[0])):
        raise ValueError(f"cv: {folds!r} does not hold out each instance once, as cross-fitting needs")
    scores = np.empty(target.labels.shape)
    answers = Parallel(n_jobs=n_jobs)(delayed(held_out)(train, test) for train, test in parts)
    for (_, test), answer in zip(parts, answers, strict=True):
        scores[test] = answer
    return _without_gaps(scores)


def _without_gaps(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """A label that was constant in a training part has no scores in the other part: they are drawn from its others.

    The held out part has all the examples of a class then, and a score of its own would give this away.
    """
    random = np.random.default_rng(0)
    unknown = np.isnan(scores)
    for j in np.flatnonzero(unknown.any(axis=0)):
        known = scores[~unknown[:, j], j]
        scores[unknown[:, j], j] = random.choice(known, unknown[:, j].sum()) if len(known) else 0.0
    return scores


def folds_for(cv: Any, target: Target) -> BaseCrossValidator:
    """A number of folds means shuffled ones, as files often come in order; stratified for a single target."""
    if isinstance(cv, int | np.integer):
        n = target.labels.shape[0]
        if n < cv:
            raise ValueError(f"cv={cv}: there are fewer instances than folds (n_samples={n})")
        kind = KFold if target.vector is None else StratifiedKFold
        return kind(int(cv), shuffle=True, random_state=0)
    return check_cv(cv, target.vector, classifier=True)


def rows_of(value: Any, rows: NDArray[np.intp], n: int) -> Any:
    """The part of a fit parameter that belongs to some rows; parameters that are not per row stay whole."""
    per_row = hasattr(value, "__len__") and not isinstance(value, str | dict) and len(value) == n
    return _safe_indexing(value, rows) if per_row else value
