"""The papers' figures: the generalised loss and the abstention by cost, and the baselines of related work."""

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
from abstain._utils.plotting import LINE_STYLES
from abstain.experiment import _models
from abstain.experiment._protocol import N_COSTS, SCALES, Scale
from abstain.experiment._results import CURVE_KEYS, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMN_WIDTH, LEFT_MARGIN = 2.2, 0.75  # inches for each data set, and for the labels at the left
TEXT_LINE_HEIGHT = 0.17  # inches for a line of the title or of the legend
LETTERS_PER_INCH = 13  # of the title
LOSS_AXIS_FACTOR = 1.3  # the axis of the loss ends so far above the worst of MLC, SEP and PAR; ABS leaves the frame
ABSTENTION_TITLE = "labels left open, %"
RC_PARAMS: dict[Any, Any] = {
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
OMITTED_METADATA: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
    "svg": {"Date": None},
}
"""Left out of the files, so that the same results give the same bytes."""


class Line(NamedTuple):
    """The label and the style of a line: lines differ in colour, dashes and markers."""

    label: str
    color: str
    linestyle: Any
    marker: str


def _line(label: str, number: int, marker: str) -> Line:
    return Line(label, marker=marker, **LINE_STYLES[number])


def _dotted_line(label: str) -> Line:
    return Line(label, "#000000", (0, (1, 1.5)), "s")


FIXED_LINES = {"mlc": _line("MLC: answer everything", 2, "x"), "abs": _dotted_line("ABS: leave everything open")}
PENALTY_LINES = {
    "SEP": _line(r"SEP: $a\,c$ for $a$ open labels", 0, "o"),
    "PAR": _line(r"PAR: $a\,m\,c\,/\,(m + a)$", 1, "^"),
}
RELATED_LINES = {
    "risk": _line("optimal partial abstention", 0, "o"),
    "two_thresholds": _line("two thresholds (Pillai et al. 2013)", 1, "^"),
    "whole_instances": _line("whole instances (Park & Simoff)", 2, "x"),
    "at_random": _dotted_line("labels at random"),
}


def draw(results: Results, folder: Path, formats: Sequence[str] = ("pdf", "png")) -> list[Path]:
    """Draw all figures into a folder, and return the files: one for each loss and learner, and one on related work."""
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
    """Use the style of the figures, whatever the user's own settings are."""
    mpl = optional("matplotlib", "the figures need matplotlib")
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(RC_PARAMS)
        yield


@_style()
def _save(figure: "Figure", file: Path, kind: str) -> None:
    with atomic_write(file) as target:
        figure.savefig(target, format=kind, metadata=OMITTED_METADATA.get(kind))


@_style()
def penalty_figure(results: Results, loss: str, learner: str) -> "Figure":
    """Draw the generalised loss, and below it the abstention, by the cost: means over the folds and standard errors.

    PAR's highest cost is twice SEP's, so that abstaining on everything costs the same: both share one axis.
    """
    table, scale = results.summary().query("loss == @loss and learner == @learner"), SCALES[loss]
    names = table["dataset"].unique()
    figure, axes = _grid(names, 2, 1.5, f"Generalised loss, {scale.loss.title}", learner)
    for (above, below), name in zip(axes.T, names, strict=True):
        part = table[table["dataset"] == name]
        _draw_dataset(above, below, part, scale)
        _set_limits(above, LOSS_AXIS_FACTOR * part[["mlc", "generalized_loss"]].to_numpy().max())
        _set_limits(below, 1.05 * table["abstention"].max())
        _set_cost_ticks(below, scale)
    left, unit = axes[:, 0], "·m" if scale.cost_over_m else ""
    left[0].set_ylabel(f"generalised\n{_on_lines(scale.axis_title)}")
    left[1].set_ylabel(ABSTENTION_TITLE)
    beside = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right", "va": "top", "fontsize": 7}
    left[1].annotate(f"SEP c{unit}\nPAR c{unit}", (0, 0), (-3, -7), **beside)
    for below in axes[1]:
        below.set_xlabel("cost of an open label" + (", times m" if scale.cost_over_m else ""))
    return _with_legend(figure, len(names))


def _draw_dataset(above: Any, below: Any, table: pd.DataFrame, scale: Scale) -> None:
    """Draw the lines of one data set against SEP's cost, times m where the costs are divided by m."""
    for penalty, line in PENALTY_LINES.items():
        part = table[table["penalty"] == penalty].sort_values("cost")
        costs = part["cost"] * (part["n_labels"] if scale.cost_over_m else 1.0)
        costs *= scale.highest_cost["SEP"] / scale.highest_cost[penalty]
        if penalty == "SEP":  # the same for both
            for column, fixed in FIXED_LINES.items():
                _draw_line(above, costs, part[column], part[f"{column}_se"], fixed)
        _draw_line(above, costs, part["generalized_loss"], part["generalized_loss_se"], line)
        _draw_line(below, costs, part["abstention"], part["abstention_se"], line)


def _draw_line(axes: Any, costs: pd.Series, mean: pd.Series, error: pd.Series, line: Line) -> None:
    axes.plot(costs, mean, **line._asdict())
    axes.fill_between(costs, mean - error, mean + error, color=line.color, alpha=0.2, linewidth=0)


def _set_cost_ticks(axes: Any, scale: Scale) -> None:
    """Label every second cost of SEP, with PAR's below it."""
    sep, par = (scale.highest_cost[name] * np.arange(2, N_COSTS + 1, 2) / N_COSTS for name in ("SEP", "PAR"))
    axes.set_xticks(sep, [f"{s:g}\n{p:g}" for s, p in zip(sep, par, strict=True)])


@_style()
def related_figure(results: Results, learner: str) -> "Figure":
    """Draw the loss of the answers by abstention, optimally and of the baselines: means over the folds."""
    table = _curves(results, learner)
    names, losses = table["dataset"].unique(), table["loss"].unique()
    figure, axes = _grid(names, len(losses), 1.3, "Which labels to leave open", learner)
    for row, loss in zip(axes, losses, strict=True):
        for ax, name in zip(row, names, strict=True):
            part = table[(table["loss"] == loss) & (table["dataset"] == name)]
            if part.empty:
                ax.set_axis_off()
            for k, (column, line) in enumerate(RELATED_LINES.items()):
                ax.plot(100.0 * (1.0 - part["coverage"]), part[column], markevery=(k, 4), **line._asdict())
        row[0].set_ylabel(_on_lines(SCALES[loss].axis_title))
    for ax in axes[-1]:
        ax.set_xlabel(ABSTENTION_TITLE)
    return _with_legend(figure, len(names))


def _curves(results: Results, learner: str) -> pd.DataFrame:
    """Return the means over the folds, from abstaining on everything, which has no loss, to answering everything."""
    table = results.coverage.query("learner == @learner")
    means = table.groupby([*CURVE_KEYS, "step"], sort=False)[["coverage", *RELATED_LINES]].mean().reset_index()
    ends = means.drop_duplicates(CURVE_KEYS).assign(step=-1, coverage=0.0, **dict.fromkeys(RELATED_LINES, 0.0))
    return pd.concat([ends, means]).sort_values("step", kind="stable")


def _grid(names: Sequence[str], n_rows: int, height: float, topic: str, learner: str) -> tuple["Figure", Any]:
    """Return a figure with a column for each data set, and its axes."""
    from matplotlib.figure import Figure

    width = LEFT_MARGIN + COLUMN_WIDTH * max(len(names), 1.3)  # a legend needs some, too
    title = _title(topic, _models.title(learner), int(LETTERS_PER_INCH * width))
    n_lines = title.count("\n") + len(RELATED_LINES) // _legend_columns(len(names))
    figure = Figure(figsize=(width, 0.6 + TEXT_LINE_HEIGHT * n_lines + height * n_rows), layout="constrained")
    figure.suptitle(title)
    axes = figure.subplots(n_rows, len(names), sharex=True, squeeze=False)
    for top, name in zip(axes[0], names, strict=True):
        top.set_title(name, parse_math=False)
    return figure, axes


def _title(topic: str, learner: str, max_letters: int) -> str:
    """Return the title in one line, if it fits, or else with the learner on lines of its own."""
    title = f"{topic}: {learner}"
    if len(title) <= max_letters:
        return title
    return f"{topic}\n{textwrap.fill(learner, max_letters, break_on_hyphens=False)}"


def _with_legend(figure: "Figure", n_datasets: int) -> "Figure":
    handles = figure.axes[0].get_lines()
    figure.legend(handles=handles, loc="outside lower center", ncols=_legend_columns(n_datasets))
    return figure


def _legend_columns(n_datasets: int) -> int:
    return 4 if n_datasets > 3 else min(n_datasets, 2)


def _set_limits(axes: Any, top: float) -> None:
    """Set limits that begin a little below 0, so that markers at 0 are whole."""
    if top > 0:
        axes.set_ylim(-0.04 * top, top)


def _on_lines(title: str) -> str:
    return title.replace(", ", ",\n")
