"""Model selection by what a model is worth when it may abstain."""

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier

import abstain
from abstain.metrics import generalized_loss

X, Y = make_multilabel_classification(n_samples=120, n_classes=3, random_state=0)


@pytest.mark.parametrize("loss", ["hamming", "rank", "f1", "jaccard", "subset", abstain.Hamming(2.0, 0.5)])
@pytest.mark.parametrize("penalty", [0.05, abstain.Concave(0.2), "none"])
def test_a_scorer_is_the_negative_generalised_loss(loss, penalty):
    model = KNeighborsClassifier().fit(X[:80], Y[:80])
    probabilities = np.column_stack([p[:, 1] for p in model.predict_proba(X[80:])])
    prediction = abstain.decide(probabilities, loss, penalty)
    score = abstain.make_abstention_scorer(loss=loss, penalty=penalty)(model, X[80:], Y[80:])
    assert score == -generalized_loss(Y[80:], prediction, loss=loss, penalty=penalty)


def test_searches_use_it():
    scorer = abstain.make_abstention_scorer(loss="f1", penalty=0.02)
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 9]}, scoring=scorer, cv=3).fit(X, Y)
    means = [cross_val_score(KNeighborsClassifier(n), X, Y, scoring=scorer, cv=3).mean() for n in (1, 9)]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means)
    assert search.best_params_ == {"n_neighbors": (1, 9)[int(np.argmax(means))]}


def test_a_single_target_and_a_single_label():
    features, y = make_classification(100, random_state=0)
    model = LogisticRegression().fit(features, y)
    as_classes = abstain.make_abstention_scorer(loss="hamming", penalty=0.2)(model, features, y)
    one_hot = np.column_stack([1 - y, y])
    best = abstain.decide(model.predict_proba(features), "hamming", 0.2)
    assert as_classes == -generalized_loss(one_hot, best, loss="hamming", penalty=0.2)
    as_label = abstain.make_abstention_scorer(loss="hamming", penalty=0.2)(model, features, y[:, np.newaxis])
    assert as_label == pytest.approx(as_classes / 2)


def test_constant_labels_do_not_confuse_it():
    constant = np.column_stack([Y, np.zeros(120, int)])
    model = KNeighborsClassifier().fit(X, constant)
    assert model.predict_proba(X)[3].shape == (120, 1)
    with_it = abstain.make_abstention_scorer()(model, X, constant)
    without = abstain.make_abstention_scorer()(KNeighborsClassifier().fit(X, Y), X, Y)
    assert with_it == pytest.approx(without)


def test_weights_are_routed():
    weights = np.arange(1.0, 121.0)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = abstain.make_abstention_scorer().set_score_request(sample_weight=True)
        base = MultiOutputClassifier(LogisticRegression().set_fit_request(sample_weight=False))
        scores = cross_val_score(base, X, Y, scoring=scorer, cv=2, params={"sample_weight": weights})
    for fold, (train, test) in enumerate([(np.arange(60, 120), np.arange(60)), (np.arange(60), np.arange(60, 120))]):
        model = MultiOutputClassifier(LogisticRegression()).fit(X[train], Y[train])
        direct = abstain.make_abstention_scorer()(model, X[test], Y[test], sample_weight=weights[test])
        assert scores[fold] == pytest.approx(direct)


def test_a_wrong_name_is_said_before_the_search():
    with pytest.raises(abstain.InvalidLoss, match="hammming"):
        abstain.make_abstention_scorer(loss="hammming")
    with pytest.raises(abstain.InvalidPenalty):
        abstain.make_abstention_scorer(loss="hamming", penalty=-1)


def test_strange_classes_are_said():
    model = KNeighborsClassifier().fit(X, Y + 1)
    with pytest.raises(abstain.InvalidProbabilities, match=r"label 0 has the classes \[1, 2\]; expected 0 and 1"):
        abstain.label_probabilities(model, X)
