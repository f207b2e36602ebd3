"""The papers' figures: the generalised loss and the abstention along the costs, and what others leave open instead."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from abstain._utils.atomic import atomic_write
from abstain._utils.extras import optional
from abstain.experiment._protocol import SCALES, STEPS, Scale
from abstain.experiment._results import CURVE_KEYS, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, MARGIN = 2.2, 0.75  # inches for each data set, and for the labels at the left
LINE = 0.17  # inches for a line of the title or of the legend
LETTERS = 13  # of the title in an inch
HEADROOM = 1.3  # the generalised loss is shown so far above the worst of MLC, SEP and PAR; ABS leaves the frame
OPEN = "labels left open, %"
RC: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.xmargin": 0.03,
    "axes.ymargin": 0.03,
    "font.size": 8,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.4,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.2,
    "pdf.fonttype": 42,  # fonts as they are: text can be searched, and edited
    "savefig.dpi": 200,
    "svg.hashsalt": "abstain",
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}
UNDATED: dict[str, dict[str, None]] = {"pdf": {"CreationDate": None}, "png": {"Software": None}, "svg": {"Date": None}}
"""What is left out of the files, so that the same results give the same bytes."""


class Line(NamedTuple):
    """How a line looks: told apart by colour (Okabe and Ito's), by dashes, and by markers."""

    label: str
    color: str
    linestyle: Any
    marker: str


LOOKS = ("#0072b2", "-", "o"), ("#d55e00", (0, (5, 1.5)), "^"), ("#009e73", (0, (6, 1.5, 1, 1.5)), "x")
DOTS = "#000000", (0, (1, 1.5)), "s"
FIXED = {"mlc": Line("MLC: answer everything", *LOOKS[2]), "abs": Line("ABS: leave everything open", *DOTS)}
PENALISED = {
    "SEP": Line(r"SEP: $a\,c$ for $a$ open labels", *LOOKS[0]),
    "PAR": Line(r"PAR: $a\,m\,c\,/\,(m + a)$", *LOOKS[1]),
}
RIVALS = {
    "risk": Line("optimal partial abstention", *LOOKS[0]),
    "two_thresholds": Line("two thresholds (Pillai et al. 2013)", *LOOKS[1]),
    "whole_instances": Line("whole instances (Park & Simoff)", *LOOKS[2]),
    "at_random": Line("labels at random", *DOTS),
}
STRATEGIES = {"br": "binary relevance", "cc": "classifier chain", "ecc": "ensemble of classifier chains"}
BASES = {"lr": "logistic regression", "svm": "support vector machines", "nystroem-svm": "Nyström-approximated SVMs"}


def draw(results: Results, folder: Path, formats: Sequence[str] = ("pdf", "png")) -> list[Path]:
    """Draw all figures into a folder: one for each loss and learner, and one on related work for each learner."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, figure in _figures(results):
        safe = re.sub(r"[^\w-]+", "-", name)
        for kind in formats:
            files.append(folder / f"{safe}.{kind}")
            _save(figure, files[-1], kind)
    return files


def _figures(results: Results) -> Iterator[tuple[str, "Figure"]]:
    for loss, learner in results.results[["loss", "learner"]].drop_duplicates().itertuples(index=False):
        yield f"{loss}-{learner}", penalty_figure(results, loss, learner)
    for learner in results.coverage["learner"].unique():
        yield f"related-work-{learner}", related_figure(results, learner)


@contextmanager
def _style() -> Iterator[None]:
    """The same look wherever it is drawn, whatever the user prefers elsewhere."""
    mpl = optional("matplotlib", "the figures need matplotlib")
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(RC)
        yield


@_style()
def _save(figure: "Figure", file: Path, kind: str) -> None:
    with atomic_write(file) as target:
        figure.savefig(target, format=kind, metadata=UNDATED.get(kind))


@_style()
def penalty_figure(results: Results, loss: str, learner: str) -> "Figure":
    """The generalised loss, and below how much is left open, by the cost: means of the folds and their standard errors.

    PAR's greatest cost is twice SEP's, so that leaving everything open costs the same: both share one axis.
    """
    table, scale = results.summary().query("loss == @loss and learner == @learner"), SCALES[loss]
    names = table["dataset"].unique()
    figure, axes = _grid(names, 2, 1.5, f"Generalised {scale.name} loss", learner)
    for (above, below), name in zip(axes.T, names, strict=True):
        part = table[table["dataset"] == name]
        _draw_costs(above, below, part, scale)
        _limit(above, HEADROOM * part[["mlc", "generalized_loss"]].to_numpy().max())
        _limit(below, 1.05 * table["abstention"].max())
        _mark_costs(below, scale)
    left, unit = axes[:, 0], "·m" if scale.per_label else ""
    left[0].set_ylabel(f"generalised\n{_on_lines(scale.title)}")
    left[1].set_ylabel(OPEN)
    beside = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right", "va": "top", "fontsize": 7}
    left[1].annotate(f"SEP c{unit}\nPAR c{unit}", (0, 0), (-3, -7), **beside)
    for below in axes[1]:
        below.set_xlabel("cost of an open label" + (", times m" if scale.per_label else ""))
    return _with_legend(figure, len(names))


def _draw_costs(above: Any, below: Any, table: pd.DataFrame, scale: Scale) -> None:
    """The lines of one data set, against SEP's cost, or c m where the costs are over m."""
    for penalty, line in PENALISED.items():
        part = table[table["penalty"] == penalty].sort_values("cost")
        costs = part["cost"] * (part["n_labels"] if scale.per_label else 1.0)
        costs *= scale.greatest["SEP"] / scale.greatest[penalty]
        if penalty == "SEP":  # the same for both
            for column, fixed in FIXED.items():
                _draw_line(above, costs, part[column], part[f"{column}_se"], fixed)
        _draw_line(above, costs, part["generalized_loss"], part["generalized_loss_se"], line)
        _draw_line(below, costs, part["abstention"], part["abstention_se"], line)


def _draw_line(axes: Any, costs: pd.Series, mean: pd.Series, error: pd.Series, line: Line) -> None:
    axes.plot(costs, mean, **line._asdict())
    axes.fill_between(costs, mean - error, mean + error, color=line.color, alpha=0.2, linewidth=0)


def _mark_costs(axes: Any, scale: Scale) -> None:
    """Every second cost of SEP, and PAR's below it."""
    sep, par = (scale.greatest[name] * np.arange(2, STEPS + 1, 2) / STEPS for name in ("SEP", "PAR"))
    axes.set_xticks(sep, [f"{s:g}\n{p:g}" for s, p in zip(sep, par, strict=True)])


@_style()
def related_figure(results: Results, learner: str) -> "Figure":
    """The loss of the answers by how many labels are left open, optimally and as others do it: means of the folds."""
    table = _curves(results, learner)
    names, losses = table["dataset"].unique(), table["loss"].unique()
    figure, axes = _grid(names, len(losses), 1.3, "Which labels to leave open", learner)
    for row, loss in zip(axes, losses, strict=True):
        for place, name in zip(row, names, strict=True):
            part = table[(table["loss"] == loss) & (table["dataset"] == name)]
            if part.empty:
                place.set_axis_off()
            for k, (column, line) in enumerate(RIVALS.items()):
                place.plot(100.0 * (1.0 - part["coverage"]), part[column], markevery=(k, 4), **line._asdict())
        row[0].set_ylabel(_on_lines(SCALES[loss].title))
    for place in axes[-1]:
        place.set_xlabel(OPEN)
    return _with_legend(figure, len(names))


def _curves(results: Results, learner: str) -> pd.DataFrame:
    """The means of the folds from everything left open, which costs nothing, to everything answered."""
    table = results.coverage.query("learner == @learner")
    means = table.groupby([*CURVE_KEYS, "step"], sort=False)[["coverage", *RIVALS]].mean().reset_index()
    ends = means.drop_duplicates(CURVE_KEYS).assign(step=-1, coverage=0.0, **dict.fromkeys(RIVALS, 0.0))
    return pd.concat([ends, means]).sort_values("step", kind="stable")


def _grid(names: Sequence[str], n_rows: int, height: float, what: str, learner: str) -> tuple["Figure", Any]:
    """A figure with a column for each data set, and its axes."""
    from matplotlib.figure import Figure

    width = MARGIN + WIDTH * max(len(names), 1.3)  # a legend needs some, too
    title = _title(what, _in_words(learner), int(LETTERS * width))
    n_lines = title.count("\n") + len(RIVALS) // _legend_columns(len(names))
    figure = Figure(figsize=(width, 0.6 + LINE * n_lines + height * n_rows), layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots(n_rows, len(names), sharex=True, squeeze=False)
    for top, name in zip(axes[0], names, strict=True):
        top.set_title(name, parse_math=False)
    return figure, axes


def _title(what: str, learner: str, room: int) -> str:
    """In one line, if there is room for so many letters."""
    whole = f"{what}: {learner}"
    return whole if len(whole) <= room else f"{what}\n{textwrap.fill(learner, room, break_on_hyphens=False)}"


def _with_legend(figure: "Figure", n_datasets: int) -> "Figure":
    handles = figure.axes[0].get_lines()
    figure.legend(handles=handles, loc="outside lower center", ncols=_legend_columns(n_datasets))
    return figure


def _legend_columns(n_datasets: int) -> int:
    return 4 if n_datasets > 3 else min(n_datasets, 2)


def _limit(axes: Any, top: float) -> None:
    """Begin a little below 0, so that markers at 0 are whole."""
    if top > 0:
        axes.set_ylim(-0.04 * top, top)


def _on_lines(title: str) -> str:
    return title.replace(", ", ",\n")


def _in_words(learner: str) -> str:
    name, _, calibration = learner.partition("+")
    strategy, _, base = name.partition("-")
    words = f"{STRATEGIES[strategy]} with {BASES[base]}" if strategy in STRATEGIES and base in BASES else name
    words = "extremely randomised trees" if name == "trees" else words
    return f"{words}, {calibration} calibration" if calibration else words
