"""The price of a budget for more data than memory holds: two passes, each of them a batch at a time.

The first pass counts what reviews would save, in bins that follow the bits of the float: each is narrower than 10⁻⁵ of
its values. The counts of parts add up. The bin in which the budget ends is the *margin*. The second pass reviews what
saves more, and within the margin whatever comes first until the budget is used up.
"""

from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abstain._core.blocks import Block
from abstain._core.kernels import savings
from abstain._core.kernels.bins import fill_bins
from abstain._core.losses import DecomposableLoss, Loss
from abstain._core.prediction import PartialPrediction, Prediction
from abstain._core.probabilities import Probabilities
from abstain._core.profile import RiskProfile
from abstain._core.tables import Axes
from abstain._utils.errors import InvalidBudget, InvalidLoss
from abstain._utils.threads import for_each
from abstain.budget._allocation import Price
from abstain.budget._limits import Limits
from abstain.budget._per_entry import Entries, best_of_instances, left_open, price_of, reviewed_above
from abstain.budget._per_instance import Steps, every_step, values_of

LEADING = 17  # bits of a value's fraction that tell its bin: 2⁻¹⁷ < 10⁻⁵
SHIFT = 52 - LEADING
OCTAVES = 64  # what saves less than 2⁻⁶⁴ of the largest risk is all the same


class Margin(NamedTuple):
    """Where a budget ends: reviews that save more than `high` are made, of those above `low` some."""

    low: float
    high: float
    above: int
    """How many reviews save more than the margin."""
    within: int
    """How many lie in it."""
    taken: int
    """How many of these the budget still pays for."""
    saved: float
    """What the reviews that are made save in all, as exactly as the bins tell."""
    cost: float
    """What a review within the margin saves, as exactly as it tells: the shadow price."""


class Counts(NamedTuple):
    """What a sketch has counted so far: only bins in which there is something, so that it is small and travels well."""

    keys: NDArray[np.int32]
    counts: NDArray[np.int64]
    n_rows: int
    complete: float


class Sketch:
    """Counts of what reviews save, over any number of batches, in little memory.

    For a sum over labels every entry of the table is a review of its own, with a cap per instance the best of each row;
    for other losses the steps of the cost paths are counted.

    Parameters
    ----------
    loss : Loss
    n_labels : int
    per_instance : int, optional
        How many labels of an instance can be reviewed at most.
    review : float, or one for each label (sums over labels only), default=0.0
        What a review costs; only what it saves besides is counted.

    Examples
    --------
    >>> import abstain, numpy as np
    >>> from abstain.budget._two_pass import Sketch
    >>> random = np.random.default_rng(0)
    >>> sketch = Sketch(abstain.Hamming(), n_labels=10)
    >>> for _ in range(4):
    ...     sketch.add(random.beta(0.3, 1.0, (500, 10)))
    >>> margin = sketch.margin(1000)
    >>> margin.above <= 1000 < margin.above + margin.within, round(margin.cost, 4)
    (True, 0.4494)
    """

    def __init__(self, loss: Loss, n_labels: int, *, per_instance: int | None = None, review: ArrayLike = 0.0) -> None:
        loss.check(n_labels)
        self.loss, self.n_labels = loss, n_labels
        most = None if per_instance is None or per_instance >= n_labels else per_instance
        self.limits = Limits(None, most, None, np.asarray(review, np.float64))
        if self.limits.review.ndim and not isinstance(loss, DecomposableLoss):
            raise InvalidBudget(f"a review cost for each label needs a loss that is a sum over labels; {loss!r} is not")
        self.n_rows = 0
        self.complete = 0.0
        """The expected loss if nothing is reviewed."""
        self._lowest = max(0, int(_keys(np.array([loss.highest_cost(n_labels)]))[0]) - (OCTAVES << LEADING))
        # Bins for the octaves up to the highest cost, and one for its rounding; memory is used where they are filled.
        self._bins = np.zeros((OCTAVES + 1) << LEADING, np.int64)
        self._lock = Lock()

    def add(self, table: Any) -> None:
        """Count what reviews of some more rows would save."""
        source = table if isinstance(table, Probabilities) else Probabilities(table)
        if source.n_labels != self.n_labels:
            raise InvalidBudget(f"the table has {source.n_labels} labels; the sketch counts for {self.n_labels}")
        if source.is_sparse:
            self.loss.accept_sparse()
        self.n_rows += source.n_rows
        if isinstance(self.loss, DecomposableLoss):
            self._add_entries(source, self.loss)
        else:
            profile = RiskProfile(source, self.loss)
            steps = _net_steps(profile, self.limits)
            self._count(steps.cost, steps.size, float(profile.values[:, [0]].sum()))

    def _add_entries(self, table: Probabilities, loss: DecomposableLoss) -> None:
        most, one = self.limits.per_instance, np.ones(1, np.int64)

        def work(block: Block) -> None:
            p, review = table.load(block), block.per_label(self.limits.review)
            codes, expected, n_open = np.empty(p.shape, np.int8), np.empty(len(p)), np.empty(len(p), np.int64)
            position, value = np.empty(p.size + 1, np.int64), np.empty(p.size + 1)
            low = 0.0 if most is None else np.inf
            out = savings.ReviewBuffers(codes, expected, n_open, position, value)
            size = savings.review_above(p, loss.block_error_costs(block), review, low, np.inf, out)
            if most is not None:
                saved = savings.saving(loss.label_risks(block, p), review)
                size = savings.best_of_rows(saved, min(most, p.shape[1]), position, value)
            self._count(value[:size], one, float(expected.sum()))

        for_each(work, table.blocks(loss.entries_per_block))

    def _count(self, values: NDArray[np.float64], sizes: NDArray[np.int64], complete: float) -> None:
        keys = _keys(values)
        with self._lock:
            self.complete += complete
            greatest = fill_bins(keys, sizes, self._lowest, self._bins)
        if greatest - self._lowest >= len(self._bins):
            raise InvalidLoss(
                f"a review saves {values.max():g}, but {self.loss!r} says that from a cost of "
                f"{self.loss.highest_cost(self.n_labels):g} on (highest_cost) every label is answered"
            )

    def counted(self) -> Counts:
        """What has been counted."""
        filled = np.flatnonzero(self._bins)
        return Counts((filled + self._lowest).astype(np.int32), self._bins[filled], self.n_rows, self.complete)

    def include(self, counts: Counts) -> None:
        """Count what another sketch, made alike, has counted."""
        self._bins[counts.keys - self._lowest] += counts.counts
        self.n_rows += counts.n_rows
        self.complete += counts.complete

    def margin(self, total: int) -> Margin:
        """Where a budget of so many reviews ends."""
        above, saved = 0, 0.0
        for octave in range(OCTAVES, -1, -1):  # what saves most comes first
            first = octave << LEADING
            counts = self._bins[first : first + (1 << LEADING)]
            filled = np.flatnonzero(counts)[::-1]
            keys, counts = self._lowest + first + filled, counts[filled]
            low, high = _edge(keys), _edge(keys + 1)  # bins begin at their edge
            reached, middle = np.cumsum(counts), (low + high) / 2
            at = int(np.searchsorted(reached, total - above, side="right"))
            above, saved = above + int(counts[:at].sum()), saved + float(middle[:at] @ counts[:at])
            if at < len(counts):
                taken, cost = total - above, float(middle[at])
                least = 0.0 if keys[at] == self._lowest else float(np.nextafter(low[at], 0.0))
                most = float(np.nextafter(high[at], 0.0))
                return Margin(least, most, above, int(counts[at]), taken, saved + taken * cost, cost)
        return Margin(0.0, 0.0, above, 0, 0, saved, 0.0)

    def price(self, margin: Margin, axes: Axes = Axes()) -> Price:  # noqa: B008 (it is immutable)
        """The price at a margin: it decides on new data, where what saves just that is answered."""
        if isinstance(self.loss, DecomposableLoss):
            return price_of(self.loss, self.limits, axes, self.n_labels, margin.high, np.zeros(self.n_labels))
        return Price(self.limits.uniform_review + margin.high, self.loss, self.limits.per_instance)


class Reviewer:
    """The second pass: decides on batch after batch, so that the budget is used up in all.

    Called with the batches in turn. Afterwards `count` reviews are made, and `gap` bounds how much less any other
    allocation could pay: the width of the margin times the reviews taken from it, 0 if these are ties.

    Examples
    --------
    >>> import abstain, numpy as np
    >>> from abstain.budget._two_pass import Reviewer, Sketch
    >>> batches = np.random.default_rng(0).beta(0.3, 1.0, (4, 500, 10))
    >>> sketch = Sketch(abstain.Hamming(), n_labels=10)
    >>> for batch in batches:
    ...     sketch.add(batch)
    >>> reviewer = Reviewer(sketch, total=1000)
    >>> sum(int(reviewer(batch).n_abstained.sum()) for batch in batches), reviewer.gap < 1e-4
    (1000, True)
    """

    def __init__(self, sketch: Sketch, total: int) -> None:
        self.loss, self.limits = sketch.loss, sketch.limits
        self.margin = sketch.margin(total)
        self.count = 0
        self.left = self.margin.taken
        """How many reviews within the margin can still be made."""
        self._refused = False
        self._highest, self._least_taken = 0.0, np.inf
        self._n_taken, self._saved = 0, 0.0

    @property
    def gap(self) -> float:
        """How much less, at most, any other allocation of the same budget could pay, given what was seen so far."""
        if not self._refused:
            return 0.0
        missed = 0.0 if self._least_taken == self._highest else self._n_taken * self._highest - self._saved
        return max(0.0, missed) + self.left * self._highest

    def __call__(self, table: Any) -> Prediction:
        """Decide on the next batch."""
        source = table if isinstance(table, Probabilities) else Probabilities(table)
        loss = self.loss
        prediction = self._by_entry(source, loss) if isinstance(loss, DecomposableLoss) else self._by_instance(source)
        self.count += int(prediction.n_abstained.sum())
        return prediction

    def _by_entry(self, table: Probabilities, loss: DecomposableLoss) -> PartialPrediction:
        low, high = self.margin.low, self.margin.high
        if self.limits.per_instance is None:
            reviewed = reviewed_above(table, loss, self.limits, low, high)
            more = self._first(reviewed.around)
        else:
            reviewed = reviewed_above(table, loss, self.limits, np.inf, np.inf)
            best = best_of_instances(table, loss, self.limits)
            within = self._first(best.some((best.value > low) & (best.value <= high)))
            above = best.some(best.value > high)
            more = Entries(*(np.concatenate(parts) for parts in zip(above, within, strict=True)))
        expected = reviewed.expected - np.bincount(more.row, more.value, table.n_rows)
        return PartialPrediction.from_codes(left_open(reviewed.codes, more), table.axes, expected)

    def _first(self, around: Entries) -> Entries:
        """The first entries of the margin, as far as the budget goes."""
        ordered = around.some(np.lexsort((around.label, around.row)))
        taken = ordered.some(slice(0, self.left))
        self._refused |= len(taken.value) < len(ordered.value)
        self._note(ordered.value, taken.value, np.ones(len(taken.value), np.int64))
        return taken

    def _note(self, seen: NDArray[np.float64], taken: NDArray[np.float64], sizes: NDArray[np.int64]) -> None:
        self._highest = max(self._highest, float(seen.max(initial=0.0)))
        self._least_taken = min(self._least_taken, float(taken.min(initial=np.inf)))
        self._n_taken += int(sizes.sum())
        self._saved += float(taken @ sizes)
        self.left -= int(sizes.sum())

    def _by_instance(self, table: Probabilities) -> Prediction:
        profile, review = RiskProfile(table, self.loss), self.limits.uniform_review
        steps = _net_steps(profile, self.limits)
        above = steps.cost > self.margin.high
        counts = np.bincount(steps.row[above], steps.size[above], table.n_rows).astype(np.int64)
        within = np.flatnonzero((steps.cost > self.margin.low) & ~above)
        order = within[np.lexsort((-steps.cost[within], steps.row[within]))]
        self._spend(profile, Steps(steps.row[order], steps.cost[order], steps.size[order]), counts)
        prediction = profile.with_n_abstained(counts)
        prediction.expected_loss += review * counts
        return prediction

    def _spend(self, profile: RiskProfile[Prediction], steps: Steps, counts: NDArray[np.int64]) -> None:
        """Take the steps of the margin that come first and fit; where one does not, as much of it as is left."""
        row, cost, size = steps
        self._note(cost, cost[:0], size[:0])
        while len(row):
            fits = int(np.searchsorted(np.cumsum(size), self.left, side="right"))
            np.add.at(counts, row[:fits], size[:fits])
            self._note(cost[:0], cost[:fits], size[:fits])
            if fits == len(row):
                return
            self._refused = True
            if self.left == 0:
                return
            self._take_part(profile, int(row[fits]), counts)
            # A row goes on only if its next step fits: steps are taken in turn.
            later = np.flatnonzero(row != row[fits])
            later = later[later > fits]
            first = np.flatnonzero(np.diff(row[later], prepend=-1))
            goes_on = np.repeat(size[later][first] <= self.left, np.diff(np.append(first, len(later))))
            later = later[goes_on]
            row, cost, size = row[later], cost[later], size[later]

    def _take_part(self, profile: RiskProfile[Prediction], i: int, counts: NDArray[np.int64]) -> None:
        """Spend what is left on one row, if that saves anything."""
        costs = values_of(profile, np.array([i]))[0, counts[i] : counts[i] + self.left + 1]
        costs = costs + self.limits.uniform_review * np.arange(len(costs))
        size = int(np.argmin(costs))
        if size > 0:
            counts[i] += size
            self._note(costs[:0], (costs[:1] - costs[size]) / size, np.array([size]))


def _net_steps(profile: RiskProfile[Prediction], limits: Limits) -> Steps:
    """The steps of the cost paths that are worth their reviews, and what each saves for a review, less its cost."""
    steps = every_step(profile.path(max_abstained=limits.per_instance), limits.uniform_review)
    return steps._replace(cost=steps.cost - limits.uniform_review)


def _keys(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The leading bits of positive numbers, as numbers that are in the same order."""
    return np.ascontiguousarray(values).view(np.int64) >> SHIFT


def _edge(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """The least number of each bin."""
    return (keys.astype(np.int64) << SHIFT).view(np.float64)
