"""Reliability curves, drawn: computing them is `reliability_curve`'s work."""

from collections.abc import Hashable, Sequence
from typing import Any, Self

from abstain._core.targets import truth_and_probabilities
from abstain._utils.extras import optional
from abstain.calibration._diagnostics import ReliabilityCurve, Strategy, reliability_curve

POOLED, SINGLE = "#0072b2", "#999999"


class ReliabilityDisplay:
    """Share of relevant labels against the probability they were given: all together, and faintly each label.

    Parameters
    ----------
    pooled : ReliabilityCurve
        Of all labels together.
    labels : sequence of ReliabilityCurve
        Of each label.
    name : str, optional
        What the model is called in the legend.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.calibration import ReliabilityDisplay
    >>> random = np.random.default_rng(0)
    >>> probabilities = random.random((500, 3))
    >>> truth = random.random((500, 3)) < probabilities**2  # they claim too much
    >>> display = ReliabilityDisplay.from_predictions(truth, probabilities, name="my model")
    >>> round(display.pooled.calibration_error, 2)
    0.15
    """

    def __init__(
        self, pooled: ReliabilityCurve, labels: Sequence[ReliabilityCurve] = (), name: str | None = None
    ) -> None:
        self.pooled = pooled
        self.labels = labels
        self.name = name

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        probabilities: Any,
        *,
        n_bins: int = 10,
        strategy: Strategy = "uniform",
        min_count: int = 10,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Compute the curves and draw them. Parameters as for `reliability_curve`; `ax` as for `plot`.

        Bins are of equal width, so that the range in which decisions are made can be seen, however rare the labels
        are; where there are few entries, bins are wider.
        """
        options: Any = {"n_bins": n_bins, "strategy": strategy, "min_count": min_count}
        pooled = reliability_curve(y_true, probabilities, **options)
        labels = reliability_curve(y_true, probabilities, **options, average=None)
        assert isinstance(pooled, ReliabilityCurve)
        assert isinstance(labels, list)
        return cls(pooled, labels, name).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, name: str | None = None, **options: Any) -> Self:
        """Ask a fitted classifier for its probabilities; the rest is as for `from_predictions`."""
        truth, probabilities = truth_and_probabilities(estimator, X, y)
        chosen = type(estimator).__name__ if name is None else name
        return cls.from_predictions(truth, probabilities, name=chosen, **options)

    def plot(self, ax: Any = None, *, highlight: Hashable | None = None) -> Self:
        """Draw on the given axes, or on new ones. `highlight` names a label to be drawn strongly."""
        plt = optional("matplotlib.pyplot", "drawing needs matplotlib")
        ax = plt.subplots(figsize=(4.5, 4.5), layout="constrained")[1] if ax is None else ax
        ax.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":", label="perfect")
        for i, curve in enumerate(self.labels):
            strong = highlight is not None and curve.label == highlight
            style = {"color": "#d55e00", "linewidth": 1.8} if strong else {"color": SINGLE, "linewidth": 0.6}
            shown = str(curve.label) if strong else "each label" if i == 0 else None
            ax.plot(curve.predicted, curve.observed, alpha=1.0 if strong else 0.5, label=shown, **style)
        low, high = self.pooled.interval()
        called = f"{self.name or 'all labels'} (error {self.pooled.calibration_error:.3f})"
        ax.errorbar(
            self.pooled.predicted,
            self.pooled.observed,
            yerr=[self.pooled.observed - low, high - self.pooled.observed],
            color=POOLED,
            marker="o",
            markersize=4,
            capsize=2,
            label=called,
        )
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        ax.set(xlabel="mean probability", ylabel="share of relevant labels")
        ax.legend(loc="upper left", frameon=False, fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
