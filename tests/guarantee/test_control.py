"""Guarantees: the candidates' outcomes against one decision at a time, and the guarantee itself by simulation.

A population of some thousand instances is drawn from with replacement, so that the true risk of every candidate is
known. What is certified is chosen by the code that `control` uses; some simulations go through `control` itself.
"""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from tests.support.cases import LOSS_CASES, make_loss, random_probabilities

import abstain
from abstain import guarantee
from abstain._core.probabilities import Probabilities
from abstain._utils.errors import InvalidGuarantee, InvalidLabels, InvalidLoss, InvalidProbabilities
from abstain.guarantee import RISKS, control
from abstain.guarantee._candidates import COST_SHARES, candidate_costs, count_by_instance, count_by_label
from abstain.guarantee._risks import Sample
from abstain.guarantee._selection import choose, choose_by_count, choose_by_p_value, choose_in_expectation, divide_error

DRAWS = 2000
ERROR = 0.1
# More violations than this are seen once in 100 000 such simulations if each has a chance of ERROR.
MOST_VIOLATIONS = int(stats.binom.ppf(1 - 1e-5, DRAWS, ERROR))

# For each risk of the registry: a slow, obviously right definition of (bad, counted) labels, and a target in reach.
SLOW = {
    "answered_error": (lambda y, a: (a >= 0) & (a != y), lambda y, a: a >= 0, 0.1),
    "overall_error": (lambda y, a: (a >= 0) & (a != y), lambda y, a: np.ones_like(a, bool), 0.05),
    "any_error": (None, None, 0.2),
    "precision": (lambda y, a: (a == 1) & (y == 0), lambda y, a: a == 1, 0.85),
    "recall": (lambda y, a: (a == 0) & (y == 1), lambda y, a: (a >= 0) & (y == 1), 0.85),
    "f1": (None, None, 0.8),
}


def test_every_risk_is_tested():
    assert SLOW.keys() == RISKS.keys()


def slow_risk(name, y, answers):
    """The risk or score of one table (or of one label), from its definition."""
    if name == "any_error":
        return ((answers >= 0) & (answers != y)).any(axis=-1).mean()
    if name == "f1":
        hits, bad = ((answers == 1) & (y == 1)).sum(), ((answers >= 0) & (answers != y)).sum()
        return 2 * hits / (2 * hits + bad) if hits + bad else np.nan
    bad, counted, _ = SLOW[name]
    n_counted = counted(y, answers).sum()
    share = bad(y, answers).sum() / n_counted if n_counted else np.nan
    return 1 - share if RISKS[name].is_score else share


def draw(rng, n, m=6, distortion=lambda p: p):
    """Labels of one instance depend on each other: through what it is like, and through a shared stroke of luck."""
    latent = 1.2 * rng.normal(size=(n, 1)) + 2.5 * rng.normal(size=(n, m)) - 1.0
    p = 1 / (1 + np.exp(-latent))
    luck = np.where(rng.random((n, 1)) < 0.4, rng.random((n, 1)), rng.random((n, m)))
    return distortion(p), (luck < p).astype(np.int8)


def without_relevant_labels(p, y):
    y[: len(y) * 3 // 5] = 0
    return p, y


POPULATIONS = {
    "calibrated": lambda rng, n: draw(rng, n),
    "overconfident": lambda rng, n: draw(rng, n, distortion=lambda p: p**3 / (p**3 + (1 - p) ** 3)),
    "cubed": lambda rng, n: draw(rng, n, distortion=lambda p: p**3),
    "reversed": lambda rng, n: draw(rng, n, distortion=lambda p: 1 - p),
    "rounded": lambda rng, n: draw(rng, n, distortion=lambda p: p.round(1)),
    "all-zero rows": lambda rng, n: without_relevant_labels(*draw(rng, n)),
}


@pytest.fixture(scope="module")
def population():
    """What becomes of each instance of a population at each candidate, by name; computed once."""
    known = {}

    def find(name, n=8000):
        if name not in known:
            p, y = POPULATIONS[name](np.random.default_rng(5), n)
            loss = abstain.Hamming()
            counts = count_by_instance(Probabilities(p), y, loss, candidate_costs(loss, p.shape[1], per_label=False))
            known[name] = p, y, counts
        return known[name]

    return find


# What the simulations need: whether a choice breaks the guarantee, and how many labels it answers, in truth.


def truth_about(sample, limit, counts):
    bad, counted = sample.bad.sum(axis=0, dtype=float), sample.counted.sum(axis=0, dtype=float)
    return bad > limit * counted + 1e-9, counts.answered.mean(axis=0)


def simulate(sample, limit, n, chooser, draws=DRAWS, seed=0):
    """The candidates chosen from samples of n instances; −1 is full abstention."""
    rng = np.random.default_rng(seed)
    bad, counted = sample.bad, np.ascontiguousarray(sample.counted)
    if sample.bad.dtype.kind == "i":
        bad, counted = bad.astype(np.int16), counted.astype(np.int16)
    found = np.empty(draws, int)
    for k in range(draws):
        rows = rng.integers(0, len(bad), n)
        found[k] = chooser(Sample(bad[rows], counted[rows], sample.max_counted), limit)
    return found


def test_the_harness_finds_broken_guarantees(population):
    """Taking the last candidate that looks good is what a guarantee is not."""
    _, _, counts = population("calibrated")
    risk = RISKS["answered_error"]
    limit, sample = risk.limit(0.1, False), risk.sample(counts, 6, False)

    def plug_in(sample, limit):
        return int(np.flatnonzero(sample.bad.sum(axis=0) <= limit * sample.counted.sum(axis=0))[-1])

    is_bad, _ = truth_about(sample, limit, counts)
    found = simulate(sample, limit, 200, plug_in)
    assert is_bad[found].sum() > 2 * MOST_VIOLATIONS


def test_labels_are_not_independent():
    """An instance is right or wrong as a whole: counting its labels one by one breaks the guarantee, we do not."""
    rng = np.random.default_rng(1)
    loss, risk, limit = abstain.Hamming(), RISKS["answered_error"], 0.2 - 1e-9
    naive = ours = 0
    for _ in range(DRAWS):
        p = rng.random((60, 6))
        y = ((p > 0.5) ^ (rng.random((60, 1)) < 0.2)).astype(np.int8)
        sample = risk.sample(
            count_by_instance(Probabilities(p), y, loss, candidate_costs(loss, 6, per_label=False)), 6, False
        )
        totals = sample.bad.sum(axis=0), sample.counted.sum(axis=0)
        naive += choose_by_count(*totals, limit, divide_error(ERROR, limit, False)).candidate >= 0
        ours += choose(sample, limit, ERROR, False).candidate >= 0
    assert ours <= MOST_VIOLATIONS < naive


# Risk, target, per, population, rows, and how often a candidate should be certified at least: 0 where it is hopeless.
SIMULATIONS = [
    ("answered_error", 0.1, "table", "calibrated", 150, 0.8),
    ("answered_error", 0.1, "table", "calibrated", 30, 0),
    ("answered_error", 0.15, "table", "overconfident", 10, 0),
    ("answered_error", 0.15, "table", "overconfident", 100, 0.3),
    ("answered_error", 0.1, "instance", "overconfident", 100, 0.5),
    ("answered_error", 0.15, "table", "cubed", 150, 0),
    ("answered_error", 0.3, "table", "reversed", 100, 0),
    ("answered_error", 0.15, "table", "rounded", 100, 0.5),
    ("answered_error", 0.25, "table", "all-zero rows", 100, 0.05),
    ("overall_error", 0.05, "table", "overconfident", 100, 0.9),
    ("any_error", 0.3, "table", "overconfident", 10, 0.9),
    ("any_error", 0.2, "table", "reversed", 30, 0.9),
    ("any_error", 0.2, "table", "all-zero rows", 30, 0.5),
    ("precision", 0.85, "table", "calibrated", 150, 0.05),
    ("precision", 0.8, "instance", "overconfident", 100, 0.5),
    ("precision", 0.33, "instance", "all-zero rows", 100, 0),
    ("recall", 0.8, "instance", "calibrated", 100, 0.2),
    ("recall", 0.8, "table", "overconfident", 150, 0),
    ("f1", 0.8, "table", "calibrated", 150, 0.3),
    ("f1", 0.3, "instance", "all-zero rows", 100, 0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "target", "per", "which", "n", "often"), SIMULATIONS)
def test_the_guarantee_holds(population, name, target, per, which, n, often):
    _, _, counts = population(which)
    risk = RISKS[name]
    limit, sample = risk.limit(target, per == "instance"), risk.sample(counts, 6, per == "instance")
    is_bad, _ = truth_about(sample, limit, counts)
    assert is_bad.any(), "nothing could go wrong here"
    found = simulate(sample, limit, n, lambda s, limit: choose(s, limit, ERROR, risk.is_monotone).candidate)
    assert is_bad[found[found >= 0]].sum() <= MOST_VIOLATIONS
    assert (found >= 0).mean() >= often


def test_the_guarantee_holds_by_hoeffding_bentkus(population):
    _, _, counts = population("overconfident")
    risk = RISKS["answered_error"]
    limit, sample = risk.limit(0.1, False), risk.sample(counts, 6, False)
    is_bad, _ = truth_about(sample, limit, counts)

    found = simulate(sample, limit, 100, lambda s, limit: choose(s, limit, ERROR, False, "hoeffding_bentkus").candidate)
    assert is_bad[found[found >= 0]].sum() <= MOST_VIOLATIONS


@pytest.mark.slow
@pytest.mark.parametrize("per", ["table", "instance", "label"])
def test_every_candidate_bad_by_a_hair(per):
    """Where many tests could go wrong: errors have the same chance everywhere, just above the target. By `control`."""
    rng = np.random.default_rng(1)
    violations = 0
    for _ in range(DRAWS):
        p = rng.random((60, 3))
        wrong = np.where(rng.random((60, 1)) < 0.5, rng.random((60, 1)), rng.random((60, 3))) < 0.2
        rule = control(p, (p > 0.5) ^ wrong, target=0.2 - 1e-9, confidence=1 - ERROR, per=per)
        violations += bool(np.any(rule.satisfied))
    assert 0 < violations <= MOST_VIOLATIONS


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RISKS if name != "any_error"])
def test_the_guarantee_holds_for_all_labels_at_once(name):
    """A draw is a violation if any of the labels misses its target."""
    rng = np.random.default_rng(3)
    target = {"recall": 0.6, "precision": 0.75, "f1": 0.7, "overall_error": 0.08}.get(name, 0.1)
    p, y = draw(rng, 3000, 3, lambda p: p**1.5)
    p[:, 0] = 1 - p[:, 0]  # of one label the probabilities are upside down
    risk, loss = RISKS[name], abstain.Hamming()
    limit, costs = risk.limit(target, False), candidate_costs(loss, 3, per_label=True)
    each = [count_by_label(Probabilities(p[i : i + 1]), y[i : i + 1], loss, costs) for i in range(len(p))]
    bad, counted, _ = zip(*(risk.sample(counts, 1, False) for counts in each), strict=True)
    bad, counted = np.array(bad, np.int8), np.array(counted, np.int8)
    is_bad = bad.sum(axis=0) > limit * counted.sum(axis=0) + 1e-9
    shares, violations, certified = divide_error(ERROR / 3, limit, risk.is_monotone), 0, np.zeros(3)
    for _ in range(DRAWS):
        rows = rng.integers(0, len(p), 150)
        totals = bad[rows].sum(axis=0), counted[rows].sum(axis=0)
        found = [choose_by_count(totals[0][j], totals[1][j], limit, shares).candidate for j in range(3)]
        violations += any(is_bad[j, k] for j, k in enumerate(found) if k >= 0)
        certified += np.array(found) >= 0
    assert violations <= MOST_VIOLATIONS
    assert certified.max() > DRAWS / 20


@pytest.mark.parametrize(
    ("name", "n"), [("any_error", 10), ("any_error", 60), ("overall_error", 10), ("overall_error", 60)]
)
def test_the_expectation_is_kept(population, name, n):
    _, _, counts = population("overconfident")
    risk = RISKS[name]
    sample = risk.sample(counts, 6, False)
    true_risk = np.append(sample.bad.mean(axis=0) / sample.max_counted, 0.0)  # the last one is full abstention
    found = simulate(sample, 0.15, n, lambda sample, limit: choose(sample, limit, None, True).candidate)
    paid = true_risk[found]
    assert paid.mean() <= 0.15 + 4 * paid.std() / np.sqrt(DRAWS)
    assert paid.mean() > 0.15 - 2 / (n + 1) - 0.01, "it should not waste more than the price of one instance"


# How much is answered, beside someone who knows the whole population.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "target", "n", "share"),
    [
        ("answered_error", 0.1, 5000, 0.97),
        ("answered_error", 0.05, 5000, 0.94),
        ("answered_error", 0.02, 5000, 0.90),
        ("overall_error", 0.05, 5000, 0.98),
        ("any_error", 0.2, 2000, 0.96),
        ("precision", 0.85, 5000, 0.95),
        ("f1", 0.85, 5000, 0.93),
    ],
)
def test_little_is_abstained_on_beyond_need(population, name, target, n, share):
    _, _, counts = population("calibrated")
    risk = RISKS[name]
    limit, sample = risk.limit(target, False), risk.sample(counts, 6, False)
    is_bad, answered = truth_about(sample, limit, counts)
    best = answered[~is_bad].max()
    found = simulate(sample, limit, n, lambda s, limit: choose(s, limit, 0.05, risk.is_monotone).candidate, draws=20)
    mine = np.append(answered, 0.0)[found].mean()
    assert share * best <= mine <= best * 1.001


# One candidate at a time.


@pytest.mark.parametrize("case", [case for case in LOSS_CASES if case[0] != "rank"])
def test_candidates_decide_as_decide_does(case):
    p = random_probabilities(60, 5).round(2)
    y = (np.random.default_rng(0).random(p.shape) < p).astype(np.int8)
    loss = make_loss(case, 5)
    costs = candidate_costs(loss, 5, per_label=False)
    counts = count_by_instance(Probabilities(p), y, loss, costs)
    for k in (0, 40, 90, 119, 120, 125, 140, 160, 200, 290, 300):
        answers = abstain.decide(p, loss, costs[0, k]).labels
        np.testing.assert_array_equal(counts.answered[:, k], (answers >= 0).sum(axis=1))
        np.testing.assert_array_equal(counts.true_positive[:, k], ((answers == 1) & (y == 1)).sum(axis=1))
        np.testing.assert_array_equal(counts.false_positive[:, k], ((answers == 1) & (y == 0)).sum(axis=1))
        np.testing.assert_array_equal(counts.false_negative[:, k], ((answers == 0) & (y == 1)).sum(axis=1))
    assert (counts.answered[:, -1] == 5).all()


@pytest.mark.parametrize("case", [case for case in LOSS_CASES if case[0] == "hamming"])
def test_candidates_of_labels_decide_as_decide_does(case):
    p = random_probabilities(60, 5).round(2)
    y = (np.random.default_rng(0).random(p.shape) < p).astype(np.int8)
    loss = make_loss(case, 5)
    costs = candidate_costs(loss, 5, per_label=True)
    counts = count_by_label(Probabilities(p), y, loss, costs)
    for k in (0, 90, 120, 200, 300):
        answers = abstain.decide(p, loss, abstain.PerLabel(costs[:, k])).labels
        np.testing.assert_array_equal(counts.answered[:, k], (answers >= 0).sum(axis=0))
        np.testing.assert_array_equal(counts.true_positive[:, k], ((answers == 1) & (y == 1)).sum(axis=0))
        np.testing.assert_array_equal(counts.false_positive[:, k], ((answers == 1) & (y == 0)).sum(axis=0))
        np.testing.assert_array_equal(counts.false_negative[:, k], ((answers == 0) & (y == 1)).sum(axis=0))
    assert (counts.answered[:, -1] == 60).all()


@pytest.mark.parametrize("loss", ["hamming", abstain.Hamming(2.0, 0.5), "subset", "f1", "jaccard"], ids=str)
@pytest.mark.parametrize("name", RISKS)
def test_the_rule_says_what_it_does(name, loss):
    """On the calibration sample, deciding again gives the estimate and the abstention that the rule reports."""
    p, y = draw(np.random.default_rng(8), 1500)
    rule = control(p, y, risk=name, target=SLOW[name][2], loss=loss)
    if not rule.satisfied:
        assert np.isnan(rule.cost)
        return
    answers = rule.decide(p).labels
    assert rule.estimate == pytest.approx(slow_risk(name, y, answers))
    assert rule.abstention == pytest.approx((answers < 0).mean())
    assert rule.p_value <= 0.05
    again = abstain.decide(p, loss, rule.cost)
    np.testing.assert_array_equal(answers, again.labels)
    np.testing.assert_allclose(rule.decide(p).expected_loss, again.expected_loss)


@pytest.mark.parametrize("loss", ["hamming", "f1", "jaccard", "subset"])
@pytest.mark.parametrize("edge", [1e-6, COST_SHARES[47], COST_SHARES[47] / 2, 0.05, np.nextafter(COST_SHARES[200], 1)])
def test_ties_fall_as_on_the_calibration_sample(loss, edge):
    """Probabilities that are clipped just where a candidate's cost is: half of what is said to be sure is wrong."""
    rng = np.random.default_rng(3)
    for m in (1, 2, 3):
        p, y = rng.uniform(0.2, 0.8, (100, m)), rng.integers(0, 2, (100, m))
        p[:, 0] = np.where(rng.random(100) < 0.5, edge, 1 - edge)
        for options in ({"risk": "any_error", "target": 0.1, "confidence": 0.9}, {"target": 0.3, "confidence": 0.5}):
            rule = control(p, y, loss=loss, **options)
            for new in (p, sparse.csr_array(p)):
                found = rule.decide(new)
                assert abstain.metrics.abstention_rate(found) == pytest.approx(rule.abstention)
                if rule.satisfied:
                    labels = found.labels.toarray() if sparse.issparse(found.labels) else found.labels
                    assert slow_risk(rule.risk, y, labels) == pytest.approx(rule.estimate, nan_ok=True)


@pytest.mark.parametrize("method", ["betting", "hoeffding_bentkus"])
def test_the_guarantee_holds_by_sorted_samples(method):
    """A clean source first, then a noisy one: what it is worth must not be judged by the first rows."""
    rng = np.random.default_rng(6)
    violations = 0
    for _ in range(300):
        is_noisy = np.sort(rng.random(300) < 0.5)[:, np.newaxis]
        p = np.full((300, 5), 0.01)
        y = (rng.random((300, 5)) < 0.3) & is_noisy  # 15 % of the answers are wrong
        violations += control(p, y, target=0.12, confidence=1 - ERROR, method=method).satisfied
    assert violations <= stats.binom.ppf(1 - 1e-5, 300, ERROR)


@pytest.mark.parametrize("name", [name for name in RISKS if name != "any_error"])
def test_the_rule_says_what_it_does_per_label(name):
    p, y = draw(np.random.default_rng(8), 3000)
    y[:, 2] = p[:, 2] < 0.5  # of this label the probabilities are upside down
    p[:, 2] = p[:, 2].round()
    rule = control(p, y, risk=name, target=SLOW[name][2], per="label")
    answers = rule.decide(p).labels
    assert rule.satisfied.any()
    assert not rule.satisfied[2]
    for j in range(6):
        assert rule.abstention[j] == pytest.approx((answers[:, j] < 0).mean())
        if rule.satisfied[j]:
            assert rule.estimate[j] == pytest.approx(slow_risk(name, y[:, j], answers[:, j]))
            assert rule.p_value[j] <= 0.05 / 6
        else:
            assert (answers[:, j] == -1).all()
            assert np.isnan(rule.cost[j])


@pytest.mark.parametrize("name", [name for name in RISKS if not RISKS[name].is_monotone])
def test_the_rule_says_what_it_does_per_instance(name):
    p, y = draw(np.random.default_rng(8), 3000)
    rule = control(p, y, risk=name, target=SLOW[name][2] if name != "f1" else 0.7, per="instance")
    assert rule.satisfied
    answers = rule.decide(p).labels
    assert rule.estimate == pytest.approx(np.nanmean([slow_risk(name, y[i], answers[i]) for i in range(len(y))]))


# The order of the tests.


def closed_testing(p_values, shares):
    """Certified iff every set of candidates it belongs to is rejected by a weighted Bonferroni test of its own."""
    k = len(p_values)
    certified = np.ones(k, bool)
    for size in range(1, k + 1):
        for members in combinations(range(k), size):
            starts = [0, *(i + 1 for i in members[:-1])]
            levels = [shares[first : i + 1].sum() for first, i in zip(starts, members, strict=True)]
            if not any(p_values[i] <= level for i, level in zip(members, levels, strict=True)):
                certified[list(members)] = False
    return certified


def test_testing_in_order_is_a_closed_test():
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(300):
        p_values, shares = rng.choice([0.001, 0.004, 0.01, 0.03, 0.06, 0.5], 7), rng.choice([0.0, 0.01, 0.02], 7)
        closed = np.flatnonzero(closed_testing(p_values, shares) & (np.cumsum(shares) > 0))
        found = choose_by_p_value(p_values, shares).candidate
        assert found == -1 or found in closed
        outcomes.add(found)
    assert outcomes == set(range(-1, 7))


def test_the_error_is_divided():
    for limit in (0.001, 0.02, 0.3, 0.5, 0.9):
        assert divide_error(0.05, limit, False).sum() == pytest.approx(0.05)
        assert divide_error(0.05, limit, True).sum() == 0.05
    assert (np.diff(COST_SHARES) > 0).all()


def test_conformal_by_hand():
    totals = np.array([0.0, 1.0, 3.0, 9.0])
    assert choose_in_expectation(totals, 19, 0.2).candidate == 2
    assert choose_in_expectation(totals, 19, 0.1).candidate == 1
    assert choose_in_expectation(totals, 19, 0.04).candidate == -1


def test_conformal_answers_more():
    p, y = draw(np.random.default_rng(2), 300)
    sure = control(p, y, risk="any_error", target=0.15)
    expected = control(p, y, risk="any_error", target=0.15, confidence="expectation")
    assert expected.cost > sure.cost
    assert np.isnan(expected.p_value)
    wrong = (expected.decide(p).labels >= 0) & (expected.decide(p).labels != y)
    assert (wrong.any(axis=1).sum() + 1) / 301 <= 0.15
    each = control(p, y, risk="overall_error", target=0.1, confidence="expectation", per="label")
    assert each.satisfied.all()
    assert ((300 * each.estimate + 1) / 301 <= 0.1).all()


# Nothing to guarantee.


@pytest.mark.parametrize("loss", ["hamming", "subset", "f1", "jaccard"])
def test_full_abstention_answers_nothing(loss):
    """Not even what the probabilities call certain."""
    p, y = np.array([[0.0, 1.0], [0.5, 0.0]]), np.array([[0, 1], [1, 0]])
    rule = control(p, y, loss=loss)
    assert not rule.satisfied
    assert rule.abstention == 1
    assert np.isnan(rule.estimate)
    for new in (p, sparse.csr_array(p), np.zeros((3, 2))):
        prediction = rule.decide(new)
        assert prediction.n_abstained.tolist() == [2] * new.shape[0]
        assert (prediction.expected_loss == 0).all()


def test_no_rows_satisfy_nothing():
    for per in ("table", "instance", "label"):
        rule = control(np.empty((0, 3)), np.empty((0, 3)), per=per)
        assert not np.any(rule.satisfied)
    assert not control(np.empty((0, 3)), np.empty((0, 3)), risk="any_error", confidence="expectation").satisfied


def test_rows_without_relevant_labels():
    """No label is relevant: nothing can be learnt of recall, and all of errors."""
    p, y = np.random.default_rng(0).random((500, 3)) * 0.3, np.zeros((500, 3))
    assert control(p, y).decide(p).n_abstained.sum() == 0
    assert not control(p, y, risk="recall", target=0.5).satisfied
    assert not control(p, y, risk="precision", target=0.5).satisfied


def test_free_errors():
    """With costs of 0 there is one candidate, which answers everything."""
    p, y = draw(np.random.default_rng(0), 400)
    rule = control(p, y, target=0.9, loss=abstain.Hamming(0.0, 0.0))
    assert rule.cost == 0
    assert rule.abstention == 0


# Tables in, tables out.


def test_sparse_and_dense_agree():
    p, y = draw(np.random.default_rng(4), 600)
    p[p < 0.1] = 0.0
    y[:, 5] = p[:, 5] < 0.5  # upside down: must be abstained on
    p[:, 5] = p[:, 5].round()
    for per, target in (("table", 0.3), ("label", 0.12)):
        dense = control(p, y, target=target, per=per)
        thin = control(sparse.csr_array(p), sparse.csr_array(y), target=target, per=per)
        np.testing.assert_array_equal(dense.cost, thin.cost)
        assert np.any(dense.satisfied)
        found = thin.decide(sparse.csr_array(p))
        assert sparse.issparse(found.labels)
        assert found.labels.dtype == np.int8
        np.testing.assert_array_equal(found.labels.toarray(), dense.decide(p).labels)
    assert dense.satisfied.tolist() == [True] * 5 + [False]


def test_names_are_kept_and_compared():
    p, y = draw(np.random.default_rng(4), 400, 3)
    frame = pd.DataFrame(p, columns=["sky", "sea", "sun"])
    rule = control(frame, pd.DataFrame(y, columns=frame.columns), target=0.15)
    new = frame.iloc[:4].set_axis(list("abcd"))
    assert rule.decide(new).to_frame().index.tolist() == list("abcd")
    assert rule.decide(new).label_names == ("sky", "sea", "sun")
    with pytest.raises(InvalidLabels, match="another order: column 0 is 'sea', expected 'sky'"):
        rule.decide(new[["sea", "sky", "sun"]])
    with pytest.raises(InvalidProbabilities, match="2 labels; the calibration sample had 3"):
        rule.decide(p[:, :2])
    with pytest.raises(InvalidLabels, match="y_true has the same labels in another order"):
        control(frame, pd.DataFrame(y, columns=["sea", "sky", "sun"]))


def test_inputs_stay_as_they_are():
    p, y = draw(np.random.default_rng(4), 300)
    p.flags.writeable = y.flags.writeable = False
    for per in ("table", "instance", "label"):
        control(p, y, target=0.2, per=per).decide(p)


def test_results_do_not_depend_on_threads(monkeypatch):
    p, y = draw(np.random.default_rng(4), 3000)
    found = set()
    for count in ("1", "3"):
        monkeypatch.setenv("ABSTAIN_NUM_THREADS", count)
        rule = control(p, y, target=0.1, loss="f1")
        found.add((rule.cost, rule.estimate, rule.p_value))
    assert len(found) == 1


def test_what_it_says():
    p, y = draw(np.random.default_rng(0), 1000, 3)
    shown = repr(control(p, y, target=0.1))
    assert shown.startswith("Rule for Hamming(): answered_error ≤ 0.1 with 0.95 confidence\ncost 0.")
    assert "precision for each label ≥ 0.8" in repr(control(p, y, risk="precision", target=0.8, per="label"))
    assert "any_error ≤ 0.2 in expectation" in repr(
        control(p, y, risk="any_error", target=0.2, confidence="expectation")
    )
    assert "not satisfied" in repr(control(p[:5], y[:5]))
    assert "per instance" in repr(control(p, y, target=0.1, per="instance"))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"risk": "accuracy"}, InvalidGuarantee, "risk is 'accuracy'; expected one of 'answered_error'"),
        ({"target": 0}, InvalidGuarantee, "target is 0; expected a number between 0 and 1"),
        ({"target": 1.5}, InvalidGuarantee, "target is 1.5"),
        ({"target": float("nan")}, InvalidGuarantee, "target is nan"),
        ({"target": "low"}, InvalidGuarantee, "target is 'low'"),
        ({"target": 1e-17, "risk": "precision"}, InvalidGuarantee, "target is 1e-17; that cannot be told from 0"),
        ({"per": ["label"]}, InvalidGuarantee, "per is "),
        ({"confidence": 95}, InvalidGuarantee, "confidence is 95; expected a number between 0 and 1"),
        ({"confidence": True}, InvalidGuarantee, "confidence is True"),
        ({"confidence": None}, InvalidGuarantee, "confidence is None; expected a number .* or 'expectation'"),
        ({"per": None}, InvalidGuarantee, "per is None; expected 'table'"),
        ({"confidence": "expectation"}, InvalidGuarantee, "'answered_error' may fall as more is answered"),
        (
            {"confidence": "expectation", "risk": "any_error", "loss": "f1"},
            InvalidGuarantee,
            "cannot be controlled in expectation",
        ),
        ({"per": "row"}, InvalidGuarantee, "per is 'row'; expected 'table', 'instance' or 'label'"),
        ({"per": "label", "risk": "any_error"}, InvalidGuarantee, "use 'overall_error'"),
        ({"method": "bootstrap"}, InvalidGuarantee, "method is 'bootstrap'; expected 'betting' or"),
        ({"loss": "rank"}, InvalidLoss, "ranks labels and answers none"),
        ({"loss": "f1", "per": "label"}, InvalidLoss, "needs a decomposable loss"),
        ({"loss": abstain.Hamming([1.0, 2.0])}, InvalidLoss, "2 costs for 3 labels"),
        ({"y_true": np.zeros((4, 3))}, InvalidLabels, r"y_true has shape \(4, 3\); the probabilities have \(5, 3\)"),
        ({"y_true": np.full((5, 3), 2)}, InvalidLabels, "row 0, column 0 is 2; the truth is 0 or 1"),
        (
            {"y_true": np.full((5, 3), np.nan)},
            InvalidLabels,
            "column 0 is nan; .* labels that somebody chose to look at are no random sample. Take the complete rows",
        ),
        ({"probabilities": np.full((5, 3), 1.5)}, InvalidProbabilities, "row 0, column 0 is 1.5"),
    ],
)
def test_mistakes_are_named(arguments, error, message):
    given = {"probabilities": np.full((5, 3), 0.5), "y_true": np.zeros((5, 3)), **arguments}
    with pytest.raises(error, match=message):
        control(given.pop("probabilities"), given.pop("y_true"), **given)


def test_public_names():
    assert guarantee.__all__ == ["RISKS", "Rule", "control"]
    assert all(getattr(guarantee, name).__doc__ for name in guarantee.__all__)
