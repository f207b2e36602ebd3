"""Reads targets for learning: a table of labels, or a vector of classes."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets

from abstain._core.predict_proba import label_probabilities
from abstain._core.prediction import require_codes
from abstain._core.tables import Matrix, Table, read_matrix
from abstain._utils.errors import InvalidLabels


@dataclass(frozen=True)
class Target:
    """Labels as a table of 0 and 1. If the target is a vector, the labels are its classes: each row has one 1."""

    labels: Matrix  # int8, dense or CSR; signed, since some classifiers convert 0 to −1
    classes: NDArray[Any]
    label_names: tuple[Hashable, ...] | None = None
    dtype: np.dtype[Any] = np.dtype(np.int8)  # noqa: RUF009
    """The dtype in which the labels were given, and predictions are returned."""
    vector: NDArray[Any] | None = None
    """The target as it was given, if it is a vector; None for a table of labels."""


def read_target(y: Any, classes: NDArray[Any] | None = None) -> Target:
    """Read a table of 0 and 1 (array, data frame, sparse), or a vector of classes, by default those in it."""
    if y is None:
        raise InvalidLabels("this classifier requires y to be passed, but the target y is None")
    if not (sparse.issparse(y) or hasattr(y, "columns")):
        _require_no_lists_of_names(y)
        y = check_array(y, ensure_2d=False, allow_nd=True, dtype=None, input_name="y", ensure_min_samples=0)
    if np.shape(y)[0] == 0:
        raise InvalidLabels("y has no rows: there is nothing to learn from 0 sample(s)")
    if getattr(y, "ndim", 2) == 1 or (not sparse.issparse(y) and _is_column_of_classes(y, classes)):
        return _read_vector(np.asarray(y).ravel(), classes)
    matrix, axes = read_matrix(y, "y", InvalidLabels)
    require_codes(matrix, axes, (0, 1), "y", "a label is 0 or 1")
    names = axes.names(matrix.shape[1])
    return Target(matrix.astype(np.int8), _as_vector(names), axes.label_names, matrix.dtype)


def truth_and_probabilities(estimator: Any, X: Any, y: Any) -> tuple[Table, Table]:
    """Return the truth and the probabilities of a fitted classifier, each with the names that are known."""
    probabilities = label_probabilities(estimator, X)
    # One column is one label, whose 0 and 1 are no names of classes.
    classes = None if probabilities.shape[1] == 1 else getattr(estimator, "classes_", None)
    target = read_target(y, classes)
    named = Table(probabilities, getattr(estimator, "label_names_", None), index_of(X))
    return Table(target.labels, target.label_names, index_of(y)), named


def _require_no_lists_of_names(y: Any) -> None:
    for i, row in enumerate(y if isinstance(y, list | tuple | np.ndarray) else ()):
        names = isinstance(row, set | frozenset) or (isinstance(row, list | tuple) and len(row) != len(y[0]))
        if names or (isinstance(row, list | tuple) and any(isinstance(name, str) for name in row)):
            raise InvalidLabels(
                f"y: row {i} is {row!r}; scikit-learn's MultiLabelBinarizer makes a table of 0 and 1 of such lists"
            )


def index_of(table: Any) -> Any:
    """Return the index of a pandas frame or series; None for anything else (lists have an `index` method)."""
    index = getattr(table, "index", None)
    return index if hasattr(index, "equals") else None


def require_same_order(X: Any, y: Any) -> None:
    """Raise `InvalidLabels` if two frames have the same rows in different orders, which is never intended."""
    ours, theirs = index_of(X), index_of(y)
    if ours is None or theirs is None or ours.equals(theirs):
        return
    if len(ours) == len(theirs) and set(ours) == set(theirs):
        i = int(np.argmax(np.asarray(ours != theirs)))
        raise InvalidLabels(f"y has the rows of X in another order: row {i} is {theirs[i]!r}, expected {ours[i]!r}")


def _is_column_of_classes(y: Any, classes: NDArray[Any] | None) -> bool:
    one_column = np.shape(y)[1:] == (1,)
    return one_column and (classes is not None or not np.isin(np.asarray(y), (0, 1)).all())


def _read_vector(vector: NDArray[Any], classes: NDArray[Any] | None) -> Target:
    check_classification_targets(vector)
    known = np.unique(vector) if classes is None else classes
    codes = np.searchsorted(known, vector).clip(max=len(known) - 1)
    unknown = np.flatnonzero(known[codes] != vector)
    if len(unknown):
        i = int(unknown[0])
        raise InvalidLabels(f"y: row {i} is {vector[i : i + 1].tolist()[0]!r}; the classes are {known.tolist()}")
    labels = np.zeros((len(vector), len(known)), np.int8)
    labels[np.arange(len(vector)), codes] = 1
    return Target(labels, known, vector=vector)


def _as_vector(names: list[Hashable]) -> NDArray[Any]:
    """Return an array with one entry per name, also if names are tuples."""
    if all(isinstance(name, int | str) for name in names) and len({type(name) for name in names}) == 1:
        return np.array(names)
    vector = np.empty(len(names), dtype=object)
    vector[:] = names
    return vector
