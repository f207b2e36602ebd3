"""Intervals of probabilities: what is known is that each probability lies between a lower and an upper end."""

from collections.abc import Hashable, Iterator
from copy import copy
from dataclasses import replace
from numbers import Real
from typing import Any, Literal, NoReturn, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.blocks import Block, StoredEntries
from abstain._core.kernels import checking
from abstain._core.kernels.bounds import Bounds
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Axes, Matrix, Table, as_array, csr_in_order, dense, names_of, read_matrix
from abstain._utils.backends import lazy_backend
from abstain._utils.errors import InvalidProbabilities, quoted
from abstain._utils.frames import is_frame
from abstain._utils.threads import for_each
from abstain._utils.wording import plural

IntervalRule: TypeAlias = Literal["minimax", "skeptical", "hurwicz"]


class Intervals:
    """Intervals of probabilities, n instances × m labels: the set of all distributions that decisions must reckon with.

    Each label's probability lies in its interval, and the labels are independent given the instance. `decide`,
    `risk_profile`, `budget.solve`, `review_queue` and `metrics.expected_generalized_loss` take intervals in place of
    probabilities.

    Arrays are not copied, and must not be changed while the intervals are used; the `bounds` of a decision are computed
    from them when they are first asked for.

    Parameters
    ----------
    lower, upper : array-like, data frame or sparse matrix of shape (n_instances, n_labels), or (n_labels,)
        The ends, each as `decide` takes probabilities; lower ≤ upper. What sparse matrices do not store is [0, 0].
    rule : {"minimax", "skeptical", "hurwicz"}, default="minimax"
        How answers are judged. "minimax": by their expected loss in the worst case, for every loss. "skeptical": a
        label is answered iff for no probability in its interval the other answer, or abstaining at its price, is
        better; an equally good one does not count (and if both answers are equally good throughout, it is 0). Without a
        price (``penalty="none"``) a label is abstained iff each answer is the better one for some probability: for
        equal costs iff lower < ½ < upper. "hurwicz": by optimism · best case + (1 − optimism) · worst case. The latter
        two are for losses that are sums over labels (Hamming).
    optimism : float in [0, 1], optional
        Needed for "hurwicz": 0 is minimax, 1 the best case.

    Attributes
    ----------
    lower, upper : float array or CSR array of shape (n_instances, n_labels)
        The ends.
    midpoint : Table
        The midpoints of the intervals, with the names of labels and rows.
    rule : str
    optimism : float or None

    Examples
    --------
    >>> import abstain
    >>> box = abstain.Intervals([[0.90, 0.30, 0.05]], [[0.99, 0.60, 0.15]])
    >>> prediction = abstain.decide(box, loss="hamming", penalty=0.2)
    >>> prediction.labels
    array([[ 1, -1,  0]], dtype=int8)
    >>> prediction.expected_loss, prediction.bounds
    (array([0.45]), array([[0.26, 0.45]]))
    """

    def __init__(
        self, lower: Any, upper: Any, *, rule: IntervalRule = "minimax", optimism: float | None = None
    ) -> None:
        self.rule, self.optimism = rule, optimism
        _require_rule(rule, optimism)
        for name, table in (("lower", lower), ("upper", upper)):
            if lazy_backend(table) is not None:
                raise InvalidProbabilities(
                    f"{name}: intervals of Dask collections are not supported; decide a partition at a time, with "
                    "abstain.Intervals of its rows"
                )
        low, high = Probabilities(lower, "lower"), Probabilities(upper, "upper")
        low.axes, high.axes = _with_series_names(lower, low.axes), _with_series_names(upper, high.axes)
        _require_same_rows_and_labels(low, high)
        self._high = high.checked()
        self._low = low.checked() if not high.is_sparse else _aligned(low.checked(), self._high)
        self.axes = high.axes if low.axes.label_names is None and low.axes.index is None else low.axes
        self._require_order()
        self.n_rows, self.n_labels, self.is_sparse = high.n_rows, high.n_labels, high.is_sparse

    @classmethod
    def from_members(
        cls, members: Any, *, quantiles: tuple[float, float] = (0.0, 1.0), rule: IntervalRule = "minimax",
        optimism: float | None = None, label_names: Any = None,
    ) -> "Intervals":  # fmt: skip
        """Return the intervals that the members of an ensemble span: bootstraps, dropout, several runs of a model.

        Parameters
        ----------
        members : array-like of shape (n_instances, n_members, n_labels), or list of n_instances data frames
            The probabilities of each member. Frames have a row for each member, and all the same columns.
        quantiles : (float, float), default=(0.0, 1.0)
            The quantiles of the members at which the intervals end: least and greatest by default.
        rule, optimism
            As for `Intervals`.
        label_names : sequence of n_labels names, optional
            By default those of the frames.

        Examples
        --------
        >>> import abstain
        >>> box = abstain.Intervals.from_members([[[0.9, 0.2], [0.7, 0.3], [0.8, 0.1]]])
        >>> box.lower, box.upper
        (array([[0.7, 0.1]]), array([[0.9, 0.3]]))
        """
        p, names = _read_members(members)
        if p.ndim != 3 or 0 in p.shape[1:] or p.dtype.kind not in "fiub":
            raise InvalidProbabilities(
                f"members: expected numbers of shape (n_instances, n_members, n_labels), got {p.shape} of {p.dtype}"
            )
        flat = p.reshape(-1, p.shape[2]).astype(np.float64, copy=False)
        bad = np.argwhere(~((flat >= 0.0) & (flat <= 1.0)))
        if len(bad):
            at, label = bad[0]
            raise InvalidProbabilities(
                f"members: row {at // p.shape[1]}, member {at % p.shape[1]}, label {label} is {flat[at, label]}; a "
                "probability is a number from 0 to 1"
            )
        if not _are_quantiles(quantiles):
            raise InvalidProbabilities(f"quantiles are {quantiles!r}; expected two numbers, 0 ≤ first ≤ second ≤ 1")
        low, high = np.quantile(p.astype(np.float64, copy=False), quantiles, axis=1)
        names = names if label_names is None else tuple(Axes().names(p.shape[2], label_names))
        return cls(Table(low, names), Table(high, names), rule=rule, optimism=optimism)

    @classmethod
    def from_counts(
        cls, relevant: Any, total: Any, *, s: float = 2.0, rule: IntervalRule = "minimax", optimism: float | None = None
    ) -> "Intervals":
        """Return the intervals of the imprecise Dirichlet model: [k / (n + s), (k + s) / (n + s)] for k of n.

        Parameters
        ----------
        relevant : array-like, data frame or sparse matrix of shape (n_instances, n_labels)
            How often each label was relevant: among neighbours, in a leaf, among votes.
        total : number, array-like or data frame that broadcasts to that shape
            Of how many: one number, one for each label, a column with one for each instance, or one for each count.
            Where it has names of labels or rows, they are those of `relevant`, in the same order.
        s : float > 0, default=2.0
            The number of observations that are missing: the greater, the wider the intervals.
        rule, optimism
            As for `Intervals`.

        Examples
        --------
        >>> import abstain
        >>> box = abstain.Intervals.from_counts([[3, 0]], [[4, 8]])
        >>> box.lower, box.upper
        (array([[0.5, 0. ]]), array([[0.83333333, 0.2       ]]))
        """
        k, axes = _read_counts(relevant, "relevant")
        is_number = isinstance(total, Real) or getattr(total, "ndim", 1) == 0
        n, others = _read_counts([total] if is_number else total, "total")
        if not is_number_between(s, 0.0, np.inf) or not 0 < s < np.inf:
            raise InvalidProbabilities(f"s is {s!r}; expected a number > 0")
        if n.shape[0] not in (1, k.shape[0]) or n.shape[1] not in (1, k.shape[1]):
            raise InvalidProbabilities(f"total has shape {n.shape}, which does not fit {k.shape} of relevant")
        of_all = Axes(others.label_names if n.shape[1] > 1 else None, others.index if n.shape[0] > 1 else None)
        _require_same_names(("relevant", axes), ("total", of_all))
        n = np.broadcast_to(n, k.shape)
        bad = np.argwhere(~((k >= 0) & (k <= n) & np.isfinite(n)))
        if len(bad):
            i, j = bad[0]
            raise InvalidProbabilities(
                f"relevant: {axes.row(i)}, {axes.label(j)} is {k[i, j]:g} of {n[i, j]:g}; expected 0 ≤ relevant ≤ total"
            )
        low, high = (Table(end / (n + s), axes.label_names, axes.index) for end in (k, k + s))
        return cls(low, high, rule=rule, optimism=optimism)

    @property
    def lower(self) -> Matrix:
        """The lower ends, (n_instances, n_labels)."""
        return self._low.matrix

    @property
    def upper(self) -> Matrix:
        """The upper ends, (n_instances, n_labels)."""
        return self._high.matrix

    @property
    def midpoint(self) -> Table:
        """The midpoints of the intervals, with the names of labels and rows."""
        high = self._high.matrix
        if self.is_sparse:
            middle = (self._low.matrix.data + high.data) / 2
            high = csr_in_order(middle, high.indices, high.indptr, high.shape)
        else:
            high = (self._low.matrix + high) / 2
        return Table(high, self.axes.label_names, self.axes.index)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of instances and of labels."""
        return self.n_rows, self.n_labels

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        size = f"{plural(self.n_rows, 'instance')} × {plural(self.n_labels, 'label')}"
        if self.n_rows == 0:
            return f"Intervals of {size}, {self._rule_text()}"
        width = float(self._high.matrix.mean() - self._low.matrix.mean())
        return f"Intervals of {size}, {self._rule_text()}: average width {width:.4g}"

    def _rule_text(self) -> str:
        return self.rule if self.optimism is None else f"{self.rule} with optimism {self.optimism:g}"

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "intervals are not taken here, where each probability must be known; pass their midpoint, lower or upper"
        )

    def with_rule(self, rule: IntervalRule, optimism: float | None = None) -> "Intervals":
        """Return the same intervals with another rule."""
        _require_rule(rule, optimism)
        other = copy(self)
        other.rule, other.optimism = rule, optimism
        return other

    def _require_order(self) -> None:
        """Raise `InvalidProbabilities` if an interval ends before it begins; by rounding only, it becomes a point."""
        low, high = self._low.matrix, self._high.matrix
        if self.is_crossed(0.0):
            if self.is_crossed(max(self._low.slack, self._high.slack)):
                raise self._first_crossed()
            pairs = (low.data, high.data) if sparse.issparse(high) else (low, high)
            ordered = np.minimum(*pairs)
            self._low = copy(self._low)
            self._low.matrix = (
                csr_in_order(ordered, high.indices, high.indptr, high.shape) if sparse.issparse(high) else ordered
            )

    def is_crossed(self, slack: float) -> bool:
        """Whether some interval ends before it begins, by more than a little."""
        crossed: list[bool] = []

        def check(piece: Block | StoredEntries) -> None:
            low, high = (
                end.load_entries_unchecked(piece) if isinstance(piece, StoredEntries) else end.load_unchecked(piece)
                for end in (self._low, self._high)
            )
            crossed.append(not checking.all_ordered(low.ravel(), high.ravel(), slack))

        high = self._high
        pieces: Iterator[Block | StoredEntries] = high.stored_entries() if high.is_sparse else high.blocks(1 << 18)
        for_each(check, pieces)
        return any(crossed)

    def _first_crossed(self) -> InvalidProbabilities:
        slack = max(self._low.slack, self._high.slack)
        low, high = self._low.matrix, self._high.matrix
        if sparse.issparse(high):
            at = int(np.flatnonzero(low.data > high.data + slack)[0])
            i, j = int(np.searchsorted(high.indptr, at, side="right")) - 1, int(high.indices[at])
        else:
            i, j = map(int, np.argwhere(low > high + slack)[0])
        return InvalidProbabilities(
            f"intervals: {self.axes.row(i)}, {self.axes.label(j)} has lower {low[i, j]} > upper {high[i, j]}; an "
            "interval begins at its lower end (are lower and upper exchanged?)"
        )

    # What follows is what `Probabilities` has, too: decisions read either of them block by block.

    least_per_block = 1 << 17
    """Intervals per block, at least: the search for an optimum works on all rows of a block at once."""

    @property
    def matrix(self) -> Matrix:
        """The upper ends; of sparse intervals, every label that is stored."""
        return self._high.matrix

    @property
    def n_entries(self) -> int:
        """How many intervals are stored."""
        return self._high.n_entries

    @property
    def widest(self) -> int:
        """The greatest number of intervals that a row stores."""
        return self._high.widest

    def take(self, rows: NDArray[np.intp]) -> "Intervals":
        """Return some of the rows."""
        part = copy(self)
        part._low, part._high, part.n_rows = self._low.take(rows), self._high.take(rows), len(rows)
        return part

    def blocks(self, entries: int) -> Iterator[Block]:
        """Yield all rows in blocks of about so many entries."""
        return self._high.blocks(entries)

    def stored_entries(self, entries: int = 1 << 18) -> Iterator[StoredEntries]:
        """Yield the stored entries of sparse intervals, about so many at a time, in whole rows."""
        return self._high.stored_entries(entries)

    def ends(self) -> Bounds:
        """Return all lower and all upper ends; sparse ones are stored at the same places."""
        return Bounds(self._low.matrix, self._high.matrix)

    def values(self) -> Bounds:
        """Return all intervals as the rule judges them."""
        return self._judged(self._low.matrix, self._high.matrix)

    def load(self, block: Block) -> Bounds:
        """Return the intervals of a block as the rule judges them, C-contiguous float64."""
        return self._judged(*self.load_ends(block))

    def load_ends(self, block: Block) -> Bounds:
        """Return the ends of the intervals of a block, C-contiguous float64."""
        return Bounds(self._low.load_unchecked(block), self._high.load_unchecked(block))

    def load_entries(self, stored: StoredEntries) -> Bounds:
        """Return stored intervals as vectors, as the rule judges them."""
        return self._judged(*(end.load_entries_unchecked(stored) for end in (self._low, self._high)))

    def _judged(self, low: NDArray[Any], high: NDArray[Any]) -> Bounds:
        """Return the probabilities with which answers of 1 (low) and of 0 (high) are judged."""
        if self.optimism is None:
            return Bounds(low, high)
        width = high - low
        return Bounds(low + self.optimism * width, high - self.optimism * width)

    def warn_if_softmax(self, *, stacklevel: int = 3) -> None:
        """Warn if every row of the lower and of the upper ends adds up to 1, as for `Probabilities`."""
        if self._low.adds_up_to_one():
            self._high.warn_if_softmax(stacklevel=stacklevel + 1)


def is_number_between(value: Any, least: float, most: float) -> bool:
    """Whether something is a real number within a range."""
    return not isinstance(value, bool) and isinstance(value, Real) and least <= float(value) <= most


def _require_rule(rule: Any, optimism: Any) -> None:
    rules = get_args(IntervalRule)
    if rule not in rules:
        raise InvalidProbabilities(f"rule is {rule!r}; expected {', '.join(map(repr, rules[:-1]))} or {rules[-1]!r}")
    if rule == "hurwicz":
        if not is_number_between(optimism, 0.0, 1.0):
            raise InvalidProbabilities(
                f'optimism is {optimism!r}; rule="hurwicz" needs a number from 0 (worst case) to 1 (best case)'
            )
    elif optimism is not None:
        raise InvalidProbabilities(f'optimism is {optimism!r}; only rule="hurwicz" has one, not {rule!r}')


def _require_same_rows_and_labels(low: Probabilities, high: Probabilities) -> None:
    if low.matrix.shape != high.matrix.shape:
        raise InvalidProbabilities(f"lower is {_size(low)}, upper is {_size(high)}; they must have the same shape")
    if low.is_sparse != high.is_sparse:
        kinds = ("a sparse matrix", "an array")
        raise InvalidProbabilities(
            f"lower is {kinds[not low.is_sparse]}, upper is {kinds[not high.is_sparse]}; pass two of a kind"
        )
    _require_same_names(("lower", low.axes), ("upper", high.axes))


def _require_same_names(one: tuple[str, Axes], other: tuple[str, Axes]) -> None:
    """Raise `InvalidProbabilities` if two tables of the same shape name their labels or their rows differently."""
    (our_name, ours), (their_name, theirs) = one, other
    both = {
        "labels": ("column", ours.label_names, theirs.label_names), "rows": ("row", ours.index, theirs.index)
    }  # fmt: skip
    for kind, (place, some, others) in both.items():
        if some is None or others is None or list(some) == list(others):
            continue
        at, names = next((i, names) for i, names in enumerate(zip(some, others, strict=True)) if names[0] != names[1])
        raise InvalidProbabilities(
            f"{our_name} and {their_name} have different {kind}: {place} {at} is {quoted(names[0])} in {our_name} and "
            f"{quoted(names[1])} in {their_name}; put both in the same order"
        )


def _with_series_names(table: Any, axes: Axes) -> Axes:
    """Return the axes with the names of a series, which is one row: they are those of the labels."""
    names = names_of(table) if getattr(table, "ndim", 0) == 1 else None
    return axes if names is None else replace(axes, label_names=names)


def _read_counts(table: Any, what: str) -> tuple[NDArray[np.float64], Axes]:
    """Return a table of counts, and its names."""
    counts, axes = read_matrix(table, what, InvalidProbabilities)
    if sparse.issparse(counts):
        raise InvalidProbabilities(
            f"{what}: intervals of counts are dense, as [0, s / (n + s)] is not 0; pass an array"
        )
    return counts.astype(np.float64), _with_series_names(table, axes)


def _read_members(members: Any) -> tuple[NDArray[Any], tuple[Hashable, ...] | None]:
    """Return what the members of an ensemble say, (n_instances, n_members, n_labels), and the names of the labels."""
    if isinstance(members, list | tuple) and any(is_frame(each) or isinstance(each, Table) for each in members):
        tables = {
            f"members[{i}]": read_matrix(each, f"members[{i}]", InvalidProbabilities) for i, each in enumerate(members)
        }
        first, *_ = tables
        for name, (matrix, axes) in tables.items():
            if matrix.shape != tables[first][0].shape:
                raise InvalidProbabilities(
                    f"{name} has shape {matrix.shape}, {first} has {tables[first][0].shape}; expected a row for each "
                    "member and a column for each label"
                )
            _require_same_names((first, Axes(tables[first][1].label_names)), (name, Axes(axes.label_names)))
        return np.stack([dense(matrix) for matrix, _ in tables.values()]), tables[first][1].label_names
    try:
        return as_array(members)[0], None
    except Exception as reason:
        raise InvalidProbabilities(
            f"members: cannot be read as an array ({reason}); expected as many members and labels for each instance"
        ) from reason


def _are_quantiles(quantiles: Any) -> bool:
    """Whether something is two numbers, 0 ≤ first ≤ second ≤ 1."""
    try:
        first, second = quantiles
    except (TypeError, ValueError):
        return False
    return is_number_between(first, 0.0, 1.0) and is_number_between(second, float(first), 1.0)


def _size(table: Probabilities) -> str:
    return f"{table.n_rows} × {table.n_labels}"


def _aligned(low: Probabilities, high: Probabilities) -> Probabilities:
    """Return sparse lower ends that are stored where the upper ends are."""
    ours, theirs = low.matrix, high.matrix
    if np.array_equal(ours.indptr, theirs.indptr) and np.array_equal(ours.indices, theirs.indices):
        return low
    m = theirs.shape[1]
    place, at = (
        np.repeat(np.arange(part.shape[0]), np.diff(part.indptr)) * m + part.indices for part in (theirs, ours)
    )
    found = np.searchsorted(place, at)
    is_there = (found < len(place)) & (place[np.minimum(found, len(place) - 1)] == at) if len(place) else at < 0
    missing = np.flatnonzero(~is_there & (ours.data > 0))
    if len(missing):
        i, j = divmod(int(at[missing[0]]), m)
        axes = low.axes if high.axes.label_names is None else high.axes
        raise InvalidProbabilities(
            f"intervals: {axes.row(i)}, {axes.label(j)} has lower {ours.data[missing[0]]}, and upper is not stored, "
            "so its upper end is 0"
        )
    data = np.zeros(len(theirs.data), np.result_type(ours.dtype, theirs.dtype))
    data[found[is_there]] = ours.data[is_there]
    aligned = copy(low)
    aligned.matrix = csr_in_order(data, theirs.indices, theirs.indptr, theirs.shape)
    return aligned
