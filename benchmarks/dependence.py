"""``make dependence``: what are joint distributions worth? Writes docs/dependence-measured.md, a table and a figure.

The results of each fold are kept in build/dependence, so that an interrupted run goes on where it was.
"""

from collections.abc import Iterator
from dataclasses import dataclass
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
        joint = self._joint(model(source).fit(X, Y), self.X[self.test], (X, Y))
        calibrated = calibration.transform(joint.marginals.values)
        return {INDEPENDENT: calibrated, RAW: joint, TILTED: joint.with_marginals(calibrated)}

    @staticmethod
    def _joint(fitted: Any, X: Any, training: tuple[Any, Any]) -> Any:
        return abstain.label_distribution(fitted, X, training=training)

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


def run() -> pd.DataFrame:
    """The results of all folds; those that are kept are not measured again."""
    KEPT.mkdir(parents=True, exist_ok=True)
    parts = []
    for name in DATASETS:
        X, Y = load(name)
        X = X.toarray() if hasattr(X, "toarray") else X
        folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(X))
        for source, k in tqdm(list(product(SOURCES, range(FOLDS))), desc=name, mininterval=5):
            file = KEPT / f"{name}-{source}-{k}.csv"
            if not file.exists():
                rows = pd.DataFrame(Task(X, Y, *folds[k]).measure(source))
                rows.insert(0, "dataset", name)
                rows.insert(1, "source", source)
                rows.insert(2, "fold", k)
                unfinished = file.with_suffix(".part")
                rows.to_csv(unfinished, index=False, float_format="%.10g", lineterminator="\n")
                unfinished.replace(file)
            parts.append(pd.read_csv(file))
    return pd.concat(parts, ignore_index=True)


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
        axes.set_title(method)
        axes.set_xlabel("realised loss above that of the independent decision, %")
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    first = figure.axes[0]
    first.set_yticks(range(len(LOSSES)), LOSSES)
    first.invert_yaxis()
    first.plot([], [], ".", color="#aaaaaa", label="within two standard errors")
    first.plot([], [], color="black", linewidth=2, label="mean of the cells")
    first.legend(frameon=False, fontsize=9, loc="lower left")
    figure.savefig(file, dpi=110)


def write(results: pd.DataFrame) -> None:
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

## Cell by cell

{all_cells(cells)}
""",
        encoding="utf-8",
    )


if __name__ == "__main__":
    write(run())
