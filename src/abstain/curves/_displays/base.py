"""What all displays share: where the numbers come from, and how a line looks."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self

import numpy as np

from abstain._core.losses import LossLike
from abstain._core.targets import truth_and_probabilities
from abstain._utils.extras import optional
from abstain.curves._bootstrap import Band, spread

LOOKS = [  # Okabe and Ito's colours, told apart by dashes too
    {"color": "#0072b2", "linestyle": "-"},
    {"color": "#d55e00", "linestyle": (0, (5, 1.5))},
    {"color": "#009e73", "linestyle": (0, (6, 1.5, 1, 1.5))},
    {"color": "#cc79a7", "linestyle": (0, (2, 1))},
    {"color": "#56b4e9", "linestyle": (0, (8, 2))},
    {"color": "#e69f00", "linestyle": (0, (4, 1, 1, 1, 1, 1))},
]
GREY, THIN = "#666666", 0.9
MODEL, ASIDE = "model", "aside"
"""Marks of lines: one for each model, and what is drawn once on the same axes, however many models there are."""
SHARPEST = 2000  # points of a line: more than a figure has pixels


class CurveDisplay(ABC):
    """A curve and the name of its model, and how to draw them."""

    compute: ClassVar[Callable[..., Any]]
    """The function of `abstain.curves` that makes the curve."""
    size: ClassVar[tuple[float, float]] = (5.2, 4.2)

    def __init__(self, curve: Any, name: str | None = None) -> None:
        self.curve = curve
        self.name = name

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        probabilities: Any,
        *,
        loss: LossLike = "hamming",
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Compute the curve and draw it.

        Parameters
        ----------
        y_true : n × m table of 0 and 1
            None will do for a cost curve, which then shows what the probabilities expect.
        probabilities, loss
            As for `abstain.decide`.
        name : str, optional
            What the model is called in the legend.
        ax
            As for `plot`.
        **options
            For the function that computes the curve, for example ``n_bootstrap=200``.
        """
        return cls(cls.compute(y_true=y_true, probabilities=probabilities, loss=loss, **options), name).plot(ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, loss: LossLike | None = None, name: str | None = None, **options: Any
    ) -> Self:
        """Ask a fitted classifier for its probabilities; the rest is as for `from_predictions`.

        Parameters
        ----------
        estimator : fitted classifier
            Any with ``predict_proba``, as for `abstain.label_probabilities`.
        X : array-like of shape (n, n_features)
        y : n × m table of 0 and 1, or a vector of classes
        loss
            The loss of an `AbstainingClassifier`, or "hamming", if it is not given.
        name : str, optional
            What the model is called in the legend; the name of its class, if it is not given.
        **options
            As for `from_predictions`.
        """
        truth, probabilities = truth_and_probabilities(estimator, X, y)
        # Others of scikit-learn's classifiers have a loss too: the one they are fitted with.
        own = estimator.loss if hasattr(estimator, "decide") and hasattr(estimator, "loss") else "hamming"
        return cls.from_predictions(
            truth,
            probabilities,
            loss=own if loss is None else loss,
            name=type(estimator).__name__ if name is None else name,
            **options,
        )

    def plot(self, ax: Any = None, **style: Any) -> Self:
        """Draw on the given axes, or on new ones; what is drawn there already stays.

        Parameters
        ----------
        ax : matplotlib axes, optional
        **style
            For the line, for example ``color``.
        """
        ax = new_axes(self.size) if ax is None else ax
        self._draw(ax, next_look(ax, style))
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @abstractmethod
    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        """Add the lines, the names of the axes and the legend."""

    def _called(self, what: str) -> str:
        return what if self.name is None else f"{self.name} ({what})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.curve!r}{'' if self.name is None else f', {self.name!r}'})"


def next_look(ax: Any, style: dict[str, Any]) -> dict[str, Any]:
    """How the line of one more model looks, where the style does not say it; ``c`` means ``color``, and so on."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    n_models = sum(line.get_gid() == MODEL for line in ax.get_lines())
    return {"linewidth": 1.6, **LOOKS[n_models % len(LOOKS)], **normalize_kwargs(style, Line2D)}


def new_axes(size: tuple[float, float], n_rows: int = 1, heights: tuple[float, ...] | None = None) -> Any:
    """Axes in a new figure; several of them one above the other."""
    plt = optional("matplotlib.pyplot", "drawing needs matplotlib")
    return plt.subplots(n_rows, figsize=size, layout="constrained", sharex=True, height_ratios=heights)[1]


def draw_line(ax: Any, x: Any, y: Any, style: dict[str, Any], label: str | None = None) -> None:
    """A line thinned out to what can be seen, of a model if it has a label; x increases, or falls."""
    kept = spread(x if x[0] <= x[-1] else -x, SHARPEST)
    ax.plot(x[kept], y[kept], label=label, gid=None if label is None else MODEL, **style)


def draw_band(
    ax: Any, band: Band | None, color: Any, end: float | None = None, step: Literal["post"] | None = None
) -> None:
    """Where the curve might be, in a light shade; as at its last point up to the end, if one is given."""
    if band is not None:
        more = [] if end is None else [end]
        low, high = (np.append(side, side[-1:].repeat(len(more))) for side in (band.low, band.high))
        ax.fill_between(np.append(band.x, more), low, high, step=step, color=color, alpha=0.18, linewidth=0)


def draw_once(ax: Any, x: Any, y: Any, label: str, linestyle: Any) -> None:
    """A line of reference that is the same for all models, or, without points, the key to such a line of each model."""
    if not any(line.get_gid() == ASIDE and line.get_label() == label for line in ax.get_lines()):
        ax.plot(x, y, label=label, gid=ASIDE, zorder=1, color=GREY, linewidth=THIN, linestyle=linestyle)


def draw_legend(ax: Any, place: str) -> None:
    """The models first, then the lines of reference."""
    shown = [line for kind in (MODEL, ASIDE) for line in ax.get_lines() if line.get_gid() == kind]
    ax.legend(handles=shown, loc=place, frameon=False, fontsize="small")
