"""Joint distributions get other marginals: samples are weighted anew, components of mixtures shift their log-odds."""

import numpy as np

from abstain._utils.compilation import kernel

FREE = 8.0  # |λ| up to here costs nothing: weights may change by a factor of e^8 for each label
RIDGE = 0.01  # what λ² beyond FREE costs, so that no few samples get all of the weight
DAMPING = 1e-9  # added to the diagonal of the Hessian, which is singular if labels are equal in all samples
TOLERANCE = 1e-9  # of a marginal
MAX_STEPS, LONGEST_STEP, MAX_HALVINGS = 60, 4.0, 40
MAX_BISECTIONS = 200
LARGEST_SHIFT = 800.0  # of log-odds; beyond, all probabilities are 0 or 1


@kernel
def tilt_samples(indptr, index, weights, values, targets, tilted):
    """Weights · exp(λ·y) / Z are written to `tilted`, where λ minimises log Z(λ) − λ·target + ridge(λ) in each row.

    The gradient is the difference of the marginals from the targets; the ridge is 0 while |λ_j| ≤ FREE. Labels that are
    the same in all samples of a row have no λ. Damped Newton steps.
    """
    n, m = targets.shape
    label = np.empty(m, np.int64)
    place = np.empty(m, np.int64)
    ones = np.empty(0, np.int64)
    for i in range(n):
        first, last = indptr[i], indptr[i + 1]
        size = last - first
        d = 0
        for j in range(m):
            total = 0
            for c in range(first, last):
                total += values[index[c], j]
            place[j] = -1
            if 0 < total < size:
                label[d], place[j] = j, d
                d += 1
        if d == 0:
            tilted[first:last] = weights[first:last]
            continue
        if len(ones) < size * d:
            ones = np.empty(size * d, np.int64)
        begin = np.zeros(size + 1, np.int64)  # the varied labels that are 1 in each sample
        for s in range(size):
            end = begin[s]
            for a in range(d):
                if values[index[first + s], label[a]]:
                    ones[end] = a
                    end += 1
            begin[s + 1] = end
        goal = np.empty(d)
        for a in range(d):
            goal[a] = targets[i, label[a]]
        logs = np.log(weights[first:last])
        point = np.zeros(d)
        share = np.empty(size)
        value = _objective(begin, ones, logs, goal, point, share)
        for _ in range(MAX_STEPS):
            gradient, hessian = _derivatives(begin, ones, share, goal, point)
            if np.max(np.abs(gradient)) <= TOLERANCE:
                break
            step = _solved(hessian, gradient)
            longest = np.max(np.abs(step))
            if longest > LONGEST_STEP:
                step *= LONGEST_STEP / longest
            slope = -np.dot(step, gradient)
            is_better = False
            length = 1.0
            for _ in range(MAX_HALVINGS):
                tried = point - length * step
                reached = _objective(begin, ones, logs, goal, tried, share)
                if reached <= value + 1e-4 * length * slope + 1e-15:
                    is_better = True
                    break
                length *= 0.5
            if not is_better:
                break
            point, value = tried, reached
        _objective(begin, ones, logs, goal, point, share)
        tilted[first:last] = share


@kernel
def _objective(begin, ones, logs, goal, point, share):
    """Return log Z(λ) − λ·goal + ridge(λ); the weights w · exp(λ·y) / Z are written to `share`."""
    highest = -np.inf
    for s in range(len(logs)):
        total = logs[s]
        for k in range(begin[s], begin[s + 1]):
            total += point[ones[k]]
        share[s] = total
        highest = max(highest, total)
    z = 0.0
    for s in range(len(logs)):
        share[s] = np.exp(share[s] - highest)
        z += share[s]
    share /= z
    value = highest + np.log(z)
    for a in range(len(point)):
        excess = max(abs(point[a]) - FREE, 0.0)
        value += 0.5 * RIDGE * excess * excess - point[a] * goal[a]
    return value


@kernel
def _derivatives(begin, ones, share, goal, point):
    """Return the gradient and the Hessian: differences of marginals and covariances of labels, with the ridge."""
    d = len(point)
    marginal = np.zeros(d)
    hessian = np.zeros((d, d))
    for s in range(len(share)):
        for k in range(begin[s], begin[s + 1]):
            marginal[ones[k]] += share[s]
            for l in range(begin[s], k + 1):
                hessian[ones[k], ones[l]] += share[s]
    gradient = np.empty(d)
    for a in range(d):
        for b in range(a + 1):
            hessian[a, b] -= marginal[a] * marginal[b]
        excess = max(abs(point[a]) - FREE, 0.0)
        gradient[a] = marginal[a] - goal[a] + RIDGE * excess * np.sign(point[a])
        hessian[a, a] += DAMPING + (RIDGE if excess > 0.0 else 0.0)
    return gradient, hessian


@kernel
def _solved(matrix, right):
    """matrix⁻¹ right by Cholesky's factorisation of the lower triangle, in place; pivots are kept off 0."""
    d = len(right)
    for a in range(d):
        for b in range(a + 1):
            total = matrix[a, b]
            for k in range(b):
                total -= matrix[a, k] * matrix[b, k]
            if a == b:
                matrix[a, a] = np.sqrt(max(total, 0.5 * DAMPING))
            else:
                matrix[a, b] = total / matrix[b, b]
    x = right.copy()
    for a in range(d):
        for k in range(a):
            x[a] -= matrix[a, k] * x[k]
        x[a] /= matrix[a, a]
    for a in range(d - 1, -1, -1):
        for k in range(a + 1, d):
            x[a] -= matrix[k, a] * x[k]
        x[a] /= matrix[a, a]
    return x


@kernel
def move_probability(indptr, index, weights, values, targets, tolerance):
    """Change labels in parts of samples until the marginals are the targets; return the parts: rows, weights, labels.

    What a label lacks is taken from the heaviest sample that has the other value: that part of its weight, which is
    subtracted from `weights` in place, becomes a sample of its own, in which the label is changed.
    """
    n, m = targets.shape
    rows = np.empty(16, np.int64)
    shares = np.empty(16)
    labels = np.empty((16, m), np.uint8)
    found = 0
    for i in range(n):
        first, last = indptr[i], indptr[i + 1]
        own = found
        for j in range(m):
            marginal = 0.0
            for c in range(first, last):
                marginal += weights[c] * values[index[c], j]
            for c in range(own, found):
                marginal += shares[c] * labels[c, j]
            lack = targets[i, j] - marginal
            if abs(lack) <= tolerance:
                continue
            old = np.uint8(0) if lack > 0.0 else np.uint8(1)
            lack = abs(lack)
            while lack > 1e-15:
                heaviest, best, is_part = 0.0, np.int64(-1), False
                for c in range(first, last):
                    if weights[c] > heaviest and values[index[c], j] == old:
                        heaviest, best = weights[c], c
                for c in range(own, found):
                    if shares[c] > heaviest and labels[c, j] == old:
                        heaviest, best, is_part = shares[c], c, True
                if best < 0:
                    break
                moved = min(lack, heaviest)
                lack -= moved
                if is_part and moved == heaviest:
                    labels[best, j] = 1 - old
                    continue
                if found == len(rows):
                    rows = np.append(rows, np.empty(found, np.int64))
                    shares = np.append(shares, np.empty(found))
                    wider = np.empty((2 * found, m), np.uint8)
                    wider[:found] = labels
                    labels = wider
                rows[found], shares[found] = i, moved
                if is_part:
                    labels[found] = labels[best]
                    shares[best] -= moved
                else:
                    labels[found] = values[index[best]]
                    weights[best] = 0.0 if moved == heaviest else weights[best] - moved
                labels[found, j] = 1 - old
                found += 1
    return rows[:found], shares[:found], labels[:found]


@kernel
def shift_log_odds(indptr, index, weights, values, targets, shifted):
    """Write to shifted[c, j] the probability of label j in component c, with log-odds greater by λ.

    λ is such that the weighted mean over the components of each row is the target. Probabilities 0 and 1 do not move,
    unless the target cannot be reached otherwise: then those that stand in the way move towards the target alike.
    """
    n, m = targets.shape
    for i in range(n):
        first, last = indptr[i], indptr[i + 1]
        odds = np.empty(last - first)
        for j in range(m):
            goal = targets[i, j]
            always, movable, mean = 0.0, 0.0, 0.0
            for c in range(first, last):
                p = values[index[c], j]
                mean += weights[c] * p
                if p >= 1.0:
                    always += weights[c]
                elif p > 0.0:
                    movable += weights[c]
                    odds[c - first] = np.log(p) - np.log1p(-p)
            never = max(0.0, 1.0 - always - movable)
            if abs(mean - goal) <= 1e-15:
                for c in range(first, last):
                    shifted[c, j] = values[index[c], j]
                continue
            if goal <= always or (movable == 0.0 and goal < always + 1e-15):
                for c in range(first, last):
                    shifted[c, j] = min(goal / always, 1.0) if values[index[c], j] >= 1.0 else 0.0
                continue
            if goal >= 1.0 - never or movable == 0.0:
                for c in range(first, last):
                    is_never = values[index[c], j] <= 0.0
                    shifted[c, j] = min(max(1.0 - (1.0 - goal) / never, 0.0), 1.0) if is_never else 1.0
                continue
            low, high, shift = -LARGEST_SHIFT, LARGEST_SHIFT, 0.0
            if 0.0 < mean < 1.0:
                shift = np.log(goal) - np.log1p(-goal) - np.log(mean) + np.log1p(-mean)
            for _ in range(MAX_BISECTIONS):
                reached, slope = always, 0.0
                for c in range(first, last):
                    p = values[index[c], j]
                    if 0.0 < p < 1.0:
                        q = 1.0 / (1.0 + np.exp(-odds[c - first] - shift))
                        shifted[c, j] = q
                        reached += weights[c] * q
                        slope += weights[c] * q * (1.0 - q)
                    else:
                        shifted[c, j] = p
                if abs(reached - goal) <= 1e-13 or high - low <= 1e-13 * max(1.0, abs(high)):
                    break
                if reached < goal:
                    low = shift
                else:
                    high = shift
                newton = shift + (goal - reached) / slope if slope > 0.0 else np.inf
                shift = newton if low < newton < high else 0.5 * (low + high)
