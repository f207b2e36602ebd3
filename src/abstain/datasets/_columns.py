"""What becomes of an ARFF file's columns: features, labels and text, filled row by row."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.utils import Bunch

from abstain._utils.errors import InvalidDataset
from abstain.datasets import _tokens
from abstain.datasets._arff import Attribute, Header, Rows, broken, decode, number, unescape
from abstain.datasets._bunch import MultiLabelBunch
from abstain.datasets._dates import date_reader

YES_AND_NO: Final = ({"false": 0.0, "true": 1.0}, {"no": 0.0, "yes": 1.0})


def _values(name: str, attribute: Attribute, is_label: bool, doubt: str) -> tuple[float, ...]:
    """The numbers that the declared values of a nominal attribute become."""
    if not is_label:
        return attribute.numbers or tuple(map(float, range(len(attribute.values))))
    if attribute.type == "numeric":
        return ()
    words = [value.lower() for value in attribute.values]
    for meaning in YES_AND_NO:
        if sorted(words) == sorted(meaning):
            return tuple(meaning[word] for word in words)
    if attribute.numbers and sorted(attribute.numbers) == [0, 1]:
        return attribute.numbers
    declared = f"{{{', '.join(attribute.values[:8])}}}" if attribute.values else attribute.type
    message = f"label {attribute.name!r} is {declared}; expected {{0, 1}}, {{false, true}}, {{no, yes}} or numeric"
    raise broken(name, attribute.line, message + doubt)


def _reader(name: str, attribute: Attribute, values: tuple[float, ...]) -> Callable[[str], float]:
    """What turns a field's text into its number, or raises ValueError or KeyError."""
    if attribute.type == "date":
        try:
            return date_reader(attribute.pattern)
        except ValueError as reason:
            raise broken(name, attribute.line, f"attribute {attribute.name!r}: {reason}") from reason
    if attribute.numbers:
        by_number = {x: x for x in attribute.numbers}
        return lambda text: by_number[number(text)]
    if attribute.values:
        return dict(zip(attribute.values, values, strict=True)).__getitem__
    return number


class Columns:
    """What becomes of each column, a label, a feature or text, and how its fields become numbers.

    `doubt` is what errors about the values of labels add if it is not sure that these columns are the labels.
    """

    def __init__(self, name: str, header: Header, labels: list[int], doubt: str = "") -> None:
        self.name, self.attributes, self.doubt = name, header.attributes, doubt
        n_columns = len(self.attributes)
        self.is_label = np.isin(np.arange(n_columns), labels)
        values = [_values(name, *pair, doubt) for pair in zip(self.attributes, self.is_label.tolist(), strict=True)]
        is_text = np.array([attribute.type == "string" for attribute in self.attributes])
        self.labels, self.features = np.flatnonzero(self.is_label), np.flatnonzero(~self.is_label & ~is_text)
        self.texts: list[int] = np.flatnonzero(is_text).tolist()
        self.place = np.full(n_columns, -1, np.int32)  # among the labels, or among the features
        for group in (self.labels, self.features):
            self.place[group] = np.arange(len(group))
        # What a sparse row leaves out is WEKA's internal 0, which for a nominal attribute is the value declared first:
        # a label declared {1, 0} is 1 where it is not stored.
        self.left_out = np.array([numbers[0] if numbers else 0.0 for numbers in values])
        self.filled = self.features[self.left_out[self.features] != 0]
        declared = [attribute.numbers or () for attribute in self.attributes]
        self.declared = np.array([x for numbers in declared for x in numbers], np.float64)
        self.declared_from = np.cumsum([0, *map(len, declared)])
        self.takes_numbers = (np.diff(self.declared_from) > 0) | [a.type == "numeric" for a in self.attributes]
        self.readers = [_reader(name, *pair) for pair in zip(self.attributes, values, strict=True)]

    def settle(self, rows: Rows) -> dict[int, list[str]]:
        """Give every field its number, in place; returns the text of the columns that have none."""
        unsettled = np.empty(len(rows.value), np.int64)
        count = _tokens.find_unsettled(
            rows.value, rows.kind, rows.column, self.takes_numbers, self.declared_from, self.declared, unsettled
        )
        fields = unsettled[:count]
        texts = {j: [""] * len(rows) for j in self.texts}
        where = np.searchsorted(rows.first, fields, side="right") - 1
        arrays = (fields, where, rows.column[fields], rows.start[fields], rows.stop[fields], rows.kind[fields])
        for field, i, j, start, stop, kind in zip(*(array.tolist() for array in arrays), strict=True):
            text = decode(rows.text[start:stop])
            if kind == _tokens.QUOTED:
                text = unescape(text)
            if j in texts:
                texts[j][i] = text
                continue
            try:
                rows.value[field] = self.readers[j](text)
            except (ValueError, KeyError, OverflowError) as reason:
                raise self.wrong(rows, field) from reason
        return texts

    def require_labels(self, rows: Rows, fields: NDArray[np.int64]) -> None:
        """Raise the error that says which of these labels is not 0 or 1, if there is one."""
        value = rows.value[fields]
        bad = (value != 0) & (value != 1)
        if bad.any():
            raise self.wrong(rows, int(fields[np.argmax(bad)]))

    def wrong(self, rows: Rows, field: int) -> InvalidDataset:
        """The error that says what a field is and what it should be."""
        j = int(rows.column[field])
        attribute = self.attributes[j]
        expected = {
            "numeric": "a number",
            "date": f"a date as {attribute.pattern}",
            "nominal": f"one of {{{', '.join(attribute.values[:8])}{', …' if len(attribute.values) > 8 else ''}}}",
        }[attribute.type]
        what = "label" if self.is_label[j] else "attribute"
        if what == "label" and attribute.type == "numeric":
            expected = "0 or 1"
        shown = "missing" if rows.kind[field] == _tokens.MISSING else rows.shown(field)
        line = int(rows.lines[rows.row(field)])
        doubt = self.doubt if self.is_label[j] else ""
        return broken(self.name, line, f"{what} {attribute.name!r} is {shown}, expected {expected}{doubt}")


class _Growing:
    """Rows that are appended to one array, which grows by half: in place where the system can, else by a copy."""

    def __init__(self, dtype: DTypeLike, *shape: int) -> None:
        self.n_rows = 0
        self._array = np.empty((0, *shape), dtype)

    def room(self, n_rows: int) -> NDArray[Any]:
        """The next rows, to be written at once."""
        needed = self.n_rows + n_rows
        if needed > len(self._array):
            # no view of the array outlives the call that asked for it
            self._array.resize((max(needed, len(self._array) * 3 // 2), *self._array.shape[1:]), refcheck=False)
        self.n_rows = needed
        return self._array[needed - n_rows : needed]

    def whole(self) -> NDArray[Any]:
        """All rows, without the room for more; nothing can be appended afterwards."""
        self._array.resize((self.n_rows, *self._array.shape[1:]), refcheck=False)
        return self._array


class RowsSoFar:
    """The rows read so far, as features, labels and text."""

    def __init__(self, columns: Columns) -> None:
        self.columns, self.sparse = columns, False
        self.target = _Growing(np.uint8, len(columns.labels))
        self.dense = _Growing(np.float64, len(columns.features))
        self.stored, self.indices, self.row_sizes = _Growing(np.float64), _Growing(np.int32), _Growing(np.int64)
        self.texts: dict[int, list[str]] = {j: [] for j in columns.texts}

    def append(self, rows: Rows) -> None:
        """Read these rows into the arrays."""
        for j, text in self.columns.settle(rows).items():
            self.texts[j] += text
        self.sparse = rows.sparse
        if rows.sparse:
            self._append_sparse(rows)
        else:
            self._append_dense(rows)

    def _append_dense(self, rows: Rows) -> None:
        n_columns = len(self.columns.attributes)
        value = rows.value.reshape(len(rows), n_columns)
        labels = self.columns.labels
        self.columns.require_labels(rows, (np.arange(len(rows))[:, np.newaxis] * n_columns + labels).ravel())
        self.target.room(len(rows))[:] = value[:, labels]
        np.take(value, self.columns.features, axis=1, out=self.dense.room(len(rows)), mode="clip")

    def _append_sparse(self, rows: Rows) -> None:
        columns = self.columns
        row = np.repeat(np.arange(len(rows)), np.diff(rows.first))
        is_label = columns.is_label[rows.column]
        columns.require_labels(rows, np.flatnonzero(is_label))
        target = self.target.room(len(rows))
        target[:] = columns.left_out[columns.labels]
        target[row[is_label], columns.place[rows.column[is_label]]] = rows.value[is_label]

        filled = columns.filled
        is_filled = np.isin(rows.column, filled)
        kept = (columns.place[rows.column] >= 0) & ~is_label & ~is_filled
        row_of, column_of, value_of = row[kept], rows.column[kept], rows.value[kept]
        if len(filled):
            block = np.tile(columns.left_out[filled], (len(rows), 1))
            block[row[is_filled], np.searchsorted(filled, rows.column[is_filled])] = rows.value[is_filled]
            row_of = np.concatenate([row_of, np.repeat(np.arange(len(rows)), len(filled))])
            column_of = np.concatenate([column_of, np.tile(filled, len(rows))])
            value_of = np.concatenate([value_of, block.ravel()])
            order = np.lexsort((column_of, row_of))
            row_of, column_of, value_of = row_of[order], column_of[order], value_of[order]
        nonzero = np.flatnonzero(value_of)
        self.stored.room(len(nonzero))[:] = value_of[nonzero]
        self.indices.room(len(nonzero))[:] = columns.place[column_of[nonzero]]
        self.row_sizes.room(len(rows))[:] = np.bincount(row_of[nonzero], minlength=len(rows))

    def _data(self) -> Any:
        if not self.sparse:
            return self.dense.whole()
        indptr = np.concatenate([[0], np.cumsum(self.row_sizes.whole())])
        kind = np.int32 if indptr[-1] <= np.iinfo(np.int32).max else np.int64
        parts = (self.stored.whole(), self.indices.whole().astype(kind, copy=False), indptr.astype(kind))
        return sparse.csr_array(parts, shape=(self.target.n_rows, len(self.columns.features)))

    def bunch(self, relation: str) -> Bunch:
        """All that has been read."""
        features = [self.columns.attributes[j] for j in self.columns.features]
        return MultiLabelBunch(
            data=self._data(),
            target=self.target.whole(),
            feature_names=[attribute.name for attribute in features],
            target_names=[self.columns.attributes[j].name for j in self.columns.labels],
            categories={a.name: a.values for a in features if a.type == "nominal" and not a.numbers},
            strings={self.columns.attributes[j].name: np.array(text, object) for j, text in self.texts.items()},
            relation=relation,
        )
