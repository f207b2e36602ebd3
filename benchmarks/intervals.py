"""``make intervals``: what are intervals of probabilities worth? Writes docs/intervals-measured.md, its table and figures.

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
    "covariate shift": "model and calibration see the rows whose first principal component is below the median, and the "
    "decisions are for the test rows above it",
    "prevalence shift": "half of the relevant entries of the calibration rows are left out, so that labels are more "
    "frequent in use",
    "bootstrap": f"no calibration: {MEMBERS} fits to bootstrap samples of all training rows; points are the mean of the "
    "members, intervals their least and greatest probability",
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
        box = box if isinstance(box, abstain.Intervals) else abstain.Intervals(*box)
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


if __name__ == "__main__":
    run()
