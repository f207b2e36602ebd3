"""Files larger than memory: read in batches, decided, written, each at the same time as the others."""

from abstain.streams.batches import Batch
from abstain.streams.layout import Layout
from abstain.streams.pipeline import Job, decide_file, decide_files
from abstain.streams.sinks import open_sink
from abstain.streams.sources import Sources, open_sources
from abstain.streams.summary import Summary

__all__ = ["Batch", "Job", "Layout", "Sources", "Summary", "decide_file", "decide_files", "open_sink", "open_sources"]
