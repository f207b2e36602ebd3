"""``python -m benchmarks.calibration``: does calibration ever do harm? Writes docs/calibration-measured.md.

Sections: simulated, published, speed; name some to measure only these. Their tables are kept in build/calibration.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from tests.support.data import DATA, load
from tests.support.simulated_scores import CASES, MEASURES, expected_losses, simulate

from abstain._core.targets import read_target
from abstain.calibration import fit
from abstain.calibration._fit import folds_of_rows, splits_of_folds
from abstain.calibration._groups import Groups
from abstain.calibration._methods import METHODS, learn
from abstain.datasets import load_mulan
from abstain.learners import make
from abstain.learners._fitting import cross_fit, fit_labels
from abstain.learners._folds import folds_for

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "calibration"
PAGE = ROOT / "docs" / "calibration-measured.md"
HEAD = """# Does calibration ever do harm?

Written by `python -m benchmarks.calibration`; do not edit. [Probabilities one can trust](calibration.md) says what the
methods are.
"""
NAMES = ("temperature", "sigmoid", "beta", "isotonic", "venn-abers")
SAMPLES, SAMPLES_AUTO = 50, 8
N_ROWS = 1500
SIMULATED_GROUPS = {"0": 0, "1": 1, "2": 2, "3–8": 3, "9–40": 9, "> 40": 41}
PUBLISHED_GROUPS = {"1": 1, "2": 2, "3–5": 3, "6–20": 6, "21–100": 21, "> 100": 101}
COST = 0.1


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def groups_of(scores: np.ndarray, y_true: np.ndarray) -> Groups:
    n, m = scores.shape
    labels = np.tile(np.arange(m), n)
    return Groups.of(np.clip(scores.ravel(), -16, 16), labels, y_true.ravel().astype(float), np.ones(n * m), m)


def harms(
    case: str, n_labels: int, n_samples: int, methods: tuple[str, ...]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Expected loss after − before, of each label of each sample (measures × labels), and their relevant rows."""
    found: dict[str, list[np.ndarray]] = {method: [] for method in methods}
    n_relevant = []
    for seed in range(1000, 1000 + n_samples):
        sample = simulate(case, n_labels=n_labels, seed=seed, n_rows=N_ROWS)
        groups = groups_of(sample.scores, sample.y_true)
        before = expected_losses(expit(sample.new_scores), sample.new_probabilities)
        n_relevant.append(sample.y_true.sum(axis=0))
        for name in methods:
            if name == "auto":
                fold = folds_of_rows(0, N_ROWS, 5)
                parts = [groups_of(sample.scores[fold == k], sample.y_true[fold == k]) for k in range(5)]
                method = learn(groups, splits_of_folds(parts), name)[0]
            else:
                method = METHODS[name].fit(groups.with_certain_scores_moved())
            p = method.probabilities(sample.new_scores, np.arange(n_labels))
            found[name].append(expected_losses(p, sample.new_probabilities) - before)
    return {name: np.hstack(each) for name, each in found.items()}, np.concatenate(n_relevant)


def simulated() -> Iterator[str]:
    yield (
        f"Simulated labels with 0.2 to 200 relevant rows among {N_ROWS} on average, of known true probabilities. "
        "Harm is the expected loss after calibration minus before, in units of 10⁻⁴ per entry: "
        "the mean over labels, and in brackets its 95 % quantile; negative is better. "
        f"{SAMPLES} samples of 40 labels ({SAMPLES_AUTO} for auto; 400 of 1 or 2 labels); "
        "columns are the number of relevant rows in the sample."
    )
    for k, measure in ((0, MEASURES[0]), (1, MEASURES[1]), (2, MEASURES[2]), (3, MEASURES[3])):
        yield f"\n**{measure}**\n"
        yield row("scores", "method", *SIMULATED_GROUPS)
        yield row("---", "---", *["---:"] * len(SIMULATED_GROUPS))
        for case, n_labels in [
            *((case, 40) for case in CASES),
            ("calibrated", 1),
            ("calibrated", 2),
            ("overconfident", 1),
        ]:
            yield from _simulated_rows(case, n_labels, k)


_MEASURED: dict[tuple[str, int], list[tuple[dict[str, np.ndarray], np.ndarray]]] = {}


def _simulated_rows(case: str, n_labels: int, measure: int) -> Iterator[str]:
    if (case, n_labels) not in _MEASURED:
        samples = SAMPLES if n_labels > 2 else 400
        _MEASURED[case, n_labels] = [harms(case, n_labels, samples, NAMES)]
        if n_labels > 2:
            _MEASURED[case, n_labels].append(harms(case, n_labels, SAMPLES_AUTO, ("auto",)))
        print(f"simulated: {case}, {n_labels} labels", flush=True)
    title = case if n_labels == 40 else f"{case}, {n_labels} label{'s' * (n_labels > 1)}"
    for found, n_relevant in _MEASURED[case, n_labels]:
        group = np.digitize(n_relevant, list(SIMULATED_GROUPS.values())) - 1
        for name, harm in found.items():
            cells = []
            for g in range(len(SIMULATED_GROUPS)):
                values = 1e4 * harm[measure, group == g]
                cells.append(f"{values.mean():.1f} ({np.quantile(values, 0.95):.1f})" if len(values) else "")
            yield row(title, name, *cells)


def dataset(name: str) -> tuple[Any, np.ndarray]:
    if name != "langlog":
        return load(name)
    bunch = load_mulan(DATA / name / "llog.arff.gz", xml=DATA / name / "langlog.xml.gz")
    return bunch.data, bunch.target


LEARNERS: dict[str, Any] = {
    "br-lr": lambda: make("br-lr"),
    "10 neighbours": lambda: KNeighborsClassifier(10),
    "naive Bayes": lambda: MultiOutputClassifier(GaussianNB()),
    "tree": lambda: DecisionTreeClassifier(random_state=0),
    "LinearSVC": lambda: LinearSVC(),
    "trees": lambda: ExtraTreesClassifier(100, min_samples_leaf=2, random_state=0),
}
PUBLISHED = [
    *((name, "br-lr") for name in ("emotions", "scene", "yeast", "CAL500", "birds", "enron", "langlog")),
    *((name, learner) for name in ("emotions", "birds") for learner in list(LEARNERS)[1:]),
    *((name, "trees") for name in ("enron", "langlog")),
]


def published() -> Iterator[str]:
    yield (
        "Published data: two thirds to learn from (scores cross-fitted in 5 folds), one third to measure. "
        "Each cell is the loss before → its change by calibration ± the standard error of the change (over rows), "
        "in units of 10⁻⁴ per entry; columns are the number of relevant training rows of a label. "
        "LinearSVC's scores are no probabilities: their sigmoid is taken as before."
    )
    for measure in ("log loss", f"generalised Hamming loss, c = {COST}"):
        yield f"\n**{measure}**\n"
        yield row("data", "learner", "method", *PUBLISHED_GROUPS)
        yield row("---", "---", "---", *["---:"] * len(PUBLISHED_GROUPS))
        for name, learner in PUBLISHED:
            yield from _published_rows(name, learner, measure)


_SCORED: dict[tuple[str, str], tuple[np.ndarray, ...]] = {}


def scored(name: str, learner: str) -> tuple[np.ndarray, ...]:
    if (name, learner) not in _SCORED:
        X, Y = dataset(name)
        order = np.random.default_rng(0).permutation(len(Y))
        train, test = order[: 2 * len(Y) // 3], order[2 * len(Y) // 3 :]
        counts = Y[train].sum(axis=0)
        some = (counts > 0) & (counts < len(train))
        if learner not in ("br-lr", "trees"):
            X = StandardScaler().fit(X[train]).transform(X)
        target = read_target(Y[train][:, some])
        estimator = LEARNERS[learner]()
        folds, options = folds_for(5, target), {"n_jobs": None, "params": {}, "split_params": {}, "verbose": 0}
        _, inner, _ = cross_fit(estimator, X[train], target, folds, **options)
        model = fit_labels(estimator, X[train], target, {})
        _SCORED[name, learner] = inner, Y[train][:, some], model.scores(X[test]), Y[test][:, some]
        print(f"published: {name}, {learner}", flush=True)
    return _SCORED[name, learner]


def loss_of(measure: str, p: np.ndarray, y: np.ndarray) -> np.ndarray:
    if measure == "log loss":
        return -np.where(y, np.log(p), np.log1p(-p))
    return np.where(np.minimum(p, 1 - p) <= COST, (p > 0.5) != y, COST)


def _published_rows(name: str, learner: str, measure: str) -> Iterator[str]:
    inner, y_inner, scores, y = scored(name, learner)
    kind = "score" if learner == "LinearSVC" else "probability"
    uncalibrated = expit(scores) if kind == "score" else scores
    before = loss_of(measure, np.clip(uncalibrated, expit(-16.0), expit(16.0)), y)
    group = np.digitize(y_inner.sum(axis=0), list(PUBLISHED_GROUPS.values())) - 1
    for method in (*NAMES, "auto"):
        change = loss_of(measure, fit(inner, y_inner, method, kind=kind).transform(scores), y) - before
        cells = []
        for g in range(len(PUBLISHED_GROUPS)):
            if not (group == g).any():
                cells.append("")
                continue
            by_row = change[:, group == g].mean(axis=1)
            error = by_row.std() / np.sqrt(len(by_row))
            cells.append(f"{1e4 * before[:, group == g].mean():.0f} → {1e4 * by_row.mean():+.1f} ± {1e4 * error:.1f}")
        yield row(name, learner, method, *cells)


def speed() -> Iterator[str]:
    n, m, part = 1_000_000, 100, 3
    random = np.random.default_rng(0)
    logits = random.normal(-2, 2, (n, m)).astype(np.float32)
    truth = (random.random((n, m), dtype=np.float32) < expit(0.7 * logits)).astype(np.int8)
    fit(logits[:1000], truth[:1000], kind="logit").transform(logits[:1000])  # compiles
    seconds = {}
    for name in ("sigmoid", "auto"):
        begin = perf_counter()
        calibration = fit(logits, truth, name, kind="logit")
        seconds[f"fit, {name}"] = perf_counter() - begin
    begin = perf_counter()
    calibration.transform(logits)
    seconds["transform"] = perf_counter() - begin
    references = {"LogisticRegression": lambda x, y: LogisticRegression(C=np.inf).fit(x[:, np.newaxis], y)}
    references["IsotonicRegression"] = lambda x, y: IsotonicRegression(out_of_bounds="clip").fit(x, y)
    times = {}
    for name, run in references.items():
        begin = perf_counter()
        for j in range(part):
            run(logits[:, j], truth[:, j])
        times[name] = (perf_counter() - begin) * m / part
    yield (
        f"A table of {n:,} × {m} float32 logits. scikit-learn's regressions, label by label, were measured on {part} "
        f"labels in the same run and multiplied by {m / part:.1f}; ratios are their time divided by ours."
    )
    yield ""
    yield row("", "seconds", *(f"{name}: ratio" for name in times))
    yield row("---", *["---:"] * (1 + len(times)))
    for name, value in seconds.items():
        yield row(name, f"{value:.1f}", *(f"{time / value:.1f}" for time in times.values()))


SECTIONS = {"simulated": simulated, "published": published, "speed": speed}


def write() -> None:
    """Write the page of all sections that were measured."""
    kept = [(name, KEPT / f"{name}.md") for name in SECTIONS]
    parts = [f"## {name.capitalize()}\n\n{file.read_text(encoding='utf-8')}" for name, file in kept if file.exists()]
    PAGE.write_text("\n".join([HEAD, *parts]), encoding="utf-8")


def main() -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or SECTIONS:
        text = "\n".join(SECTIONS[name]()) + "\n"
        (KEPT / f"{name}.md").write_text(text, encoding="utf-8")
    write()


if __name__ == "__main__":
    main()
