"""The display of reliability curves."""

from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np

from abstain._core.targets import truth_and_probabilities
from abstain._utils.plotting import BLUE, GREY, LIGHT_GREY, ORANGE, Display, name_of
from abstain.calibration._diagnostics import ReliabilityCurve, Strategy, reliability_curve

SMALLEST_SHARE = 1e-5  # that the axes show
TICKS = 0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999
MINOR_TICKS = 0.02, 0.05, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.95, 0.98


class ReliabilityDisplay(Display):
    """Share of relevant labels against the probability they were given: all together, and faintly each label.

    Both axes are scaled by log-odds, so that 0.001, 0.5 and 0.999 are all apart: probabilities of rare labels are seen
    as well as the range in which decisions are made. Shares of 0 and 1 are drawn at the edge. Bars are 95 % intervals,
    and the numbers below say how many entries each point stands for.

    Parameters
    ----------
    pooled : ReliabilityCurve
        Of all labels together.
    labels : sequence of ReliabilityCurve, default=()
        Of each label.
    name : str, optional
        The name of the model in the legend.

    Attributes
    ----------
    ax_ : matplotlib axes
        Where it was drawn.
    figure_ : matplotlib figure

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

    figure_size = (4.5, 4.5)

    def __init__(
        self, pooled: ReliabilityCurve, labels: Sequence[ReliabilityCurve] = (), *, name: str | None = None
    ) -> None:
        super().__init__(name=name)
        self.pooled = pooled
        self.labels = labels

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        probabilities: Any,
        *,
        n_bins: int = 20,
        strategy: Strategy = "log-odds",
        min_count: int = 10,
        sample_weight: Any = None,
        missing_values: float | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Compute the curves and draw them.

        Bins are of equal width in log-odds: in each of the 20 the odds are twice those of the one before. Where there
        are few entries, bins are wider.

        Parameters
        ----------
        y_true : array-like of shape (n_instances, n_labels)
            The truth, 0 or 1.
        probabilities : array-like of shape (n_instances, n_labels)
            P(label is relevant), as for `abstain.decide`.
        n_bins : int, default=20
            The largest number of bins.
        strategy : {"quantile", "uniform", "log-odds"}, default="log-odds"
            As for `reliability_curve`.
        min_count : int, default=10
            The smallest number of entries in a bin, counted as for `reliability_curve`: one with fewer joins the
            smaller of its neighbours.
        sample_weight : array-like of shape (n_instances,) or (n_instances, n_labels), optional
            The weight of each instance or entry, as for `reliability_curve`.
        missing_values : None, np.nan or -1, default=None
            What stands for an unknown label in `y_true`, as for `reliability_curve`.
        name : str, optional
            The name of the model in the legend.
        ax : matplotlib axes, optional
            Where to draw, as for `plot`.

        Returns
        -------
        display : ReliabilityDisplay
        """
        options: dict[str, Any] = {
            "n_bins": n_bins,
            "strategy": strategy,
            "min_count": min_count,
            "sample_weight": sample_weight,
            "missing_values": missing_values,
        }
        pooled = reliability_curve(y_true, probabilities, **options)
        labels = reliability_curve(y_true, probabilities, **options, average=None)
        return cls(pooled, labels, name=name).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, name: str | None = None, **options: Any) -> Self:
        """Compute the curves of a fitted classifier's probabilities and draw them.

        Parameters
        ----------
        estimator : fitted classifier
            Any with ``predict_proba``, as for `abstain.label_probabilities`.
        X : array-like of shape (n_instances, n_features)
        y : array-like of shape (n_instances, n_labels) or (n_instances,)
            The truth, 0 or 1, or a vector of classes; all of it known.
        name : str, optional
            The name of the model in the legend; the name of its class, if it is not given.
        **options
            As for `from_predictions`.

        Returns
        -------
        display : ReliabilityDisplay
        """
        truth, probabilities = truth_and_probabilities(estimator, X, y)
        return cls.from_predictions(truth, probabilities, name=name_of(estimator, name), **options)

    def plot(self, ax: Any = None, *, highlight: Hashable | None = None) -> Self:
        """Draw on the given axes, or on new ones; earlier drawings stay.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure if it is not given.
        highlight : hashable, optional
            The name of a label whose curve is drawn in colour.

        Returns
        -------
        display : ReliabilityDisplay
            With the attributes ``ax_`` and ``figure_``.
        """
        ax = self._use_axes(ax)
        low, high = limits = self._limits()
        ax.plot(limits, limits, color="black", linewidth=0.8, linestyle=":", label="perfect")
        for i, curve in enumerate(self.labels):
            if highlight is not None and curve.label == highlight:
                style: dict[str, Any] = {"color": ORANGE, "linewidth": 1.8, "label": str(curve.label)}
            else:
                label = "each label" if i == 0 else None
                style = {"color": LIGHT_GREY, "linewidth": 0.6, "alpha": 0.5, "label": label}
            ax.plot(np.clip(curve.predicted, low, high), np.clip(curve.observed, low, high), **style)
        predicted, observed = np.clip([self.pooled.predicted, self.pooled.observed], low, high)
        bars = np.clip(self.pooled.interval(), low, high)
        ax.errorbar(
            predicted,
            observed,
            yerr=[observed - bars[0], bars[1] - observed],
            color=BLUE,
            marker="o",
            markersize=4,
            capsize=2,
            label=f"{self.name or 'all labels'} (error {self.pooled.calibration_error:.3f})",
        )
        for p, count in zip(predicted, self.pooled.count, strict=True):
            place = {"transform": ax.get_xaxis_transform(), "rotation": "vertical", "ha": "center", "va": "bottom"}
            ax.text(p, 0.01, f"{count:,}", fontsize=5.5, color=GREY, **place)
        ax.set(xscale="logit", yscale="logit", xlim=limits, ylim=limits, aspect="equal")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_ticks(TICKS, list(map(str, TICKS)))
            axis.set_ticks(MINOR_TICKS, [""] * len(MINOR_TICKS), minor=True)
        ax.set(xlim=limits, ylim=limits)  # ticks would widen them
        ax.set(xlabel="mean probability", ylabel="share of relevant labels")
        ax.legend(loc="upper left", frameon=False, fontsize="small")
        return self

    def _limits(self) -> tuple[float, float]:
        """Return the limits of both axes: all points of the pooled curve are inside, and so are 0.1 and 0.9."""
        shares = np.concatenate([self.pooled.predicted, self.pooled.observed])
        inside = shares[(shares > SMALLEST_SHARE) & (shares < 1 - SMALLEST_SHARE)]
        low, high = min(inside.min(initial=0.1), 0.1), max(inside.max(initial=0.9), 0.9)
        return low / 2, (1 + high) / 2
