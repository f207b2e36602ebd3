"""What the page has to know about each loss: words, tolerances, the end of the cost slider, and some risk profiles."""

from collections.abc import Iterable
from math import ceil, floor, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.kernels.choice import SLACK, TIE
from abstain._core.losses import LOSSES, Hamming, Loss
from abstain._core.penalties import Concave
from abstain._core.probabilities import Probabilities
from abstain._core.profile import RiskProfile
from abstain._report.encoding import Packed, pack_counts, pack_numbers
from abstain._report.prices import Prices
from abstain._utils.errors import InvalidLoss
from abstain._utils.numbers import LARGEST_PRICE

SMALLEST_COST = 0.01  # the end of the cost slider where nothing is ever abstained on
CONSTANTS = {"tie": TIE, "slack": SLACK, "largestPrice": LARGEST_PRICE, "smallestCost": SMALLEST_COST}


def read_losses(names: Iterable[str], prices: Prices) -> dict[str, Loss]:
    """Return the losses with these names, each once; the Hamming loss has the prices of errors as its costs."""
    given = [names] if isinstance(names, str) else list(names)
    accepted = ", ".join(repr(name) for name in LOSSES)
    for name in given:
        if not isinstance(name, str) or name not in LOSSES:
            raise InvalidLoss(f"losses: {name!r} is not the name of a loss; expected names among {accepted}")
    if not given:
        raise InvalidLoss(f"losses: there is none; expected names among {accepted}")
    return {name: prices.hamming if name == Hamming.name else LOSSES[name]() for name in given}


def describe_losses(p: NDArray[np.float64], losses: dict[str, Loss]) -> tuple[list[dict[str, Any]], dict[str, Packed]]:
    """Return the facts of each loss, and the risk profiles that the page does not compute itself."""
    facts, profiles = [], {}
    for name, loss in losses.items():
        profile = RiskProfile(Probabilities(p), loss)
        facts.append(
            {
                "name": name,
                "title": loss.title,
                "className": type(loss).__name__,
                "description": loss.description,
                "unitDescription": loss.unit_description,
                "tieScale": loss.tie_scale,
                "givesRankings": loss.gives_rankings,
                "largestCost": largest_cost(profile.values),
            }
        )
        # Where the last labels of an order are abstained, and for rankings, sorting is enough: the page does it itself.
        start = profile.dense_profile.start
        if start is not None and not loss.gives_rankings:
            profiles[f"{name}-values"] = pack_numbers(profile.values)
            profiles[f"{name}-start"] = pack_counts(start)
    return facts, profiles


def largest_cost(values: NDArray[np.float64]) -> float:
    """Max over instances and a of (r(0) − r(a)) / (a·m / (m + a)), rounded up: from there on, every label is answered.

    r is the risk profile. Of the penalties offered, the concave one with cost 1 is nowhere above the linear one, so
    this holds for both.

    Examples
    --------
    >>> import abstain
    >>> from abstain._report.loss_facts import largest_cost
    >>> cost = largest_cost(abstain.risk_profile([0.9, 0.8, 0.7, 0.3], loss="hamming").values)
    >>> cost, abstain.decide([0.9, 0.8, 0.7, 0.3], "hamming", abstain.Concave(cost)).n_abstained
    (0.47, array([0]))
    """
    unit_penalty = Concave(1.0).bind(values.shape[1] - 1).counts[1:]
    saved = float(((values[:, :1] - values[:, 1:]) / unit_penalty).max())
    if saved <= TIE:
        return SMALLEST_COST
    step = 10.0 ** (floor(log10(saved)) - 1)
    return float(f"{ceil(saved / step * (1.0 - SLACK)) * step:.3g}")
