"""Accuracy–rejection curves, drawn."""

from typing import Any

from abstain.curves._displays.base import CurveDisplay, draw_band, draw_legend, draw_line
from abstain.curves._rejection import AccuracyRejectionCurve, accuracy_rejection_curve


class AccuracyRejectionDisplay(CurveDisplay):
    """The share of right answers against the share of labels left open: higher is better.

    Parameters
    ----------
    curve : AccuracyRejectionCurve
    name : str, optional
        What the model is called in the legend.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.curves._displays import AccuracyRejectionDisplay
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
        draw_line(ax, curve.rejection, curve.accuracy, style, self._called(f"area {curve.area:.3f}"))
        draw_band(ax, curve.band, style["color"])
        ax.set(xlim=(0, 1.01), xlabel="share of labels left open", ylabel="share of right answers")
        ax.set_ylim(top=1.0 + 0.02 * (1.0 - ax.get_ylim()[0]))
        draw_legend(ax, "lower right")
