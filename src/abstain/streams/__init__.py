"""Files larger than memory: read in batches, decided, written, each at the same time as the others.

batches, readers → parts (wide, long, arrays) → sources → pipeline → layout, sinks; beside it queue, budgets, scores and
whole (tables in memory), and cluster, which has the same done by the workers of a Dask cluster.
"""

from abstain.streams.budgets import Settlement, budget_files
from abstain.streams.cluster import decide_on_cluster
from abstain.streams.pipeline import Job, decide_file, decide_files
from abstain.streams.scores import Scores, evaluate_files, open_beside
from abstain.streams.sources import Sources, open_sources
from abstain.streams.summary import Summary
from abstain.streams.whole import read_whole

__all__ = [
    "Job",
    "Scores",
    "Settlement",
    "Sources",
    "Summary",
    "budget_files",
    "decide_file",
    "decide_files",
    "decide_on_cluster",
    "evaluate_files",
    "open_beside",
    "open_sources",
    "read_whole",
]
