"""The label vectors in the leaves of trees: a forest's joint distribution of the labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.joint import Samples
from abstain._core.tilting import distinct
from abstain.learners._forest import LabelForest, Tree


@dataclass(frozen=True)
class LeafVectors:
    """The distinct label vectors of the training rows, and how often each occurs in each leaf.

    The weight of a vector for an instance is the mean over the trees of its share in the leaf that the instance falls
    into (Meinshausen 2006, Quantile regression forests).

    Attributes
    ----------
    table : uint8 array of shape (n_vectors, n_labels)
    shares : CSR array of shape (n_nodes, n_vectors)
        Of the nodes of all trees, one tree after the other. Rows of leaves sum up to 1, those of inner nodes are empty.
    first : int array of shape (n_trees,)
        The number of each tree's first node.
    """

    table: NDArray[np.uint8]
    shares: sparse.csr_array
    first: NDArray[np.int64]

    @classmethod
    def of(cls, trees: Sequence[Tree], labels: NDArray[np.uint8]) -> Self:
        """Return the vectors in the leaves of trees that were grown from rows with these labels."""
        table, number = distinct(labels)
        n_nodes = [len(tree.first) - 1 for tree in trees]
        n_rows = np.cumsum([0, *(len(tree.rows) for tree in trees)])
        indptr = np.concatenate(
            [tree.first[:-1] + before for tree, before in zip(trees, n_rows[:-1], strict=True)] + [n_rows[-1:]]
        )
        indices = np.concatenate([number[tree.rows] for tree in trees])
        data = np.concatenate([tree.shares for tree in trees])
        shares = sparse.csr_array((data, indices, indptr), shape=(sum(n_nodes), len(table)))
        shares.sum_duplicates()
        shares.eliminate_zeros()
        return cls(table, shares, np.cumsum([0, *n_nodes[:-1]]))

    def distribution(self, leaves: NDArray[np.intp]) -> Samples:
        """Return the joint distribution of instances, given the leaf of each tree that they fall into."""
        n, n_trees = leaves.shape
        nodes = (leaves + self.first).ravel()
        falls_into = sparse.csr_array(
            (np.full(n * n_trees, 1.0 / n_trees), nodes, np.arange(n + 1) * n_trees), shape=(n, self.shares.shape[0])
        )
        weights = sparse.csr_array(falls_into @ self.shares)
        sums = np.asarray(weights.sum(axis=1)).ravel()  # 1, but for rounding: shares are stored in single precision
        weights.data /= np.repeat(sums, np.diff(weights.indptr))
        return Samples(self.table, weights)


def vectors_of(forest: LabelForest) -> LeafVectors:
    """Return the label vectors in the leaves of a forest that has kept its training rows."""
    trees = [tree for part in forest.trees for tree in part]
    return LeafVectors.of(trees, forest.relevant.toarray().astype(np.uint8))


def leaves_of(forest: LabelForest, X: Any) -> NDArray[np.intp]:
    """Return the leaf of each tree that each row falls into, of shape (n_instances, n_trees)."""
    return np.hstack([part.apply(X) for part in forest.forests])
