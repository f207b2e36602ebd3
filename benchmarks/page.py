"""What the pages of measurements are made of: sections, each measured when it is asked for."""

import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np

import abstain
from benchmarks.measure import Row

DOCS = Path(__file__).parents[1] / "docs"


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


class Section(NamedTuple):
    """A title, what was measured and how, and the measuring itself, which begins when it is asked for a row."""

    title: str
    explanation: str
    rows: Iterable[Row]

    def measure(self) -> str:
        print(f"\n{self.title}", flush=True)
        lines = ["| what | measured | target | |", "|---|---|---|---|"]
        for row in self.rows:
            print(row, flush=True)
            lines.append(str(row))
        return "\n\n".join([f"## {self.title}", self.explanation, "\n".join(lines)]) + "\n"


def machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{processor()}, {cores} cores, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"numba {numba.__version__}, abstain {abstain.__version__}"
    )


def write(file: Path, intro: str, sections: Sequence[Section], wanted: Sequence[str]) -> None:
    """Measure the sections whose titles begin as one of those wanted, and keep the others; all if none is wanted."""
    known = file.read_text() if wanted and file.exists() else ""
    kept = {part.partition("\n")[0]: f"## {part}" for part in known.split("\n## ")[1:]}
    parts = []
    for section in sections:
        if not wanted or any(section.title.lower().startswith(name.lower()) for name in wanted):
            parts.append(section.measure())
        elif section.title in kept:
            parts.append(kept[section.title])
    file.write_text("\n".join([intro, *(f"{part.rstrip()}\n" for part in parts)]))
