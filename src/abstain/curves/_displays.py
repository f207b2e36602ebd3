"""The displays of the curves: as in scikit-learn, a display holds what was computed and draws it.

``from_predictions`` and ``from_estimator`` compute a curve and draw it, ``plot`` draws it again, on other axes or
beside another model.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self

import numpy as np

from abstain._core.losses import LossLike
from abstain._core.targets import truth_and_probabilities
from abstain._utils.errors import InvalidParameter
from abstain._utils.plotting import (
    MODEL_GID,
    REFERENCE_LINE_WIDTH,
    Display,
    count_models,
    draw_legend,
    draw_reference,
    name_of,
    new_axes,
    next_model_style,
)
from abstain._utils.types import Floats
from abstain.curves._bootstrap import Band, select_points
from abstain.curves._capture import ErrorCaptureCurve, error_capture_curve
from abstain.curves._cost import CostCurve, cost_curve
from abstain.curves._coverage import RiskCoverageCurve, risk_coverage_curve
from abstain.curves._rejection import AccuracyRejectionCurve, accuracy_rejection_curve

MAX_LINE_POINTS = 2000  # more than a figure has pixels


class CurveDisplay(Display, ABC):
    """Base of the displays of one curve."""

    compute: ClassVar[Callable[..., Any]]
    """The function of `abstain.curves` that computes the curve."""

    def __init__(self, curve: Any, *, name: str | None = None) -> None:
        super().__init__(name=name)
        self.curve = curve

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
        y_true : array-like of shape (n_instances, n_labels)
            The truth, 0 or 1. None will do for a cost curve, which then shows what the probabilities expect.
        probabilities : array-like of shape (n_instances, n_labels)
            P(label is relevant), as for `abstain.decide`.
        loss : str or Loss, default="hamming"
            What wrong answers cost, as for `abstain.decide`.
        name : str, optional
            The name of the model in the legend.
        ax : matplotlib axes, optional
            Where to draw, as for `plot`.
        **options
            For the function that computes the curve, for example ``n_bootstrap=200``.

        Returns
        -------
        display : the display, drawn
        """
        curve = cls.compute(y_true=y_true, probabilities=probabilities, loss=loss, **options)
        return cls(curve, name=name).plot(ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, loss: LossLike | None = None, name: str | None = None, **options: Any
    ) -> Self:
        """Compute the curve of a fitted classifier's probabilities and draw it.

        Parameters
        ----------
        estimator : fitted classifier
            Any with ``predict_proba``, as for `abstain.label_probabilities`.
        X : array-like of shape (n_instances, n_features)
        y : array-like of shape (n_instances, n_labels) or (n_instances,)
            The truth, 0 or 1, or a vector of classes.
        loss : str or Loss, optional
            What wrong answers cost; if it is not given, the loss of an `AbstainingClassifier`, or else "hamming".
        name : str, optional
            The name of the model in the legend; the name of its class, if it is not given.
        **options
            As for `from_predictions`.

        Returns
        -------
        display : the display, drawn
        """
        truth, probabilities = truth_and_probabilities(estimator, X, y)
        if loss is None:
            # Others of scikit-learn's classifiers have a loss too: the one they are fitted with.
            loss = estimator.loss if hasattr(estimator, "decide") and hasattr(estimator, "loss") else "hamming"
        return cls.from_predictions(truth, probabilities, loss=loss, name=name_of(estimator, name), **options)

    def plot(self, ax: Any = None, **style: Any) -> Self:
        """Draw on the given axes, or on new ones; earlier drawings stay.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure if it is not given.
        **style
            Properties of the model's line, for example ``color``.

        Returns
        -------
        display : the display itself
            With the attributes ``ax_`` and ``figure_``.
        """
        ax = self._use_axes(ax)
        self._draw(ax, next_model_style(ax, style))
        return self

    @abstractmethod
    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        """Add the lines in the style of the model, the titles of the axes and the legend."""

    def _legend_label(self, summary: str) -> str:
        """Return the name of the model, if it has one, with a summary of the curve."""
        return summary if self.name is None else f"{self.name} ({summary})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.curve!r}{'' if self.name is None else f', name={self.name!r}'})"


class RiskCoverageDisplay(CurveDisplay):
    """The loss of the answers against the share of labels answered: lower is better.

    Parameters
    ----------
    curve : RiskCoverageCurve
    name : str, optional
        The name of the model in the legend.

    Attributes
    ----------
    ax_ : matplotlib axes
        Where it was drawn.
    figure_ : matplotlib figure

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.curves import RiskCoverageDisplay
    >>> random = np.random.default_rng(0)
    >>> p = random.random((500, 3))
    >>> display = RiskCoverageDisplay.from_predictions(random.random((500, 3)) < p, p, name="my model")
    >>> round(display.curve.area, 3), round(display.curve.at(0.5), 3)
    (0.251, 0.17)
    """

    compute = staticmethod(risk_coverage_curve)
    curve: RiskCoverageCurve

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        curve = self.curve
        _draw_line(ax, curve.coverage, curve.risk, style, self._legend_label(f"AURC {curve.area:.3f}"))
        _draw_band(ax, curve.band, style["color"])
        ax.set(xlim=(0, 1.01), xlabel="share of labels answered", ylabel=f"{curve.loss.axis_title} per {curve.per}")
        ax.set_ylim(bottom=0)
        draw_legend(ax, "upper left")


class AccuracyRejectionDisplay(CurveDisplay):
    """The share of right answers against the share of labels abstained on: higher is better.

    Parameters
    ----------
    curve : AccuracyRejectionCurve
    name : str, optional
        The name of the model in the legend.

    Attributes
    ----------
    ax_ : matplotlib axes
        Where it was drawn.
    figure_ : matplotlib figure

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.curves import AccuracyRejectionDisplay
    >>> random = np.random.default_rng(0)
    >>> p = random.random((500, 3))
    >>> display = AccuracyRejectionDisplay.from_predictions(random.random((500, 3)) < p, p)
    >>> round(display.curve.area, 2)
    0.88
    """

    compute = staticmethod(accuracy_rejection_curve)
    curve: AccuracyRejectionCurve

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        curve = self.curve
        _draw_line(ax, curve.rejection, curve.accuracy, style, self._legend_label(f"area {curve.area:.3f}"))
        _draw_band(ax, curve.band, style["color"])
        ax.set(xlim=(0, 1.01), xlabel="share of labels left open", ylabel="share of right answers")
        ax.set_ylim(top=1.0 + 0.02 * (1.0 - ax.get_ylim()[0]))
        draw_legend(ax, "lower right")


class ErrorCaptureDisplay(CurveDisplay):
    """The share of errors caught against the share of labels reviewed: higher is better.

    The dotted line in the colour of the model is the ideal, where only wrong labels are reviewed until there are no
    more; the grey diagonal is what reviewing at random would catch.

    Parameters
    ----------
    curve : ErrorCaptureCurve
    name : str, optional
        The name of the model in the legend.

    Attributes
    ----------
    ax_ : matplotlib axes
        Where it was drawn.
    figure_ : matplotlib figure

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.curves import ErrorCaptureDisplay
    >>> random = np.random.default_rng(0)
    >>> p = random.random((500, 3))
    >>> display = ErrorCaptureDisplay.from_predictions(random.random((500, 3)) < p, p)
    >>> round(display.curve.at(0.2), 2)
    0.34
    """

    compute = staticmethod(error_capture_curve)
    curve: ErrorCaptureCurve

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        curve = self.curve
        label = self._legend_label(f"area {curve.area:.3f}, ideal {curve.ideal_area:.3f}")
        _draw_line(ax, curve.reviewed, curve.captured, style, label)
        _draw_band(ax, curve.band, style["color"])
        ax.plot([0, curve.error_rate, 1], [0, 1, 1], linestyle=":", **_thin(style))
        draw_reference(ax, [], [], "ideal: errors first", ":")
        draw_reference(ax, [0, 1], [0, 1], "at random", "-.")
        ax.set(xlim=(0, 1.01), ylim=(0, 1.02), xlabel="share of labels reviewed", ylabel="share of errors caught")
        draw_legend(ax, "lower right")


class CostCurveDisplay(CurveDisplay):
    """The generalised loss against the cost of an abstention, and below it the share of abstained labels.

    The thin line in the colour of the model is the loss of answering everything, the grey one the cost of abstaining
    on everything: abstaining optimally is below both if the probabilities are right. The loss that the probabilities
    expect is dotted.

    Parameters
    ----------
    curve : CostCurve
    name : str, optional
        The name of the model in the legend.

    Attributes
    ----------
    ax_ : pair of matplotlib axes, or one
        Where it was drawn: the loss, and the share of abstained labels.
    figure_ : matplotlib figure

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.curves import CostCurveDisplay
    >>> random = np.random.default_rng(0)
    >>> p = random.random((500, 3))
    >>> display = CostCurveDisplay.from_predictions(random.random((500, 3)) < p, p, name="my model")
    >>> round(display.curve.at(0.2).abstention, 2)
    0.58
    """

    compute = staticmethod(cost_curve)
    figure_size = (5.2, 5.6)
    curve: CostCurve

    def plot(self, ax: Any = None, **style: Any) -> Self:
        """Draw on the given axes, or on new ones; earlier drawings stay.

        Parameters
        ----------
        ax : pair of matplotlib axes, or one, optional
            For the loss, and for the share of abstained labels, which is left out on a single one.
        **style
            Properties of the model's lines, for example ``color``.

        Returns
        -------
        display : the display itself
            With the attributes ``ax_`` and ``figure_``.
        """
        axes = np.ravel(new_axes(self.figure_size, 2, (3, 2)) if ax is None else ax)
        if len(axes) > 2:
            raise InvalidParameter(f"ax has {len(axes)} axes; a cost curve is drawn on two, or one")
        model_style = next_model_style(axes[0], style)
        self._draw(axes[0], model_style)
        if len(axes) == 2:
            self._draw_abstention(axes[1], model_style)
            axes[0].set_xlabel("")
        self.ax_ = axes if len(axes) == 2 else axes[0]
        self.figure_ = axes[0].figure
        return self

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        curve, thin = self.curve, _thin(style)
        kind, loss = "expected", curve.expected_loss
        if curve.realized_loss is not None:
            kind, loss = "realized", curve.realized_loss
            _draw_line(ax, *self._generalized(curve.expected_loss), {**thin, "linestyle": ":"})
            draw_reference(ax, [], [], "what the probabilities expect", ":")
        ax.axhline(loss[-1], **thin)
        draw_reference(ax, [], [], "answer everything", "-")
        end = 10 * self._highest_cost  # the next model may reach further
        draw_reference(ax, [0, end], [0, end * curve.n_labels], "leave everything open", "-.")
        _draw_line(ax, *self._generalized(loss), style, self.name or "abstain optimally")
        _draw_band(ax, curve.bands.get(f"{kind}_generalized_loss"), style["color"], self._highest_cost)
        self._set_limits(ax, 1.15 * max(loss.max(), curve.expected_loss[-1]))
        ax.set(xlabel="cost of an open label", ylabel=f"generalised {curve.loss.axis_title}")
        draw_legend(ax, "lower right")

    def _draw_abstention(self, ax: Any, style: dict[str, Any]) -> None:
        costs, share = np.append(self.curve.costs, self._highest_cost), self.curve.abstention
        steps = {**style, "drawstyle": "steps-post"}
        _draw_line(ax, costs, np.append(share, share[-1]), steps, self.name or "abstain optimally")
        _draw_band(ax, self.curve.bands.get("abstention"), style["color"], self._highest_cost, "post")
        self._set_limits(ax, 1.05 * share[0])
        ax.set(xlabel="cost of an open label", ylabel="share of labels left open")

    @property
    def _highest_cost(self) -> float:
        """The cost at which the drawing ends, a little beyond the last change."""
        return 1.1 * float(self.curve.costs[-1]) or 1.0

    def _generalized(self, loss: Floats) -> tuple[Floats, Floats]:
        """Return where each step of the generalised loss begins and ends: it rises with the cost, and may jump."""
        x = np.repeat(np.append(self.curve.costs, self._highest_cost), 2)[1:-1]
        return x, np.repeat(loss, 2) + x * np.repeat(self.curve.abstention * self.curve.n_labels, 2)

    def _set_limits(self, ax: Any, top: float) -> None:
        """Set limits that show this curve and those drawn before."""
        right = self._highest_cost
        if count_models(ax) > 1:
            right, top = max(right, ax.get_xlim()[1]), max(top, ax.get_ylim()[1])
        ax.set(xlim=(0, right), ylim=(0, top or 1.0))


def _thin(style: dict[str, Any]) -> dict[str, Any]:
    """Return the style of a thin line in the colour of the model."""
    return {"color": style["color"], "linewidth": REFERENCE_LINE_WIDTH, "zorder": 1}


def _draw_line(ax: Any, x: Any, y: Any, style: dict[str, Any], label: str | None = None) -> None:
    """Draw a line with as many points as can be seen, the line of a model if it has a label; x is monotone."""
    points = select_points(x if x[0] <= x[-1] else -x, MAX_LINE_POINTS)
    ax.plot(x[points], y[points], label=label, gid=None if label is None else MODEL_GID, **style)


def _draw_band(
    ax: Any, band: Band | None, color: Any, end: float | None = None, step: Literal["post"] | None = None
) -> None:
    """Draw a confidence band in a light shade, its last point extended up to `end` if that is given."""
    if band is None:
        return
    x, low, high = band.x, band.low, band.high
    if end is not None:
        x, low, high = np.append(x, end), np.append(low, low[-1:]), np.append(high, high[-1:])
    ax.fill_between(x, low, high, step=step, color=color, alpha=0.18, linewidth=0)
