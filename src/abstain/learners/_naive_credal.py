"""`NaiveCredalClassifier`: naive Bayes for each label by itself, with intervals instead of estimated frequencies."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from abstain._utils.errors import InvalidParameter, quoted
from abstain._utils.types import Floats
from abstain.learners._bins import QuantileBins, feature_blocks
from abstain.learners._credal import DEFAULT_S, CredalClassifier

DEFAULT_N_BINS = 6


class NaiveCredalClassifier(CredalClassifier):
    """Naive credal classifier (Zaffalon 2002) of each label, with the local imprecise Dirichlet model.

    Features are cut into bins at quantiles of the training data, and taken to be independent given the label. With N₁
    relevant of N instances, of which n₁ᵢ have feature i in the bin of x, the label's frequency is in [N₁ / (N + s),
    (N₁ + s) / (N + s)] and that of the bin in [n₁ᵢ / (N₁ + s), (n₁ᵢ + s) / (N₁ + s)], and likewise for irrelevant
    instances. The bounds of P(label is relevant | x) are over all these, each chosen by itself: with lower frequencies
    for relevant and upper ones for irrelevant instances, and the other way round.

    The point, `predict_proba`, is naive Bayes with the prior in the middle: s rows that are spread evenly over both
    values of the label, and over the bins of each feature that are not empty. A label that was constant in training
    has (N₁ + s / 2) / (N + s), as nothing is known of its other value; its interval is wide for the same reason.

    A missing value takes no part: it is not counted in training, and its feature is left out of the product. Sparse
    features are made dense some at a time; zeros that are not stored are values like others. A feature of which all
    training values were missing is left out.

    Parameters
    ----------
    s : float, default=2
        How many instances of unknown outcome the imprecise Dirichlet model adds to each count; used when predicting
        only. Walley recommends 1 or 2.
    n_bins : int, default=6
        The number of bins of each feature, if its values are distinct enough.

    Attributes
    ----------
    classes_ : list of n_labels arrays [0, 1]
    bins_ : QuantileBins
        Where the features are cut.
    label_counts_ : float array of shape (2, n_labels)
        The instances in which each label is irrelevant, and relevant.
    bin_counts_ : float array of shape (2, n_features, n_bins, n_labels)
        Those of them in each bin of each feature.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,)
        As everywhere in scikit-learn.
    """

    def __init__(self, *, s: float = DEFAULT_S, n_bins: int = DEFAULT_N_BINS) -> None:
        self.s = s
        self.n_bins = n_bins

    def _fit(self, X: Any, labels: NDArray[np.int8], weight: Floats) -> None:
        if not isinstance(self.n_bins, int | np.integer) or isinstance(self.n_bins, bool) or self.n_bins < 2:
            raise InvalidParameter(f"n_bins is {quoted(self.n_bins)}; expected a whole number from 2 on")
        self.bins_ = QuantileBins.fit(X, weight, n_bins=int(self.n_bins))
        weighted = weight[:, np.newaxis] * np.hstack([1 - labels, labels])
        self.label_counts_ = weighted.sum(axis=0).reshape(2, -1)
        counts = np.empty((X.shape[1], self.bins_.n_bins, weighted.shape[1]))
        for columns, block in feature_blocks(X):
            codes = self.bins_(block, columns)
            for k in range(self.bins_.n_bins):
                counts[columns, k] = (codes == k).T.astype(np.float64) @ weighted
        self.bin_counts_ = np.stack(np.split(counts, 2, axis=2))

    def _point(self, X: Any, s: float) -> Floats:
        irrelevant, relevant = self.label_counts_
        share = self._is_used() / np.maximum(1, self._is_used().sum(axis=1, keepdims=True))
        in_bin, known = self.bin_counts_, self.bin_counts_.sum(axis=2, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):  # of bins that are not used
            terms = np.log((in_bin + s * share[:, :, np.newaxis]) / (known + s))
            odds = self._log_odds(X, np.log((relevant + s / 2) / (irrelevant + s / 2)), terms[1] - terms[0])
        is_varied = (relevant > 0) & (irrelevant > 0)
        return np.where(is_varied, expit(odds), (relevant + s / 2) / (relevant + irrelevant + s))

    def _intervals(self, X: Any, s: float) -> tuple[Floats, Floats]:
        irrelevant, relevant = self.label_counts_
        in_bin, known = self.bin_counts_, self.bin_counts_.sum(axis=2, keepdims=True)
        with np.errstate(divide="ignore"):  # log 0 is −∞, never on both sides of a difference: s is positive
            least, greatest = np.log(in_bin / (known + s)), np.log((in_bin + s) / (known + s))
            lower = self._log_odds(X, np.log(relevant) - np.log(irrelevant + s), least[1] - greatest[0])
            upper = self._log_odds(X, np.log(relevant + s) - np.log(irrelevant), greatest[1] - least[0])
        return expit(lower), expit(upper)

    def _log_odds(self, X: Any, prior: Floats, terms: Floats) -> Floats:
        """Return the prior log-odds plus the term of each feature's bin, of shape (n_instances, n_labels)."""
        terms = np.where(self._is_used()[:, :, np.newaxis], terms, 0.0)
        odds: Floats = prior + self.bins_.indicators(X) @ terms.reshape(-1, terms.shape[2])
        return odds

    def _is_used(self) -> NDArray[np.bool_]:
        """Return which bins of which features have training rows; no bin has, if all values were missing."""
        used: NDArray[np.bool_] = self.bin_counts_.sum(axis=(0, 3)) > 0
        return used
