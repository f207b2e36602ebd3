"""Files → files with the same rows, in bounded memory: read, computed and written at the same time."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Generic, TypeVar

from abstain._utils.errors import InvalidParameter
from abstain.streams._job import Progress
from abstain.streams._prefetch import prefetch
from abstain.streams._read.batches import Batch
from abstain.streams._read.sources import Sources
from abstain.streams._read.unique_ids import UniqueIds
from abstain.streams._resume import find_completed, record_completion
from abstain.streams._summary import Summary
from abstain.streams._write.destinations import Destination
from abstain.streams._write.output_layout import OutputLayout
from abstain.streams._write.sinks import Sink, open_sink

Result = TypeVar("Result")


class RowWriter(ABC, Generic[Result]):
    """Computes a result for the rows of some files, one file after the other, and writes their outputs."""

    def __init__(self, sources: Sources, progress: Progress | None = None) -> None:
        self.sources, self.progress = sources, progress
        self._unique_ids = UniqueIds(sources)
        self._n_rows = 0

    @abstractmethod
    def output_layout(self, sources: Sources) -> OutputLayout:
        """Return the columns of the output for some files."""

    @abstractmethod
    def fingerprint(self, sources: Sources) -> str:
        """Return a text that identifies what is computed for some files."""

    @abstractmethod
    def compute(self, batch: Batch) -> tuple[Batch, Result, Summary]:
        """Return the rows of a batch that have a result, the result, and its summary."""

    @abstractmethod
    def put(self, sink: Sink, batch: Batch, result: Result) -> None:
        """Write a result to an output."""

    def finish(self) -> None:
        """Compare all ids, once all rows are known."""
        self._unique_ids.finish()

    def write_to(self, destination: Destination, *, resume: bool = False) -> Summary:
        """Write the outputs of all files; with `resume`, keep those in a folder that are complete."""
        if resume and not destination.is_folder:
            raise InvalidParameter("resume: needs an output folder, in which files that are complete are kept")
        if self.progress is not None:
            self.progress.start(self.sources.n_rows_estimated)
        if not destination.is_folder:
            return self._write(self.sources, destination.output, destination.format, at_end=self.finish)
        total = Summary()
        for output, source in destination.files.items():
            output.parent.mkdir(parents=True, exist_ok=True)
            total += self.write_unless_done(source, output, resume)
        self.finish()
        return total

    def write_unless_done(
        self, sources: Sources, output: Path, resume: bool, row_groups: Sequence[int] | None = None
    ) -> Summary:
        """Write the output of one file, unless `resume` is set and it is there already."""
        source, job = sources.file.path, f"{self.fingerprint(sources)} {row_groups}"
        assert source is not None
        summary = find_completed(output, source, job) if resume else None
        if summary is None:
            summary = self._write(sources, output)
            record_completion(output, source, job, summary)
            return summary
        for file, first_row, ids in sources.ids():  # no other file may have a row of the same name
            self._unique_ids.add(ids, file, first_row)
        self._advance(summary)
        return replace(summary, n_kept=1)

    def _write(
        self,
        sources: Sources,
        output: str | os.PathLike[str],
        output_format: str | None = None,
        at_end: Callable[[], None] | None = None,
    ) -> Summary:
        """Read, compute and write at the same time; what is computed uses all cores."""
        total = Summary(n_labels=sources.n_labels, n_files=len(sources.files))
        with open_sink(output, self.output_layout(sources), output_format) as sink:
            with prefetch(self._results(sources, self._n_rows)) as results:
                for batch, result, summary in results:
                    self.put(sink, batch, result)
                    total += summary
                    self._n_rows += summary.n_rows + summary.n_skipped
                    self._advance(summary)
            if at_end is not None:
                at_end()
        return total

    def _results(self, sources: Sources, n_rows_before: int) -> Iterator[tuple[Batch, Result, Summary]]:
        """Compute batch by batch, while the next batch is read."""
        with prefetch(self._unique_ids.checked(sources.batches(n_rows_before))) as batches:
            for batch in batches:
                yield self.compute(batch)

    def _advance(self, summary: Summary) -> None:
        if self.progress is not None:
            self.progress.advance(summary.n_rows + summary.n_skipped)
