"""Scores in files: a calibration is learnt from them and their truth, or turns them into probabilities."""

import json
import os
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from abstain._core.tables import Axes, Matrix
from abstain._core.truth import Truth, read_truth
from abstain._utils.errors import (
    InvalidDataset,
    InvalidLabels,
    InvalidOutput,
    InvalidParameter,
    InvalidProbabilities,
    quoted,
    some_of,
)
from abstain._utils.types import Floats
from abstain._utils.wording import plural
from abstain.streams._alignment import aligned_batches, open_aligned
from abstain.streams._bad_values import (
    bad_value_error,
    describe_cell,
    find_entries,
    find_wrong_truth,
    truth_error,
)
from abstain.streams._intervals import interval_columns
from abstain.streams._job import Progress
from abstain.streams._prefetch import prefetch
from abstain.streams._read.batches import Batch
from abstain.streams._read.sources import Paths, Sources, open_sources
from abstain.streams._resume import digest
from abstain.streams._row_writer import RowWriter
from abstain.streams._summary import Summary
from abstain.streams._write.destinations import Destination
from abstain.streams._write.output_layout import PROBABILITIES, OutputLayout
from abstain.streams._write.sinks import Sink

# Calibration needs scikit-learn, which deciding does not: it is imported by the functions that need it.
if TYPE_CHECKING:
    from abstain.calibration._calibration import Calibration
    from abstain.calibration._scores import Kind, Scores


def fit_calibration(
    scores: Paths | Sources,
    y_true: Paths | Sources,
    method: str = "auto",
    *,
    kind: "Kind" = "probability",
    cv: int = 5,
    sample_weight: Paths | Sources | None = None,
    missing_values: float | None = None,
    progress: Progress | None = None,
) -> "Calibration":
    """Learn to turn scores in files into probabilities, from files of any size with the truth.

    The calibration is the one that `abstain.calibration.fit` learns from the whole tables. Rows are matched in their
    order, and where both sides have ids these must agree; labels are matched by name. Of long tables, the scores that
    are listed are calibrated, and what is not listed of the truth is 0.

    Parameters
    ----------
    scores : path, sequence of paths, or Sources
        Files with what a model says of rows that it was not fitted to, as for `open_sources`; or the table
        "probabilities" of `open_aligned`.
    y_true : path, sequence of paths, or Sources
        Files with 1 and 0; or the table "truth" of `open_aligned`.
    method : {"auto", "none", "temperature", "sigmoid", "beta", "isotonic", "venn-abers"}, default="auto"
        As for `abstain.calibration.fit`.
    kind : {"probability", "logit", "score"}, default="probability"
        What the scores are, as for `abstain.calibration.fit`; the scale of "score" is taken from the first batch.
    cv : int, default=5
        The number of random folds of rows by which methods are compared.
    sample_weight : path, sequence of paths, or Sources, optional
        Files with how much rows count, in one column, or single labels of rows, in a column for each label; wide, and
        with the same rows.
    missing_values : nan or -1, optional
        What marks labels in the truth that nobody has looked at: nan (an empty cell, null) or −1. They are left out. If
        it is not given, all labels must be known.
    progress : object with ``start`` and ``advance``, optional
        Is told how many rows there are, about, and how many more are done.

    Returns
    -------
    calibration : Calibration

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from abstain import write_table
    >>> from abstain.streams import calibrate_files, fit_calibration
    >>> random = np.random.default_rng(0)
    >>> p = random.random((2000, 3))
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = Path(name)
    ...     write_table(p, folder / "p.parquet")
    ...     write_table(random.random(p.shape) < p**2, folder / "truth.parquet")  # they claim too much
    ...     calibration = fit_calibration(folder / "p.parquet", folder / "truth.parquet")
    >>> calibration.transform([[0.3, 0.5, 0.9]]).round(1)
    array([[0.1, 0.3, 0.8]])
    """
    from abstain.calibration._fit import Entries, GroupedRows, Origin, learn_calibration
    from abstain.calibration._methods import require_method
    from abstain.calibration._scores import require_kind

    require_method(method)
    require_kind(kind)
    if isinstance(cv, bool) or not isinstance(cv, int | np.integer):
        raise InvalidParameter(f"cv is {quoted(cv)}; expected a number of folds: a splitter needs all rows in memory")
    rows = GroupedRows(int(cv))
    tables = _open_both(scores, y_true)
    given = tables["probabilities"]
    _require_dense(given, kind)
    if sample_weight is not None:
        tables["weights"] = _open_weights(sample_weight, given)
    if progress is not None:
        known = [sources.n_rows_estimated for sources in tables.values() if not sources.is_long]
        progress.start(known[0] if known else None)
    scale: float | None = None
    with prefetch(aligned_batches(tables)) as aligned:
        for batches in aligned:
            table, truth = _read_scores(batches["probabilities"], kind), _read_truth(batches, missing_values)
            entries = Entries(table, truth, _read_weights(batches), scale)
            scale = entries.scale
            rows.add(entries)
            if progress is not None:
                progress.advance(entries.n_rows)
    if scale is None:
        raise InvalidDataset(f"{', '.join(given.files)}: there are no rows, and so nothing to learn from")
    names = given.label_names or tables["truth"].label_names
    whole, splits = rows.merged()
    if sample_weight is not None and not whole.weight.any():
        raise InvalidParameter(f"{', '.join(tables['weights'].files)}: all weights of known labels are 0")
    return learn_calibration(whole, splits, method, Origin(kind, scale, names, rows.n_rows))


def calibrate_files(
    inputs: Paths | Sources,
    output: str | os.PathLike[str],
    calibration: "Calibration | str | os.PathLike[str]",
    *,
    intervals: bool = False,
    resume: bool = False,
    progress: Progress | None = None,
    format: str | None = None,  # noqa: A002 - as the command line calls it
    output_format: str | None = None,
) -> Summary:
    """Turn the scores in some files into calibrated probabilities, whatever their size.

    Wide tables become wide tables, sparse ones long tables (or CSR in npz) with the same entries; ids and the order of
    labels are kept. Numbers are float32 where all scores are, else float64.

    Parameters
    ----------
    inputs : path, sequence of paths, or Sources
        Files of scores, as for `open_sources`, with the labels of the calibration in any order.
    output : path, or "-"
        A file, a folder or standard output, as for `decide_files`.
    calibration : Calibration or path
        What `fit_calibration` or `abstain.calibration.fit` returns, or the file that it was saved to.
    intervals : bool, default=False
        Write the intervals of a calibration by "venn-abers", with columns ``<label>_lower`` and ``<label>_upper`` for
        each label, as `open_intervals` reads them, instead of the probabilities. They cannot be written to npy, which
        has no names of columns.
    resume : bool, default=False
        Keep those files in the output folder that are complete and were made by the same calibration from the same
        input.
    progress : object with ``start`` and ``advance``, optional
        Is told how many rows there are, about, and how many more are done.
    format : str, optional
        As for `open_sources`.
    output_format : str, optional
        The format of standard output, as for `decide_files`.

    Returns
    -------
    Summary
        With the numbers of rows, labels and files.

    Examples
    --------
    >>> import abstain, tempfile
    >>> from pathlib import Path
    >>> from abstain.streams import calibrate_files
    >>> p, truth = [[0.2], [0.3], [0.4], [0.6], [0.7], [0.8]], [[0], [0], [1], [0], [1], [1]]
    >>> calibration = abstain.calibration.fit(p, truth, method="none")
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = Path(name)
    ...     abstain.write_table(abstain.Table(p[:2], ["sky"], ["a", "b"]), folder / "p.parquet")
    ...     summary = calibrate_files(folder / "p.parquet", folder / "calibrated.csv", calibration)
    ...     print((folder / "calibrated.csv").read_text(), summary.n_rows)
    "id","sky"
    "a",0.2
    "b",0.3
     2
    """
    from abstain.calibration._calibration import Calibration

    if not isinstance(calibration, Calibration):
        calibration = Calibration.load(Path(calibration))
    sources = inputs if isinstance(inputs, Sources) else open_sources(inputs, format=format)
    sources.require_labels()
    _require_dense(sources, calibration.kind)
    if intervals and sources.is_sparse:
        raise InvalidParameter(
            f"intervals: {sources.files[0]} is long or sparse; intervals need a score of every label"
        )
    make_writer = _IntervalWriter if intervals else _ProbabilityWriter
    writer = make_writer(_with_labels_of(sources, calibration), sources, progress)
    destination = Destination.of(output, sources, output_format)
    if intervals and not all(known.names_rows for known in destination.formats()):
        raise InvalidOutput(
            "intervals are two named columns for each label, and npy has no names; write npz or parquet"
        )
    return writer.write_to(destination, resume=resume)


class _ProbabilityWriter(RowWriter[Matrix]):
    """Calibrates the scores in some files, one after the other, and writes their outputs."""

    def __init__(self, calibration: "Calibration", sources: Sources, progress: Progress | None) -> None:
        super().__init__(sources, progress)
        self.calibration = calibration
        self.values = PROBABILITIES
        if sources.is_single_precision:
            self.values = PROBABILITIES._replace(dtype=np.dtype(np.float32))

    def output_layout(self, sources: Sources) -> OutputLayout:
        return OutputLayout.of(sources, self.values)

    def fingerprint(self, sources: Sources) -> str:
        read_as = sources.label_names, sources.id_name, sources.long_columns, str(self.values.dtype)
        return digest(json.dumps(self.calibration.to_dict()), *read_as, version("abstain"))

    def calibrated(self, values: Matrix) -> Matrix:
        """Return what is written for some scores."""
        return self.calibration.transform(values)

    def compute(self, batch: Batch) -> tuple[Batch, Matrix, Summary]:
        _require_numbers(batch, self.calibration.kind)
        try:
            probabilities = self.calibrated(batch.table.values)
        except InvalidProbabilities:
            raise bad_value_error(batch) from None
        size = Summary(n_rows=probabilities.shape[0], n_labels=self.calibration.n_labels)
        return batch, probabilities.astype(self.values.dtype, copy=False), size

    def put(self, sink: Sink, batch: Batch, result: Matrix) -> None:
        sink.write(batch, result)


class _IntervalWriter(_ProbabilityWriter):
    """Writes the intervals of calibrated scores, two columns for each label."""

    def __init__(self, calibration: "Calibration", sources: Sources, progress: Progress | None) -> None:
        super().__init__(calibration, sources, progress)
        calibration.require_intervals()

    def output_layout(self, sources: Sources) -> OutputLayout:
        layout = super().output_layout(sources)
        return replace(layout, labels=interval_columns(layout.labels), labels_named=True)

    def fingerprint(self, sources: Sources) -> str:
        return f"{super().fingerprint(sources)} intervals"

    def calibrated(self, values: Matrix) -> Matrix:
        box = self.calibration.intervals(values)
        return np.stack([box.lower, box.upper], axis=2).reshape(len(box), -1)


def _open_both(scores: Paths | Sources, y_true: Paths | Sources) -> dict[str, Sources]:
    """Return scores and truth with the same labels in the same order."""
    if isinstance(scores, Sources) and isinstance(y_true, Sources):
        tables = {"probabilities": scores, "truth": y_true}
    elif isinstance(scores, Sources) or isinstance(y_true, Sources):
        raise InvalidParameter("scores and y_true: pass paths, or the two tables that open_aligned returns")
    else:
        tables = open_aligned({"probabilities": scores, "truth": y_true})
    for sources in tables.values():
        sources.require_labels()
    ours, theirs = tables.values()
    if ours.n_labels != theirs.n_labels:
        counts = f"has {plural(theirs.n_labels, 'label')}; {ours.files[0]} has {ours.n_labels}"
        raise InvalidLabels(f"{theirs.files[0]}: {counts}")
    return tables


def _open_weights(weights: Paths | Sources, scores: Sources) -> Sources:
    """Return weights of rows, or of all labels in the order of the scores."""
    sources = weights if isinstance(weights, Sources) else open_sources(weights)
    if sources.is_sparse:
        raise InvalidDataset(f"{sources.files[0]}: weights are a wide table: one column, or one for each label")
    if sources.n_labels == 1 or sources.label_names in (None, scores.label_names) or scores.label_names is None:
        if sources.n_labels not in (1, scores.n_labels):
            counts = f"{plural(sources.n_labels, 'column')} of weights; expected one, or one for each of the labels"
            raise InvalidLabels(f"{sources.files[0]}: has {counts} ({scores.n_labels})")
        return sources
    return sources.with_labels(scores.label_names)


def _read_weights(batches: dict[str, Batch]) -> Floats | None:
    """Return the weights of some rows (n,), or of their entries (n, m); None if there are none."""
    if "weights" not in batches:
        return None
    batch = batches["weights"]
    weights = batch.table.values.astype(np.float64)
    if not np.all(good := (weights >= 0) & np.isfinite(weights)):
        rows, columns, wrong = find_entries(weights, ~good)
        place = describe_cell(batch, int(rows[0]), int(columns[0]), wrong[0])
        raise InvalidParameter(f"{place}; a weight is a finite number ≥ 0")
    return weights[:, 0] if weights.shape[1] == 1 else weights


def _require_dense(sources: Sources, kind: str) -> None:
    """Raise `InvalidProbabilities` for sparse scores that are no probabilities."""
    if sources.is_sparse and kind != "probability":
        raise InvalidProbabilities(
            f"{sources.files[0]}: what a {'long' if sources.is_long else 'sparse'} table does not list would be a "
            f"{kind} of 0, which is no small score; give probabilities, or a wide table"
        )


def _read_scores(batch: Batch, kind: "Kind") -> "Scores":
    from abstain.calibration._scores import Scores

    _require_numbers(batch, kind)
    try:
        return Scores.read(batch.table, kind)
    except InvalidProbabilities:
        raise bad_value_error(batch) from None


def _require_numbers(batch: Batch, kind: str) -> None:
    """Raise `InvalidProbabilities` where a score is no number; probabilities are checked by those who read them."""
    if kind == "probability":
        return
    values = batch.table.values
    # Text that is no number is read as infinity.
    wrong = np.isnan(values) if batch.quote is None else ~np.isfinite(values)
    if wrong.any():
        rows, columns, found = find_entries(values, wrong)
        place = describe_cell(batch, int(rows[0]), int(columns[0]), found[0])
        raise InvalidProbabilities(f"{place}; a {kind} is a number")


def _read_truth(batches: dict[str, Batch], missing_values: float | None) -> Truth:
    batch = batches["truth"]
    try:
        return read_truth(batch.table, missing_values)
    except InvalidLabels:
        wrong = find_wrong_truth(batch, missing_values)[2]
        raise truth_error(batch, missing_values, _hint_at_truth(wrong, batches["probabilities"])) from None


def _hint_at_truth(wrong: Matrix, scores: Batch) -> str:
    """Return a guess what values are that are neither 0 nor 1."""
    if np.isnan(wrong[0]):
        return "if empty cells are labels that nobody has looked at, leave them out (--missing-values nan)"
    if wrong[0] == -1:
        return "if −1 marks labels that nobody has looked at, leave them out (--missing-values -1)"
    values = scores.table.values.data if sparse.issparse(scores.table.values) else scores.table.values
    if np.isin(values, (0, 1)).all() and np.all((wrong > 0) & (wrong < 1)):
        return "are the files in the wrong order? Scores come first, then the truth"
    return ""


def _with_labels_of(sources: Sources, calibration: "Calibration") -> "Calibration":
    """Return the calibration of the labels of some files, in their order; long tables need not list all labels."""
    from abstain.calibration._calibration import Calibration

    file, found = sources.files[0], sources.label_names
    if found is None or (calibration.label_names is None and not sources.is_long):
        if sources.n_labels != calibration.n_labels:
            counts = f"{plural(sources.n_labels, 'label')}; the calibration has {calibration.n_labels}"
            raise InvalidLabels(f"{file}: has {counts}")
        return calibration
    there = set(found)
    known = {str(name): j for j, name in enumerate(Axes(calibration.label_names).names(calibration.n_labels))}
    missing = [] if sources.is_long else [name for name in known if name not in there]
    extra = [name for name in found if name not in known]
    if missing or extra:
        parts = [f"it has no label {some_of(missing)}"] if missing else []
        parts += [f"the calibration has no label {some_of(extra)} (--labels chooses others)"] if extra else []
        raise InvalidLabels(f"{file}: its labels are not those of the calibration: {'; '.join(parts)}")
    order = [known[name] for name in found]
    if order == list(range(calibration.n_labels)):
        return calibration
    content = calibration.to_dict()
    return Calibration.from_dict(content | {"labels": [content["labels"][j] for j in order]})
