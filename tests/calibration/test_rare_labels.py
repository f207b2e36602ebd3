"""Calibration of rare labels does no harm: simulated, where the truth is known, and on published data."""

import numpy as np
import pytest
from scipy.special import expit
from tests.support.data import DATA, load, needs_data
from tests.support.simulated_scores import CASES, MEASURES, expected_losses, simulate

from abstain._core.targets import read_target
from abstain.calibration import _logistic as logistic, fit
from abstain.calibration._groups import Groups
from abstain.calibration._methods import METHODS
from abstain.calibration._pooled import PooledFit
from abstain.datasets import load_mulan
from abstain.learners import make
from abstain.learners._fitting import cross_fit, fit_labels
from abstain.learners._folds import folds_for

N_ROWS, N_LABELS, N_SAMPLES = 1500, 40, 3
RELEVANT = (0, 1, 2, 3, 9, 41)  # numbers of relevant rows where groups of labels begin
# A slope and an offset, estimated from n rows, cost 2 / (2 n) of expected log loss; curves have more parameters.
LOG_LOSS_MARGIN = {"sigmoid": 1 / N_ROWS, "beta": 1 / N_ROWS, "isotonic": 1.5 / N_ROWS, "venn-abers": 1.5 / N_ROWS}
HAMMING_MARGIN = 2.5e-4
# Votes of 10 that are 0 were answered; calibrated, those of frequent labels are about as unsure as this cost.
KNOWN_HARM = {("votes of 10", "Hamming, c = 0.05"): 2.5e-3}


def harms(case, methods):
    """Mean harm (expected loss after − before) by method: measures × groups of labels by number of relevant rows."""
    n_relevant, found = [], {method: [] for method in methods}
    for seed in range(N_SAMPLES):
        sample = simulate(case, n_labels=N_LABELS, seed=seed, n_rows=N_ROWS)
        labels = np.tile(np.arange(N_LABELS), N_ROWS)
        truth, weight = sample.y_true.ravel().astype(float), np.ones(sample.y_true.size)
        scores = np.clip(sample.scores.ravel(), -16, 16)
        groups = Groups.of(scores, labels, truth, weight, N_LABELS).with_certain_scores_moved()
        before = expected_losses(expit(sample.new_scores), sample.new_probabilities)
        n_relevant.append(sample.y_true.sum(axis=0))
        for method in methods:
            p = METHODS[method].fit(groups).probabilities(sample.new_scores, np.arange(N_LABELS))
            found[method].append(expected_losses(p, sample.new_probabilities) - before)
    group = np.digitize(np.concatenate(n_relevant), RELEVANT) - 1
    return {
        method: np.array([np.hstack(each)[:, group == k].mean(axis=1) for k in range(len(RELEVANT))]).T
        for method, each in found.items()
    }


@pytest.mark.parametrize("case", CASES)
def test_no_harm_to_labels_however_rare(case):
    for method, harm in harms(case, LOG_LOSS_MARGIN).items():
        for measure, by_rarity in zip(MEASURES, harm, strict=True):
            margin = LOG_LOSS_MARGIN[method] if measure == "log loss" else HAMMING_MARGIN
            assert by_rarity.max() < KNOWN_HARM.get((case, measure), margin), (method, measure, by_rarity)


@pytest.mark.parametrize("case", ["overconfident", "underconfident", "class weights balanced", "answers 0 and 1"])
def test_much_is_gained_where_scores_are_wrong(case):
    sample = simulate(case, n_labels=N_LABELS, seed=0)
    before = expected_losses(expit(sample.new_scores), sample.new_probabilities)[0]
    calibration = fit(sample.scores, sample.y_true, "sigmoid", kind="logit")
    after = expected_losses(calibration.transform(sample.new_scores), sample.new_probabilities)[0]
    assert after.mean() < 0.1 * before.mean()


def test_the_margins_find_the_harm_of_sigmoids_without_pooling(monkeypatch):
    """Each label's sigmoid by maximum likelihood, with any slope: what was fitted formerly."""

    def unpooled(rows, *, identity, start=None):
        coefficients = np.empty((len(rows.indptr) - 1, 2))
        for j in range(len(coefficients)):
            part = slice(rows.indptr[j], rows.indptr[j + 1])
            features = np.column_stack([rows.features[part], np.ones(part.stop - part.start)])
            theta = np.append(identity, 0.0)
            for _ in range(50):
                p = expit(features @ theta)
                hessian = (features.T * (rows.weight[part] * p * (1 - p))) @ features + 1e-6 * np.eye(2)
                step = np.linalg.solve(hessian, features.T @ (rows.relevant[part] - rows.weight[part] * p))
                theta += np.clip(step, -1, 1)
            coefficients[j] = theta
        return PooledFit(coefficients, np.append(identity, 0.0), np.eye(2))

    pooled = harms("calibrated", ["sigmoid"])["sigmoid"][0]
    monkeypatch.setattr(logistic, "fit_pooled", unpooled)
    harm = harms("calibrated", ["sigmoid"])["sigmoid"][0]
    assert (pooled < LOG_LOSS_MARGIN["sigmoid"]).all()
    assert harm[1] > LOG_LOSS_MARGIN["sigmoid"]  # labels with a single relevant row


@pytest.mark.parametrize("method", LOG_LOSS_MARGIN)
def test_a_single_relevant_row_is_no_certainty(method):
    """Cross-fitted log-odds of −7.17 … −7, of which one row is relevant, once became the probability 1."""
    random = np.random.default_rng(0)
    scores = random.uniform(-7.17, -7.0, (1600, 1))
    truth = np.zeros((1600, 1), int)
    truth[random.integers(1600)] = 1
    p = fit(scores, truth, method, kind="logit").transform(random.uniform(-7.39, -6.9, (100, 1)))
    assert (p < 0.01).all()
    truth[:] = 0
    truth[scores.argmax()] = 1
    p = fit(scores, truth, method, kind="logit").transform(random.uniform(-7.39, -6.9, (100, 1)))
    assert p.mean() < 0.02


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["enron", "langlog", "birds"])
def test_no_harm_on_published_data(name):
    if name == "langlog":
        bunch = load_mulan(DATA / name / "llog.arff.gz", xml=DATA / name / "langlog.xml.gz")
        X, Y = bunch.data, bunch.target
    else:
        X, Y = load(name)
    order = np.random.default_rng(0).permutation(len(Y))
    train, test = order[: 2 * len(Y) // 3], order[2 * len(Y) // 3 :]
    some = (Y[train].sum(axis=0) > 0) & (Y[train].sum(axis=0) < len(train))
    target = read_target(Y[train][:, some])
    learner = make("br-lr")
    folds, options = folds_for(5, target), {"n_jobs": None, "params": {}, "split_params": {}, "verbose": 0}
    _, inner, _ = cross_fit(learner, X[train], target, folds, **options)
    model = fit_labels(learner, X[train], target, {})
    before, truth = np.clip(model.scores(X[test]), expit(-16.0), expit(16.0)), Y[test][:, some]
    group = np.digitize(Y[train][:, some].sum(axis=0), (1, 2, 3, 6, 21, 101)) - 1
    for method in LOG_LOSS_MARGIN:
        after = fit(inner, Y[train][:, some], method).transform(before)
        loss = [-np.where(truth, np.log(p), np.log1p(-p)) for p in (before, after)]
        difference = loss[1] - loss[0]
        for k in range(6):
            by_row = difference[:, group == k].mean(axis=1) if (group == k).any() else np.zeros(2)
            assert by_row.mean() < 2.5 * by_row.std() / np.sqrt(len(by_row)) + 1e-12, (method, k)
        assert difference.mean() < -0.05 * loss[0].mean()
