"""Cost curves: loss and abstention against the cost of an abstention."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from abstain._core.kernels.choice import tipped
from abstain._core.losses import Loss, LossLike
from abstain._core.penalties import Linear
from abstain._utils.html import chart
from abstain._utils.types import Floats
from abstain._utils.wording import plural
from abstain.curves._bootstrap import MAX_BAND_POINTS, Band, Bootstrap, select_points
from abstain.curves._break_points import MergedPath, merge_paths


class CostPoint(NamedTuple):
    """The values of a cost curve at one cost, on average over the instances; None if they need the truth."""

    cost: float
    abstention: float
    expected_loss: float
    realized_loss: float | None
    expected_generalized_loss: float
    realized_generalized_loss: float | None


@dataclass(frozen=True, eq=False)
class CostCurve:
    """Abstention and losses as functions of the cost c, exact for every c.

    Abstention and the losses of the answers are steps: values[k] holds for costs from ``costs[k]`` up to, not
    including, ``costs[k + 1]``, the last one for all costs from there on. The generalised losses are c · (number of
    abstained labels) more, so they rise in between; their values are those at ``costs[k]``. Values that need the truth
    are None without it.

    Attributes
    ----------
    loss : Loss
    n_instances, n_labels : int
    costs : float array of shape (n_points,)
        0, then every cost at which the decision for any instance changes.
    abstention : float array of shape (n_points,)
        The share of labels abstained on.
    expected_loss : float array of shape (n_points,)
        E[ℓ(y_D, ŷ_D)] of the answers, according to the probabilities.
    realized_loss : float array of shape (n_points,), or None
        ℓ(y_D, ŷ_D) of the answers, given the truth.
    bands : mapping of str to Band
        Confidence bands against the cost, by the name of the quantity; empty without bootstrap samples.
    """

    loss: Loss
    n_instances: int
    n_labels: int
    costs: Floats
    abstention: Floats
    expected_loss: Floats
    realized_loss: Floats | None
    bands: Mapping[str, Band] = field(default_factory=dict)

    @property
    def expected_generalized_loss(self) -> Floats:
        """E[ℓ(y_D, ŷ_D)] + c · |A|."""
        return self.expected_loss + self.costs * self.abstention * self.n_labels

    @property
    def realized_generalized_loss(self) -> Floats | None:
        """ℓ(y_D, ŷ_D) + c · |A|."""
        return None if self.realized_loss is None else self.realized_loss + self.costs * self.abstention * self.n_labels

    def at(self, cost: float) -> CostPoint:
        """Return the values at any cost."""
        c = Linear(cost).cost
        k = int(np.searchsorted(self.costs, tipped(c, self.loss.tie_scale), side="right")) - 1
        charge = c * float(self.abstention[k]) * self.n_labels if self.abstention[k] else 0.0
        expected = float(self.expected_loss[k])
        realized = None if self.realized_loss is None else float(self.realized_loss[k])
        total = None if realized is None else realized + charge
        return CostPoint(c, float(self.abstention[k]), expected, realized, expected + charge, total)

    def __repr__(self) -> str:
        full = self.expected_loss[-1]
        size = f"{plural(self.n_instances, 'instance')} × {plural(self.n_labels, 'label')}"
        known = "" if self.realized_loss is None else f" ({self.realized_loss[-1]:.4g} realized)"
        changes = f"{plural(len(self.costs) - 1, 'break point')} up to {self.costs[-1]:.4g}"
        return f"CostCurve of {size} for {self.loss!r}: {changes}; loss when all is answered {full:.4g}{known}"

    def _repr_html_(self) -> str:
        losses, title = self.realized_loss, "loss of the answers"
        if losses is None:
            losses, title = self.expected_loss, "expected loss of the answers"
        return chart(repr(self), self.costs, losses, ("cost of an abstention", title), steps=True)


def cost_curve(
    probabilities: Any,
    *,
    y_true: Any = None,
    loss: LossLike = "hamming",
    n_bootstrap: int = 0,
    confidence: float = 0.95,
    random_state: Any = None,
) -> CostCurve:
    """E[ℓ(y_D, ŷ_D)], ℓ(y_D, ŷ_D), |A| / m and the generalised losses of the optimal answers, against the cost c.

    Parameters
    ----------
    probabilities : array-like of shape (n_instances, n_labels)
        P(label is relevant), as for `abstain.decide`.
    y_true : array-like of shape (n_instances, n_labels), optional
        The truth, 0 or 1. Without it, only expected losses are known.
    loss : str or Loss, default="hamming"
        What wrong answers cost, as for `abstain.decide`.
    n_bootstrap : int, default=0
        Number of bootstrap samples for the curve's ``bands``; 0 for no bands, 200 will do.
    confidence : float, default=0.95
        The share of the samples that a band holds, at each point by itself.
    random_state : int, Generator or None, default=None
        Draws the samples.

    Returns
    -------
    curve : CostCurve

    Examples
    --------
    >>> from abstain.curves import cost_curve
    >>> curve = cost_curve([[0.9, 0.8], [0.4, 0.1]], y_true=[[1, 0], [1, 0]])
    >>> curve.costs.round(2), curve.abstention
    (array([0. , 0.1, 0.2, 0.4]), array([1.  , 0.5 , 0.25, 0.  ]))
    >>> curve.realized_loss, curve.realized_generalized_loss.round(2)
    (array([0. , 0. , 0.5, 1. ]), array([0. , 0.1, 0.6, 1. ]))
    >>> curve.at(0.3).abstention
    0.25
    """
    bootstrap = Bootstrap(n_bootstrap, confidence, random_state)
    merged = merge_paths(probabilities, y_true, loss)
    known = merged.outcomes
    return CostCurve(
        loss=known.loss,
        n_instances=len(known),
        n_labels=known.n_labels,
        costs=merged.costs,
        abstention=merged.totals(known.path.flat_counts) / (len(known) * known.n_labels),
        expected_loss=merged.means(known.expected),
        realized_loss=None if known.realized is None else merged.means(known.realized),
        bands=_bands(merged, bootstrap) if bootstrap else {},
    )


def _bands(merged: MergedPath, bootstrap: Bootstrap) -> dict[str, Band]:
    known, points = merged.outcomes, np.arange(len(merged.costs))
    if len(points) > MAX_BAND_POINTS:  # half of them evenly along the costs, half where the decisions change
        half = MAX_BAND_POINTS // 2
        points = np.union1d(select_points(merged.costs, half), select_points(merged.totals(known.answered), half))
    losses = {"expected": known.expected} | ({} if known.realized is None else {"realized": known.realized})
    means = bootstrap.means(merged, points, {"n_abstained": known.path.flat_counts, **losses})
    costs, n_abstained = merged.costs[points], means["n_abstained"]
    bands = {"abstention": bootstrap.band(costs, n_abstained / known.n_labels)}
    for name in losses:
        bands[f"{name}_loss"] = bootstrap.band(costs, means[name])
        bands[f"{name}_generalized_loss"] = bootstrap.band(costs, means[name] + costs * n_abstained)
    return bands
