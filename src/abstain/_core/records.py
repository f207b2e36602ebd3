"""Reads records: rows of scores with the names of their labels, as text classifiers return them.

A row is a dict {label: score} (spaCy's ``doc.cats``, ONNX's ZipMap), a list of {"label": …, "score": …} (Hugging Face's
pipelines with ``top_k=None``), or a dict {"labels": […], "scores": […]} (their zero-shot pipelines).
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from abstain._utils.errors import quoted

Row: TypeAlias = Mapping[Hashable, Any]  # from labels to scores


def is_records(table: Any) -> bool:
    """Whether a table is a list of records, or a single one; of a list, the first row tells."""
    if isinstance(table, list | tuple) and len(table) > 0:
        return isinstance(table[0], Mapping) or _is_list_of_entries(table[0])
    return isinstance(table, Mapping)


def read_records(records: Any, what: str, error: type[ValueError]) -> tuple[NDArray[np.float64], tuple[Hashable, ...]]:
    """Return the scores as an array of shape (n_rows, n_labels), and the names of the labels.

    A dict {label: score} has the order of the model: that of the first row is kept. The other forms are sorted by
    score, which says nothing of the labels: these are sorted by name, and numbers in names by value. All rows must
    name the same labels, since a score that is not there is unknown, and not 0.
    """
    if isinstance(records, Mapping):
        records = [records]
    elif _is_entry(records[0]):
        _require_one_row(records, what, error)
        records = [records]
    rows = [_read_row(row, i, what, error) for i, row in enumerate(records)]
    names = list(rows[0])
    if rows[0] is not records[0]:
        names.sort(key=_by_name)
    for i, row in enumerate(rows):
        _require_same_labels(rows[0], row, i, what, error)
    values = np.empty((len(rows), len(names)))
    for i, row in enumerate(rows):
        scores = [row[name] for name in names]
        try:
            values[i] = numbers = np.array(scores)
            is_number = numbers.dtype.kind in "fiub"
        except Exception:  # what converts its elements, such as a tensor's, raises errors of its own
            is_number = False
        if not is_number:
            j = next((j for j, score in enumerate(scores) if not isinstance(score, int | float | np.number)), 0)
            raise error(f"{what}: row {i}, label {quoted(names[j])} is {quoted(scores[j])}; expected a number")
    return values, tuple(names)


def _is_entry(item: Any) -> bool:
    """Whether an item is {"label": …, "score": …}."""
    return isinstance(item, Mapping) and isinstance(item.get("label"), str) and "score" in item


def _is_list_of_entries(row: Any) -> bool:
    return isinstance(row, list | tuple) and len(row) > 0 and _is_entry(row[0])


def _require_one_row(entries: Sequence[Any], what: str, error: type[ValueError]) -> None:
    """Raise an error if {label, score}s are not sorted by score, as they would be for one text: they may be of several.

    Pipelines return just the best label of each text, in such a list, unless they are told otherwise.
    """
    scores = [entry.get("score") for entry in entries if _is_entry(entry)]
    labels = {entry["label"] for entry in entries if _is_entry(entry)}
    try:
        is_sorted = all(before >= after for before, after in pairwise(scores))
    except TypeError:
        return  # what is no number is named later
    if not is_sorted or len(labels) < len(entries):
        raise error(
            f"{what}: is this the best label of each of {len(entries)} texts? Pass top_k=None to the pipeline, for the "
            "scores of all labels; if it is one row, put it into a list: [row]"
        )


def _read_row(row: Any, i: int, what: str, error: type[ValueError]) -> Row:
    """Return a row as a mapping from labels to scores, itself if it is one."""
    if isinstance(row, Mapping) and not _is_entry(row):
        if not ({"labels", "scores"} <= row.keys() and isinstance(row["labels"], list | tuple)):
            return row
        pairs = list(zip(row["labels"], row["scores"], strict=True))
    elif _is_list_of_entries(row) and all(map(_is_entry, row)):
        pairs = [(entry["label"], entry["score"]) for entry in row]
    else:
        expected = '{label: score} or [{"label": …, "score": …}, …]'
        raise error(f"{what}: row {i} is {quoted(row)}; expected a record of all labels, {expected}")
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise error(f"{what}: row {i} has two scores for label {quoted(twice)}")
    return found


def _require_same_labels(first: Row, row: Row, i: int, what: str, error: type[ValueError]) -> None:
    if row.keys() == first.keys():
        return
    lacking, having = (i, 0) if first.keys() - row.keys() else (0, i)
    label = next(name for name in [*first, *row] if name not in first or name not in row)
    raise error(
        f"{what}: row {lacking} has no score for label {quoted(label)}, which row {having} has; a score that is not "
        "there is unknown, and not 0: ask the model for all of them (top_k=None in Hugging Face's pipelines)"
    )


def _by_name(name: Hashable) -> list[tuple[bool, int, str]]:
    """Return the key by which "LABEL_2" comes before "LABEL_10"."""
    parts = re.split(r"([0-9]+)", str(name))
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]
