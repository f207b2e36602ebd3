"""`calibration.fit`: what it learns from tables of any form, of any kind of score, and what it refuses."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from scipy.special import expit, logit
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

import abstain
from abstain._core.tables import Table
from abstain._utils.errors import AbstainError, InvalidDataset, InvalidLabels, InvalidParameter, InvalidProbabilities
from abstain.calibration import Calibration, fit

METHODS = ("none", "temperature", "sigmoid", "beta", "isotonic", "venn-abers")


def sample(n=600, m=4, seed=0):
    """Overconfident logits of labels of which the last is rare, and the truth."""
    random = np.random.default_rng(seed)
    true = random.normal(np.linspace(0, -4, m), 2, (n, m))
    return 2 * true + random.normal(0, 0.5, (n, m)), (random.random((n, m)) < expit(true)).astype(int)


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_repeated_rows(method):
    logits, truth = sample()
    times = np.random.default_rng(1).integers(0, 4, len(logits))
    weighted = fit(logits, truth, method, kind="logit", sample_weight=times).transform(logits)
    repeated = fit(logits.repeat(times, axis=0), truth.repeat(times, axis=0), method, kind="logit").transform(logits)
    np.testing.assert_allclose(weighted, repeated, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_weights_of_entries_are_weights_of_rows_of_each_label(method):
    logits, truth = sample()
    weight = np.random.default_rng(1).random(len(logits))
    by_row = fit(logits, truth, method, kind="logit", sample_weight=weight)
    by_entry = fit(logits, truth, method, kind="logit", sample_weight=np.tile(weight[:, np.newaxis], 4))
    np.testing.assert_array_equal(by_row.transform(logits), by_entry.transform(logits))
    np.testing.assert_allclose(by_row.n_known, weight.sum())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mark", [np.nan, -1])
def test_unknown_entries_are_left_out(method, mark):
    logits, truth = sample()
    unknown = np.random.default_rng(1).random(truth.shape) < 0.3
    partial = fit(logits, np.where(unknown, mark, truth), method, kind="logit", missing_values=mark)
    weighted = fit(logits, truth, method, kind="logit", sample_weight=~unknown)
    np.testing.assert_array_equal(partial.transform(logits), weighted.transform(logits))
    np.testing.assert_array_equal(partial.n_known, (~unknown).sum(axis=0))
    np.testing.assert_array_equal(partial.n_relevant, (truth * ~unknown).sum(axis=0))


@pytest.mark.parametrize("method", METHODS)
def test_rows_that_are_unknown_are_as_if_they_were_not_there(method):
    logits, truth = sample()
    known = np.random.default_rng(1).random(len(logits)) < 0.5
    masked = np.where(known[:, np.newaxis], truth, np.nan)
    partial = fit(logits, masked, method, kind="logit", missing_values=np.nan)
    shorter = fit(logits[known], truth[known], method, kind="logit")
    np.testing.assert_allclose(partial.transform(logits), shorter.transform(logits), atol=1e-9)


@pytest.mark.parametrize("method", ["temperature", "sigmoid", "beta", "isotonic", "venn-abers"])
def test_a_label_that_nobody_has_looked_at_takes_the_common_curve(method):
    logits, truth = sample()
    partial = truth.astype(float)
    partial[:, 3] = np.nan
    calibration = fit(logits, partial, method, kind="logit", missing_values=np.nan)
    p = calibration.transform(np.repeat(np.linspace(-6, 6, 13)[:, np.newaxis], 4, axis=1))
    assert (np.diff(p[:, 3]) > 0).all()
    assert (np.abs(p[:, 3] - p[:, :3].mean(axis=1)) < 0.15).all()


@pytest.mark.parametrize("method", METHODS)
def test_logits_are_calibrated_as_their_sigmoid(method):
    logits, truth = sample()
    by_logit, by_probability = (
        fit(s, truth, method, kind=k) for s, k in [(logits, "logit"), (expit(logits), "probability")]
    )
    np.testing.assert_allclose(by_logit.transform(logits), by_probability.transform(expit(logits)), atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("factor", [1e-12, 1 / 1024, 64.0, 1e12])
def test_the_scale_of_scores_does_not_matter(method, factor):
    logits, truth = sample()
    one, other = (fit(f * logits, truth, method, kind="score").transform(f * logits) for f in (1.0, factor))
    np.testing.assert_allclose(one, other, atol=1e-2)  # a score on the border of two bins may change its bin


@pytest.mark.parametrize("method", METHODS)
def test_frames_tables_and_float32_come_back_as_they_are(method):
    logits, truth = sample()
    names = list("abcd")
    p = expit(logits)
    expected = fit(p, truth, method).transform(p)
    index = np.arange(len(p)) * 2
    frame = pd.DataFrame(p, columns=names, index=index)
    truths = pd.DataFrame(truth, columns=names, index=index)
    calibration = fit(frame, truths, method)
    assert calibration.label_names == tuple(names)
    result = calibration.transform(frame)
    assert isinstance(result, pd.DataFrame)
    assert list(result.columns) == names
    assert list(result.index) == list(index)
    np.testing.assert_array_equal(result, expected)
    from_polars = calibration.transform(pl.DataFrame(p, schema=names))
    assert isinstance(from_polars, pl.DataFrame)
    np.testing.assert_array_equal(from_polars.to_numpy(), expected)
    from_arrow = calibration.transform(pa.table({name: p[:, j] for j, name in enumerate(names)}))
    assert isinstance(from_arrow, pa.Table)
    np.testing.assert_array_equal(np.column_stack([from_arrow[name] for name in names]), expected)
    from_table = calibration.transform(Table(p, tuple(names)))
    assert isinstance(from_table, Table)
    np.testing.assert_array_equal(from_table.values, expected)
    single = calibration.transform(p.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=0.02 if method == "venn-abers" else 1e-5)
    np.testing.assert_allclose(fit(p.astype(np.float32), truth, method).transform(p), expected, atol=5e-3)


@pytest.mark.parametrize("method", METHODS)
def test_stored_entries_of_a_sparse_table_are_calibrated(method):
    logits, truth = sample()
    stored = np.random.default_rng(1).random(truth.shape) < 0.3
    p = np.where(stored, expit(logits), 0)
    for truth_table in (truth, sparse.csr_array(truth)):
        calibration = fit(sparse.csr_array(p), truth_table, method)
        expected = fit(expit(logits), np.where(stored, truth, np.nan), method, missing_values=np.nan)
        result = calibration.transform(sparse.csr_array(p))
        assert result.nnz == stored.sum()
        np.testing.assert_allclose(result.toarray(), np.where(stored, expected.transform(expit(logits)), 0), atol=1e-12)
    np.testing.assert_array_equal(calibration.n_known, stored.sum(axis=0))


def test_dense_scores_with_sparse_truth():
    logits, truth = sample()
    one, other = (fit(expit(logits), table, "sigmoid") for table in (truth, sparse.csr_array(truth)))
    np.testing.assert_array_equal(one.transform(expit(logits)), other.transform(expit(logits)))


def test_names_are_checked():
    logits, truth = sample(m=2)
    frame = pd.DataFrame(expit(logits), columns=["a", "b"])
    calibration = fit(frame, pd.DataFrame(truth, columns=["a", "b"]), "sigmoid")
    for columns in (["b", "a"], ["a", "c"]):
        with pytest.raises(InvalidLabels):
            calibration.transform(frame.set_axis(columns, axis=1))
        with pytest.raises(InvalidLabels):
            fit(frame, pd.DataFrame(truth, columns=columns), "sigmoid")
    with pytest.raises(InvalidLabels, match="the scores have 1 label; the calibration has 2"):
        calibration.transform(frame[["a"]])


@pytest.mark.parametrize("method", [*METHODS, "auto"])
def test_json_round_trips_are_exact(method, tmp_path):
    logits, truth = sample()
    frame = pd.DataFrame(logits, columns=["a", "ü", "c d", "ルビ"])
    for table, target in ((logits, truth), (frame, pd.DataFrame(truth, columns=frame.columns))):
        calibration = fit(table, target, method, kind="logit", sample_weight=np.linspace(0, 1.7, len(truth)))
        file = tmp_path / "calibration.json"
        calibration.save(file)
        for again in (Calibration.from_dict(json.loads(json.dumps(calibration.to_dict()))), Calibration.load(file)):
            new = np.random.default_rng(2).normal(0, 8, logits.shape)
            np.testing.assert_array_equal(again.transform(new), calibration.transform(new))
            assert again.to_dict() == calibration.to_dict()
            assert repr(again) == repr(calibration)


def changed(method, change):
    """The dict of a calibration, after a change by hand."""
    logits, truth = sample(n=200)
    content = json.loads(json.dumps(fit(logits, truth, method, kind="logit").to_dict()))
    change(content)
    return content


def put(*keys, value):
    def change(content):
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value

    return change


def without(*keys):
    def change(content):
        for key in keys[:-1]:
            content = content[key]
        del content[keys[-1]]

    return change


@pytest.mark.parametrize(
    ("method", "change", "message"),
    [
        ("sigmoid", without("format"), "'format' must be 'abstain calibration'"),
        ("sigmoid", put("version", value=2), "has version 2, expected 1; a newer version of abstain"),
        ("sigmoid", put("version", value="1"), "has version '1', expected 1"),
        ("sigmoid", put("method", value="sigmoidal"), "method is 'sigmoidal'; expected none, temperature"),
        ("sigmoid", put("method", value=["sigmoid"]), "method is"),
        ("sigmoid", put("method", value="beta"), "label 0: slopes must be 2 numbers"),
        ("sigmoid", put("method", value="isotonic"), "label 0: the field 'share' is missing"),
        ("sigmoid", put("kind", value="logits"), "kind is 'logits'; expected probability, logit, score"),
        ("sigmoid", put("kind", value={}), "kind is"),
        ("sigmoid", put("scale", value="1"), "scale is '1'; expected a number"),
        ("sigmoid", put("scale", value=-1), "scale"),
        ("sigmoid", put("scale", value=0), "scale"),
        ("sigmoid", without("scale"), "the field 'scale' is missing"),
        ("sigmoid", put("note", value=1), "there is no field 'note'"),
        ("sigmoid", put("n_rows", value=None), "n_rows is None; expected a number"),
        ("sigmoid", put("log_losses", value=[]), "log_losses is no object"),
        ("sigmoid", put("log_losses", "none", value="low"), "log_losses: none is 'low'"),
        ("sigmoid", put("labels", value={}), "labels is no list of objects"),
        ("sigmoid", put("labels", value=[]), "labels is no list of objects"),
        ("sigmoid", put("labels", 1, value=3), "labels is no list of objects"),
        ("sigmoid", without("labels", 1, "slopes"), "label 1: the field 'slopes' is missing"),
        ("sigmoid", put("labels", 1, "slope", value=1), "label 1: there is no field 'slope'"),
        ("sigmoid", put("labels", 1, "slopes", value=1.0), "label 1: slopes is 1.0; expected a list of numbers"),
        ("sigmoid", put("labels", 1, "slopes", value=[-1.0]), "label 1: slopes must be 1 number ≥ 0"),
        ("sigmoid", put("labels", 1, "slopes", value=[1.0, 2.0]), "label 1: slopes must be 1 number ≥ 0"),
        ("sigmoid", put("labels", 1, "slopes", value=["1"]), "label 1: slopes is '1'; expected a number"),
        ("sigmoid", put("labels", 1, "offset", value=float("nan")), "label 1: offset is nan; expected a number"),
        ("sigmoid", put("labels", 1, "offset", value=True), "label 1: offset is True; expected a number"),
        ("sigmoid", put("labels", 1, "low", value=17.0), "label 1: expected −16 ≤ low ≤ high ≤ 16"),
        ("sigmoid", put("labels", 1, "known", value=[1]), "label 1: known is"),
        ("sigmoid", put("labels", 1, "name", value="b"), "either all have a name"),
        ("sigmoid", put("labels", 1, "name", value=1.5), "label 1.5: a name is text or a whole number"),
        ("isotonic", put("labels", 2, "share", value=1.5), "label 2: share and values must be numbers from 0 to 1"),
        ("isotonic", put("labels", 2, "values", 0, value=0.99), "label 2: share and values .* increase"),
        ("isotonic", put("labels", 2, "values", 0, value=-0.1), "label 2: share and values must be numbers from 0"),
        ("isotonic", put("labels", 2, "x", 0, value=15.0), "label 2: x and values must be as many, and x increase"),
        ("isotonic", without("labels", 2, "x", 0), "label 2: x and values must be as many"),
        ("isotonic", put("labels", 2, "x", value=[]), "label 2: x is"),
        ("venn-abers", put("labels", 2, "values", 0, value=0.5), "label 2: values is 0.5; expected a list of numbers"),
        ("venn-abers", put("labels", 2, "values", 0, value=[0.5]), "label 2: x and values must be as many"),
        ("venn-abers", put("labels", 2, "values", 0, value=[0.5, 1.2]), "label 2: share and values must be"),
    ],
)
def test_mistakes_in_the_file_are_named(method, change, message, tmp_path):
    content = changed(method, change)
    with pytest.raises(InvalidDataset, match=message):
        Calibration.from_dict(content)
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InvalidDataset, match=f"wrong.json: .*{message}"):
        Calibration.load(file)


def test_files_that_are_no_calibration(tmp_path):
    for text in ("", "{", "[]", "null", "1", '{"format": "other"}'):
        (tmp_path / "a.json").write_text(text)
        with pytest.raises(InvalidDataset, match=r"a\.json: is no"):
            Calibration.load(tmp_path / "a.json")
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidDataset, match=r"a\.json: is no JSON"):
        Calibration.load(tmp_path / "a.json")
    with pytest.raises(AbstainError, match="there is no such file"):
        Calibration.load(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p, y: fit(p, y, "sigmoidal"), InvalidParameter, "method is 'sigmoidal'.*sigmoid"),
        (lambda p, y: fit(p, y, kind="logits"), InvalidParameter, "kind is 'logits'; expected 'probability'"),
        (lambda p, y: fit(p, y[:-1]), InvalidLabels, "y_true has shape"),
        (lambda p, y: fit(p[:0], y[:0]), AbstainError, "no rows|nothing to learn"),
        (lambda p, y: fit(p * 3, y), InvalidProbabilities, "a probability is a number from 0 to 1"),
        (lambda p, y: fit(p, y + 1), InvalidLabels, "the truth is 0 or 1"),
        (lambda p, y: fit(p, y - 1), InvalidLabels, "pass missing_values=-1"),
        (lambda p, y: fit(p, y[:, 0]), InvalidLabels, "y_true is a vector"),
        (lambda p, y: fit(np.where(p > 0.9, np.nan, p), y, kind="logit"), InvalidProbabilities, "row .* is nan"),
        (lambda p, y: fit(sparse.csr_array(p), y, kind="logit"), InvalidProbabilities, "does not store"),
        (lambda p, y: fit(p, y, sample_weight=-np.ones(len(p))), InvalidParameter, "a weight is a finite number ≥ 0"),
        (lambda p, y: fit(p, y, cv=1), InvalidParameter, "cv is 1; expected at least 2 folds"),
        (lambda p, y: fit(p, y, cv="five"), InvalidParameter, "cv is 'five'; expected a number of folds"),
        (lambda p, y: fit(p, y, cv=True), InvalidParameter, "cv is True; expected a number of folds"),
        (lambda p, y: fit(p, y, cv=GroupKFold(5)), InvalidParameter, "cannot split 600 rows.*groups"),
        (
            lambda p, y: fit(p, y, groups=np.arange(600)),
            InvalidParameter,
            "groups need a splitter",
        ),
        (
            lambda p, y: fit(p, y, cv=GroupKFold(5), groups=[1, 2]),
            InvalidParameter,
            "groups has 2 entries for 600",
        ),
        (lambda p, y: fit(p, y, "sigmoid").intervals(p), InvalidParameter, "'sigmoid' gives no intervals"),
    ],
)
def test_what_is_refused(call, error, message):
    logits, truth = sample()
    with pytest.raises(error, match=message):
        call(expit(logits), truth)


def test_auto_takes_the_lowest_cross_validated_log_loss():
    logits, truth = sample(n=2000)
    calibration = fit(logits, truth, kind="logit")
    assert set(calibration.log_losses) == set(METHODS)
    assert calibration.log_losses[calibration.method] == min(calibration.log_losses.values())
    assert calibration.log_losses[calibration.method] < calibration.log_losses["none"] - 0.02


def test_log_losses_are_of_rows_that_were_not_learnt_from():
    logits, truth = sample(n=300)
    half = np.arange(300) < 150
    splits = [(np.flatnonzero(half), np.flatnonzero(~half)), (np.flatnonzero(~half), np.flatnonzero(half))]
    found = fit(logits, truth, "sigmoid", kind="logit", cv=splits).log_losses["sigmoid"]
    p = np.empty(logits.shape)
    for train, test in splits:
        p[test] = fit(logits[train], truth[train], "sigmoid", kind="logit").transform(logits[test])
    expected = -np.mean(np.where(truth, np.log(p), np.log1p(-p)))
    assert found == pytest.approx(expected, abs=1e-3)  # scores within a bin have one probability


def test_splitters_of_groups_and_of_time():
    logits, truth = sample(n=300)
    groups = np.arange(300) // 10
    for cv, keyword in ((GroupKFold(5), {"groups": groups}), (TimeSeriesSplit(3), {})):
        calibration = fit(logits, truth, kind="logit", cv=cv, **keyword)
        assert np.isfinite(list(calibration.log_losses.values())).all()
    split = fit(logits, truth, "sigmoid", kind="logit", cv=GroupKFold(5), groups=groups).transform(logits)
    expected = fit(logits, truth, "sigmoid", kind="logit").transform(logits)
    np.testing.assert_allclose(split, expected, atol=1e-12)  # all rows are learnt from, whatever the folds


def test_without_calibration_probabilities_stay():
    p = np.concatenate([[0, 1, 1e-7, 1e-5, 0.3, 1 - 1e-5], np.random.default_rng(0).random(94)])[:, np.newaxis]
    stays = fit(p, p > 0.4, "none").transform(p)
    np.testing.assert_allclose(stays, p, atol=2e-7)


@pytest.mark.parametrize("method", METHODS)
def test_higher_scores_never_get_lower_probabilities_and_nothing_is_extrapolated(method):
    logits, truth = sample()
    truth[:, 1] = np.random.default_rng(3).random(600) < expit(-logits[:, 1])  # the other way round
    calibration = fit(logits, truth, method, kind="logit")
    p = calibration.transform(np.repeat(np.linspace(-20, 20, 4001)[:, np.newaxis], 4, axis=1))
    assert (np.diff(p, axis=0) >= -1e-15).all()
    assert ((p >= 0) & (p <= 1)).all()
    if method != "none":
        seen = calibration.transform(np.array([logits.min(axis=0), logits.max(axis=0)]))
        beyond = calibration.transform(np.array([logits.min(axis=0) - 5, logits.max(axis=0) + 5]))
        np.testing.assert_allclose(beyond, seen, atol=1e-12)


@pytest.mark.parametrize("method", [*METHODS, "auto"])
def test_a_single_score(method):
    p = fit(np.full((30, 1), 0.4), np.ones((30, 1)), method).transform([[0.1], [0.4], [0.9]])
    assert ((p > 0) & (p < 1)).all()


@pytest.mark.parametrize("method", [*METHODS, "auto"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_few_rows(method, n):
    logits, truth = sample(n)
    p = fit(logits, truth, method, kind="logit").transform(sample(50)[0])
    assert ((p > 0) & (p < 1)).all()


@pytest.mark.parametrize("method", [*METHODS, "auto"])
@pytest.mark.parametrize("weight", [1e-12, 1e9, "mixed"])
def test_weights_of_any_size(method, weight):
    logits, truth = sample()
    random = np.random.default_rng(0)
    weights = 10.0 ** random.uniform(-8, 8, truth.shape) if weight == "mixed" else np.full(truth.shape, weight)
    calibration = fit(logits, truth, method, kind="logit", sample_weight=weights)
    again = Calibration.from_dict(calibration.to_dict())
    np.testing.assert_array_equal(again.transform(logits), calibration.transform(logits))


def test_calibrated_probabilities_can_be_decided():
    logits, truth = sample()
    calibrated = fit(logits, truth, kind="logit").transform(logits)
    losses = [
        abstain.metrics.generalized_loss(truth, abstain.decide(p, "hamming", 0.1), loss="hamming", penalty=0.1)
        for p in (expit(logits), calibrated)
    ]
    assert losses[1] < losses[0]


def test_exact_votes_are_no_certainty():
    votes = np.random.default_rng(0).integers(0, 11, (1000, 2)) / 10
    truth = np.random.default_rng(1).random((1000, 2)) < 0.1 + 0.8 * votes
    calibration = fit(votes, truth, "sigmoid")
    p = calibration.transform([[0.0, 0.0], [0.1, 0.1], [0.9, 0.9], [1.0, 1.0]])
    assert (p[0] < p[1]).all()
    np.testing.assert_allclose(p[[0, 3]], [[0.1, 0.1], [0.9, 0.9]], atol=0.06)
    unseen = fit(votes[(votes > 0).all(axis=1)], truth[(votes > 0).all(axis=1)], "sigmoid").transform([[0.0, 0.0]])
    assert (unseen > 0.1).all()
    assert logit(unseen).max() < -1
