"""Budgets for more data than memory holds: two passes, each of them a batch at a time.

The first pass fills a histogram of what reviews would save (`_histogram`). The second reviews what saves more than the
bin in which the budget ends, and within that bin whatever comes first until the budget is used up.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.prediction import PartialPrediction, Prediction
from abstain._core.probabilities import Probabilities
from abstain._core.profile import RiskProfile
from abstain.budget._entries import Entries
from abstain.budget._histogram import SavingsHistogram
from abstain.budget._per_entry import EntryProblem, find_candidates
from abstain.budget._steps import Steps, profiles_of, review_counts, steps_above
from abstain.budget._thresholds import n_affordable


class TwoPassDecider:
    """The second pass: decides batch after batch, so that the budget is used up in all.

    `decide` takes the batches in turn. Afterwards `count` reviews are made, and `gap` bounds how much less any other
    allocation could pay: at most the width of the bin in which the budget ends, times the reviews taken from it; 0 if
    these are ties.

    Parameters
    ----------
    histogram : SavingsHistogram
        The first pass over the same batches.
    total : int
        How many reviews can be made in all.

    Examples
    --------
    >>> import abstain, numpy as np
    >>> from abstain.budget._histogram import SavingsHistogram
    >>> from abstain.budget._two_pass import TwoPassDecider
    >>> batches = np.random.default_rng(0).beta(0.3, 1.0, (4, 500, 10))
    >>> histogram = SavingsHistogram(abstain.Hamming(), n_labels=10)
    >>> for batch in batches:
    ...     histogram.add(batch)
    >>> decider = TwoPassDecider(histogram, total=1000)
    >>> sum(int(decider.decide(batch).n_abstained.sum()) for batch in batches), decider.gap < 1e-4
    (1000, True)
    """

    def __init__(self, histogram: SavingsHistogram, total: int) -> None:
        self.loss, self.limits = histogram.loss, histogram.limits
        self.threshold_bin = histogram.threshold_bin(total)
        self.count = 0
        self._left = self.threshold_bin.n_taken  # reviews within the bin that can still be made
        self._any_refused = False
        self._highest_seen, self._lowest_taken = 0.0, np.inf  # savings within the bin
        self._n_taken, self._saved = 0, 0.0

    @property
    def gap(self) -> float:
        """How much less, at most, any other allocation of the same budget could pay, given the batches so far."""
        if not self._any_refused:
            return 0.0
        are_ties = self._lowest_taken == self._highest_seen
        missed = 0.0 if are_ties else self._n_taken * self._highest_seen - self._saved
        return max(0.0, missed) + self._left * self._highest_seen

    def decide(self, table: Any) -> Prediction:
        """Decide the next batch."""
        source = table if isinstance(table, Probabilities) else Probabilities(table)
        prediction = self._decide_entries(source) if self.loss.is_decomposable else self._decide_instances(source)
        self.count += int(prediction.n_abstained.sum())
        return prediction

    def _decide_entries(self, table: Probabilities) -> PartialPrediction:
        low, high = self.threshold_bin.low, self.threshold_bin.high
        reviewed = find_candidates(EntryProblem(table, self.loss, self.limits), low, high)
        is_above = reviewed.candidates.value > high  # none without caps per instance: they are reviewed already
        within = reviewed.candidates.take(~is_above)
        taken = within.take(slice(0, self._left))
        self._any_refused |= len(taken.value) < len(within.value)
        self._note_seen(within.value)
        self._note_taken(taken.value, np.ones(len(taken.value), np.int64))
        return reviewed.with_reviews(Entries.concatenate([reviewed.candidates.take(is_above), taken]), table.axes)

    def _decide_instances(self, table: Probabilities) -> Prediction:
        profile, review = RiskProfile(table, self.loss), self.limits.uniform_review
        steps = steps_above(profile.path(max_abstained=self.limits.per_instance), review)
        steps = steps._replace(cost=steps.cost - review)
        is_above = steps.cost > self.threshold_bin.high
        counts = steps.take(is_above).counts(table.n_rows)
        within = np.flatnonzero((steps.cost > self.threshold_bin.low) & ~is_above)
        order = within[np.lexsort((-steps.cost[within], steps.row[within]))]
        self._spend(profile, steps.take(order), counts)
        return review_counts(profile, counts, review)

    def _spend(self, profile: RiskProfile[Any], steps: Steps, counts: NDArray[np.int64]) -> None:
        """Take the steps of the bin that come first and fit; where one does not, as much of it as is left."""
        self._note_seen(steps.cost)
        while len(steps.row):
            n_fitting = n_affordable(steps.size, self._left)
            fitting = steps.take(slice(0, n_fitting))
            np.add.at(counts, fitting.row, fitting.size)
            self._note_taken(fitting.cost, fitting.size)
            if n_fitting == len(steps.row):
                return
            self._any_refused = True
            if self._left == 0:
                return
            row = steps.row[n_fitting]
            self._take_part(profile, int(row), counts)
            # The steps of a row are taken in turn: a row goes on only if its next step fits.
            later = steps.take(n_fitting + 1 + np.flatnonzero(steps.row[n_fitting + 1 :] != row))
            first = np.flatnonzero(np.diff(later.row, prepend=-1))
            goes_on = np.repeat(later.size[first] <= self._left, np.diff(np.append(first, len(later.row))))
            steps = later.take(goes_on)

    def _take_part(self, profile: RiskProfile[Any], row: int, counts: NDArray[np.int64]) -> None:
        """Spend what is left on one row, if that saves anything."""
        costs = profiles_of(profile, np.array([row]))[0, counts[row] : counts[row] + self._left + 1]
        costs = costs + self.limits.uniform_review * np.arange(len(costs))
        size = int(np.argmin(costs))
        if size > 0:
            counts[row] += size
            self._note_taken((costs[:1] - costs[size]) / size, np.array([size]))

    def _note_seen(self, savings: NDArray[np.float64]) -> None:
        """Remember the highest saving within the bin."""
        self._highest_seen = max(self._highest_seen, float(savings.max(initial=0.0)))

    def _note_taken(self, savings: NDArray[np.float64], sizes: NDArray[np.int64]) -> None:
        """Count reviews within the bin that are made, and what each of them saves."""
        self._lowest_taken = min(self._lowest_taken, float(savings.min(initial=np.inf)))
        self._n_taken += int(sizes.sum())
        self._saved += float(savings @ sizes)
        self._left -= int(sizes.sum())
