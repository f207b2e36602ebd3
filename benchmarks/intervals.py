"""``make intervals``: what are intervals of probabilities worth? Writes docs/intervals-measured.md, CSV and figures.

The results of each fold are kept in build/intervals, so that an interrupted run goes on where it was.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from tests.support.data import load
from tqdm import tqdm

import abstain
from abstain._core.targets import read_target
from abstain.learners import make
from abstain.learners._fitting import LabelModel, fit_labels
from abstain.metrics import abstention_rate, generalized_loss

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "intervals"
DOCS = ROOT / "docs"
DATASETS = ("emotions", "scene", "yeast", "CAL500", "birds")
FOLDS, MEMBERS = 10, 10
PRICES: dict[str, tuple[float, ...]] = {
    "hamming": (0.1, 0.2, 0.4),
    "subset": (0.4, 0.8, 1.6),
    "f1": (0.4, 0.8, 1.6),
    "jaccard": (0.4, 0.8, 1.6),
    "rank": (0.1, 0.2, 0.4),
}
SETTINGS = {
    "no shift": "a third of the training rows calibrates",
    "50 rows": "50 of these rows calibrate",
    "100 rows": "100 of these rows calibrate",
    "200 rows": "200 of these rows calibrate",
    "covariate shift": "model and calibration see the rows whose first principal component is below the median, and "
    "the decisions are for the test rows above it",
    "prevalence shift": "half of the relevant entries of the calibration rows are left out, so that labels are more "
    "frequent in use",
    "bootstrap": f"no calibration: {MEMBERS} fits to bootstrap samples of all training rows; points are the mean of "
    "the members, intervals their least and greatest probability",
}
RAW, POINTS, INTERVALS = "raw", "points", "intervals"
COLOURS = {RAW: "#888888", POINTS: "#d55e00", INTERVALS: "#0072b2"}
CELL = ["dataset", "setting", "loss", "price", "method"]


def price_of_label(loss: str, price: float, n_labels: int) -> float:
    """What one abstention costs."""
    unit = {"hamming": 1.0, "rank": (n_labels - 1) / 4}
    return price * unit.get(loss, 1 / n_labels)


@dataclass(frozen=True)
class Task:
    """One fold of a data set: what may be learnt from, and what the decisions are for."""

    X: Any
    Y: np.ndarray
    train: np.ndarray
    test: np.ndarray
    fold: int

    @property
    def random(self) -> np.random.Generator:
        return np.random.default_rng(self.fold)

    def fit(self, rows: np.ndarray) -> LabelModel:
        return fit_labels(make("br-lr"), self.X[rows], read_target(self.Y[rows]), {})

    def shifted(self) -> "Task":
        """The fold in which training rows have a small first principal component, and test rows a large one."""
        scaler = StandardScaler().fit(self.X[self.train])
        X = scaler.transform(self.X)
        first = PCA(1, svd_solver="full").fit(X[self.train]).transform(X)[:, 0]
        middle = np.median(first[self.train])
        low, high = self.train[first[self.train] <= middle], self.test[first[self.test] > middle]
        return Task(self.X, self.Y, low, high, self.fold)

    def probabilities(self, setting: str) -> tuple[dict[str, Any], np.ndarray]:
        """What each method decides from, and the truth."""
        if setting == "covariate shift":
            return self.shifted().probabilities("no shift")
        if setting == "bootstrap":
            samples = [self.random.spawn(MEMBERS)[k].choice(self.train, len(self.train)) for k in range(MEMBERS)]
            members = np.stack([self.fit(rows).probabilities(self.X[self.test]) for rows in samples], axis=1)
            given = {POINTS: members.mean(axis=1), INTERVALS: abstain.Intervals.from_members(members)}
            return given | {RAW: self.fit(self.train).probabilities(self.X[self.test])}, self.Y[self.test]
        order = self.random.permutation(self.train)
        learn, calibrate = np.split(order, [2 * len(order) // 3])
        if setting.endswith("rows"):
            calibrate = calibrate[: int(setting.split()[0])]
        truth = self.Y[calibrate].astype(float)
        if setting == "prevalence shift":
            truth[(truth == 1) & (self.random.random(truth.shape) < 0.5)] = np.nan
        model = self.fit(learn)
        scores = model.probabilities(self.X[self.test])
        calibration = abstain.calibration.fit(
            model.probabilities(self.X[calibrate]), truth, "venn-abers", missing_values=np.nan
        )
        box = calibration.intervals(scores)
        return {RAW: scores, POINTS: calibration.transform(scores), INTERVALS: box}, self.Y[self.test]

    def measure(self, setting: str) -> Iterator[dict[str, Any]]:
        """The believed and the realised generalised loss of each method, loss and price."""
        given, truth = self.probabilities(setting)
        box = given[INTERVALS]
        width = float(box.upper.mean() - box.lower.mean())
        for loss, prices in PRICES.items():
            for price, (method, p) in product(prices, given.items()):
                cost = price_of_label(loss, price, truth.shape[1])
                prediction = abstain.decide(p, loss, cost)
                best = prediction.bounds[:, 0].mean() if method == INTERVALS else np.nan
                yield {
                    "loss": loss, "price": price, "method": method, "believed": prediction.expected_loss.mean(),
                    "best_case": best, "realised": generalized_loss(truth, prediction, loss=loss, penalty=cost),
                    "abstained": abstention_rate(prediction), "gap": prediction.gap.max(), "width": width,
                }  # fmt: skip


def run() -> pd.DataFrame:
    """The results of all folds; those that are kept are not measured again."""
    KEPT.mkdir(parents=True, exist_ok=True)
    parts = []
    for name in DATASETS:
        X, Y = load(name)
        folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(X))
        todo = list(product(SETTINGS, range(FOLDS)))
        for setting, k in tqdm(todo, desc=name, mininterval=5):
            file = KEPT / f"{name}-{setting.replace(' ', '-')}-{k}.csv"
            if not file.exists():
                train, test = folds[k]
                rows = pd.DataFrame(Task(X, Y, train, test, k).measure(setting))
                rows.insert(0, "dataset", name)
                rows.insert(1, "setting", setting)
                rows.insert(2, "fold", k)
                unfinished = file.with_suffix(".part")
                rows.to_csv(unfinished, index=False, float_format="%.10g", lineterminator="\n")
                unfinished.replace(file)
            parts.append(pd.read_csv(file))
    return pd.concat(parts, ignore_index=True)


class Cells:
    """Means over the folds of each cell (data set, setting, loss, price), and standard errors of paired differences."""

    def __init__(self, results: pd.DataFrame) -> None:
        key = ["dataset", "setting", "loss", "price", "fold"]
        self.wide = results.pivot(index=key, columns="method", values=["believed", "realised", "abstained"])

    def mean(self, what: str, method: str) -> pd.Series:
        return self._by_cell(self.wide[what][method]).mean()

    def excess(self, method: str) -> pd.DataFrame:
        """Realised minus believed loss."""
        return self._difference(self.wide["realised"][method] - self.wide["believed"][method], method)

    def price_of_caution(self, reference: str = POINTS) -> pd.DataFrame:
        """Realised loss of intervals minus that of another method."""
        return self._difference(self.wide["realised"][INTERVALS] - self.wide["realised"][reference], reference)

    def _difference(self, difference: pd.Series, reference: str) -> pd.DataFrame:
        folds = self._by_cell(difference)
        found = pd.DataFrame({"mean": folds.mean(), "error": folds.sem()})
        found["per_cent"] = 100 * found["mean"] / self.mean("realised", reference)
        found["higher"] = found["mean"] > 2 * found["error"] + 1e-12
        found["lower"] = found["mean"] < -2 * found["error"] - 1e-12
        return found

    @staticmethod
    def _by_cell(values: pd.Series) -> Any:
        return values.groupby(level=CELL[:-1], sort=False)


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join([row(*head), row("---", *["---:"] * (len(head) - 1)), *(row(*cells) for cells in rows)])


def promises(cells: Cells, results: pd.DataFrame) -> str:
    """How often the realised loss is above the believed one, by setting and method."""
    lines = []
    for setting in SETTINGS:
        width = results.loc[results.setting == setting, "width"].mean()
        shown = []
        for method in COLOURS:
            found = cells.excess(method).xs(setting, level="setting")
            folds = cells.wide.xs(setting, level="setting")
            kept = (folds["realised"][method] <= folds["believed"][method] + 1e-12).mean()
            shown += [
                f"{found.higher.sum()} of {len(found)}",
                f"{100 * kept:.0f} %",
                f"{found.per_cent.median():+.1f} %",
            ]
        lines.append([setting, f"{width:.3f}", *shown])
    head = ["", "width"]
    for method in COLOURS:
        head += [f"{method}: above", "folds kept", "median"]
    return table(head, lines)


def caution(cells: Cells) -> str:
    """What minimax costs more than points, by setting."""
    lines = []
    for setting in SETTINGS:
        found = cells.price_of_caution().xs(setting, level="setting")
        rates = [100 * cells.mean("abstained", method).xs(setting, level="setting").mean() for method in COLOURS]
        lines.append(
            [
                setting, f"{found.per_cent.mean():+.1f} %",
                f"{found.per_cent.min():+.1f} % … {found.per_cent.max():+.1f} %",
                f"{found.higher.sum()}", f"{found.lower.sum()}", f"{len(found)}", *(f"{rate:.0f} %" for rate in rates),
            ]
        )  # fmt: skip
    head = ["", "mean", "range", "higher", "lower", "cells", *(f"abstained: {method}" for method in COLOURS)]
    return table(head, lines)


def caution_by_loss(cells: Cells) -> str:
    found = cells.price_of_caution()
    lines = []
    for setting in SETTINGS:
        part = found.xs(setting, level="setting")
        by_loss = part.groupby(level="loss")
        lines.append(
            [setting]
            + [
                f"{by_loss.per_cent.mean()[loss]:+.1f} % ({by_loss.higher.sum()[loss]} / {by_loss.lower.sum()[loss]})"
                for loss in PRICES
            ]
        )
    return table(["", *PRICES], lines)


def caution_by_data(cells: Cells, names: list[str]) -> str:
    found = cells.price_of_caution()
    lines = []
    for setting in SETTINGS:
        by_data = found.xs(setting, level="setting").groupby(level="dataset")
        lines.append(
            [setting]
            + [
                f"{by_data.per_cent.mean()[name]:+.1f} % ({by_data.higher.sum()[name]} / {by_data.lower.sum()[name]})"
                for name in names
            ]
        )
    return table(["", *names], lines)


def all_cells(cells: Cells, setting: str) -> str:
    """Believed and realised loss of one setting, cell by cell."""
    points, box, caution = cells.excess(POINTS), cells.excess(INTERVALS), cells.price_of_caution()
    lines = []
    for name, _, loss, price in (cell for cell in caution.index if cell[1] == setting):
        at = (name, setting, loss, price)
        lines.append(
            [
                f"{name}, {loss}, {price:g}",
                *(
                    f"{cells.mean('believed', method)[at]:.4g} → {cells.mean('realised', method)[at]:.4g} ± {error:.2g}"
                    for method, error in ((POINTS, points.error[at]), (INTERVALS, box.error[at]))
                ),
                f"{caution['mean'][at]:+.3g} ± {caution.error[at]:.2g}",
            ]
        )
    head = ["data, loss, price", "points: believed → realised", "intervals: worst case → realised", "price of caution"]
    return table(head, lines)


def verdict(cells: Cells) -> str:
    """What the tables say, computed from them."""

    def above(method: str, setting: str) -> str:
        found = cells.excess(method).xs(setting, level="setting")
        return f"{found.higher.sum()} of {len(found)}"

    def changed(setting: str) -> str:
        found = cells.price_of_caution().xs(setting, level="setting")
        return (
            f"{found.per_cent.mean():+.1f} % ({found.higher.sum()} higher, {found.lower.sum()} lower, of {len(found)})"
        )

    lines = [
        "Beyond two standard errors, the realised loss is above the believed one of points, and above the worst case "
        "of intervals, in so many cells; the last column is the price of caution, mean over cells:\n",
        table(
            ["", "points", "intervals", "price of caution"],
            [[setting, above(POINTS, setting), above(INTERVALS, setting), changed(setting)] for setting in SETTINGS],
        ),
    ]
    return "\n".join(lines)


def limits(results: pd.DataFrame) -> str:
    """How often the search for minimax decisions was cut short."""
    decided = results[results.method == INTERVALS]
    short = decided[decided.gap > 0]
    if short.empty:
        return "Every minimax decision was proved to be the best."
    where = ", ".join(sorted({f"{name} with {loss}" for name, loss in zip(short.dataset, short.loss, strict=True)}))
    return (
        f"In {len(short)} of {len(decided)} cases (fold, setting, loss, price) the search for the minimax decision of "
        f"some instance ended at its limit of nodes: {where}. A better answer than the one found may exist there, by "
        f"at most {100 * (short.gap / short.believed).max():.2g} % of the mean worst case; the worst case of the "
        "answer found is exact."
    )


def draw_worth(cells: Cells, file: Path) -> None:
    """Draw how far the realised loss is from the believed one, and the price of caution; a dot for each cell."""
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    random = np.random.default_rng(0)
    for k, setting in enumerate(SETTINGS):
        for shift, method in ((-0.17, POINTS), (0.17, INTERVALS)):
            ratio = cells.mean("realised", method) / cells.mean("believed", method)
            values = 100 * (ratio.xs(setting, level="setting") - 1)
            height = k + shift + random.uniform(-0.09, 0.09, len(values))
            left.plot(values, height, ".", color=COLOURS[method], alpha=0.45, markeredgewidth=0)
            left.plot([values.median()] * 2, [k + shift - 0.15, k + shift + 0.15], color=COLOURS[method], linewidth=2.5)
        found = cells.price_of_caution().xs(setting, level="setting")
        height = k + random.uniform(-0.2, 0.2, len(found))
        for chosen, colour in (
            (~found.higher & ~found.lower, "#aaaaaa"),
            (found.higher, "#d55e00"),
            (found.lower, "#009e73"),
        ):
            right.plot(found.per_cent[chosen], height[chosen], ".", color=colour, alpha=0.6, markeredgewidth=0)
        right.plot([found.per_cent.median()] * 2, [k - 0.3, k + 0.3], color="black", linewidth=2)
    for axes in (left, right):
        axes.axvline(0, color="black", linewidth=0.8)
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    left.set_yticks(range(len(SETTINGS)), list(SETTINGS))
    left.invert_yaxis()
    left.set_xlabel("realised above believed generalised loss, % (points: expected; intervals: worst case)")
    right.set_xlabel("realised loss of intervals above that of points, %")
    for method in (POINTS, INTERVALS):
        left.plot([], [], "o", color=COLOURS[method], label=method)
    for name, colour in {"higher by > 2 s.e.": "#d55e00", "lower by > 2 s.e.": "#009e73", "neither": "#aaaaaa"}.items():
        right.plot([], [], "o", color=colour, label=name)
    for axes in (left, right):
        axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    figure.savefig(file, dpi=110)


def draw_rules(file: Path, price: float = 0.2, size: int = 401) -> None:
    """Draw what each rule answers to a label, for all intervals, with the Hamming loss."""
    low, high = np.meshgrid(*[np.linspace(0, 1, size)] * 2)
    inside = low <= high
    box = abstain.Intervals(low[inside][:, np.newaxis], high[inside][:, np.newaxis])
    panels = {
        f"minimax, price {price:g}": (box, price),
        "skeptical, no price": (box.with_rule("skeptical"), "none"),
        f"skeptical, price {price:g}": (box.with_rule("skeptical"), price),
        f"hurwicz, optimism 0.5, price {price:g}": (box.with_rule("hurwicz", 0.5), price),
    }
    figure = Figure(figsize=(12, 3.7), layout="constrained")
    colours = {"abstain": "#dddddd", "answer 0": "#d55e00", "answer 1": "#0072b2"}
    for axes, (title, (intervals, cost)) in zip(figure.subplots(1, 4, sharey=True), panels.items(), strict=True):
        answers = np.full(low.shape, np.nan)
        answers[inside] = abstain.decide(intervals, "hamming", cost).labels[:, 0]
        axes.pcolormesh(
            low, high, answers, cmap=ListedColormap(list(colours.values())), vmin=-1, vmax=1, rasterized=True
        )
        axes.plot([0, 1], [0, 1], color="black", linewidth=0.8)
        axes.set(title=title, xlabel="lower end", aspect="equal", xticks=np.linspace(0, 1, 6))
        axes.title.set_fontsize(10)
        axes.spines[["top", "right"]].set_visible(False)
        if axes.get_subplotspec().is_first_col():
            axes.set_ylabel("upper end")
            for name, colour in colours.items():
                axes.plot([], [], "s", color=colour, label=name)
            axes.legend(frameon=False, loc="lower right", fontsize=9)
    figure.savefig(file, dpi=110)


def write(results: pd.DataFrame) -> None:
    """Write the page, the table and the figures."""
    cells, names = Cells(results), list(dict.fromkeys(results.dataset))
    draw_worth(cells, DOCS / "intervals-worth.png")
    draw_rules(DOCS / "intervals-rules.png")
    results.to_csv(DOCS / "intervals-measured.csv", index=False, float_format="%.6g", lineterminator="\n")
    settings = "\n".join(f"- **{name}**: {what}." for name, what in SETTINGS.items())
    sizes = ", ".join(
        f"{name} ({' × '.join(map(str, (*load(name)[0].shape, load(name)[1].shape[1])))})" for name in names
    )
    (DOCS / "intervals-measured.md").write_text(
        f"""# What intervals are worth

Written by `make intervals` (see `benchmarks/intervals.py`); do not edit. [Intervals of probabilities](intervals.md)
says what they are, and how decisions are made from them.

A decision believes that it will cost something: `prediction.expected_loss`. From probabilities this is the expected
generalised loss; from intervals it is the worst case over all probabilities in them. The truth of the test rows then
tells what it has cost: the realised generalised loss.

**No theorem says that the worst case is kept.** Of the two ends of a Venn–Abers interval one is calibrated: among
exchangeable instances, for each label by itself, on average over instances. That is said neither of a single instance,
nor of the sum or the ratio of several labels that a loss is; the labels are taken to be independent given the instance;
and after a shift not even exchangeability holds. An ensemble promises nothing at all. So how often the worst case is
kept is measured here, and not proved. For a proved bound on a rate of errors there is `abstain.guarantee`.

Data (instances × features × labels): {sizes}. {FOLDS} folds; the learner is binary relevance with logistic regression
(`br-lr`), fitted to two thirds of the training rows. Three ways to decide:

- **raw**: from the learner's probabilities as they are;
- **points**: from the Venn–Abers probabilities (`calibration.fit(…, method="venn-abers").transform`);
- **intervals**: from the Venn–Abers intervals of the same calibration, by the minimax rule.

Settings:

{settings}

Losses and prices of one abstention: Hamming {PRICES["hamming"]}; subset, F1 and Jaccard {PRICES["f1"]} / m; rank
{PRICES["rank"]} · (m − 1) / 4; each data set, loss and price is a *cell*. Differences are paired, fold by fold;
*higher*, *lower* and *above* mean by more than two standard errors over the folds. Training parts of folds overlap, so
that standard errors are somewhat too small; cells are not independent of each other; and of {len(names) * 15} cells
about three would be in each of these columns by chance. [intervals-measured.csv](intervals-measured.csv) has all folds.

## In short

{verdict(cells)}

![Realised against believed loss, and the price of caution, for each setting](intervals-worth.png)

## Is what was believed kept?

*Width* is the average width of the intervals. *Above*: cells whose realised loss is above the believed one. *Folds
kept*: the share of single folds whose realised loss is at most the believed one; what points believe is a mean, so that
perfect probabilities would keep it in about half of the folds, while a worst case should be kept in most. *Median*: of
realised minus believed loss, in per cent of the realised one.

{promises(cells, results)}

## The price of caution

The realised loss of intervals minus that of points, in per cent of the latter, over cells; and the share of labels
that is left open.

{caution(cells)}

By loss: mean (number of cells that are higher / lower, of {3 * len(names)}).

{caution_by_loss(cells)}

By data: mean (number of cells that are higher / lower, of 15).

{caution_by_data(cells, names)}

{limits(results)}

## Cell by cell, without shift

{all_cells(cells, "no shift")}

## Cell by cell, covariate shift

{all_cells(cells, "covariate shift")}

## Cell by cell, prevalence shift

{all_cells(cells, "prevalence shift")}
""",
        encoding="utf-8",
    )


def main() -> None:
    write(run())


if __name__ == "__main__":
    main()
