"""``make skeptical``: skeptical predictions against partial abstention at equal abstention; writes docs/skeptical.md.

Skeptical predictions (Destercke 2015) answer a label if all probabilities of its interval are on the same side of ½.
What each data set and learner gives is kept in build/skeptical, so that an interrupted run goes on where it was.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from tests.support.data import DATA
from tqdm import tqdm

from abstain._utils.atomic import atomic_write
from abstain.experiment import Problem, load
from abstain.experiment._models import title
from abstain.experiment._plan import Fold
from abstain.learners import make

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "skeptical"
DOCS = ROOT / "docs"
DATASETS = "emotions", "scene", "yeast", "cal500"
LEARNERS = "ncc", "credal-forest"
STRENGTHS = 0.25, 0.5, 1.0, 2.0, 4.0, 8.0  # s of the imprecise Dirichlet model
N_FOLDS = 10
KEYS = ["dataset", "learner", "s"]
STANDARD_ERRORS = 2.0  # a difference beyond so many counts
MAX_SHOWN_ABSTENTION = 99.0  # beyond, there are too few answers to draw their rate
LEAST_DISTANCE = 6.0  # between the values of s that are written into the figure, in per cent of the labels
LINES = {
    "skeptical_error": ("skeptical: answers where the interval is off ½", "#d55e00", "^"),
    "partial_error": ("partial abstention: answers where p is farthest from ½", "#0072b2", "o"),
    "complete_error": ("labels at random", "#888888", "s"),
}


def percent(values: np.ndarray) -> float:
    return 100.0 * float(np.mean(values)) if np.size(values) else np.nan


def expected_wrong(probabilities: np.ndarray, is_wrong: np.ndarray, n_open: int) -> float:
    """How many answers are wrong if the n_open most uncertain labels are left open.

    This is what a linear penalty does for the Hamming loss: it leaves open what is nearer to ½ than its price allows.
    Of labels that are equally uncertain some are left open at random; the number is the expected one.
    """
    n_answered = is_wrong.size - n_open
    if n_answered == 0:
        return 0.0
    confidence, is_wrong = np.abs(probabilities - 0.5).ravel(), is_wrong.ravel()
    last = np.partition(confidence, n_open)[n_open]  # the least certain of the answers
    above, tied = confidence > last, confidence == last
    answered_of_tied = n_answered - np.count_nonzero(above)
    return float(np.count_nonzero(is_wrong & above) + answered_of_tied * np.mean(is_wrong[tied]))


def of_fold(fold: Fold) -> Iterator[dict[str, object]]:
    """Iterate over s: the rates of a fold."""
    train, test = fold.rows
    features, labels = fold.problem.features, fold.problem.labels
    model = make(fold.learner, random_state=fold.random_state).fit(features[train], labels[train])
    truth = labels[test] == 1
    frequency = labels[train].mean(axis=0)
    rarer = np.tile(np.minimum(frequency, 1.0 - frequency), (len(test), 1))
    for s in STRENGTHS:
        model.set_params(s=s)
        probabilities = model.predict_proba(features[test])
        lower, upper = model.predict_intervals(features[test])
        is_answered = (lower > 0.5) | (upper < 0.5)
        is_wrong = (probabilities > 0.5) != truth
        n_answered = np.count_nonzero(is_answered)
        n_wrong = expected_wrong(probabilities, is_wrong, is_wrong.size - n_answered)
        n_open_of_labels = np.count_nonzero(~is_answered, axis=0)
        by_label = zip(probabilities.T, is_wrong.T, n_open_of_labels, strict=True)
        n_wrong_by_label = sum(expected_wrong(*label) for label in by_label)
        assert np.array_equal((lower > 0.5)[is_answered], (probabilities > 0.5)[is_answered])
        yield {
            "dataset": fold.problem.name,
            "learner": fold.learner,
            "s": s,
            "fold": fold.number + 1,
            "abstention": percent(~is_answered),
            "skeptical_error": percent(is_wrong[is_answered]),
            "partial_error": 100.0 * n_wrong / n_answered if n_answered else np.nan,
            "per_label_error": 100.0 * n_wrong_by_label / n_answered if n_answered else np.nan,
            "complete_error": percent(is_wrong),
            "answered_accuracy": percent(~is_wrong[is_answered]),
            "open_accuracy": percent(~is_wrong[~is_answered]),
            "answered_rarer_value": percent(rarer[is_answered]),
            "open_rarer_value": percent(rarer[~is_answered]),
        }


def run() -> pd.DataFrame:
    KEPT.mkdir(parents=True, exist_ok=True)
    problems = [load(name, folder=DATA) for name in DATASETS]
    folds = [
        Fold(problem, learner, k, N_FOLDS, 0) for problem in problems for learner in LEARNERS for k in range(N_FOLDS)
    ]
    tables = []
    for fold in tqdm(folds, "folds"):
        file = KEPT / f"{fold.name}.csv"  # with a fingerprint of data and versions
        if not file.exists():
            with atomic_write(file) as target:
                pd.DataFrame(of_fold(fold)).to_csv(target, index=False)
        tables.append(pd.read_csv(file))
    return pd.concat(tables, ignore_index=True)


def with_differences(results: pd.DataFrame) -> pd.DataFrame:
    return results.assign(
        difference=results.skeptical_error - results.partial_error,
        per_label_difference=results.skeptical_error - results.per_label_error,
        accuracy_difference=results.answered_accuracy - results.open_accuracy,
    )


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """Means over the folds, and standard errors; folds without any answer, or without open labels, do not count."""
    groups = with_differences(results).drop(columns="fold").groupby(KEYS, sort=False)
    n_folds = groups.skeptical_error.count().rename("folds")
    return pd.concat([groups.mean(), groups.sem().add_suffix("_se"), n_folds], axis=1)


def cell(row: pd.Series, name: str, sign: str = "") -> str:
    if np.isnan(row[name]):
        return "–"
    error = row[f"{name}_se"]
    return f"{row[name]:{sign}.2f}" + ("" if np.isnan(error) else f" ± {error:.2f}")


def verdict(row: pd.Series, name: str) -> str:
    """Whether a difference is positive, beyond the standard errors of the folds."""
    if row.folds < 2 or np.isnan(row[f"{name}_se"]):
        return "–"
    margin = STANDARD_ERRORS * row[f"{name}_se"]
    return "yes" if row[name] > margin else "the reverse" if row[name] < -margin else "undecided"


def table(means: pd.DataFrame) -> str:
    head = (
        "| data | learner | s | left open, % | wrong, skeptical, % | wrong, partial abstention, % | difference "
        "| partial abstention errs less | difference, per label |\n|---|---|---|---|---|---|---|---|---|"
    )
    lines = (
        f"| {name} | {learner} | {s:g} | {cell(row, 'abstention')} | {cell(row, 'skeptical_error')} "
        f"| {cell(row, 'partial_error')} | {cell(row, 'difference', '+')} | {verdict(row, 'difference')} "
        f"| {cell(row, 'per_label_difference', '+')} |"
        for (name, learner, s), row in means.iterrows()
    )
    return "\n".join([head, *lines])


def claim_table(means: pd.DataFrame) -> str:
    head = (
        "| data | learner | s | right where answered, % | right where left open, % | difference | holds "
        "| rarer value, answered, % | rarer value, left open, % |\n|---|---|---|---|---|---|---|---|---|"
    )
    lines = (
        f"| {name} | {learner} | {s:g} | {cell(row, 'answered_accuracy')} | {cell(row, 'open_accuracy')} "
        f"| {cell(row, 'accuracy_difference', '+')} | {verdict(row, 'accuracy_difference')} "
        f"| {row.answered_rarer_value:.1f} | {row.open_rarer_value:.1f} |".replace("nan", "–")
        for (name, learner, s), row in means.iterrows()
    )
    return "\n".join([head, *lines])


def count(means: pd.DataFrame, name: str) -> str:
    """How often a difference is positive, for each learner."""
    words = []
    for learner in LEARNERS:
        found = means.xs(learner, level="learner").apply(verdict, axis=1, name=name)
        judged = found[found != "–"]
        parts = [f"{(judged == word).sum()} {word}" for word in ("yes", "undecided", "the reverse")]
        by_data = judged[judged == "the reverse"].index.get_level_values("dataset").unique()
        where = f" ({', '.join(by_data)})" if len(by_data) else ""
        words.append(f"{learner}: {', '.join(parts)}{where}, of {len(judged)}")
    return "; ".join(words)


def gaps(means: pd.DataFrame, s: float = 2.0) -> str:
    """How much of the difference is left within labels, where rare labels matter."""
    rows = {name: means.loc[(name, "ncc", s)] for name in ("cal500", "yeast")}
    parts = (f"{row.per_label_difference:.2f} of {row.difference:.2f} ({name})" for name, row in rows.items())
    return f"{' and '.join(parts)} percentage points"


def draw(means: pd.DataFrame, path: Path) -> None:
    figure = Figure(figsize=(11, 5.6), layout="constrained")
    axes = figure.subplots(len(LEARNERS), len(DATASETS))
    for row, learner in zip(axes, LEARNERS, strict=True):
        for ax, name in zip(row, DATASETS, strict=True):
            part = means.loc[(name, learner)].query("abstention < @MAX_SHOWN_ABSTENTION")
            for column, (label, colour, marker) in LINES.items():
                is_first = ax is axes[0, 0]
                ax.errorbar(
                    part.abstention,
                    part[column],
                    part[f"{column}_se"],
                    color=colour,
                    marker=marker,
                    markersize=4,
                    linewidth=1.3,
                    capsize=2,
                    linestyle="--" if column == "complete_error" else "-",
                    label=label if is_first else None,
                )
            written = -np.inf
            for s, point in part.iterrows():
                if point.abstention - written < LEAST_DISTANCE:
                    continue
                written = point.abstention
                place = (point.abstention, min(point.skeptical_error, point.partial_error))
                offset = {"xytext": (-9, -11), "textcoords": "offset points", "ha": "center", "fontsize": 8}
                ax.annotate(f"{s:g}", place, **offset)
            ax.set_title(f"{name}, {learner}", fontsize="medium")
            ax.set_xlim(-16, 102)
            ax.set_xticks([0, 25, 50, 75, 100])
            highest = part[list(LINES)].max().max()
            ax.set_ylim(-0.1 * highest, 1.1 * highest)
            ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[-1]:
        ax.set_xlabel("labels left open, %")
    for ax in axes[:, 0]:
        ax.set_ylabel("wrong answers, % of the answers")
    figure.legend(loc="outside lower center", ncols=len(LINES), frameon=False)
    figure.savefig(path, dpi=130)


def describe(problems: list[Problem]) -> str:
    return ", ".join(f"{problem.name} ({' × '.join(map(str, problem.shape))})" for problem in problems)


def main() -> None:
    results = run()
    means = summary(results)
    (DOCS / "experiments").mkdir(exist_ok=True)
    results.to_csv(DOCS / "experiments" / "skeptical.csv", index=False, float_format="%.6g", lineterminator="\n")
    draw(means, DOCS / "experiments" / "skeptical.png")
    page = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    text = page.format(
        data=describe([load(name, folder=DATA) for name in DATASETS]),
        learners="; ".join(f"`{name}`, {title(name)}" for name in LEARNERS),
        strengths=", ".join(f"{s:g}" for s in STRENGTHS),
        n_folds=N_FOLDS,
        errors=f"{STANDARD_ERRORS:g}",
        better=count(means, "difference"),
        gaps=gaps(means),
        per_label=count(means, "per_label_difference"),
        table=table(means),
        claim=count(means, "accuracy_difference"),
        claim_table=claim_table(means),
    )
    (DOCS / "skeptical.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
