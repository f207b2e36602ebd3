"""Files of probabilities → files of decisions, in bounded memory."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from abstain._core.prediction import Prediction
from abstain._utils.backends import named_backend
from abstain._utils.errors import InvalidOutput, InvalidParameter
from abstain.streams._formats.columns import arrow
from abstain.streams._formats.registry import format_of
from abstain.streams._intervals import IntervalSources
from abstain.streams._job import Decider, Job, Progress
from abstain.streams._read.batches import Batch
from abstain.streams._read.sources import Paths, Sources
from abstain.streams._row_writer import RowWriter
from abstain.streams._summary import Summary
from abstain.streams._write.destinations import Destination, is_folder, is_stdout, require_separate
from abstain.streams._write.output_layout import OutputLayout
from abstain.streams._write.queue import QueueWriter
from abstain.streams._write.sinks import Sink


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
    if isinstance(sources, IntervalSources) and (decider is not None or job.on_error != "fail"):
        raise InvalidParameter("intervals are decided by a loss and a penalty, and with on_error='fail'")
    if cluster is not None:
        if queue is not None or decider is not None or is_stdout(output):
            raise InvalidParameter("cluster: its workers write files of answers into a folder, and no queue or budget")
        decide_on_cluster = named_backend("dask").decide_files
        return decide_on_cluster(sources, output, job, cluster, resume=resume, progress=progress, timeout=timeout)
    if resume and (not is_folder(output) or decider is not None or queue is not None):
        raise InvalidParameter(
            "resume: needs an output folder, and no queue or budget, which are made of all files at once"
        )
    destination = Destination.of(output, sources, output_format)
    for known in destination.formats():
        job.require_output_format(known, sources)
    writer = _DecisionWriter(job, sources, decider, progress)
    with ExitStack() as stack:
        if queue is not None:
            require_separate([Path(queue)], sources, destination.files)
            writer.queue = stack.enter_context(_open_queue(queue, job, sources))
        return writer.write_to(destination, resume=resume)


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


class _DecisionWriter(RowWriter[Prediction]):
    """Decides on some files, one after the other, and writes their outputs."""

    def __init__(
        self, job: Job, sources: Sources, decider: Decider | None = None, progress: Progress | None = None
    ) -> None:
        super().__init__(sources, progress)
        self.job, self.decider = job, decider
        self.queue: QueueWriter | None = None

    def output_layout(self, sources: Sources) -> OutputLayout:
        return self.job.output_layout(sources)

    def fingerprint(self, sources: Sources) -> str:
        return self.job.fingerprint(sources)

    def compute(self, batch: Batch) -> tuple[Batch, Prediction, Summary]:
        return self.job.decide_batch(batch, self.decider)

    def put(self, sink: Sink, batch: Batch, result: Prediction) -> None:
        sink.write(batch, result.codes)
        if self.queue is not None:
            self.queue.add(batch, result, self.job.loss)

    def finish(self) -> None:
        super().finish()
        if self.queue is not None:
            self.queue.finish()


def _open_queue(file: str | os.PathLike[str], job: Job, sources: Sources) -> QueueWriter:
    layout = job.output_layout(sources)
    with_ends = isinstance(sources, IntervalSources)
    return QueueWriter(Path(file), layout.labels, layout.id_type or arrow().int64(), with_ends=with_ends)
