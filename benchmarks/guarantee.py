"""Guarantees on a labelled sample, beside MAPIE's multi-label controller on the same data.

MAPIE lives in a virtual environment of its own, so that its requirements are not ours. It promises that the mean
precision per instance reaches a target, where an instance for which nothing is predicted counts as a precision of 0; it
answers every label, 1 above a threshold and 0 below. We promise the mean over the instances for which anything is
predicted, and leave labels open. It refuses instances without any relevant label, so the data has none.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tests.support.processes import in_fresh_process

from abstain.guarantee import Rule, control
from benchmarks.measure import Row, at_least, python_with, seconds

SHAPE = (5_000, 100)
TARGETS = (0.8, 0.9, 0.95)  # the complete prediction has about 0.9: below that there is nothing to leave open

THEIRS = """
import json, sys, time, warnings
import numpy as np
from mapie.risk_control import MultiLabelClassificationController

warnings.simplefilter("ignore")
data = np.load(sys.argv[1])
found = []
for target in data["targets"]:
    controller = MultiLabelClassificationController(
        predict_function=lambda X: X, risk="precision", target_level=float(target), confidence_level=0.95
    )
    start = time.perf_counter()
    controller.calibrate(data["p"], data["y"])
    found.append((time.perf_counter() - start, float(controller.best_predict_param[0])))
json.dump(found, sys.stdout)
"""


def beside_mapie() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    p, y = _sample(rng, SHAPE[0])
    new_p, new_y = _sample(rng, 20_000)
    for per in ("table", "instance"):  # compiled beforehand
        control(p[:100], y[:100], per=per)
    for target, (their_seconds, threshold) in zip(TARGETS, _theirs(p, y), strict=True):
        name = f"precision ≥ {target:g}"
        found = {per: control(p, y, risk="precision", target=target, per=per) for per in ("instance", "table")}
        our_seconds = seconds(lambda target=target: control(p, y, risk="precision", target=target, per="instance"))
        detail = f" ({1000 * our_seconds:.0f} ms; MAPIE {their_seconds:.1f} s)"
        yield at_least(f"{name}: time to calibrate", their_seconds / our_seconds, 50, detail)
        theirs = "not satisfied" if np.isnan(threshold) else _described((new_p > threshold).astype(np.int8), new_y)
        yield Row(f"{name} per instance: MAPIE", theirs)
        yield Row(f"{name} per instance: ours", _of_rule(found["instance"], new_p, new_y))
        yield Row(f"{name} of all labels: ours", _of_rule(found["table"], new_p, new_y))
    for target in (0.01, 0.005):
        yield Row(f"wrong answers ≤ {target:.1%}: ours", _of_rule(control(p, y, target=target), new_p, new_y))


def _sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Instances with a few relevant labels of many, at least one; the model is a little too sure of itself."""
    p, y = np.empty((0, SHAPE[1])), np.empty((0, SHAPE[1]), np.int8)
    while len(p) < n:
        latent = rng.normal(size=(n, 1)) + 12.0 * rng.normal(size=(n, SHAPE[1])) - 20.0
        chance = 1.0 / (1.0 + np.exp(-latent))
        relevant = (rng.random(chance.shape) < chance).astype(np.int8)
        said = 1.0 / (1.0 + np.exp(-1.2 * latent))
        kept = relevant.any(axis=1)
        p, y = np.concatenate([p, said[kept]]), np.concatenate([y, relevant[kept]])
    return p[:n], y[:n]


def _theirs(p: np.ndarray, y: np.ndarray) -> list[tuple[float, float]]:
    """Seconds to calibrate and the threshold found, for each target."""
    with TemporaryDirectory() as folder:
        data = Path(folder) / "data.npz"
        np.savez(data, p=p, y=y, targets=TARGETS)
        found = in_fresh_process(THEIRS, str(data), python=python_with("mapie>=1"))
    return [(taken, threshold) for taken, threshold in json.loads(found)]


def _of_rule(rule: Rule, new_p: np.ndarray, new_y: np.ndarray) -> str:
    return _described(rule.decide(new_p).labels, new_y) if rule.satisfied else "not satisfied"


def _described(codes: np.ndarray, truth: np.ndarray) -> str:
    """What becomes of new instances."""
    predicted, hits, answered = codes == 1, (codes == 1) & (truth == 1), codes >= 0
    some = predicted.any(axis=1)
    per_instance = (hits[some].sum(axis=1) / predicted[some].sum(axis=1)).mean()
    wrong = (answered & (codes != truth)).sum() / answered.sum()
    missed = ((codes == 0) & (truth == 1)).sum() / truth.sum()
    return (
        f"precision {per_instance:.3f} per instance, {hits.sum() / predicted.sum():.3f} of all labels; "
        f"{hits.sum() / truth.sum():.1%} of the relevant labels found, {missed:.1%} missed; "
        f"{answered.mean():.1%} of all labels answered, {wrong:.2%} of these wrong"
    )
