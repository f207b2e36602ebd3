"""The methods of calibration by name, and which of them predicts best."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from abstain._utils.errors import InvalidParameter
from abstain._utils.suggestions import did_you_mean
from abstain.calibration._groups import Groups
from abstain.calibration._isotonic import Isotonic, VennAbers
from abstain.calibration._logistic import Beta, Identity, Sigmoid, Temperature
from abstain.calibration._method import Method

METHODS: dict[str, type[Method]] = {
    method.name: method for method in (Identity, Temperature, Sigmoid, Beta, Isotonic, VennAbers)
}
"""All methods, the simplest first."""
NAMES = ("auto", *METHODS)


class Split(NamedTuple):
    """Some rows to learn from, and others to predict."""

    train: Groups
    test: Groups


def require_method(name: str, what: str = "method") -> None:
    """Raise `InvalidParameter` if there is no method of this name."""
    if name not in NAMES:
        hint = did_you_mean(str(name), NAMES, normalize=str.lower)
        accepted = ", ".join(map(repr, NAMES))
        raise InvalidParameter(f"{what} is {name!r}{hint}; expected one of {accepted}")


def learn(groups: Groups, splits: Sequence[Split], name: str) -> tuple[Method, dict[str, float]]:
    """Return a method, learnt from all groups, and the log losses of the splits: without calibration, and with it.

    The method "auto" is the one with the lowest log loss on rows it has not seen, over all labels together; if some are
    equal, the simplest of them.
    """
    groups = groups.with_certain_scores_moved()
    candidates = list(METHODS) if name == "auto" else list(dict.fromkeys(["none", name]))
    fitted = {candidate: METHODS[candidate].fit(groups) for candidate in candidates}
    losses = {}
    if splits and groups.weight.sum() > 0:
        losses = {candidate: _cross_fitted_log_loss(fitted[candidate], splits) for candidate in candidates}
    chosen = min(losses, key=losses.__getitem__) if name == "auto" and losses else ("none" if name == "auto" else name)
    return fitted[chosen], losses


def _cross_fitted_log_loss(start: Method, splits: Sequence[Split]) -> float:
    """Return the mean log loss of entries, by the same method learnt from other rows."""
    loss = weight = 0.0
    for train, test in splits:
        method = type(start).fit(train.with_certain_scores_moved(), start)
        p = method.probabilities(test.scores, test.labels)
        loss -= float(test.relevant @ np.log(p) + (test.weight - test.relevant) @ np.log1p(-p))
        weight += float(test.weight.sum())
    return loss / weight
