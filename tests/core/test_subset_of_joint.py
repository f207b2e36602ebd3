"""Optimal subset 0/1 decisions from samples and mixtures against all answers, and against integer programmes."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from abstain._core.kernels.choice import TIE, tipped
from abstain._core.kernels.components import Components, RowPenalties
from abstain._core.kernels.subset_of_joint import decide_subset, hull_of_subset

NODES = 5_000


def components_of(rows):
    """Components from a list of (weights, values), one for each row."""
    indptr = np.concatenate([[0], np.cumsum([len(weights) for weights, _ in rows])])
    weights = np.concatenate([np.asarray(weights, dtype=float) for weights, _ in rows])
    return Components(indptr, weights, np.arange(indptr[-1]), np.concatenate([values for _, values in rows]))


def sample_row(m, size, rng, *, weights="random"):
    """So many samples, or fewer where they are equal."""
    likely = rng.beta(0.6, 0.6, m)
    size = min(size, 2**m)
    values = np.unique((rng.random((size, m)) < likely).astype(np.uint8), axis=0)
    values = rng.permutation(values)
    if weights == "random":
        w = rng.dirichlet(np.full(len(values), 0.5)) + 1e-3
    elif weights == "equal":
        w = np.ones(len(values))
    else:  # eighths, before they are made to sum to 1
        w = rng.integers(1, 4, len(values)) / 8.0
    return w / w.sum(), values


def mixture_row(m, size, rng, *, weights="random"):
    w = rng.dirichlet(np.ones(size)) if weights == "random" else np.full(size, 1.0 / size)
    p = rng.beta(0.4, 0.4, (size, m))
    if weights != "random":
        p = np.round(4 * p) / 4
    return w, p


def counted(counts, label_costs, *, linear, concave, n):
    """Penalties as `BoundPenalty.counted` gives them."""
    counts = np.asarray(counts, dtype=float)
    m = len(counts) - 1
    table = np.array([tipped(counts[a], float(a)) for a in range(m + 1)]) if linear else counts
    return RowPenalties(np.tile(table, (n, 1)), 0.0 if linear else TIE, linear, concave, np.asarray(label_costs, float))


def penalties_of(m, n, rng):
    a = np.arange(m + 1.0)
    none = np.zeros(m)
    costs = rng.random(m) * 0.2
    with np.errstate(invalid="ignore"):
        forbidden = np.where(a == 0, 0.0, np.inf)
    yield "free", counted(0.0 * a, none, linear=True, concave=True, n=n)
    yield "0.05", counted(0.05 * a, none, linear=True, concave=True, n=n)
    yield "0.125", counted(0.125 * a, none, linear=True, concave=True, n=n)
    yield "0.25", counted(0.25 * a, none, linear=True, concave=True, n=n)
    yield "none", counted(forbidden, none, linear=True, concave=False, n=n)
    linear_counts = RowPenalties(np.tile(0.02 * a, (n, 1)), TIE, True, True, costs)
    yield "labels", linear_counts
    yield "eighths of labels", RowPenalties(np.tile(0.0 * a, (n, 1)), TIE, True, True, rng.integers(0, 3, m) / 8.0)
    yield "concave", counted(0.3 * a * m / (m + a), none, linear=False, concave=True, n=n)
    yield "concave and labels", counted(0.2 * a * m / (m + a), costs, linear=False, concave=True, n=n)
    yield "concave, then falls", counted(np.sin(3 * a / m) * 0.4, costs, linear=False, concave=True, n=n)
    last = 0.05 * a
    last[-1] = 2.0
    yield "concave but for the last", counted(last, none, linear=False, concave=True, n=n)
    yield "capped", counted(np.where(a <= 2, 0.04 * a, np.inf), none, linear=False, concave=False, n=n)
    yield "flat fee", counted(np.where(a > 0, 0.25, 0.0), none, linear=False, concave=True, n=n)
    yield "table", counted(np.concatenate([[0.0], rng.random(m) * 0.5]), none, linear=False, concave=False, n=n)
    yield (
        "table and labels",
        counted(np.concatenate([[0.0], rng.integers(0, 4, m) / 8.0]), costs, linear=False, concave=False, n=n),
    )


def all_answers(m):
    return np.array(list(product((0, 1, -1), repeat=m)), dtype=np.int8)


def losses_of(weights, values, answers):
    """The expected subset 0/1 loss of each answer, by the plain sum over the components."""
    p = values.astype(float)
    right = np.zeros(len(answers))
    for w, row in zip(weights, p, strict=True):
        factors = np.where(answers == 1, row, np.where(answers == 0, 1.0 - row, 1.0))
        right += w * factors.prod(axis=1)
    return np.where((answers == -1).all(axis=1), 0.0, 1.0 - right)


def totals_of(weights, values, answers, penalties, i):
    abstained = answers == -1
    counts = penalties.counts[i][abstained.sum(axis=1)]
    return losses_of(weights, values, answers) + counts + abstained @ penalties.label_costs


def check_row(row, penalties, i, codes, answers):
    """The answer is optimal and, of equals, has fewest abstentions."""
    totals = totals_of(*row, answers, penalties, i)
    least = totals.min()
    mine = totals_of(*row, codes[np.newaxis], penalties, i)[0]
    assert abs(mine - least) <= 1e-11
    above = totals - least
    near = (above > 0.5 * TIE) & (above < 2 * TIE) if penalties.tie > 0 else np.zeros(len(totals), dtype=bool)
    if not near.any():
        equal = above <= (TIE * (1 + abs(least)) if penalties.tie > 0 else 1e-14)
        assert (codes == -1).sum() == (answers[equal] == -1).sum(axis=1).min()


def start_of(rows, m):
    """The likelier answer of each label by itself."""
    return np.array([(w @ v.astype(float) >= 0.5).astype(np.int8) for w, v in rows]).reshape(-1, m)


def decided(rows, penalties, node_limit=NODES, start=None):
    m = len(penalties.label_costs)
    codes = start_of(rows, m) if start is None else start.copy()
    gap = np.full(len(rows), np.nan)
    decide_subset(components_of(rows), penalties, node_limit, codes, gap)
    return codes, gap


def degenerate_samples(m, rng):
    one = rng.integers(0, 2, (1, m)).astype(np.uint8)
    pair = np.concatenate([one, 1 - one])
    chain = np.tril(np.ones((m + 1, m), dtype=np.uint8), -1)  # 0…0, 10…0, …, 1…1
    yield np.ones(1), one
    yield np.array([0.5, 0.5]), pair
    yield np.array([0.375, 0.625]), pair
    yield np.full(m + 1, 1 / (m + 1)), chain
    if m <= 5:
        everything = np.array(list(product((0, 1), repeat=m)), dtype=np.uint8)
        yield np.full(2**m, 0.5**m), everything


def rows_of(kind, m, rng):
    if kind == "samples":
        sizes = [2, 3, 5, 8, 12, 20, 40]
        rows = [
            sample_row(m, size, rng, weights=weights) for size in sizes for weights in ("random", "equal", "eighths")
        ]
        return rows + list(degenerate_samples(m, rng))
    rows = [mixture_row(m, size, rng, weights=weights) for size in (1, 2, 3, 6) for weights in ("random", "equal")]
    equal = mixture_row(m, 1, rng)[1]
    return [
        *rows,
        (np.array([0.25, 0.75]), np.concatenate([equal, equal])),
        (np.array([0.5, 0.5]), np.concatenate([equal, 1 - equal])),
        (np.array([1.0]), np.full((1, m), 0.5)),
        (np.array([0.5, 0.5]), np.concatenate([np.zeros((1, m)), np.ones((1, m))])),
    ]


@pytest.mark.parametrize("kind", ["samples", "mixtures"])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 6])
def test_equals_the_best_of_all_answers(kind, m):
    rng = np.random.default_rng(m)
    rows, answers = rows_of(kind, m, rng), all_answers(m)
    for name, penalties in penalties_of(m, len(rows), rng):
        codes, gap = decided(rows, penalties)
        assert set(np.unique(codes)) <= {-1, 0, 1}
        assert (gap == 0).all(), name
        for i, row in enumerate(rows):
            check_row(row, penalties, i, codes[i], answers)


@pytest.mark.parametrize("kind", ["samples", "mixtures"])
@pytest.mark.parametrize("node_limit", [0, 1, 3])
def test_gap_holds_when_nodes_run_out(kind, node_limit):
    m, rng = 5, np.random.default_rng(7)
    rows, answers = rows_of(kind, m, rng), all_answers(m)
    was_open = False
    for _, penalties in penalties_of(m, len(rows), rng):
        start = rng.integers(-1 if np.isfinite(penalties.counts).all() else 0, 2, (len(rows), m)).astype(np.int8)
        codes, gap = decided(rows, penalties, node_limit, start)
        for i, row in enumerate(rows):
            totals = totals_of(*row, answers, penalties, i)
            mine = totals_of(*row, codes[[i]], penalties, i)[0]
            assert mine <= totals_of(*row, start[[i]], penalties, i)[0] + TIE
            assert -1e-15 <= mine - totals.min() <= gap[i] + 1e-11
        was_open |= bool((gap > 0).any())
    assert was_open


@pytest.mark.parametrize("kind", ["samples", "mixtures"])
@pytest.mark.parametrize("m", [1, 2, 4, 6])
def test_hull_is_that_of_the_best_answers(kind, m):
    rng = np.random.default_rng(10 + m)
    rows, answers = rows_of(kind, m, rng), all_answers(m)
    n, n_abstained = len(rows), (answers == -1).sum(axis=1)
    values, found, gap = np.empty((n, m + 1)), np.empty((n, m + 1, m), np.int8), np.full((n, m + 1), np.nan)
    hull_of_subset(components_of(rows), NODES, values, found, gap)
    assert (gap == 0).all()
    for i, row in enumerate(rows):
        losses = losses_of(*row, answers)
        profile = np.array([losses[n_abstained == a].min() for a in range(m + 1)])
        vertices = np.flatnonzero(np.isfinite(values[i]))
        assert vertices[0] == 0
        assert vertices[-1] == m
        np.testing.assert_allclose(values[i, vertices], profile[vertices], rtol=0, atol=1e-12)
        assert (profile >= np.interp(np.arange(m + 1), vertices, values[i, vertices]) - 1e-12).all()
        slopes = np.diff(values[i, vertices]) / np.diff(vertices)
        assert (np.diff(slopes) > 1e-14).all()
        for a in vertices:
            assert (found[i, a] == -1).sum() == a
            assert losses_of(*row, found[i, [a]])[0] == pytest.approx(values[i, a], abs=1e-14)


def test_hull_gap_holds_when_nodes_run_out():
    m, rng = 6, np.random.default_rng(3)
    rows, answers = rows_of("mixtures", m, rng), all_answers(m)
    n, n_abstained = len(rows), (answers == -1).sum(axis=1)
    values, found, gap = np.empty((n, m + 1)), np.empty((n, m + 1, m), np.int8), np.empty((n, m + 1))
    hull_of_subset(components_of(rows), 1, values, found, gap)
    assert (gap > 0).any()
    for i, row in enumerate(rows):
        losses = losses_of(*row, answers)
        for a in np.flatnonzero(np.isfinite(values[i])):
            excess = values[i, a] - losses[n_abstained == a].min()
            # The profile may be above its hull.
            assert excess <= gap[i, a] + 1e-12
            assert losses_of(*row, found[i, [a]])[0] == pytest.approx(values[i, a], abs=1e-14)


def programme(weights, values, counts, label_costs):
    """The least total by an integer programme: answers 1, answers 0, kept samples, and which number is abstained."""
    size, m = values.shape
    width = 2 * m + size + m + 1
    rows, bounds = [], []
    for j in range(m):  # one answer at most
        row = np.zeros(width)
        row[[j, m + j]] = 1
        rows.append(row)
        bounds.append((0, 1))
    for k in range(size):  # kept: no answer is wrong
        for j in range(m):
            row = np.zeros(width)
            row[2 * m + k] = row[m + j if values[k, j] else j] = 1
            rows.append(row)
            bounds.append((0, 1))
    one, number = np.zeros(width), np.zeros(width)
    one[2 * m + size :] = 1
    number[2 * m + size :] = np.arange(m + 1)
    number[: 2 * m] = 1
    rows += [one, number]
    bounds += [(1, 1), (m, m)]
    cost = np.concatenate([np.tile(-label_costs, 2), -weights, np.where(np.isfinite(counts), counts, 9.0)])
    low, high = np.array(bounds, dtype=float).T
    solved = milp(
        cost,
        constraints=LinearConstraint(np.array(rows), low, high),
        bounds=Bounds(0, 1),
        integrality=np.ones(width),
        options={"mip_rel_gap": 0.0},
    )
    assert solved.status == 0
    return 1.0 + label_costs.sum() + solved.fun


def test_equals_integer_programmes():
    m, rng = 30, np.random.default_rng(0)
    topics = rng.integers(0, 2, (3, m))
    noise = rng.random((60, m)) < 0.5 * rng.random(m) ** 4
    values = np.unique((topics[rng.integers(0, 3, 60)] ^ noise).astype(np.uint8), axis=0)
    assert len(values) > 50
    row = (rng.dirichlet(np.ones(len(values))), values)
    a, none = np.arange(m + 1.0), np.zeros(m)
    for penalties in (
        counted(0.02 * a, none, linear=True, concave=True, n=1),
        RowPenalties(0.0 * a[np.newaxis], TIE, True, True, rng.random(m) * 0.04),
        RowPenalties(0.01 * a[np.newaxis], TIE, True, True, rng.random(m) * 0.02),
    ):
        codes, gap = decided([row], penalties)
        assert gap[0] == 0
        assert 0 < (codes == -1).sum() < m
        mine = totals_of(*row, codes, penalties, 0)[0]
        assert mine == pytest.approx(programme(*row, penalties.counts[0], penalties.label_costs), abs=1e-7)


@pytest.mark.parametrize(
    ("samples", "answer", "total"),
    [
        (["001", "001", "010", "110", "111"], [0, 0, 1], 0.60),
        (["0000", "0000", "1111", "1110", "1011"], [0, 0, 0, 0], 0.60),
    ],
)
def test_answers_against_the_majority(samples, answer, total):
    """Errors that happen together are paid once: it is best to answer 0 on labels of probability 0.6."""
    values, times = np.unique([list(map(int, text)) for text in samples], axis=0, return_counts=True)
    row = (times / len(samples), values.astype(np.uint8))
    m = values.shape[1]
    penalties = counted(0.25 * np.arange(m + 1), np.zeros(m), linear=True, concave=True, n=1)
    codes, gap = decided([row], penalties)
    np.testing.assert_array_equal(codes[0], answer)
    assert totals_of(*row, codes, penalties, 0)[0] == pytest.approx(total, abs=1e-11)
    assert gap[0] == 0


@pytest.mark.parametrize("kind", ["samples", "mixtures"])
def test_order_of_labels_and_components_does_not_matter(kind):
    m, rng = 9, np.random.default_rng(5)
    make = sample_row if kind == "samples" else mixture_row
    rows = [make(m, size, rng, weights=weights) for size in (4, 10) for weights in ("random", "equal")]
    labels = rng.permutation(m)
    shuffled = []
    for weights, values in rows:
        order = rng.permutation(len(weights))
        shuffled.append((weights[order], values[order][:, labels]))
    for name, penalties in penalties_of(m, len(rows), rng):
        codes, gap = decided(rows, penalties)
        others, _ = decided(shuffled, penalties._replace(label_costs=penalties.label_costs[labels]))
        assert (gap == 0).all(), name
        back = np.empty_like(others)
        back[:, labels] = others
        np.testing.assert_array_equal((codes == -1).sum(axis=1), (back == -1).sum(axis=1))
        for i, row in enumerate(rows):
            first, second = totals_of(*row, np.array([codes[i], back[i]]), penalties, i)
            assert first == pytest.approx(second, abs=1e-12)


def test_more_labels_than_bits_of_a_word():
    """Labels that repeat others, with a share of their price each, change nothing."""
    m, copies, rng = 6, 25, np.random.default_rng(2)
    rows = [sample_row(m, size, rng) for size in (5, 20, 40)]
    wide = [(weights, np.tile(values, copies)) for weights, values in rows]
    price = 0.1
    narrow = counted(price * np.arange(m + 1), np.zeros(m), linear=True, concave=True, n=3)
    broad = counted(price / copies * np.arange(m * copies + 1), np.zeros(m * copies), linear=True, concave=True, n=3)
    codes, _ = decided(rows, narrow)
    np.testing.assert_array_equal(decided(wide, broad)[0], np.tile(codes, copies))


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_rows_may_share_values(dtype):
    m, rng = 5, np.random.default_rng(6)
    pool = np.unique(rng.integers(0, 2, (20, m)), axis=0).astype(dtype)
    index = [rng.permutation(len(pool))[:size] for size in (3, 1, 9)]
    rows = [(rng.dirichlet(np.ones(len(rows))), pool[rows]) for rows in index]
    shared = components_of(rows)._replace(index=np.concatenate(index), values=pool)
    for _, penalties in penalties_of(m, len(rows), rng):
        codes, gap = start_of(rows, m), np.empty(len(rows))
        decide_subset(shared, penalties, NODES, codes, gap)
        np.testing.assert_array_equal(codes, decided(rows, penalties)[0])


def test_a_good_start_is_kept():
    rng = np.random.default_rng(4)
    rows = [sample_row(5, 10, rng) for _ in range(5)] + [(np.array([0.5, 0.5]), np.array([[0] * 5, [1] * 5], np.uint8))]
    for _, penalties in penalties_of(5, len(rows), rng):
        codes, _ = decided(rows, penalties)
        np.testing.assert_array_equal(decided(rows, penalties, start=codes)[0], codes)


def test_vertices_lie_on_decisions():
    """Each vertex is the decision for a price between the slopes beside it."""
    m, rng = 12, np.random.default_rng(8)
    rows = [sample_row(m, 60, rng) for _ in range(3)]
    values, found, gap = np.empty((3, m + 1)), np.empty((3, m + 1, m), np.int8), np.empty((3, m + 1))
    hull_of_subset(components_of(rows), NODES, values, found, gap)
    for i, row in enumerate(rows):
        vertices = np.flatnonzero(np.isfinite(values[i]))
        slopes = -np.diff(values[i, vertices]) / np.diff(vertices)
        for vertex, (steeper, flatter) in zip(vertices[1:-1], pairwise(slopes), strict=True):
            price = (steeper + flatter) / 2
            penalties = counted(price * np.arange(m + 1), np.zeros(m), linear=True, concave=True, n=1)
            assert (decided([row], penalties)[0] == -1).sum() == vertex
