"""Folds for cross-fitting: any splitter of scikit-learn, and parameters that belong to rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator, KFold, StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing

from abstain._core.targets import Target
from abstain._utils.errors import InvalidParameter


def folds_for(cv: Any, target: Target) -> BaseCrossValidator:
    """Return the splitter; a number means shuffled folds, as files are often sorted, stratified for one target."""
    if isinstance(cv, int | np.integer):
        n = target.labels.shape[0]
        if n < cv:
            raise InvalidParameter(f"cv={cv}: there are fewer instances than folds (n_samples={n})")
        kind = KFold if target.vector is None else StratifiedKFold
        return kind(int(cv), shuffle=True, random_state=0)
    return check_cv(cv, target.vector, classifier=True)


def rows_of(value: Any, rows: NDArray[np.intp], n: int) -> Any:
    """Return the part of a fit parameter that belongs to some rows; parameters that are not per row stay whole."""
    per_row = hasattr(value, "__len__") and not isinstance(value, str | dict) and len(value) == n
    return _safe_indexing(value, rows) if per_row else value


def fill_gaps(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Replace missing scores, of labels that were constant in a training part, by draws from the label's other rows.

    The held-out part has all the examples of a class then, and a constant score would give this away. Scores have the
    shape (n_rows, n_labels), or (n_rows, n_labels, n_scores); all scores of a row are drawn together.
    """
    random = np.random.default_rng(0)
    unknown = np.isnan(scores if scores.ndim == 2 else scores.sum(axis=2))
    for j in np.flatnonzero(unknown.any(axis=0)):
        known = scores[~unknown[:, j], j]
        scores[unknown[:, j], j] = random.choice(known, unknown[:, j].sum()) if len(known) else 0.0
    return scores
