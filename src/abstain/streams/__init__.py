"""Files larger than memory: read in batches, decided, calibrated, scored or budgeted, and written at the same time.

It may import the core, the metrics, the review queue, the budgets and calibration, but no integration: a Dask cluster
is reached by name through `abstain._utils.backends`. Begin with `_decide.decide_files`; below it are `_write`
(outputs), `_read` (inputs) and `_formats` (the registry of file formats, which says how to add one).
"""

from abstain.streams._alignment import open_aligned
from abstain.streams._budget import FileAllocation, budget_files
from abstain.streams._calibrate import calibrate_files, fit_calibration
from abstain.streams._decide import decide_file, decide_files
from abstain.streams._evaluate import Scores, evaluate_files
from abstain.streams._in_memory import read_aligned
from abstain.streams._intervals import open_intervals
from abstain.streams._job import Job
from abstain.streams._read.sources import Sources, open_sources
from abstain.streams._summary import Summary

__all__ = [
    "FileAllocation",
    "Job",
    "Scores",
    "Sources",
    "Summary",
    "budget_files",
    "calibrate_files",
    "decide_file",
    "decide_files",
    "evaluate_files",
    "fit_calibration",
    "open_aligned",
    "open_intervals",
    "open_sources",
    "read_aligned",
]


def __dir__() -> list[str]:
    return __all__
