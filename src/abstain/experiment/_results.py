"""The results of an experiment, as tidy tables."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from platform import platform, python_version
from typing import Any

import numpy as np

from abstain._utils.atomic import atomic_write
from abstain._utils.errors import InvalidDataset, MissingFile
from abstain._utils.extras import missing
from abstain.experiment._plan import Plan, versions

try:
    import pandas as pd
    import pyarrow as pa  # noqa: F401 (pandas writes Parquet with it)
except ImportError as reason:
    raise missing("experiments need pandas and pyarrow", "pandas", "pyarrow") from reason

KEYS = ["dataset", "learner", "loss", "penalty", "cost"]
CURVE_KEYS = ["dataset", "learner", "loss"]
BASELINES = ["two_thresholds", "whole_instances", "at_random"]
"""Rules of related work, at equal abstention: columns of both tables."""
COLUMNS = [*KEYS, "fold", "n_instances", "n_labels", "generalized_loss", "abstention", "mlc", "abs", *BASELINES]
RECORDED_LIBRARIES = "joblib", "numba", "pandas", "pyarrow"
"""Libraries on which the numbers should not depend; their versions are recorded."""
CURVE_COLUMNS = [*CURVE_KEYS, "step", "fold", "coverage", "risk", *BASELINES]


@dataclass(frozen=True, eq=False)
class Results:
    """The tables of an experiment.

    ``results`` has a row for each data set, learner, loss, penalty, cost and fold: the average generalised loss of the
    optimal partial predictions, how many per cent of the labels they abstain on, and the generalised loss of answering
    everything (``mlc``), of abstaining on everything (``abs``), and of baselines with as many abstentions
    (``two_thresholds``, ``whole_instances``, ``at_random``). The Hamming loss is in per cent of the labels, the rank
    loss per label.

    ``coverage`` has points of the risk–coverage curves: the share of labels answered along all linear costs, the
    average loss of the answers (``risk``) and that of baselines with as many answers.

    ``timings`` has the seconds that the folds of each data set and learner took, and ``manifest`` the settings.
    """

    results: pd.DataFrame
    coverage: pd.DataFrame
    timings: pd.DataFrame
    manifest: dict[str, Any]

    @classmethod
    def from_rows(
        cls,
        plan: Plan,
        *,
        results: list[dict[str, Any]],
        coverage: list[dict[str, Any]],
        timings: list[dict[str, Any]],
    ) -> "Results":
        """Return the tables, with a manifest of the plan."""
        manifest = {
            "datasets": {
                problem.name: {
                    "origin": problem.origin,
                    **dict(zip(("instances", "features", "labels"), problem.shape, strict=True)),
                    "sha256": problem.sha256,
                }
                for problem in plan.problems
            },
            "learners": list(plan.learners),
            "losses": list(plan.losses),
            "folds": plan.n_folds,
            "seed": plan.random_state,
            "versions": {
                "python": python_version(),
                **versions(),
                **{name: version(name) for name in RECORDED_LIBRARIES},
            },
            "platform": platform(),
        }
        return cls(pd.DataFrame(results), pd.DataFrame(coverage), pd.DataFrame(timings), manifest)

    def write(self, folder: Path) -> None:
        """Write each table as CSV, the two large ones also as Parquet; the manifest as JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in (("results", self.results), ("coverage", self.coverage)):
            with atomic_write(folder / f"{name}.parquet") as target:
                table.to_parquet(target, index=False)
        for name, table in (
            ("results", self.results),
            ("coverage", self.coverage),
            ("summary", self.summary()),
            ("aurc", self.aurc()),
            ("timings", self.timings),
        ):
            with atomic_write(folder / f"{name}.csv") as target:
                table.to_csv(target, index=False, float_format="%.8g", lineterminator="\n")
        with atomic_write(folder / "manifest.json") as target:
            target.write((json.dumps(self.manifest, indent=2, ensure_ascii=False) + "\n").encode())

    @classmethod
    def read(cls, folders: Iterable[str | os.PathLike[str]]) -> "Results":
        """Return the results of one run, or of several that do not overlap, from their folders."""
        parts = [_read(Path(folder)) for folder in folders]
        results = pd.concat([part.results for part in parts], ignore_index=True)
        repeated = results[results.duplicated([*KEYS, "fold"])]
        if len(repeated):
            first = repeated.iloc[0]
            raise InvalidDataset(f"two of the folders have results for {first.dataset} with {first.learner}")
        _require_same_protocol([part.manifest for part in parts])
        coverage = pd.concat([part.coverage for part in parts], ignore_index=True)
        timings = pd.concat([part.timings for part in parts], ignore_index=True)
        return cls(results, coverage, timings, {"parts": [part.manifest for part in parts]})

    def summary(self) -> pd.DataFrame:
        """Return the mean and the standard error over the folds of every number."""
        groups = self.results.drop(columns=["fold", "n_instances"]).groupby([*KEYS, "n_labels"], sort=False)
        return pd.concat([groups.mean(), groups.sem().add_suffix("_se")], axis=1).reset_index()

    def aurc(self) -> pd.DataFrame:
        """Return the area under each fold's risk–coverage curve: the mean risk when all coverages are equally likely.

        The risk is the average loss ℓ(y_D, ŷ_D) of an instance, in the unit of the results, not the error rate among
        the labels answered: for most of these losses that would make no sense.
        """
        rows = []
        for keys, curve in self.coverage.groupby([*CURVE_KEYS, "fold"], sort=False):
            curve = curve.sort_values(["coverage", "step"])
            coverage = np.concatenate([[0.0], curve["coverage"], [1.0]])
            areas = {}
            for column in ("risk", *BASELINES):
                risk = np.concatenate([[0.0], curve[column], [curve[column].iloc[-1]]])
                areas["aurc" if column == "risk" else column] = np.trapezoid(risk, coverage)
            rows.append({**dict(zip([*CURVE_KEYS, "fold"], keys, strict=True)), **areas})
        return pd.DataFrame(rows)


def _require_same_protocol(manifests: list[dict[str, Any]]) -> None:
    """Raise `InvalidDataset` if two runs had different data of the same name, or different folds."""
    seen: dict[str, Any] = {}
    for manifest in manifests:
        for name, dataset in manifest["datasets"].items():
            protocol = dataset["sha256"], manifest["folds"], manifest["seed"]
            if seen.setdefault(name, protocol) != protocol:
                raise InvalidDataset(f"two of the folders differ in the data, the folds or the seed of {name}")


def _read(folder: Path) -> Results:
    files = [folder / name for name in ("results.parquet", "coverage.parquet", "timings.csv", "manifest.json")]
    for file in files:
        if not file.exists():
            raise MissingFile(
                f"there are no results in {str(folder)!r} ({file.name} is missing); "
                f"`abstain experiment run --out {folder}` makes them"
            )
    try:
        results, coverage, timings = pd.read_parquet(files[0]), pd.read_parquet(files[1]), pd.read_csv(files[2])
        manifest = json.loads(files[3].read_text())
    except (OSError, ValueError) as reason:
        raise InvalidDataset(f"the results in {str(folder)!r} cannot be read ({reason})") from reason
    for file, table, columns in ((files[0], results, COLUMNS), (files[1], coverage, CURVE_COLUMNS)):
        missing = [name for name in columns if name not in table]
        if missing:
            raise InvalidDataset(f"{file} has no column {missing[0]!r}; run the experiment again")
    return Results(results, coverage, timings, manifest)
