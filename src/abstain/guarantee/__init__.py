"""Decisions whose risk stays below a target, shown on a labelled sample of any size."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.losses import DecomposableLoss, LossLike
from abstain._core.probabilities import Probabilities
from abstain._core.tables import dense
from abstain._core.truth import read_truth_for
from abstain._utils.types import Floats
from abstain.guarantee._candidates import candidate_costs, tally_of_instances, tally_of_labels
from abstain.guarantee._request import Promise, read_promise
from abstain.guarantee._risks import RISKS
from abstain.guarantee._rule import Rule
from abstain.guarantee._selection import Choice, choose, choose_by_count, choose_in_expectation, divide

__all__ = ["RISKS", "Rule", "control"]


def __dir__() -> list[str]:
    return __all__


def control(
    probabilities: Any,
    y_true: Any,
    *,
    risk: str = "answered_error",
    target: float = 0.02,
    confidence: float | None = 0.95,
    loss: LossLike = "hamming",
    per: str | None = None,
    method: str = "betting",
) -> Rule:
    """A great cost c such that P(the risk of ``decide(·, loss, Linear(c))`` misses the target) ≤ 1 − confidence.

    The probabilities may be as wrong as they like: what is promised holds for every sample size, and for every
    distribution of instances and their labels that the calibration sample and the new instances are drawn from
    independently. Bad probabilities cost answers. The labels of one instance may depend on each other in any way.

    Parameters
    ----------
    probabilities : n × m table
        As for `abstain.decide`, of instances that the classifier was not fitted (or calibrated) on. Sparse ones are
        made dense; by `Rule.decide` for losses that are not sums over labels.
    y_true : n × m table of 0 and 1
        What is relevant.
    risk : str, default="answered_error"
        Of what is answered, over all instances and labels:

        - ``"answered_error"``: wrong answers / answers;
        - ``"precision"``: relevant ones / labels answered 1;
        - ``"recall"``: those answered 1 / relevant labels answered;
        - ``"f1"``: the harmonic mean of these two;

        of everything, an abstention being no error:

        - ``"overall_error"``: wrong answers / labels, what is left of errors once a human has answered the rest;
        - ``"any_error"``: instances with a wrong answer / instances.
    target : float in (0, 1), default=0.02
        What the errors must not exceed, or what precision, recall and F1 must reach.
    confidence : float in (0, 1) or None, default=0.95
        How sure it must be; the chance is that of the calibration sample. None promises the target in expectation over
        calibration samples: conformal risk control. It answers more, and is there for ``"overall_error"`` and
        ``"any_error"`` with decisions that are nested (Hamming, subset 0/1).
    loss : "hamming", "f1", "jaccard", "subset", or a loss object
        What the decisions are optimal for.
    per : None, "instance" or "label", default=None
        ``"instance"``: the mean over the instances for which the risk is defined, instead of all labels pooled; a
        smaller sample can show it where few of many labels are counted, as for precision.
        ``"label"``: each label has a cost and a promise of its own, and all promises hold at the same time with the
        confidence; a label for which nothing can be shown is left open. For sums over labels only (`Hamming`,
        `DecomposableLoss`): the other losses cannot price labels one by one, and at a common cost the hardest label
        would decide for all.
    method : "betting" or "hoeffding_bentkus", default="betting"
        Which p-value is used where what is counted is not just 0 or 1; if it is, the exact
        binomial test is used always. Betting takes the sample in an order that is drawn by lot, the same for samples of
        the same size.

    Returns
    -------
    Rule
        With `cost`, `satisfied` and `decide`. If the target cannot be shown at any cost, ``satisfied`` is False and
        nothing is answered.

    Notes
    -----
    The candidates are 301 costs that do not depend on the sample; the greatest one that is certified is taken. Each is
    tested for missing the target, with one bounded number per instance, and the tests are ordered so that P(any
    candidate is certified wrongly) ≤ 1 − confidence (`abstain.guarantee._selection`). Labels share the error
    1 − confidence equally.

    Even a sample without any error shows no more than so much: an error ≤ target needs log(1 − confidence) / log(1 −
    target) instances at the very least, 149 for 0.02 with a confidence of 0.95. Pooled risks need about m / (labels
    counted per instance) times as many: a rare instance all of whose m labels are wrong has to be ruled out.

    References
    ----------
    Angelopoulos, Bates, Candès, Jordan and Lei, Learn then test, 2021; Angelopoulos, Bates, Fisch, Lei and Schuster,
    Conformal risk control, 2022; Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting,
    2024.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.guarantee import control
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random((1000, 5))
    >>> y = rng.random((1000, 5)) < p
    >>> rule = control(p, y, target=0.1)
    >>> rule
    Rule for Hamming(): answered_error ≤ 0.1 with 0.95 confidence
    cost 0.1728: 65.0% of the calibration sample left open, answered_error 0.08571
    >>> rule.decide([0.99, 0.55, 0.08, 0.3, 0.02]).labels
    array([[ 1, -1,  0, -1,  0]], dtype=int8)
    """
    promise = read_promise(risk, target, confidence, loss, per, method)
    table = Probabilities(probabilities)
    table.make_dense()
    promise.loss.check(table.n_labels)
    table.axes.require_labels(promise.loss.label_names, repr(promise.loss))
    truth = dense(read_truth_for(table, y_true))
    found = _cost_of_each_label(promise, table, truth) if per == "label" else _common_cost(promise, table, truth)
    return Rule(*found, risk, float(target), confidence, promise.loss, per, table.n_labels, table.axes.label_names)


class Found(NamedTuple):
    """The first fields of `Rule`."""

    cost: Any
    satisfied: Any
    estimate: Any
    abstention: Any
    p_value: Any


def _common_cost(promise: Promise, table: Probabilities, truth: NDArray[np.int8]) -> Found:
    costs = candidate_costs(promise.loss, table.n_labels, per_label=False)
    tally = tally_of_instances(table, truth, promise.loss, costs)
    sample = promise.risk.sample(tally, table.n_labels, promise.is_per_instance)
    choice = choose(sample, promise.limit, promise.error, promise.risk.is_monotone, promise.method)
    answered = tally.answered.sum(axis=0) / max(1, truth.size)
    return _describe(promise, choice, costs[0], sample.bad.sum(axis=0), sample.counted.sum(axis=0), answered)


def _cost_of_each_label(promise: Promise, table: Probabilities, truth: NDArray[np.int8]) -> Found:
    """An expectation holds for each label by itself; of the error of a confidence, each label gets the same share."""
    assert isinstance(promise.loss, DecomposableLoss)
    n, m = truth.shape
    costs = candidate_costs(promise.loss, m, per_label=True)
    tally = tally_of_labels(table, truth, promise.loss, costs)
    bad, counted, _ = promise.risk.sample(tally, n, per_instance=False)
    each = []
    for j in range(m):
        if promise.error is None:
            choice = choose_in_expectation(bad[j].astype(np.float64), n, promise.limit)
        else:
            shares = divide(promise.error / m, promise.limit, promise.risk.is_monotone)
            choice = choose_by_count(bad[j], counted[j], promise.limit, shares)
        each.append(_describe(promise, choice, costs[j], bad[j], counted[j], tally.answered[j] / max(1, n)))
    return Found(*(np.array(column) for column in zip(*each, strict=True)))


def _describe(
    promise: Promise, choice: Choice, costs: Floats, bad: NDArray[Any], counted: NDArray[Any], answered: Floats
) -> Found:
    k, p_value = choice
    if k < 0:
        return Found(float("nan"), False, float("nan"), 1.0, p_value)
    estimate = promise.risk.estimate(float(bad[k]), float(counted[k]), promise.is_per_instance)
    return Found(float(costs[k]), True, estimate, float(1.0 - answered[k]), p_value)
