"""Loss and abstention against the cost of an abstention."""

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
from abstain.curves._bootstrap import POINTS, Band, Bootstrap, spread
from abstain.curves._break_points import Sweep, sweep


class CostPoint(NamedTuple):
    """What one cost leads to, on average over the instances."""

    cost: float
    abstention: float
    expected_loss: float
    realized_loss: float | None
    expected_generalized_loss: float
    realized_generalized_loss: float | None


@dataclass(frozen=True, eq=False)
class CostCurve:
    """All of it as functions of the cost c, exact for every c.

    Abstention and the losses of the answers are steps: values[k] holds for costs from ``costs[k]`` up to, not
    including, ``costs[k + 1]``, the last one for all costs from there on. The generalised losses are c · (number of
    open labels) more, so they rise in between; their values are those at ``costs[k]``. What needs the truth is None
    without it.
    """

    loss: Loss
    n_instances: int
    n_labels: int
    costs: Floats
    """0, then every cost at which the decision for any instance changes."""
    abstention: Floats
    """The share of labels left open."""
    expected_loss: Floats
    """E[ℓ(y_D, ŷ_D)] of the answers, as the probabilities have it."""
    realized_loss: Floats | None
    """ℓ(y_D, ŷ_D) of the answers, given the truth."""
    bands: Mapping[str, Band] = field(default_factory=dict)
    """For each of these quantities by its name, if there were draws: against the cost."""

    @property
    def expected_generalized_loss(self) -> Floats:
        """E[ℓ(y_D, ŷ_D)] + c · |A|."""
        return self.expected_loss + self.costs * self.abstention * self.n_labels

    @property
    def realized_generalized_loss(self) -> Floats | None:
        """ℓ(y_D, ŷ_D) + c · |A|."""
        return None if self.realized_loss is None else self.realized_loss + self.costs * self.abstention * self.n_labels

    def at(self, cost: float) -> CostPoint:
        """The values at any cost."""
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
    probabilities, loss
        As for `abstain.decide`.
    y_true : n × m table of 0 and 1, optional
        Without it, only what is expected is known.
    n_bootstrap : int, default=0
        How often instances are drawn anew for `CostCurve.bands`; 0 for no bands, 200 will do.
    confidence : float, default=0.95
        The share of the draws that a band holds, at each point by itself.
    random_state : int, Generator or None
        For the draws.

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
    draws, found = Bootstrap(n_bootstrap, confidence, random_state), sweep(probabilities, y_true, loss)
    known = found.outcomes
    abstention = found.totals(known.path.flat_counts) / (len(known) * known.n_labels)
    realized = None if known.realized is None else found.means(known.realized)
    bands = _bands(found, draws) if draws else {}
    expected = found.means(known.expected)
    return CostCurve(known.loss, len(known), known.n_labels, found.costs, abstention, expected, realized, bands)


def _bands(found: Sweep, draws: Bootstrap) -> dict[str, Band]:
    known, points = found.outcomes, np.arange(len(found.costs))
    if len(points) > POINTS:  # half of them evenly along the costs, half where the decisions change
        points = np.union1d(spread(found.costs, POINTS // 2), spread(found.totals(known.answered), POINTS // 2))
    costs = found.costs[points]
    losses = {"expected": known.expected} | ({} if known.realized is None else {"realized": known.realized})
    n_open, *means = draws.means(found, points, known.path.flat_counts, *losses.values())
    bands = {"abstention": draws.band(costs, n_open / known.n_labels)}
    for name, mean in zip(losses, means, strict=True):
        bands[f"{name}_loss"] = draws.band(costs, mean)
        bands[f"{name}_generalized_loss"] = draws.band(costs, mean + costs * n_open)
    return bands
