"""The arguments of `control`, checked once: every error about a request is raised here."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, TypeAlias

from abstain._core.losses import Loss, LossLike, as_loss
from abstain._utils.errors import InvalidGuarantee, InvalidLoss
from abstain.guarantee._risks import RISKS, Risk
from abstain.guarantee._selection import METHODS

Confidence: TypeAlias = float | Literal["expectation"]
"""The probability with which a target is met, or that it is met on average over calibration samples."""

PER = ("table", "instance", "label")


@dataclass(frozen=True)
class ControlRequest:
    """E[bad] ≤ limit · E[counted], but for a probability of `error`; in expectation if that is None."""

    risk: Risk
    limit: float
    error: float | None
    loss: Loss
    is_per_instance: bool
    method: str


def read_request(
    *, risk: str, target: float, confidence: Confidence, loss: LossLike, per: str, method: str
) -> ControlRequest:
    """Return the request, or raise an error that says what is wrong with it."""
    wanted, chosen = _read_risk(risk, per), _read_loss(loss, per)
    if method not in METHODS:
        raise InvalidGuarantee(f"method is {method!r}; expected {' or '.join(map(repr, METHODS))}")
    error = _read_error(confidence, risk, wanted, chosen)
    is_per_instance = per == "instance"
    limit = wanted.limit(_read_share(target, "target"), is_per_instance)
    if not 0 < limit < 1:
        raise InvalidGuarantee(f"target is {target!r}; that cannot be told from {round(float(target))}")
    return ControlRequest(wanted, limit, error, chosen, is_per_instance, method)


def _read_risk(risk: str, per: str) -> Risk:
    if not isinstance(risk, str) or risk not in RISKS:
        raise InvalidGuarantee(f"risk is {risk!r}; expected one of {', '.join(map(repr, RISKS))}")
    if not isinstance(per, str) or per not in PER:
        raise InvalidGuarantee(f"per is {per!r}; expected 'table', 'instance' or 'label'")
    if per == "label" and RISKS[risk].of_instances:
        raise InvalidGuarantee(f"{risk!r} is about whole instances, not about each label; use 'overall_error'")
    return RISKS[risk]


def _read_loss(loss: LossLike, per: str) -> Loss:
    chosen = as_loss(loss)
    if chosen.gives_rankings:
        raise InvalidLoss(f"{chosen!r} ranks labels and answers none: there is no error to control")
    if per == "label" and not chosen.is_decomposable:
        raise InvalidLoss(f"{chosen!r} cannot price labels one by one; per='label' needs a decomposable loss (Hamming)")
    return chosen


def _read_error(confidence: Confidence, name: str, risk: Risk, loss: Loss) -> float | None:
    if confidence != "expectation":
        return 1.0 - _read_share(confidence, "confidence", ", or 'expectation'")
    if not risk.is_monotone:
        raise InvalidGuarantee(
            f"{name!r} may fall as more is answered, and cannot be controlled in expectation; give a confidence, or "
            "use 'overall_error' or 'any_error'"
        )
    if not loss.answers_are_nested:
        raise InvalidGuarantee(
            f"{loss!r}: at a higher cost labels may be answered differently, so the risk may fall, and cannot be "
            "controlled in expectation; give a confidence, or use the Hamming or subset 0/1 loss"
        )
    return None


def _read_share(value: Any, name: str, others: str = "") -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise InvalidGuarantee(f"{name} is {value!r}; expected a number between 0 and 1{others}")
    return float(value)
