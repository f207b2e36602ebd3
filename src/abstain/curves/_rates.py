"""Rates among the answered labels: their values, areas and bands as the share of answered labels grows.

Between two points of a curve the labels that are answered next are taken to be picked at random, so that what is
counted among the answers grows linearly with the coverage: from 0 without any answer.
"""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._utils.errors import InvalidParameter
from abstain._utils.types import Floats
from abstain.curves._bootstrap import Band, Bootstrap, interpolate_samples, select_points
from abstain.curves._break_points import MergedPath


def divide_by_coverage(values: Floats, coverage: Floats) -> Floats:
    """Return values / coverage; nan where nothing is answered."""
    return np.divide(values, coverage, out=np.full(len(values), np.nan), where=coverage > 0)


def area_under_rate(coverage: Floats, rates: Floats) -> float:
    """∫ w(x)/x dx from 0 to 1, for w = rate · coverage that is linear between the points and from 0 to the first."""
    used = coverage > 0
    x, w = coverage[used], (coverage * rates)[used]
    slope = np.diff(w) / np.diff(x)
    return float(w[0] + (np.diff(w) + (w[:-1] - slope * x[:-1]) * np.log(x[1:] / x[:-1])).sum())


def rate_at(share: float, coverage: Floats, rates: Floats) -> float:
    """w(x)/x at a share x of labels, for w = rate · coverage linear between the points; constant below the first."""
    used = coverage > 0
    x = max(share, float(coverage[used][0]))
    return float(np.interp(x, coverage[used], (coverage * rates)[used]) / x)


def coverage_band(merged: MergedPath, values: NDArray[Any], bootstrap: Bootstrap, *, per_answer: bool) -> Band:
    """Return the band, against the coverage, of the mean per instance of values given per corner, or per answer."""
    known = merged.outcomes
    coverage = merged.totals(known.answered) / (len(known) * known.n_labels)
    points = select_points(coverage)
    means = bootstrap.means(merged, points, {"coverage": known.answered / known.n_labels, "value": values})
    grid = coverage[points]
    if not per_answer:
        return bootstrap.band(grid, interpolate_samples(grid, means["coverage"], means["value"]))
    grid = grid[grid > 0]
    per_instance = interpolate_samples(grid, means["coverage"], means["value"])
    return bootstrap.band(grid, per_instance / (known.n_labels * grid))


def read_share(share: Any, name: str) -> float:
    """Return a number from 0 to 1, or raise `InvalidParameter` with the name of the parameter."""
    if not isinstance(share, Real) or not 0 <= float(share) <= 1:
        raise InvalidParameter(f"{name} is {share!r}; expected a number from 0 to 1")
    return float(share)
