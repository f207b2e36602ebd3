"""Decisions from intervals, against all vertices of the intervals × all partial predictions."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, sparse
from tests.support import cases

import abstain
from abstain._core import exhaustive
from abstain._core.penalties import as_penalty
from abstain.metrics import expected_generalized_loss

ROWS, MOST_LABELS = 400, 4
LOSSES = ["hamming", "subset", "rank", "f1", "jaccard"]
COUNTING = [case for case in cases.PENALTY_CASES if case[0] != "perlabel"]


@cache
def worst_and_best(loss_case, m, rows=ROWS):
    """The greatest and the least E[ℓ] over all vertices, for every instance and partial prediction."""
    loss = cases.make_loss(loss_case, m)
    codes = exhaustive.partial_rankings(m) if loss.gives_rankings else exhaustive.partial_predictions(m)
    low, high = cases.random_intervals(rows, m)
    vertices = [
        exhaustive.expected_losses(np.where(is_high, high, low), loss, codes)
        for is_high in product((False, True), repeat=m)
    ]
    return codes, np.max(vertices, axis=0), np.min(vertices, axis=0)


@cache
def profile_of(loss_case, m):
    return abstain.risk_profile(random_box(40, m, 1), loss=cases.make_loss(loss_case, m))


def random_box(n, m, seed=0, **options):
    return abstain.Intervals(*cases.random_intervals(n, m, seed), **options)


@pytest.mark.parametrize(("loss_case", "penalty_case"), cases.PAIRS, ids=str)
def test_decision_has_the_least_worst_case_and_abstains_least(loss_case, penalty_case):
    for m in range(1, MOST_LABELS + 1):
        loss, penalty = cases.make_loss(loss_case, m), cases.make_penalty(penalty_case, m)
        codes, worst, best = worst_and_best(loss_case, m)
        n_abstained = (codes == -1).sum(axis=1)
        charged = as_penalty(penalty).bind(m).charge(n_abstained, codes == -1)
        totals = worst + charged
        prediction = abstain.decide(random_box(ROWS, m), loss, penalty)
        np.testing.assert_allclose(prediction.expected_loss, totals.min(axis=1), rtol=0, atol=1e-11)
        assert (prediction.gap == 0).all()
        by_count = np.stack([np.where(n_abstained == a, totals, np.inf).min(axis=1) for a in range(m + 1)], axis=1)
        cases.assert_fewest_of_the_best(by_count, loss.tie_scale, prediction.n_abstained)
        chosen = (prediction.codes[:, np.newaxis] == codes).all(axis=2).argmax(axis=1)
        rows = np.arange(ROWS)
        bounds = np.stack([best[rows, chosen], worst[rows, chosen]], axis=1) + charged[chosen, np.newaxis]
        np.testing.assert_allclose(prediction.bounds, bounds, rtol=0, atol=1e-11)


@pytest.mark.parametrize("loss_case", cases.LOSS_CASES, ids=str)
def test_bounds_of_any_prediction_are_those_of_all_vertices(loss_case):
    m = MOST_LABELS
    loss = cases.make_loss(loss_case, m)
    codes, worst, best = worst_and_best(loss_case, m)
    random = np.random.default_rng(3).integers(len(codes), size=ROWS)
    bounds = expected_generalized_loss(
        random_box(ROWS, m), loss.prediction_type(codes[random]), loss=loss, penalty=0.1, per_instance=True
    )
    rows, charged = np.arange(ROWS), 0.1 * (codes[random] == -1).sum(axis=1)
    np.testing.assert_allclose(bounds[:, 0], best[rows, random] + charged, rtol=0, atol=1e-11)
    np.testing.assert_allclose(bounds[:, 1], worst[rows, random] + charged, rtol=0, atol=1e-11)
    mean = expected_generalized_loss(random_box(ROWS, m), loss.prediction_type(codes[random]), loss=loss, penalty=0.1)
    np.testing.assert_allclose(mean, bounds.mean(axis=0))


@pytest.mark.parametrize("loss_case", cases.LOSS_CASES, ids=str)
def test_profile_is_the_least_worst_case_for_every_number_of_abstentions(loss_case):
    for m in range(1, MOST_LABELS + 1):
        codes, worst, _ = worst_and_best(loss_case, m)
        n_abstained = (codes == -1).sum(axis=1)
        profile = abstain.risk_profile(random_box(ROWS, m), loss=cases.make_loss(loss_case, m))
        assert profile.total_gap == 0
        for a in range(m + 1):
            allowed = n_abstained == a
            least = worst[:, allowed].min(axis=1) if allowed.any() else np.full(ROWS, np.inf)
            np.testing.assert_allclose(profile.values[:, a], least, rtol=0, atol=1e-11)
            if allowed.any():
                prediction = profile.with_n_abstained(np.full(ROWS, a))
                assert (prediction.n_abstained == a).all()
                np.testing.assert_allclose(prediction.expected_loss, least, rtol=0, atol=1e-11)
                np.testing.assert_allclose(prediction.bounds[:, 1], least, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    "loss_case", [case for case in cases.LOSS_CASES if case[0] in ("f1", "jaccard", "rank")], ids=str
)
def test_six_labels_by_brute_force(loss_case):
    """More labels can be on both sides at once, so that the search branches more than once."""
    m = 6 if loss_case[0] != "rank" else 5
    loss, rng = cases.make_loss(loss_case, m), np.random.default_rng(5)
    middle, half = rng.random((10, m)), rng.random((10, m)) * 0.5
    box = abstain.Intervals(np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1))
    for penalty in (0.02, abstain.Concave(0.3), "none"):
        ours, brute = abstain.decide(box, loss, penalty), exhaustive.decide(box, loss, penalty)
        np.testing.assert_allclose(ours.expected_loss, brute.expected_loss, rtol=0, atol=1e-11)
        np.testing.assert_array_equal(ours.n_abstained, brute.n_abstained)


@pytest.mark.parametrize(("loss_case", "penalty_case"), cases.PAIRS, ids=str)
def test_equal_ends_decide_as_probabilities_bit_for_bit(loss_case, penalty_case):
    for m in (1, 4, 23):
        loss, penalty = cases.make_loss(loss_case, m), cases.make_penalty(penalty_case, m)
        p = cases.random_probabilities(200, m)
        ours, known = abstain.decide(abstain.Intervals(p, p.copy()), loss, penalty), abstain.decide(p, loss, penalty)
        np.testing.assert_array_equal(ours.codes, known.codes)
        np.testing.assert_array_equal(ours.expected_loss, known.expected_loss)
        assert (ours.gap == 0).all()
        np.testing.assert_allclose(ours.bounds, known.bounds, rtol=0, atol=1e-11)


@pytest.mark.parametrize("loss_case", cases.LOSS_CASES, ids=str)
@pytest.mark.parametrize("penalty_case", COUNTING, ids=str)
def test_profile_decides_like_decide(loss_case, penalty_case):
    for m in (3, 12):
        loss, penalty, box = cases.make_loss(loss_case, m), cases.make_penalty(penalty_case, m), random_box(40, m, 1)
        ours, known = profile_of(loss_case, m).decide(penalty), abstain.decide(box, loss, penalty)
        np.testing.assert_allclose(ours.expected_loss, known.expected_loss, rtol=0, atol=1e-11)
        np.testing.assert_array_equal(ours.n_abstained, known.n_abstained)
        np.testing.assert_allclose(ours.bounds[:, 1], known.bounds[:, 1], rtol=0, atol=1e-11)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_probabilities_within_the_intervals_are_worse(loss):
    box, rng = random_box(300, 9), np.random.default_rng(0)
    prediction = abstain.decide(box, loss, 0.1)
    for _ in range(10):
        p = box.lower + rng.random((300, 9)) * (box.upper - box.lower)
        expected = expected_generalized_loss(p, prediction, loss=loss, penalty=0.1, per_instance=True)
        assert (expected <= prediction.bounds[:, 1] + 1e-11).all()
        assert (expected >= prediction.bounds[:, 0] - 1e-11).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_wider_intervals_never_promise_less(loss):
    low, high = cases.random_intervals(300, 9)
    before = abstain.decide(abstain.Intervals(low, high), loss, 0.1)
    for share in (0.05, 0.3, 1.0):
        wider = abstain.decide(abstain.Intervals(low * (1 - share), high + share * (1 - high)), loss, 0.1)
        assert (wider.expected_loss >= before.expected_loss - 1e-11).all()
        before = wider


@pytest.mark.parametrize("loss", LOSSES)
def test_order_of_labels_does_not_matter(loss):
    low, high = cases.random_intervals(300, 9)
    order = np.random.default_rng(1).permutation(9)
    ours = abstain.decide(abstain.Intervals(low[:, order], high[:, order]), loss, 0.1)
    known = abstain.decide(abstain.Intervals(low, high), loss, 0.1)
    np.testing.assert_allclose(ours.expected_loss, known.expected_loss, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(ours.n_abstained, known.n_abstained)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_higher_price_never_leads_to_more_abstentions_or_a_lower_total(loss):
    box, last = random_box(300, 9), None
    for price in (0.0, 0.01, 0.05, 0.1, 0.3, 1.0, np.inf):
        prediction = abstain.decide(box, loss, price)
        if last is not None:
            assert (prediction.n_abstained <= last.n_abstained).all()
            assert (prediction.expected_loss >= last.expected_loss - 1e-11).all()
        last = prediction


@pytest.mark.parametrize("loss", LOSSES)
def test_path_gives_the_numbers_of_abstentions_at_every_cost(loss):
    box = random_box(100, 7)
    path = abstain.risk_profile(box, loss=loss).path()
    for cost in (0.0, 0.02, 0.1, 0.4):
        np.testing.assert_array_equal(path.at(cost), abstain.decide(box, loss, cost).n_abstained)


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_intervals_decide_as_dense_ones(loss):
    rng = np.random.default_rng(2)
    low, high = (np.array(end) for end in cases.random_intervals(200, 12))
    hidden = rng.random(low.shape) < 0.6
    low[hidden] = high[hidden] = 0
    low[rng.random(low.shape) < 0.2] = 0  # stored in upper only
    box = abstain.Intervals(sparse.csr_array(low), sparse.csr_array(high))
    for penalty in (0.05, abstain.Concave(0.2)):
        ours, known = abstain.decide(box, loss, penalty), abstain.decide(abstain.Intervals(low, high), loss, penalty)
        np.testing.assert_allclose(ours.expected_loss, known.expected_loss, rtol=0, atol=1e-11)
        np.testing.assert_allclose(ours.bounds, known.bounds, rtol=0, atol=1e-11)
        if loss != "rank":
            np.testing.assert_array_equal(ours.n_abstained, known.n_abstained)
    ours, known = abstain.risk_profile(box, loss=loss), abstain.risk_profile(abstain.Intervals(low, high), loss=loss)
    np.testing.assert_allclose(ours.decide(0.05).expected_loss, known.decide(0.05).expected_loss, atol=1e-11)


@pytest.mark.parametrize("loss", ["f1", "jaccard", "rank"])
def test_a_search_that_is_cut_short_says_how_far_it_may_be_off(loss, monkeypatch):
    rng = np.random.default_rng(0)
    middle, half = rng.random((100, 20)), 0.5 * rng.random((100, 20))
    box = abstain.Intervals(np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1))
    best = abstain.decide(box, loss, "none")
    profile = abstain.risk_profile(box, loss=loss)
    assert best.gap.max() == 0 == profile.total_gap
    monkeypatch.setattr("abstain._core.losses.two_ends.NODE_LABELS", 1)
    short = abstain.decide(box, loss, "none")
    assert short.gap.max() > 0
    assert (short.expected_loss >= best.expected_loss - 1e-11).all()
    assert (short.expected_loss - short.gap <= best.expected_loss + 1e-11).all()
    shorter = abstain.risk_profile(box, loss=loss)
    assert shorter.total_gap > 0
    from_profile = shorter.decide(0.02)
    assert (from_profile.expected_loss - from_profile.gap <= profile.decide(0.02).expected_loss + 1e-11).all()


@pytest.mark.parametrize(("loss", "seed", "node_labels"), [("f1", 28, 60), ("jaccard", 50, 100), ("rank", 28, 60)])
def test_a_search_that_is_cut_short_does_not_depend_on_other_rows(loss, seed, node_labels, monkeypatch):
    """The answers of a profile are searched for again, perhaps among other rows, and must be those of its values."""
    monkeypatch.setattr("abstain._core.losses.two_ends.NODE_LABELS", node_labels)
    n, m, rng = 20, 7, np.random.default_rng(seed)
    low = rng.random((n, m)) * rng.random((n, 1))
    box = abstain.Intervals(low, 1 - rng.random((n, m)) * rng.random((n, 1)) * (1 - low))
    profile, prediction = abstain.risk_profile(box, loss=loss), abstain.decide(box, loss, 0.05)
    alone = [abstain.decide(box.take(np.array([i])), loss, 0.05).codes[0] for i in range(n)]
    np.testing.assert_array_equal(prediction.codes, alone)
    found = [profile.with_n_abstained(rng.permutation(n) % (m - 1)) for _ in range(5)]
    found += [profile.decide(0.05), abstain.budget.solve(profile, rate=0.3).prediction]
    for each, price in zip(found, [0.0] * 5 + [0.05, 0.0], strict=True):
        worst = expected_generalized_loss(box, each, loss=loss, penalty=price, per_instance=True)[:, 1]
        np.testing.assert_allclose(each.expected_loss, worst, rtol=0, atol=1e-11)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_thousand_labels(loss):
    rng = np.random.default_rng(0)
    p = rng.beta(0.2, 2.0, (3, 1000))
    half = 0.02 * rng.random(p.shape)
    box = abstain.Intervals(np.clip(p - half, 0, 1), np.clip(p + half, 0, 1))
    prediction = abstain.decide(box, loss, 0.001)
    assert (prediction.gap <= 0.01 * prediction.expected_loss).all()
    worst = expected_generalized_loss(box, prediction, loss=loss, penalty=0.001, per_instance=True)[:, 1]
    np.testing.assert_allclose(prediction.expected_loss, worst, rtol=1e-9)


def test_unknown_dependence_only_adds_up_the_risks_of_subset():
    """The greatest P(some answer is wrong) over all joint distributions with these marginals is min(1, Σ risks)."""
    rng, m = np.random.default_rng(0), 3
    truths = np.array(list(product((0, 1), repeat=m)))
    for _ in range(20):
        low, high = np.sort(rng.random((2, m)), axis=0)
        codes = rng.integers(-1, 2, m)
        wrong = np.where(truths == 1, codes == 0, codes == 1).any(axis=1)
        found = optimize.linprog(
            -wrong.astype(float), A_ub=np.concatenate([truths.T, -truths.T]), b_ub=np.concatenate([high, -low]),
            A_eq=np.ones((1, len(truths))), b_eq=[1.0], bounds=(0, 1),
        )  # fmt: skip
        capped = min(1.0, np.where(codes == 1, 1 - low, np.where(codes == 0, high, 0.0)).sum())
        assert -found.fun == pytest.approx(capped, abs=1e-9)
        box = abstain.Intervals(low, high)
        bounds = expected_generalized_loss(box, [codes], loss="subset", penalty=0.0)
        assert bounds[1] <= capped + 1e-12
        # Hamming adds up the same risks: its minimax decision is the one for the capped sum under any dependence.
        assert expected_generalized_loss(box, [codes], loss="hamming", penalty=0.0)[1] == pytest.approx(
            np.where(codes == 1, 1 - low, np.where(codes == 0, high, 0.0)).sum()
        )


# --- the other rules


def costs_of(loss_case, m):
    fn, fp = cases.make_loss(loss_case, m).read_error_costs(m)
    return np.broadcast_to(fn, m), np.broadcast_to(fp, m)


@pytest.mark.parametrize("loss_case", [case for case in cases.LOSS_CASES if case[0] == "hamming"], ids=str)
@pytest.mark.parametrize("penalty", ["none", 0.2, "each"])
def test_skeptical_answers_are_the_best_for_every_probability(loss_case, penalty):
    m, n = 5, 400
    fn, fp = costs_of(loss_case, m)
    price = {"none": np.full(m, np.inf), "each": np.linspace(0.01, 0.4, m)}.get(penalty, np.full(m, 0.2))
    given = abstain.PerLabel(price) if penalty == "each" else penalty
    low, high = cases.random_intervals(n, m)
    prediction = abstain.decide(abstain.Intervals(low, high, rule="skeptical"), cases.make_loss(loss_case, m), given)
    always = {1: np.ones((n, m), bool), 0: np.ones((n, m), bool)}
    for share in np.linspace(0, 1, 41):
        p = low + share * (high - low)
        if_zero, if_one = fn * p, fp * (1 - p)
        always[1] &= (if_one <= if_zero) & (if_one <= price)
        always[0] &= (if_zero <= if_one) & (if_zero <= price)
    np.testing.assert_array_equal(prediction.codes, np.where(always[0], 0, np.where(always[1], 1, -1)))
    risk = np.where(always[1], fp * (1 - low), np.where(always[0], fn * high, np.where(np.isinf(price), 0, price)))
    np.testing.assert_allclose(prediction.expected_loss, risk.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(prediction.bounds[:, 1], risk.sum(axis=1), atol=1e-12)


def test_skeptical_answers_may_tie_with_others():
    box = abstain.Intervals([[0.6, 0.4, 0.1, 0.5, 0.2, 0.5]], [[0.9, 0.7, 0.3, 0.8, 0.5, 0.5]], rule="skeptical")
    np.testing.assert_array_equal(abstain.decide(box, penalty="none").labels, [[1, -1, 0, 1, 0, 0]])
    nothing = abstain.Intervals([[0.0, 0.0, 1.0, 0.0]], [[1.0, 0.4, 1.0, 0.0]], rule="skeptical")
    for price in ("none", 0.1, 0.0):
        for costs, answers in (((1, 0), [[1, 1, 1, 0]]), ((0, 1), [[0, 0, 0, 0]])):  # what costs nothing is answered
            prediction = abstain.decide(nothing, abstain.Hamming(*costs), price)
            np.testing.assert_array_equal(prediction.labels, answers)
            assert prediction.expected_loss == 0
    thirds = abstain.Intervals([[1 / 3, 0.1]], [[0.9, 1 / 3]], rule="skeptical")  # 1 − ⅓ and 2 · ⅓ differ by rounding
    np.testing.assert_array_equal(abstain.decide(thirds, abstain.Hamming(2, 1), "none").labels, [[1, 0]])


@pytest.mark.parametrize("price", [0.1, 0.5])
def test_skeptical_predictions_for_a_low_price_are_those_of_minimax(price):
    ends = np.linspace(0, 1, 21)
    low, high = (end[np.triu_indices(21)] for end in np.meshgrid(ends, ends, indexing="ij"))
    box = abstain.Intervals(low, high)
    np.testing.assert_array_equal(
        abstain.decide(box.with_rule("skeptical"), penalty=price).labels, abstain.decide(box, penalty=price).labels
    )


@pytest.mark.parametrize("loss_case", [case for case in cases.LOSS_CASES if case[0] == "hamming"], ids=str)
@pytest.mark.parametrize("optimism", [0.0, 0.3, 1.0])
def test_hurwicz_weighs_the_best_and_the_worst_case(loss_case, optimism):
    m, n = 4, 300
    loss, (low, high) = cases.make_loss(loss_case, m), cases.random_intervals(n, m)
    codes, worst, best = worst_and_best(loss_case, m)
    rows = slice(0, n)
    low, high = cases.random_intervals(ROWS, m)
    prediction = abstain.decide(abstain.Intervals(low, high, rule="hurwicz", optimism=optimism), loss, 0.1)
    totals = optimism * best + (1 - optimism) * worst + 0.1 * (codes == -1).sum(axis=1)
    np.testing.assert_allclose(prediction.expected_loss[rows], totals.min(axis=1)[rows], atol=1e-11)


def test_rules_that_have_no_meaning_are_refused():
    low, high = cases.random_intervals(5, 3)
    skeptical = abstain.Intervals(low, high, rule="skeptical")
    hurwicz = skeptical.with_rule("hurwicz", 0.5)
    for box in (skeptical, hurwicz):
        for loss in ("f1", "jaccard", "rank", "subset"):
            with pytest.raises(abstain.InvalidLoss, match=f'rule="{box.rule}" judges each label by itself'):
                abstain.decide(box, loss)
    with pytest.raises(abstain.InvalidPenalty, match="needs a price for each label"):
        abstain.decide(skeptical, "hamming", abstain.Concave(0.1))
    for refused in (abstain.risk_profile, abstain.budget.solve):
        with pytest.raises(abstain.InvalidLoss, match="no risk profile"):
            refused(skeptical, loss="hamming")


# --- input


def test_errors_name_what_is_wrong_and_where():
    frame = pd.DataFrame([[0.2, 0.3], [0.4, 0.5]], columns=["sky", "sea"], index=["a", "b"])
    above = frame + 0.1
    for lower, upper, message in [
        (above, frame, r"intervals: row 0 \(index 'a'\), column 0 \(label 'sky'\) has lower .* > upper .*exchanged"),
        (frame, above.assign(sea=[0.4, 1.2]), r"upper: row 1 \(index 'b'\), column 1 \(label 'sea'\) is 1.2"),
        (frame.assign(sky=[np.nan, 0.1]), above, r"lower: row 0 \(index 'a'\), column 0 \(label 'sky'\) is nan"),
        (frame, above[["sea", "sky"]], "different labels: column 0 is 'sky' in lower and 'sea' in upper"),
        (frame, above.iloc[::-1], "different rows: row 0 is 'a' in lower and 'b' in upper"),
        (frame, [[0.5, 0.6]], "lower is 2 × 2, upper is 1 × 2"),
        (frame, sparse.csr_array(above.to_numpy()), "lower is an array, upper is a sparse matrix"),
        (sparse.csr_array([[0.0, 0.4]]), sparse.csr_array([[0.3, 0.0]]), "lower 0.4, and upper is not stored"),
        (sparse.csr_array([[0.0, 0.4]]), sparse.csr_array([[0.3, 0.2]]), "row 0, column 1 has lower 0.4 > upper 0.2"),
    ]:
        with pytest.raises(abstain.InvalidProbabilities, match=message):
            abstain.Intervals(lower, upper)
    with pytest.raises(abstain.InvalidProbabilities, match="rule is 'cautious'; expected 'minimax'"):
        abstain.Intervals([0.1], [0.2], rule="cautious")
    with pytest.raises(abstain.InvalidProbabilities, match="needs a number from 0"):
        abstain.Intervals([0.1], [0.2], rule="hurwicz")
    with pytest.raises(abstain.InvalidProbabilities, match='only rule="hurwicz" has one'):
        abstain.Intervals([0.1], [0.2], optimism=0.5)


def test_names_of_labels_and_rows_are_kept():
    frame = pd.DataFrame([[0.2, 0.3], [0.4, 0.5]], columns=["sky", "sea"], index=["a", "b"])
    prediction = abstain.decide(abstain.Intervals(frame, (frame + 0.1).to_numpy()), penalty=0.2)
    assert prediction.label_names == ("sky", "sea")
    assert list(prediction.to_frame().index) == ["a", "b"]
    assert list(abstain.Intervals(frame, frame + 0.1).midpoint.to_frame().columns) == ["sky", "sea"]


def test_rounding_is_no_error():
    p = np.float32([[0.3, 0.7, 1.0000001]])
    box = abstain.Intervals(p, p - np.float32(1e-7))
    assert (box.lower <= box.upper).all()
    assert box.upper.max() <= 1


@pytest.mark.parametrize("options", [{}, {"rule": "skeptical"}, {"rule": "hurwicz", "optimism": 0.4}])
def test_bounds_are_not_those_of_intervals_that_have_been_changed_since(options):
    low, high = (end.copy() for end in cases.random_intervals(20, 3))
    box = abstain.Intervals(low, high, **options)
    before, after = (abstain.decide(box, penalty=0.3) for _ in range(2))
    bounds = before.bounds
    low *= 0.5
    high[:] = high**0.5
    np.testing.assert_array_equal(before.bounds, bounds)
    with pytest.raises(abstain.InvalidProbabilities, match="have been changed since the decision"):
        _ = after.bounds


def test_what_needs_known_probabilities_says_so():
    box, truth = random_box(30, 3), np.zeros((30, 3), int)
    for refused in (
        lambda: abstain.report(box, truth),
        lambda: abstain.guarantee.control(box, truth, target=0.1),
        lambda: abstain.curves.cost_curve(probabilities=box, y_true=truth),
    ):
        with pytest.raises((abstain.AbstainError, TypeError), match=r"midpoint, lower or upper"):
            refused()


def test_a_loss_of_ones_own_without_a_worst_case_is_refused():
    class Own(abstain.SubsetZeroOne):
        takes_intervals = False

    with pytest.raises(abstain.InvalidLoss, match="does not take intervals"):
        abstain.decide(random_box(3, 3), Own())


def test_members_span_intervals():
    rng = np.random.default_rng(0)
    members = rng.random((20, 7, 4))
    box = abstain.Intervals.from_members(members)
    np.testing.assert_array_equal(box.lower, members.min(axis=1))
    np.testing.assert_array_equal(box.upper, members.max(axis=1))
    narrow = abstain.Intervals.from_members(members, quantiles=(0.1, 0.9), label_names=list("abcd"))
    np.testing.assert_allclose(narrow.lower, np.quantile(members, 0.1, axis=1))
    assert abstain.decide(narrow).label_names == ("a", "b", "c", "d")
    members[3, 2, 1] = 1.5
    with pytest.raises(abstain.InvalidProbabilities, match=r"row 3, member 2, label 1 is 1\.5"):
        abstain.Intervals.from_members(members)
    with pytest.raises(abstain.InvalidProbabilities, match="n_members"):
        abstain.Intervals.from_members(members[0])
    with pytest.raises(abstain.InvalidProbabilities, match="quantiles"):
        abstain.Intervals.from_members(members[:1], quantiles=(0.9, 0.1))


def test_counts_give_imprecise_dirichlet_intervals():
    box = abstain.Intervals.from_counts(pd.DataFrame({"sky": [3], "sea": [0]}), [[4, 8]], s=1)
    np.testing.assert_allclose(box.lower, [[3 / 5, 0]])
    np.testing.assert_allclose(box.upper, [[4 / 5, 1 / 9]])
    with pytest.raises(abstain.InvalidProbabilities, match=r"row 0.*\(label 'sky'\) is 3 of 2"):
        abstain.Intervals.from_counts(pd.DataFrame({"sky": [3]}), 2)
    with pytest.raises(abstain.InvalidProbabilities, match="s is 0"):
        abstain.Intervals.from_counts([[1]], [[2]], s=0)


def test_counts_are_matched_by_name():
    relevant = pd.DataFrame([[3, 0], [1, 2]], ["a", "b"], ["sky", "sea"])
    total = pd.Series({"sky": 4, "sea": 8})
    box = abstain.Intervals.from_counts(relevant, total)
    np.testing.assert_allclose(box.upper, [[5 / 6, 2 / 10], [3 / 6, 4 / 10]])
    per_row = pd.DataFrame({"n": [4, 8]}, ["a", "b"])
    np.testing.assert_allclose(abstain.Intervals.from_counts(relevant, per_row).lower, [[3 / 6, 0], [1 / 10, 2 / 10]])
    assert abstain.Intervals.from_counts(relevant, np.int64(4)).axes.label_names == ("sky", "sea")
    both = relevant + 4
    for other, message in [
        (total[::-1], "relevant and total have different labels: column 0 is 'sky' in relevant and 'sea' in total"),
        (both[["sea", "sky"]], "different labels: column 0 is 'sky' in relevant and 'sea' in total"),
        (both.iloc[::-1], "different rows: row 0 is 'a' in relevant and 'b' in total"),
        (per_row.iloc[::-1], "different rows: row 0 is 'a'"),
    ]:
        with pytest.raises(abstain.InvalidProbabilities, match=message):
            abstain.Intervals.from_counts(relevant, other)
    with pytest.raises(abstain.InvalidProbabilities, match="different labels"):
        abstain.Intervals(total / 10, (total / 9)[::-1])


def test_members_in_frames_keep_their_names():
    frames = [pd.DataFrame([[0.1, 0.5], [0.3, 0.4]], columns=["sky", "sea"]) + k / 10 for k in range(3)]
    box = abstain.Intervals.from_members(frames)
    assert box.axes.label_names == ("sky", "sea")
    np.testing.assert_allclose(box.upper, [[0.3, 0.5], [0.4, 0.6], [0.5, 0.7]])
    with pytest.raises(abstain.InvalidProbabilities, match=r"members\[0\] and members\[2\] have different labels"):
        abstain.Intervals.from_members([*frames[:2], frames[2][["sea", "sky"]]])
    with pytest.raises(abstain.InvalidProbabilities, match=r"members\[1\] has shape \(1, 2\)"):
        abstain.Intervals.from_members([frames[0], frames[1][:1]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: abstain.Intervals.from_members([[[0.1, 0.2]], [[0.3]]]), "members: cannot be read as an array"),
        (lambda: abstain.Intervals.from_members([[[0.1]]], quantiles=0.5), "quantiles are 0.5; expected two"),
        (lambda: abstain.Intervals.from_members([[[0.1]]], quantiles=None), "quantiles are None; expected two"),
        (lambda: abstain.Intervals.from_members([[[0.1]]], quantiles=("a", "b")), "quantiles are .*; expected two"),
        (lambda: abstain.Intervals.from_counts([[1]], "b"), "total: expected an n × m table of numbers, got str"),
        (lambda: abstain.Intervals.from_counts([[1]], sparse.csr_array([[2]])), "total: intervals of counts are dense"),
        (lambda: abstain.Intervals.from_counts(sparse.csr_array([[1]]), 2), "relevant: intervals of counts are dense"),
        (lambda: abstain.Intervals.from_counts([["a"]], 2), "relevant: expected an n × m table of numbers"),
        (lambda: abstain.Intervals.from_counts([[1, 2]], [2, 3, 4]), "total has shape .* does not fit"),
    ],
)
def test_mistakes_in_members_and_counts_are_named(make, message):
    with pytest.raises(abstain.InvalidProbabilities, match=message):
        make()


def test_a_pair_of_tables_is_told_to_be_intervals():
    low, high = cases.random_intervals(5, 3)
    with pytest.raises(abstain.InvalidProbabilities, match=r"pass abstain\.Intervals\(\*probabilities\)"):
        abstain.decide((low, high))
    with pytest.raises(abstain.InvalidProbabilities, match="several batches"):
        abstain.decide([low, high])
    assert repr(abstain.Intervals([0.2], [0.3])).startswith("Intervals of 1 instance × 1 label, minimax")


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble])
def test_ends_of_any_precision(dtype):
    low, high = (np.asarray(end, dtype) for end in cases.random_intervals(50, 4))
    ours = abstain.decide(abstain.Intervals(low, high), "f1")
    known = abstain.decide(abstain.Intervals(low.astype(float), high.astype(float)), "f1")
    np.testing.assert_array_equal(ours.codes, known.codes)
    np.testing.assert_array_equal(ours.bounds, known.bounds)
    with pytest.raises(abstain.InvalidProbabilities, match="exchanged"):
        abstain.Intervals(high, low)


# --- budgets and reviews


@pytest.mark.parametrize("loss", LOSSES)
def test_a_budget_spends_reviews_where_the_worst_case_falls_most(loss):
    """Against all ways to spend it: the profile of each instance is tested above."""
    box, budget = random_box(3, 3, 7), 4
    values = np.asarray(abstain.risk_profile(box, loss=loss).values)
    allocation = abstain.budget.solve(box, loss=loss, count=budget)
    least = min(
        sum(values[i, a] for i, a in enumerate(counts))
        for counts in product(range(4), repeat=3)
        if sum(counts) <= budget
    )
    prediction = allocation.prediction
    assert prediction.n_abstained.sum() <= budget
    assert prediction.expected_loss.sum() - allocation.gap <= least + 1e-11
    assert prediction.expected_loss.sum() >= least - 1e-11
    np.testing.assert_allclose(prediction.bounds[:, 1], prediction.expected_loss, atol=1e-11)
    again = allocation.price.decide(box)
    assert again.n_abstained.sum() <= budget


def test_budgets_with_limits_per_label_and_instance():
    box = random_box(40, 6)
    risk = np.minimum(box.upper, 1 - box.lower)
    allocation = abstain.budget.solve(box, per_label=3)
    np.testing.assert_allclose(allocation.prediction.expected_loss.sum(), np.sort(risk, axis=0)[:-3].sum(), atol=1e-11)
    allocation = abstain.budget.solve(box, per_instance=2)
    np.testing.assert_allclose(
        allocation.prediction.expected_loss, np.sort(risk, axis=1)[:, :-2].sum(axis=1), atol=1e-11
    )
    never = abstain.budget.solve(box, per_label=[0, 1, 1, 1, 1, 1])
    assert not never.price.decide(box).abstained[:, 0].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_reviews_save_what_the_best_answer_adds_in_the_worst_case(loss):
    box = random_box(25, 4)
    prediction = abstain.decide(box, loss, 0.05)
    queue = abstain.review_queue(box, prediction, loss=loss)
    assert len(queue) == prediction.n_abstained.sum() > 0
    chosen = abstain._core.losses.as_loss(loss)
    before = expected_generalized_loss(box, prediction, loss=loss, penalty=0.0, per_instance=True)[:, 1]
    for row, label, saves in zip(queue.row, queue.label, queue.saves, strict=True):
        codes = prediction.codes[row]
        if loss == "rank":
            size = (codes >= 0).sum()
            tried = np.stack([np.where(codes >= place, codes + 1, codes) for place in range(size + 1)])
            tried[:, label] = np.arange(size + 1)
        else:
            tried = np.stack([codes, codes])
            tried[:, label] = 0, 1
        one = abstain.Intervals(*(np.repeat(end[row : row + 1], len(tried), axis=0) for end in (box.lower, box.upper)))
        after = (
            expected_generalized_loss(one, chosen.prediction_type(tried), loss=loss, penalty=0.0, per_instance=True)[
                :, 1
            ]
            if loss != "rank" or len(tried) > 1
            else np.zeros(1)
        )
        assert saves == pytest.approx(after.min() - before[row], abs=1e-11)
    assert (np.diff(queue.saves) <= 0).all()
    frame = queue.to_frame()
    assert list(frame.columns) == ["id", "label", "probability", "saves", "lower", "upper"]
    np.testing.assert_allclose(frame["probability"], (frame["lower"] + frame["upper"]) / 2)
