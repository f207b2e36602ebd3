"""1/x as a sum of exponentials, which turns expectations of ratios into products.

    1/x  ≈  Σ_q weights[q] · exp(−exponents[q] · x)        relative error ≤ 1e-13 for every real x in [1, reach]

If N is a sum of independent variables, E[1/N] is hard and E[exp(−τN)] is a product of m factors. The rules are computed
once, to 1600 bits, by ``tools/reciprocal_rules.py``, and stored beside this file. Their size grows like log(reach):
24 terms reach 137, 36 reach 1470, 60 reach 125 979.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class ReciprocalRule(NamedTuple):
    exponents: NDArray[np.float64]  # increasing, a multiple of four of them
    weights: NDArray[np.float64]


@cache
def _table() -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = json.loads(files(__package__).joinpath("reciprocal_rules.json").read_text())
    return table


def longest_reach() -> int:
    """Return the largest x for which there is a rule."""
    return int(reaches()[-1])


@cache
def reaches() -> NDArray[np.int64]:
    """Return the largest x of each rule."""
    return np.array([rule["reach"] for rule in _table()], np.int64)


@cache
def reciprocal_rule(reach: int) -> ReciprocalRule:
    """Return the shortest rule for 1/x on [1, reach]."""
    rule = next(rule for rule in _table() if rule["reach"] >= reach)
    return ReciprocalRule(np.array(rule["exponents"]), np.array(rule["weights"]))
