"""Files larger than memory: read in batches, decided, written, each at the same time as the others.

batches, readers → parts (wide, long, arrays) → sources → pipeline → layout, sinks; beside it queue, budgets, scores and
whole (tables in memory), and cluster, which has the same done by the workers of a Dask cluster.
"""

from abstain.streams._budget import FileAllocation, budget_files
from abstain.streams._decide import Job, decide_file, decide_files
from abstain.streams._evaluate import Scores, evaluate_files, open_beside
from abstain.streams._in_memory import read_whole
from abstain.streams._read.sources import Sources, open_sources
from abstain.streams._summary import Summary

__all__ = [
    "FileAllocation",
    "Job",
    "Scores",
    "Sources",
    "Summary",
    "budget_files",
    "decide_file",
    "decide_files",
    "evaluate_files",
    "open_beside",
    "open_sources",
    "read_whole",
]


def __dir__() -> list[str]:
    return __all__
