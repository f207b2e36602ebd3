"""A million rows of 670 000 labels with a hundred stored entries each, and xcolumns beside us on its own ground.

xcolumns' weighted prediction per instance answers 1 where a_j·p + b_j ≥ 0; with a = fn + fp and b = −fp that is the
best complete answer for the Hamming loss with these costs. ``python -m benchmarks.extreme FILE`` is the process in
which we are measured.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from tests.support.processes import in_fresh_process, usage_of

import abstain
from abstain.metrics import generalized_loss
from benchmarks.measure import Row, at_most, peak_mib, python_with, reset_peak, resident_mib, scratch
from benchmarks.streams import ABSTAIN, sparse_scores

N, M, STORED = 1_000_000, 670_000, 100
F1_COST = 0.003

THEIRS = """
import json, sys, time
import numpy as np
from scipy.sparse import load_npz
from xcolumns.weighted_prediction import predict_weighted_per_instance

matrix = load_npz(sys.argv[1])
fn, fp = np.random.default_rng(1).uniform(0.5, 5.0, (2, matrix.shape[1])).astype(np.float32)
predict_weighted_per_instance(matrix[:2000], k=0, th=0.0, a=fn + fp, b=-fp)
best = float("inf")
for _ in range(5):
    start = time.perf_counter()
    answers = predict_weighted_per_instance(matrix, k=0, th=0.0, a=fn + fp, b=-fp)
    best = min(best, time.perf_counter() - start)
json.dump({"seconds": best, "ones": int(answers.nnz)}, sys.stdout)
"""


def speed() -> Iterator[Row]:
    """Everything on one matrix, with all cores and with one."""
    with scratch() as folder:
        file = folder / "scores.npz"
        matrix = sparse_scores(N, M, STORED)
        matrix.indptr = matrix.indptr.astype(np.int32)
        sparse.save_npz(file, sparse.csr_matrix(matrix), compressed=False)  # xcolumns takes no arrays
        del matrix
        ours, one = (
            json.loads(in_fresh_process("-m", "benchmarks.extreme", str(file), n_threads=n)) for n in (None, 1)
        )
        theirs = json.loads(in_fresh_process(THEIRS, str(file), python=python_with("xcolumns==0.0.2")))
        copying, entries = ours["copying"]["seconds"], ours["entries_mib"]
        for name in (hamming.__doc__, weighted.__doc__):
            taken, alone = ours[name]["seconds"], one[name]["seconds"]
            found = f"{taken:.2f} s, {taken / copying:.1f} × copying the entries; one core: {alone:.2f} s"
            yield Row(name, found)
        taken, alone = ours[f1.__doc__]["seconds"], one[f1.__doc__]["seconds"]
        yield Row(f"{f1.__doc__}, one core", f"{N / alone:,.0f} rows a second ({alone:.0f} s in all)")
        yield Row(f"{f1.__doc__}, all cores", f"{N / taken:,.0f} rows a second, {alone / taken:.2f} × one core")
        for what in (budget, score, profile):
            yield Row(what.__doc__, f"{ours[what.__doc__]['seconds']:.1f} s")
        for what in (hamming, f1, budget, score, profile):
            extra = ours[what.__doc__]["extra_mib"]
            found = f"{extra:.0f} MiB with its result, {extra / entries:.1f} × the entries ({entries:.0f} MiB)"
            yield Row(f"memory beyond the input: {what.__doc__}", found)
        differ = abs(theirs["ones"] - ours["ones"])
        told = f"xcolumns ({theirs['seconds']:.2f} s; {ours['ones']} ones, {differ} fewer or more)"
        taken, alone = ours[weighted.__doc__]["seconds"], one[weighted.__doc__]["seconds"]
        yield at_most("weighted prediction, one core each", alone / theirs["seconds"], told, 1.0)
        yield at_most("the same, all our cores", taken / theirs["seconds"], "xcolumns, which uses one", 1.0)


def command_line() -> Iterator[Row]:
    """The same from file to file."""
    with scratch() as folder:
        sparse.save_npz(folder / "scores.npz", sparse_scores(N, M, STORED), compressed=False)
        for loss, penalty in (("hamming", 0.1), ("f1", F1_COST)):
            command = [*ABSTAIN, "decide", str(folder / "scores.npz"), "--loss", loss, "--penalty", str(penalty)]
            used = usage_of([*command, "-o", str(folder / "answers.npz"), "--quiet"])
            yield Row(f"`abstain decide`, {loss}, npz to npz", f"{used.wall:.0f} s, {used.peak_mib:.0f} MiB at most")


def hamming(matrix: Any) -> Any:
    """Hamming, cost 0.1"""
    return abstain.decide(matrix, "hamming", 0.1)


def weighted(matrix: Any) -> Any:
    """Hamming, errors priced by label, complete answers"""
    missed, wrong = np.random.default_rng(1).uniform(0.5, 5.0, (2, matrix.shape[1])).astype(np.float32)
    return abstain.decide(matrix, abstain.Hamming(false_negative=missed, false_positive=wrong), "none")


def f1(matrix: Any) -> Any:
    """F1, cost 0.003"""
    return abstain.decide(matrix, "f1", F1_COST)


def budget(matrix: Any) -> Any:
    """A budget of 10⁻⁶ of the labels, Hamming"""
    return abstain.budget.solve(matrix, rate=1e-6)


def score(matrix: Any) -> Any:
    """F1 decided and scored against the truth"""
    relevant = matrix.copy()
    relevant.data = (np.random.default_rng(2).random(matrix.nnz, np.float32) < matrix.data).astype(np.int8)
    return generalized_loss(relevant, f1(matrix), loss="f1", penalty=F1_COST)


def profile(matrix: Any) -> Any:
    """Hamming profiles"""
    return abstain.risk_profile(matrix, loss="hamming").values


def _measured(call: Callable[[], Any], repeats: int) -> tuple[dict[str, float], Any]:
    best, extra, result = float("inf"), 0.0, None
    for _ in range(repeats):
        result = None
        reset_peak()
        before, start = resident_mib(), time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
        extra = max(extra, peak_mib() - before)
    return {"seconds": best, "extra_mib": extra}, result


def _measure_ours(file: Path) -> dict[str, Any]:
    matrix = sparse.csr_array(sparse.load_npz(file))
    found: dict[str, Any] = {"entries_mib": (matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes) / 2**20}
    found["copying"], _ = _measured(lambda: (matrix.data.copy(), matrix.indices.copy()), 5)
    for what, repeats in ((hamming, 5), (weighted, 5), (f1, 1), (budget, 1), (score, 1), (profile, 1)):
        what(matrix[:2000])  # compiled
        found[what.__doc__], result = _measured(lambda what=what: what(matrix), repeats)
        if what is weighted:
            found["ones"] = int(result.codes.nnz)
    return found


if __name__ == "__main__":
    json.dump(_measure_ours(Path(sys.argv[1])), sys.stdout)
