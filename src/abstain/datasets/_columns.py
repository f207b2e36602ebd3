"""Features, labels and text of an ARFF file: how each column becomes numbers, and the tables built from its rows."""

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


def _values(name: str, attribute: Attribute, is_label: bool, error_hint: str) -> tuple[float, ...]:
    """Return the numbers for the declared values of a nominal attribute."""
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
    raise broken(name, attribute.line, message + error_hint)


def _reader(name: str, attribute: Attribute, values: tuple[float, ...]) -> Callable[[str], float]:
    """Return the function from a field's text to its number, which may raise ValueError or KeyError."""
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
    """Which columns are labels, features or text, and how their fields become numbers.

    `error_hint` is added to errors about the values of labels, if it is not sure that these columns are the labels.
    """

    def __init__(self, name: str, header: Header, labels: list[int], error_hint: str = "") -> None:
        self.name, self.attributes, self.error_hint = name, header.attributes, error_hint
        n_columns = len(self.attributes)
        self.is_label = np.isin(np.arange(n_columns), labels)
        pairs = list(zip(self.attributes, self.is_label.tolist(), strict=True))
        values = [_values(name, attribute, is_label, error_hint) for attribute, is_label in pairs]
        is_text = np.array([attribute.type == "string" for attribute in self.attributes])
        self.labels, self.features = np.flatnonzero(self.is_label), np.flatnonzero(~self.is_label & ~is_text)
        self.texts: list[int] = np.flatnonzero(is_text).tolist()
        self.position = np.full(n_columns, -1, np.int32)  # among the labels, or among the features
        for group in (self.labels, self.features):
            self.position[group] = np.arange(len(group))
        # What a sparse row leaves out is WEKA's internal 0, which for a nominal attribute is the value declared first:
        # a label declared {1, 0} is 1 where it is not stored.
        self.implicit_values = np.array([numbers[0] if numbers else 0.0 for numbers in values])
        self.implicitly_nonzero = self.features[self.implicit_values[self.features] != 0]
        declared = [attribute.numbers or () for attribute in self.attributes]
        self.declared = np.array([x for numbers in declared for x in numbers], np.float64)
        self.declared_from = np.cumsum([0, *map(len, declared)])
        self.takes_numbers = (np.diff(self.declared_from) > 0) | [a.type == "numeric" for a in self.attributes]
        self.readers = [_reader(name, *pair) for pair in zip(self.attributes, values, strict=True)]

    def convert(self, rows: Rows) -> dict[int, list[str]]:
        """Replace every field by its number, in place; return the text of the columns that have none."""
        unconverted = np.empty(len(rows.value), np.int64)
        count = _tokens.find_unconverted(
            rows.value, rows.kind, rows.column, self.takes_numbers, self.declared_from, self.declared, unconverted
        )
        fields = unconverted[:count]
        texts = {j: [""] * len(rows) for j in self.texts}
        row_of_field = np.searchsorted(rows.first, fields, side="right") - 1
        arrays = (fields, row_of_field, rows.column[fields], rows.start[fields], rows.stop[fields], rows.kind[fields])
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
                raise self.bad_value_error(rows, field) from reason
        return texts

    def require_labels(self, rows: Rows, fields: NDArray[np.int64]) -> None:
        """Raise `InvalidDataset` if one of these fields, which are labels, is not 0 or 1."""
        value = rows.value[fields]
        bad = (value != 0) & (value != 1)
        if bad.any():
            raise self.bad_value_error(rows, int(fields[np.argmax(bad)]))

    def bad_value_error(self, rows: Rows, field: int) -> InvalidDataset:
        """Return the error with the value of a field and what was expected."""
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
        hint = self.error_hint if self.is_label[j] else ""
        return broken(self.name, line, f"{what} {attribute.name!r} is {shown}, expected {expected}{hint}")


class _GrowingArray:
    """An array that rows are appended to; it grows by half: in place where the system can, else by a copy."""

    def __init__(self, dtype: DTypeLike, *shape: int) -> None:
        self.n_rows = 0
        self._array = np.empty((0, *shape), dtype)

    def append(self, n_rows: int) -> NDArray[Any]:
        """Append uninitialized rows, and return them as a view to be filled at once."""
        needed = self.n_rows + n_rows
        if needed > len(self._array):
            # safe without refcheck: callers fill the view at once and keep none
            self._array.resize((max(needed, len(self._array) * 3 // 2), *self._array.shape[1:]), refcheck=False)
        self.n_rows = needed
        return self._array[needed - n_rows : needed]

    def finish(self) -> NDArray[Any]:
        """Return all rows, without unused capacity; nothing can be appended afterwards."""
        self._array.resize((self.n_rows, *self._array.shape[1:]), refcheck=False)
        return self._array


class TableBuilder:
    """Collects the rows read so far, as features, labels and text."""

    def __init__(self, columns: Columns) -> None:
        self.columns, self.sparse = columns, False
        self.target = _GrowingArray(np.uint8, len(columns.labels))
        self.dense = _GrowingArray(np.float64, len(columns.features))
        self.stored, self.indices = _GrowingArray(np.float64), _GrowingArray(np.int32)
        self.row_sizes = _GrowingArray(np.int64)
        self.texts: dict[int, list[str]] = {j: [] for j in columns.texts}

    def append(self, rows: Rows) -> None:
        """Append these rows to the tables."""
        for j, text in self.columns.convert(rows).items():
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
        self.target.append(len(rows))[:] = value[:, labels]
        np.take(value, self.columns.features, axis=1, out=self.dense.append(len(rows)), mode="clip")

    def _append_sparse(self, rows: Rows) -> None:
        columns = self.columns
        row = np.repeat(np.arange(len(rows)), np.diff(rows.first))
        is_label = columns.is_label[rows.column]
        columns.require_labels(rows, np.flatnonzero(is_label))
        target = self.target.append(len(rows))
        target[:] = columns.implicit_values[columns.labels]
        target[row[is_label], columns.position[rows.column[is_label]]] = rows.value[is_label]

        # Columns whose implicit value is not 0 are filled in as a dense block, then merged with the stored fields.
        dense = columns.implicitly_nonzero
        is_dense = np.isin(rows.column, dense)
        kept = (columns.position[rows.column] >= 0) & ~is_label & ~is_dense
        row_of, column_of, value_of = row[kept], rows.column[kept], rows.value[kept]
        if len(dense):
            block = np.tile(columns.implicit_values[dense], (len(rows), 1))
            block[row[is_dense], np.searchsorted(dense, rows.column[is_dense])] = rows.value[is_dense]
            row_of = np.concatenate([row_of, np.repeat(np.arange(len(rows)), len(dense))])
            column_of = np.concatenate([column_of, np.tile(dense, len(rows))])
            value_of = np.concatenate([value_of, block.ravel()])
            order = np.lexsort((column_of, row_of))
            row_of, column_of, value_of = row_of[order], column_of[order], value_of[order]
        nonzero = np.flatnonzero(value_of)
        self.stored.append(len(nonzero))[:] = value_of[nonzero]
        self.indices.append(len(nonzero))[:] = columns.position[column_of[nonzero]]
        self.row_sizes.append(len(rows))[:] = np.bincount(row_of[nonzero], minlength=len(rows))

    def _data(self) -> Any:
        if not self.sparse:
            return self.dense.finish()
        indptr = np.concatenate([[0], np.cumsum(self.row_sizes.finish())])
        kind = np.int32 if indptr[-1] <= np.iinfo(np.int32).max else np.int64
        parts = (self.stored.finish(), self.indices.finish().astype(kind, copy=False), indptr.astype(kind))
        return sparse.csr_array(parts, shape=(self.target.n_rows, len(self.columns.features)))

    def bunch(self, relation: str) -> Bunch:
        """Return all that has been read."""
        features = [self.columns.attributes[j] for j in self.columns.features]
        return MultiLabelBunch(
            data=self._data(),
            target=self.target.finish(),
            feature_names=[attribute.name for attribute in features],
            target_names=[self.columns.attributes[j].name for j in self.columns.labels],
            categories={a.name: a.values for a in features if a.type == "nominal" and not a.numbers},
            strings={self.columns.attributes[j].name: np.array(text, object) for j, text in self.texts.items()},
            relation=relation,
        )
