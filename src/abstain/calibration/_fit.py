"""`fit`: learn a calibration from a table of scores and its truth."""

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import check_cv

from abstain._core.tables import Matrix
from abstain._core.truth import Truth, read_partial_truth, read_sample_weight
from abstain._utils.errors import InvalidLabels, InvalidParameter
from abstain._utils.threads import for_each
from abstain._utils.types import Floats
from abstain.calibration._calibration import Calibration
from abstain.calibration._groups import Groups
from abstain.calibration._methods import Split, learn, require_method
from abstain.calibration._scores import Kind, Scores, log_odds

ENTRIES_PER_BLOCK = 1 << 20
MAX_UNMERGED_GROUPS = 1 << 18  # of a fold: batches have many groups in common


def fit(
    scores: Any,
    y_true: Any,
    method: str = "auto",
    *,
    kind: Kind = "probability",
    cv: Any = 5,
    groups: Any = None,
    sample_weight: Any = None,
    missing_values: float | None = None,
) -> Calibration:
    """Learn to turn scores of any model into probabilities, label by label, from rows that the model has not seen.

    Labels are fitted together: the coefficients of each are drawn towards those of the others, the more so the fewer
    relevant rows it has, so that rare labels are calibrated too. A higher score never gets a lower probability, and
    scores beyond those seen get the probability of the last one seen.

    Parameters
    ----------
    scores : array-like, data frame or sparse matrix of shape (n_instances, n_labels)
        What the model says. The model must not have been fitted to these rows: take a held-out sample, or cross-fitted
        scores as of `sklearn.model_selection.cross_val_predict`. Of a sparse matrix the stored entries are calibrated.
    y_true : array-like of shape (n_instances, n_labels)
        The truth, 0 or 1.
    method : {"auto", "none", "temperature", "sigmoid", "beta", "isotonic", "venn-abers"}, default="auto"
        - "temperature": one factor for the log-odds of all labels.
        - "sigmoid": a factor and an offset for the log-odds of each label.
        - "beta": one factor more, so that small and large probabilities are corrected differently.
        - "isotonic": any non-decreasing function, where a label has enough relevant rows to tell.
        - "venn-abers": as isotonic, and `Calibration.intervals` says how sure it is.
        - "none": the probabilities as they are.
        - "auto": the one with the lowest cross-validated log loss over all labels.
    kind : {"probability", "logit", "score"}, default="probability"
        What the scores are: probabilities in [0, 1]; logits, whose sigmoid is a probability; or any numbers that are
        higher the more relevant a label is, such as distances from a hyperplane.
    cv : int or splitter, default=5
        How rows are split to compare methods; a number means random folds. Where rows belong together (patients,
        threads of e-mail) or follow each other in time, random folds are too optimistic: use
        `sklearn.model_selection.GroupKFold` with `groups`, or `TimeSeriesSplit`.
    groups : array-like of shape (n_instances,), optional
        Which rows belong together, for the splitter.
    sample_weight : array-like of shape (n_instances,) or (n_instances, n_labels), optional
        How much rows, or single labels of rows, count.
    missing_values : nan or -1, optional
        What marks labels in `y_true` that nobody has looked at: nan (also null or None), or −1. They are left out. If
        it is not given, all labels must be known.

    Returns
    -------
    calibration : Calibration

    Examples
    --------
    >>> import numpy as np
    >>> import abstain
    >>> random = np.random.default_rng(0)
    >>> probabilities = random.random((2000, 3))
    >>> truth = random.random((2000, 3)) < probabilities**2  # they claim too much
    >>> calibration = abstain.calibration.fit(probabilities, truth)
    >>> calibration.transform([[0.3, 0.5, 0.9]]).round(2)
    array([[0.1 , 0.26, 0.83]])
    """
    require_method(method)
    if np.ndim(y_true) == 1:
        raise InvalidLabels("y_true is a vector; of a single label, pass tables of one column")
    table = Scores.read(scores, kind)
    truth = read_partial_truth(y_true, missing_values, table)
    weight = read_sample_weight(sample_weight, table)
    if table.matrix.shape[0] == 0:
        raise InvalidLabels("scores has no rows; there is nothing to learn from")
    entries = Entries(table, truth, weight)
    whole, splits = _grouped(entries, cv, groups)
    return learn_calibration(whole, splits, method, Origin.of(entries))


class Origin(NamedTuple):
    """What is known of the scores that a calibration is learnt from, beside their groups."""

    kind: Kind
    scale: float
    label_names: tuple[Hashable, ...] | None
    n_rows: int

    @classmethod
    def of(cls, entries: "Entries") -> "Origin":
        """Return what is known of all rows, which are in memory."""
        return cls(entries.kind, entries.scale, entries.label_names, entries.n_rows)


def learn_calibration(groups: Groups, splits: list[Split], method: str, origin: Origin) -> Calibration:
    """Return the calibration learnt from grouped entries."""
    fitted, log_losses = learn(groups, splits, method)
    n_known, n_relevant = groups.totals()
    return Calibration(
        kind=origin.kind,
        label_names=origin.label_names,
        n_rows=origin.n_rows,
        n_known=n_known,
        n_relevant=n_relevant,
        log_losses=log_losses,
        scale=origin.scale,
        _method=fitted,
    )


class Entries:
    """The entries of a table with their truth and weight, grouped for any rows.

    `scale` is the one of the scores (see `Scores.scale`) if it is known from rows before these.
    """

    def __init__(self, table: Scores, truth: Truth, weight: Floats | None, scale: float | None = None) -> None:
        self.n_rows, self.n_labels = table.matrix.shape
        self.label_names = table.axes.label_names
        self.kind, self.scale = table.kind, table.scale() if scale is None else scale
        self.scores: Matrix = table.matrix
        self.truth, self.unknown, self.weight = truth.values, truth.unknown, weight
        if sparse.issparse(self.scores):  # all of them CSR, to be read at the stored scores
            self.truth = sparse.csr_array(self.truth)
            self.unknown = None if self.unknown is None else sparse.csr_array(self.unknown)
        elif sparse.issparse(self.truth):
            self.truth, self.unknown = self.truth.tocsr(), None if self.unknown is None else self.unknown.tocsr()

    def group(self, rows: NDArray[np.intp]) -> Groups:
        """Return the groups of some rows."""
        entries_per_row = self.scores.nnz / self.n_rows if sparse.issparse(self.scores) else self.n_labels
        height = max(1, int(ENTRIES_PER_BLOCK / max(entries_per_row, 1)))
        blocks = [rows[first : first + height] for first in range(0, len(rows), height)] or [rows]
        parts: list[Groups | None] = [None] * len(blocks)

        def group_block(k: int) -> None:
            parts[k] = self._group_block(blocks[k])

        for_each(group_block, range(len(blocks)))
        return Groups.merged([part for part in parts if part is not None])

    def _group_block(self, rows: NDArray[np.intp]) -> Groups:
        scores = self.scores[rows]
        if sparse.issparse(scores):
            lines = np.repeat(np.arange(len(rows)), np.diff(scores.indptr))
            labels, values = scores.indices.astype(np.intp), scores.data
        else:
            lines, labels = np.divmod(np.arange(scores.size), self.n_labels)
            values = scores.ravel()
        relevant = self._at(self.truth, rows, lines, labels).astype(np.float64)
        weight = self._weight(rows, lines, labels)
        if self.unknown is not None:
            weight = weight * ~self._at(self.unknown, rows, lines, labels)
        return Groups.of(log_odds(values, self.kind, self.scale), labels, relevant, weight, self.n_labels)

    @staticmethod
    def _at(matrix: Matrix, rows: NDArray[np.intp], lines: NDArray[np.intp], labels: NDArray[np.intp]) -> NDArray[Any]:
        """Return the entries of some rows of a matrix: all of them, or those of some lines and labels."""
        part = matrix[rows]
        if not sparse.issparse(part):
            return part.ravel() if len(lines) == part.size else part[lines, labels]
        m = part.shape[1]
        stored = np.repeat(np.arange(len(rows)), np.diff(part.indptr)) * m + part.indices
        stored, values = np.append(stored, -1), np.append(part.data, part.dtype.type(0))
        found = np.searchsorted(stored[:-1], lines * m + labels)
        return np.where(stored[found] == lines * m + labels, values[found], part.dtype.type(0))

    def _weight(self, rows: NDArray[np.intp], lines: NDArray[np.intp], labels: NDArray[np.intp]) -> Floats:
        if self.weight is None:
            return np.ones(len(lines))
        weight = self.weight[rows]
        return weight[lines] if weight.ndim == 1 else weight[lines, labels]


class GroupedRows:
    """Rows that come batch by batch, their entries grouped in random folds: as much memory as groups take, not rows."""

    def __init__(self, n_folds: int) -> None:
        if n_folds < 2:
            raise InvalidParameter(f"cv is {n_folds}; expected at least 2 folds, or a splitter")
        self.n_rows = 0
        self._folds: list[list[Groups]] = [[] for _ in range(n_folds)]

    def add(self, entries: Entries) -> None:
        """Add the entries of the next rows."""
        fold = folds_of_rows(self.n_rows, entries.n_rows, len(self._folds))
        for k, parts in enumerate(self._folds):
            parts.append(entries.group(np.flatnonzero(fold == k)))
            if sum(len(part.cells) for part in parts[1:]) > max(MAX_UNMERGED_GROUPS, len(parts[0].cells)):
                parts[:] = [Groups.merged(parts)]
        self.n_rows += entries.n_rows

    def merged(self) -> tuple[Groups, list[Split]]:
        """Return all entries, grouped, and the splits to compare methods by."""
        folds = [Groups.merged(parts) for parts in self._folds]
        return Groups.merged(folds), splits_of_folds(folds)


def _grouped(entries: Entries, cv: Any, groups: Any) -> tuple[Groups, list[Split]]:
    """Return all entries, grouped, and the splits to compare methods by."""
    n = entries.n_rows
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if groups is not None:
            raise InvalidParameter(f"groups need a splitter that keeps them together, such as cv=GroupKFold({cv})")
        rows = GroupedRows(int(cv))
        rows.add(entries)
        return rows.merged()
    try:
        splitter = check_cv(cv)
    except ValueError as reason:
        raise InvalidParameter(f"cv is {cv!r}; expected a number of folds, or a splitter") from reason
    splits = [Split(entries.group(train), entries.group(test)) for train, test in _split(splitter, n, groups)]
    return entries.group(np.arange(n)), splits


def _split(splitter: Any, n: int, groups: Any) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    if groups is not None and len(groups) != n:
        raise InvalidParameter(f"groups has {len(groups)} entries for {n} rows")
    try:
        yield from splitter.split(np.zeros((n, 1)), groups=groups)
    except ValueError as reason:
        raise InvalidParameter(f"cv: {splitter!r} cannot split {n} rows: {reason}") from reason


def folds_of_rows(first_row: int, n_rows: int, n_folds: int) -> NDArray[np.int64]:
    """Return a fold for each row, random but the same for the same row number (a step of SplitMix64)."""
    with np.errstate(over="ignore"):
        z = np.arange(first_row + 1, first_row + n_rows + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) % np.uint64(n_folds)).astype(np.int64)


def splits_of_folds(folds: list[Groups]) -> list[Split]:
    """Return each fold that has entries as a test part, with the others to learn from."""
    return [
        Split(Groups.merged([other for other in folds if other is not fold]), fold)
        for fold in folds
        if len(fold.cells) < sum(len(other.cells) for other in folds) and len(fold.cells)
    ]
