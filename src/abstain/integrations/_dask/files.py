"""Files of probabilities → files of decisions, by the workers of a Dask cluster."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from abstain._utils.errors import InvalidDataset, InvalidOutput
from abstain._utils.threads import one_core
from abstain.integrations._dask.client import connected
from abstain.streams._decide import decide_file
from abstain.streams._formats.columns import arrow
from abstain.streams._job import Job, Progress
from abstain.streams._read.sources import Sources
from abstain.streams._read.unique_ids import UniqueIds
from abstain.streams._sizes import SIZES
from abstain.streams._summary import Summary
from abstain.streams._write.destinations import require_separate


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
    tasks = _plan_tasks(sources, Path(output), job)
    # The order of the labels is that of the first file, which most workers do not see.
    job = replace(job, labels=sources.label_names)
    total = Summary()
    with connected(address, timeout) as client:
        for folder in {task.output.parent for task in tasks}:
            folder.mkdir(parents=True, exist_ok=True)
        if progress is not None:
            progress.start(sources.n_rows_estimated)
        futures = client.map(_decide, tasks, job=job, resume=resume, wanted=version("abstain"), pure=False)
        try:
            _require_unique_ids(sources)
            for summary in _results(client, futures, address, timeout):
                total += summary
                if progress is not None:
                    progress.advance(summary.n_rows + summary.n_skipped)
        except BaseException:
            client.cancel(futures)
            raise
    return total


def _plan_tasks(sources: Sources, folder: Path, job: Job) -> list[Task]:
    """Return the tasks that make up the work, each with an output of its own."""
    tasks: dict[Path, Task] = {}
    for source in sources.each_file():
        if source.file.path is None:
            raise InvalidDataset("standard input cannot be read by the workers of a cluster; give files")
        job.require_output_format(source.file.format, sources)
        file, output = source.file.path.absolute(), folder.absolute() / source.file.relative
        is_split = source.file.format.has_row_groups and not source.is_long
        for task in _split_by_row_groups(file, output) if is_split else [Task(file, output)]:
            if task.output in tasks:
                raise InvalidOutput(f"{file}: would be written to {task.output}, as {tasks[task.output].file} is")
            tasks[task.output] = task
    require_separate(tasks, sources)
    return list(tasks.values())


def _split_by_row_groups(file: Path, output: Path) -> list[Task]:
    """Return the tasks for a Parquet file: several if it is large, each with some row groups."""
    with arrow("pyarrow.parquet").ParquetFile(file) as source:
        sizes = [source.metadata.row_group(k).total_byte_size for k in range(source.metadata.num_row_groups)]
    start = np.cumsum([0, *sizes])
    task_number = start[:-1] // SIZES.cluster_task_bytes  # of the task in which a row group begins
    if len(sizes) == 0 or task_number[-1] == 0:
        return [Task(file, output)]
    groups = [np.flatnonzero(task_number == k).tolist() for k in np.unique(task_number)]
    return [
        Task(file, output.with_name(f"{output.stem}-{k:05}{output.suffix}"), tuple(some))
        for k, some in enumerate(groups)
    ]


def _decide(task: Task, job: Job, resume: bool, wanted: str) -> Summary:
    """Decide on one task on a worker, with the one core that Dask counts for it."""
    if (found := version("abstain")) != wanted:
        raise ImportError(f"a worker has abstain {found}, but here there is {wanted}; make them the same")
    with one_core():
        return decide_file(task.file, task.output, job, row_groups=task.row_groups, resume=resume)


def _results(client: Any, futures: Sequence[Any], address: str, timeout: float) -> Iterator[Summary]:
    """Yield the summaries as they come, until the first error or until there are no workers."""
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


def _require_unique_ids(sources: Sources) -> None:
    """Raise `InvalidDataset` if two rows of all files have the same name; a worker sees only some of them."""
    unique_ids = UniqueIds(sources)
    for file, first_row, ids in sources.ids():
        unique_ids.add(ids, file, first_row)
    unique_ids.finish()
