"""``make dependence``: what are joint distributions worth? Writes docs/dependence-measured.md, a table and a figure.

The results of each fold are kept in build/dependence, so that an interrupted run goes on where it was.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from tests.support.data import load
from tqdm import tqdm

import abstain
from abstain.learners import make
from abstain.metrics import abstention_rate, generalized_loss
from benchmarks.dependent_reviews import PRICES as REVIEW_PRICES, SHARE, reviews

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "dependence"
DOCS = ROOT / "docs"
DATASETS = ("emotions", "scene", "yeast", "birds")
FOLDS, INNER_FOLDS = 10, 3
SOURCES = {
    "forest": "200 extremely randomised trees, at least two training rows a leaf: each training row counts with its "
    "share of the leaves that an instance falls into",
    "neighbours": "the label sets of the 200 nearest training rows, the nearer the more",
    "chain": "a chain of logistic regressions in random order (`pcc-lr`): 1 000 samples, or all sets of few labels",
}
REVIEWED_SOURCE = "forest"
INDEPENDENT, RAW, TILTED = "independent", "raw joint", "tilted joint"
COLOURS = {RAW: "#d55e00", TILTED: "#0072b2"}
LOSSES = ("subset", "rank", "f1", "jaccard")
PRICES = {"subset": (0.4, 1.6), "f1": (0.4, 1.6), "jaccard": (0.4, 1.6), "rank": (0.1, 0.4)}
CELL = ["dataset", "source", "loss", "penalty"]


def penalties(loss: str, n_labels: int) -> dict[str, Any]:
    """The penalties of a loss, by name: in units of 1/m, for rank of (m − 1)/4."""
    unit = (n_labels - 1) / 4 if loss == "rank" else 1 / n_labels
    found: dict[str, Any] = {"none": "none"}
    for price in PRICES[loss]:
        found[f"linear {price:g}"] = abstain.Linear(price * unit)
        found[f"concave {price:g}"] = abstain.Concave(price * unit)
    return found


def model(source: str) -> Any:
    """A model that implies a joint distribution."""
    if source == "forest":
        return ExtraTreesClassifier(200, min_samples_leaf=2, random_state=0)
    if source == "neighbours":
        return KNeighborsClassifier(200, weights="distance")
    return make("pcc-lr")


@dataclass(frozen=True)
class Task:
    """One fold of a data set."""

    X: Any
    Y: np.ndarray
    train: np.ndarray
    test: np.ndarray

    def beliefs(self, source: str) -> dict[str, Any]:
        """What each method decides from."""
        X, Y = self.X[self.train], self.Y[self.train]
        inner = KFold(INNER_FOLDS, shuffle=True, random_state=0)
        held_out = np.empty(Y.shape)
        for learn, rest in inner.split(X):
            fitted = model(source).fit(X[learn], Y[learn])
            held_out[rest] = self._joint(fitted, X[rest], (X[learn], Y[learn])).marginals.values
        calibration = abstain.calibration.fit(held_out, Y, method="sigmoid")
        joint = self._joint(model(source).fit(X, Y), self.X[self.test], (X, Y)).with_limits(certify=False)
        calibrated = calibration.transform(joint.marginals.values)
        return {INDEPENDENT: calibrated, RAW: joint, TILTED: joint.with_marginals(calibrated)}

    @staticmethod
    def _joint(fitted: Any, X: Any, training: tuple[Any, Any]) -> Any:
        return abstain.label_distribution(fitted, X, training=training)

    def measure_reviews(self) -> Iterator[dict[str, Any]]:
        """Reviews and wrong answers, all doubtful labels at once or one by one."""
        yield from reviews(self.beliefs(REVIEWED_SOURCE)[TILTED], self.Y[self.test].astype(bool))

    def measure(self, source: str) -> Iterator[dict[str, Any]]:
        """The believed and the realised generalised loss of each method, loss and penalty."""
        beliefs, truth = self.beliefs(source), self.Y[self.test]
        for loss in LOSSES:
            for (name, penalty), (method, belief) in product(penalties(loss, truth.shape[1]).items(), beliefs.items()):
                prediction = abstain.decide(belief, loss, penalty)
                yield {
                    "loss": loss, "penalty": name, "method": method, "believed": prediction.expected_loss.mean(),
                    "realised": generalized_loss(truth, prediction, loss=loss, penalty=penalty),
                    "abstained": abstention_rate(prediction), "gap": prediction.gap.mean(),
                }  # fmt: skip


def run() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The results of all folds, of decisions and of reviews; those that are kept are not measured again."""
    KEPT.mkdir(parents=True, exist_ok=True)
    parts, reviewed = [], []
    for name in DATASETS:
        X, Y = load(name)
        X = X.toarray() if hasattr(X, "toarray") else X
        folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(X))
        for source, k in tqdm(list(product(SOURCES, range(FOLDS))), desc=name, mininterval=5):
            task, where = Task(X, Y, *folds[k]), {"dataset": name, "source": source, "fold": k}
            parts.append(kept(KEPT / f"{name}-{source}-{k}.csv", where, partial(task.measure, source)))
            if source == REVIEWED_SOURCE:
                reviewed.append(kept(KEPT / f"{name}-reviews-{k}.csv", where, task.measure_reviews))
    return pd.concat(parts, ignore_index=True), pd.concat(reviewed, ignore_index=True)


def kept(file: Path, where: dict[str, Any], measure: Callable[[], Iterator[dict[str, Any]]]) -> pd.DataFrame:
    """What was measured before, or is measured now and kept."""
    if not file.exists():
        unfinished = file.with_suffix(".part")
        pd.DataFrame([where | row for row in measure()]).to_csv(unfinished, index=False, float_format="%.10g")
        unfinished.replace(file)
    return pd.read_csv(file)


class Cells:
    """Means over the folds of each cell (data set, source, loss, penalty), and errors of paired differences."""

    def __init__(self, results: pd.DataFrame) -> None:
        values = ["believed", "realised", "abstained", "gap"]
        self.wide = results.pivot(index=[*CELL, "fold"], columns="method", values=values)

    def mean(self, what: str, method: str) -> pd.Series:
        return self._by_cell(self.wide[what][method]).mean()

    def gain(self, method: str) -> pd.DataFrame:
        """The realised loss of a joint distribution minus that of the independent decision."""
        return self._difference(self.wide["realised"][method] - self.wide["realised"][INDEPENDENT])

    def excess(self, method: str) -> pd.DataFrame:
        """The realised minus the believed loss."""
        return self._difference(self.wide["realised"][method] - self.wide["believed"][method])

    def _difference(self, difference: pd.Series) -> pd.DataFrame:
        folds = self._by_cell(difference)
        found = pd.DataFrame({"mean": folds.mean(), "error": folds.sem()})
        found["per_cent"] = 100 * found["mean"] / self.mean("realised", INDEPENDENT)
        found["higher"] = found["mean"] > 2 * found["error"] + 1e-12
        found["lower"] = found["mean"] < -2 * found["error"] - 1e-12
        return found

    @staticmethod
    def _by_cell(values: pd.Series) -> Any:
        return values.groupby(level=CELL, sort=False)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _changed(found: pd.DataFrame) -> str:
    return f"{found.per_cent.mean():+.1f} % ({found.lower.sum()} / {found.higher.sum()} of {len(found)})"


def gains(cells: Cells, by: str) -> str:
    """The mean change of the realised loss, by loss and by data set or source."""
    lines = []
    for method in COLOURS:
        found = cells.gain(method)
        for loss in LOSSES:
            part = found.xs(loss, level="loss")
            groups = part.groupby(level=by, sort=False)
            lines.append([f"{loss}, {method}", _changed(part), *(_changed(group) for _, group in groups)])
    names = list(dict.fromkeys(cells.wide.index.get_level_values(by)))
    return table(["", "all", *names], lines)


def promises(cells: Cells) -> str:
    """How often the realised loss is above the believed one, by loss and method."""
    lines = []
    for loss in LOSSES:
        shown = []
        for method in (INDEPENDENT, *COLOURS):
            part = cells.excess(method).xs(loss, level="loss")
            shown.append(f"{part.per_cent.median():+.1f} % ({part.higher.sum()} above, {part.lower.sum()} below)")
        lines.append([loss, *shown])
    return table(["", INDEPENDENT, *COLOURS], lines)


def all_cells(cells: Cells) -> str:
    """Every cell with the tilted joint distribution."""
    gain = {method: cells.gain(method) for method in COLOURS}
    lines = []
    for at in gain[TILTED].index:
        dataset, source, loss, penalty = at
        realised = f"{cells.mean('realised', INDEPENDENT)[at]:.4g} ({cells.mean('believed', INDEPENDENT)[at]:.4g})"
        changes = (f"{gain[method]['mean'][at]:+.3g} ± {gain[method].error[at]:.2g}" for method in COLOURS)
        tilted = f"{cells.mean('realised', TILTED)[at]:.4g} ({cells.mean('believed', TILTED)[at]:.4g})"
        lines.append([f"{dataset}, {source}, {loss}, {penalty}", realised, *changes, tilted])
    head = ["data, source, loss, penalty", "independent: realised (believed)", *(f"{m} − independent" for m in COLOURS)]
    return table([*head, f"{TILTED}: realised (believed)"], lines)


def fewer_reviews(reviewed: pd.DataFrame) -> str:
    """Reviews, wrong answers and realised loss by data set and price, at once and one by one."""
    wide = reviewed.pivot(index=["dataset", "price", "fold"], columns="method", values=["reviews", "wrong", "realised"])
    lines = []
    for (name, price), part in wide.groupby(level=["dataset", "price"], sort=False):
        mean = part.mean()
        difference = part["realised"]["one by one"] - part["realised"]["at once"]
        saved = 100 * (mean["reviews"]["one by one"] / mean["reviews"]["at once"] - 1)
        lines.append(
            [
                f"{name}, {price:g}",
                *(f"{mean[what][method]:.2f}" for what in ("reviews", "wrong") for method in ("at once", "one by one")),
                f"{saved:+.0f} %",
                f"{mean['realised']['at once']:.3f}",
                f"{difference.mean():+.3f} ± {difference.sem():.3f}",
            ]
        )
    head = ["data, price", "reviews: at once", "one by one", "wrong answers: at once", "one by one", "reviews saved"]
    return table([*head, "realised loss: at once", "one by one − at once"], lines)


def draw(cells: Cells, file: Path) -> None:
    """Draw the change of the realised loss of every cell, by loss."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    random = np.random.default_rng(0)
    for axes, (method, colour) in zip(figure.subplots(1, 2, sharey=True), COLOURS.items(), strict=True):
        found = cells.gain(method)
        for k, loss in enumerate(LOSSES):
            part = found.xs(loss, level="loss")
            height = k + random.uniform(-0.25, 0.25, len(part))
            clear = (part.lower | part.higher).to_numpy()
            axes.plot(part.per_cent[~clear], height[~clear], ".", color="#aaaaaa", alpha=0.7)
            axes.plot(part.per_cent[clear], height[clear], ".", color=colour, alpha=0.8)
            axes.plot([part.per_cent.mean()] * 2, [k - 0.35, k + 0.35], color="black", linewidth=2)
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_title(method, loc="right", fontsize=11)
        axes.set_xlabel("realised loss above that of the independent decision, %")
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    first = figure.axes[0]
    first.set_yticks(range(len(LOSSES)), LOSSES)
    first.invert_yaxis()
    first.plot([], [], ".", color="#aaaaaa", label="within two standard errors")
    first.plot([], [], color="black", linewidth=2, label="mean of the cells")
    first.legend(frameon=False, fontsize=9, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2)
    figure.savefig(file, dpi=110)


def write(results: pd.DataFrame, reviewed: pd.DataFrame) -> None:
    """Write the page, the table and the figure."""
    cells, names = Cells(results), list(dict.fromkeys(results.dataset))
    draw(cells, DOCS / "dependence-worth.png")
    results.to_csv(DOCS / "dependence-measured.csv", index=False, float_format="%.6g", lineterminator="\n")
    sources = "\n".join(f"- **{name}**: {what}." for name, what in SOURCES.items())
    sizes = ", ".join(
        f"{name} ({' × '.join(map(str, (*load(name)[0].shape, load(name)[1].shape[1])))})" for name in names
    )
    n_cells = len(cells.gain(TILTED)) // len(LOSSES)
    (DOCS / "dependence-measured.md").write_text(
        f"""# What dependence is worth

Written by `make dependence` (see `benchmarks/dependence.py`); do not edit. [Labels that depend on each
other](dependence.md) says what joint distributions are, and how decisions are made from them.

Data (instances × features × labels): {sizes}. {FOLDS} folds. A model implies a joint distribution
(`abstain.label_distribution`):

{sources}

Three ways to decide, from the same model:

- **independent**: from calibrated probabilities of single labels (sigmoid, learnt from {INNER_FOLDS}-fold cross-fitted
  marginals of the model);
- **raw joint**: from the joint distribution as it is;
- **tilted joint**: from the joint distribution with the calibrated marginals (`joint.with_marginals`).

Penalties: none (every label is answered), linear and concave; prices {PRICES["subset"]} / m for subset 0/1, F1 and
Jaccard, {PRICES["rank"]} · (m − 1) / 4 for rank. Each data set, source, loss and penalty is a *cell*. Differences are
paired, fold by fold; *lower* and *higher* mean by more than two standard errors over the folds. Training parts of folds
overlap, so that standard errors are somewhat too small, and one cell in twenty would be lower or higher by chance.
F-measure and Jaccard decisions are those of the search without certificate. Hamming is left out: it needs the marginals
only. [dependence-measured.csv](dependence-measured.csv) has all folds.

## What is gained

The realised generalised loss against that of the independent decision: the mean change in per cent, and the number of
cells that are lower / higher, of {n_cells} for each loss.

{gains(cells, "dataset")}

{gains(cells, "source")}

![Change of the realised loss in every cell, by loss](dependence-worth.png)

## Is what was believed kept?

Realised minus believed loss, in per cent of the realised loss of the independent decision: the median of the cells, and
in how many of them the realised loss is above or below by more than two standard errors.

{promises(cells)}

## Fewer reviews

The answer to one label informs about the others. *At once*: every label whose risk min(p, 1 − p) is above the price is
reviewed, as a Hamming decision from the marginals says. *One by one*: the label that saves most is reviewed, counting
what its answer says about the others (as `review_queue` does for joint distributions); then the joint distribution is
conditioned on the answer, and labels that are no longer doubtful are answered by the machine. Both use the tilted joint
distribution of the forest with a share of {SHARE:g} of independence. Reviews and wrong answers are per instance, for
prices {REVIEW_PRICES}; the realised loss counts 1 for a wrong answer and the price for a review.

{fewer_reviews(reviewed)}

## Cell by cell

{all_cells(cells)}
""",
        encoding="utf-8",
    )


if __name__ == "__main__":
    write(*run())
