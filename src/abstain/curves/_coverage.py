"""How wrong the answers are against how many there are."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from abstain._core.losses import Loss, LossLike
from abstain._utils.errors import InvalidLoss
from abstain._utils.html import chart
from abstain._utils.types import Floats
from abstain._utils.wording import plural
from abstain.curves._bootstrap import Band, Bootstrap, on_grid, spread
from abstain.curves._break_points import Sweep, scored_sweep


@dataclass(frozen=True, eq=False)
class RiskCoverageCurve:
    """The risk for each share of labels that some cost leads to; labels of equal cost are answered together."""

    loss: Loss
    costs: Floats
    """From which cost on, increasing."""
    coverage: Floats
    """The share of labels answered, increasing to 1."""
    risk: Floats
    """The average loss of an instance, or of an answer (nan where there is none)."""
    per: Literal["instance", "answer"] = "instance"
    band: Band | None = None
    """Against the coverage."""

    @property
    def area(self) -> float:
        """AURC: the mean risk when all coverages are equally likely; lower is better.

        Between two points, and below the first, the labels that would be answered next are taken to be picked at
        random, so the loss of the answers grows linearly: from 0 without any. Per instance that is the trapezoidal
        rule. Per answer the risk is that line over the coverage.
        """
        if self.per == "answer":
            return area_under_rate(self.coverage, self.risk)
        return float(np.trapezoid(np.append(0.0, self.risk), np.append(0.0, self.coverage)))

    def at(self, coverage: float) -> float:
        """The risk at any coverage, where labels between two points are picked at random."""
        share = read_share(coverage, "coverage")
        if self.per == "answer":
            return rate_at(share, self.coverage, self.risk)
        return float(np.interp(share, np.append(0.0, self.coverage), np.append(0.0, self.risk)))

    def __repr__(self) -> str:
        size = f"{plural(len(self.costs), 'point')}, AURC {self.area:.4g}"
        return f"RiskCoverageCurve for {self.loss!r} per {self.per}: {size}, risk {self.risk[-1]:.4g} at full coverage"

    def _repr_html_(self) -> str:
        return chart(repr(self), self.coverage, self.risk, ("coverage", "risk"))


def risk_coverage_curve(
    y_true: Any,
    probabilities: Any,
    *,
    loss: LossLike = "hamming",
    per: Literal["instance", "answer"] = "instance",
    n_bootstrap: int = 0,
    confidence: float = 0.95,
    random_state: Any = None,
) -> RiskCoverageCurve:
    """Σ ℓ(y_D, ŷ_D) / n against Σ |D| / (n · m): what answering more labels costs.

    With ``per="answer"`` it is Σ ℓ(y_D, ŷ_D) / Σ |D|, for the Hamming loss the share of wrong answers: what selective
    classification calls the risk. Other losses are no sums over labels, and are refused.

    Parameters
    ----------
    probabilities, loss
        As for `abstain.decide`.
    y_true : n × m table of 0 and 1
    per : {"instance", "answer"}
        What the loss is divided by.
    n_bootstrap, confidence, random_state
        As for `cost_curve`.

    Examples
    --------
    >>> from abstain.curves import risk_coverage_curve
    >>> curve = risk_coverage_curve([[1, 0], [1, 0]], [[0.9, 0.8], [0.4, 0.1]])
    >>> curve.coverage, curve.risk
    (array([0.  , 0.5 , 0.75, 1.  ]), array([0. , 0. , 0.5, 1. ]))
    >>> curve.area, round(curve.at(0.6), 3)
    (0.25, 0.2)
    """
    if per not in ("instance", "answer"):
        raise ValueError(f"per is {per!r}; expected 'instance' or 'answer'")
    draws = Bootstrap(n_bootstrap, confidence, random_state)
    found = scored_sweep(probabilities, y_true, loss, "a risk–coverage curve")
    known = found.outcomes
    if per == "answer" and not known.loss.is_decomposable:
        raise InvalidLoss(
            f"{known.loss!r} is not a sum over labels, so there is no risk per answer; use per='instance', or "
            "accuracy_rejection_curve for the share of wrong answers"
        )
    assert known.realized is not None
    coverage = found.totals(known.answered) / (len(known) * known.n_labels)
    losses = found.means(known.realized)
    share = known.n_labels if per == "answer" else None
    risk = losses if share is None else rate(losses / share, coverage)
    band = band_of_coverage(found, known.realized, share, draws) if draws else None
    return RiskCoverageCurve(known.loss, found.costs, coverage, risk, per, band)


def band_of_coverage(found: Sweep, values: Any, share: int | None, draws: Bootstrap) -> Band:
    """The band of a mean against the coverage; if it is shared among so many labels, of what an answer has of it."""
    known = found.outcomes
    coverage = found.totals(known.answered) / (len(known) * known.n_labels)
    points = spread(coverage)
    coverages, means = draws.means(found, points, known.answered / known.n_labels, values)
    grid = coverage[points]
    if share is None:
        return draws.band(grid, on_grid(grid, coverages, means))
    grid = grid[grid > 0]
    return draws.band(grid, on_grid(grid, coverages, means) / (share * grid))


def rate(values: Floats, coverage: Floats) -> Floats:
    """Values over the coverage; nan where nothing is answered."""
    return np.divide(values, coverage, out=np.full(len(values), np.nan), where=coverage > 0)


def area_under_rate(coverage: Floats, rates: Floats) -> float:
    """∫ w(x)/x dx from 0 to 1, for w = rate · coverage that is linear between the points and from 0 to the first."""
    used = coverage > 0
    x, w = coverage[used], (coverage * rates)[used]
    slope = np.diff(w) / np.diff(x)
    return float(w[0] + (np.diff(w) + (w[:-1] - slope * x[:-1]) * np.log(x[1:] / x[:-1])).sum())


def rate_at(share: float, coverage: Floats, rates: Floats) -> float:
    """w(x)/x for the same w; below the first point the rate is the first one's."""
    used = coverage > 0
    x = max(share, float(coverage[used][0]))
    return float(np.interp(x, coverage[used], (coverage * rates)[used]) / x)


def read_share(share: Any, name: str) -> float:
    """A number from 0 to 1, or an error that names it."""
    if not isinstance(share, Real) or not 0 <= float(share) <= 1:
        raise ValueError(f"{name} is {share!r}; expected a number from 0 to 1")
    return float(share)
