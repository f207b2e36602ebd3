"""Learners against scikit-learn's per-label loop, a large fit, and a large file; each in a process of its own."""

from collections.abc import Iterator

from tests.support.data import DATA
from tests.support.processes import in_fresh_process

from benchmarks.measure import Row, at_least


def learners() -> Iterator[Row]:
    if not DATA.is_dir():
        yield Row("learners", "not measured: no published data here")
        return
    yield from _binary_relevance()
    yield _recommended()
    yield _large_fit()


def _binary_relevance() -> Iterator[Row]:
    code = f"""
import time, warnings
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from abstain import label_probabilities, learners
from abstain.datasets import load_mulan
warnings.simplefilter("ignore", ConvergenceWarning)
cal500 = load_mulan({str(DATA / "CAL500" / "cal500.arff.gz")!r})
def fit(model):
    start = time.perf_counter()
    model.fit(cal500.data, cal500.target)
    return time.perf_counter() - start, label_probabilities(model, cal500.data)
fit(learners.make("br-lr"))
ours, found = min(fit(learners.make("br-lr")) for _ in range(3))
theirs, loop = fit(MultiOutputClassifier(LogisticRegression(max_iter=1000)))
_, optimum = fit(MultiOutputClassifier(LogisticRegression(max_iter=100_000, tol=1e-9)))
print(theirs / ours, ours, np.abs(found - optimum).max(), np.abs(loop - optimum).max())
"""
    ratio, taken, distance, theirs = (float(x) for x in in_fresh_process(code).split())
    yield at_least("br-lr on CAL500 against `MultiOutputClassifier`", ratio, 5, f" ({taken:.2f} s)")
    yield Row(
        "largest distance from the optimum, of 502 × 174 probabilities",
        f"{distance:.0e} (the loop: {theirs:.0e})",
        "≤ 1e-4",
        distance <= 1e-4,
    )


def _recommended() -> Row:
    code = """
from time import process_time
import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from abstain import learners
from abstain._utils.threads import one_blas_thread
from tests.support.data import load
X, Y = load("delicious")
rows = np.random.default_rng(0).permutation(len(Y))[:1400]
X, Y = X[rows][:, :499], Y[rows]
Y = Y[:, np.argsort(-Y.sum(axis=0), kind="stable")[200:574]]
learners.recommended().fit(X[:100], Y[:100, :40])
start = process_time()
with one_blas_thread():
    learners.recommended().fit(X, Y)
ours = process_time() - start
start = process_time()
ExtraTreesClassifier(10, max_features=100, min_samples_leaf=2, random_state=0).fit(X, Y)
theirs = 20 * (process_time() - start)
print(6 * theirs / ours, ours)
"""
    ratio, taken = (float(x) for x in in_fresh_process(code).split())
    what = "recommended learner, 1 400 × 499 sparse features × 374 labels, against six forests of scikit-learn's trees"
    return at_least(what, ratio, 3, f" ({taken:.0f} s on one core)")


def _large_fit() -> Row:
    code = """
import time
import numpy as np
from abstain import learners
from tests.support.data import nus_wide_labels, simulated_features
from benchmarks.measure import peak_mib, reset_peak, resident_mib
Y, _ = nus_wide_labels()
X = simulated_features(Y)
train = np.random.default_rng(1).random(len(Y)) < 0.9
start = time.perf_counter()
model = learners.make("br-lr").fit(X[train], Y[train])
taken = time.perf_counter() - start
print(taken, peak_mib() / 1024, Y.sum() / len(Y))
"""
    taken, peak, cardinality = (float(x) for x in in_fresh_process(code).split())
    assert abs(cardinality - 1.869) < 0.001, "these are not the labels of nus-wide"
    return Row(
        "br-lr, nine tenths of nus-wide's 269 648 × 81 labels, 128 simulated features",
        f"{taken / 60:.1f} min, {peak:.1f} GiB at most",
        "minutes, ≤ 8 GiB",
        peak <= 8 and taken < 600,
    )


def large_file() -> Iterator[Row]:
    code = """
import os, tempfile, time
import numpy as np
from abstain.datasets import load_mulan
from benchmarks.measure import peak_mib, reset_peak, resident_mib
n, features, labels = 269_648, 128, 81
random = np.random.default_rng(0)
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "large.arff")
    with open(file, "w") as out:
        out.write(f"@relation 'large: -C -{labels}'\\n@attribute image string\\n")
        out.writelines(f"@attribute x{j} numeric\\n" for j in range(features))
        out.writelines(f"@attribute y{j} {{0,1}}\\n" for j in range(labels))
        out.write("@data\\n")
        thousand = [
            "," + ",".join([*(f"{x:.6f}" for x in xs), *map(str, ys)]) + "\\n"
            for xs, ys in zip(random.normal(size=(1000, features)), random.integers(0, 2, (1000, labels)))
        ]
        out.writelines(f"actor/{i:06d}.jpg" + thousand[i % 1000] for i in range(n))
    small = os.path.join(folder, "small.arff")
    with open(small, "w") as out, open(file) as source:
        out.writelines(line for line, _ in zip(source, range(300)))
    load_mulan(small, labels=-labels)
    del thousand
    size = os.path.getsize(file)
    reset_peak()
    before = resident_mib()
    start = time.perf_counter()
    large = load_mulan(file)
    taken = time.perf_counter() - start
    arrays = (large.data.nbytes + large.target.nbytes) / 2**20
    print(peak_mib() / arrays, (peak_mib() - before) / arrays, taken, size / 1e6)
"""
    whole, beyond, taken, size = (float(x) for x in in_fresh_process(code).split())
    yield Row(
        f"`load_mulan`, {size:.0f} MB: 269 648 × (a name, 128 numbers, 81 labels)",
        f"{whole:.1f} × its arrays at most ({beyond:.1f} × without the imports), {taken:.1f} s",
        "≤ 3 ×",
        whole <= 3,
    )
