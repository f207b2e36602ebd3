"""Cost curves, drawn."""

from typing import Any, Self

import numpy as np

from abstain._utils.types import Floats
from abstain.curves._cost import CostCurve, cost_curve
from abstain.curves._displays.base import (
    MODEL,
    THIN,
    CurveDisplay,
    draw_band,
    draw_legend,
    draw_line,
    draw_once,
    new_axes,
    next_look,
)


class CostCurveDisplay(CurveDisplay):
    """The generalised loss against the cost of an abstention, and below it how many labels are left open.

    The thin line in the colour of the model is the loss of answering everything, the grey one what leaving everything
    open costs: abstaining optimally is below both if the probabilities are right. What they expect is dotted.

    Parameters
    ----------
    curve : CostCurve
    name : str, optional
        What the model is called in the legend.

    Attributes
    ----------
    ax_ : pair of axes, or one
        Where it was drawn: the loss, and the share of labels left open.
    figure_

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.curves._displays import CostCurveDisplay
    >>> random = np.random.default_rng(0)
    >>> p = random.random((500, 3))
    >>> display = CostCurveDisplay.from_predictions(random.random((500, 3)) < p, p, name="my model")
    >>> round(display.curve.at(0.2).abstention, 2)
    0.58
    """

    compute = staticmethod(cost_curve)
    size = (5.2, 5.6)
    curve: CostCurve

    def plot(self, ax: Any = None, **style: Any) -> Self:
        """Draw on the given axes, or on new ones; what is drawn there already stays.

        Parameters
        ----------
        ax : pair of matplotlib axes, or one, optional
            For the loss, and for the share of labels left open, which a single one leaves out.
        **style
            For the lines, for example ``color``.
        """
        axes = np.ravel(new_axes(self.size, 2, (3, 2)) if ax is None else ax)
        if len(axes) > 2:
            raise ValueError(f"ax has {len(axes)} axes; a cost curve is drawn on two, or one")
        look = next_look(axes[0], style)
        self._draw(axes[0], look)
        if len(axes) == 2:
            self._draw_abstention(axes[1], look)
            axes[0].set_xlabel("")
        self.ax_ = axes if len(axes) == 2 else axes[0]
        self.figure_ = axes[0].figure
        return self

    def _draw(self, ax: Any, style: dict[str, Any]) -> None:
        curve, thin = self.curve, {"color": style["color"], "linewidth": THIN, "zorder": 1}
        kind, loss = "expected", curve.expected_loss
        if curve.realized_loss is not None:
            kind, loss = "realized", curve.realized_loss
            draw_line(ax, *self._total(curve.expected_loss), {**thin, "linestyle": ":"})
            draw_once(ax, [], [], "what the probabilities expect", ":")
        ax.axhline(loss[-1], **thin)
        draw_once(ax, [], [], "answer everything", "-")
        beyond = 10 * self._end  # the next model may reach further
        draw_once(ax, [0, beyond], [0, beyond * curve.n_labels], "leave everything open", "-.")
        draw_line(ax, *self._total(loss), style, self.name or "abstain optimally")
        draw_band(ax, curve.bands.get(f"{kind}_generalized_loss"), style["color"], self._end)
        self._reach(ax, 1.15 * max(loss.max(), curve.expected_loss[-1]))
        ax.set(xlabel="cost of an open label", ylabel=f"generalised {curve.loss.axis_title}")
        draw_legend(ax, "lower right")

    def _draw_abstention(self, ax: Any, style: dict[str, Any]) -> None:
        costs, share = np.append(self.curve.costs, self._end), self.curve.abstention
        steps = {**style, "drawstyle": "steps-post"}
        draw_line(ax, costs, np.append(share, share[-1]), steps, self.name or "abstain optimally")
        draw_band(ax, self.curve.bands.get("abstention"), style["color"], self._end, "post")
        self._reach(ax, 1.05 * share[0])
        ax.set(xlabel="cost of an open label", ylabel="share of labels left open")

    @property
    def _end(self) -> float:
        """A little beyond the last change."""
        return 1.1 * float(self.curve.costs[-1]) or 1.0

    def _total(self, loss: Floats) -> tuple[Floats, Floats]:
        """Where each step of the generalised loss begins and ends: it rises with the cost, and may jump."""
        x = np.repeat(np.append(self.curve.costs, self._end), 2)[1:-1]
        return x, np.repeat(loss, 2) + x * np.repeat(self.curve.abstention * self.curve.n_labels, 2)

    def _reach(self, ax: Any, top: float) -> None:
        """So far that this curve can be seen, and those drawn before."""
        right = self._end
        if sum(line.get_gid() == MODEL for line in ax.get_lines()) > 1:
            right, top = max(right, ax.get_xlim()[1]), max(top, ax.get_ylim()[1])
        ax.set(xlim=(0, right), ylim=(0, top or 1.0))
