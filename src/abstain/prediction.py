"""Partial predictions and partial rankings: what is answered, what is left to a human.

The only place that knows how an abstention is written: −1 in arrays, ``<NA>`` in frames, ``?`` on screen.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from html import escape
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain.errors import InvalidLabels, quoted
from abstain.kernels import packing
from abstain.kernels.tally import count_open
from abstain.matrix import Axes, Matrix, csr_in_order, dense, read_matrix, require_room

ABSTAIN = -1
"""The code for "abstained" in arrays."""

SHOWN_ROWS, SHOWN_LABELS = 8, 12
CHECKED_ROWS = 10_000


class _Partial(ABC):
    """What partial predictions and partial rankings have in common: codes per instance and label, −1 = abstained."""

    noun: ClassVar[str]
    code_type: ClassVar[type[np.signedinteger[Any]]]

    def __init__(self, codes: Any, expected_loss: Any = None, label_names: Sequence[Hashable] | None = None) -> None:
        matrix, axes = read_matrix(codes, self.noun, InvalidLabels)
        if axes.gaps and not sparse.issparse(matrix):  # what is missing in a frame is left open
            matrix = np.where(np.isnan(matrix), ABSTAIN, matrix)
        if label_names is not None:
            axes = Axes(tuple(axes.names(matrix.shape[1], label_names)), axes.index, axes.library)
        self._check(matrix, axes)
        expected = None if expected_loss is None else np.asarray(expected_loss, dtype=np.float64)
        if expected is not None and expected.shape != matrix.shape[:1]:
            raise InvalidLabels(f"expected_loss has shape {expected.shape}; there are {matrix.shape[0]} instances")
        self._set(matrix.astype(self.code_type), axes, expected)

    @classmethod
    def trusted(cls, codes: Matrix, axes: Axes, expected_loss: NDArray[np.float64]) -> Self:
        """Without a check or a copy, for codes that this package has made."""
        self = cls.__new__(cls)
        self._set(codes, axes, expected_loss)
        return self

    def _set(self, codes: Matrix, axes: Axes, expected_loss: NDArray[np.float64] | None) -> None:
        self.codes = codes
        self.axes = axes
        self.expected_loss = expected_loss
        """The expected generalised loss of each instance, penalty included; None if the answers came from elsewhere."""

    @abstractmethod
    def _check(self, matrix: Matrix, axes: Axes) -> None:
        """Raise `InvalidLabels` if there is anything but codes."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of instances and of labels."""
        n, m = self.codes.shape
        return n, m

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def label_names(self) -> tuple[Hashable, ...] | None:
        """What the labels are called, if that is known."""
        return self.axes.label_names

    @property
    def abstained(self) -> Any:
        """Which labels are left open: a boolean n × m array, sparse if the probabilities were."""
        if sparse.issparse(self.codes):
            left_open = self.codes.data == ABSTAIN
            indices, indptr = self.codes.indices[left_open], np.concatenate([[0], np.cumsum(self.n_abstained)])
            return csr_in_order(np.ones(len(indices), np.bool_), indices, indptr, self.shape)
        return self.codes == ABSTAIN

    @property
    def n_abstained(self) -> NDArray[np.intp]:
        """How many labels are left open, per instance."""
        counts = np.empty(len(self), np.intp)
        if sparse.issparse(self.codes):
            packing.count_open(self.codes.indptr, self.codes.data, counts)
        else:
            count_open(self.codes, counts)
        return counts

    def to_frame(self, label_names: Sequence[Hashable] | None = None) -> Any:
        """A data frame with a column per label, ``<NA>`` (polars: null) where abstained.

        It is of the library that the probabilities came in, pandas by default, and keeps their index and names.
        """
        names = self.axes.names(self.shape[1], label_names)
        codes = self._corner(*self.shape)
        if self.axes.library == "polars":
            import polars as pl

            if len({str(name) for name in names}) < len(names):
                raise InvalidLabels("label_names: polars needs a different name for each label")
            columns = {str(name): pl.Series(codes[:, j]) for j, name in enumerate(names)}
            return pl.DataFrame(columns).with_columns(pl.all().replace(ABSTAIN, None))
        try:
            import pandas as pd
        except ImportError as reason:
            raise ImportError("to_frame needs pandas: pip install 'abstain[frames]'") from reason

        integer = f"Int{8 * codes.dtype.itemsize}"
        frame = pd.DataFrame(codes, index=self.axes.index).astype(integer)
        frame[codes == ABSTAIN] = pd.NA
        frame.columns = pd.Index(names)
        return frame

    def _corner(self, n_rows: int, n_labels: int) -> NDArray[Any]:
        """The codes of the first instances and labels, as a dense array."""
        return dense(self.codes[:n_rows, :n_labels], f"the {self.noun}")

    def _summary(self) -> str:
        n, m = self.shape
        rate = self.n_abstained.sum() / max(1, n * m)
        expected = "" if self.expected_loss is None or n == 0 else f", expected loss {self.expected_loss.mean():.4g}"
        size = f"{n} instance{'' if n == 1 else 's'} × {m} label{'' if m == 1 else 's'}"
        return f"{type(self).__name__} of {size}: {rate:.1%} abstained{expected}"

    def _preview(self) -> tuple[list[str], list[list[str]], list[str]]:
        """Row names, cells and label names of the corner that is shown."""
        n, m = self.shape
        corner = self._corner(SHOWN_ROWS, SHOWN_LABELS)
        cells = [["?" if code == ABSTAIN else str(code) for code in row] for row in corner]
        rows = [str(i if self.axes.index is None else self.axes.index[i]) for i in range(len(cells))]
        names = [str(name) for name in (self.label_names or range(m))[:SHOWN_LABELS]]
        if m > SHOWN_LABELS:
            names.append("…")
            cells = [[*row, "…"] for row in cells]
        if n > SHOWN_ROWS:
            rows.append("…")
            cells.append(["…"] * len(names))
        return rows, cells, names

    def __repr__(self) -> str:
        rows, cells, names = self._preview()
        margin = max((len(row) for row in rows), default=0)
        widths = [max(len(text) for text in column) for column in zip(names, *cells, strict=True)]
        lines = ["  ".join([" " * margin, *(name.rjust(width) for name, width in zip(names, widths, strict=True))])]
        for row, line in zip(rows, cells, strict=True):
            cell = (text.rjust(width) for text, width in zip(line, widths, strict=True))
            lines.append("  ".join([row.rjust(margin), *cell]))
        return "\n".join([self._summary(), *lines]) if rows else self._summary()

    def _repr_html_(self) -> str:
        rows, cells, names = self._preview()
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = ""
        for row, line in zip(rows, cells, strict=True):
            marked = (
                '<td style="background:#f5b84155" title="abstained">?</td>'
                if text == "?"
                else f"<td>{escape(text)}</td>"
                for text in line
            )
            body += f"<tr><th>{escape(row)}</th>{''.join(marked)}</tr>"
        return (
            f"<p>{escape(self._summary())}</p>"
            f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    def _read_answers(self, answers: Any) -> NDArray[np.int8]:
        """What a human has answered: 0 or 1 for each label left open, row by row."""
        n_open = int(self.n_abstained.sum())
        if n_open == 0:
            return np.empty(0, np.int8)
        matrix, axes = read_matrix(answers, "answers", InvalidLabels)
        if matrix.shape == self.shape:
            self.axes.require_same(axes, "answers")
            values = self._where_open(matrix)
        elif matrix.shape == (1, n_open):
            values = dense(matrix)[0]
        else:
            raise InvalidLabels(
                f"answers: shape {matrix.shape}; expected a table of {self.shape}, "
                f"or one answer for each of the {n_open} abstained labels, row by row"
            )
        bad = np.flatnonzero(~np.isin(values, (0, 1)))
        if len(bad):
            i, j = (int(place[bad[0]]) for place in self.abstained.nonzero())
            where = f"{self.axes.row(i)}, {self.axes.label(j)}"
            raise InvalidLabels(f"answers: {where} is {values[bad[0]]}; an abstained label needs the answer 0 or 1")
        return values.astype(np.int8)

    def _where_open(self, matrix: Matrix) -> NDArray[Any]:
        """What a table holds where labels are left open, row by row."""
        left_open = self.abstained
        if not sparse.issparse(left_open) or not sparse.issparse(matrix):
            return np.asarray(matrix[left_open.nonzero()]).ravel()
        found = np.zeros(left_open.nnz, matrix.dtype)
        parts = matrix.indptr, matrix.indices, matrix.data
        packing.look_up(left_open.indptr, left_open.indices, *parts, found)
        return found


class PartialPrediction(_Partial):
    """Answers of 1 and 0 where the loss is best served, −1 elsewhere.

    `decide` returns one; it can also be made from any array of 1, 0 and −1, to be scored.

    Examples
    --------
    >>> import abstain
    >>> prediction = abstain.decide([[0.95, 0.6, 0.2], [0.1, 0.5, 0.9]], penalty=0.25)
    >>> prediction
    PartialPrediction of 2 instances × 3 labels: 33.3% abstained, expected loss 0.475
       0  1  2
    0  1  ?  0
    1  0  ?  1
    >>> prediction.n_abstained
    array([1, 1])
    >>> prediction.fill([1, 0])  # a human answers the two open labels
    array([[1, 1, 0],
           [0, 0, 1]], dtype=int8)
    """

    noun = "labels"
    code_type = np.int8

    @property
    def labels(self) -> Any:
        """int8, n × m: 1, 0 or −1 = abstained. CSR if the probabilities were sparse; what it does not store is 0."""
        return self.codes

    def fill(self, answers: Any) -> Any:
        """The complete labelling once a human has answered.

        Parameters
        ----------
        answers : n × m table, or one answer per abstained label, row by row
            0 or 1 for every abstained label. Of a table only these are read: the others may hold anything.

        Returns
        -------
        int8 array or CSR, n × m
        """
        values = self._read_answers(answers)
        complete = self.codes.copy()
        if sparse.issparse(complete):
            complete.data[complete.data == ABSTAIN] = values
            complete.eliminate_zeros()
        else:
            complete[complete == ABSTAIN] = values
        return complete

    def _check(self, matrix: Matrix, axes: Axes) -> None:
        require_codes(matrix, axes, (ABSTAIN, 0, 1), self.noun, "a label is 1, 0 or −1 (abstained)")


class PartialRanking(_Partial):
    """The labels worth ranking, best first, and those left out.

    Examples
    --------
    >>> import abstain
    >>> ranking = abstain.decide([0.9, 0.3, 0.7, 0.8], "rank", penalty=0.2)
    >>> ranking.positions
    array([[ 0,  2, -1,  1]], dtype=int32)
    >>> ranking.order(0)
    array([0, 3, 1])
    """

    noun = "positions"
    code_type = np.int32

    @property
    def positions(self) -> Any:
        """int32, n × m: 0 = first, −1 = not ranked.

        CSR if the probabilities were sparse: it stores what they stored, and the labels that it does not store are
        ranked behind, by label.
        """
        return self.codes

    def order(self, i: int) -> NDArray[np.intp]:
        """The ranked labels of instance i, best first (of a sparse ranking, those stored)."""
        i = range(len(self))[i]
        if sparse.issparse(self.codes):
            stored = slice(self.codes.indptr[i], self.codes.indptr[i + 1])
            labels, positions = self.codes.indices[stored].astype(np.intp), self.codes.data[stored]
        else:
            labels, positions = np.arange(self.shape[1]), self.codes[i]
        ranked = positions != ABSTAIN
        best_first: NDArray[np.intp] = labels[ranked][np.argsort(positions[ranked])]
        return best_first

    def fill(self, answers: Any) -> NDArray[np.int32]:
        """The complete ranking once a human has said which of the left out labels are relevant.

        Those that are come first, those that are not come last.

        Parameters
        ----------
        answers : n × m table, or one answer per label left out, row by row
            0 or 1 for every label that is not ranked. Of a table only these are read.
        """
        values = self._read_answers(answers)
        key = self._corner(*self.shape).astype(np.int64)
        key[key == ABSTAIN] = np.where(values == 1, ABSTAIN, self.shape[1])
        return np.argsort(np.argsort(key, axis=1, kind="stable"), axis=1).astype(np.int32)

    def _check(self, matrix: Matrix, axes: Axes) -> None:
        if sparse.issparse(matrix):
            raise InvalidLabels("positions: give a dense table; only `decide` makes sparse rankings")
        m = matrix.shape[1]
        n_ranked = np.count_nonzero(matrix != ABSTAIN, axis=1)[:, np.newaxis]
        wanted = np.where(np.arange(m) < n_ranked, np.arange(m), m)
        wrong = (np.sort(np.where(matrix == ABSTAIN, m, matrix), axis=1) != wanted).any(axis=1)
        if wrong.any():
            i = int(np.argmax(wrong))
            found = quoted(matrix[i].tolist())
            raise InvalidLabels(
                f"positions: {axes.row(i)} is {found}; expected 0, 1, 2 … once each, and −1 for the others"
            )

    def _corner(self, n_rows: int, n_labels: int) -> NDArray[Any]:
        if not sparse.issparse(self.codes):
            return super()._corner(n_rows, n_labels)
        some = self.codes[:n_rows]
        n, m = some.shape[0], min(n_labels, some.shape[1])
        require_room((n, m), np.dtype(self.code_type), f"the {self.noun}")
        corner = np.empty((n, m), self.code_type)
        everywhere = np.arange(n + 1) * m, np.tile(np.arange(m), n)
        packing.lift_positions(*everywhere, some.indptr, some.indices, some.data, corner.reshape(-1))
        return corner


def require_codes(matrix: Matrix, axes: Axes, codes: tuple[int, ...], what: str, accepted: str) -> None:
    """Raise `InvalidLabels`, naming the first entry, if a table holds anything else."""
    values = matrix.data if sparse.issparse(matrix) else matrix
    for first in range(0, len(values), CHECKED_ROWS):
        bad = ~np.isin(values[first : first + CHECKED_ROWS], codes)
        if bad.any():
            at, *column = (int(k) for k in np.argwhere(bad)[0])
            i, value = first + at, values[(first + at, *column)]
            if not column:
                i, column = int(np.searchsorted(matrix.indptr, i, side="right")) - 1, [int(matrix.indices[i])]
            raise InvalidLabels(f"{what}: {axes.row(i)}, {axes.label(column[0])} is {value}; {accepted}")
