"""How many errors a human finds against how many labels are shown to them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from abstain._core.losses import Loss, LossLike
from abstain._utils.html import chart
from abstain._utils.types import Floats
from abstain._utils.wording import plural
from abstain.curves._bootstrap import Band, Bootstrap, on_grid, spread
from abstain.curves._break_points import require_answers, scored_sweep
from abstain.curves._coverage import read_share


@dataclass(frozen=True, eq=False)
class ErrorCaptureCurve:
    """The share of errors caught for each share of reviewed labels that some cost leads to."""

    loss: Loss
    costs: Floats
    """From which cost on, increasing."""
    reviewed: Floats
    """The share of labels left open, decreasing to 0."""
    captured: Floats
    """The share of the complete prediction's errors that is among them; nan if it has none."""
    error_rate: float
    """Of the complete prediction."""
    band: Band | None = None
    """Against the share reviewed."""

    @property
    def area(self) -> float:
        """The mean share caught when all shares of review are equally likely: ½ at random, higher is better.

        Between two points the labels to be reviewed next are taken to be picked at random, so it is the trapezoidal
        rule; reviewing everything catches everything.
        """
        return float(np.trapezoid(*self._line()[::-1]))

    @property
    def ideal_area(self) -> float:
        """1 − e/2: if the wrong labels of all, a share e, were reviewed before any right one."""
        return 1.0 - self.error_rate / 2

    def at(self, reviewed: float) -> float:
        """The share caught for any share of review, where labels between two points are picked at random."""
        return float(np.interp(read_share(reviewed, "reviewed"), *self._line()))

    def _line(self) -> tuple[Floats, Floats]:
        whole = 1.0 if self.error_rate else np.nan
        return np.append(self.reviewed[::-1], 1.0), np.append(self.captured[::-1], whole)

    def __repr__(self) -> str:
        size = f"{plural(len(self.costs), 'point')}, area {self.area:.4g} (ideal {self.ideal_area:.4g}, random 0.5)"
        return f"ErrorCaptureCurve for {self.loss!r}: {size}, {self.error_rate:.4g} of all labels wrong"

    def _repr_html_(self) -> str:
        return chart(repr(self), self.reviewed, self.captured, ("labels reviewed", "errors caught"))


def error_capture_curve(
    y_true: Any,
    probabilities: Any,
    *,
    loss: LossLike = "hamming",
    n_bootstrap: int = 0,
    confidence: float = 0.95,
    random_state: Any = None,
) -> ErrorCaptureCurve:
    """Errors of the complete prediction on open labels / all its errors, against Σ |A| / (n · m).

    Parameters
    ----------
    probabilities, loss
        As for `abstain.decide`; not the rank loss, whose rankings answer no label. The complete prediction is the
        optimal one for the loss, as ``abstain.decide(probabilities, loss, penalty="none")`` gives it.
    y_true : n × m table of 0 and 1
    n_bootstrap, confidence, random_state
        As for `cost_curve`.

    Examples
    --------
    >>> from abstain.curves import error_capture_curve
    >>> curve = error_capture_curve([[1, 0], [1, 0]], [[0.9, 0.8], [0.4, 0.1]])
    >>> curve.reviewed, curve.captured
    (array([1.  , 0.5 , 0.25, 0.  ]), array([1. , 1. , 0.5, 0. ]))
    >>> curve.at(0.4), curve.area, curve.ideal_area
    (0.8, 0.75, 0.75)
    """
    draws = Bootstrap(n_bootstrap, confidence, random_state)
    found = scored_sweep(probabilities, y_true, loss, "an error-capture curve")
    known = found.outcomes
    wrong, caught = require_answers(known, "an error-capture curve")
    size, n_open = len(known) * known.n_labels, found.totals(known.path.flat_counts)
    n_errors = int(found.totals(wrong)[-1])
    captured = found.totals(caught) / n_errors if n_errors else np.full(len(found.costs), np.nan)
    band = None
    if draws:
        points = spread(-n_open)
        reviews, catches, errors = draws.means(found, points, known.path.flat_counts / known.n_labels, caught, wrong)
        with np.errstate(invalid="ignore"):  # a draw without errors is not defined, and left out
            shares = catches / errors[:, -1:]
        all_of_it = np.ones((len(shares), 1))
        grid = n_open[points][::-1] / size
        lines = np.hstack([reviews[:, ::-1], all_of_it]), np.hstack([shares[:, ::-1], all_of_it])
        band = draws.band(grid, on_grid(grid, *lines))
    return ErrorCaptureCurve(known.loss, found.costs, n_open / size, captured, n_errors / size, band)
