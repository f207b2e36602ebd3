"""Numbers in text: exactly those that Arrow reads as numbers, so that all readers of a cell agree."""

import re
from math import nan
from typing import Any

from abstain._utils.errors import InvalidParameter, quoted

MISSING = {
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA", "NULL",
    "NaN", "n/a", "nan", "null",
}  # fmt: skip
"""Texts of a cell without a number."""

LARGEST_PRICE = 1e12
"""The largest price of a review or an error that reports and the command line accept."""

# Python's float also reads 0_1 as 1, and the digits of every script.
DECIMAL = re.compile(
    r"[ \t]*[+-]?(\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|nan|inf|infinity)[ \t]*", re.ASCII | re.IGNORECASE
)


def is_number(value: Any) -> bool:
    """Whether a cell holds a number or is missing.

    Examples
    --------
    >>> from abstain._utils.numbers import is_number
    >>> [is_number(text) for text in ("0.5", " 1e-3 ", "", "0_1", "٣", "1,5")]
    [True, True, True, False, False, False]
    """
    if isinstance(value, bytes):
        value = value.decode("ascii", "replace")
    if isinstance(value, str):
        return value in MISSING or DECIMAL.fullmatch(value) is not None
    try:
        number_in(value)
    except (TypeError, ValueError):
        return False
    return True


def read_number(text: str) -> float:
    """Return the number that a user has typed; raise `InvalidParameter` if it is none."""
    if DECIMAL.fullmatch(text) is None:
        raise InvalidParameter(f"{quoted(text)} is not a number")
    return float(text)


def number_in(value: Any) -> float:
    """Return the number in a cell; NaN if it is missing."""
    return nan if value is None or (isinstance(value, str) and value in MISSING) else float(value)
