"""A histogram of what reviews save: counts over any number of batches, in little memory.

The bins follow the bits of the float: each is narrower than 10⁻⁵ of its values. Counts of parts add up. The bin in
which a budget ends says, as exactly as its width, what the price is.
"""

from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abstain._core.blocks import Block
from abstain._core.kernels import savings
from abstain._core.kernels.bins import fill_bins
from abstain._core.kernels.bounds import as_bounds
from abstain._core.losses import Loss
from abstain._core.probabilities import Probabilities
from abstain._core.profile import RiskProfile
from abstain._core.tables import Axes
from abstain._utils.errors import InvalidBudget, InvalidLoss
from abstain._utils.threads import for_each
from abstain.budget._allocation import Price, ShadowPrices, make_price
from abstain.budget._limits import Limits, at_most
from abstain.budget._per_entry import EntryCosts, best_of_rows
from abstain.budget._steps import steps_above
from abstain.budget._thresholds import n_affordable

BIN_BITS = 17  # leading bits of a value's fraction that determine its bin: 2⁻¹⁷ < 10⁻⁵
SHIFT = 52 - BIN_BITS
OCTAVES = 64  # values below 2⁻⁶⁴ of the largest risk share the lowest bin


class ThresholdBin(NamedTuple):
    """The bin in which a budget ends: all reviews that save more than `high` are made, and some that save more than
    `low`.
    """

    low: float
    high: float
    n_above: int
    """How many reviews save more than `high`."""
    n_within: int
    """How many reviews lie in the bin."""
    n_taken: int
    """How many of these the budget still pays for."""
    saved: float
    """What the reviews that are made save in all, up to the width of the bins."""
    cost: float
    """What a review within the bin saves, up to the width of the bin: the shadow price."""


class HistogramCounts(NamedTuple):
    """The bins of a histogram that are not empty: small, and easily sent to another process."""

    keys: NDArray[np.int32]
    counts: NDArray[np.int64]
    n_rows: int
    loss_without_reviews: float


class SavingsHistogram:
    """Counts of what reviews save, over any number of batches.

    For a sum over labels every entry of the table can be reviewed by itself, with a cap per instance the best of each
    row; for other losses the steps of the cost paths are counted.

    Parameters
    ----------
    loss : Loss
    n_labels : int
    per_instance : int, optional
        How many labels of an instance can be reviewed at most.
    review : float, or one for each label (sums over labels only), default=0.0
        What a review costs; only what it saves in addition is counted.

    Examples
    --------
    >>> import abstain, numpy as np
    >>> from abstain.budget._histogram import SavingsHistogram
    >>> random = np.random.default_rng(0)
    >>> histogram = SavingsHistogram(abstain.Hamming(), n_labels=10)
    >>> for _ in range(4):
    ...     histogram.add(random.beta(0.3, 1.0, (500, 10)))
    >>> found = histogram.threshold_bin(1000)
    >>> found.n_above <= 1000 < found.n_above + found.n_within, round(found.cost, 4)
    (True, 0.4494)
    """

    def __init__(self, loss: Loss, n_labels: int, *, per_instance: int | None = None, review: ArrayLike = 0.0) -> None:
        loss.check(n_labels)
        self.loss, self.n_labels = loss, n_labels
        self.limits = Limits(None, at_most(per_instance, n_labels), None, np.asarray(review, np.float64))
        if self.limits.review.ndim and not loss.is_decomposable:
            raise InvalidBudget(f"a review cost for each label needs a loss that is a sum over labels; {loss!r} is not")
        self.n_rows = 0
        self.loss_without_reviews = 0.0
        """The expected loss of all rows if nothing is reviewed."""
        self._lowest = max(0, int(_keys(np.array([loss.highest_cost(n_labels)]))[0]) - (OCTAVES << BIN_BITS))
        # Bins for the octaves up to the highest cost, and one for its rounding; memory is used where they are filled.
        self._bins = np.zeros((OCTAVES + 1) << BIN_BITS, np.int64)
        self._lock = Lock()

    def add(self, table: Any) -> None:
        """Count what reviews of some more rows would save."""
        source = table if isinstance(table, Probabilities) else Probabilities(table)
        if source.n_labels != self.n_labels:
            raise InvalidBudget(f"the table has {source.n_labels} labels; the histogram is for {self.n_labels}")
        if source.is_sparse:
            self.loss.accept_sparse()
        self.n_rows += source.n_rows
        if self.loss.is_decomposable:
            self._add_entries(source)
        else:
            profile, review = RiskProfile(source, self.loss), self.limits.uniform_review
            steps = steps_above(profile.path(max_abstained=self.limits.per_instance), review)
            self._count(steps.cost - review, steps.size, float(profile.values[:, [0]].sum()))

    def _add_entries(self, table: Probabilities) -> None:
        cap, costs = self.limits.per_instance, EntryCosts.of(self.loss, self.limits, self.n_labels)

        def work(block: Block) -> None:
            p, beside = table.load(block), costs.beside(block)
            out = savings.ReviewBuffers(
                np.empty(p.shape, np.int8), np.empty(len(p)), np.empty(len(p), np.int64),
                np.empty(p.size + 1, np.int64), np.empty(p.size + 1),
            )  # fmt: skip
            low = 0.0 if cap is None else np.inf
            size = savings.review_above(as_bounds(p), beside.errors, beside.review, low, np.inf, out)
            values = out.value[:size] if cap is None else best_of_rows(p, beside, cap)[1]
            self._count(values, np.ones(1, np.int64), float(out.expected.sum()))

        for_each(work, table.blocks(self.loss.entries_per_block))

    def _count(self, values: NDArray[np.float64], sizes: NDArray[np.int64], loss_without_reviews: float) -> None:
        keys = _keys(values)
        with self._lock:
            self.loss_without_reviews += loss_without_reviews
            greatest = fill_bins(keys, sizes, self._lowest, self._bins)
        if greatest - self._lowest >= len(self._bins):
            raise InvalidLoss(
                f"a review saves {values.max():g}, but {self.loss!r} says that from a cost of "
                f"{self.loss.highest_cost(self.n_labels):g} on (highest_cost) every label is answered"
            )

    def counts(self) -> HistogramCounts:
        """Return the bins that are not empty."""
        filled = np.flatnonzero(self._bins)
        keys = (filled + self._lowest).astype(np.int32)
        return HistogramCounts(keys, self._bins[filled], self.n_rows, self.loss_without_reviews)

    def include(self, counts: HistogramCounts) -> None:
        """Add the counts of another histogram with the same parameters."""
        self._bins[counts.keys - self._lowest] += counts.counts
        self.n_rows += counts.n_rows
        self.loss_without_reviews += counts.loss_without_reviews

    def threshold_bin(self, total: int) -> ThresholdBin:
        """Return the bin in which a budget of so many reviews ends; an empty one at 0 if it pays for all of them."""
        n_above, saved = 0, 0.0
        for octave in range(OCTAVES, -1, -1):  # what saves most comes first
            first = octave << BIN_BITS
            counts = self._bins[first : first + (1 << BIN_BITS)]
            filled = np.flatnonzero(counts)[::-1]
            keys, counts = self._lowest + first + filled, counts[filled]
            low, high = _lower_edges(keys), _lower_edges(keys + 1)
            middle = (low + high) / 2
            at = n_affordable(counts, total - n_above)
            n_above, saved = n_above + int(counts[:at].sum()), saved + float(middle[:at] @ counts[:at])
            if at < len(counts):
                n_taken, cost = total - n_above, float(middle[at])
                return ThresholdBin(
                    low=0.0 if keys[at] == self._lowest else float(np.nextafter(low[at], 0.0)),
                    high=float(np.nextafter(high[at], 0.0)),
                    n_above=n_above,
                    n_within=int(counts[at]),
                    n_taken=n_taken,
                    saved=saved + n_taken * cost,
                    cost=cost,
                )
        return ThresholdBin(0.0, 0.0, n_above, 0, 0, saved, 0.0)

    def price(self, found: ThresholdBin, axes: Axes = Axes()) -> Price[Any]:  # noqa: B008 (it is immutable)
        """Return the price at a bin: it decides on new data, where what saves just that is answered."""
        return make_price(self.loss, self.limits, axes, ShadowPrices.uniform(found.high, self.n_labels))


def _keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the leading bits of positive numbers, as integers that are in the same order."""
    return np.ascontiguousarray(values).view(np.int64) >> SHIFT


def _lower_edges(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the least number of each bin."""
    return (keys.astype(np.int64) << SHIFT).view(np.float64)
