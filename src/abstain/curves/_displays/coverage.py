"""Risk–coverage curves, drawn."""

from typing import Any

from abstain.curves._coverage import RiskCoverageCurve, risk_coverage_curve
from abstain.curves._displays.base import CurveDisplay, draw_band, draw_legend, draw_line


class RiskCoverageDisplay(CurveDisplay):
    """The loss of the answers against the share of labels answered: lower is better.

    Parameters
    ----------
    curve : RiskCoverageCurve
    name : str, optional
        What the model is called in the legend.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.curves._displays import RiskCoverageDisplay
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
        draw_line(ax, curve.coverage, curve.risk, style, self._called(f"AURC {curve.area:.3f}"))
        draw_band(ax, curve.band, style["color"])
        ax.set(xlim=(0, 1.01), xlabel="share of labels answered", ylabel=f"{curve.loss.axis_title} per {curve.per}")
        ax.set_ylim(bottom=0)
        draw_legend(ax, "upper left")
