"""Drawing with matplotlib: the displays' base class, and the colours, axes and legends that figures share."""

from typing import Any, ClassVar

from abstain._utils.extras import optional

# Okabe and Ito's colours, which the colour-blind can tell apart.
BLUE, ORANGE, GREEN, PINK, SKY_BLUE, YELLOW = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"
GREY, LIGHT_GREY = "#666666", "#999999"
LINE_STYLES: list[dict[str, Any]] = [  # told apart by dashes, too
    {"color": BLUE, "linestyle": "-"},
    {"color": ORANGE, "linestyle": (0, (5, 1.5))},
    {"color": GREEN, "linestyle": (0, (6, 1.5, 1, 1.5))},
    {"color": PINK, "linestyle": (0, (2, 1))},
    {"color": SKY_BLUE, "linestyle": (0, (8, 2))},
    {"color": YELLOW, "linestyle": (0, (4, 1, 1, 1, 1, 1))},
]
MODEL_LINE_WIDTH, REFERENCE_LINE_WIDTH = 1.6, 0.9  # points
MODEL_GID, REFERENCE_GID = "model", "reference"
"""Group ids of lines: one line for each model, and lines drawn once on the same axes, however many models there are."""


class Display:
    """Base of the displays: the name of the model, and the axes on which it was drawn.

    Attributes
    ----------
    name : str or None
        The name of the model in the legend.
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn last.
    """

    figure_size: ClassVar[tuple[float, float]] = (5.2, 4.2)
    """Width and height of a new figure, in inches."""

    def __init__(self, *, name: str | None = None) -> None:
        self.name = name

    def _use_axes(self, ax: Any) -> Any:
        """Return the given axes, or new ones, and remember them."""
        self.ax_ = new_axes(self.figure_size) if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_


def name_of(estimator: Any, name: str | None) -> str:
    """Return the given name, or else the name of the estimator's class."""
    return type(estimator).__name__ if name is None else name


def new_axes(size: tuple[float, float], n_rows: int = 1, height_ratios: tuple[float, ...] | None = None) -> Any:
    """Return the axes of a new figure of this size in inches; several of them one above the other."""
    plt = optional("matplotlib.pyplot", "drawing needs matplotlib")
    return plt.subplots(n_rows, figsize=size, layout="constrained", sharex=True, height_ratios=height_ratios)[1]


def count_models(ax: Any) -> int:
    """Return how many models have a line on these axes."""
    return sum(line.get_gid() == MODEL_GID for line in ax.get_lines())


def next_model_style(ax: Any, style: dict[str, Any]) -> dict[str, Any]:
    """Return the style of one more model's line, the user's style first; ``c`` means ``color``, and so on."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    default = LINE_STYLES[count_models(ax) % len(LINE_STYLES)]
    return {"linewidth": MODEL_LINE_WIDTH, **default, **normalize_kwargs(style, Line2D)}


def draw_reference(ax: Any, x: Any, y: Any, label: str, linestyle: Any) -> None:
    """Draw a reference line that is the same for all models, once; without points, only its entry in the legend."""
    if not any(line.get_gid() == REFERENCE_GID and line.get_label() == label for line in ax.get_lines()):
        style = {"color": GREY, "linewidth": REFERENCE_LINE_WIDTH, "linestyle": linestyle}
        ax.plot(x, y, label=label, gid=REFERENCE_GID, zorder=1, **style)


def draw_legend(ax: Any, location: str) -> None:
    """Draw a legend of the models, then of the reference lines."""
    lines = [line for gid in (MODEL_GID, REFERENCE_GID) for line in ax.get_lines() if line.get_gid() == gid]
    ax.legend(handles=lines, loc=location, frameon=False, fontsize="small")
