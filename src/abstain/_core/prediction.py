"""Partial predictions and partial rankings: which labels are answered, and which are left to a human.

An abstention is `ABSTAIN` (−1) in arrays, ``<NA>`` in data frames and ``?`` in printed predictions.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.kernels import packing
from abstain._core.kernels.codes import ABSTAIN as ABSTAIN
from abstain._core.kernels.counting import count_abstained
from abstain._core.review_answers import read_answers
from abstain._core.tables import Axes, Matrix, Table, csr_in_order, dense, read_matrix, require_memory
from abstain._utils.errors import InvalidLabels, quoted
from abstain._utils.extras import optional
from abstain._utils.frames import make_frame
from abstain._utils.html import HighlightedCell, table
from abstain._utils.types import Floats

SHOWN_ROWS, SHOWN_LABELS, SHOWN_NAMES = 8, 12, 4
CHECKED_ROWS = 10_000


class BoundsOfExpectedLoss(Protocol):
    """What computes `bounds` when they are asked for."""

    def of(self, prediction: Any) -> Floats:
        """Return the least and the greatest expected generalised loss of a prediction, (n_instances, 2)."""


class _Partial(ABC):
    """The common base of partial predictions and rankings: a code for each instance and label, −1 = abstained."""

    noun: ClassVar[str]
    code_type: ClassVar[type[np.signedinteger[Any]]]
    _bounds: Any

    def __init__(self, codes: Any, expected_loss: Any = None, label_names: Sequence[Hashable] | None = None) -> None:
        matrix, axes = read_matrix(codes, self.noun, InvalidLabels)
        if axes.nan_is_missing and not sparse.issparse(matrix):  # a missing cell of a frame is an abstention
            matrix = np.where(np.isnan(matrix), ABSTAIN, matrix)
        if label_names is not None:
            axes = Axes(tuple(axes.names(matrix.shape[1], label_names)), axes.index, axes.library)
        self._check(matrix, axes)
        expected = None if expected_loss is None else np.asarray(expected_loss, dtype=np.float64)
        if expected is not None and expected.shape != matrix.shape[:1]:
            raise InvalidLabels(f"expected_loss has shape {expected.shape}; there are {matrix.shape[0]} instances")
        self._set(matrix.astype(self.code_type), axes, expected)

    @classmethod
    def from_codes(
        cls, codes: Matrix, axes: Axes, expected_loss: Floats | None = None, *, gap: Floats | None = None
    ) -> Self:
        """Make a prediction of codes that this package has computed: they are neither checked nor copied."""
        self = cls.__new__(cls)
        self._set(codes, axes, expected_loss)
        self._gap = gap
        return self

    def with_bounds(self, bounds: "BoundsOfExpectedLoss") -> Self:
        """Return the prediction itself, which can now say between what its expected loss lies."""
        self._bounds = bounds
        return self

    def _set(self, codes: Matrix, axes: Axes, expected_loss: Floats | None) -> None:
        self.codes = codes
        self.axes = axes
        self.expected_loss: Floats = np.full(codes.shape[0], np.nan) if expected_loss is None else expected_loss
        """The expected generalised loss of each instance, penalty included; NaN if it is not known."""
        self._gap: Floats | None = None
        self._bounds = None  # `BoundsOfExpectedLoss` until they are asked for, then an array

    @property
    def bounds(self) -> Floats:
        """The least and the greatest expected generalised loss, penalty included, (n_instances, 2); NaN if not known.

        They differ for decisions from `Intervals`: between them it lies for all probabilities in the intervals.
        """
        if self._bounds is None:
            return np.stack([self.expected_loss, self.expected_loss], axis=1)
        if not isinstance(self._bounds, np.ndarray):
            self._bounds = self._bounds.of(self)
        return self._bounds

    @property
    def gap(self) -> Floats:
        """How much better than `expected_loss` another prediction could be, (n_instances,): 0 where it is optimal.

        Only decisions from `Intervals` for the F, Jaccard and rank losses, and from joint distributions (`Samples`,
        `Mixture`) can have a gap above 0, where the search for the optimum was stopped. NaN if the expected loss is not known.
        """
        return np.where(np.isnan(self.expected_loss), np.nan, 0.0) if self._gap is None else self._gap

    @abstractmethod
    def _check(self, matrix: Matrix, axes: Axes) -> None:
        """Raise `InvalidLabels` if a table holds anything but codes."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of instances and of labels."""
        n, m = self.codes.shape
        return n, m

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def label_names(self) -> tuple[Hashable, ...] | None:
        """The names of the labels, if they are known."""
        return self.axes.label_names

    @property
    def abstained(self) -> NDArray[np.bool_] | sparse.csr_array:
        """Which labels are abstained: bool, (n_instances, n_labels); CSR if the probabilities were sparse."""
        if sparse.issparse(self.codes):
            is_abstained = self.codes.data == ABSTAIN
            indices, indptr = self.codes.indices[is_abstained], np.concatenate([[0], np.cumsum(self.n_abstained)])
            return csr_in_order(np.ones(len(indices), np.bool_), indices, indptr, self.shape)
        return self.codes == ABSTAIN

    @property
    def n_abstained(self) -> NDArray[np.intp]:
        """How many labels of each instance are abstained, (n_instances,)."""
        counts = np.empty(len(self), np.intp)
        if sparse.issparse(self.codes):
            packing.count_abstained(self.codes.indptr, self.codes.data, counts)
        else:
            count_abstained(self.codes, counts)
        return counts

    def to_frame(self, label_names: Sequence[Hashable] | None = None) -> Any:
        """Return a data frame with a column per label, ``<NA>`` (null in other libraries than pandas) where abstained.

        Parameters
        ----------
        label_names : sequence of n_labels names, optional
            The columns; by default the names of the labels, or their numbers.

        Returns
        -------
        data frame
            Of the library that the probabilities came in, pandas by default, with their index.
        """
        names = self.axes.names(self.shape[1], label_names)
        codes = self.to_dense()
        library = self.axes.library
        if library != "pandas":
            texts = [str(name) for name in names]
            if len(set(texts)) < len(texts):
                raise InvalidLabels(f"label_names: {library} needs a different name for each label")
            return make_frame(dict(zip(texts, codes.T, strict=True)), library, null=ABSTAIN)
        pd = optional("pandas", "to_frame needs pandas")
        integer = f"Int{8 * codes.dtype.itemsize}"
        frame = pd.DataFrame(codes, index=self.axes.index).astype(integer)
        frame[codes == ABSTAIN] = pd.NA
        frame.columns = pd.Index(names)
        return frame

    def to_dense(self) -> NDArray[Any]:
        """Return the codes as an array of shape (n_instances, n_labels), whether or not they are sparse."""
        return self._dense(self.codes)

    def _dense(self, codes: Matrix) -> NDArray[Any]:
        """Return the codes of some instances as a dense array."""
        return dense(codes, f"the {self.noun}")

    def _summary(self) -> str:
        n, m = self.shape
        rate = self.n_abstained.sum() / max(1, n * m)
        mean = self.expected_loss.mean() if n else np.nan
        expected = "" if np.isnan(mean) else f", expected loss {mean:.4g}"
        size = f"{n} instance{'' if n == 1 else 's'} × {m} label{'' if m == 1 else 's'}"
        return f"{type(self).__name__} of {size}: {rate:.1%} abstained{expected}"

    def _preview(self) -> tuple[list[str], list[list[str]], list[str]]:
        """Return the row names, cells and column names to print: codes, or names of labels if there are many labels."""
        n, m = self.shape
        if m > SHOWN_LABELS:
            names = list(self._lists(0)) if n else []
            cells = [
                [self._some_names(labels) for labels in self._lists(i).values()] for i in range(min(n, SHOWN_ROWS))
            ]
        else:
            names = [str(name) for name in self.axes.names(m)]
            cells = [
                ["?" if code == ABSTAIN else str(code) for code in row] for row in self._dense(self.codes[:SHOWN_ROWS])
            ]
        rows = [str(i if self.axes.index is None else self.axes.index[i]) for i in range(len(cells))]
        if n > SHOWN_ROWS:
            rows.append("…")
            cells.append(["…"] * len(names))
        return rows, cells, names

    @abstractmethod
    def _lists(self, i: int) -> dict[str, NDArray[np.intp]]:
        """Return the lists of labels that are printed for an instance with many labels, by title."""

    def _some_names(self, labels: NDArray[np.intp]) -> str:
        names = self.axes.label_names
        shown = ", ".join(_short(str(j if names is None else names[j])) for j in labels[:SHOWN_NAMES])
        more = len(labels) - SHOWN_NAMES
        return f"{shown} + {more} more" if more > 0 else shown or "–"

    def _stored(self, i: int) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Return the labels and codes of one instance: all of them, or those that are stored."""
        if not sparse.issparse(self.codes):
            return np.arange(self.shape[1]), self.codes[i]
        stored = slice(self.codes.indptr[i], self.codes.indptr[i + 1])
        return self.codes.indices[stored].astype(np.intp), self.codes.data[stored]

    def __repr__(self) -> str:
        rows, cells, names = self._preview()
        margin = max((len(row) for row in rows), default=0)
        widths = [max(len(text) for text in column) for column in zip(names, *cells, strict=True)]
        justify = str.ljust if self.shape[1] > SHOWN_LABELS else str.rjust
        lines = [self._summary()]
        for row, line in zip(["", *rows], [names, *cells], strict=True):
            cell = (justify(text, width) for text, width in zip(line, widths, strict=True))
            lines.append("  ".join([row.rjust(margin), *cell]).rstrip())
        return "\n".join(lines) if rows else self._summary()

    def _repr_html_(self) -> str:
        rows, cells, names = self._preview()
        marked = [[HighlightedCell("?", "abstained") if text == "?" else text for text in line] for line in cells]
        return table(self._summary(), ["", *names], [[row, *line] for row, line in zip(rows, marked, strict=True)])


class PartialPrediction(_Partial):
    """Answers of 1 and 0, and −1 for abstained labels.

    `decide` returns one; it can also be made from any array of 1, 0 and −1, to be scored.

    Parameters
    ----------
    codes : array-like, data frame or sparse matrix of shape (n_instances, n_labels)
        1, 0 or −1; missing cells of a data frame are abstained.
    expected_loss : array-like of shape (n_instances,), optional
        The expected generalised loss of each instance.
    label_names : sequence of n_labels names, optional
        By default those of a data frame.

    Attributes
    ----------
    labels : int8 array or CSR array of shape (n_instances, n_labels)
        The answers.
    abstained : bool array or CSR array of shape (n_instances, n_labels)
        Which labels are abstained.
    n_abstained : int array of shape (n_instances,)
        How many labels of each instance are abstained.
    expected_loss : float array of shape (n_instances,)
        The expected generalised loss of each instance, penalty included; NaN if it is not known.

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
    >>> answers = [{"id": 1, "label": 1, "answer": 0}, {"id": 0, "label": 1, "answer": 1}]
    >>> prediction.fill(answers).labels  # a human has answered the two abstained labels
    array([[1, 1, 0],
           [0, 0, 1]], dtype=int8)
    """

    noun = "labels"
    code_type = np.int8

    @property
    def labels(self) -> NDArray[np.int8] | sparse.csr_array:
        """1, 0 or −1 (abstained): int8, (n_instances, n_labels).

        CSR if the probabilities were sparse: what it does not store is 0. `to_dense` always gives an array.
        """
        return self.codes

    def fill(self, answers: Any) -> "PartialPrediction":
        """Return the prediction with the answers that humans have given to abstained labels.

        Parameters
        ----------
        answers : array-like of shape (n_instances, n_labels), records, or ReviewQueue
            A table of the shape (and with the names) of the prediction: 0 or 1 where a label is abstained; the other
            cells may hold anything. Or records with ``id`` (the name of the row, or its number), ``label`` and
            ``answer``, in any order: a data frame, a list of dicts or a dict of columns. Or a review queue with its
            answers, `ReviewQueue.with_answers`. What is missing (NaN, −1, None, or not listed) stays abstained. A flat
            list is taken for a single instance only: it does not say which label each answer is for.

        Returns
        -------
        PartialPrediction
            With the same names, complete where everything is answered. Its expected loss is NaN.

        Examples
        --------
        >>> import abstain
        >>> prediction = abstain.PartialPrediction([[1, -1, 0], [-1, 0, -1]], label_names=["sky", "sea", "sand"])
        >>> prediction.fill([{"id": 1, "label": "sky", "answer": 0}, {"id": 0, "label": "sea", "answer": 1}])
        PartialPrediction of 2 instances × 3 labels: 16.7% abstained
           sky  sea  sand
        0    1    1     0
        1    0    0     ?
        """
        if isinstance(answers, PartialPrediction):
            answers = Table(answers.codes, answers.axes.label_names, answers.axes.index)
        found = read_answers(answers, self.axes, self.abstained)
        codes = self.codes.copy()
        if sparse.issparse(codes):
            n, m = self.shape
            stored = np.repeat(np.arange(n), np.diff(codes.indptr)) * m + codes.indices
            codes.data[np.searchsorted(stored, found.row * m + found.label)] = found.answer
            codes.eliminate_zeros()
        else:
            codes[found.row, found.label] = found.answer
        return PartialPrediction.from_codes(codes, self.axes)

    def _lists(self, i: int) -> dict[str, NDArray[np.intp]]:
        labels, codes = self._stored(i)
        return {"yes": labels[codes == 1], "ask": labels[codes == ABSTAIN]}

    def _check(self, matrix: Matrix, axes: Axes) -> None:
        require_codes(matrix, axes, (ABSTAIN, 0, 1), self.noun, "a label is 1, 0 or −1 (abstained)")


class PartialRanking(_Partial):
    """Positions of the ranked labels, best first, and −1 for those that are not ranked.

    `decide` returns one for the rank loss; it can also be made from any array of positions, to be scored.

    Parameters
    ----------
    codes : array-like or data frame of shape (n_instances, n_labels)
        In each row 0, 1, 2 … once each, and −1 for labels that are not ranked.
    expected_loss : array-like of shape (n_instances,), optional
        The expected generalised loss of each instance.
    label_names : sequence of n_labels names, optional
        By default those of a data frame.

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
    def positions(self) -> NDArray[np.int32] | sparse.csr_array:
        """0 = first, −1 = not ranked: int32, (n_instances, n_labels).

        CSR if the probabilities were sparse: it stores what they stored, and the labels that it does not store are
        ranked after these, by label. `to_dense` always gives an array.
        """
        return self.codes

    def order(self, i: int) -> NDArray[np.intp]:
        """Return the ranked labels of instance i, best first (of a sparse ranking, those that are stored)."""
        i = range(len(self))[i]
        labels, positions = self._stored(i)
        ranked = positions != ABSTAIN
        best_first: NDArray[np.intp] = labels[ranked][np.argsort(positions[ranked])]
        return best_first

    def fill(self, answers: Any) -> "PartialRanking":
        """Return the ranking with the abstained labels for which humans have said whether they are relevant.

        Relevant ones come first, irrelevant ones last, by label; labels without an answer stay unranked.

        Parameters
        ----------
        answers : array-like of shape (n_instances, n_labels), records, or ReviewQueue
            As for `PartialPrediction.fill`: 1 for a relevant label, 0 for one that is not.

        Returns
        -------
        PartialRanking
            With the same names, complete where everything is answered. Its expected loss is NaN.

        Examples
        --------
        >>> import abstain
        >>> ranking = abstain.PartialRanking([[1, -1, 0, -1]])
        >>> ranking.fill([{"id": 0, "label": 3, "answer": 1}]).positions
        array([[ 2, -1,  1,  0]], dtype=int32)
        """
        found = read_answers(answers, self.axes, self.abstained)
        m = self.shape[1]
        key = self.to_dense().astype(np.int64)
        key[key == ABSTAIN] = m + 1
        key[found.row, found.label] = np.where(found.answer == 1, -1, m)  # before all others, or after them
        positions = np.argsort(np.argsort(key, axis=1, kind="stable"), axis=1).astype(np.int32)
        positions[key == m + 1] = ABSTAIN
        return PartialRanking.from_codes(positions, self.axes)

    def _lists(self, i: int) -> dict[str, NDArray[np.intp]]:
        labels, codes = self._stored(i)
        return {"ranked first": self.order(i), "not ranked": labels[codes == ABSTAIN]}

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

    def _dense(self, codes: Matrix) -> NDArray[Any]:
        if not sparse.issparse(codes):
            return super()._dense(codes)
        n, m = codes.shape
        require_memory((n, m), np.dtype(self.code_type), f"the {self.noun}")
        positions = np.empty((n, m), self.code_type)
        indptr, labels = np.arange(n + 1) * m, np.tile(np.arange(m), n)
        packing.lift_positions(indptr, labels, packing.CsrArrays.of(codes), positions.reshape(-1))
        return positions


Prediction: TypeAlias = PartialPrediction | PartialRanking
"""The result of a decision: labels, or a ranking for losses that score rankings."""

if TYPE_CHECKING:  # type checkers know defaults: an annotation without a kind means labels
    from typing_extensions import TypeVar as TypeVarWithDefault

    PredictionT = TypeVarWithDefault(
        "PredictionT", bound=PartialPrediction | PartialRanking, covariant=True, default=PartialPrediction
    )
else:
    PredictionT = TypeVar("PredictionT", bound=PartialPrediction | PartialRanking, covariant=True)
"""The kind of prediction, where it follows from the loss."""


def _short(name: str, max_length: int = 24) -> str:
    return name if len(name) <= max_length else f"{name[: max_length - 1]}…"


def require_codes(matrix: Matrix, axes: Axes, codes: tuple[int, ...], what: str, accepted: str) -> None:
    """Raise `InvalidLabels`, naming the first wrong entry, if a table holds anything but some codes."""
    if (found := first_other_code(matrix, codes)) is not None:
        i, j, value = found
        raise InvalidLabels(f"{what}: {axes.row(i)}, {axes.label(j)} is {value}; {accepted}")


def first_other_code(matrix: Matrix, codes: tuple[int, ...]) -> tuple[int, int, Any] | None:
    """Return the row, the column and the value of the first entry that is none of some codes, if there is one."""
    values = matrix.data if sparse.issparse(matrix) else matrix
    for first in range(0, len(values), CHECKED_ROWS):
        bad = ~np.isin(values[first : first + CHECKED_ROWS], codes)
        if bad.any():
            at, *column = (int(k) for k in np.argwhere(bad)[0])
            i, value = first + at, values[(first + at, *column)]
            if not column:
                i, column = int(np.searchsorted(matrix.indptr, i, side="right")) - 1, [int(matrix.indices[i])]
            return i, column[0], value
    return None
