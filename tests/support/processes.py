"""Programs run by themselves: what they print, and the time and the memory that they take."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple


def in_fresh_process(*arguments: str, python: str = sys.executable, n_threads: int | None = None) -> str:
    """What a program prints, run by itself so that nothing before it counts: its code, or what follows ``python``."""
    given = ["-c", *arguments] if not arguments[0].startswith("-") else arguments
    environment = os.environ | _limited(n_threads)
    return subprocess.run([python, *given], capture_output=True, text=True, check=True, env=environment).stdout.strip()


def _limited(n_threads: int | None) -> dict[str, str]:
    return {} if n_threads is None else {"ABSTAIN_NUM_THREADS": str(n_threads)}


class Usage(NamedTuple):
    """What a process took: seconds by the clock, seconds of all cores, and memory at its largest."""

    wall: float
    cpu: float
    peak_mib: float


# A process is said to have been as large as the one that started it, so that must be small.
LAUNCHER = """
import json, os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:])
_, status, used = os.wait4(process.pid, 0)
taken = time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
print(json.dumps(taken))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def usage_of(command: Sequence[str], n_threads: int | None = None) -> Usage:
    """Run a command that prints nothing to its end, perhaps on so many threads of ours."""
    return Usage(*json.loads(in_fresh_process(LAUNCHER, *command, n_threads=n_threads)))
