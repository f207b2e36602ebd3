"""Scores of partial predictions."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import metrics as sklearn_metrics

import abstain
from abstain import metrics
from abstain._core.losses import LOSSES, as_loss
from tests.support import cases

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, (200, 6))
Y[:10] = 0
LABELS = RNG.choice([-1, 0, 1], (200, 6))
LABELS[5:15] = -1


def slow_loss(y, labels, loss):
    """The definitions, label by label, owing nothing to the package."""
    answered = [(int(t), int(a)) for t, a in zip(y, labels, strict=True) if a >= 0]
    hits, extra, missed = (answered.count(role) for role in ((1, 1), (0, 1), (1, 0)))
    if not answered:
        return 0.0
    if isinstance(loss, abstain.Hamming):
        fn, fp = (np.broadcast_to(cost, len(y)) for cost in (loss.false_negative, loss.false_positive))
        return sum((fn if y[j] else fp)[j] for j in range(len(y)) if labels[j] == 1 - y[j])
    if isinstance(loss, abstain.SubsetZeroOne):
        return float(extra + missed > 0)
    if hits + extra + missed == 0:
        return 1 - loss.zero_division
    if isinstance(loss, abstain.Jaccard):
        return 1 - hits / (hits + extra + missed)
    precision = hits / (hits + extra) if hits else 0.0
    recall = hits / (hits + missed) if hits else 0.0
    return 1 - (1 + loss.beta**2) * precision * recall / (loss.beta**2 * precision + recall) if hits else 1.0


@pytest.mark.parametrize("loss_case", [case for case in cases.LOSS_CASES if case[0] != "rank"], ids=str)
def test_definition(loss_case):
    loss = cases.make_loss(loss_case, 6)
    expected = [slow_loss(y, labels, loss) + 0.07 * (labels == -1).sum() for y, labels in zip(Y, LABELS, strict=True)]
    np.testing.assert_allclose(
        metrics.generalized_loss(Y, LABELS, loss=loss, penalty=0.07, per_instance=True), expected
    )
    assert metrics.generalized_loss(Y, LABELS, loss=loss, penalty=0.07) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("beta", [1e-170, 1e160])
def test_extreme_beta(beta):
    loss = abstain.FMeasure(beta)
    assert metrics.generalized_loss([[0, 0], [1, 1]], [[1, 1], [0, 0]], loss=loss, penalty="none") == 1.0


def test_expected_rank_loss_keeps_small_risks():
    p = np.where(np.arange(2000) < 1000, 1 - 1e-12, 1e-12)
    ranking = abstain.decide(p, "rank", "none")
    found = metrics.expected_generalized_loss(p, ranking, loss="rank", penalty="none")
    assert found == pytest.approx(ranking.expected_loss[0], rel=1e-9)
    tiny = [1 - 1e-16, 1e-17, 0.0]  # one label ahead of another: (1 − p) · p', far below the rounding of 1
    assert metrics.expected_generalized_loss(
        tiny, abstain.decide(tiny, "rank", "none"), loss="rank", penalty="none"
    ) == pytest.approx(2.0**-53 * 1e-17, rel=1e-12, abs=0)


def test_costs_of_errors_and_labels():
    loss = abstain.Hamming(np.arange(1.0, 7), np.arange(6.0, 0, -1))
    penalty = abstain.PerLabel(np.linspace(0.1, 0.6, 6)) + abstain.Concave(0.3)
    expected = [
        sum(loss.false_negative[j] if y[j] else loss.false_positive[j] for j in range(6) if a[j] == 1 - y[j])
        + sum(penalty.costs[j] for j in range(6) if a[j] == -1)
        + 0.3 * (a == -1).sum() * 6 / (6 + (a == -1).sum())
        for y, a in zip(Y, LABELS, strict=True)
    ]
    np.testing.assert_allclose(
        metrics.generalized_loss(Y, LABELS, loss=loss, penalty=penalty, per_instance=True), expected
    )


def test_rank_loss_counts_pairs():
    p = cases.random_probabilities(200, 6)
    ranking = abstain.decide(p, "rank", 0.1)
    expected = []
    for y, positions in zip(Y, ranking.positions, strict=True):
        ranked = [j for j in range(6) if positions[j] >= 0]
        wrong = sum(y[i] == 0 and y[j] == 1 and positions[i] < positions[j] for i, j in product(ranked, ranked))
        expected.append(wrong + 0.1 * (6 - len(ranked)))
    np.testing.assert_allclose(
        metrics.generalized_loss(Y, ranking, loss="rank", penalty=0.1, per_instance=True), expected
    )


@pytest.mark.parametrize("zero_division", [0, 1])
def test_full_predictions_are_scored_as_scikit_learn_does(zero_division):
    full = np.where(LABELS == -1, 0, LABELS)
    full[:20] = 0
    for loss, theirs in [
        (abstain.FMeasure(zero_division=zero_division), sklearn_metrics.f1_score),
        (abstain.Jaccard(zero_division=zero_division), sklearn_metrics.jaccard_score),
    ]:
        score = theirs(Y, full, average="samples", zero_division=zero_division)
        assert metrics.generalized_loss(Y, full, loss=loss, penalty="none") == pytest.approx(1 - score)
    score = sklearn_metrics.fbeta_score(Y, full, beta=1.7, average="samples", zero_division=zero_division)
    loss = abstain.FMeasure(beta=1.7, zero_division=zero_division)
    assert metrics.generalized_loss(Y, full, loss=loss, penalty="none") == pytest.approx(1 - score)
    hamming = 6 * sklearn_metrics.hamming_loss(Y, full)
    assert metrics.generalized_loss(Y, full, loss="hamming", penalty="none") == pytest.approx(hamming)


@pytest.mark.parametrize("loss_case", cases.LOSS_CASES, ids=str)
def test_expected_loss_of_any_prediction_is_the_mean_over_truths(loss_case):
    m = 4
    loss = cases.make_loss(loss_case, m)
    p = cases.random_probabilities(40, m)
    rng = np.random.default_rng(1)
    codes = abstain.exhaustive.partial_rankings(m) if loss.gives_rankings else abstain.exhaustive.partial_predictions(m)
    chosen = codes[rng.integers(0, len(codes), 40)]
    total = np.zeros(40)
    for y in product((0, 1), repeat=m):
        chance = np.where(y, p, 1 - p).prod(axis=1)
        total += chance * metrics.generalized_loss(
            np.tile(y, (40, 1)), chosen, loss=loss, penalty=0.1, per_instance=True
        )
    found = metrics.expected_generalized_loss(p, chosen, loss=loss, penalty=0.1, per_instance=True)
    np.testing.assert_allclose(found, total, rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_single_precision_is_scored_in_double(loss):
    single = cases.random_probabilities(100, 6).astype(np.float32)
    prediction = abstain.decide(single, loss, 0.1)
    found = metrics.expected_generalized_loss(single, prediction, loss=loss, penalty=0.1, per_instance=True)
    np.testing.assert_allclose(found, prediction.expected_loss, rtol=0, atol=1e-12)


def test_rates():
    wrong = (LABELS >= 0) & (LABELS != Y)
    assert metrics.abstention_rate(LABELS) == np.mean(LABELS == -1)
    assert metrics.answered_error_rate(Y, LABELS) == pytest.approx(wrong.sum() / (LABELS >= 0).sum())
    full = RNG.integers(0, 2, Y.shape)
    errors = full != Y
    assert metrics.error_capture_rate(Y, LABELS, full) == pytest.approx((errors & (LABELS == -1)).sum() / errors.sum())


def test_silence_is_not_error():
    no_answers = np.full_like(Y, -1)
    for name in sorted(set(LOSSES) - {"rank"}):
        assert metrics.generalized_loss(Y, no_answers, loss=name, penalty=0.0) == 0
    assert metrics.abstention_rate(no_answers) == 1
    assert np.isnan(metrics.answered_error_rate(Y, no_answers))
    assert metrics.error_capture_rate(Y, no_answers, 1 - Y) == 1
    assert np.isnan(metrics.error_capture_rate(Y, no_answers, Y))
    assert metrics.generalized_loss(Y, no_answers, loss="hamming", penalty="none") == np.inf


def test_no_instances():
    empty = np.zeros((0, 3))
    assert np.isnan(metrics.generalized_loss(empty, empty, loss="f1", penalty=0.1))
    assert np.isnan(metrics.abstention_rate(empty))
    assert np.isnan(metrics.answered_error_rate(empty, empty))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y[:, :3], r"shape \(200, 3\); the prediction has \(200, 6\)"),
        (np.where(Y == 1, 2, 0), "is 2; the truth is 0 or 1"),
        (np.where(Y == 1, np.nan, 0), "is nan; the truth is 0 or 1; pass missing_values=np.nan if that stands for"),
        (LABELS, "is -1; the truth is 0 or 1; pass missing_values=-1 if that stands for an unknown label"),
    ],
)
def test_bad_truth(y, message):
    with pytest.raises(abstain.InvalidLabels, match=message):
        metrics.generalized_loss(y, LABELS, loss="hamming", penalty=0.1)


UNKNOWN = np.random.default_rng(1).random(Y.shape) < 0.3
UNKNOWN[20:25] = True
PARTIAL = np.where(UNKNOWN, np.nan, Y)
FULL = np.where(LABELS == -1, 1 - Y, LABELS)


def kinds_of(y, labels):
    """The same truth and answers in all kinds of tables, with what stands for an unknown label."""
    yield y, labels, np.nan
    yield np.where(np.isnan(y), -1, y), labels, -1
    yield pd.DataFrame(y).astype("Int8"), abstain.PartialPrediction(labels), np.nan
    yield sparse.csr_array(y), labels, np.nan
    yield sparse.csr_array(y), sparse.csr_array(labels), np.nan
    yield y, sparse.csr_array(labels), np.nan


@pytest.mark.parametrize(
    ("loss", "penalty", "cost"),
    [
        ("hamming", 0.07, [0.07] * 6),
        (abstain.Hamming(np.arange(1.0, 7), np.arange(6.0, 0, -1)), abstain.PerLabel(np.arange(6.0)), np.arange(6.0)),
        ("hamming", lambda a: 0.25 * a, [0.25] * 6),
        ("hamming", 0, [0] * 6),
    ],
)
def test_unknown_labels_cost_nothing(loss, penalty, cost):
    loss = as_loss(loss)
    fn, fp = (np.broadcast_to(each, 6) for each in (loss.false_negative, loss.false_positive))
    by_entry = np.where(LABELS == -1, cost, np.where(Y == 1, fn * (LABELS == 0), fp * (LABELS == 1)))
    expected = np.where(UNKNOWN, 0, by_entry).sum(axis=1)
    for y, labels, missing in kinds_of(PARTIAL, LABELS):
        options = {"loss": loss, "penalty": penalty, "missing_values": missing}
        np.testing.assert_allclose(metrics.generalized_loss(y, labels, **options, per_instance=True), expected)
        assert metrics.generalized_loss(y, labels, **options) == pytest.approx(expected.mean())
    assert metrics.generalized_loss(PARTIAL, FULL, loss=loss, penalty="none", missing_values=np.nan) < np.inf


def test_rates_of_known_labels():
    known = ~UNKNOWN
    answered = known & (LABELS >= 0)
    wrong, errors = answered & (LABELS != Y), known & (FULL != Y)
    for y, labels, missing in kinds_of(PARTIAL, LABELS):
        rate = metrics.answered_error_rate(y, labels, missing_values=missing)
        assert rate == pytest.approx(wrong.sum() / answered.sum())
        for full in (FULL, sparse.csr_array(FULL)):
            caught = metrics.error_capture_rate(y, labels, full, missing_values=missing)
            assert caught == pytest.approx((errors & (LABELS == -1)).sum() / errors.sum())
    nothing = np.full_like(PARTIAL, np.nan)
    assert np.isnan(metrics.answered_error_rate(nothing, LABELS, missing_values=np.nan))
    assert np.isnan(metrics.error_capture_rate(nothing, LABELS, FULL, missing_values=np.nan))


@pytest.mark.parametrize("loss", ["f1", "jaccard", "subset", "rank"])
def test_losses_of_whole_rows_need_all_labels(loss):
    p = pd.DataFrame(cases.random_probabilities(3, 2), columns=["sea", "sky"])
    prediction = abstain.decide(p, loss, 0.1)
    y = pd.DataFrame([[0, 1], [1, None], [0, 0]], columns=["sea", "sky"])
    reason = "the .* loss of a row needs all its labels: leave out such rows, or score by Hamming"
    tables = [(y, np.nan, "unknown"), (y.fillna(-1), -1, "unknown"), (y, None, "nan; the truth is 0 or 1")]
    for table, missing, what in tables:
        with pytest.raises(abstain.InvalidLabels, match=f"row 1 .*, column 1 .label 'sky'. is {what}; {reason}"):
            metrics.generalized_loss(table, prediction, loss=loss, penalty=0.1, missing_values=missing)
    complete = y.fillna(1)
    assert metrics.generalized_loss(
        complete, prediction, loss=loss, penalty=0.1, missing_values=np.nan
    ) == metrics.generalized_loss(complete, prediction, loss=loss, penalty=0.1)


@pytest.mark.parametrize("penalty", [abstain.Concave(0.1), abstain.Capped(0.1, 2), [0, 1, 1, 1, 1, 1, 1]])
def test_penalties_of_whole_rows_need_all_labels(penalty):
    with pytest.raises(abstain.InvalidPenalty, match=r"is unknown; .* depends on all abstentions of a row"):
        metrics.generalized_loss(PARTIAL, LABELS, loss="hamming", penalty=penalty, missing_values=np.nan)


def test_labels_in_another_order_are_noticed():
    p = pd.DataFrame(cases.random_probabilities(200, 6), columns=list("abcdef"))
    prediction = abstain.decide(p)
    with pytest.raises(abstain.InvalidLabels, match="the same labels in another order: column 0 is 'b'"):
        metrics.generalized_loss(pd.DataFrame(Y, columns=list("bacdef")), prediction, loss="hamming", penalty=0.1)
    with pytest.raises(abstain.InvalidLabels, match="other labels: column 5 is 'x'"):
        metrics.answered_error_rate(pd.DataFrame(Y, columns=list("abcdex")), prediction)


def test_rankings_and_labels_are_not_confused():
    p = cases.random_probabilities(200, 6)
    with pytest.raises(abstain.InvalidLoss, match="scores a PartialRanking"):
        metrics.generalized_loss(Y, abstain.decide(p), loss="rank", penalty=0.1)
    with pytest.raises(abstain.InvalidLoss, match="not a ranking"):
        metrics.generalized_loss(Y, abstain.decide(p, "rank"), loss="f1", penalty=0.1)
    with pytest.raises(abstain.InvalidLabels, match="a ranking answers no label"):
        metrics.answered_error_rate(Y, abstain.decide(p, "rank"))
    with pytest.raises(abstain.InvalidLabels, match="row 0 abstains"):
        metrics.error_capture_rate(Y, LABELS, np.full_like(Y, -1))
