"""Files of probabilities → files of decisions, in bounded memory."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from abstain._core.decision import decide_table
from abstain._core.losses import Loss, as_loss
from abstain._core.penalties import Penalty, as_penalty
from abstain._core.prediction import Prediction
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Table
from abstain._utils.atomic import find_same, require_apart, require_writable
from abstain._utils.backends import named_backend
from abstain._utils.errors import InvalidDataset, InvalidProbabilities
from abstain.streams._bad_values import OnError, bad_value_error, decide_around, without_bad_rows
from abstain.streams._formats import kind_of
from abstain.streams._formats.columns import arrow
from abstain.streams._prefetch import ahead
from abstain.streams._read.batches import Batch
from abstain.streams._read.sources import Form, Paths, Sources, open_sources
from abstain.streams._resume import find_mark, fingerprint, keep_mark
from abstain.streams._summary import Summary
from abstain.streams._unique_ids import Identity
from abstain.streams._write.layout import Layout
from abstain.streams._write.sinks import open_sink

Decider = Callable[[Table], Prediction]


class Progress(Protocol):
    """Who wants to know how far a stream is."""

    def start(self, n_rows: int | None) -> None:
        """So many rows are to come, about; None if nobody knows."""

    def advance(self, n_rows: int) -> None:
        """So many more rows are done."""


@dataclass(frozen=True)
class Job:
    """What is to be decided, and how files are to be read: the same for every file, and easily sent elsewhere.

    Parameters
    ----------
    loss, penalty
        As for `abstain.decide`.
    form, id_column, labels, label_column, value_column
        As for `open_sources`.
    on_error : "fail", "skip" or "abstain"
        What to do where something is no probability: raise an error that names the place, leave the row out (rows
        without ids are then numbered in the output), or leave the label open and decide the others as is best given
        that.
    """

    loss: Loss
    penalty: Penalty
    form: Form | None = None
    id_column: str | None = None
    labels: tuple[str, ...] | None = None
    on_error: OnError = "fail"
    label_column: str | None = None
    value_column: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", as_loss(self.loss))
        object.__setattr__(self, "penalty", as_penalty(self.penalty))

    def open(
        self,
        inputs: Paths,
        format: str | None = None,  # noqa: A002 - as the command line calls it
        row_groups: Sequence[int] | None = None,
    ) -> Sources:
        """The files, read as the job says."""
        return open_sources(
            inputs,
            form=self.form,
            id_column=self.id_column,
            label_column=self.label_column,
            value_column=self.value_column,
            labels=self.labels,
            format=format,
            row_groups=row_groups,
        )

    def layout(self, sources: Sources) -> Layout:
        """What the output looks like."""
        return Layout.of(sources, is_ranking=self.loss.gives_rankings, numbered=self.on_error == "skip")

    def require_keepable(self, kind: str, sources: Sources) -> None:
        """Raise `InvalidDataset` if rows that are skipped would not be missed in an output of this kind."""
        if self.on_error == "skip" and (kind == ".npy" or (sources.is_sparse and kind != ".npz")):
            why = "an npy file does not name its rows" if kind == ".npy" else "what a long table does not list is 0"
            raise InvalidDataset(f"bad rows cannot be skipped: {why}; write npz, or leave bad labels open")

    def decide(self, table: Table) -> Prediction:
        """The decision on a block of rows."""
        return decide_table(Probabilities(table), self.loss, self.penalty)

    def decide_batch(self, batch: Batch, decider: Decider | None = None) -> tuple[Batch, Prediction, Summary]:
        """The rows of a batch that are decided, the decision, and what is to be said of it."""
        decide = self.decide if decider is None else decider
        try:
            prediction = decide(batch.table)
            return batch, prediction, Summary.of(prediction)
        except InvalidProbabilities:
            if self.on_error == "fail":
                raise bad_value_error(batch) from None
        if self.on_error == "abstain":
            prediction, n_repaired = decide_around(batch, self.loss, self.penalty)
            return batch, prediction, replace(Summary.of(prediction), n_repaired=n_repaired)
        good = without_bad_rows(batch)
        prediction = decide(good.table)
        return good, prediction, replace(Summary.of(prediction), n_skipped=len(batch) - len(good))

    def fingerprint(self, sources: Sources) -> str:
        """A text that tells this job from any other."""
        columns = self.id_column, self.label_column, self.value_column
        read_as = self.form, columns, sources.label_names, self.on_error, version("abstain")
        return fingerprint(self.loss, self.penalty, sources.n_labels, *read_as)


def decide_files(
    inputs: Paths | Sources,
    output: str | os.PathLike[str],
    job: Job,
    *,
    queue: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    decider: Decider | None = None,
    format: str | None = None,  # noqa: A002 - as the command line calls it
    output_format: str | None = None,
    cluster: str | None = None,
    timeout: float = 10.0,
) -> Summary:
    """Decide on all rows of some files, whatever their size.

    Reading, deciding and writing go on at the same time. Wide tables become wide tables with an empty cell for each
    label that is left open, sparse ones long tables (or CSR in npz).

    Parameters
    ----------
    inputs, format
        As for `open_sources`; or files that have been opened, as the job says.
    output : path, or "-"
        A file, which appears only when it is complete, or "-" for standard output. A folder (one that exists, or a path
        that ends in "/") gets a file for each input, of the same name within the folder; each appears when it is
        complete.
    job : Job
    queue : path, optional
        Where to write the review queue: all labels left open, the most valuable review first.
    resume : bool, default=False
        Keep those files in the output folder that are complete and were made by the same job from the same input.
    progress : object with ``start`` and ``advance``, optional
        Is told how many rows there are, about, and how many more are done.
    decider : function of a Table, optional
        What decides instead of the loss and the penalty of the job (a budget, for example).
    output_format : str, optional
        The format of standard output: "csv" (the default, but "arrows" if the input is Arrow), "csv.gz" or "arrows".
    cluster : str, optional
        The address of a Dask scheduler, such as ``tcp://host:8786``. Its workers read and write the files themselves,
        so they must see them at the same paths, and `output` is a folder. A large Parquet file becomes several
        (``scores-00000.parquet``, …, in the order of its row groups). What a worker was doing when it died is done
        again by another.
    timeout : float, default=10.0
        Seconds to wait for the scheduler, and for its first worker.

    Returns
    -------
    Summary

    Examples
    --------
    >>> import abstain, tempfile
    >>> from pathlib import Path
    >>> from abstain.streams import Job, decide_files
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = Path(name)
    ...     abstain.write_table(abstain.Table([[0.97, 0.55], [0.3, 0.04]], ["sky", "sea"]), folder / "p.parquet")
    ...     summary = decide_files(folder / "p.parquet", folder / "d.csv", Job("hamming", 0.2))
    ...     print((folder / "d.csv").read_text(), summary.n_abstained)
    "sky","sea"
    1,
    ,0
     2
    """
    if decider is not None and job.on_error == "abstain":
        raise ValueError("on_error: a decider of its own cannot leave bad labels open; expected 'fail' or 'skip'")
    sources = inputs if isinstance(inputs, Sources) else job.open(inputs, format)
    sources.require_labels()
    if cluster is not None:
        if queue is not None or decider is not None or os.fspath(output) == "-":
            raise ValueError("cluster: its workers write files of answers into a folder, and no queue or budget")
        decide_on_cluster = named_backend("dask").decide_files
        return decide_on_cluster(sources, output, job, cluster, resume=resume, progress=progress, timeout=timeout)
    to_stdout = os.fspath(output) == "-"
    to_folder = not to_stdout and (Path(output).is_dir() or os.fspath(output).endswith(("/", os.sep)))
    if resume and (not to_folder or decider is not None or queue is not None):
        raise ValueError("resume: needs an output folder, and no queue or budget, which are made of all files at once")
    outputs: dict[Path, Sources] = {}
    if to_stdout:
        is_arrow = sources.file.kind in (".arrow", ".arrows", ".feather", ".ipc")
        output_format = output_format or ("arrows" if is_arrow else "csv")
        job.require_keepable(f".{output_format}", sources)
    else:
        outputs = _in_folder(sources, Path(output)) if to_folder else {Path(output): sources}
    require_place(outputs, sources)
    for file in outputs:
        require_writable(file, new_folders=to_folder)
        job.require_keepable(kind_of(file), sources)
    run = _Run(job, sources, decider, progress)
    with ExitStack() as stack:
        if queue is not None:
            require_place([Path(queue)], sources, outputs)
            run.queue = stack.enter_context(_open_queue(queue, job.layout(sources)))
        if progress is not None:
            progress.start(sources.n_rows_estimated)
        if to_folder:
            return _fill_folder(run, outputs, resume)
        return run.write(sources, output, output_format, at_end=run.finish)


def decide_file(
    file: str | os.PathLike[str],
    output: str | os.PathLike[str],
    job: Job,
    *,
    row_groups: Sequence[int] | None = None,
    resume: bool = False,
) -> Summary:
    """Decide on all rows of one file, or of some row groups of a Parquet file; the output is whole or not there.

    With `resume`, an output that was made of the same input by the same job is kept.
    """
    sources = job.open(file, row_groups=row_groups)
    require_place([Path(output)], sources)
    job.require_keepable(kind_of(Path(output)), sources)
    return _Run(job, sources, None, None).write_or_keep(sources, Path(output), resume, row_groups)


class _Run:
    """One pass over some files."""

    def __init__(self, job: Job, sources: Sources, decider: Decider | None, progress: Progress | None) -> None:
        self.job, self.sources, self.decider, self.progress = job, sources, decider, progress
        self.identity = Identity(sources)
        self.queue: Any = None
        self.n_rows = 0

    def finish(self) -> None:
        """What can be said and written only when all rows are known."""
        self.identity.finish()
        if self.queue is not None:
            self.queue.finish()

    def write(
        self,
        sources: Sources,
        output: str | os.PathLike[str],
        output_format: str | None = None,
        at_end: Callable[[], None] | None = None,
    ) -> Summary:
        """Read, decide and write at the same time; decisions use all cores."""
        total = Summary(n_labels=sources.n_labels, n_files=len(sources.files))
        with open_sink(output, self.job.layout(sources), output_format) as sink:
            with ahead(self._decisions(sources, self.n_rows)) as decisions:
                for batch, prediction, summary in decisions:
                    sink.write(batch, prediction)
                    if self.queue is not None:
                        self.queue.add(batch, prediction, self.job.loss)
                    total += summary
                    self.n_rows += summary.n_rows + summary.n_skipped
                    if self.progress is not None:
                        self.progress.advance(summary.n_rows + summary.n_skipped)
            if at_end is not None:
                at_end()
        return total

    def _decisions(self, sources: Sources, n_rows_before: int) -> Iterator[tuple[Batch, Prediction, Summary]]:
        """What is decided, batch by batch, while the next batch is read."""
        with ahead(self.identity.watch(sources.batches(n_rows_before))) as batches:
            for batch in batches:
                yield self.job.decide_batch(batch, self.decider)

    def write_or_keep(
        self, sources: Sources, output: Path, resume: bool, row_groups: Sequence[int] | None = None
    ) -> Summary:
        """The same for one file, unless that is done already."""
        made_of, kind = sources.file.path, f"{self.job.fingerprint(sources)} {row_groups}"
        assert made_of is not None
        summary = find_mark(output, made_of, kind) if resume else None
        if summary is None:
            summary = self.write(sources, output)
            keep_mark(output, made_of, kind, summary)
            return summary
        for file, first_row, ids in sources.ids():  # no other file may have a row of the same name
            self.identity.add(ids, file, first_row)
        if self.progress is not None:
            self.progress.advance(summary.n_rows + summary.n_skipped)
        return replace(summary, n_kept=1)


def _in_folder(sources: Sources, folder: Path) -> dict[Path, Sources]:
    """A file for each input."""
    outputs: dict[Path, Sources] = {}
    for part in sources.parts():
        if part.file.path is None:
            raise InvalidDataset(f"{part.file.name}: has no name to use in a folder; give a file as output")
        output = folder / part.file.relative
        if output in outputs:
            raise InvalidDataset(f"{part.file.name}: would be written to {output}, as {outputs[output].file.name} is")
        outputs[output] = part
    return outputs


def _fill_folder(run: _Run, outputs: dict[Path, Sources], resume: bool) -> Summary:
    total = Summary()
    for output, part in outputs.items():
        output.parent.mkdir(parents=True, exist_ok=True)
        total += run.write_or_keep(part, output, resume)
    run.finish()
    return total


def require_place(outputs: Collection[Path], sources: Sources, others: Collection[Path] = ()) -> None:
    """Raise `InvalidDataset` if a file would take the place of an input or of another output."""
    require_apart(outputs, map(Path, sources.files))
    if (same := find_same(outputs, others)) is not None:
        raise InvalidDataset(f"{same}: the answers go there; choose another file for the queue")


def _open_queue(file: str | os.PathLike[str], layout: Layout) -> Any:
    from abstain.streams._write.queue import QueueWriter

    return QueueWriter(Path(file), layout.labels, layout.id_type or arrow().int64())
