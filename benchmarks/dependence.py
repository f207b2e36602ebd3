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
from sklearn.model_selection import KFold, cross_val_predict
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
    "chain": "a chain of logistic regressions in random order (`pcc-lr`): 1 000 samples, or all label sets of few labels",
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
