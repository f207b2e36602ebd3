"""Files larger than memory: speed beside pyarrow alone, and memory that does not grow with the files."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse
from tests.support.processes import usage_of

from benchmarks.measure import Row, scratch

ABSTAIN = sys.executable, "-m", "abstain"
LIMIT = 700  # MiB

# What pyarrow alone does: the same file once more, a row group at a time, all cores reading.
COPY = """
import sys, pyarrow.parquet as pq
with pq.ParquetFile(sys.argv[1]) as source, pq.ParquetWriter(sys.argv[2], source.schema_arrow) as target:
    for k in range(source.num_row_groups):
        target.write_table(source.read_row_group(k))
"""
# Harder: the probabilities are read, and answers that somebody else has decided are read and written.
COPY_ANSWERS = """
import sys, pyarrow.parquet as pq
with pq.ParquetFile(sys.argv[1]) as source:
    for k in range(source.num_row_groups):
        source.read_row_group(k)
with pq.ParquetFile(sys.argv[3]) as source, pq.ParquetWriter(sys.argv[2], source.schema_arrow) as target:
    for k in range(source.num_row_groups):
        target.write_table(source.read_row_group(k))
"""


def write_scores(
    file: Path, n: int, m: int, *, n_groups: int | None = None, dtype: Any = np.float32, compression: str = "snappy"
) -> None:
    """Mostly certain probabilities, by default in row groups of some 100 MB."""
    rng = np.random.default_rng(0)
    schema = pa.schema([(f"label{j}", pa.from_numpy_dtype(dtype)) for j in range(m)])
    height = max(1, 25_000_000 // m if n_groups is None else -(-n // n_groups))
    with pq.ParquetWriter(file, schema, compression=compression) as writer:
        for first in range(0, n, height):
            rows = min(height, n - first)
            columns = [pa.array(rng.beta(0.3, 1.2, rows).astype(dtype)) for _ in range(m)]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=height)


def throughput() -> Iterator[Row]:
    for name, dtype, n in (("float32", np.float32, 2_500_000), ("float64", np.float64, 1_250_000)):
        with scratch() as folder:
            scores, copied, answers = (folder / f"{what}.parquet" for what in ("scores", "copied", "answers"))
            write_scores(scores, n, 100, dtype=dtype)
            gigabytes = scores.stat().st_size / 1e9
            decide = [*ABSTAIN, "decide", str(scores), "-o", str(answers), "--quiet"]
            both = {"ours": decide, "theirs": [sys.executable, "-c", COPY, str(scores), str(copied)]}
            both["harder"] = [sys.executable, "-c", COPY_ANSWERS, str(scores), str(copied), str(answers)]
            taken: dict[str, list[float]] = {who: [] for who in both}
            for _ in range(3):  # in turn, so that a slow minute of the machine hits all of them
                for who, command in both.items():
                    taken[who].append(usage_of(command).wall)
            ours, theirs, harder = (min(taken[who]) for who in both)
            told = f"{gigabytes:.1f} GB in {ours:.1f} s, pyarrow"
            found = _share(theirs / ours, told, theirs)
            yield Row(f"Hamming, {n} × 100 {name}: read, decide, write", found, "≥ 70 %", theirs / ours >= 0.7)
            yield Row("against reading it and writing the finished answers", _share(harder / ours, told, harder))


def _share(ratio: float, told: str, reference: float) -> str:
    return f"{ratio:.0%} of pyarrow's speed ({told} {reference:.1f} s)"


def memory() -> Iterator[Row]:
    """Four gigabytes through everything."""
    with scratch() as folder:
        scores, answers = folder / "scores.parquet", folder / "answers.parquet"
        n = 10_000_000
        write_scores(scores, n, 100)
        told = f"{n} × 100, {scores.stat().st_size / 1e9:.1f} GB of Parquet"
        write = ["-o", str(answers), "--quiet"]
        yield _bounded(f"{told}, Hamming", [*ABSTAIN, "decide", str(scores), *write])
        f1 = ["--loss", "f1", "--penalty", "0.003"]
        yield _bounded("the same, F1", [*ABSTAIN, "decide", str(scores), *f1, *write])
        queue = ["--queue", str(folder / "queue.parquet"), "--penalty", "0.3"]
        yield _bounded("the same, Hamming with a review queue", [*ABSTAIN, "decide", str(scores), *queue, *write])
        yield _bounded("the same, a budget of 5 %", [*ABSTAIN, "budget", str(scores), "--rate", "0.05", *write])
        truth = folder / "truth.parquet"  # complete answers serve as such
        usage_of([*ABSTAIN, "decide", str(scores), "--penalty", "none", "-o", str(truth), "--quiet"])
        yield _bounded("its answers evaluated", [*ABSTAIN, "evaluate", str(answers), str(truth), "--quiet"])
    with scratch() as folder:
        scores = folder / "scores.parquet"
        write_scores(scores, 10_000_000, 100, n_groups=1)
        command = [*ABSTAIN, "decide", str(scores), "-o", str(folder / "answers.parquet"), "--quiet"]
        yield _bounded("as many in a single row group, Hamming", command)
    with scratch() as folder:
        scores = folder / "scores.npy"
        values = np.lib.format.open_memmap(scores, "w+", np.float32, (10_000_000, 100))
        for first in range(0, len(values), 100_000):
            values[first : first + 100_000] = np.random.default_rng(first).beta(0.3, 1.2, (100_000, 100))
        del values
        command = [*ABSTAIN, "decide", str(scores), "-o", str(folder / "answers.npy"), "--quiet"]
        yield _bounded("as many in an npy file, Hamming", command)
    with scratch() as folder:
        scores = folder / "scores.csv"
        with scores.open("w") as target:
            target.write(",".join(f"label{j}" for j in range(100)) + "\n")
            rows = [",".join(f"{p:.4f}" for p in row) for row in np.random.default_rng(0).beta(0.3, 1.2, (5_000, 100))]
            text = "\n".join(rows) + "\n"
            for _ in range(600):
                target.write(text)
        command = [*ABSTAIN, "decide", str(scores), "-o", str(folder / "answers.csv"), "--quiet"]
        yield _bounded(f"3000000 × 100, {scores.stat().st_size / 1e9:.1f} GB of CSV, Hamming", command)
    with scratch() as folder:
        sparse.save_npz(folder / "scores.npz", sparse_scores(4_000_000, 670_000, 100), compressed=False)
        size = (folder / "scores.npz").stat().st_size / 1e9
        command = [*ABSTAIN, "decide", str(folder / "scores.npz"), "-o", str(folder / "answers.npz"), "--quiet"]
        yield _bounded(f"4000000 × 670000 with 100 entries a row, {size:.1f} GB of npz, Hamming", command)


def large_row_groups() -> Iterator[Row]:
    """Files that others have written: row groups of any size, float64, not compressed."""
    with scratch() as folder:
        scores, write = folder / "scores.parquet", ["-o", str(folder / "answers.parquet"), "--quiet"]
        write_scores(scores, 2_000_000, 100, n_groups=40, dtype=np.float64, compression="none")
        decide = [*ABSTAIN, "decide", str(scores)]
        yield _bounded("40 row groups of 50000 × 100, Hamming", [*decide, *write])
        yield _bounded("the same, rank loss", [*decide, "--loss", "rank", *write])
        queue = ["--queue", str(folder / "queue.csv"), "--penalty", "0.3"]
        yield _bounded("the same, Hamming with a review queue", [*decide, *queue, *write])
        yield _bounded("the same, a budget of 5 %", [*ABSTAIN, "budget", str(scores), "--rate", "0.05", *write])
    for n_groups, height, m in ((3, 330_000, 100), (2, 160_000, 200), (1, 2_000_000, 60), (4, 2_000, 10_000)):
        with scratch() as folder:
            scores, write = folder / "scores.parquet", ["-o", str(folder / "answers.parquet"), "--quiet"]
            options = {"n_groups": n_groups, "dtype": np.float64, "compression": "none"}
            write_scores(scores, n_groups * height, m, **options)
            yield _bounded(f"{n_groups} of {height} × {m}, Hamming", [*ABSTAIN, "decide", str(scores), *write])
    with scratch() as folder:
        sparse.save_npz(folder / "scores.npz", sparse_scores(1_000_000, 670_000, 100), compressed=False)
        command = [*ABSTAIN, "decide", str(folder / "scores.npz"), "-o", str(folder / "answers.parquet"), "--quiet"]
        yield _bounded("1000000 × 670000 with 100 entries a row, from npz to Parquet, Hamming", command)


def _bounded(what: str, command: list[str]) -> Row:
    used = usage_of(command)
    found = f"{used.peak_mib:.0f} MiB at most, {used.wall:.0f} s"
    return Row(what, found, f"≤ {LIMIT} MiB", used.peak_mib <= LIMIT)


def sparse_scores(n: int, m: int, stored: int) -> sparse.csr_array:
    """So many stored entries in each row, float32."""
    rng = np.random.default_rng(0)
    step = m // stored
    columns = rng.integers(0, step, (n, stored), dtype=np.int32)
    columns += step * np.arange(stored, dtype=np.int32)
    some = rng.beta(0.3, 1.2, 1_000_000).astype(np.float32)
    values = np.maximum(some[rng.integers(0, len(some), n * stored, dtype=np.int32)], 1e-6)
    return sparse.csr_array((values, columns.ravel(), np.arange(n + 1, dtype=np.int64) * stored), shape=(n, m))
