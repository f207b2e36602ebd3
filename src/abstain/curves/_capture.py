"""Error-capture curves: the share of errors that reviewers find against the share of labels they review."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.losses import Loss, LossLike
from abstain._utils.html import chart
from abstain._utils.types import Floats
from abstain._utils.wording import plural
from abstain.curves._bootstrap import Band, Bootstrap, interpolate_samples, select_points
from abstain.curves._break_points import MergedPath, count_errors, merge_scored_paths
from abstain.curves._rates import read_share


@dataclass(frozen=True, eq=False)
class ErrorCaptureCurve:
    """The share of errors caught for each share of reviewed labels that some cost leads to.

    Attributes
    ----------
    loss : Loss
    costs : float array of shape (n_points,)
        The cost of an abstention from which on a point holds; increasing.
    reviewed : float array of shape (n_points,)
        The share of labels abstained on, and so reviewed; decreasing to 0.
    captured : float array of shape (n_points,)
        The share of the complete prediction's errors among the reviewed labels; nan if it has no error.
    error_rate : float
        The share of wrong labels in the complete prediction.
    band : Band or None
        Confidence band of the share captured against the share reviewed.
    """

    loss: Loss
    costs: Floats
    reviewed: Floats
    captured: Floats
    error_rate: float
    band: Band | None = None

    @property
    def area(self) -> float:
        """The mean share caught when all shares of review are equally likely: ½ at random, higher is better.

        Between two points the labels to be reviewed next are taken to be picked at random, so it is the trapezoidal
        rule; reviewing everything catches everything.
        """
        reviewed, captured = self._complete()
        return float(np.trapezoid(captured, reviewed))

    @property
    def ideal_area(self) -> float:
        """1 − e/2: if all wrong labels, a share e, were reviewed before any right one."""
        return 1.0 - self.error_rate / 2

    def at(self, reviewed: float) -> float:
        """Return the share caught for any share of review, where labels between two points are picked at random."""
        return float(np.interp(read_share(reviewed, "reviewed"), *self._complete()))

    def _complete(self) -> tuple[Floats, Floats]:
        """Return the shares reviewed, increasing up to 1, and the shares captured."""
        at_the_end = 1.0 if self.error_rate else np.nan
        return np.append(self.reviewed[::-1], 1.0), np.append(self.captured[::-1], at_the_end)

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
    """Errors of the complete prediction on abstained labels / all its errors, against Σ |A| / (n · m).

    Parameters
    ----------
    y_true : array-like of shape (n_instances, n_labels)
        The truth, 0 or 1.
    probabilities : array-like of shape (n_instances, n_labels)
        P(label is relevant), as for `abstain.decide`.
    loss : str or Loss, default="hamming"
        What wrong answers cost, as for `abstain.decide`; not the rank loss, whose rankings answer no label. The
        complete prediction is the optimal one for the loss, as ``abstain.decide(probabilities, loss, penalty="none")``
        gives it.
    n_bootstrap : int, default=0
        Number of bootstrap samples for the curve's ``band``; 0 for no band, 200 will do.
    confidence : float, default=0.95
        The share of the samples that the band holds, at each point by itself.
    random_state : int, Generator or None, default=None
        Draws the samples.

    Returns
    -------
    curve : ErrorCaptureCurve

    Examples
    --------
    >>> from abstain.curves import error_capture_curve
    >>> curve = error_capture_curve([[1, 0], [1, 0]], [[0.9, 0.8], [0.4, 0.1]])
    >>> curve.reviewed, curve.captured
    (array([1.  , 0.5 , 0.25, 0.  ]), array([1. , 1. , 0.5, 0. ]))
    >>> curve.at(0.4), curve.area, curve.ideal_area
    (0.8, 0.75, 0.75)
    """
    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    merged = merge_scored_paths(probabilities, y_true, loss, "an error-capture curve")
    known = merged.outcomes
    wrong, caught = count_errors(known, "an error-capture curve")
    n_entries, n_abstained = len(known) * known.n_labels, merged.totals(known.path.flat_counts)
    n_errors = int(merged.totals(wrong)[-1])
    captured = merged.totals(caught) / n_errors if n_errors else np.full(len(merged.costs), np.nan)
    band = _band(merged, wrong, caught, bootstrap) if bootstrap else None
    return ErrorCaptureCurve(known.loss, merged.costs, n_abstained / n_entries, captured, n_errors / n_entries, band)


def _band(merged: MergedPath, wrong: NDArray[np.int32], caught: NDArray[np.int32], bootstrap: Bootstrap) -> Band:
    known = merged.outcomes
    n_abstained = merged.totals(known.path.flat_counts)
    points = select_points(-n_abstained)
    values: dict[str, NDArray[Any]] = {
        "reviewed": known.path.flat_counts / known.n_labels,
        "caught": caught,
        "wrong": wrong,
    }
    means = bootstrap.means(merged, points, values)
    with np.errstate(invalid="ignore"):  # a sample without errors is not defined, and left out
        captured = means["caught"] / means["wrong"][:, -1:]
    everything = np.ones((bootstrap.n_bootstrap, 1))  # reviewing everything catches everything
    reviewed = np.hstack([means["reviewed"][:, ::-1], everything])
    captured = np.hstack([captured[:, ::-1], everything])
    grid = n_abstained[points][::-1] / (len(known) * known.n_labels)
    return bootstrap.band(grid, interpolate_samples(grid, reviewed, captured))
