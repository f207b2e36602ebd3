"""Inner loops of calibration: the posterior mode of each label's coefficients, isotonic regression, Venn–Abers."""

import numpy as np

from abstain._utils.compilation import kernel

MAX_STEPS = 60
TOLERANCE = 1e-10  # of the decrement; convergence is quadratic


@kernel
def evaluate(data, first, last, mean, precision, theta, gradient, hessian):
    """Return the negative log posterior of one label, without its constant; fill in gradient and Hessian (likelihood).

    The gradient includes the prior, the Hessian does not.
    """
    features, weight, relevant, _ = data
    n_features, d = features.shape[1], len(theta)
    value = 0.0
    gradient[:] = 0.0
    hessian[:] = 0.0
    for i in range(first, last):
        z = theta[n_features]
        for a in range(n_features):
            z += theta[a] * features[i, a]
        e = np.exp(-abs(z))
        p = 1.0 / (1.0 + e) if z > 0 else e / (1.0 + e)
        value += weight[i] * (np.log1p(e) + max(z, 0.0)) - relevant[i] * z
        residual, curvature = weight[i] * p - relevant[i], weight[i] * e / (1.0 + e) ** 2
        for a in range(n_features):
            gradient[a] += residual * features[i, a]
            hessian[n_features, a] += curvature * features[i, a]
            for b in range(a + 1):
                hessian[a, b] += curvature * features[i, a] * features[i, b]
        gradient[n_features] += residual
        hessian[n_features, n_features] += curvature
    for a in range(d):
        for b in range(d):
            pull = precision[a, b] * (theta[b] - mean[b])
            gradient[a] += pull
            value += 0.5 * (theta[a] - mean[a]) * pull
            if b > a:
                hessian[a, b] = hessian[b, a]
    return value


@kernel
def solve(system, right):
    """Solve a small system in place, by elimination without pivoting: its pivots are positive."""
    d = len(right)
    for a in range(d):
        for b in range(a + 1, d):
            factor = system[b, a] / system[a, a]
            for c in range(a, d):
                system[b, c] -= factor * system[a, c]
            right[b] -= factor * right[a]
    for a in range(d - 1, -1, -1):
        for b in range(a + 1, d):
            right[a] -= system[a, b] * right[b]
        right[a] /= system[a, a]


@kernel
def newton_step(gradient, hessian, precision, theta, best):
    """Fill in the step to the minimum, over slopes ≥ 0, of the quadratic approximation at theta.

    For each set of slopes that become 0, the others are where the approximation is least; of those that are ≥ 0, the
    best is taken. There are few slopes, and most often none becomes 0.
    """
    d = len(theta)
    curvature = hessian + precision
    least = np.inf
    for zeros in range(1 << (d - 1)):
        system, step = curvature.copy(), -gradient
        for a in range(d - 1):
            if (zeros >> a) & 1:
                system[a, :] = 0.0
                system[a, a] = 1.0
                step[a] = -theta[a]
        solve(system, step)
        if np.min(theta[: d - 1] + step[: d - 1]) < 0.0:
            continue
        value = np.dot(gradient, step) + 0.5 * np.dot(step, np.dot(curvature, step))
        if value < least:
            least = value
            best[:] = step
        if zeros == 0:
            break


@kernel
def fit_labels(data, mean, precision, theta, hessians):
    """Argmin over slopes ≥ 0 and the offset of −log posterior, for each label, by Newton's method."""
    indptr = data[3]
    d = len(mean)
    gradient, tried_gradient, tried_hessian = np.empty(d), np.empty(d), np.empty((d, d))
    step = np.empty(d)
    for j in range(len(theta)):
        first, last = indptr[j], indptr[j + 1]
        hessian = hessians[j]
        value = evaluate(data, first, last, mean, precision, theta[j], gradient, hessian)
        for _ in range(MAX_STEPS):
            newton_step(gradient, hessian, precision, theta[j], step)
            gain = -np.dot(gradient, step)
            if gain <= TOLERANCE * (1.0 + abs(value)):
                break
            length = 1.0
            while length > 1e-8:
                tried = theta[j] + length * step
                tried[: d - 1] = np.maximum(tried[: d - 1], 0.0)
                reached = evaluate(data, first, last, mean, precision, tried, tried_gradient, tried_hessian)
                if reached <= value - 1e-4 * length * gain:
                    break
                length *= 0.5
            if length <= 1e-8:
                break
            theta[j], value = tried, reached
            gradient[:], hessian[:] = tried_gradient, tried_hessian


@kernel
def pool_adjacent(weight, relevant, first, last, step, blocks):
    """Pool adjacent violators among the groups of a label, from one end (step 1: the first group, −1: the last).

    The blocks of each prefix are kept: block i is the last one once group i is added; the one before it is parent[i],
    −1 if there is none.
    """
    pooled_weight, pooled_relevant, parent = blocks
    before = -1
    for k in range(last - first):
        i = first + k if step > 0 else last - 1 - k
        w, r = weight[i], relevant[i]
        while before >= 0 and step * (pooled_relevant[before] * w - r * pooled_weight[before]) >= 0.0:
            w += pooled_weight[before]
            r += pooled_relevant[before]
            before = parent[before]
        pooled_weight[i], pooled_relevant[i], parent[i] = w, r, before
        before = i


@kernel
def isotonic(weight, relevant, indptr, blocks, values):
    """Isotonic regression of each label at each of its groups."""
    pooled_weight, pooled_relevant, parent = blocks
    for j in range(len(indptr) - 1):
        pool_adjacent(weight, relevant, indptr[j], indptr[j + 1], 1, blocks)
        block = i = indptr[j + 1] - 1
        value = 1.0
        while i >= indptr[j]:
            if i == parent[block]:
                block = i
            value = min(value, pooled_relevant[block] / pooled_weight[block])  # sums of weights are rounded
            values[i] = value
            i -= 1


@kernel
def venn_abers(weight, relevant, indptr, left, right, values):
    """Isotonic regression at each group and in the gap after it, with an entry added there: irrelevant, relevant."""
    left_weight, left_relevant, left_parent = left
    right_weight, right_relevant, right_parent = right
    for j in range(len(indptr) - 1):
        first, last = indptr[j], indptr[j + 1]
        pool_adjacent(weight, relevant, first, last, 1, left)
        pool_adjacent(weight, relevant, first, last, -1, right)
        for k in range(2 * first, 2 * last):
            i, in_gap = k // 2, k % 2
            for added in range(2):
                w, r = 1.0, float(added)
                if not in_gap:
                    w += weight[i]
                    r += relevant[i]
                before = i if in_gap else i - 1
                before = before if before >= first else -1
                after = i + 1 if i + 1 < last else -1
                while True:
                    if before >= 0 and left_relevant[before] * w >= r * left_weight[before]:
                        w += left_weight[before]
                        r += left_relevant[before]
                        before = left_parent[before]
                    elif after >= 0 and right_relevant[after] * w <= r * right_weight[after]:
                        w += right_weight[after]
                        r += right_relevant[after]
                        after = right_parent[after]
                    else:
                        break
                previous = values[k - 1, added] if k > 2 * first else 0.0
                values[k, added] = min(max(r / w, previous), 1.0)  # sums of weights are rounded
