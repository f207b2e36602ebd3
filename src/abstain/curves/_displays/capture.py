"""Error-capture curves, drawn."""

from typing import Any

from abstain.curves._capture import ErrorCaptureCurve, error_capture_curve
from abstain.curves._displays.base import THIN, CurveDisplay, draw_band, draw_legend, draw_line, draw_once


class ErrorCaptureDisplay(CurveDisplay):
    """The share of errors caught against the share of labels reviewed: higher is better.

    The dotted line in the colour of the model is the ideal, where only wrong labels are reviewed until there are no
    more; the grey diagonal is what reviewing at random would catch.

    Parameters
    ----------
    curve : ErrorCaptureCurve
    name : str, optional
        What the model is called in the legend.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.curves._displays import ErrorCaptureDisplay
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
        called = self._called(f"area {curve.area:.3f}, ideal {curve.ideal_area:.3f}")
        draw_line(ax, curve.reviewed, curve.captured, style, called)
        draw_band(ax, curve.band, style["color"])
        ideal = {"color": style["color"], "linewidth": THIN, "linestyle": ":", "zorder": 1}
        ax.plot([0, curve.error_rate, 1], [0, 1, 1], **ideal)
        draw_once(ax, [], [], "ideal: errors first", ":")
        draw_once(ax, [0, 1], [0, 1], "at random", "-.")
        ax.set(xlim=(0, 1.01), ylim=(0, 1.02), xlabel="share of labels reviewed", ylabel="share of errors caught")
        draw_legend(ax, "lower right")
