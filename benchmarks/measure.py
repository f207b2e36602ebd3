"""Timing and memory, and what the tables of measurements are made of."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

BUILD = Path(__file__).parents[1] / "build"


@dataclass(frozen=True)
class Row:
    """One line of a table: what was measured, against what, and whether the target is met."""

    what: str
    measured: str
    target: str = ""
    met: bool | None = None

    def __str__(self) -> str:
        verdict = {True: "met", False: "**missed**", None: ""}[self.met]
        return f"| {self.what} | {self.measured} | {self.target} | {verdict} |"


def at_most(what: str, ratio: float, reference: str, limit: float) -> Row:
    return Row(what, f"{ratio:.2f} × {reference}", f"≤ {limit:g} ×", ratio <= limit)


def at_least(what: str, ratio: float, limit: float, detail: str = "") -> Row:
    return Row(what, f"{ratio:,.0f} × faster{detail}", f"≥ {limit:g} ×", ratio >= limit)


def seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    """The best of several runs: the others were disturbed."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
        del result
    return best


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = os.environ.get("ABSTAIN_NUM_THREADS")
    os.environ["ABSTAIN_NUM_THREADS"] = str(count)
    try:
        yield
    finally:
        os.environ.pop("ABSTAIN_NUM_THREADS")
        if before is not None:
            os.environ["ABSTAIN_NUM_THREADS"] = before


def python_with(requirement: str) -> str:
    """The interpreter of a virtual environment that has just this: peers' requirements are not ours."""
    home = BUILD / f"{re.match('[a-z]+', requirement)[0]}-venv"
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", requirement], check=True)
    return str(python)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for large files, on the disk that the project is on; it goes away afterwards."""
    BUILD.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=BUILD) as folder:
        yield Path(folder)


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def peak_mib() -> float:
    return _status("VmHWM")


def resident_mib() -> float:
    return _status("VmRSS")


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024
