"""Reads the answers of humans to abstained labels: from tables, records and review queues."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.kernels import packing
from abstain._core.kernels.codes import ABSTAIN
from abstain._core.tables import Axes, Matrix, dense, read_matrix
from abstain._utils.errors import InvalidLabels
from abstain._utils.frames import is_frame, open_frame

COLUMNS = ("id", "label", "answer")
EXPECTED = "an answer is 1 or 0, or missing if nobody has answered yet"


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of 1 or 0, with the numbers of their rows and labels."""

    row: NDArray[np.int64]
    label: NDArray[np.int64]
    answer: NDArray[np.int8]


class AnswerSource(ABC):
    """An object that holds answers by the numbers of their rows and labels, such as a review queue."""

    @abstractmethod
    def answers_for(self, axes: Axes) -> Answers:
        """Return the answers; raise `InvalidLabels` if they belong to a prediction of other rows or labels."""


def read_answers(answers: Any, axes: Axes, abstained: Matrix) -> Answers:
    """Return the answers to abstained labels, from a table, records, or an `AnswerSource`.

    Parameters
    ----------
    answers : array-like of shape (n_instances, n_labels), records, or AnswerSource
        As for `PartialPrediction.fill`.
    axes : Axes
        The names of rows and labels.
    abstained : bool array or CSR array of shape (n_instances, n_labels)
        Which labels need an answer.
    """
    if isinstance(answers, AnswerSource):
        found = answers.answers_for(axes)
    elif _has_columns(answers, axes.label_names) or (records := read_records(answers)) is None:
        return _read_table(answers, axes, abstained)
    else:
        found = locate_records(records, axes, abstained.shape)
    outside = (found.row >= abstained.shape[0]) | (found.label >= abstained.shape[1])
    if outside.any():
        k = int(np.argmax(outside))
        raise InvalidLabels(
            f"answers: row {found.row[k]}, label {found.label[k]} is not in the prediction of shape {abstained.shape}"
        )
    answered = ~np.asarray(abstained[found.row, found.label]).ravel().astype(bool)
    if answered.any():
        k = int(np.argmax(answered))
        raise InvalidLabels(
            f"answers: {axes.row(int(found.row[k]))}, {axes.label(int(found.label[k]))} is not abstained in this "
            "prediction; only abstained labels can be filled in"
        )
    return found


def _has_columns(answers: Any, names: tuple[Hashable, ...] | None) -> bool:
    """Whether a frame has a column for each label, even if labels are called id, label and answer."""
    return names is not None and is_frame(answers) and open_frame(answers).columns == names


def _read_table(answers: Any, axes: Axes, abstained: Matrix) -> Answers:
    """Read a table where labels are abstained; or a flat list of answers to the labels of a single instance."""
    row, label = (place.astype(np.int64) for place in abstained.nonzero())
    if len(row) == 0 and np.size(answers) == 0:
        return Answers(row, label, np.empty(0, np.int8))
    matrix, their_axes = read_matrix(answers, "answers", InvalidLabels)
    is_flat = np.ndim(answers) == 1
    if matrix.shape == abstained.shape:
        axes.require_same(their_axes, "answers")
        values = _at(matrix, abstained)
    elif is_flat and matrix.shape[1] == len(row) and (abstained.shape[0] == 1 or len(row) == 1):
        values = dense(matrix)[0]
    else:
        what = (
            f"a flat list of {matrix.shape[1]} does not say which label of which instance each answer is for"
            if is_flat
            else f"shape {matrix.shape}"
        )
        raise InvalidLabels(
            f"answers: {what}; expected a table of shape {abstained.shape}, records with id, label and answer, or "
            "queue.with_answers(answers) for answers in the order of a review queue"
        )
    given = ~(np.isnan(values.astype(np.float64)) | (values == ABSTAIN))
    bad = np.flatnonzero(given & ~np.isin(values, (0, 1)))
    if len(bad):
        where = f"{axes.row(int(row[bad[0]]))}, {axes.label(int(label[bad[0]]))}"
        raise InvalidLabels(f"answers: {where} is {values[bad[0]]}; {EXPECTED}")
    return Answers(row[given], label[given], values[given].astype(np.int8))


def _at(matrix: Matrix, places: Matrix) -> NDArray[Any]:
    """Return the values of a table where another one is not zero, row by row."""
    if not sparse.issparse(places) or not sparse.issparse(matrix):
        return np.asarray(matrix[places.nonzero()]).ravel()
    found = np.zeros(places.nnz, matrix.dtype)
    packing.look_up(places.indptr, places.indices, packing.CsrArrays.of(matrix), found)
    return found


def read_answer(value: Any, where: str) -> int | None:
    """Return 1, 0, or None if there is no answer yet; raise `InvalidLabels` for anything else."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value == "" or type(value).__name__ == "NAType":
        return None
    if isinstance(value, Real):
        number = float(value)
        if np.isnan(number) or number == ABSTAIN:
            return None
        if number in (0.0, 1.0):
            return int(number)
    raise InvalidLabels(f"answers: {where} is {value!r}; {EXPECTED}")


def read_records(answers: Any) -> list[tuple[Any, Any, Any]] | None:
    """Return (id, label, answer) of each record in a data frame, a dict of columns or a list of dicts, else None.

    Raises `InvalidLabels` if one of the three is missing.
    """
    if isinstance(answers, Mapping):
        _require_columns(answers, "the dict")
        columns = [list(answers[name]) for name in COLUMNS]
        if len({len(column) for column in columns}) > 1:
            raise InvalidLabels("answers: id, label and answer have different lengths")
        return list(zip(*columns, strict=True))
    if isinstance(answers, Sequence) and not isinstance(answers, str) and len(answers) > 0:
        if not all(isinstance(record, Mapping) for record in answers):
            return None
        for k, record in enumerate(answers):
            _require_columns(record, f"record {k}")
        return [(record["id"], record["label"], record["answer"]) for record in answers]
    if is_frame(answers):
        frame = open_frame(answers)
        if "label" in frame.columns and "answer" in frame.columns:
            _require_columns(frame.columns, "the frame")
            return list(zip(*(frame.column(name) for name in COLUMNS), strict=True))
    return None


def _require_columns(given: Iterable[Hashable], what: str) -> None:
    missing = [name for name in COLUMNS if name not in given]
    if missing:
        raise InvalidLabels(f"answers: {what} has no {missing[0]!r}; answers in records need id, label and answer")


def locate_records(records: list[tuple[Any, Any, Any]], axes: Axes, shape: tuple[int, int]) -> Answers:
    """Return the answers of records by the numbers of their rows and labels; records without an answer are skipped."""
    rows, labels = _Names(axes.index, shape[0], "id", "row"), _Names(axes.label_names, shape[1], "label", "label")
    found: dict[tuple[int, int], int] = {}
    for k, (name, label, value) in enumerate(records):
        place = rows.find(name, k), labels.find(label, k)
        where = f"record {k} (id {name!r}, label {label!r})"
        answer = read_answer(value, where)
        if answer is not None and found.setdefault(place, answer) != answer:
            raise InvalidLabels(f"answers: {where} says {answer}, an earlier record {1 - answer}; keep one of them")
    places = np.array(list(found), np.int64).reshape(-1, 2)
    return Answers(places[:, 0], places[:, 1], np.array(list(found.values()), np.int8))


class _Names:
    """Finds the rows or labels of a prediction by name, or by number if they have no names."""

    def __init__(self, names: Any, size: int, key: str, noun: str) -> None:
        self.key, self.noun = key, noun
        known = range(size) if names is None else list(names)
        self._by_name: dict[Any, int] = {name: i for i, name in reversed(list(enumerate(known)))}
        self._by_text = {str(name): i for name, i in self._by_name.items()}  # numbers come back from files as text
        self._has_duplicates = len(self._by_name) < size

    def find(self, name: Any, k: int) -> int:
        """Return the number of the row or label that record k names."""
        if isinstance(name, float) and name.is_integer():  # a column of whole numbers with missing ones holds floats
            name = int(name)
        i = self._by_name.get(name, self._by_text.get(str(name)))
        if i is None:
            raise InvalidLabels(
                f"answers: record {k} has the {self.key} {name!r}, which is no {self.noun} of the prediction"
            )
        if self._has_duplicates:
            raise InvalidLabels(f"answers: the prediction has {self.noun}s of the same name; answer with a table")
        return i
