"""The experiments' numbers against slow and obvious ways to get them, and a run on published data."""

import dataclasses
import itertools
import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold
from tests.support.data import DATA, needs_data

import abstain
from abstain import Concave, Linear, learners
from abstain.experiment import Plan, Problem, Results, _claims, _models, _protocol, load, run
from abstain.experiment._baselines import Baselines, ThresholdTuning
from abstain.experiment._evaluation import LossEvaluation, OutOfFold, coverage_rows, result_rows
from abstain.learners._recommended import extra_trees
from abstain.metrics import generalized_loss


def random_problem(seed=0, n=60, m=5):
    random = np.random.default_rng(seed)
    features = random.normal(size=(n, 4))
    labels = (features @ random.normal(size=(4, m)) + random.normal(size=(n, m)) > 0.3).astype(np.uint8)
    return Problem(f"random-{seed}", features, labels, tuple("abcdefgh"[:m]), "drawn at random")


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(1)
    probabilities = random.beta(0.6, 1.0, size=(50, 6))
    labels = (random.random((50, 6)) < probabilities).astype(np.uint8)
    folds = [test for _, test in KFold(4, shuffle=True, random_state=0).split(labels)]
    return OutOfFold(probabilities, labels, folds, random_state=0)


@pytest.mark.parametrize(
    ("loss", "penalty", "first", "last"),
    [
        ("hamming", "SEP", 0.05, 0.5),
        ("hamming", "PAR", 0.1, 1),
        ("rank", "SEP", 0.1, 1),
        ("rank", "PAR", 0.2, 2),
        ("f1", "SEP", 0.1 / 7, 1 / 7),
        ("f1", "PAR", 0.2 / 7, 2 / 7),
        ("jaccard", "SEP", 0.1 / 7, 1 / 7),
        ("jaccard", "PAR", 0.2 / 7, 2 / 7),
        ("subset", "SEP", 0.25 / 7, 2.5 / 7),
        ("subset", "PAR", 0.5 / 7, 5 / 7),
    ],
)
def test_the_costs_are_those_of_the_papers(loss, penalty, first, last):
    costs = _protocol.SCALES[loss].costs(penalty, 7)
    assert costs == pytest.approx(np.linspace(first, last, 10))
    assert costs[-1] == last


def test_every_loss_of_the_papers_is_in_the_catalogue():
    from abstain._core.losses import LOSSES

    assert set(_protocol.LOSSES) <= set(LOSSES)


@pytest.mark.parametrize("loss", _protocol.LOSSES)
def test_outcomes_are_what_deciding_each_fold_gives(data, loss):
    """No profile, no stacking of folds, no related work shared between them."""
    units = {"hamming": 100 / 6, "rank": 1 / 6}
    rows = list(result_rows(LossEvaluation(data, loss)))
    assert len(rows) == 2 * 10 * 4
    for row in rows[::7]:
        penalty = {"SEP": Linear, "PAR": Concave}[row["penalty"]](row["cost"])
        fold = data.folds[row["fold"] - 1]
        p, y = data.probabilities[fold], data.labels[fold]
        best, full = abstain.decide(p, loss, penalty), abstain.decide(p, loss, "none")
        unit = units.get(loss, 1.0)
        assert row["generalized_loss"] == pytest.approx(unit * generalized_loss(y, best, loss=loss, penalty=penalty))
        assert row["abstention"] == pytest.approx(100 * best.n_abstained.mean() / 6)
        assert row["mlc"] == pytest.approx(unit * generalized_loss(y, full, loss=loss, penalty=0.0))
        whole = {"SEP": 6 * row["cost"], "PAR": 3 * row["cost"]}[row["penalty"]]
        assert row["abs"] == pytest.approx(unit * whole)
        assert (row["n_instances"], row["n_labels"]) == (len(fold), 6)


@pytest.mark.parametrize("loss", _protocol.LOSSES)
def test_others_leave_as_much_open(data, loss):
    """With a penalty of 1 for a label and no loss of the answers, all cost the same."""
    evaluation = LossEvaluation(data, loss)
    n_abstained = np.random.default_rng(0).integers(0, 7, 50)
    free, priced = (
        evaluation.baseline_losses(n_abstained, Linear(0.0)),
        evaluation.baseline_losses(n_abstained, Linear(1.0)),
    )
    wanted = evaluation.unit * data.means(n_abstained.astype(float))
    for rule in ("two_thresholds", "whole_instances", "at_random"):
        np.testing.assert_allclose(priced[rule] - free[rule], wanted)


def test_a_ranking_of_what_remains(data):
    evaluation = LossEvaluation(data, "rank")
    abstained = np.random.default_rng(0).random(data.labels.shape) < 0.4
    positions = evaluation._without(abstained, evaluation.complete.codes)
    for p, closed, row in zip(data.probabilities, ~abstained, positions, strict=True):
        kept = np.flatnonzero(closed)
        assert kept[np.argsort(row[kept])].tolist() == sorted(kept, key=lambda j: -p[j])
        assert (row[~closed] == -1).all()
        assert sorted(row[kept]) == list(range(len(kept)))


@pytest.mark.parametrize("effort", [0.0, 0.1, 0.37, 1.0])
def test_thresholds_have_the_greatest_f(data, effort):
    """Of all windows of the sorted probabilities that use the effort."""
    p, y = data.probabilities.ravel(), data.labels.ravel()
    width = round(effort * len(p))
    order = np.argsort(p)

    def f(start):
        answered = np.concatenate([order[:start], order[start + width :]])
        predicted = np.arange(len(p) - width) >= start
        return f1_score(y[answered], predicted, zero_division=0.0) if len(answered) else 0.0

    best = max(range(len(p) - width + 1), key=f)
    tuning = ThresholdTuning.from_labelled(data.probabilities, data.labels)
    assert tuning.lower_threshold(effort) == p[order[best]]
    abstained, is_positive = Baselines(data.probabilities, tuning, data.probabilities).two_thresholds(width)
    assert abstained.sum() == width
    assert set(np.flatnonzero(abstained)) == set(order[best : best + width])
    assert set(np.flatnonzero(is_positive)) == set(order[best + width :])


def test_few_thresholds_are_nearly_as_good(data, monkeypatch):
    monkeypatch.setattr("abstain.experiment._baselines.MAX_THRESHOLDS", 100)
    tuning = ThresholdTuning.from_labelled(data.probabilities, data.labels)
    assert len(tuning.thresholds) == 101
    few = tuning.lower_threshold(0.2)
    monkeypatch.undo()
    assert abs(few - ThresholdTuning.from_labelled(data.probabilities, data.labels).lower_threshold(0.2)) < 0.05


def baselines(probabilities, draws=None):
    """Those that have seen only irrelevant labels below 0.9, and only relevant ones from there on."""
    seen = np.array([[0.8] * 7 + [0.85, 0.9, 0.95]])
    tuning = ThresholdTuning.from_labelled(seen, (seen >= 0.9).astype(np.uint8))
    return Baselines(probabilities, tuning, np.zeros_like(probabilities) if draws is None else draws)


def test_a_threshold_gives_way_to_the_effort():
    p = np.linspace(0.01, 0.3, 10)[np.newaxis]  # all of them below any threshold that was tuned
    abstained, is_positive = baselines(p).two_thresholds(0)
    assert not abstained.any()
    assert not is_positive.any()
    assert baselines(p).two_thresholds(1)[0].tolist() == [[False] * 9 + [True]]
    assert baselines(p).two_thresholds(10)[0].all()


def test_whole_instances_go_by_entropy():
    p = np.array([[0.01, 0.99], [0.5, 0.5], [0.3, 0.9]])
    assert baselines(p).whole_instances(3).tolist() == [0.0, 1.0, 0.5]
    assert baselines(p).whole_instances(6).tolist() == [1.0] * 3
    assert baselines(p).whole_instances(0).tolist() == [0.0] * 3


def test_chance_is_nested():
    draws = np.random.default_rng(0).random((5, 4))
    masks = [baselines(draws, draws).at_random(count) for count in range(21)]
    assert [mask.sum() for mask in masks] == list(range(21))
    assert all((later | earlier == later).all() for earlier, later in itertools.pairwise(masks))


@pytest.mark.parametrize("loss", _protocol.LOSSES)
def test_coverage_ends_with_the_complete_prediction(data, loss):
    evaluation = LossEvaluation(data, loss)
    rows = list(coverage_rows(evaluation))
    last = [row for row in rows if row["step"] == rows[-1]["step"]]
    assert [row["coverage"] for row in last] == [1.0] * 4
    assert [row["risk"] for row in last] == pytest.approx(evaluation.unit * data.means(evaluation.complete_losses))
    by_fold = [[row["coverage"] for row in rows if row["fold"] == k + 1] for k in range(4)]
    assert all(np.all(np.diff(coverage) >= 0) for coverage in by_fold)
    mean = np.mean(by_fold, axis=0)
    assert mean[0] < 0.1
    assert np.diff(mean).max() < 0.2, "the curve has no wide gaps"


def test_area_under_a_curve_by_hand():
    coverage = pd.DataFrame(
        {
            "dataset": "d",
            "learner": "l",
            "loss": "f1",
            "step": [0, 1],
            "fold": 0,
            "coverage": [0.5, 1.0],
            "risk": [0.1, 0.4],
            "two_thresholds": [0.2, 0.4],
            "whole_instances": [0.3, 0.4],
            "at_random": [0.4, 0.4],
        }
    )
    found = Results(pd.DataFrame(), coverage, pd.DataFrame(), {}).aurc().iloc[0]
    assert found["aurc"] == pytest.approx(0.5 * 0.05 + 0.5 * 0.25)
    assert found["at_random"] == pytest.approx(0.5 * 0.2 + 0.5 * 0.4)


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["br-lr", "cc-lr", "trees", "br-lr+isotonic"])
def test_probabilities_are_those_of_the_learner_by_itself(tmp_path, learner):
    problem = random_problem()
    run(Plan([problem], learners=[learner], losses=["hamming"], n_folds=3, random_state=4), out=tmp_path, n_jobs=1)
    files = sorted((tmp_path / "probabilities").glob(f"random-0-{learner}-*.parquet"))
    assert len(files) == 3
    for file, (train, test) in zip(files, KFold(3, shuffle=True, random_state=4).split(problem.labels), strict=True):
        base, _, calibration = learner.partition("+")
        trees = extra_trees(n_instances=40, n_features=4, n_labels=5, random_state=4)
        estimator = trees if base == "trees" else learners.make(base)
        model = abstain.AbstainingClassifier(estimator, calibration=calibration or None)
        expected = model.fit(problem.features[train], problem.labels[train]).predict_proba(problem.features[test])
        kept = abstain.read_table(file)
        assert kept.label_names == tuple("abcde")
        assert list(kept.index) == list(test)
        np.testing.assert_allclose(kept.values, expected, atol=1e-12)


def test_the_tables(tmp_path):
    problems = [random_problem(0), random_problem(1, n=40, m=3)]
    found = run(Plan(problems, learners=["br-lr", "cc-lr"], n_folds=2), out=tmp_path, n_jobs=1)
    assert len(found.results) == 2 * 2 * 5 * 2 * 10 * 2
    read = Results.read([tmp_path])
    pd.testing.assert_frame_equal(read.results, found.results)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "results.csv"), found.results, rtol=1e-7)
    keys = ["dataset", "learner", "loss", "penalty", "cost", "fold"]
    assert list(found.results)[:9] == [*keys, "n_instances", "n_labels", "generalized_loss"]
    assert not found.results.duplicated(keys).any()
    one = found.results[(found.results.loss == "rank") & (found.results.penalty == "PAR")].iloc[:2]
    row = found.summary().set_index(keys[:5]).loc[tuple(one.iloc[0][keys[:5]])]
    assert row.generalized_loss == pytest.approx(one.generalized_loss.mean())
    assert row.generalized_loss_se == pytest.approx(one.generalized_loss.std() / np.sqrt(2))
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["datasets"]["random-1"]["sha256"] == problems[1].sha256
    assert manifest["seed"] == 0
    assert manifest["versions"].keys() >= {"python", "abstain", "numpy", "scipy", "scikit-learn"}
    assert set(pd.read_csv(tmp_path / "aurc.csv").columns) >= {
        "dataset",
        "learner",
        "loss",
        "fold",
        "aurc",
        "at_random",
    }


def test_results_of_several_runs(tmp_path):
    for seed in (0, 1):
        plan = Plan([random_problem(seed, 20, 3)], learners=["br-lr"], losses=["f1"], n_folds=2)
        run(plan, out=tmp_path / str(seed), n_jobs=1)
    both = Results.read([tmp_path / "0", tmp_path / "1"])
    assert both.results.dataset.unique().tolist() == ["random-0", "random-1"]
    with pytest.raises(abstain.InvalidDataset, match="two of the folders have results for random-0 with br-lr"):
        Results.read([tmp_path / "0", tmp_path / "0"])
    with pytest.raises(abstain.MissingFile, match=r"there are no results in .*\(results.parquet is missing\)"):
        Results.read([tmp_path])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learners": ["br-lg"]}, "there is no learner 'br-lg'; did you mean 'br-lr'"),
        ({"learners": ["br-lr+platt"]}, "there is no learner"),
        ({"losses": ["f2"]}, "there is no loss 'f2'"),
        ({"losses": []}, "there is no loss"),
        ({"problems": []}, "there is no data set"),
        ({"problems": [random_problem(), random_problem()]}, "the data set 'random-0' is listed twice"),
        ({"n_folds": 61}, "random-0 has 60 instances, too few for 61 folds"),
        ({"n_folds": 1}, "1 folds: it takes two or more"),
    ],
)
def test_impossible_plans(settings, message):
    with pytest.raises(abstain.InvalidParameter, match=message):
        Plan(**{"problems": [random_problem()], "learners": ["br-lr"], **settings})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "a/b"}, "a data set cannot be called 'a/b'"),
        ({"name": "../up"}, "a data set cannot be called"),
        ({"name": ""}, "a data set cannot be called ''"),
        ({"name": "x" * 100}, "a data set cannot be called"),
        ({"label_names": ["one"]}, "random-0: 60 rows of features and 1 label names do not fit 60 × 5 labels"),
        ({"features": np.zeros((59, 4))}, "random-0: 59 rows of features"),
    ],
)
def test_impossible_data(changes, message):
    with pytest.raises(abstain.InvalidDataset, match=message):
        dataclasses.replace(random_problem(), **changes)


def test_a_fingerprint_is_of_the_numbers_not_of_their_form():
    problem = random_problem()
    features = sparse.csr_array(np.triu(np.ones((60, 60))))
    csr, csc, coo, other = (
        dataclasses.replace(problem, features=form)
        for form in (features, features.tocsc(), features.tocoo(), features.T)
    )
    assert csr.sha256 == csc.sha256 == coo.sha256 != other.sha256
    assert dataclasses.replace(problem, labels=1 - problem.labels).sha256 != problem.sha256


def test_runs_that_do_not_fit_together(tmp_path):
    for seed, learner in ((0, "br-lr"), (1, "cc-lr")):
        plan = Plan([random_problem()], learners=[learner], losses=["f1"], n_folds=2, random_state=seed)
        run(plan, out=tmp_path / learner, n_jobs=1)
    with pytest.raises(abstain.InvalidDataset, match="differ in the data, the folds or the seed of random-0"):
        Results.read([tmp_path / "br-lr", tmp_path / "cc-lr"])


def test_credal_learners_run_beside_the_others(tmp_path):
    plan = Plan([random_problem()], learners=["br-lr", "ncc", "credal-forest"], losses=["hamming"], n_folds=2)
    points = run(plan, out=tmp_path, n_jobs=1).summary()
    assert points.groupby("learner").size().tolist() == [20] * 3
    assert points.generalized_loss.notna().all()
    assert all(fold.seconds > 0 for fold in plan.folds)


def test_fits_are_counted():
    assert _models.n_fits("br-lr", 7) == _models.n_fits("cc-lr", 7) == 7
    assert _models.n_fits("ecc-lr", 7) == 350
    assert _models.n_fits("br-svm", 7) == 42
    assert _models.n_fits("ncc", 7) == 7
    assert _models.n_fits("credal-forest+sigmoid", 7) == 600
    assert _models.n_fits("br-lr+sigmoid", 7) == 42
    assert _models.n_fits("trees", 7) == 200


@pytest.mark.slow
@needs_data
def test_a_run_on_published_data(tmp_path):
    """Two small sets; what theory says of every run, and what binary relevance has always given."""
    problems = [load(name, folder=DATA) for name in ("emotions", "yeast")]
    assert [problem.shape for problem in problems] == [(593, 72, 6), (2417, 103, 14)]
    found = run(Plan(problems, learners=["br-lr", "br-lr+sigmoid"], n_folds=4), out=tmp_path, n_jobs=2)
    points = found.summary()
    steps = points.sort_values("cost").groupby(["dataset", "learner", "loss", "penalty"])
    assert (steps.abstention.diff().dropna() <= 1e-12).all()
    last = points[(points.loss == "hamming") & (points.cost == points.penalty.map({"SEP": 0.5, "PAR": 1.0}))]
    assert len(last) == 8
    assert (last.generalized_loss == last.mlc).all()
    assert (last.abstention == 0).all()
    linear = points[(points.loss == "hamming") & (points.penalty == "SEP") & (points.learner == "br-lr")]
    assert (linear.generalized_loss <= linear.at_random).all()
    clear = linear[linear.cost < 0.42]  # beyond, nearly everything is answered
    assert (clear.generalized_loss < clear[["mlc", "abs"]].min(axis=1)).all()
    areas = found.aurc().groupby(["dataset", "learner", "loss"])[["aurc", "at_random"]].mean()
    assert (areas.aurc < areas.at_random).all()
    assert len(_claims.check(found)) > 50


def made_up(**columns):
    """Ten points of one curve, in two equal folds."""
    steps = np.arange(1, 11)
    table = {
        "dataset": "d",
        "learner": "br-lr",
        "loss": "hamming",
        "penalty": "SEP",
        "cost": steps / 20,
        "n_instances": 10,
        "n_labels": 4,
        "generalized_loss": np.linspace(2.0, 10.0, 10),
        "abstention": np.linspace(90.0, 0.0, 10),
        "mlc": 10.0,
        "abs": 100 * steps / 20,
        "two_thresholds": 11.0,
        "whole_instances": 12.0,
        "at_random": 13.0,
        **columns,
    }
    frame = pd.DataFrame(table)
    return Results(pd.concat([frame.assign(fold=k) for k in (0, 1)]), pd.DataFrame(), pd.DataFrame(), {})


def verdicts(results):
    return {claim.sentence: claim.holds for claim in _claims.check(results)}


def test_claims_that_hold():
    assert set(verdicts(made_up()).values()) == {"yes"}


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"generalized_loss": np.linspace(5.1, 10.0, 10)}, "SEP costs no more than the better of MLC and ABS"),
        ({"mlc": 2.0}, "SEP often costs much less than both (a tenth or more)"),
        ({"generalized_loss": np.linspace(10.0, 2.0, 10)}, "the loss of SEP grows with c"),
        ({"abstention": np.linspace(0.0, 90.0, 10)}, "the abstention of SEP falls with c"),
        ({"abstention": 0.1}, "SEP meets MLC exactly at c = 0.5"),
        ({"two_thresholds": 1.9}, "at equal abstention, SEP and PAR cost no more than two thresholds tuned for F"),
        ({"whole_instances": 1.9}, "at equal abstention, SEP and PAR cost no more than rejecting whole instances"),
        ({"at_random": 1.9}, "at equal abstention, SEP and PAR cost no more than chance"),
    ],
)
def test_claims_that_do_not_hold(columns, sentence):
    assert verdicts(made_up(**columns))[sentence] == "no"


def test_numbers_behind_a_claim():
    found = {claim.sentence: claim.found for claim in _claims.check(made_up(mlc=9.0))}
    text = found["SEP costs no more than the better of MLC and ABS"]
    assert text[0].startswith("br-lr: no, 8 of 10, at most +11.11% (10 > 9: d, c = 0.5); 2 beyond two standard errors")


def test_the_rank_loss_is_slower():
    rank = made_up(loss="rank", cost=np.arange(1, 11) / 10, abstention=np.linspace(95.0, 5.0, 10)).results
    both = Results(pd.concat([made_up().results, rank]), pd.DataFrame(), pd.DataFrame(), {})
    later, claim = (next(c for c in _claims.check(both) if how in c.sentence) for how in ("later", "more slowly"))
    assert later.found == ("1 of 1 data sets and learners: 55.0 % of the labels on average",)
    assert later.holds == claim.holds == "yes"
    text = "d: yes, more is left open at 4 of 4 costs, 80.0 % against 50.0 % on average"
    assert claim.found == (text,)


def test_where_nothing_goes_wrong():
    """Losses of 0 everywhere are no division by 0."""
    perfect = made_up(
        generalized_loss=0.0, abstention=0.0, mlc=0.0, two_thresholds=0.0, whole_instances=0.0, at_random=0.0
    )
    assert verdicts(perfect)["SEP costs no more than the better of MLC and ABS"] == "yes"
    assert verdicts(perfect)["SEP often costs much less than both (a tenth or more)"] == "no"
    worse = made_up(generalized_loss=1.0, mlc=0.0)
    assert verdicts(worse)["SEP costs no more than the better of MLC and ABS"] == "no"


def test_better_learners_are_compared_with_the_papers():
    better = made_up(learner="br-lr+sigmoid", generalized_loss=np.linspace(1.0, 5.0, 10)).results
    both = Results(pd.concat([made_up().results, better]), pd.DataFrame(), pd.DataFrame(), {})
    claim = next(c for c in _claims.check(both) if c.sentence == "br-lr+sigmoid costs no more than br-lr")
    assert claim.holds == "yes"
    assert claim.found == ("br-lr+sigmoid: yes, 10 of 10, -50.0% on average (-50.0% to -50.0%)",)


def test_the_verdict_in_print():
    made = _claims.check(made_up())
    lines = _claims.as_text(made).splitlines()
    assert lines[:4] == _claims.LEGEND.splitlines()
    assert lines[5:8] == [
        "Hamming loss, % of the labels",
        "holds   claim",
        "yes     SEP costs no more than the better of MLC and ABS",
    ]
    assert lines[-1] == "8 yes, 0 mostly, 0 no"
    lines = _claims.as_markdown(made).splitlines()
    assert len(lines) == 2 + len(made)
    assert all(line.count(" | ") == 3 for line in lines if "---" not in line)
