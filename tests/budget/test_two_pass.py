"""Budgets in two passes of little memory, against the allocation that sees everything."""

import numpy as np
import pytest
from scipy import sparse
from tests.support.cases import random_probabilities

import abstain
from abstain.budget._histogram import SavingsHistogram
from abstain.budget._two_pass import TwoPassDecider
from abstain.metrics import expected_generalized_loss

LOSSES = {
    "hamming": abstain.Hamming(),
    "costs": abstain.Hamming(np.linspace(0.5, 12.0, 8), np.linspace(1.5, 0.2, 8)),
    "f1": abstain.FMeasure(),
    "jaccard": abstain.Jaccard(),
    "subset": abstain.SubsetZeroOne(),
    "rank": abstain.Rank(),
}


def in_batches(p, height=17):
    return [p[first : first + height] for first in range(0, p.shape[0], height)]


def two_passes(batches, loss, total, **limits):
    histogram = SavingsHistogram(loss, batches[0].shape[1], **limits)
    for batch in batches:
        histogram.add(batch)
    decider = TwoPassDecider(histogram, total)
    return histogram, decider, [decider.decide(batch) for batch in batches]


def total_of(predictions):
    return sum(float(prediction.expected_loss.sum()) for prediction in predictions)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("per_instance", [None, 0, 2])
@pytest.mark.parametrize("total", [0, 7, 150, 10_000])
def test_as_good_as_the_allocation_that_sees_everything(name, per_instance, total):
    loss, p = LOSSES[name], random_probabilities(90, 8, seed=2)
    review = 0.03 if name == "hamming" else 0.01
    best = abstain.budget.solve(p, loss=loss, count=total, per_instance=per_instance, review=review)
    _, decider, predictions = two_passes(in_batches(p), loss, total, per_instance=per_instance, review=review)
    assert decider.count <= total
    found, optimum = total_of(predictions), best.bill.total
    assert optimum - best.gap - 1e-9 <= found <= optimum + decider.gap + 1e-9
    if loss.is_decomposable:
        assert decider.count == best.count
        assert decider.gap <= max(total, 1) * 1e-5 * decider.threshold_bin.cost
    codes = np.concatenate([prediction.codes for prediction in predictions])
    kind = type(predictions[0])
    assert found == pytest.approx(90 * expected_generalized_loss(p, kind(codes), loss=loss, penalty=review), abs=1e-9)
    if per_instance is not None:
        assert max(prediction.n_abstained.max() for prediction in predictions) <= per_instance


@pytest.mark.parametrize("name", ["hamming", "f1", "rank"])
def test_a_large_budget_differs_by_little(name):
    p = np.random.default_rng(0).beta(0.4, 0.9, (3000, 8))
    best = abstain.budget.solve(p, loss=LOSSES[name], rate=0.2)
    histogram, decider, predictions = two_passes(in_batches(p, 256), LOSSES[name], 4800)
    assert decider.count == pytest.approx(best.count, abs=0 if name == "hamming" else 2)
    assert total_of(predictions) <= best.bill.total + decider.gap + 1e-9
    assert decider.gap <= (1e-4 if name == "hamming" else 8) * best.price.cost  # a bundle may be split
    assert histogram.price(decider.threshold_bin).cost == pytest.approx(best.price.cost, rel=1e-4)
    assert histogram.loss_without_reviews - decider.threshold_bin.saved == pytest.approx(best.bill.total, rel=1e-4)


def test_ties_are_no_gap():
    p = np.random.default_rng(1).choice([0.1, 0.3, 0.5], (200, 6))
    best = abstain.budget.solve(p, count=500)
    histogram, decider, predictions = two_passes(in_batches(p), abstain.Hamming(), 500)
    assert decider.count == 500
    assert decider.gap == 0.0
    assert decider.threshold_bin.n_within > 200
    assert total_of(predictions) == pytest.approx(best.bill.total, abs=1e-10)
    assert histogram.price(decider.threshold_bin).cost == pytest.approx(best.price.cost, rel=1e-5)


def test_a_review_cost_for_each_label():
    p, review = random_probabilities(90, 8, seed=2), np.linspace(0.0, 0.3, 8)
    best = abstain.budget.solve(p, count=80, review=review)
    histogram, decider, predictions = two_passes(in_batches(p), abstain.Hamming(), 80, review=review)
    assert decider.count == best.count == 80
    assert total_of(predictions) <= best.bill.total + decider.gap + 1e-12
    price = histogram.price(decider.threshold_bin)
    np.testing.assert_array_equal(price.label_costs, best.price.label_costs)
    assert price.cost == pytest.approx(best.price.cost, rel=1e-5)
    with pytest.raises(abstain.InvalidBudget, match="a sum over labels"):
        SavingsHistogram(abstain.FMeasure(), 8, review=review)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("per_instance", [None, 2])
def test_sparse_as_dense(name, per_instance):
    loss, random = LOSSES[name], np.random.default_rng(3)
    p = np.where(random.random((200, 8)) < 0.5, random.beta(0.5, 1.0, (200, 8)), 0.0)
    _, dense, predictions = two_passes(in_batches(p), loss, 90, per_instance=per_instance)
    _, thin, of_sparse = two_passes(
        [sparse.csr_array(batch) for batch in in_batches(p)], loss, 90, per_instance=per_instance
    )
    assert thin.count == dense.count == 90
    assert total_of(of_sparse) == pytest.approx(total_of(predictions), abs=1e-9 + thin.gap + dense.gap)


@pytest.mark.parametrize("name", ["costs", "f1"])
def test_counts_of_parts_add_up(name):
    batches = in_batches(random_probabilities(90, 8, seed=6))
    whole, parts = SavingsHistogram(LOSSES[name], 8), []
    for batch in batches:
        whole.add(batch)
        part = SavingsHistogram(LOSSES[name], 8)
        part.add(batch)
        parts.append(part.counts())
    merged = SavingsHistogram(LOSSES[name], 8)
    for counts in parts[::-1]:
        merged.include(counts)
    assert (merged.n_rows, merged.loss_without_reviews) == (90, pytest.approx(whole.loss_without_reviews, rel=1e-13))
    for total in (0, 5, 77, 150, 10_000):
        np.testing.assert_allclose(merged.threshold_bin(total), whole.threshold_bin(total), rtol=1e-13)
    with pytest.raises(abstain.InvalidBudget, match="the table has 7 labels; the histogram is for 8"):
        merged.add(batches[0][:, :7])


def test_bins_are_narrow_and_hold_what_they_should():
    p = np.random.default_rng(5).random((50, 8)) * 10.0 ** np.random.default_rng(6).uniform(-25, 0, (50, 8))
    histogram = SavingsHistogram(abstain.Hamming(), 8)
    histogram.add(p)
    values = np.sort(np.minimum(p, 1 - p).ravel())[::-1]
    for total in (0, 3, 100, 200, 399):
        found = histogram.threshold_bin(total)
        assert found.n_above == np.count_nonzero(values > found.high)
        assert found.n_within == np.count_nonzero((values > found.low) & (values <= found.high)) > 0
        assert found.high - found.low <= max(1e-5 * found.high, 1e-19)
        assert found.low < values[total] <= found.high
    assert histogram.threshold_bin(400)[:4] == (0.0, 0.0, 400, 0)
    assert SavingsHistogram(abstain.Hamming(), 8).threshold_bin(3).n_above == 0


def test_a_loss_that_understates_its_highest_cost_is_refused():
    class Modest(abstain.Hamming):
        def highest_cost(self, n_labels):
            return 0.01

    with pytest.raises(abstain.InvalidLoss, match=r"a review saves 0\.4, but .* from a cost of 0\.01 on"):
        SavingsHistogram(Modest(), 2).add([[0.4, 0.001]])
