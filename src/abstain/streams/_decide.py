"""Files of probabilities → files of decisions, in bounded memory."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from abstain._core.prediction import Prediction
from abstain._utils.atomic import require_writable
from abstain._utils.backends import named_backend
from abstain._utils.errors import InvalidOutput, InvalidParameter
from abstain.streams._formats.columns import arrow
from abstain.streams._formats.registry import format_called, format_of
from abstain.streams._job import Decider, Job, Progress
from abstain.streams._prefetch import prefetch
from abstain.streams._read.batches import Batch
from abstain.streams._read.sources import Paths, Sources
from abstain.streams._read.unique_ids import UniqueIds
from abstain.streams._resume import find_completed, record_completion
from abstain.streams._summary import Summary
from abstain.streams._write.destinations import is_folder, is_stdout, place_in_folder, require_separate
from abstain.streams._write.queue import QueueWriter
from abstain.streams._write.sinks import open_sink


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
    abstention, sparse ones long tables (or CSR in npz).

    Parameters
    ----------
    inputs : path, sequence of paths, or Sources
        Files, as for `open_sources`; or files that have been opened as the job says.
    output : path, or "-"
        A file, which appears only when it is complete, or "-" for standard output. A folder (one that exists, or a path
        that ends in "/") gets a file for each input, of the same name within the folder; each appears when it is
        complete.
    job : Job
        What is to be decided, and how the files are to be read.
    queue : path, optional
        Where to write the review queue: all abstentions, the most valuable review first.
    resume : bool, default=False
        Keep those files in the output folder that are complete and were made by the same job from the same input.
    progress : object with ``start`` and ``advance``, optional
        Is told how many rows there are, about, and how many more are done.
    decider : callable, optional
        Takes a `Table` of probabilities and returns the decisions, instead of the loss and the penalty of the job; a
        budget, for example.
    format : str, optional
        As for `open_sources`.
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
        raise InvalidParameter("on_error: a decider of its own cannot leave bad labels open; expected 'fail' or 'skip'")
    sources = inputs if isinstance(inputs, Sources) else job.open(inputs, format=format)
    sources.require_labels()
    if cluster is not None:
        if queue is not None or decider is not None or is_stdout(output):
            raise InvalidParameter("cluster: its workers write files of answers into a folder, and no queue or budget")
        decide_on_cluster = named_backend("dask").decide_files
        return decide_on_cluster(sources, output, job, cluster, resume=resume, progress=progress, timeout=timeout)
    to_folder = is_folder(output)
    if resume and (not to_folder or decider is not None or queue is not None):
        raise InvalidParameter(
            "resume: needs an output folder, and no queue or budget, which are made of all files at once"
        )
    outputs: dict[Path, Sources] = {}
    if is_stdout(output):
        output_format = output_format or sources.file.format.stdout_name
        job.require_output_format(format_called(output_format, InvalidOutput), sources)
    else:
        outputs = place_in_folder(sources, Path(output)) if to_folder else {Path(output): sources}
    require_separate(outputs, sources)
    for file in outputs:
        require_writable(file, new_folders=to_folder)
        job.require_output_format(format_of(file, InvalidOutput), sources)
    writer = _DecisionWriter(job, sources, decider, progress)
    with ExitStack() as stack:
        if queue is not None:
            require_separate([Path(queue)], sources, outputs)
            writer.queue = stack.enter_context(_open_queue(queue, job, sources))
        if progress is not None:
            progress.start(sources.n_rows_estimated)
        if to_folder:
            return _fill_folder(writer, outputs, resume)
        return writer.write(sources, output, output_format, at_end=writer.finish)


def decide_file(
    file: str | os.PathLike[str],
    output: str | os.PathLike[str],
    job: Job,
    *,
    row_groups: Sequence[int] | None = None,
    resume: bool = False,
) -> Summary:
    """Decide on all rows of one file, or of some row groups of a Parquet file.

    Parameters
    ----------
    file : path
        A file of probabilities.
    output : path
        A file, which appears only when it is complete.
    job : Job
        What is to be decided, and how the file is to be read.
    row_groups : sequence of int, optional
        Of a Parquet file, only these (consecutive) row groups.
    resume : bool, default=False
        Keep an output that is complete and was made from the same input by the same job.

    Returns
    -------
    Summary
    """
    sources = job.open(file, row_groups=row_groups)
    require_separate([Path(output)], sources)
    job.require_output_format(format_of(Path(output), InvalidOutput), sources)
    return _DecisionWriter(job, sources).write_unless_done(sources, Path(output), resume, row_groups)


class _DecisionWriter:
    """Decides on some files, one after the other, and writes their outputs."""

    def __init__(
        self, job: Job, sources: Sources, decider: Decider | None = None, progress: Progress | None = None
    ) -> None:
        self.job, self.decider, self.progress = job, decider, progress
        self.queue: QueueWriter | None = None
        self._unique_ids = UniqueIds(sources)
        self._n_rows = 0

    def finish(self) -> None:
        """Compare all ids and write the queue, once all rows are known."""
        self._unique_ids.finish()
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
        with open_sink(output, self.job.output_layout(sources), output_format) as sink:
            with prefetch(self._decisions(sources, self._n_rows)) as decisions:
                for batch, prediction, summary in decisions:
                    sink.write(batch, prediction)
                    if self.queue is not None:
                        self.queue.add(batch, prediction, self.job.loss)
                    total += summary
                    self._n_rows += summary.n_rows + summary.n_skipped
                    self._advance(summary)
            if at_end is not None:
                at_end()
        return total

    def _decisions(self, sources: Sources, n_rows_before: int) -> Iterator[tuple[Batch, Prediction, Summary]]:
        """Decide batch by batch, while the next batch is read."""
        with prefetch(self._unique_ids.checked(sources.batches(n_rows_before))) as batches:
            for batch in batches:
                yield self.job.decide_batch(batch, self.decider)

    def write_unless_done(
        self, sources: Sources, output: Path, resume: bool, row_groups: Sequence[int] | None = None
    ) -> Summary:
        """Write the output of one file, unless `resume` is set and it is there already."""
        source, job = sources.file.path, f"{self.job.fingerprint(sources)} {row_groups}"
        assert source is not None
        summary = find_completed(output, source, job) if resume else None
        if summary is None:
            summary = self.write(sources, output)
            record_completion(output, source, job, summary)
            return summary
        for file, first_row, ids in sources.ids():  # no other file may have a row of the same name
            self._unique_ids.add(ids, file, first_row)
        self._advance(summary)
        return replace(summary, n_kept=1)

    def _advance(self, summary: Summary) -> None:
        if self.progress is not None:
            self.progress.advance(summary.n_rows + summary.n_skipped)


def _fill_folder(writer: _DecisionWriter, outputs: dict[Path, Sources], resume: bool) -> Summary:
    total = Summary()
    for output, source in outputs.items():
        output.parent.mkdir(parents=True, exist_ok=True)
        total += writer.write_unless_done(source, output, resume)
    writer.finish()
    return total


def _open_queue(file: str | os.PathLike[str], job: Job, sources: Sources) -> QueueWriter:
    layout = job.output_layout(sources)
    return QueueWriter(Path(file), layout.labels, layout.id_type or arrow().int64())
