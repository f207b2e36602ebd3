"""Compute the exponential sums that `abstain._core.kernels.quadrature` evaluates.

    1/x  ≈  Σ_q weight_q · exp(−exponent_q · x)      with relative error ≤ 1e-13 for every real x in [1, reach]

For q terms the sum interpolates 1/x at 2q Chebyshev points of log x, which is within a hair of the best possible sum.
As the reach shrinks to 1 the solution becomes the Gauss–Laguerre rule; from there it is continued, reach by reach, by
Newton's method in 1600-bit arithmetic (the systems are far too ill-conditioned for floats) until the error is used up.
Only multiples of four are kept: the kernels work on four numbers at a time.

    make rules        writes src/abstain/_core/kernels/reciprocal_rules.json (about half an hour)
"""

import argparse
import json
import math
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from flint import arb, arb_mat, ctx

RELATIVE_ERROR = 1e-13
TARGET = Path(__file__).parents[1] / "src/abstain/_core/kernels/reciprocal_rules.json"


def gauss_laguerre(size):
    """Logarithms of the nodes and (exponentially scaled) weights: the rule for reach → 1."""
    log_exponents, log_weights = [], []
    for guess in np.polynomial.laguerre.laggauss(size)[0]:
        node = arb(float(guess))
        for _ in range(8):
            below, here = arb(1), 1 - node
            for k in range(1, size):
                below, here = here, ((2 * k + 1 - node) * here - k * below) / (k + 1)
            node = (node - here * node / (size * (here - below))).mid()
        below, here = arb(1), 1 - node
        for k in range(1, size + 1):
            below, here = here, ((2 * k + 1 - node) * here - k * below) / (k + 1)
        log_exponents.append(node.log().mid())
        log_weights.append(((node / ((size + 1) * here) ** 2).log() + node).mid())
    return log_exponents + log_weights


def interpolate(parameters, log_reach):
    """Newton's method for Σ weight·exp(−exponent·x) = 1/x at the Chebyshev points; None if it does not converge."""
    size = len(parameters) // 2
    points = [(arb(log_reach) / 2 * (1 + (arb(2 * i + 1) / (4 * size)).cos_pi())).exp() for i in range(2 * size)]
    for _ in range(25):
        exponents = [value.exp().mid() for value in parameters[:size]]
        weights = [value.exp().mid() for value in parameters[size:]]
        jacobian, residual = [], []
        for x in points:
            terms = [x * w * (-x * e).exp() for e, w in zip(exponents, weights, strict=True)]
            slopes = [-(term * x * e) for term, e in zip(terms, exponents, strict=True)]
            jacobian.append([value.mid() for value in slopes + terms])
            residual.append([(sum(terms, arb(0)) - 1).mid()])
        step = arb_mat(jacobian).solve(arb_mat(residual), algorithm="approx")
        step = [step[i, 0].mid() for i in range(2 * size)]
        length = max(abs(float(value)) for value in step)
        if length > 1e3:
            return None
        damping = 1 if length < 1 else 0.5 / length
        parameters = [(value - damping * d).mid() for value, d in zip(parameters, step, strict=True)]
        if length < 1e-25:
            return parameters
    return None


def as_floats(parameters):
    values = np.array([float(value.exp()) for value in parameters])
    return values[: len(values) // 2], values[len(values) // 2 :]


def relative_error(parameters, log_reach):
    exponents, weights = as_floats(parameters)
    x = np.exp(log_reach / 2 * (1 + np.cos(np.pi * np.arange(4001) / 4000))).astype(np.longdouble)[:, None]
    return float(np.abs((x * weights * np.exp(-x * exponents)).sum(axis=1) - 1).max())


def longest_rule(size):
    """The rule with `size` terms that reaches furthest."""
    ctx.prec = 1600
    step = log_reach = 0.02
    path = [(log_reach, interpolate(gauss_laguerre(size), log_reach))]
    while step > 0.004:
        following = log_reach + step
        guess = path[-1][1]
        if len(path) > 1:
            (r0, p0), (r1, p1) = path[-2:]
            ahead = arb((following - r1) / (r1 - r0))
            guess = [(b + (b - a) * ahead).mid() for a, b in zip(p0, p1, strict=True)]
        found = interpolate(guess, following)
        if found is None or relative_error(found, following) > RELATIVE_ERROR:
            step /= 2
            continue
        log_reach = following
        path.append((log_reach, found))
        step = min(1.3 * step, 0.6)
    exponents, weights = as_floats(path[-1][1])
    order = np.argsort(exponents)
    reach = math.floor(math.exp(log_reach))
    print(f"{size} terms reach {reach}", flush=True)
    return {"reach": reach, "exponents": exponents[order].tolist(), "weights": weights[order].tolist()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=72, help="number of terms of the longest rule (default: 72)")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    with ProcessPoolExecutor(arguments.jobs) as pool:
        rules = list(pool.map(longest_rule, range(8, arguments.largest + 1, 4)))
    TARGET.write_text(json.dumps(rules, indent=1) + "\n")


if __name__ == "__main__":
    main()
