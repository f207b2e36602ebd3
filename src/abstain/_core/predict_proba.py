"""The probabilities of a fitted classifier, or in the output of any model, in one shape.

scikit-learn's multi-label classifiers answer ``predict_proba`` in several ways: forests, nearest neighbours and
`MultiOutputClassifier` with a list of (n, 2) arrays, chains, one-vs-rest and neural networks with one (n, m) array, and
a label that was constant in training with one column instead of two. Others, such as skorch and the ONNX runtime, have
an axis of classes.
"""

import warnings
from collections.abc import Hashable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from abstain._core.probabilities import SUM_TOLERANCE, Probabilities
from abstain._core.records import is_records, read_records
from abstain._core.tables import Axes, Matrix, Table, as_array, dense, read_matrix, shape_of_first
from abstain._utils.errors import InvalidLabels, InvalidParameter, InvalidProbabilities, ProbabilityWarning, quoted

Kind = Literal["probability", "logit"]


def label_probabilities(
    model: Any, X: Any = None, *, kind: Kind = "probability", labels: Sequence[Hashable] | None = None
) -> Any:
    """P(label is relevant | x), from any fitted classifier or from the output of any model: always one (n, m) table.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba``, or the output of a model
        A classifier is any of scikit-learn's, or a compatible one; if its target was a single vector, the labels are
        its classes. An output is what a model has returned: an array, tensor or data frame, a list of arrays, or
        records, as for `decide`.
    X : array-like of shape (n_instances, n_features), optional
        Input of the classifier. With an output it only tells the number of instances, where the shape does not.
    kind : {"probability", "logit"}, default="probability"
        What the model returns. Logits (log-odds: what a network returns before its last sigmoid) become probabilities
        by the sigmoid 1 / (1 + exp(−x)).
    labels : sequence of names, optional
        The labels to take, in this order, of an output that names them.

    Returns
    -------
    array or CSR array of shape (n_instances, n_labels), or Table
        A `Table` for an output that names its labels, as data frames and records do. Outputs may be (n, m) arrays,
        lists with an (n, 2) array for each label, and (n, m, 2), (n, 2, m) or (m, n, 2) arrays with an axis of two
        classes. Where a shape could mean two things, X and the axis that adds up to 1 tell them apart; what cannot be
        told apart is refused.

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

    Logits of a neural network, and records of a pipeline:

    >>> abstain.label_probabilities([[2.2, -1.4], [0.0, 3.1]], kind="logit").round(2)
    array([[0.9 , 0.2 ],
           [0.5 , 0.96]])
    >>> records = [
    ...     [{"label": "sky", "score": 0.9}, {"label": "sea", "score": 0.2}],
    ...     [{"label": "sea", "score": 0.8}, {"label": "sky", "score": 0.3}],
    ... ]
    >>> abstain.label_probabilities(records, labels=["sky", "sea"])
    Table of 2 rows × 2 labels (float64): 'sky', 'sea'
    """
    if kind not in get_args(Kind):
        raise InvalidParameter(f"kind is {quoted(kind)}; expected 'probability' or 'logit'")
    if not hasattr(model, "predict_proba"):
        _require_output(model)
        matrix, axes = _read_output(model, kind, None if X is None else _n_rows(X))
        table = Probabilities(matrix)
        table.axes = axes
        return _take_labels(table.values(), axes, labels)
    what = f"{type(model).__name__}.predict_proba"
    if X is None:
        raise InvalidParameter(f"X is missing: {what} needs the instances")
    if labels is not None:
        raise InvalidParameter(f"labels are for an output that names them; {what} does not")
    output = model.predict_proba(X)
    if isinstance(output, list | tuple):
        output = _ListOfLabels(output, getattr(model, "classes_", None))
    return _read_output(output, kind, _n_rows(X), what)[0]


def _n_rows(X: Any) -> int:
    if hasattr(X, "shape"):
        return int(X.shape[0])
    return len(X if hasattr(X, "__len__") else np.asarray(X))


def _require_output(model: Any) -> None:
    """Raise `InvalidProbabilities` if this is a model without `predict_proba`, and not the output of one."""
    hint = "pass what it returns instead of the model"
    if hasattr(model, "decision_function"):
        hint = "AbstainingClassifier with a calibration makes probabilities of a decision function"
    if hasattr(model, "decision_function") or hasattr(model, "predict") or callable(model):
        raise InvalidProbabilities(f"{type(model).__name__} has no predict_proba; {hint}")


def _take_labels(matrix: Matrix, axes: Axes, labels: Sequence[Hashable] | None) -> Any:
    """Return a table with its names if it has any, and of those that are given only these labels, in this order."""
    names = axes.label_names
    if labels is not None:
        unknown = next((label for label in labels if label not in (names or ())), None)
        if names is None or unknown is not None:
            known = "names no labels" if names is None else f"has no label {quoted(unknown)}, only {quoted(names)}"
            raise InvalidLabels(f"labels: the output {known}")
        matrix, names = matrix[:, [names.index(label) for label in labels]], tuple(labels)
    return matrix if names is None else Table(matrix, names, axes.index)


class _ListOfLabels(NamedTuple):
    """What a model has returned for each label, P(class) of its classes, which are 0 and 1 if they are not known."""

    outputs: Sequence[Any]
    classes: Sequence[Any] | None = None

    def relevant(self, what: str) -> NDArray[np.float64]:
        """Return P(class 1) of each label as (n, m)."""
        known = [None] * len(self.outputs) if self.classes is None else self.classes
        labels = enumerate(zip(self.outputs, known, strict=True))
        return np.column_stack([_relevant(output, classes, f"{what}: label {j}") for j, (output, classes) in labels])


def _read_output(output: Any, kind: Kind, n: int | None, what: str = "the output") -> tuple[Matrix, Axes]:
    """Return P(label is relevant) as (n, m) from what a model has returned for n instances, and the names it has."""
    if type(output) in (list, tuple) and output and not is_records(output):
        output = _ListOfLabels(output) if is_records(output[0]) or len(shape_of_first(output)) == 2 else output
    has_classes = isinstance(output, _ListOfLabels) or getattr(output, "ndim", 2) == 3
    if has_classes and kind == "logit":
        raise InvalidProbabilities(
            f"{what}: of two logits for each label, pass the difference (that of class 1 minus that of class 0)"
        )
    axes = Axes()
    if isinstance(output, _ListOfLabels):
        matrix: Matrix = output.relevant(what)
    elif has_classes:
        matrix = _relevant_of_classes(*as_array(output), n, what)
    elif n is not None and getattr(output, "ndim", 2) != 2:
        raise InvalidProbabilities(f"{what} gives an array of shape {tuple(output.shape)}")
    else:
        matrix, axes = read_matrix(output, what, InvalidProbabilities, records=True)
        matrix = _sigmoid(matrix, what) if kind == "logit" else matrix
        matrix = matrix if sparse.issparse(matrix) else matrix.astype(np.float64, copy=False)
    if n is not None and matrix.shape[0] != n:
        raise InvalidProbabilities(f"{what} has {matrix.shape[0]} rows; there are {n} instances")
    return matrix, axes


def _sigmoid(logits: Matrix, what: str) -> NDArray[np.float64]:
    """Return 1 / (1 + exp(−x)); warn if these look like probabilities, which are no logits."""
    if sparse.issparse(logits):
        raise InvalidProbabilities(f"{what}: logits cannot be sparse: what is not stored would have probability ½")
    if logits.size >= 20 and logits.min() >= 0.0 and logits.max() <= 1.0:
        warnings.warn(
            f'{what}: all numbers lie between 0 and 1; are these probabilities? Then kind="logit" is wrong',
            ProbabilityWarning,
            stacklevel=4,
        )
    probabilities: NDArray[np.float64] = expit(logits.astype(np.float64))
    return probabilities


def _relevant(output: Any, classes: Any, what: str) -> NDArray[np.float64]:
    """Return P(class 1) of a label with the classes 0 and 1, or only one of them."""
    rounding = 0.0
    if is_records(output):  # {0: …, 1: …} for each row, as the ONNX runtime has it
        output, classes = read_records(output, what, InvalidProbabilities)
    else:
        output, rounding = as_array(output)
    probabilities: NDArray[np.float64] = output.astype(np.float64)
    if probabilities.ndim != 2 or (classes is None and probabilities.shape[1] != 2):
        raise InvalidProbabilities(f"{what} has shape {probabilities.shape}, expected (n, 2)")
    if classes is None and not _add_up(probabilities, 1, max(SUM_TOLERANCE, rounding)):
        raise InvalidProbabilities(f"{what} has rows that do not add up to 1; expected P(class 0) and P(class 1)")
    known = np.arange(2) if classes is None else np.asarray(classes)
    if not np.isin(known, (0, 1)).all():
        raise InvalidProbabilities(f"{what} has the classes {known.tolist()}; expected 0 and 1")
    one = np.flatnonzero(known == 1)
    return probabilities[:, one[0]] if len(one) else np.zeros(len(probabilities))


def _relevant_of_classes(table: NDArray[Any], rounding: float, n: int | None, what: str) -> NDArray[np.float64]:
    """Return P(class 1) as (n, m) from an array with an axis of two classes, along which it sums to one."""
    table, tolerance = table.astype(np.float64), max(SUM_TOLERANCE, rounding)
    found: list[NDArray[np.float64]] = []
    if table.shape[2] == 2 and _add_up(table, 2, tolerance):
        # (n, m, 2), as some neural networks have it; (m, n, 2), a stacked list of labels
        found += [p for p in (table[:, :, 1], table[:, :, 1].T) if n is None or len(p) == n]
    if table.shape[1] == 2 and n in (None, table.shape[0]) and _add_up(table, 1, tolerance):
        found += [table[:, 1, :]]  # (n, 2, m), as skorch has it
    given = f"{what} gives an array of shape {table.shape}" + ("" if n is None else f" for {n} instances")
    if not found:
        raise InvalidProbabilities(
            f"{given}; expected (n, m), or an axis of two classes whose probabilities add up to 1: (n, m, 2), "
            "(n, 2, m) or (m, n, 2)"
        )
    first, *others = found
    if any(p.shape != first.shape or not np.allclose(p, first, rtol=0.0, atol=2 * tolerance) for p in others):
        hint = "pass X, too, for the number of instances" if n is None else "pass another number of instances"
        raise InvalidProbabilities(
            f"{given}, which can be read in two ways; {hint}, or P(label is relevant) as one (n, m) array to "
            "abstain.decide"
        )
    return np.ascontiguousarray(first)


def _add_up(probabilities: NDArray[np.float64], axis: int, tolerance: float) -> bool:
    """Whether probabilities add up to 1 along an axis."""
    return bool(np.allclose(probabilities.sum(axis=axis), 1.0, rtol=0.0, atol=tolerance))


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
