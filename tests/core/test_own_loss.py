"""Losses that a user writes, in every part of the library: right against brute force, or a clear error."""

import itertools
import pickle

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from tests.oracles.budgets import least_bill
from tests.oracles.monotonicity import assert_witness, slow_is_monotone
from tests.support.cases import PENALTIES, random_probabilities

import abstain
from abstain import InvalidBudget, InvalidGuarantee, InvalidLoss, InvalidPenalty, budget, curves, metrics
from abstain._core import exhaustive
from abstain.budget import _per_instance
from abstain.budget._histogram import SavingsHistogram
from abstain.budget._two_pass import TwoPassDecider
from abstain.guarantee import control
from abstain.streams import Job, budget_files, decide_files
from abstain.streams._evaluate import evaluate_files

M = 4
NAMES = tuple("abcd")
TOLERANCE = 1e-9


class Surprise(abstain.DecomposableLoss):
    """Errors cost the more, the less often the truth is what it is: −log P(y_i). One cost for each label."""

    def __init__(self, prevalence, scale=1.0):
        self.prevalence, self.scale = np.asarray(prevalence), scale

    def __repr__(self):
        return f"Surprise(scale={self.scale:g})"

    def error_costs(self, n_labels):
        return -self.scale * np.log(self.prevalence), -self.scale * np.log(1.0 - self.prevalence)


class MissedIsWorse(abstain.DecomposableLoss):
    """Plain numbers, the same for all labels."""

    def __repr__(self):
        return "MissedIsWorse()"

    def error_costs(self, n_labels):
        return 3, 0.5


class Enumerated(abstain.Loss):
    """Any loss of a few labels, by trying every answer with every truth. Subclasses define the loss in `of`."""

    profile_has_start = False

    def __repr__(self):
        return f"{type(self).__name__}()"

    def of(self, truth, codes):
        raise NotImplementedError

    def _risks(self, p, codes):
        """E[ℓ] of each row of p with each row of codes."""
        truths = np.array(list(itertools.product((False, True), repeat=p.shape[1])))
        chances = np.stack([np.where(y, p, 1.0 - p).prod(axis=1) for y in truths], axis=1)
        return chances @ np.stack([self.of(np.broadcast_to(y, codes.shape), codes) for y in truths])

    def _every_answer(self, m):
        return np.array(list(itertools.product((0, 1, -1), repeat=m)), np.int8)

    def profile(self, block, p, out):
        every = self._every_answer(p.shape[1])
        risks, counts = self._risks(p, every), (every == -1).sum(axis=1)
        for a in range(p.shape[1] + 1):
            out.values[:, a] = risks[:, counts == a].min(axis=1)

    def attain(self, block, p, profile, n_abstained, codes):
        every = self._every_answer(p.shape[1])
        risks, counts = self._risks(p, every), (every == -1).sum(axis=1)
        for i, a in enumerate(n_abstained):
            codes[i] = every[np.where(counts == a, risks[i], np.inf).argmin()]

    def realized(self, block, truth, codes):
        return self.of(truth, codes)

    def expected(self, block, p, codes):
        return np.array([self._risks(p[i : i + 1], codes[i : i + 1])[0, 0] for i in range(len(p))])


class TwoErrors(Enumerated):
    """1 if at least two answers are wrong. Defines all that such a loss can define."""

    takes_sparse = True  # right answers do not matter

    def of(self, truth, codes):
        return (np.where(truth, codes == 0, codes == 1).sum(axis=1) >= 2).astype(float)

    def of_counts(self, true_positives, false_positives, false_negatives, answered):
        return (false_positives + false_negatives >= 2).astype(float)

    def highest_cost(self, n_labels):
        return 1.0


class WrongShare(Enumerated):
    """Wrong answers / answers, with the required methods only."""

    def of(self, truth, codes):
        answered = (codes >= 0).sum(axis=1)
        return np.where(truth, codes == 0, codes == 1).sum(axis=1) / np.maximum(answered, 1)


SUMS = {"surprise": Surprise([0.5, 0.1, 0.03, 0.3]), "missed": MissedIsWorse()}
OTHERS = {"two errors": TwoErrors(), "wrong share": WrongShare()}
OWN = SUMS | OTHERS

own = pytest.mark.parametrize("loss", OWN.values(), ids=OWN)
sums = pytest.mark.parametrize("loss", SUMS.values(), ids=SUMS)
others = pytest.mark.parametrize("loss", OTHERS.values(), ids=OTHERS)


def some_probabilities(n=24, seed=0):
    return random_probabilities(n, M, seed)


def some_truth(p, seed=1):
    return (np.random.default_rng(seed).random(p.shape) < p).astype(np.int8)


def slow_loss(loss, y, codes):
    """ℓ of one instance, label by label."""
    if isinstance(loss, Enumerated):
        return float(loss.of(np.array([y], bool), np.array([codes]))[0])
    false_negative, false_positive = (np.broadcast_to(cost, M) for cost in loss.error_costs(M))
    return sum(false_negative[j] if y[j] else false_positive[j] for j in range(M) if codes[j] not in (-1, y[j]))


def risk_of_entries(loss, p):
    """What the best answer to each label of a sum is expected to cost."""
    false_negative, false_positive = loss.error_costs(M)
    return np.minimum(false_negative * p, false_positive * (1.0 - p))


# Deciding and scoring


@own
@pytest.mark.parametrize("penalty", PENALTIES)
def test_decisions_are_those_of_brute_force(loss, penalty):
    p = some_probabilities()
    for make in PENALTIES[penalty]:
        if penalty == "perlabel" and not loss.is_decomposable:
            with pytest.raises(InvalidPenalty, match="cannot honour PerLabel costs"):
                abstain.decide(p, loss, make(M))
            continue
        found, brute = abstain.decide(p, loss, make(M)), exhaustive.decide(p, loss, make(M))
        np.testing.assert_allclose(found.expected_loss, brute.expected_loss, rtol=0, atol=1e-11)
        again = metrics.expected_generalized_loss(p, found, loss=loss, penalty=make(M), per_instance=True)
        np.testing.assert_allclose(again, found.expected_loss, rtol=0, atol=1e-11)


@own
def test_profiles_and_paths(loss):
    p = some_probabilities()
    profile = abstain.risk_profile(p, loss=loss)
    codes = exhaustive.partial_predictions(M)
    risks, n_abstained = exhaustive.expected_losses(p, loss, codes), (codes == -1).sum(axis=1)
    least = np.stack([risks[:, n_abstained == a].min(axis=1) for a in range(M + 1)], axis=1)
    np.testing.assert_allclose(profile.values, least, rtol=0, atol=1e-11)
    for cost in (0.013, 0.07, 0.31):
        totals = least + cost * np.arange(M + 1)
        at = profile.path().at(cost)
        np.testing.assert_allclose(totals[np.arange(len(p)), at], totals.min(axis=1), atol=1e-11)
        np.testing.assert_array_equal(profile.decide(cost).n_abstained, at)


@own
def test_scores(loss):
    p = some_probabilities()
    y, answers = some_truth(p), abstain.decide(p, loss, 0.1)
    scored = metrics.generalized_loss(y, answers, loss=loss, penalty=0.1, per_instance=True)
    slow = [
        slow_loss(loss, truth, codes) + 0.1 * (codes == -1).sum()
        for truth, codes in zip(y, answers.labels, strict=True)
    ]
    np.testing.assert_allclose(scored, slow, atol=1e-12)
    assert len(np.unique(slow)) > 3


@own
def test_frames_keep_their_names(loss):
    frame = pd.DataFrame(some_probabilities(), columns=list(NAMES), index=[f"r{i}" for i in range(24)])
    found = abstain.decide(frame, loss, 0.1).to_frame()
    assert (tuple(found.columns), found.index[3]) == (NAMES, "r3")
    np.testing.assert_array_equal(found.to_numpy(na_value=-1), abstain.decide(frame.to_numpy(), loss, 0.1).labels)


@own
def test_a_review_saves_what_the_best_answer_would_add(loss):
    p = some_probabilities()
    codes = np.random.default_rng(2).choice([-1, -1, 0, 1], p.shape)
    queue = abstain.review_queue(p, codes, loss=loss)
    assert len(queue) == (codes == -1).sum()
    for i, j, saves in zip(queue.row, queue.label, queue.saves, strict=True):
        answered = np.tile(codes[i], (2, 1))
        answered[:, j] = 0, 1
        costs = exhaustive.expected_losses(p[[i]], loss, np.vstack([codes[i], answered]))[0]
        assert saves == pytest.approx(costs[1:].min() - costs[0], abs=1e-12)


# Sparse tables

THIN = np.where(np.random.default_rng(3).random((40, M)) < 0.5, 0.0, random_probabilities(40, M, seed=3))


@pytest.mark.parametrize("name", ["surprise", "missed", "two errors"])
@pytest.mark.parametrize("penalty", [0.1, abstain.Concave(0.2), abstain.PerLabel([0.1, 0.3, 0.02, 0.2])])
def test_sparse_tables_are_decided_as_dense_ones(name, penalty):
    loss, table = OWN[name], sparse.csr_array(THIN)
    if isinstance(penalty, abstain.PerLabel) and not loss.is_decomposable:
        return
    found, expected = abstain.decide(table, loss, penalty), abstain.decide(THIN, loss, penalty)
    np.testing.assert_allclose(found.expected_loss, expected.expected_loss, atol=1e-12)
    y = sparse.csr_array(some_truth(THIN))
    ours, theirs = (
        metrics.generalized_loss(truth, answers, loss=loss, penalty=penalty, per_instance=True)
        for truth, answers in ((y, found), (y.toarray(), abstain.PartialPrediction(found.labels.toarray())))
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    queue = abstain.review_queue(table, found, loss=loss)
    assert queue.saves.sum() == pytest.approx(
        abstain.review_queue(THIN, abstain.PartialPrediction(found.labels.toarray()), loss=loss).saves.sum()
    )


def test_sparse_tables_are_refused_where_what_is_not_stored_would_matter():
    loss, table = WrongShare(), sparse.csr_array(THIN)
    chunks = da.from_array(THIN, chunks=(10, M)).map_blocks(sparse.csr_array)
    answers = abstain.PartialPrediction(sparse.csr_array(some_truth(THIN)))
    histogram = SavingsHistogram(TwoErrors(), M)
    histogram.loss = loss
    for refused in (
        lambda: abstain.decide(table, loss),
        lambda: abstain.decide(chunks, loss),
        lambda: abstain.risk_profile(table, loss=loss),
        lambda: abstain.risk_profile(chunks, loss=loss),
        lambda: budget.solve(table, loss=loss, count=3),
        lambda: budget.solve(chunks, loss=loss, count=3),
        lambda: histogram.add(table),
        lambda: metrics.generalized_loss(some_truth(THIN), answers, loss=loss, penalty=0.1),
        lambda: metrics.expected_generalized_loss(table, some_truth(THIN), loss=loss, penalty=0.1),
        lambda: abstain.review_queue(table, answers, loss=loss),
    ):
        with pytest.raises(InvalidLoss, match=r"WrongShare\(\) does not take sparse tables"):
            refused()


# Budgets


def least_bill_of_sets(loss, p, *, total, per_instance, per_label, review):
    """Over all sets of reviews."""
    risk, best = risk_of_entries(loss, p), np.inf
    for chosen in itertools.product([False, True], repeat=p.size):
        open_ = np.reshape(chosen, p.shape)
        if open_.sum() <= total and open_.sum(axis=1).max() <= per_instance and (open_.sum(axis=0) <= per_label).all():
            best = min(best, risk[~open_].sum() + (open_ * review).sum())
    return best


OF_LABELS = [
    {"per_label": 1},
    {"per_label": [0, 1, 2, 3]},
    {"per_label": 1, "count": 2},
    {"per_label": 1, "per_instance": 1},
    {"per_label": 1, "per_instance": 1, "count": 2, "review": 0.05},
    {"review": [0.0, 0.3, 0.05, 0.1]},
    {"review": [0.0, 0.3, 0.05, 0.1], "count": 3},
    {"review": [0.0, 0.3, 0.05, 0.1], "per_instance": 1},
    {"review": [0.0, 0.3, 0.05, 0.1], "per_label": 2, "count": 4},
]
OF_ALL = [{"count": 3}, {"rate": 0.3}, {"per_instance": 1}, {"per_instance": 2, "count": 4}, {"review": 0.07}]


def full_limits(limits, p):
    """The limits of a budget, with a default for each that is not given."""
    total = limits.get("count", int(limits.get("rate", 1.0) * p.size + 1e-9))
    caps = np.broadcast_to(limits.get("per_label", len(p)), M)
    per_instance, review = limits.get("per_instance", M), np.asarray(limits.get("review", 0.0))
    return {"total": total, "per_instance": per_instance, "per_label": caps, "review": review}


@sums
@pytest.mark.parametrize("limits", OF_LABELS + OF_ALL, ids=str)
def test_budgets_of_sums_are_those_of_brute_force(loss, limits):
    for seed in range(3):
        p = random_probabilities(3, M, seed)
        found, asked = budget.solve(p, loss=loss, **limits), full_limits(limits, p)
        open_ = found.prediction.abstained
        assert open_.sum() <= asked["total"]
        assert open_.sum(axis=1).max() <= asked["per_instance"]
        assert (open_.sum(axis=0) <= asked["per_label"]).all()
        assert found.bill.total == pytest.approx(least_bill_of_sets(loss, p, **asked), abs=TOLERANCE)
        expected = metrics.expected_generalized_loss(
            p, found.prediction, loss=loss, penalty=0.0, per_instance=True
        ).sum()
        assert found.bill.total == pytest.approx(expected + (open_ * asked["review"]).sum(), abs=TOLERANCE)
        assert (found.gap, found.price.loss) == (0, loss)


@others
@pytest.mark.parametrize("limits", OF_ALL, ids=str)
def test_budgets_of_other_losses_are_those_of_brute_force(loss, limits):
    p = random_probabilities(6, M, 5)
    asked = full_limits(limits, p)
    del asked["per_label"]
    for source in (p, abstain.risk_profile(p, loss=loss)):
        found = budget.solve(source, loss=loss, **limits)
        assert found.count <= asked["total"]
        assert found.prediction.n_abstained.max() <= asked["per_instance"]
        assert found.bill.total == pytest.approx(least_bill(p, loss, **asked), abs=TOLERANCE + found.gap)


@others
@pytest.mark.parametrize("limits", [{"per_label": 1}, {"count": 3, "review": [0.1, 0.2, 0.1, 0.1]}])
def test_limits_of_labels_are_refused_by_other_losses(loss, limits, tmp_path):
    p = some_probabilities()
    abstain.write_table(abstain.Table(p, NAMES), tmp_path / "p.csv")
    for refused in (
        lambda: budget.solve(p, loss=loss, **limits),
        lambda: budget.solve(da.from_array(p, chunks=(5, M)), loss=loss, **limits),
        lambda: budget_files(tmp_path / "p.csv", loss=loss, **limits),
    ):
        with pytest.raises(InvalidBudget, match="needs a loss that is a sum over labels"):
            refused()


@own
def test_large_tables_are_solved_alike(loss, monkeypatch):
    p = random_probabilities(300, M, 7)
    whole = budget.solve(p, loss=loss, rate=0.2)
    monkeypatch.setattr(_per_instance, "MAX_PROFILED_ENTRIES", 1)
    monkeypatch.setattr(_per_instance, "SAMPLE_ROWS", 20)
    found = budget.solve(p, loss=loss, rate=0.2)
    assert found.bill.total == pytest.approx(whole.bill.total, abs=TOLERANCE + found.gap + whole.gap)


@pytest.mark.parametrize("name", ["surprise", "missed", "two errors"])
def test_histograms_find_the_price_in_two_passes(name):
    loss, batches = OWN[name], np.random.default_rng(4).beta(0.5, 0.8, (3, 60, M))
    best = budget.solve(batches.reshape(-1, M), loss=loss, count=90)
    histogram = SavingsHistogram(loss, M)
    for batch in batches:
        histogram.add(batch)
    decider = TwoPassDecider(histogram, 90)
    answers = [decider.decide(batch) for batch in batches]
    assert decider.count <= 90
    bill = sum(answer.expected_loss.sum() for answer in answers)
    assert best.bill.total - best.gap - TOLERANCE <= bill <= best.bill.total + decider.gap + TOLERANCE
    assert decider.gap < (1e-3 if loss.is_decomposable else M * best.price.cost)
    assert histogram.price(decider.threshold_bin).cost == pytest.approx(best.price.cost, rel=1e-4)


def test_histograms_know_how_small_a_cost_is():
    """What saves little of the greatest cost is all the same; the greatest cost is the loss's own, not 1."""
    tiny = Surprise([0.5, 0.1, 0.03, 0.3], scale=1e-30)
    p = np.random.default_rng(4).beta(0.5, 0.8, (60, M))
    histogram = SavingsHistogram(tiny, M)
    histogram.add(p)
    assert histogram.price(histogram.threshold_bin(50)).cost == pytest.approx(
        budget.solve(p, loss=tiny, count=50).price.cost
    )


# Dask


@sums
@pytest.mark.parametrize("limits", OF_LABELS + OF_ALL, ids=str)
def test_dask_budgets_are_the_local_ones(loss, limits):
    p = random_probabilities(20, M, 2)
    chunks = da.from_array(p, chunks=(7, M))
    if {"per_label", "per_instance"} <= set(limits):
        with pytest.raises(InvalidBudget, match="caps per instance and per label at once"):
            budget.solve(chunks, loss=loss, **limits)
        return
    lazy, local = budget.solve(chunks, loss=loss, **limits), budget.solve(p, loss=loss, **limits)
    assert lazy.price == local.price
    np.testing.assert_array_equal(lazy.prediction.compute().codes, local.prediction.codes)


@own
def test_dask_decides_alike(loss):
    p = some_probabilities()
    chunks = da.from_array(p, chunks=(7, M))
    local = abstain.decide(p, loss, 0.1)
    np.testing.assert_array_equal(abstain.decide(chunks, loss, 0.1).compute().codes, local.codes)
    profile = abstain.risk_profile(chunks, loss=loss)
    np.testing.assert_array_equal(profile.values.compute(), abstain.risk_profile(p, loss=loss).values)
    assert metrics.expected_generalized_loss(
        chunks, abstain.decide(chunks, loss, 0.1), loss=loss, penalty=0.1
    ).compute() == (pytest.approx(local.expected_loss.mean()))


def test_dask_budgets_of_other_losses():
    p = random_probabilities(20, M, 2)
    lazy = budget.solve(da.from_array(p, chunks=(7, M)), loss=TwoErrors(), count=15)
    local = budget.solve(p, loss=TwoErrors(), count=15)
    assert lazy.bill.compute().total == pytest.approx(local.bill.total, abs=lazy.gap + local.gap + TOLERANCE)


# Files


@pytest.fixture
def files(tmp_path):
    p = random_probabilities(40, M, 6)
    abstain.write_table(abstain.Table(p, NAMES, [f"r{i}" for i in range(40)]), tmp_path / "p.parquet")
    return p, tmp_path


@own
def test_files_are_decided_and_scored_alike(loss, files):
    p, folder = files
    decide_files(folder / "p.parquet", folder / "q.parquet", Job(loss, 0.1))
    expected = abstain.decide(p, loss, 0.1)
    answers = abstain.read_table(folder / "q.parquet").values
    np.testing.assert_array_equal(np.nan_to_num(answers, nan=-1), expected.labels)
    y = some_truth(p)
    abstain.write_table(abstain.Table(y, NAMES, [f"r{i}" for i in range(40)]), folder / "y.parquet")
    scores = evaluate_files(folder / "y.parquet", folder / "q.parquet", loss=loss, penalty=0.1)
    assert scores.loss == pytest.approx(metrics.generalized_loss(y, expected, loss=loss, penalty=0.1))


@own
def test_bad_values_are_abstained_and_the_rest_decided(loss, tmp_path):
    p = some_probabilities()
    with_bad = p.copy()
    with_bad[::3, 1] = np.nan
    abstain.write_table(abstain.Table(with_bad, NAMES), tmp_path / "p.npy")
    decide_files(tmp_path / "p.npy", tmp_path / "q.npy", Job(loss, 0.1, on_error="abstain"))
    answers = np.load(tmp_path / "q.npy")
    for i in range(0, len(p), 3):
        codes = exhaustive.partial_predictions(M)
        codes = codes[codes[:, 1] == -1]
        totals = exhaustive.expected_losses(p[[i]], loss, codes)[0] + 0.1 * (codes == -1).sum(axis=1)
        taken = exhaustive.expected_losses(p[[i]], loss, answers[[i]])[0, 0] + 0.1 * (answers[i] == -1).sum()
        assert answers[i, 1] == -1
        assert taken == pytest.approx(totals.min(), abs=1e-11)


@sums
@pytest.mark.parametrize("limits", OF_LABELS + OF_ALL, ids=str)
def test_budgets_of_files_are_those_of_the_table(loss, limits, files):
    p, folder = files
    if "per_label" not in limits and "count" in limits:
        limits = limits | {"count": 20}
    found = budget_files(folder / "p.parquet", loss=loss, **limits, output=folder / "q.parquet")
    best = budget.solve(p, loss=loss, **limits)
    assert found.count == best.count
    assert found.bill.total == pytest.approx(best.bill.total, abs=TOLERANCE + (found.gap or 0.0))
    answers = np.nan_to_num(abstain.read_table(folder / "q.parquet").values, nan=-1)
    assert ((answers == -1).sum(axis=0) <= full_limits(limits, p)["per_label"]).all()
    priced = budget_files(folder / "p.parquet", loss=loss, **limits)
    assert priced.bill.total == pytest.approx(found.bill.total, rel=1e-4)


def test_budgets_of_files_need_the_highest_cost(files):
    p, folder = files
    found = budget_files(folder / "p.parquet", loss=TwoErrors(), count=20)
    best = budget.solve(p, loss=TwoErrors(), count=20)
    assert found.bill.total == pytest.approx(best.bill.total, abs=TOLERANCE + found.gap + best.gap)
    with pytest.raises(InvalidLoss, match=r"WrongShare\(\) does not say from which cost .* define highest_cost"):
        budget_files(folder / "p.parquet", loss=WrongShare(), count=20)


# Curves


@own
def test_curves(loss):
    p = random_probabilities(60, M, 8)
    y = some_truth(p)
    curve = curves.cost_curve(p, y_true=y, loss=loss)
    for cost in (0.011, 0.13, 0.4):
        answers, point = abstain.decide(p, loss, cost), curve.at(cost)
        assert point.abstention == pytest.approx(metrics.abstention_rate(answers))
        assert point.realized_loss == pytest.approx(metrics.generalized_loss(y, answers, loss=loss, penalty=0.0))
        assert point.expected_loss == pytest.approx(
            metrics.expected_generalized_loss(p, answers, loss=loss, penalty=0.0)
        )


@own
def test_curves_of_answers(loss):
    p = random_probabilities(60, M, 8)
    y, complete = some_truth(p), abstain.decide(p, loss, "none")
    accuracy = curves.accuracy_rejection_curve(y, p, loss=loss)
    capture = curves.error_capture_curve(y, p, loss=loss)
    risk = curves.risk_coverage_curve(y, p, loss=loss)
    for cost in (0.011, 0.13, 0.4, 10.0):
        answers = abstain.decide(p, loss, cost)
        k, l, r = (np.searchsorted(curve.costs, cost, side="right") - 1 for curve in (accuracy, capture, risk))
        assert accuracy.accuracy[k] == pytest.approx(1.0 - metrics.answered_error_rate(y, answers))
        assert capture.captured[l] == pytest.approx(metrics.error_capture_rate(y, answers, complete))
        assert risk.risk[r] == pytest.approx(metrics.generalized_loss(y, answers, loss=loss, penalty=0.0))
    if loss.is_decomposable:
        per_answer = curves.risk_coverage_curve(y, p, loss=loss, per="answer").risk[-1]
        assert per_answer == pytest.approx(metrics.generalized_loss(y, complete, loss=loss, penalty=0.0) / M)
    else:
        with pytest.raises(InvalidLoss, match="is not a sum over labels, so there is no risk per answer"):
            curves.risk_coverage_curve(y, p, loss=loss, per="answer")


@own
def test_tables_of_labels(loss):
    p = random_probabilities(60, M, 8)
    y, answers = some_truth(p), abstain.decide(p, loss, 0.1)
    table = curves.label_table(p, y_true=y, loss=loss, penalty=0.1)
    np.testing.assert_allclose(table.abstention_rate, answers.abstained.mean(axis=0))
    wrong = abstain.decide(p, loss, "none").labels != y
    np.testing.assert_array_equal(table.errors, wrong.sum(axis=0))
    np.testing.assert_array_equal(table.errors_caught, (wrong & answers.abstained).sum(axis=0))


@own
def test_displays(loss):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    p = some_probabilities()
    display = abstain.curves.CostCurveDisplay.from_predictions(some_truth(p), p, loss=loss)
    assert "loss" in display.ax_[0].get_ylabel()
    plt.close("all")


# Guarantees


def sample(n=1500):
    p = np.random.default_rng(11).beta(0.4, 0.7, (n, M))
    return p, some_truth(p, 12)


@pytest.mark.parametrize("name", ["surprise", "missed", "two errors"])
@pytest.mark.parametrize("risk", ["answered_error", "overall_error", "any_error"])
def test_guarantees(name, risk):
    loss, (p, y) = OWN[name], sample(600 if name == "two errors" else 1500)
    target = 0.6 if name == "two errors" and risk == "any_error" else 0.2  # it answers one label even if that is free
    rule = control(p, y, risk=risk, target=target, loss=loss)
    assert rule.satisfied
    answers = rule.decide(p)
    wrong = (answers.labels != y) & ~answers.abstained
    bad = {
        "answered_error": wrong.sum() / (~answers.abstained).sum(),
        "overall_error": wrong.mean(),
        "any_error": wrong.any(axis=1).mean(),
    }
    assert rule.estimate == pytest.approx(bad[risk])
    assert 0 < bad[risk] <= target
    assert rule.abstention == pytest.approx(answers.abstained.mean())


def test_guarantees_do_not_depend_on_the_unit_of_the_loss():
    p, y = sample()
    cents, euros = (control(p, y, target=0.1, loss=Surprise([0.5, 0.1, 0.03, 0.3], scale)) for scale in (100.0, 1.0))
    assert cents.cost == pytest.approx(100.0 * euros.cost)
    assert cents.abstention == euros.abstention < 1


@sums
def test_guarantees_for_each_label(loss):
    p, y = sample()
    rule = control(p, y, target=0.2, per="label", loss=loss)
    assert rule.satisfied.any()
    answers = rule.decide(p)
    wrong = (answers.labels != y) & ~answers.abstained
    for j in np.flatnonzero(rule.satisfied):
        assert rule.estimate[j] == pytest.approx(wrong[:, j].sum() / (~answers.abstained[:, j]).sum())
    assert answers.abstained[:, ~rule.satisfied].all()


@sums
def test_guarantees_in_expectation(loss):
    p, y = sample()
    rule = control(p, y, risk="overall_error", target=0.05, confidence="expectation", loss=loss)
    answers = rule.decide(p)
    assert ((answers.labels != y) & ~answers.abstained).mean() <= 0.05


def test_guarantees_that_cannot_be_given_are_refused():
    p, y = sample(50)
    with pytest.raises(InvalidLoss, match="cannot price labels one by one"):
        control(p, y, loss=TwoErrors(), per="label")
    with pytest.raises(InvalidGuarantee, match="labels may be answered differently"):
        control(p, y, loss=TwoErrors(), risk="overall_error", confidence="expectation")
    with pytest.raises(InvalidLoss, match="define highest_cost"):
        control(p, y, loss=WrongShare())


# Properties


@own
@pytest.mark.parametrize("penalty", [0.05, 0.3, 0.6, 2.0, "none", abstain.Concave(0.4), [0.0, 0.3, 0.2, 0.4]])
def test_monotone_as_by_brute_force(loss, penalty):
    m = 3
    loss = Surprise([0.5, 0.1, 0.03]) if isinstance(loss, Surprise) else loss
    verdict = abstain.is_monotone(loss, penalty, n_labels=m)
    assert verdict.holds == slow_is_monotone(loss, penalty, m)
    if not verdict:
        assert_witness(verdict.witness, loss, penalty)


def test_what_is_tried_by_brute_force_has_few_labels():
    assert not abstain.is_monotone(TwoErrors(), 0.1, n_labels=60)
    with pytest.raises(InvalidLoss, match=r"every truth and answer for WrongShare\(\): at most 7 labels, got 8"):
        abstain.is_monotone(WrongShare(), 0.1, n_labels=8)


@own
def test_alignment_is_checked_whatever_the_loss(loss):
    p = some_probabilities()
    answers = abstain.decide(p, loss, 0.1)
    uncertainty = 2.0 * np.minimum(p, 1.0 - p)
    aligned = all(
        row[~open_].max(initial=-1.0) <= row[open_].min(initial=2.0) + 1e-12
        for row, open_ in zip(uncertainty, answers.abstained, strict=True)
    )
    assert abstain.is_uncertainty_aligned(p, answers).holds == aligned


# Learning, reports, keeping


@own
def test_classifiers_and_scorers(loss):
    X, Y = make_multilabel_classification(n_samples=120, n_classes=M, random_state=0)
    model = abstain.AbstainingClassifier(LogisticRegression(max_iter=1000), loss=loss, penalty=0.1).fit(X[:80], Y[:80])
    p, answers = model.predict_proba(X[80:]), model.decide(X[80:])
    np.testing.assert_array_equal(answers.labels, abstain.decide(p, loss, 0.1).labels)
    np.testing.assert_array_equal(model.predict(X[80:]), abstain.decide(p, loss, "none").labels)
    score = -metrics.generalized_loss(Y[80:], answers, loss=loss, penalty=0.1)
    assert model.score(X[80:], Y[80:]) == pytest.approx(score)
    assert abstain.make_abstention_scorer(loss=loss, penalty=0.1)(model, X[80:], Y[80:]) == pytest.approx(score)


@own
def test_reports_take_losses_by_name(loss, tmp_path):
    for given in (loss, "mine"):
        with pytest.raises(InvalidLoss, match="is not the name of a loss; expected names among 'f1', 'hamming'"):
            abstain.report(some_probabilities(), path=tmp_path / "r.html", losses=[given])


@own
def test_losses_prices_and_rules_can_be_kept(loss):
    p = some_probabilities()
    again = pickle.loads(pickle.dumps(loss))
    assert again.is_same_as(loss)
    np.testing.assert_array_equal(abstain.decide(p, again, 0.1).labels, abstain.decide(p, loss, 0.1).labels)
    price = budget.solve(p, loss=loss, count=10).price
    kept = pickle.loads(pickle.dumps(price))
    assert kept == price
    np.testing.assert_array_equal(kept.decide(p).labels, price.decide(p).labels)
    assert budget.solve(abstain.risk_profile(p, loss=loss), loss=again, count=3).count <= 3


# Claims


class Claims(Enumerated):
    """Says that it is a sum, and not of what."""

    is_decomposable = True

    def of(self, truth, codes):
        return np.where(truth, codes == 0, codes == 1).sum(axis=1).astype(float)


def test_a_sum_says_what_errors_cost():
    p = [[0.4, 0.6]]
    for refused in (
        lambda: abstain.decide(p, Claims(), abstain.PerLabel([0.1, 0.2])),
        lambda: budget.solve(p, loss=Claims(), per_label=1),
        lambda: control(p, [[0, 1]], loss=Claims(), per="label"),
        lambda: abstain.is_monotone(Claims(), 0.1, n_labels=2),
        lambda: Job(Claims(), 0.1),
    ):
        with pytest.raises(
            InvalidLoss, match=r"Claims.is_decomposable is True; .* subclass of abstain.DecomposableLoss"
        ):
            refused()


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ((1.0, -2.0), r"Given: false_positive is -2\.0; expected finite numbers ≥ 0"),
        ((1.0, [1.0, np.nan]), "Given: false_positive of label 1 is nan; expected finite numbers ≥ 0"),
        (([1.0, 2.0, 3.0], 1.0), "Given: false_negative has 3 costs for 2 labels"),
        ((np.ones((2, 2)), 1.0), "Given: false_negative must be one number or one per label"),
        (("much", 1.0), "Given: false_negative must be numbers"),
        (3.0, r"Given.error_costs gives 3\.0; expected two costs"),
    ],
)
def test_costs_that_are_none_are_named(costs, message):
    class Given(abstain.DecomposableLoss):
        def error_costs(self, n_labels):
            return costs

    for refused in (
        lambda: abstain.decide([0.4, 0.6], Given()),
        lambda: budget.solve([[0.4, 0.6]], loss=Given(), count=1),
        lambda: abstain.risk_profile([0.4, 0.6], loss=Given()),
    ):
        with pytest.raises(InvalidLoss, match=message):
            refused()
