"""Which candidates are certified: learn-then-test for a confidence, conformal risk control for an expectation.

Candidates are in order of increasing cost: each answers at least as much as the one before.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._utils.types import Floats
from abstain.guarantee._candidates import COST_SHARES
from abstain.guarantee._p_values import betting_p_value, binomial_p_value, hoeffding_bentkus_p_value
from abstain.guarantee._risks import Sample

N_STARTS = 16
"""The number of candidates among which the rest of the error is divided. Measured: 8 and less may miss the few
candidates that can be certified at first, 32 and more answer a little less."""

MAIN_SHARE = 0.75
"""The share of the error for the candidate that is best if the probabilities are right. Measured, against ½: at target
0.02 and 2 000 instances 27 % of the oracle's answers, not 11 %; up to 2 % (once 6 %) less if they are not right."""

MAX_CANDIDATES_IN_MEMORY = 64  # candidates whose values for all rows are in memory together

METHODS = ("betting", "hoeffding_bentkus")


class Choice(NamedTuple):
    """The last candidate that is certified, −1 if none is, and its p-value (nan without tests)."""

    candidate: int
    p_value: float


NO_CANDIDATE = Choice(-1, float("nan"))


def choose(sample: Sample, limit: float, error: float | None, is_monotone: bool, method: str = "betting") -> Choice:
    """Return the last candidate certified to have E[bad] ≤ limit · E[counted], wrong with a probability ≤ `error`.

    If `error` is None it is certified in expectation. A monotone risk is least for the first candidate and is tested
    from there on; any other one, of which the first candidates may count next to nothing, is tested from several on.
    """
    bad, counted, max_counted = sample
    if error is None:
        return choose_in_expectation(bad.sum(axis=0) / max_counted, len(bad), limit)
    shares = divide_error(error, limit, is_monotone)
    if max_counted == 1 and bad.dtype.kind == "i":
        return choose_by_count(bad.sum(axis=0), counted.sum(axis=0), limit, shares)
    # Bets are made row by row, and are fair if no row says anything about the next. Rows may come sorted, or source by
    # source; in a random order, independent ones say nothing.
    order = np.random.default_rng(0).permutation(len(bad))
    p_values = np.empty(bad.shape[1])
    for first in range(0, bad.shape[1], MAX_CANDIDATES_IN_MEMORY):
        some = slice(first, first + MAX_CANDIDATES_IN_MEMORY)
        # In [0, 1], with a mean of at most the limit iff E[bad] ≤ limit · E[counted].
        values = limit + (bad[order, some] - limit * counted[order, some]) / max_counted
        if method == "betting":
            p_values[some] = betting_p_value(values, limit, error)
        else:
            p_values[some] = hoeffding_bentkus_p_value(values.sum(axis=0) / max(1, len(values)), len(values), limit)
    return choose_by_p_value(p_values, shares)


def choose_by_count(bad: NDArray[np.integer], counted: NDArray[np.integer], limit: float, shares: Floats) -> Choice:
    """Return the last candidate certified by an exact test, where each row is counted or not, and bad or not."""
    return choose_by_p_value(binomial_p_value(bad, counted, limit), shares)


def divide_error(error: float, limit: float, is_monotone: bool) -> Floats:
    """Return the share of the error that each candidate is tested at, whatever becomes of the others.

    A monotone risk is least for the first candidate, which gets all of it. Any other risk may count next to nothing
    there. Most of the error goes to where the evidence should be strongest: E[limit·counted − bad] is greatest if just
    those labels are answered that are wrong with a probability of at most the limit. If the probabilities are right and
    all errors cost 1, that is the cost `limit`, with ½ as the highest. The rest is for when it is not so.
    """
    shares = np.zeros(len(COST_SHARES))
    if is_monotone:
        shares[0] = error
        return shares
    shares[np.linspace(0, len(COST_SHARES), N_STARTS, endpoint=False).astype(np.intp)] = (
        (1.0 - MAIN_SHARE) * error / N_STARTS
    )
    shares[np.searchsorted(COST_SHARES, min(1.0, 2.0 * limit))] += MAIN_SHARE * error
    return shares


def choose_by_p_value(p_values: Floats, shares: Floats) -> Choice:
    """Test the candidates one after the other, so that P(any certified one is bad) ≤ Σ shares.

    Each is tested at its own share plus what the one before has handed on; it hands on what it was tested at if it is
    certified, and nothing otherwise (the fallback procedure of Wiens, 2003; without handing on between starts it is
    that of Angelopoulos et al., Learn then Test).

    Proof. Consider the first bad candidate that is certified. The bad one before it was not, so what it is tested at
    stems from shares after that one, up to its own. These ranges are disjoint for different bad candidates; so the
    probabilities of being this first one, each at most the sum of its range, add up to at most the sum of all shares.
    """
    found, handed_on = NO_CANDIDATE, 0.0
    for k, (p_value, share) in enumerate(zip(p_values.tolist(), shares.tolist(), strict=True)):
        tested_at = handed_on + share
        certified = p_value <= tested_at and tested_at > 0
        if certified:
            found = Choice(k, p_value)
        handed_on = tested_at if certified else 0.0
    return found


def choose_in_expectation(total: Floats, n: int, limit: float) -> Choice:
    """Return the last candidate with (total + 1) / (n + 1) ≤ limit.

    Each total is a sum of n values in [0, 1], which grow with the cost.

    One more row, exchangeable with the n, has E[value at the chosen candidate] ≤ limit (Angelopoulos et al., Conformal
    Risk Control); so it has if none is chosen and nothing is answered, where the value is 0.
    """
    met = np.flatnonzero((total + 1.0) / (n + 1) <= limit)
    return Choice(int(met[-1]), float("nan")) if len(met) else NO_CANDIDATE
