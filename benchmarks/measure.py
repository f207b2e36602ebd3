"""Timing and memory, and what the tables of ``docs/performance.md`` are made of."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


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


def in_fresh_process(code: str) -> str:
    """What a program prints, run by itself so that nothing before it counts."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


PEAK_MEMORY = """
def reset_peak():
    with open("/proc/self/clear_refs", "w") as control:
        control.write("5")

def peak_mib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

def resident_mib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
"""
