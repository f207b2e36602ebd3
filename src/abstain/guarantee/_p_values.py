"""P-values of "a mean is too high": how surprising a sample would be then, for every sample size.

Each of them is *valid*: if the mean is at least the bound, then P(p ≤ u) ≤ u for all u. None of them asks for more than
independent rows with values in [0, 1].
"""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from abstain._core.kernels.betting import most_wealth
from abstain._utils.types import Floats


def binomial_p_value(bad: NDArray[np.integer], counted: NDArray[np.integer], bound: float) -> Floats:
    """P(Binomial(counted, bound) ≤ bad): the exact p-value of "each one counted is bad with a probability ≥ bound".

    If only some of the rows are counted, the number of those that are is given: the bad ones among them are binomial
    whatever it is. Nothing counted is no evidence, p = 1.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.guarantee._p_values import binomial_p_value
    >>> binomial_p_value(np.array([0, 0]), np.array([58, 59]), 0.05).round(4)
    array([0.051 , 0.0485])
    """
    return binom.cdf(bad, counted, bound)


def hoeffding_bentkus_p_value(mean: Floats, n: int, bound: float) -> Floats:
    """min(exp(−n·KL(mean, bound)), e·P(Binomial(n, bound) ≤ ⌈n·mean⌉)) of "E[X] ≥ bound", X in [0, 1].

    Both bounds are attained, up to a factor, by values of 0 and 1, and know of X only its mean: whatever varies less
    than such values do is under-estimated. Hoeffding 1963 and Bentkus 2004; put together by Bates et al. 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain.guarantee._p_values import hoeffding_bentkus_p_value
    >>> hoeffding_bentkus_p_value(np.array([0.02, 0.03]), 500, 0.05).round(4)
    array([0.0013, 0.054 ])
    """
    mean = np.asarray(mean, np.float64)
    if n == 0:
        return np.ones_like(mean)
    low = np.clip(mean, 0.0, bound)
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = np.where(low > 0, low * np.log(low / bound), 0.0) + (1.0 - low) * np.log(
            (1.0 - low) / (1.0 - bound)
        )
    bentkus = np.e * binom.cdf(np.ceil(n * mean), n, bound)
    return np.minimum(np.exp(-n * divergence), np.minimum(bentkus, 1.0))


def betting_p_value(values: Floats, bound: float, level: float = 0.05) -> Floats:
    """1 / max_t Π_{i≤t} (1 + λ_i·(bound − X_i)) of "E[X] ≥ bound", X in [0, 1]: one for each column of values.

    Someone who doubts that the mean is so high bets λ_i on row i, having seen the rows before it; if it is, the wealth
    is a non-negative supermartingale, which ever exceeds 1/u with a probability of at most u (Ville). The stakes are
    λ_i = √(2·log(1/level) / (n·σ̂²)), with the variance σ̂² of the rows before, which makes the most of a p-value that
    is going to be compared with about `level`; it is valid for all levels (Waudby-Smith & Ramdas 2024; Bates et al.).
    It adapts to the variance, and depends a little on the order of the rows, which must not be chosen by the values.

    Examples
    --------
    Values that hardly vary, far below what their mean could be:

    >>> import numpy as np
    >>> from abstain.guarantee._p_values import betting_p_value, hoeffding_bentkus_p_value
    >>> values = np.tile([0.02, 0.04], 100)[:, np.newaxis]
    >>> betting_p_value(values, 0.05).round(4), hoeffding_bentkus_p_value(values.mean(axis=0), 200, 0.05).round(4)
    (array([0.0207]), array([0.3364]))
    """
    wealth = np.empty(values.shape[1])
    most_wealth(values, bound, level, wealth)
    return 1.0 / wealth
