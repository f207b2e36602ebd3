"""Decisions whose risk stays below a target, shown on a labelled sample of any size.

It may import `_core` and `_utils`. Begin with `control`: `_request` reads its arguments, `_risks` defines what can be
controlled, `_candidates` counts what the sample shows at each cost, `_selection` certifies costs by the tests of
`_p_values`, and `_rule` is the result.
"""

from typing import Any, Literal, NamedTuple, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from abstain._core.losses import LossLike
from abstain._core.probabilities import Probabilities
from abstain._core.tables import dense
from abstain._core.truth import read_truth_for
from abstain._utils.types import Floats
from abstain.guarantee._candidates import candidate_costs, count_by_instance, count_by_label
from abstain.guarantee._request import Confidence, ControlRequest, read_request
from abstain.guarantee._risks import RISKS
from abstain.guarantee._rule import Rule
from abstain.guarantee._selection import Choice, choose, choose_by_count, choose_in_expectation, divide_error

__all__ = ["RISKS", "Rule", "control"]

REFUSAL = (
    "a guarantee about all labels needs rows that are drawn at random and whose labels are all known: labels that "
    "somebody chose to look at are no random sample. Take the complete rows, if chance alone made them complete"
)


def __dir__() -> list[str]:
    return __all__


class ControlOptions(TypedDict, total=False):
    """The keyword arguments of `control` that do not change what kind of rule it returns, for its overloads."""

    risk: str
    target: float
    confidence: Confidence
    loss: LossLike
    method: str


@overload
def control(
    probabilities: Any, y_true: Any, *, per: Literal["label"], **options: Unpack[ControlOptions]
) -> Rule[Floats]: ...
@overload
def control(
    probabilities: Any, y_true: Any, *, per: Literal["table", "instance"] = "table", **options: Unpack[ControlOptions]
) -> Rule[float]: ...
@overload
def control(probabilities: Any, y_true: Any, *, per: str, **options: Unpack[ControlOptions]) -> Rule[Any]: ...
def control(
    probabilities: Any,
    y_true: Any,
    *,
    risk: str = "answered_error",
    target: float = 0.02,
    confidence: Confidence = 0.95,
    loss: LossLike = "hamming",
    per: str = "table",
    method: str = "betting",
) -> Rule[Any]:
    """A great cost c such that P(the risk of ``decide(·, loss, Linear(c))`` misses the target) ≤ 1 − confidence.

    The probabilities may be as wrong as they like: the guarantee holds for every sample size, and for every
    distribution of instances and their labels that the calibration sample and the new instances are drawn from
    independently. Bad probabilities cost answers. The labels of one instance may depend on each other in any way.

    Parameters
    ----------
    probabilities : array-like of shape (n_instances, n_labels)
        As for `abstain.decide`, of instances that the classifier was not fitted (or calibrated) on. Sparse ones are
        made dense; by `Rule.decide` for losses that are not sums over labels.
    y_true : array-like of shape (n_instances, n_labels)
        1 for labels that are relevant, 0 for the others. All of them must be known: labels that somebody chose to look
        at are no random sample of all labels, and of rows only those may be left out that are incomplete by chance.
    risk : str, default="answered_error"
        What is controlled. Shares of the answers, over all instances and labels:

        - ``"answered_error"``: wrong answers / answers;
        - ``"precision"``: relevant ones / labels answered 1;
        - ``"recall"``: those answered 1 / relevant labels answered;
        - ``"f1"``: the harmonic mean of these two;

        shares of everything, an abstention being no error:

        - ``"overall_error"``: wrong answers / labels, what is left of errors once a human has answered the rest;
        - ``"any_error"``: instances with a wrong answer / instances.
    target : float in (0, 1), default=0.02
        What the errors must not exceed, or what precision, recall and F1 must reach.
    confidence : float in (0, 1) or "expectation", default=0.95
        The probability, over calibration samples, with which the target is met. ``"expectation"`` meets it on average
        over calibration samples instead: conformal risk control. It answers more, and is available for
        ``"overall_error"`` and ``"any_error"`` with decisions that are nested (Hamming, subset 0/1).
    loss : "hamming", "f1", "jaccard", "subset", or a loss object
        The loss that the decisions are optimal for.
    per : "table", "instance" or "label", default="table"
        ``"table"``: the risk of all labels pooled.
        ``"instance"``: the mean over the instances for which the risk is defined; a smaller sample can show it where
        few of many labels are counted, as for precision.
        ``"label"``: each label has a cost and a guarantee of its own, and all of them hold at the same time with the
        confidence; a label for which nothing can be shown is abstained on. For sums over labels only (`Hamming`,
        `DecomposableLoss`): the other losses cannot price labels one by one, and at a common cost the hardest label
        would decide for all.
    method : "betting" or "hoeffding_bentkus", default="betting"
        The p-value that is used where what is counted is not just 0 or 1; if it is, the exact binomial test is always
        used. Betting takes the sample in a random order, the same for samples of the same size.

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
    request = read_request(risk=risk, target=target, confidence=confidence, loss=loss, per=per, method=method)
    table = Probabilities(probabilities)
    table.warn_if_softmax()
    table.make_dense()
    request.loss.check(table.n_labels)
    table.axes.require_labels(request.loss.label_names, repr(request.loss))
    truth = dense(read_truth_for(table, y_true, refusal=REFUSAL))
    if per == "label":
        each = _certify_labels(request, table, truth)
        found: dict[str, Any] = {name: np.array([getattr(one, name) for one in each]) for name in Certified._fields}
    else:
        found = _certify_table(request, table, truth)._asdict()
    return Rule(
        **found,
        risk=risk,
        target=float(target),
        confidence=confidence,
        loss=request.loss,
        per=per,
        n_labels=table.n_labels,
        label_names=table.axes.label_names,
    )


class Certified(NamedTuple):
    """The greatest cost that is certified, and what is known of it: attributes of `Rule`."""

    cost: float
    satisfied: bool
    estimate: float
    abstention: float
    p_value: float


class CandidateTotals(NamedTuple):
    """The candidates, each with what the whole sample shows at its cost."""

    cost: Floats
    answered: Floats
    """The share of the labels that are answered."""
    bad: NDArray[Any]
    counted: NDArray[Any]


def _certify_table(request: ControlRequest, table: Probabilities, truth: NDArray[np.int8]) -> Certified:
    """Return the cost for the whole table, with a risk of all labels pooled or of the mean instance."""
    costs = candidate_costs(request.loss, table.n_labels, per_label=False)
    counts = count_by_instance(table, truth, request.loss, costs)
    sample = request.risk.sample(counts, table.n_labels, request.is_per_instance)
    choice = choose(sample, request.limit, request.error, request.risk.is_monotone, request.method)
    answered = counts.answered.sum(axis=0) / max(1, truth.size)
    candidates = CandidateTotals(costs[0], answered, sample.bad.sum(axis=0), sample.counted.sum(axis=0))
    return _describe(request, choice, candidates)


def _certify_labels(request: ControlRequest, table: Probabilities, truth: NDArray[np.int8]) -> list[Certified]:
    """Return a cost for each label; of the error of a confidence, each label gets the same share.

    An expectation holds for each label by itself.
    """
    n, m = truth.shape
    costs = candidate_costs(request.loss, m, per_label=True)
    counts = count_by_label(table, truth, request.loss, costs)
    bad, counted, _ = request.risk.sample(counts, n, per_instance=False)
    found = []
    for j in range(m):
        if request.error is None:
            choice = choose_in_expectation(bad[j].astype(np.float64), n, request.limit)
        else:
            shares = divide_error(request.error / m, request.limit, request.risk.is_monotone)
            choice = choose_by_count(bad[j], counted[j], request.limit, shares)
        candidates = CandidateTotals(costs[j], counts.answered[j] / max(1, n), bad[j], counted[j])
        found.append(_describe(request, choice, candidates))
    return found


def _describe(request: ControlRequest, choice: Choice, candidates: CandidateTotals) -> Certified:
    """Return what is known of the chosen candidate; of none, that everything is abstained on."""
    k = choice.candidate
    if k < 0:
        return Certified(float("nan"), False, float("nan"), 1.0, choice.p_value)
    bad, counted = float(candidates.bad[k]), float(candidates.counted[k])
    return Certified(
        cost=float(candidates.cost[k]),
        satisfied=True,
        estimate=request.risk.estimate(bad, counted, request.is_per_instance),
        abstention=float(1.0 - candidates.answered[k]),
        p_value=choice.p_value,
    )
