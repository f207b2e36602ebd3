"""The learner we recommend: extremely randomised trees, sized by the data."""

from typing import Any

from sklearn.ensemble import ExtraTreesClassifier

N_TREES = 200
MAX_FEATURES_PER_SPLIT = 100
MAX_VOTES_PER_TREE = 300_000  # leaves × labels; with inner nodes and both classes, 32 bytes each
TREES_TITLE = "extremely randomised trees"


def recommended(
    *, n_instances: int, n_features: int, n_labels: int, random_state: Any = 0, n_jobs: int | None = None
) -> ExtraTreesClassifier:
    """Return extremely randomised trees that learn all labels at once: good on most data, fast, and nothing to tune.

    Their votes are no probabilities (they keep off 0 and 1): calibrate them, as `AbstainingClassifier` does. Each split
    tries 30 % of the features, at most 100. Leaves have at least two instances, and so many that a tree's votes for all
    labels take about 10 MB. Beyond some 10⁷ instances × labels a linear learner (``br-lr``) is the better choice.

    Parameters
    ----------
    n_instances, n_features, n_labels : int
        The size of the training data.
    random_state : int, RandomState or None, default=0
        Draws the trees.
    n_jobs : int, default=None
        Trees fitted at once.

    Returns
    -------
    estimator : ExtraTreesClassifier
        Not fitted.
    """
    return ExtraTreesClassifier(
        n_estimators=N_TREES,
        max_features=min(MAX_FEATURES_PER_SPLIT, max(1, round(0.3 * n_features))),
        min_samples_leaf=max(2, round(n_instances * n_labels / MAX_VOTES_PER_TREE)),
        n_jobs=n_jobs,
        random_state=random_state,
    )


def seconds_to_fit_trees(n_instances: int, n_features: int) -> float:
    """Return roughly how long the trees take on one core."""
    return N_TREES * 1e-7 * n_instances * n_features
