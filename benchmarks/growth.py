"""How the cost of a decision grows with rows, labels and density, and what that predicts for 10^9 × 10^4."""

from collections.abc import Iterator

from tests.support.processes import Usage, usage_of

import abstain
from benchmarks.measure import Row, scratch, seconds, threads
from benchmarks.streams import ABSTAIN, sparse_scores, write_scores

LOSSES = {"hamming": 0.1, "f1": 0.003}  # and a penalty that leaves something open
LARGE = 10**9, 10**4


def with_rows() -> Iterator[Row]:
    """Files of ever more rows."""
    for loss in LOSSES:
        for n in (250_000, 500_000, 1_000_000, 2_000_000):
            used = _streamed(n, 100, loss)
            rate = n * 100 / used.wall / 1e6
            found = f"{used.wall:.1f} s: {rate:.0f} million probabilities a second; peak memory {used.peak_mib:.0f} MiB"
            yield Row(f"{loss}, {n} × 100", found)


def with_labels() -> Iterator[Row]:
    """Files of as many probabilities, in ever more columns."""
    for loss in LOSSES:
        for m in (10, 100, 1_000, 10_000):
            n = 20_000_000 // m
            used = _streamed(n, m, loss)
            rate = n * m / used.wall / 1e6
            found = f"{used.wall:.1f} s: {rate:.0f} million probabilities a second; peak memory {used.peak_mib:.0f} MiB"
            yield Row(f"{loss}, {n} × {m}", found)


def with_density() -> Iterator[Row]:
    """Sparse tables in memory, one core, of ever more stored entries a row."""
    with threads(1):
        for loss, cost in LOSSES.items():
            for stored in (10, 30, 100, 300, 1_000):
                table = sparse_scores(5_000_000 // stored, 10_000, stored)
                penalty = abstain.Linear(cost)
                abstain.decide(table[:100], loss, penalty)
                taken = seconds(lambda table=table, loss=loss, penalty=penalty: abstain.decide(table, loss, penalty))
                rows, entries = table.shape[0] / taken, table.nnz / taken / 1e6
                found = f"{rows:,.0f} rows, {entries:.1f} million entries a second"
                yield Row(f"{loss}, {stored} of 10 000 labels stored", found)


def prediction() -> Iterator[Row]:
    """Core hours for a thousand million rows of ten thousand labels, from what as wide a file takes here."""
    n, m = LARGE
    for loss in LOSSES:
        few, many = (_streamed(rows, m, loss, n_threads=1) for rows in (2_000, 20_000))
        per_row = (many.cpu - few.cpu) / 18_000  # what starting takes is in both
        yield Row(f"{loss}, dense, 10^9 × 10^4 (40 TB of float32)", _hours(per_row * n))
    stored = 100
    with threads(1):
        for loss, cost in LOSSES.items():
            table = sparse_scores(100_000, m, stored)
            taken = seconds(lambda table=table, loss=loss, cost=cost: abstain.decide(table, loss, cost))
            yield Row(f"{loss}, 100 entries a row, in memory", _hours(taken / table.shape[0] * n))


def _hours(core_seconds: float) -> str:
    if core_seconds < 36_000:
        return f"{core_seconds / 60:,.0f} core minutes"
    hours = core_seconds / 3600
    return f"{hours:,.0f} core hours: {hours / 100:,.1f} h on 100 cores, {60 * hours / 1000:,.0f} min on 1 000"


def _streamed(n: int, m: int, loss: str, n_threads: int | None = None) -> Usage:
    with scratch() as folder:
        source, target = folder / "scores.parquet", folder / "partial.parquet"
        write_scores(source, n, m)
        penalty = LOSSES[loss] if loss == "hamming" else LOSSES[loss] * 100 / m
        command = [*ABSTAIN, "decide", "--quiet", str(source), "-o", str(target), "--loss", loss]
        return usage_of([*command, "--penalty", f"{penalty:g}"], n_threads)
