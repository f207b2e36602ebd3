"""``make study``: which learner, which calibration? Ten-fold on published data; writes docs/learners.md and its figure.

Out-of-fold scores are kept in build/study, so that an interrupted run goes on where it was.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from abstain.calibration._calibrators import fit_calibrators
from matplotlib.figure import Figure
from sklearn.model_selection import KFold
from tests.support.data import load
from tqdm import tqdm

import abstain
from abstain._core.targets import Target, read_target
from abstain.calibration import ReliabilityDisplay, brier_decomposition, calibration_error
from abstain.learners import make, recommended
from abstain.learners._fitting import cross_fit, fit_labels, folds_for
from abstain.metrics import generalized_loss

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "study"
COSTS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
FOLDS = 10
LEARNERS = ("br-lr", "trees")
CALIBRATIONS = (None, "sigmoid", "isotonic")
SETS = ("emotions", "scene", "yeast", "CAL500", "mediamill-sample")
COLOURS = {"br-lr": "#d55e00", "trees": "#0072b2"}
LINES = {None: ":", "sigmoid": "-", "isotonic": "--"}


def estimator(learner: str, X: np.ndarray, target: Target) -> Any:
    if learner == "br-lr":
        return make("br-lr")
    n_labels = target.labels.shape[1]
    return recommended(n_instances=X.shape[0], n_features=X.shape[1], n_labels=n_labels, n_jobs=-1)


def fold(name: str, learner: str, i: int, X: np.ndarray, Y: np.ndarray) -> dict[str, np.ndarray]:
    """Scores and probabilities of the held out tenth, and cross-fitted scores of the others."""
    file = KEPT / f"{name}-{learner}-{i}.npz"
    train, test = list(KFold(FOLDS, shuffle=True, random_state=0).split(X))[i]
    if not file.exists():
        target = read_target(Y[train])
        chosen = estimator(learner, X[train], target)
        model = fit_labels(chosen, X[train], target, {})
        inner = cross_fit(chosen, X[train], target, folds_for(5, target), n_jobs=None, params={}, split_params={})
        results = {"raw": model.probabilities(X[test]), "scores": model.scores(X[test]), "inner": inner}
        KEPT.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".part.npz")
        np.savez(unfinished, **results)
        unfinished.rename(file)
    with np.load(file) as arrays:
        return {**arrays, "truth": Y[test], "inner_truth": Y[train].astype(np.int8)}


def probabilities(part: dict[str, np.ndarray], calibration: str | None) -> np.ndarray:
    if calibration is None:
        return part["raw"]
    return fit_calibrators(part["inner"], part["inner_truth"], method=calibration)(part["scores"])


def measure(parts: list[dict[str, np.ndarray]], calibration: str | None) -> dict[str, Any]:
    """Mean over folds of the generalised loss, in per cent of the labels, with its standard error; and calibration."""
    tables = [(part["truth"], probabilities(part, calibration)) for part in parts]
    m = tables[0][0].shape[1]

    def losses(cost: float) -> list[float]:
        return [
            100 / m * float(generalized_loss(y, abstain.decide(p, "hamming", cost), loss="hamming", penalty=cost))
            for y, p in tables
        ]

    each = np.array([losses(cost) for cost in COSTS])
    truth, stacked = (np.vstack(table) for table in zip(*tables, strict=True))
    return {
        "loss": each.mean(axis=1),
        "error": each.std(axis=1, ddof=1) / np.sqrt(len(parts)),
        "truth": truth,
        "probabilities": stacked,
        "calibration": float(calibration_error(truth, stacked, average="macro")),
        "miscalibration": float(np.mean([d.miscalibration for d in brier_decomposition(truth, stacked, average=None)])),
    }


def run() -> dict[tuple[str, str, str | None], dict[str, Any]]:
    results = {}
    jobs = [(name, learner) for name in SETS for learner in LEARNERS]
    with tqdm(total=len(jobs) * FOLDS, desc="folds", disable=None) as bar:
        for name, learner in jobs:
            X, Y = load(name)
            parts = []
            for i in range(FOLDS):
                parts.append(fold(name, learner, i, X, Y))
                bar.update()
            for calibration in CALIBRATIONS:
                results[name, learner, calibration] = measure(parts, calibration)
                print(name, learner, calibration, results[name, learner, calibration]["loss"].round(2), flush=True)
    return results


def draw(results: dict[tuple[str, str, str | None], dict[str, Any]], path: Path) -> None:
    figure = Figure(figsize=(13, 3.4), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(SETS)), SETS, strict=True):
        reference = results[name, "br-lr", None]["loss"]
        for learner in LEARNERS:
            for calibration in CALIBRATIONS:
                relative = 100 * (results[name, learner, calibration]["loss"] / reference - 1)
                label = f"{learner}, {calibration or 'as it is'}" if name == SETS[0] else None
                axes.plot(COSTS, relative, color=COLOURS[learner], linestyle=LINES[calibration], label=label)
        axes.set_title(name, fontsize="medium")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel("cost c")
    figure.axes[0].set_ylabel("loss against br-lr, %")
    figure.legend(loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path, dpi=130)


def draw_reliability(results: dict[tuple[str, str, str | None], dict[str, Any]], name: str, path: Path) -> None:
    """The trees' votes before and after calibration."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    for axes, calibration in zip(figure.subplots(1, 2), (None, "sigmoid"), strict=True):
        found = results[name, "trees", calibration]
        title = f"{name}, trees, {calibration or 'as they are'}"
        ReliabilityDisplay.from_predictions(found["truth"], found["probabilities"], ax=axes).ax_.set_title(title)
    figure.savefig(path, dpi=110)


def rows(results: dict[tuple[str, str, str | None], dict[str, Any]]) -> Iterator[str]:
    for (name, learner, calibration), r in results.items():
        cells = [f"{loss:.2f} ± {error:.2f}" for loss, error in zip(r["loss"], r["error"], strict=True)]
        best = "**" if (learner, calibration) == ("trees", "sigmoid") else ""
        yield (
            f"| {name} | {best}{learner}, {calibration or 'as it is'}{best} | {' | '.join(cells)} "
            f"| {r['calibration']:.3f} | {1000 * r['miscalibration']:.1f} |"
        )


def verdict(results: dict[tuple[str, str, str | None], dict[str, Any]]) -> str:
    """What the table says, computed from it."""
    gains, helped = [], []
    for name in SETS:
        ours, reference = results[name, "trees", "sigmoid"]["loss"], results[name, "br-lr", None]["loss"]
        gains += (1 - ours / reference).tolist()
        for learner in LEARNERS:
            helped += (1 - results[name, learner, "sigmoid"]["loss"] / results[name, learner, None]["loss"]).tolist()
    return (
        f"The recommended learner is better than br-lr in {sum(g > 0 for g in gains)} of {len(gains)} cases, by "
        f"{100 * np.mean(gains):.1f} % on average ({100 * min(gains):.1f} % to {100 * max(gains):.1f} %). Sigmoid "
        f"calibration lowers the loss in {sum(h > 0 for h in helped)} of {len(helped)} cases, by "
        f"{100 * np.mean(helped):.1f} % on average ({100 * min(helped):.1f} % to {100 * max(helped):.1f} %)."
    )


def main() -> None:
    results = run()
    docs = ROOT / "docs"
    draw(results, docs / "learners.png")
    draw_reliability(results, "scene", docs / "reliability.png")
    costs = " | ".join(f"c = {cost:g}" for cost in COSTS)
    (docs / "learners.md").write_text(
        f"""# Which learner, which calibration?

Written by `make study` (ten-fold cross-validation on published data, see `benchmarks/study.py`); do not edit.

Decisions are only as good as the probabilities. The table compares, on real data, the average generalised loss
(Hamming, linear penalty c; in per cent of the labels, ± standard error over the folds) of the paper's binary relevance
with logistic regression (br-lr) and of the recommended learner, extremely randomised trees, with and without
calibration of each label on five-fold cross-fitted scores. The last columns: mean calibration error and miscalibration
(× 1000).

`AbstainingClassifier()` is "trees, sigmoid".

{verdict(results)}

![Loss relative to br-lr against the cost, for each data set](learners.png)

Why trees need it: their votes keep off 0 and 1 (`ReliabilityDisplay`, all folds together).

![Reliability of the trees' votes on scene, before and after calibration](reliability.png)

| data | learner | {costs} | calibration error | miscalibration |
|---|---|{"---|" * (len(COSTS) + 2)}
"""
        + "\n".join(rows(results))
        + "\n\nmediamill-sample is the union of two public samples of mediamill (4 387 of 43 907 instances).\n"
    )


if __name__ == "__main__":
    main()
