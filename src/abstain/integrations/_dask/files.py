"""Files of probabilities → files of decisions, by the workers of a Dask cluster."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from abstain._utils.errors import InvalidDataset
from abstain._utils.threads import one_core
from abstain.integrations._dask.client import connected
from abstain.streams._decide import Job, Progress, decide_file, require_place
from abstain.streams._formats.columns import arrow
from abstain.streams._read.sources import Sources
from abstain.streams._summary import Summary
from abstain.streams._unique_ids import Identity

PART = 1 << 28  # bytes of Parquet, unpacked, that make a task: a worker that dies loses no more than that


@dataclass(frozen=True)
class Task:
    """A file, or some row groups of a large one, and where its decisions go."""

    file: Path
    output: Path
    row_groups: tuple[int, ...] | None = None


def decide_files(
    sources: Sources,
    output: str | os.PathLike[str],
    job: Job,
    address: str,
    *,
    resume: bool,
    progress: Progress | None,
    timeout: float,
) -> Summary:
    """Decide on all rows of some files, on the workers of a Dask cluster; see `abstain.streams.decide_files`."""
    tasks = _tasks(sources, Path(output), job)
    for folder in {task.output.parent for task in tasks}:
        folder.mkdir(parents=True, exist_ok=True)
    # The first file tells the order of the labels; a worker does not see it.
    job = replace(job, labels=sources.label_names)
    total = Summary()
    with connected(address, timeout) as client:
        if progress is not None:
            progress.start(sources.n_rows_estimated)
        futures = client.map(_decide, tasks, job=job, resume=resume, wanted=version("abstain"), pure=False)
        try:
            _require_different_ids(sources)
            for summary in _results(client, futures, address, timeout):
                total += summary
                if progress is not None:
                    progress.advance(summary.n_rows + summary.n_skipped)
        except BaseException:
            client.cancel(futures)
            raise
    return total


def _tasks(sources: Sources, folder: Path, job: Job) -> list[Task]:
    """What is to be done, each output once."""
    tasks: dict[Path, Task] = {}
    for part in sources.parts():
        if part.file.path is None:
            raise InvalidDataset("standard input cannot be read by the workers of a cluster; give files")
        file, output = part.file.path.absolute(), folder.absolute() / part.file.relative
        for task in (
            _parts_of(file, output) if part.file.kind == ".parquet" and not part.is_long else [Task(file, output)]
        ):
            if task.output in tasks:
                raise InvalidDataset(f"{file}: would be written to {task.output}, as {tasks[task.output].file} is")
            job.require_keepable(part.file.kind, sources)
            tasks[task.output] = task
    require_place(tasks, sources)
    return list(tasks.values())


def _parts_of(file: Path, output: Path) -> list[Task]:
    """A Parquet file, cut between row groups if it is large."""
    with arrow("pyarrow.parquet").ParquetFile(file) as source:
        sizes = [source.metadata.row_group(k).total_byte_size for k in range(source.metadata.num_row_groups)]
    before = np.cumsum([0, *sizes])
    number = before[:-1] // PART  # of the part in which a row group begins
    if len(sizes) == 0 or number[-1] == 0:
        return [Task(file, output)]
    groups = [np.flatnonzero(number == k).tolist() for k in np.unique(number)]
    return [
        Task(file, output.with_name(f"{output.stem}-{k:05}{output.suffix}"), tuple(some))
        for k, some in enumerate(groups)
    ]


def _decide(task: Task, job: Job, resume: bool, wanted: str) -> Summary:
    """What a worker does, with the one core that Dask counts for it."""
    if (found := version("abstain")) != wanted:
        raise ImportError(f"a worker has abstain {found}, but here there is {wanted}; make them the same")
    with one_core():
        return decide_file(task.file, task.output, job, row_groups=task.row_groups, resume=resume)


def _results(client: Any, futures: Sequence[Any], address: str, timeout: float) -> Iterator[Summary]:
    """The summaries as they come; the first error ends it, and so does a cluster without workers."""
    from distributed import KilledWorker, wait

    waiting = set(futures)
    try:
        while waiting:
            try:
                done, waiting = wait(waiting, timeout=timeout, return_when="FIRST_COMPLETED")
            except TimeoutError:
                if not client.scheduler_info()["workers"]:
                    raise ConnectionError(
                        f"all workers of the Dask cluster at {address!r} have died; with new ones, --resume goes on"
                    ) from None
                continue
            for future in done:
                yield future.result()
    except KilledWorker as reason:
        raise ConnectionError(f"the workers of the Dask cluster at {address!r} die ({reason})") from reason
    except CancelledError as reason:
        raise ConnectionError(f"the Dask cluster at {address!r} has gone away ({reason})") from reason


def _require_different_ids(sources: Sources) -> None:
    """No two rows of all files may have the same name; a worker sees only some of them."""
    identity = Identity(sources)
    for file, first_row, ids in sources.ids():
        identity.add(ids, file, first_row)
    identity.finish()
