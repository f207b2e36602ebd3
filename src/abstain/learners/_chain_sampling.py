"""Ancestral sampling from classifier chains whose learners give probabilities: label by label, in the chain's order."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain

from abstain._core.joint import Samples
from abstain._core.predict_proba import label_probabilities
from abstain._core.tilting import distinct
from abstain._utils.errors import InvalidParameter
from abstain._utils.types import Floats
from abstain.learners._binary import BinaryLogisticRegression
from abstain.learners._newton import NewtonLogisticRegression

MAX_VALUES_PER_BLOCK = 1 << 22  # features of instances, repeated for each beginning of a label vector
N_SAMPLES = 1000


class Beginnings(NamedTuple):
    """The beginnings of label vectors that have been drawn so far, for some instances.

    Attributes
    ----------
    rows : int array of shape (n,)
        The instance of each; not decreasing.
    labels : uint8 array of shape (n, n_labels)
        In the chain's order; 0 for labels that have not been drawn.
    counts : float array of shape (n,)
        How many samples begin so; of exact distributions the probability.
    first : int array of shape (n,)
        How many samples of the same instance come before these.
    """

    rows: NDArray[np.intp]
    labels: NDArray[np.uint8]
    counts: Floats
    first: NDArray[np.intp]

    def split(self, step: int, ones: Floats) -> "Beginnings":
        """Return the beginnings that are longer by one label, which is 1 in so many of the samples."""
        labels = np.repeat(self.labels, 2, axis=0)
        labels[::2, step] = 1
        counts = np.column_stack([ones, self.counts - ones]).ravel()
        first = np.repeat(self.first, 2)
        first[1::2] += ones.astype(np.intp)
        kept = counts > 0
        return Beginnings(np.repeat(self.rows, 2)[kept], labels[kept], counts[kept], first[kept])


def distribution_of_chains(chains: Sequence[ClassifierChain], X: Any, *, samples: int, random_state: int) -> Samples:
    """Return the joint distribution of the labels that chains imply, each chain with the same weight.

    The samples are divided among the chains. A chain that can draw no more different label vectors than that gets all
    of them, with their probabilities. Otherwise the samples of an instance are divided between 1 and 0 at each label
    in proportion to its probability, and chance decides only on the remainder: so marginals are more exact than those
    of independent samples. Samples of an instance do not depend on the other instances.
    """
    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    n, m = X.shape[0], len(chains[0].estimators_)
    parts = []
    for k, chain in enumerate(chains):
        _require_probabilities(chain)
        n_samples = max(1, (samples + k) // len(chains))
        draws = None if 2**m <= n_samples else np.random.default_rng([random_state, k]).random((m, n_samples))
        rows_per_block = max(1, MAX_VALUES_PER_BLOCK // (min(2**m, n_samples) * (X.shape[1] + m)))
        for begin in range(0, n, rows_per_block):
            block = X[begin : begin + rows_per_block]
            drawn = _drawn(chain, block, n_samples, draws)
            labels = np.empty_like(drawn.labels)
            labels[:, np.asarray(chain.order_)] = drawn.labels
            total = 1.0 if draws is None else n_samples
            parts.append((drawn.rows + begin, labels, drawn.counts / (total * len(chains))))
    if n == 0:
        return Samples(np.zeros((1, m), np.uint8), sparse.csr_array((0, 1)))
    rows, labels, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
    table, number = distinct(labels)
    summed = sparse.csr_array((weights, (rows, number)), shape=(n, len(table)))
    summed.sum_duplicates()
    return Samples(table, summed)


def _drawn(chain: ClassifierChain, X: Any, n_samples: int, draws: Floats | None) -> Beginnings:
    """Return the label vectors that are drawn for some instances, or all of them if there are no draws."""
    n, m = X.shape[0], len(chain.estimators_)
    total = np.full(n, 1.0 if draws is None else n_samples)
    drawn = Beginnings(np.arange(n), np.zeros((n, m), np.uint8), total, np.zeros(n, np.intp))
    for step, estimator in enumerate(chain.estimators_):
        p = _probability(estimator, X, drawn.rows, drawn.labels[:, :step])
        ones = p * drawn.counts
        if draws is not None:
            ones = np.clip(np.floor(ones + draws[step, drawn.first]), 0.0, drawn.counts)
        drawn = drawn.split(step, ones)
    return drawn


def _probability(estimator: Any, X: Any, rows: NDArray[np.intp], before: NDArray[np.uint8]) -> Floats:
    """Return the probability of a chain's next label, given the labels before it."""
    linear = estimator.model_ if isinstance(estimator, BinaryLogisticRegression) else estimator
    is_binary = np.array_equal(getattr(linear, "classes_", ()), [0, 1])
    if isinstance(linear, LogisticRegression | NewtonLogisticRegression) and is_binary:
        weights = np.ravel(linear.coef_)
        d = X.shape[1]
        of_features = X @ weights[:d] + np.ravel(linear.intercept_)
        probability: Floats = expit(of_features[rows] + before @ weights[d:])
        return probability
    repeated = X[rows]
    both = sparse.csr_array(sparse.hstack([repeated, before])) if sparse.issparse(X) else np.hstack([repeated, before])
    answer = label_probabilities(estimator, both)
    classes = np.asarray(getattr(estimator, "classes_", [0, 1]))
    return answer[:, 1] if len(classes) == 2 else np.full(len(rows), float(classes[0] == 1))


def _require_probabilities(chain: ClassifierChain) -> None:
    """Raise an error if a chain's labels do not have probabilities given the labels before them."""
    estimator = chain.estimators_[0]
    if not hasattr(estimator, "predict_proba"):
        raise InvalidParameter(
            f"{type(estimator).__name__} has no predict_proba, which sampling from a chain needs for each label"
        )
    if chain.cv is not None and getattr(chain, "chain_method_", "predict") != "predict":
        raise InvalidParameter(
            f"the chain has learnt from cross-fitted {chain.chain_method_} of the labels before each label, not from "
            'labels, which sampling gives it; use ClassifierChain with cv=None, or with chain_method="predict"'
        )
