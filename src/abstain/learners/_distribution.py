"""`label_distribution`: the joint distribution of the labels that a fitted model implies."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.ensemble._forest import ForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.multioutput import ClassifierChain
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.neighbors._base import _get_weights
from sklearn.pipeline import Pipeline
from sklearn.tree import BaseDecisionTree, DecisionTreeClassifier
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted

from abstain._core.joint import Joint, Mixture, Samples
from abstain._core.predict_proba import label_probabilities
from abstain._core.tables import dense
from abstain._core.targets import index_of, read_target
from abstain._core.tilting import distinct
from abstain._utils.errors import InvalidParameter, quoted
from abstain._utils.types import Floats
from abstain.learners._chain_sampling import N_SAMPLES, distribution_of_chains
from abstain.learners._chains import ChainEnsemble
from abstain.learners._forest import Tree
from abstain.learners._leaf_vectors import LeafVectors
from abstain.learners._probabilistic_chain import ProbabilisticChain

SUPPORTED = (
    "forests and trees (RandomForestClassifier, ExtraTreesClassifier, DecisionTreeClassifier), nearest neighbours "
    "(KNeighborsClassifier, RadiusNeighborsClassifier), classifier chains, lists of fitted models, the recommended "
    "learner, credal-forest, pcc-lr, ecc-…, AbstainingClassifier, all of these in pipelines and searches, and whatever "
    "has a method label_distribution(X)"
)


class Training(NamedTuple):
    """What a model was fitted to."""

    X: Any
    labels: NDArray[np.uint8]
    weight: Floats


class Sampling(NamedTuple):
    """How distributions that are not known exactly are represented."""

    samples: int = N_SAMPLES
    random_state: int = 0


DistributionModel: TypeAlias = Callable[[Any, Sampling], Joint]
"""(X, sampling) → the joint distribution of the labels of each row of X."""


def label_distribution(
    estimator: Any,
    X: Any,
    *,
    training: Any = None,
    samples: int = N_SAMPLES,
    random_state: int = 0,
    label_names: Sequence[Hashable] | None = None,
) -> Samples | Mixture:
    """P(y | x) of whole label vectors y, from a fitted classifier: how its labels depend on each other.

    ============================= ====================================================================================
    forests, trees                label vectors of the training rows, weighted by how often they share a leaf with x
    nearest neighbours            the label vectors of the neighbours, with their weights
    classifier chains             samples, label by label; all label vectors, if there are no more than ``samples``
    ensembles and lists of chains the samples divided among the chains
    lists of other models         a mixture of the models, in each of which the labels are independent
    the recommended learner       the label vectors in the leaves of its trees, with its calibrated marginals
    `AbstainingClassifier`        its estimator's distribution, with its own, calibrated marginals
    ============================= ====================================================================================

    Parameters
    ----------
    estimator : fitted classifier, or list of fitted classifiers
        Or a pipeline, or a search, that ends with one; or anything that has a method ``label_distribution(X)``.
    X : array-like or sparse matrix of shape (n_instances, n_features)
        The index of a frame is kept.
    training : tuple (X, y) or (X, y, sample_weight), optional
        What the estimator was fitted to: for scikit-learn's forests and trees, which do not keep it. Bootstrap samples
        are drawn again as the forest has drawn them; class weights are not taken into account.
    samples : int, default=1000
        How many samples of each instance stand for the distribution of chains.
    random_state : int, default=0
        Draws these samples. Those of an instance do not depend on the other instances.
    label_names : sequence of n_labels names, optional
        By default those of the training labels' frame, or of the estimator, if they are known.

    Returns
    -------
    joint : Samples or Mixture
        To be given to `abstain.decide` with a loss and a penalty. What the model says itself is rarely calibrated; see
        ``joint.with_marginals``, or use an `AbstainingClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> import abstain
    >>> X, Y = make_multilabel_classification(n_samples=200, n_classes=4, random_state=0)
    >>> forest = RandomForestClassifier(min_samples_leaf=3, random_state=0).fit(X[:150], Y[:150])
    >>> joint = abstain.label_distribution(forest, X[150:], training=(X[:150], Y[:150]))
    >>> joint
    Samples of 50 instances × 4 labels: 16 samples shared by all
    >>> abstain.decide(joint, loss="rank", penalty=0.3).shape
    (50, 4)
    """
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 1:
        raise InvalidParameter(f"samples is {quoted(samples)}; expected a whole number > 0")
    model = distribution_model(estimator, _read_training(training))
    joint = model(X, Sampling(int(samples), random_state))
    names = label_names
    if names is None and training is not None and hasattr(training[1], "columns"):
        names = read_target(training[1]).label_names
    if names is None:
        names = joint.axes.label_names
    index = index_of(X)
    named = joint.named(None if names is None else tuple(joint.axes.names(joint.n_labels, names)), index)
    assert isinstance(named, Samples | Mixture)
    return named


def has_distribution(estimator: Any, *, with_training: bool) -> bool:
    """Whether a classifier, fitted or not, has a joint distribution; some only have one with their training data."""
    if isinstance(estimator, FrozenEstimator):  # what it is given in `fit` is not what it has learnt from
        return has_distribution(estimator.estimator, with_training=False)
    inner = _inner(estimator)
    if inner is not None:
        return has_distribution(inner, with_training=with_training)
    if needs_training(estimator):
        return with_training
    kinds = KNeighborsClassifier | RadiusNeighborsClassifier | ClassifierChain | ChainEnsemble
    return isinstance(estimator, kinds) or hasattr(estimator, "label_distribution")


def needs_training(estimator: Any) -> bool:
    """Whether the joint distribution of a classifier needs what the classifier was fitted to."""
    inner = _inner(estimator)
    if inner is not None:
        return needs_training(inner)
    return isinstance(estimator, ForestClassifier | DecisionTreeClassifier)


def _inner(estimator: Any) -> Any:
    """Return the classifier in a pipeline, a search or a frozen estimator; None for others."""
    if isinstance(estimator, FrozenEstimator):
        return estimator.estimator
    if isinstance(estimator, Pipeline):
        return estimator.steps[-1][1]
    if hasattr(estimator, "refit") and hasattr(estimator, "estimator"):
        return estimator.estimator
    return None


def distribution_model(estimator: Any, training: Training | None) -> DistributionModel:
    """Return what gives the joint distribution of a fitted classifier; raise an error if there is none."""
    if isinstance(estimator, FrozenEstimator):
        return distribution_model(estimator.estimator, training)
    if hasattr(estimator, "refit") and hasattr(estimator, "estimator"):
        check_is_fitted(estimator, "best_estimator_")
        return distribution_model(estimator.best_estimator_, training)
    if isinstance(estimator, Pipeline):
        steps = estimator[:-1] if len(estimator) > 1 else None
        if training is not None and steps is not None and needs_training(estimator):
            training = training._replace(X=steps.transform(training.X))
        inner = distribution_model(estimator.steps[-1][1], training)
        return inner if steps is None else OfPipeline(steps, inner)
    if isinstance(estimator, list | tuple):
        return _of_members(list(estimator), training)
    if isinstance(estimator, ForestClassifier | DecisionTreeClassifier):
        check_is_fitted(estimator)
        if training is None:
            raise InvalidParameter(
                f"{type(estimator).__name__} does not keep the data that it was fitted to, whose label vectors make "
                "its joint distribution: pass training=(X, y)"
            )
        return OfForest.of(estimator, training)
    if isinstance(estimator, KNeighborsClassifier | RadiusNeighborsClassifier):
        return OfNeighbors(estimator)
    if isinstance(estimator, ClassifierChain):
        return OfChains([estimator])
    if isinstance(estimator, ChainEnsemble):
        check_is_fitted(estimator)
        return OfChains(estimator.chains_)
    if isinstance(estimator, ProbabilisticChain):
        check_is_fitted(estimator)
        return OfChains([estimator.chain_])
    if hasattr(estimator, "label_distribution"):
        return OfOwn(estimator)
    raise InvalidParameter(
        f"{type(estimator).__name__} has no joint distribution of the labels: as far as it knows, they are independent "
        f"given the instance, and its probabilities say everything. There are {SUPPORTED}"
    )


@dataclass(frozen=True)
class OfForest:
    """A forest or tree of scikit-learn, and the label vectors in its leaves."""

    forest: Any
    vectors: LeafVectors

    @classmethod
    def of(cls, forest: Any, training: Training) -> "OfForest":
        """Let the training rows fall into the leaves, with the weights that each tree has given them."""
        n, m = training.labels.shape
        fitted_n = getattr(forest, "_n_samples", n)
        if fitted_n != n or forest.n_outputs_ != m:
            raise InvalidParameter(
                f"training has {n} instances × {m} labels; {type(forest).__name__} was fitted to {fitted_n} × "
                f"{forest.n_outputs_}"
            )
        bags = forest.estimators_samples_ if getattr(forest, "bootstrap", False) else None
        leaves = _leaves(forest, training.X)
        trees = []
        for t in range(leaves.shape[1]):
            weight = training.weight
            if bags is not None:  # in newer releases of scikit-learn weights decide which rows are drawn
                counts = np.bincount(bags[t], minlength=n)
                weight = counts.astype(np.float64) if hasattr(forest, "_sample_weight") else weight * counts
            used = weight > 0
            trees.append(Tree.of(np.where(used, leaves[:, t], leaves[used, t][0]), weight))
        return cls(forest, LeafVectors.of(trees, training.labels))

    def __call__(self, X: Any, sampling: Sampling) -> Samples:
        """Return the joint distribution: exact, whatever the sampling."""
        return self.vectors.distribution(_leaves(self.forest, X))


def _leaves(forest: Any, X: Any) -> NDArray[np.intp]:
    """Return the leaf of each tree that each row falls into, of shape (n_instances, n_trees)."""
    leaves = np.asarray(forest.apply(X))
    return leaves[:, np.newaxis] if isinstance(forest, BaseDecisionTree) else leaves


@dataclass(frozen=True)
class OfNeighbors:
    """Nearest neighbours: their label vectors, with the weights that the classifier gives them."""

    estimator: Any

    def __call__(self, X: Any, sampling: Sampling) -> Samples:
        """Return the joint distribution: exact, whatever the sampling."""
        model = self.estimator
        check_is_fitted(model, "_fit_method")
        if isinstance(model, RadiusNeighborsClassifier):
            distances, neighbors = model.radius_neighbors(X)
            alone = np.flatnonzero([len(near) == 0 for near in neighbors])
            if len(alone):
                raise InvalidParameter(f"row {alone[0]} has no neighbours within the radius, and so no distribution")
        else:
            distances, neighbors = model.kneighbors(X)
        weights = _get_weights(distances, model.weights)
        if weights is None:
            weights = [np.ones(len(near)) for near in neighbors]
        n, counts = len(neighbors), np.array([len(near) for near in neighbors])
        table, number = distinct(_labels_of_neighbors(model))
        rows = np.repeat(np.arange(n), counts)
        given = np.concatenate([np.asarray(each, np.float64) for each in weights])
        sums = np.bincount(rows, given, minlength=n)
        bad = np.flatnonzero(~(sums > 0))
        if len(bad):
            raise InvalidParameter(f"row {bad[0]}: all neighbours have weight 0")
        columns = number[np.concatenate(list(neighbors))]
        summed = sparse.csr_array((given / sums[rows], (rows, columns)), shape=(n, len(table)))
        summed.sum_duplicates()
        return Samples(table, summed)


def _labels_of_neighbors(model: Any) -> NDArray[np.uint8]:
    """Return the labels of the training rows of a classifier of nearest neighbours."""
    classes = model.classes_ if model.outputs_2d_ else [model.classes_]
    codes = model._y if model.outputs_2d_ else model._y.reshape(-1, 1)
    if not all(np.isin(each, (0, 1)).all() for each in classes):
        raise InvalidParameter(f"{type(model).__name__} has learnt classes other than 0 and 1")
    return np.column_stack([each[codes[:, j]] for j, each in enumerate(classes)]).astype(np.uint8)


@dataclass(frozen=True)
class OfChains:
    """Classifier chains, each with the same weight."""

    chains: Sequence[ClassifierChain]

    def __call__(self, X: Any, sampling: Sampling) -> Samples:
        """Return the joint distribution, by samples if there are many label vectors."""
        for chain in self.chains:
            check_is_fitted(chain)
        return distribution_of_chains(self.chains, X, samples=sampling.samples, random_state=sampling.random_state)


@dataclass(frozen=True)
class OfModels:
    """Models that are mixed: in each of them labels are independent."""

    models: Sequence[Any]

    def __call__(self, X: Any, sampling: Sampling) -> Mixture:
        """Return the mixture."""
        return Mixture(None, np.stack([dense(label_probabilities(model, X)) for model in self.models], axis=1))


@dataclass(frozen=True)
class OfDistributions:
    """Models that are mixed, each of which has a joint distribution by samples."""

    models: Sequence[DistributionModel]

    def __call__(self, X: Any, sampling: Sampling) -> Samples:
        """Return the mixture: the samples of all models."""
        share = Sampling(max(1, sampling.samples // len(self.models)), sampling.random_state)
        parts = [model(X, share)._all_components() for model in self.models]
        if not all(part.are_samples for part in parts):
            raise InvalidParameter(
                "the models of a list have samples or mixtures as joint distributions; expected one kind"
            )
        table, number = distinct(np.concatenate([part.values for part in parts]))
        before = np.cumsum([0, *(len(part.values) for part in parts[:-1])])
        columns = number[np.concatenate([part.index + b for part, b in zip(parts, before, strict=True)])]
        weights = np.concatenate([part.weights for part in parts]) / len(parts)
        rows = np.concatenate([part.row for part in parts])
        summed = sparse.csr_array((weights, (rows, columns)), shape=(parts[0].shape[0], len(table)))
        summed.sum_duplicates()
        return Samples(table, summed)


@dataclass(frozen=True)
class OfPipeline:
    """The transformers of a pipeline before a model."""

    steps: Any
    model: DistributionModel

    def __call__(self, X: Any, sampling: Sampling) -> Joint:
        """Return the joint distribution of the transformed instances."""
        return self.model(self.steps.transform(X), sampling)


@dataclass(frozen=True)
class OfOwn:
    """A model that knows its own joint distribution."""

    estimator: Any

    def __call__(self, X: Any, sampling: Sampling) -> Joint:
        """Return the joint distribution, checked."""
        joint = self.estimator.label_distribution(X)
        if not isinstance(joint, Joint) or joint.n_rows != _num_samples(X):
            raise InvalidParameter(
                f"{type(self.estimator).__name__}.label_distribution returned {quoted(joint)}; expected Samples or "
                f"Mixture of {_num_samples(X)} instances"
            )
        return joint


def _of_members(models: list[Any], training: Training | None) -> DistributionModel:
    """Return the mixture of models: of their joint distributions, if they have any."""
    if not models:
        raise InvalidParameter("the list of models is empty")
    known = [has_distribution(model, with_training=training is not None) for model in models]
    if all(isinstance(model, ClassifierChain) for model in models):
        return OfChains(models)
    if all(known):
        return OfDistributions([distribution_model(model, training) for model in models])
    if any(known):
        i = known.index(False)
        raise InvalidParameter(
            f"model {i}, {type(models[i]).__name__}, has no joint distribution of its own, others of the list have; "
            "expected one kind"
        )
    return OfModels(models)


def _read_training(training: Any) -> Training | None:
    """Return the training data that a user has given."""
    if training is None:
        return None
    if not isinstance(training, tuple | list) or len(training) not in (2, 3):
        raise InvalidParameter("training: expected (X, y) or (X, y, sample_weight), what the estimator was fitted to")
    return read_training(*training)


def read_training(X: Any, y: Any, sample_weight: Any = None) -> Training:
    """Return features, labels and weights of the training rows, checked."""
    target = read_target(np.reshape(y, (-1, 1)) if np.ndim(y) == 1 else y)
    if target.vector is not None:
        raise InvalidParameter("training: y has classes other than 0 and 1; expected a table of labels")
    check_consistent_length(X, target.labels, sample_weight)
    labels = dense(target.labels, "y").astype(np.uint8)
    weight = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    return Training(X, labels, weight)
