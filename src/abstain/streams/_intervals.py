"""Intervals of probabilities in files: two columns for each label, or a file of lower and a file of upper ends."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.intervals import IntervalRule, Intervals
from abstain._core.tables import Table, dense
from abstain._utils.errors import (
    InvalidDataset,
    InvalidLabels,
    InvalidOutput,
    InvalidParameter,
    InvalidProbabilities,
    quoted,
)
from abstain.streams._alignment import aligned_batches, open_aligned
from abstain.streams._bad_values import bad_value_error, find_bad_values
from abstain.streams._formats.names import CLOSE, NO_COLUMN
from abstain.streams._read.batches import Batch
from abstain.streams._read.sources import Form, Kind, Paths, Sources, open_sources

ENDS = "_lower", "_upper"
"""How the names of the two columns of a label end."""


class RuleOptions(NamedTuple):
    """How answers are judged, as for `abstain.Intervals`."""

    rule: IntervalRule = "minimax"
    optimism: float | None = None


MINIMAX = RuleOptions()


def open_intervals(
    inputs: Paths,
    upper: Paths | None = None,
    *,
    rule: IntervalRule = "minimax",
    optimism: float | None = None,
    form: Form | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    value_column: str | None = None,
    labels: Sequence[str] | None = None,
    format: str | None = None,  # noqa: A002 - as the command line calls it
    kind: Kind = "probability",
    row_groups: Sequence[int] | None = None,
) -> Sources:
    r"""Open files of intervals of probabilities, which may be larger than memory, to be given to `decide_files`.

    Parameters
    ----------
    inputs : path, or sequence of paths
        Wide tables with a column ``<label>_lower`` and a column ``<label>_upper`` for each label; with `upper`, tables
        of the lower ends alone, with a column for each label, or long ones.
    upper : path, or sequence of paths, optional
        Tables of the upper ends, with the same rows and, in any order, the same labels; the answers have the labels in
        the order of `inputs`.
    rule, optimism
        As for `abstain.Intervals`.
    form, id_column, label_column, value_column, labels, format, kind, row_groups
        As for `open_sources`; `labels` are names without ``_lower`` and ``_upper``.

    Returns
    -------
    Sources

    Examples
    --------
    >>> import abstain, tempfile
    >>> from pathlib import Path
    >>> from abstain.streams import Job, decide_files, open_intervals
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = Path(name)
    ...     _ = (folder / "p.csv").write_text("id,sky_lower,sky_upper,sea_lower,sea_upper\na,.9,.97,.3,.6\n")
    ...     summary = decide_files(open_intervals(folder / "p.csv"), folder / "d.csv", Job("hamming", 0.2))
    ...     print((folder / "d.csv").read_text())
    "id","sky","sea"
    "a",1,
    <BLANKLINE>
    """
    Intervals([0.0], [1.0], rule=rule, optimism=optimism)  # raises an error about the rule before anything is read
    options = RuleOptions(rule, optimism)
    if upper is None:
        columns = None if labels is None else interval_columns(labels)
        try:
            both = open_sources(
                inputs, form=form, id_column=id_column, label_column=label_column, value_column=value_column,
                labels=columns, format=format, kind=kind, row_groups=row_groups,
            )  # fmt: skip
        except InvalidDataset as reason:
            if labels is None or NO_COLUMN not in str(reason):
                raise
            missing = str(reason).partition(CLOSE)[0]  # what is close is a column, and not what to ask for
            raise InvalidDataset(f"{missing}; labels are named without {' and '.join(ENDS)}") from reason
        return _with_both_ends(both, options)
    if kind != "probability" or row_groups is not None:
        raise InvalidParameter("kind and row_groups are for intervals in one file, not for two files of their ends")
    sides = open_aligned(
        {"lower": inputs, "probabilities": upper}, form=form, id_column=id_column, label_column=label_column,
        value_column=value_column, labels=labels, format=format, same_labels=True,
    )  # fmt: skip
    _require_two_of_a_kind(*sides.values())
    return _with_lower_ends(sides, options)


def interval_columns(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns of both ends of each label."""
    return tuple(f"{label}{end}" for label in labels for end in ENDS)


@dataclass(frozen=True)
class IntervalBatch(Batch):
    """Some consecutive rows of files with intervals; its table has the upper ends.

    Parameters
    ----------
    lower : Table
        The lower ends.
    options : RuleOptions
    """

    lower: Table | None = None
    options: RuleOptions = MINIMAX

    @property
    def probabilities(self) -> Intervals:
        """The intervals; an error names the place in the file."""
        assert self.lower is not None
        try:
            return Intervals(self.lower, self.table, **self.options._asdict())
        except InvalidProbabilities as reason:
            low, high = (dense(end.values) for end in (self.lower, self.table))
            crossed = np.argwhere(low > high)
            if len(crossed) == 0:
                raise
            i, j = map(int, crossed[0])
            name = j if self.table.label_names is None else quoted(self.table.label_names[j])
            is_listed = not sparse.issparse(self.table.values) or j in self.table.values[[i]].indices
            what = (
                f"> upper {high[i, j]:g}; an interval begins at its lower end (are lower and upper exchanged?)"
                if is_listed
                else ", and upper is not listed, so its upper end is 0"
            )
            raise InvalidProbabilities(f"{self.row(i, j)}, label {name} has lower {low[i, j]:g}{what}") from reason

    def take(self, rows: NDArray[np.intp]) -> "IntervalBatch":
        part = super().take(rows)
        assert isinstance(part, IntervalBatch)
        assert self.lower is not None
        return replace(part, lower=Table(self.lower.values[rows], self.lower.label_names, part.ids))


class IntervalSources(Sources):
    """Files with intervals of probabilities, one after the other, as a stream of `IntervalBatch`.

    Parameters
    ----------
    files : Sources
        What determines the rows: files with both ends, or with the upper ones.
    label_names : tuple of str, or None
    n_labels : int
    read : function of Sources and the number of rows before them
        Reads the batches.
    lower : Sources, optional
        The files of the lower ends, if these are files of their own.
    """

    def __init__(
        self,
        files: Sources,
        label_names: tuple[str, ...] | None,
        n_labels: int,
        read: Callable[[Sources, int], Generator[IntervalBatch]],
        lower: Sources | None = None,
    ) -> None:
        super().__init__(files._tables, files.kind)
        self._files, self._read, self._lower = files, read, lower
        self.label_names, self.n_labels = label_names, n_labels

    @property
    def files(self) -> list[str]:
        return [*([] if self._lower is None else self._lower.files), *self._files.files]

    def each_file(self) -> Iterator[Sources]:
        if self._lower is not None:
            raise InvalidOutput("files of lower and of upper ends become one; give a file as output, not a folder")
        return (IntervalSources(file, self.label_names, self.n_labels, self._read) for file in self._files.each_file())

    def batches(self, n_rows_before: int = 0) -> Generator[Batch]:
        yield from self._read(self._files, n_rows_before)


def _with_both_ends(files: Sources, options: RuleOptions) -> IntervalSources:
    """Return wide files with a column ``<label>_lower`` and a column ``<label>_upper`` for each label."""
    names, file = files.label_names, files.files[0]
    if names is None or files.is_sparse:
        kind = "does not name its columns" if names is None else "is long or sparse"
        raise InvalidDataset(
            f"{file}: {kind}; intervals in one file are wide, with columns <label>_lower and <label>_upper. Or give "
            "two files, of the lower and of the upper ends (--upper)"
        )
    odd = next((name for name in names if not name.endswith(ENDS)), None)
    if odd is not None:
        raise InvalidDataset(
            f"{file}: column {quoted(odd)} ends in neither _lower nor _upper; intervals have these two columns for "
            "each label (--labels chooses labels, --id-column the column of ids)"
        )
    labels = tuple(dict.fromkeys(name[: -len(ENDS[0])] for name in names))
    at = {name: k for k, name in enumerate(names)}
    missing = next((name for name in interval_columns(labels) if name not in at), None)
    if missing is not None:
        raise InvalidDataset(f"{file}: there is no column {quoted(missing)}; intervals have two columns for each label")
    lower, upper = ([at[f"{label}{end}"] for label in labels] for end in ENDS)

    def read(some: Sources, n_rows_before: int) -> Generator[IntervalBatch]:
        for batch in some.batches(n_rows_before):
            _require_probabilities(batch)
            values, quote = batch.table.values, batch.quote
            low, high = (Table(np.ascontiguousarray(values[:, at]), labels, batch.ids) for at in (lower, upper))
            yield IntervalBatch(
                high,
                batch.file,
                batch.first_row,
                batch.rows_before,
                batch.numbers,
                _quote_of(quote, upper),
                low,
                options,
            )

    return IntervalSources(files, labels, len(labels), read)


def _quote_of(
    quote: Callable[[int, int], tuple[int, str]] | None, columns: list[int]
) -> Callable[[int, int], tuple[int, str]] | None:
    return None if quote is None else lambda row, label: quote(row, columns[label])


def _with_lower_ends(sides: dict[str, Sources], options: RuleOptions) -> IntervalSources:
    """Return files of upper ends together with the lower ends, which are read at the same time."""
    upper = sides["probabilities"]

    def read(_: Sources, n_rows_before: int) -> Generator[IntervalBatch]:
        for batches in aligned_batches(sides):
            low, high = batches["lower"], batches["probabilities"]
            _require_probabilities(low)
            _require_probabilities(high)
            lower = Table(low.table.values, high.table.label_names, high.ids)
            before = n_rows_before + high.rows_before
            yield IntervalBatch(high.table, high.file, high.first_row, before, high.numbers, high.quote, lower, options)

    return IntervalSources(upper, upper.label_names, upper.n_labels, read, sides["lower"])


def _require_two_of_a_kind(lower: Sources, upper: Sources) -> None:
    """Raise an error that names the files if one is sparse and the other is not, or if they differ in their labels."""
    if lower.is_sparse != upper.is_sparse:
        kinds = ("long or sparse", "wide") if lower.is_sparse else ("wide", "long or sparse")
        raise InvalidDataset(f"{lower.files[0]} is {kinds[0]}, {upper.files[0]} is {kinds[1]}; give two of a kind")
    if lower.n_labels != upper.n_labels:
        raise InvalidLabels(f"{upper.files[0]} has {upper.n_labels} labels, {lower.files[0]} has {lower.n_labels}")


def _require_probabilities(batch: Batch) -> None:
    """Raise `InvalidProbabilities` that names the place of the first value that is none."""
    if len(find_bad_values(batch)[0]):
        raise bad_value_error(batch)
