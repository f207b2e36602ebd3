"""``make experiments``: the papers' experiments on all the data there is; writes docs/experiments.md and its figures.

Probabilities and results are kept in build/experiments, so that an interrupted run goes on where it was. Names of plans
as arguments run only these, and write nothing.
"""

import json
import shutil
import sys
import time
from pathlib import Path

import pandas as pd
from tests.support.data import DATA, load as load_arrays, nus_wide_labels, simulated_features

from abstain.experiment import Plan, Problem, Results, load, run
from abstain.experiment._claims import as_markdown, check
from abstain.experiment._figures import draw
from abstain.experiment._protocol import DATASETS, LEARNERS, LOSSES
from abstain.experiment._results import BASELINES
from abstain.experiment._store import Store

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "experiments"
DOCS = ROOT / "docs" / "experiments"
SHARE_OF_NUS_WIDE = 10  # one image in ten
SIMULATED = "nus-wide-simulated"
SHOWN = (
    *(f"{loss}-{learner}" for loss in ("hamming", "rank") for learner in ("br-lr", "cc-lr", "br-svm", "cc-svm")),
    *("f1-br-lr", "f1-cc-lr", "jaccard-br-lr", "subset-br-lr", "related-work-br-lr"),
)
BETTER = {"br-lr+sigmoid": "br-lr", "cc-lr+sigmoid": "cc-lr", "trees": "br-lr", "trees+sigmoid": "br-lr"}


def mediamill_sample() -> Problem:
    features, labels = load_arrays("mediamill-sample")
    names = tuple(f"Class{j + 1}" for j in range(labels.shape[1]))
    return Problem("mediamill-sample", features, labels, names, "4 387 of the 43 907 instances of mediamill")


def nus_wide_simulated() -> Problem:
    labels, names = nus_wide_labels()
    chosen = labels[::SHARE_OF_NUS_WIDE]
    origin = "every tenth of nus-wide's 269 648 real label sets, with simulated features"
    return Problem(SIMULATED, simulated_features(chosen), chosen, names, origin)


def plans() -> dict[str, Plan]:
    small = [load(name, folder=DATA) for name in DATASETS]
    mediamill = mediamill_sample()
    return {
        "grid": Plan(small, learners=LEARNERS),
        "svm": Plan(small, learners=["br-svm", "cc-svm"]),
        "mediamill": Plan([mediamill], learners=["br-lr", "cc-lr"]),
        "mediamill-svm": Plan([mediamill], learners=["br-svm", "cc-svm"]),
        "nus-wide": Plan([nus_wide_simulated()], learners=["br-lr", "cc-lr"]),
        "better": Plan(small, learners=list(BETTER)),
    }


def timed(name: str, plan: Plan) -> None:
    """Run a plan; if none of it was there, keep how long that took, and how long deciding takes."""
    store = Store(KEPT / name / "probabilities")
    is_new = all(store.read(fold) is None for fold in plan.folds)
    start = time.perf_counter()
    run(plan, out=KEPT / name)
    whole = time.perf_counter() - start
    print(f"{name}: {whole:.0f} s", flush=True)
    if is_new:
        start = time.perf_counter()
        run(plan, out=KEPT / name)
        took = {"whole": whole, "deciding": time.perf_counter() - start}
        (KEPT / name / "wall.json").write_text(json.dumps(took))


def markdown(table: pd.DataFrame, number: str = "{}") -> str:
    def cell(value: object) -> str:
        return ("" if value != value else number.format(value)) if isinstance(value, float) else str(value)

    lines = [list(table.columns), ["---"] * table.shape[1], *(map(cell, row) for row in table.itertuples(index=False))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def wall_time(plan: Plan) -> str:
    took = json.loads((KEPT / "grid" / "wall.json").read_text())
    fits = sum(fold.n_fits for fold in plan.folds)
    return (
        f"{', '.join(plan.names)} with {', '.join(plan.learners)}, {fits:,} fits and all that follows: "
        f"**{took['whole'] / 60:.1f} minutes** on 2 cores, of which deciding takes {took['deciding']:.0f} seconds."
    )


def fitting_times(results: Results) -> str:
    table = results.timings.pivot(index="dataset", columns="learner", values="seconds")
    return markdown(table[list(dict.fromkeys(results.timings.learner))].reset_index(), "{:.0f}")


def areas(results: Results) -> str:
    """Mean and standard error of AURC, for each learner."""
    groups = results.aurc().groupby(["dataset", "learner", "loss"], sort=False).aurc
    cells = groups.mean().map("{:.3g}".format) + " ± " + groups.sem().map("{:.2g}".format)
    return markdown(cells.unstack("loss")[list(LOSSES)].reset_index())


def related(results: Results) -> str:
    """AURC of br-lr's optimal partial predictions, and of what others do with the same probabilities."""
    found = results.aurc()
    mean = found[found.learner == "br-lr"].groupby(["dataset", "loss"], sort=False)[["aurc", *BASELINES]].mean()
    return markdown(mean.reset_index().rename(columns={"aurc": "optimal"}), "{:.3g}")


def calibrated(results: Results) -> str:
    """On CAL500, ours against whole instances, with calibrated probabilities."""
    found = results.aurc().query("dataset == 'cal500' and learner == 'br-lr+sigmoid'")
    mean = found.groupby("loss")[["aurc", "whole_instances"]].mean()
    shown = (f"{mean.aurc[loss]:.3f} against {mean.whole_instances[loss]:.3f} for {loss}" for loss in LOSSES[2:])
    return f"with br-lr+sigmoid the areas are {', '.join(shown)}"


def excesses(results: Results) -> str:
    """By how much the generalised loss exceeds the better of MLC and ABS, at worst, on the small sets."""
    points = results.summary().query("dataset in @DATASETS")
    better = points[["mlc", "abs"]].min(axis=1)
    worst = (points.generalized_loss / better - 1.0).groupby([points.learner, points.loss], sort=False).max()
    return markdown(worst.clip(lower=0.0).map("{:.1%}".format).unstack("loss")[list(LOSSES)].reset_index())


def gains(results: Results) -> str:
    """How much less better probabilities cost, averaged over penalties and costs."""
    points = results.summary().set_index(["learner", "dataset", "loss", "penalty", "cost"]).generalized_loss
    rows = []
    for ours, other in BETTER.items():
        change = (points[ours] / points[other] - 1.0).dropna().groupby(["dataset", "loss"], sort=False).mean()
        table = change.map("{:+.1%}".format).unstack("loss")[list(LOSSES)]
        rows.append(table.reset_index().assign(learner=f"{ours} against {other}"))
    return markdown(pd.concat(rows)[["learner", "dataset", *LOSSES]])


def write(plans: dict[str, Plan]) -> None:
    results = Results.read([KEPT / name for name in plans])
    papers = [name for name in plans if name != "better"]
    real = [name for name in papers if name != "nus-wide"]
    draw(Results.read([KEPT / name for name in papers]), KEPT / "figures")
    DOCS.mkdir(exist_ok=True)
    for name in SHOWN:
        shutil.copy(KEPT / "figures" / f"{name}.png", DOCS / f"{name}.png")
    results.results.to_csv(DOCS / "results.csv", index=False, float_format="%.6g", lineterminator="\n")
    results.summary().to_csv(DOCS / "summary.csv", index=False, float_format="%.6g", lineterminator="\n")
    data = "\n".join(
        f"| {problem.name} | {' × '.join(map(str, problem.shape))} | {problem.labels.sum(axis=1).mean():.3f} "
        f"| {problem.origin} |"
        for name in ("grid", "mediamill", "nus-wide")
        for problem in plans[name].problems
    )
    figures = "\n".join(f"![{name}](experiments/{name}.png)\n" for name in SHOWN[:-1])
    page = Path(__file__).with_suffix(".md").read_text()
    (ROOT / "docs" / "experiments.md").write_text(
        page.format(
            data=data,
            wall=wall_time(plans["grid"]),
            fitting=fitting_times(results),
            figures=figures,
            verdict=as_markdown(check(Results.read([KEPT / name for name in real]))),
            calibrated=calibrated(results),
            excesses=excesses(results),
            areas=areas(results),
            related=related(results),
            gains=gains(results),
        )
    )


def main() -> None:
    wanted = sys.argv[1:]
    all_plans = plans()
    for name, plan in all_plans.items():
        if not wanted or name in wanted:
            timed(name, plan)
    if not wanted:
        write(all_plans)


if __name__ == "__main__":
    main()
