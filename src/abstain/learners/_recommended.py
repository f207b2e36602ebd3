"""The learner we recommend, and extremely randomised trees by themselves."""

from typing import Any

from sklearn.ensemble import ExtraTreesClassifier

from abstain.learners._blend import BlendedClassifier

N_TREES = 200
MAX_FEATURES_PER_SPLIT = 100
MAX_VOTES_PER_TREE = 300_000  # leaves × labels; with inner nodes and both classes, 32 bytes each
TREES_TITLE = "extremely randomised trees"


def recommended(
    *, cv: Any = 5, random_state: Any = 0, n_jobs: int | None = None, verbose: int = 0
) -> BlendedClassifier:
    """Return trees and logistic regression, blended and calibrated: good on most data, fast, and nothing to tune.

    Three models of all labels are cross-fitted: extremely randomised trees; logistic regression on the scaled features,
    whose regularisation is chosen; and, for dense features, logistic regression on a map of an RBF kernel. For each
    label, the log-odds that they give for instances held out are weighted by a further logistic regression. Labels
    share a prior for these weights, so that rare ones take what the others say. This calibrates the probabilities, and
    no further calibration is needed. Sparse features stay sparse; as they get no kernel, probabilities differ from
    those of the same features made dense. `AbstainingClassifier` uses this learner if none is given. Beyond some 10⁷
    instances × labels a linear learner (``br-lr``) is the better choice.

    Parameters
    ----------
    cv : int or splitter, default=5
        The folds of cross-fitting; a number means shuffled folds. Where instances belong together or follow each other
        in time, pass `sklearn.model_selection.GroupKFold` (with ``groups`` for ``fit``) or `TimeSeriesSplit`.
    random_state : int, RandomState or None, default=0
        Draws the trees and the rows that span the kernel map.
    n_jobs : int, default=None
        Trees grown at once, and blocks of labels fitted at once. Results do not depend on it.
    verbose : int, default=0
        If it is not 0, what is done is printed, with the time that it took.

    Returns
    -------
    estimator : BlendedClassifier
        A scikit-learn classifier, not fitted.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> import abstain
    >>> X, Y = make_multilabel_classification(n_samples=200, n_classes=3, random_state=0)
    >>> model = abstain.learners.recommended().fit(X[:150], Y[:150])
    >>> model.predict_proba(X[150:]).shape
    (50, 3)
    """
    return BlendedClassifier(cv=cv, random_state=random_state, n_jobs=n_jobs, verbose=verbose)


def extra_trees(*, n_instances: int, n_features: int, n_labels: int, random_state: Any = 0) -> ExtraTreesClassifier:
    """Return extremely randomised trees, sized by the data, for experiments.

    Their votes are no probabilities (they keep off 0 and 1). Each split tries 30 % of the features, at most 100. Leaves
    have at least two instances, and so many that a tree's votes for all labels take about 10 MB.
    """
    return ExtraTreesClassifier(
        n_estimators=N_TREES,
        max_features=min(MAX_FEATURES_PER_SPLIT, max(1, round(0.3 * n_features))),
        min_samples_leaf=max(2, round(n_instances * n_labels / MAX_VOTES_PER_TREE)),
        random_state=random_state,
    )


def seconds_to_fit_trees(n_instances: int, n_features: int) -> float:
    """Return roughly how long the trees take on one core."""
    return N_TREES * 1e-7 * n_instances * n_features
