"""The display of reliability curves."""

from collections.abc import Hashable, Sequence
from typing import Any, Self

from abstain._core.targets import truth_and_probabilities
from abstain._utils.plotting import BLUE, LIGHT_GREY, ORANGE, Display, name_of
from abstain.calibration._diagnostics import ReliabilityCurve, Strategy, reliability_curve


class ReliabilityDisplay(Display):
    """Share of relevant labels against the probability they were given: all together, and faintly each label.

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
        n_bins: int = 10,
        strategy: Strategy = "uniform",
        min_count: int = 10,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Compute the curves and draw them.

        Bins are of equal width, so that the range in which decisions are made can be seen, however rare the labels
        are; where there are few entries, bins are wider.

        Parameters
        ----------
        y_true : array-like of shape (n_instances, n_labels)
            The truth, 0 or 1.
        probabilities : array-like of shape (n_instances, n_labels)
            P(label is relevant), as for `abstain.decide`.
        n_bins : int, default=10
            The largest number of bins.
        strategy : {"quantile", "uniform"}, default="uniform"
            Bins with about equally many entries, or bins of equal width.
        min_count : int, default=10
            The smallest number of entries in a bin: one with fewer joins the smaller of its neighbours.
        name : str, optional
            The name of the model in the legend.
        ax : matplotlib axes, optional
            Where to draw, as for `plot`.

        Returns
        -------
        display : ReliabilityDisplay
        """
        options: dict[str, Any] = {"n_bins": n_bins, "strategy": strategy, "min_count": min_count}
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
            The truth, 0 or 1, or a vector of classes.
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
        ax.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":", label="perfect")
        for i, curve in enumerate(self.labels):
            if highlight is not None and curve.label == highlight:
                style: dict[str, Any] = {"color": ORANGE, "linewidth": 1.8, "label": str(curve.label)}
            else:
                label = "each label" if i == 0 else None
                style = {"color": LIGHT_GREY, "linewidth": 0.6, "alpha": 0.5, "label": label}
            ax.plot(curve.predicted, curve.observed, **style)
        pooled, (low, high) = self.pooled, self.pooled.interval()
        ax.errorbar(
            pooled.predicted,
            pooled.observed,
            yerr=[pooled.observed - low, high - pooled.observed],
            color=BLUE,
            marker="o",
            markersize=4,
            capsize=2,
            label=f"{self.name or 'all labels'} (error {pooled.calibration_error:.3f})",
        )
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        ax.set(xlabel="mean probability", ylabel="share of relevant labels")
        ax.legend(loc="upper left", frameon=False, fontsize="small")
        return self
