"""A Dask cluster of processes on this machine: how much two workers are faster than one, and what Dask itself takes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import abstain
from abstain._core.losses import as_loss
from abstain._core.penalties import as_penalty
from abstain.streams import Job, decide_files
from benchmarks.measure import Row, peak_mib, reset_peak, scratch, seconds, threads
from benchmarks.streams import write_scores

SIZES = 1, 2
CASES = {"hamming": 0.1, "f1": 0.003}


def scaling() -> Iterator[Row]:
    with scratch() as folder:
        (folder / "scores").mkdir()
        for k in range(8):
            write_scores(folder / "scores" / f"part{k}.parquet", 250_000, 100)
        for loss in CASES:
            times = [_files(folder, loss, n) for n in SIZES]
            with threads(1):
                alone = seconds(lambda loss=loss: decide_files(folder / "scores", f"{folder}/here/", _job(loss)), 1)
            yield _row(f"`--cluster`, 2000000 × 100 in 8 Parquet files, {loss}", times, alone)
    x = da.map_blocks(_noise, chunks=((50_000,) * 40, (100,)), dtype=np.float32, meta=np.empty((0, 0), np.float32))
    blocks = [_probabilities(k, 50_000, 100) for k in range(4)]
    for loss in CASES:
        times, peaks = zip(*(_arrays(x, loss, n) for n in SIZES), strict=True)
        with threads(1):
            alone = 10 * seconds(lambda loss=loss: [_decided(block, loss) for block in blocks])
        yield _row(f"a lazy array, 2000000 × 100 in 40 blocks, {loss}", times, alone)
        yield Row("the same: memory of a worker beyond its start", f"{max(peaks):.0f} MiB, for blocks of 19 MiB")


def _row(what: str, times: Any, alone: float) -> Row:
    one, two = times
    found = f"{one:.1f} s with 1 worker, {two:.1f} s with 2: {one / two:.2f} ×"
    return Row(what, f"{found} (no cluster, one core: {alone:.1f} s)")


def _job(loss: str) -> Job:
    return Job(as_loss(loss), as_penalty(CASES[loss]))


@contextmanager
def _workers(n: int) -> Iterator[Client]:
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=n, host="127.0.0.1", **options) as cluster, Client(cluster) as client:
        client.wait_for_workers(n)
        client.run(_compile)
        yield client


def _compile() -> None:
    for loss in CASES:
        _decided(_probabilities(0, 10, 100), loss)


def _files(folder: Path, loss: str, n_workers: int) -> float:
    with _workers(n_workers) as client:
        start = time.perf_counter()
        decide_files(folder / "scores", f"{folder}/{loss}-{n_workers}/", _job(loss), cluster=client.scheduler.address)
        return time.perf_counter() - start


def _arrays(x: da.Array, loss: str, n_workers: int) -> tuple[float, float]:
    with _workers(n_workers) as client:
        before = client.run(_peak_from_here)
        start = time.perf_counter()
        abstain.decide(x, loss, CASES[loss]).n_abstained.sum().compute()
        taken = time.perf_counter() - start
        return taken, max(most - before[worker] for worker, most in client.run(peak_mib).items())


def _peak_from_here() -> float:
    reset_peak()
    return peak_mib()


def _decided(block: np.ndarray, loss: str) -> int:
    return int(abstain.decide(block, loss, CASES[loss]).n_abstained.sum())


def _noise(block_info: Any = None) -> np.ndarray:
    where = block_info[None]
    return _probabilities(where["chunk-location"][0], *where["chunk-shape"])


def _probabilities(seed: int, n: int, m: int) -> np.ndarray:
    """Mostly certain ones, quickly: a few are drawn, and repeated."""
    few = np.random.default_rng(seed).beta(0.3, 1.2, (1_000, m)).astype(np.float32)
    return np.tile(few, (-(-n // len(few)), 1))[:n]
