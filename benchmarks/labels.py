"""Many labels: sparse probabilities, and how time grows with the number of labels."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tests.support.processes import in_fresh_process

import abstain
from benchmarks.measure import Row, at_most, seconds, threads


def sparse() -> Iterator[Row]:
    code = """
import time
import numpy as np, abstain
from scipy import sparse
from benchmarks.measure import peak_mib, reset_peak, resident_mib
n, m, stored = 100_000, 500_000, 100
rng = np.random.default_rng(0)
values = rng.random((n, stored))
step = m // stored
columns = rng.integers(0, step, (n, stored), dtype=np.int32) + step * np.arange(stored, dtype=np.int32)
matrix = sparse.csr_array((values.ravel(), columns.ravel(), np.arange(n + 1, dtype=np.int32) * stored), shape=(n, m))
def seconds(p, penalty):
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        abstain.decide(p, "f1", penalty)
        best = min(best, time.perf_counter() - start)
    return best
abstain.decide(matrix[:5000], "f1", 0.003), abstain.decide(values[:5000], "f1", 0.003)
reset_peak()
before = resident_mib()
prediction = abstain.decide(matrix, "f1", 0.003)
extra = peak_mib() - before
entries = (matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes) / 2**20
ratios = [seconds(matrix, c) / seconds(values, c) for c in (0.001, 0.003, 0.01)]
print(max(ratios), seconds(values, 0.003), extra, entries)
"""
    ratio, dense, extra, entries = (float(x) for x in in_fresh_process(code).split())
    yield at_most(
        "F1, 100 000 × 500 000 with 100 entries a row, CSR", ratio, f"dense 100 000 × 100 ({dense:.2f} s)", 2.0
    )
    found = f"{extra:.0f} MiB with its result, for {entries:.0f} MiB of entries"
    yield Row("its memory beyond the input", found, "that of the entries", extra <= entries)


def growth(figure: Path) -> Iterator[Row]:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    sizes = [10, 30, 100, 300, 1000, 3000, 10_000, 30_000]
    rng = np.random.default_rng(0)
    _, ax = plt.subplots(figsize=(7, 5), layout="constrained")
    styles = iter(zip(["C0", "C1", "C2", "C3", "C4", "C5", "C6"], "osD^vPX", strict=True))
    jobs = [(loss, "decision") for loss in ("hamming", "subset", "rank", "f1", "jaccard")]
    jobs += [("f1", "whole profile"), ("jaccard", "whole profile")]
    with threads(1):
        for loss, job in jobs:
            times = []
            for m in sizes if job == "decision" else sizes[:-1]:
                n = max(1, min(3000, (2_000_000 if job == "decision" else 300_000) // m))
                p = rng.random((n, m))
                penalty = abstain.Concave((1.0 if loss in ("f1", "jaccard") else 30.0) / m)

                def call(p=p, penalty=penalty, loss=loss, job=job):
                    return abstain.decide(p, loss, penalty) if job == "decision" else abstain.risk_profile(p, loss=loss)

                call()
                times.append(seconds(call) / n)
            used = sizes[: len(times)]
            slope = np.polyfit(np.log(used[-4:]), np.log(times[-4:]), 1)[0]
            color, marker = next(styles)
            dashes = "-" if job == "decision" else "--"
            ax.loglog(used, times, dashes, color=color, marker=marker, label=f"{loss}, {job}: slope {slope:.2f}")
            yield Row(
                f"{loss}, {job}",
                f"slope {slope:.2f}; {1e6 * times[2]:.3g} µs at m = 100, {1e3 * times[6]:.3g} ms at 10 000",
            )
    ax.set(
        xlabel="number of labels m",
        ylabel="seconds per instance, one thread",
        title="Time against the number of labels",
    )
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)
    plt.savefig(figure, dpi=150)


def start_up() -> Iterator[Row]:
    clock = "import time; s = time.perf_counter(); {}; print(time.perf_counter() - s)"
    in_fresh_process("import abstain; [abstain.decide([[0.5, 0.7]], loss) for loss in ('hamming', 'f1')]")
    taken = min(float(in_fresh_process(clock.format("import abstain"))) for _ in range(5))
    yield Row("`import abstain` in a fresh interpreter", f"{taken:.2f} s", "≤ 1.5 s", taken <= 1.5)
    for loss in ("hamming", "f1"):
        call = f"abstain.decide([[0.5, 0.7]], {loss!r})"
        taken = min(float(in_fresh_process(f"import abstain; {clock.format(call)}")) for _ in range(5))
        yield Row(f"first call in a later process, {loss}", f"{1e3 * taken:.0f} ms, nothing compiled", "kernels reused")
