"""Calibration of files: what is learnt and written batch by batch is what the library says of the whole tables."""

import itertools
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn.model_selection import KFold
from tests.support.files import ProgressLog, read_columns, write_long

import abstain
from abstain import InvalidDataset, InvalidLabels, InvalidOutput, InvalidParameter, InvalidProbabilities, MissingFile
from abstain.calibration import Calibration, _fit
from abstain.streams import Job, calibrate_files, decide_files, fit_calibration, open_aligned, open_sources
from abstain.streams._in_memory import read_aligned
from abstain.streams._sizes import SIZES
from abstain.streams._tables import Table, read_table, write_table

KINDS = (".parquet", ".csv", ".csv.gz", ".arrow", ".arrows", ".npy", ".npz")
N, M = 600, 5
NAMES = tuple(f"label {j}" for j in range(M))
IDS = [f"r{i}" for i in range(N)]
RANDOM = np.random.default_rng(0)
LOGITS = RANDOM.normal(-1.0, 2.0, (N, M))
P = 1 / (1 + np.exp(-LOGITS))
Y = (RANDOM.random((N, M)) < P**1.5).astype(int)
Y[:, 4] = np.arange(N) == 123  # a label with one relevant row
UNKNOWN = RANDOM.random((N, M)) < 0.2
P_THIN = np.where((RANDOM.random((N, M)) < 0.4) | (RANDOM.random((N, 1)) < 0.1), 0.0, P)
Y_THIN = Y * (P_THIN.sum(axis=1, keepdims=True) > 0)
CALIBRATION = abstain.calibration.fit(Table(P, NAMES), Y, method="beta")
pytestmark = pytest.mark.usefixtures("small_sizes")


def write(values, path, *, names=NAMES, ids=IDS):
    write_table(Table(values, names, None if path.suffix == ".npy" else ids), path)
    return path


def same(found, expected):
    """Two calibrations differ by no more than rounding."""
    assert flat(found.to_dict()) == pytest.approx(flat(expected.to_dict()), rel=1e-9, abs=1e-9)
    assert (found.method, found.kind, found.n_rows) == (expected.method, expected.kind, expected.n_rows)


def flat(content, place=""):
    """The numbers in nested lists and dicts, by their place; texts are compared as a part of it."""
    if isinstance(content, dict | list):
        items = content.items() if isinstance(content, dict) else enumerate(content)
        parts = [flat(value, f"{place}/{key}") for key, value in items]
        return dict(itertools.chain.from_iterable(part.items() for part in parts))
    return {f"{place}={content}": 0.0} if isinstance(content, str) else {place: content}


# --- learning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "temperature", "sigmoid", "beta", "isotonic", "venn-abers", "none"])
def test_every_method_is_learnt_as_from_the_whole_table(method, tmp_path):
    p, y = write(P, tmp_path / "p.parquet"), write(Y, tmp_path / "y.csv")
    assert len(list(open_sources(p).batches())) > 10
    progress = ProgressLog()
    found = fit_calibration(p, y, method, progress=progress)
    same(found, abstain.calibration.fit(Table(P, NAMES), Y, method=method))
    assert found.label_names == NAMES
    assert (progress.expected, progress.done) == ([N], [N])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("truth_kind", [".parquet", ".csv", ".npy"])
def test_every_kind_of_file(kind, truth_kind, tmp_path):
    p, y = write(P, tmp_path / f"p{kind}"), write(Y, tmp_path / f"y{truth_kind}")
    found = fit_calibration(p, y, "sigmoid")
    same(found, abstain.calibration.fit(Table(P, found.label_names), Y, method="sigmoid"))
    assert found.label_names == (None if kind == truth_kind == ".npy" else NAMES)


@pytest.mark.parametrize("max_groups", [1, 500, 1 << 18])
@pytest.mark.parametrize("cv", [2, 7])
def test_groups_of_batches_are_merged(max_groups, cv, tmp_path, monkeypatch):
    expected = abstain.calibration.fit(Table(P, NAMES), Y, method="isotonic", cv=cv)
    monkeypatch.setattr(_fit, "MAX_UNMERGED_GROUPS", max_groups)
    same(fit_calibration(write(P, tmp_path / "p.npz"), write(Y, tmp_path / "y.npz"), "isotonic", cv=cv), expected)


@pytest.mark.parametrize("missing", [np.nan, -1])
@pytest.mark.parametrize("kind", [".parquet", ".csv", ".npz"])
def test_labels_that_nobody_has_looked_at_are_left_out(missing, kind, tmp_path):
    partly = np.where(UNKNOWN, missing, Y)
    p, y = write(P, tmp_path / "p.parquet"), write(partly, tmp_path / f"y{kind}")
    found = fit_calibration(p, y, "sigmoid", missing_values=missing)
    same(found, abstain.calibration.fit(Table(P, NAMES), partly, method="sigmoid", missing_values=missing))
    np.testing.assert_allclose(found.n_known, (~UNKNOWN).sum(axis=0))
    np.testing.assert_allclose(found.n_relevant, (Y * ~UNKNOWN).sum(axis=0))


WEIGHTS = RANDOM.integers(0, 4, (N, M)) / 2


@pytest.mark.parametrize("weights", [WEIGHTS, WEIGHTS[:, 0]], ids=["of labels", "of rows"])
@pytest.mark.parametrize("form", ["wide", "long"])
def test_weights(weights, form, tmp_path):
    y, order = write(np.where(UNKNOWN, -1, Y), tmp_path / "y.csv"), [3, 0, 4, 1, 2]
    if form == "wide":
        p, scores = write(P, tmp_path / "p.parquet"), Table(P, NAMES)
    else:
        p = write_long(P_THIN, tmp_path / "p.csv", ids=IDS, names=NAMES)
        scores = Table(sparse.csr_array(P_THIN), NAMES)
    columns = weights[:, order] if weights.ndim == 2 else weights[:, np.newaxis]
    names = [NAMES[j] for j in order] if weights.ndim == 2 else ["weight"]
    w = write(columns, tmp_path / "w.csv", names=names)
    found = fit_calibration(p, y, "sigmoid", sample_weight=w, missing_values=-1)
    truth = np.where(UNKNOWN, -1, Y)
    same(found, abstain.calibration.fit(scores, truth, "sigmoid", sample_weight=weights, missing_values=-1))


def test_weights_that_are_refused(tmp_path):
    p, y = write(P, tmp_path / "p.csv"), write(Y, tmp_path / "y.csv")

    def refusal(values, names, error, ids=IDS):
        with pytest.raises(error) as reason:
            fit_calibration(p, y, sample_weight=write(values, tmp_path / "w.csv", names=names, ids=ids))
        return str(reason.value).replace(str(tmp_path), "")

    negative = changed(WEIGHTS, 500, 3, -2)
    assert refusal(negative, NAMES, InvalidParameter) == (
        "/w.csv: line 502 (id 'r500'), column 3 (label 'label 3') is -2; a weight is a finite number ≥ 0"
    )
    said = refusal(np.zeros((N, 1)), ["w"], InvalidParameter)
    assert said == "/w.csv: all weights of known labels are 0"
    assert "there is no column 'label 2'" in refusal(WEIGHTS[:, :2], NAMES[:2], InvalidDataset)
    assert refusal(WEIGHTS[:, :2], ["0", "1"], InvalidLabels) == (
        "/w.csv: has 2 columns of weights; expected one, or one for each of the labels (5)"
    )
    assert "stands beside" in refusal(WEIGHTS, NAMES, InvalidLabels, ids=IDS[::-1])
    long = write_long(WEIGHTS, tmp_path / "long.csv", ids=IDS, names=NAMES)
    with pytest.raises(InvalidDataset, match="weights are a wide table"):
        fit_calibration(p, y, sample_weight=long)


@pytest.mark.parametrize("forms", [("wide", "long"), ("long", "wide"), ("long", "long")], ids=" ".join)
@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_long_tables(forms, kind, tmp_path):
    files = {"probabilities": tmp_path / f"p{kind}", "truth": tmp_path / f"y{kind}"}
    for (name, path), values, form in zip(files.items(), (P_THIN, Y_THIN), forms, strict=True):
        column = "relevant" if name == "truth" else "probability"
        if form == "wide":
            write(values, path)
        else:
            write_long(values, path, ids=IDS, names=NAMES, value=column, shuffled=True)
    sides = open_aligned(files, labels=NAMES)
    found = fit_calibration(sides["probabilities"], sides["truth"], "sigmoid")
    p, y = read_aligned(**open_aligned(files, labels=NAMES))
    same(found, abstain.calibration.fit(p, y, method="sigmoid"))
    listed = np.ones((N, M), bool) if forms[0] == "wide" else P_THIN > 0  # only what is listed is calibrated
    np.testing.assert_allclose(found.n_known, listed.sum(axis=0))
    np.testing.assert_allclose(found.n_relevant, (Y_THIN * listed).sum(axis=0))


def test_a_long_truth_with_empty_cells(tmp_path):
    p = write(P, tmp_path / "p.csv")
    partly = np.where(UNKNOWN, -1, Y)  # which is written as an empty cell
    y = write_long(partly, tmp_path / "y.csv", ids=IDS, names=NAMES, value="relevant")
    with pytest.raises(InvalidLabels, match=r"is empty; the truth is 0 or 1; .*\(--missing-values nan\)"):
        fit_calibration(p, y)
    found = fit_calibration(p, y, "sigmoid", missing_values=np.nan)
    same(found, abstain.calibration.fit(Table(P, NAMES), partly, method="sigmoid", missing_values=-1))


def test_stored_scores_beside_many_labels(tmp_path):
    """Truth is looked up where scores are stored, and nowhere else."""
    n, m = 300, 5000
    scores = sparse.random_array((n, m), density=0.01, rng=1, format="csr")
    truth = sparse.random_array((n, m), density=0.02, rng=2, format="csr", data_sampler=lambda size: np.ones(size))
    truth = sparse.csr_array(truth + (scores > 0.6)).astype(bool).astype(int)
    sparse.save_npz(tmp_path / "p.npz", scores)
    sparse.save_npz(tmp_path / "y.npz", truth)
    found = fit_calibration(tmp_path / "p.npz", tmp_path / "y.npz", "sigmoid")
    stored = scores.toarray() != 0
    np.testing.assert_array_equal(found.n_known, stored.sum(axis=0))
    np.testing.assert_array_equal(found.n_relevant, (stored * truth.toarray()).sum(axis=0))
    same(found, abstain.calibration.fit(scores, truth, method="sigmoid"))


def test_logits(tmp_path):
    found = fit_calibration(write(LOGITS, tmp_path / "p.csv"), write(Y, tmp_path / "y.csv"), "beta", kind="logit")
    same(found, abstain.calibration.fit(Table(LOGITS, NAMES), Y, method="beta", kind="logit"))


def test_the_scale_of_scores_is_that_of_the_first_batch(tmp_path, monkeypatch):
    p, y = write(100 * LOGITS, tmp_path / "p.csv"), write(Y, tmp_path / "y.csv")
    first = next(open_sources(p).batches()).table.values
    found = fit_calibration(p, y, "sigmoid", kind="score")
    assert len(first) < N
    assert found.scale == pytest.approx(3 / np.sqrt(np.mean(first**2)))
    monkeypatch.setattr(SIZES, "text_chunk_bytes", 1 << 23)
    found = fit_calibration(p, y, "sigmoid", kind="score")
    same(found, abstain.calibration.fit(Table(100 * LOGITS, NAMES), Y, method="sigmoid", kind="score"))


def test_several_files_and_labels_in_another_order(tmp_path):
    order = [3, 0, 4, 1, 2]
    for name in ("p", "y"):
        (tmp_path / name).mkdir()
    for k, rows in enumerate((slice(0, 60), slice(60, 61), slice(61, N))):
        write(P[rows], tmp_path / "p" / f"{k}.csv", ids=IDS[rows])
    for k, rows in enumerate((slice(0, 400), slice(400, N))):
        mixed = np.column_stack([Y[rows][:, order], np.zeros(len(IDS[rows]))])
        write(mixed, tmp_path / "y" / f"{k}.parquet", ids=IDS[rows], names=[*(NAMES[j] for j in order), "other"])
    same(
        fit_calibration(tmp_path / "p", [tmp_path / "y" / f"{k}.parquet" for k in (0, 1)], "sigmoid"),
        abstain.calibration.fit(Table(P, NAMES), Y, method="sigmoid"),
    )


def test_rows_that_do_not_match(tmp_path):
    p = write(P, tmp_path / "p.csv")
    other = write(Y, tmp_path / "y.csv", ids=[*IDS[:400], IDS[401], IDS[400], *IDS[402:]])
    with pytest.raises(InvalidLabels, match=r"\(id 'r40[01]'\) stands beside .*the rows must be the same"):
        fit_calibration(p, other)
    with pytest.raises(
        InvalidLabels, match=r"p\.csv: line 601 \(id 'r599'\) is not in .*short\.csv, or comes in another"
    ):
        fit_calibration(p, write(Y[:-1], tmp_path / "short.csv", ids=IDS[:-1]))


def test_truth_of_other_labels(tmp_path):
    p = write(P, tmp_path / "p.csv")
    with pytest.raises(InvalidDataset, match=r"y\.csv: there is no column 'label 4'"):
        fit_calibration(p, write(Y[:, :4], tmp_path / "y.csv", names=NAMES[:4]))
    np.save(tmp_path / "y.npy", Y[:, :4])
    np.save(tmp_path / "p.npy", P)
    with pytest.raises(InvalidLabels, match=r"y\.npy: has 4 labels; .*p\.npy has 5$"):
        fit_calibration(tmp_path / "p.npy", tmp_path / "y.npy")


def test_a_table_without_rows(tmp_path):
    p, y = write(P[:0], tmp_path / "p.parquet", ids=None), write(Y[:0], tmp_path / "y.parquet", ids=None)
    with pytest.raises(InvalidDataset, match=r"p\.parquet: there are no rows, and so nothing to learn from"):
        fit_calibration(p, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "platt"}, "method is 'platt'"),
        ({"kind": "percent"}, "kind is 'percent'; expected 'probability', 'logit' or 'score'"),
        ({"cv": 1}, "cv is 1; expected at least 2 folds"),
        ({"cv": KFold(3)}, "cv is KFold.*; expected a number of folds: a splitter needs all rows in memory"),
        ({"missing_values": 7}, "missing_values is 7; expected None"),
    ],
)
def test_parameters_out_of_range(options, message, tmp_path):
    with pytest.raises(InvalidParameter, match=message):
        fit_calibration(write(P, tmp_path / "p.csv"), write(Y, tmp_path / "y.csv"), **options)


def test_paths_and_opened_files_are_not_mixed(tmp_path):
    p, y = write(P, tmp_path / "p.csv"), write(Y, tmp_path / "y.csv")
    with pytest.raises(InvalidParameter, match="pass paths, or the two tables that open_aligned returns"):
        fit_calibration(open_sources(p), y)


# --- values that are wrong --------------------------------------------------------------------------------------------


def changed(values, i, j, value):
    values = values.astype(float)
    values[i, j] = value
    return values


@pytest.mark.parametrize(("kind", "place"), [(".csv", "line 502"), (".parquet", "row 500")])
def test_errors_name_the_place(kind, place, tmp_path):
    p, y = write(P, tmp_path / f"p{kind}"), write(Y, tmp_path / f"y{kind}")
    bad = write(changed(P, 500, 3, 1.5), tmp_path / f"bad{kind}")
    expected = rf"bad{kind}: {place} \(id 'r500'\), column 3 \(label 'label 3'\) is 1.5; a probability is a number"
    with pytest.raises(InvalidProbabilities, match=expected):
        fit_calibration(bad, y)
    with pytest.raises(InvalidProbabilities, match=expected):
        calibrate_files(bad, tmp_path / "out.csv", CALIBRATION)
    assert not (tmp_path / "out.csv").exists()
    with pytest.raises(InvalidLabels, match=rf"bad{kind}: {place} \(id 'r500'\), .* is 2(\.0)?; the truth is 0 or 1$"):
        fit_calibration(p, write(changed(Y, 500, 3, 2), tmp_path / f"bad{kind}"))
    with pytest.raises(InvalidLabels, match=r"is -1(\.0)?; the truth is 0 or 1; .*\(--missing-values -1\)$"):
        fit_calibration(p, write(changed(Y, 500, 3, -1), tmp_path / f"bad{kind}"))
    with pytest.raises(InvalidLabels, match=r"is -1(\.0)?; the truth is 0 or 1"):
        fit_calibration(p, tmp_path / f"bad{kind}", missing_values=np.nan)


def test_logits_that_are_no_numbers(tmp_path):
    y, logits = write(Y, tmp_path / "y.csv"), changed(LOGITS, 500, 3, np.nan)
    calibration = abstain.calibration.fit(Table(LOGITS, NAMES), Y, method="sigmoid", kind="logit")
    for kind, said in ((".csv", "line 502"), (".npz", "row 500")):
        path = write(logits, tmp_path / f"bad{kind}")
        for call in (
            lambda path=path: fit_calibration(path, y, kind="logit"),
            lambda path=path: calibrate_files(path, tmp_path / "out.csv", calibration),
        ):
            with pytest.raises(InvalidProbabilities, match=rf"{said} .*is empty( or nan)?; a logit is a number$"):
                call()
    text = (tmp_path / "bad.csv").read_text().replace(",,", ",many,")
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(InvalidProbabilities, match=r"line 502 .*is 'many'; a logit is a number"):
        fit_calibration(tmp_path / "bad.csv", y, kind="logit")


def test_infinite_logits_are_the_most_certain_ones(tmp_path):
    logits = changed(changed(LOGITS, 3, 1, np.inf), 5, 2, -np.inf)
    found = fit_calibration(write(logits, tmp_path / "p.npz"), write(Y, tmp_path / "y.csv"), "beta", kind="logit")
    same(found, abstain.calibration.fit(Table(logits, NAMES), Y, method="beta", kind="logit"))


def test_logits_of_a_long_table_are_refused(tmp_path):
    path = write_long(np.where(P_THIN > 0, LOGITS, 0), tmp_path / "p.csv", ids=IDS, names=NAMES)
    calibration = abstain.calibration.fit(Table(LOGITS, NAMES), Y, method="sigmoid", kind="logit")
    expected = r"p\.csv: what a long table does not list would be a logit of 0, .*; give probabilities, or a wide table"
    with pytest.raises(InvalidProbabilities, match=expected):
        fit_calibration(path, write(Y, tmp_path / "y.csv"), kind="logit")
    with pytest.raises(InvalidProbabilities, match=expected):
        calibrate_files(path, tmp_path / "out.csv", calibration)


# --- applying ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wide_tables_stay_wide(kind, dtype, tmp_path):
    p = write(P.astype(dtype), tmp_path / f"p{kind}")
    progress = ProgressLog()
    summary = calibrate_files(p, tmp_path / f"out{kind}", CALIBRATION, progress=progress)
    found = read_table(tmp_path / f"out{kind}")
    given = read_table(p).values
    np.testing.assert_array_equal(found.values, CALIBRATION.transform(given))
    assert found.values.dtype == (np.float64 if ".csv" in kind else dtype)
    if kind != ".npy":
        assert found.label_names == NAMES
        assert list(found.index) == IDS
    assert (summary.n_rows, summary.n_labels, summary.n_files, progress.done) == (N, M, 1, [N])
    decided = decide_files(tmp_path / f"out{kind}", tmp_path / f"q{kind}", Job("hamming", 0.2))  # at once
    whole = abstain.decide(CALIBRATION.transform(given), "hamming", 0.2)
    assert 0 < decided.n_abstained == whole.n_abstained.sum()


@pytest.mark.parametrize("out", KINDS)
def test_any_kind_into_any_other(out, tmp_path):
    calibrate_files(write(P, tmp_path / "p.arrows"), tmp_path / f"out{out}", CALIBRATION)
    np.testing.assert_array_equal(read_table(tmp_path / f"out{out}").values, CALIBRATION.transform(P))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith(".np")])
def test_long_tables_stay_long(kind, tmp_path):
    path = write_long(P_THIN[:, :4], tmp_path / f"p{kind}", ids=IDS, names=NAMES[:4], shuffled=True)
    calibrate_files(path, tmp_path / f"out{kind}", CALIBRATION)  # label 4 is not listed
    given, found = read_columns(path), read_columns(tmp_path / f"out{kind}")
    assert list(found) == ["id", "label", "probability"]
    expected = CALIBRATION.transform(P_THIN)
    rows = {name: i for i, name in enumerate(IDS)}
    entries = zip(found["id"], found["label"], found["probability"], strict=True)
    assert {(i, label): value for i, label, value in entries} == {
        (i, label): expected[rows[i], NAMES.index(label)] for i, label in zip(given["id"], given["label"], strict=True)
    }
    assert decide_files(tmp_path / f"out{kind}", tmp_path / "q.csv", Job("f1", 0.1)).n_rows == len(set(given["id"]))


@pytest.mark.parametrize("out", [".npz", ".parquet"])
def test_sparse_npz(out, tmp_path):
    thin = sparse.csr_array(P_THIN)
    sparse.save_npz(tmp_path / "p.npz", thin.astype(np.float32))
    calibrate_files(tmp_path / "p.npz", tmp_path / f"out{out}", CALIBRATION)
    expected = CALIBRATION.transform(thin.astype(np.float32)).tocoo()
    if out == ".npz":
        found = read_table(tmp_path / "out.npz").values
        assert found.dtype == np.float32
        assert (found != expected.tocsr()).nnz == 0
    else:
        found = pq.read_table(tmp_path / "out.parquet")
        assert found.schema.field("probability").type == "float"
        assert found.column("id").to_pylist() == expected.coords[0].tolist()
        assert found.column("label").to_pylist() == list(map(str, expected.coords[1].tolist()))
        assert found.column("probability").to_pylist() == expected.data.tolist()


def test_a_sparse_table_is_no_npy(tmp_path):
    sparse.save_npz(tmp_path / "p.npz", sparse.csr_array(P_THIN))
    with pytest.raises(InvalidOutput, match="an npy file cannot hold a sparse table; use npz, parquet, csv or arrow"):
        calibrate_files(tmp_path / "p.npz", tmp_path / "out.npy", CALIBRATION)
    assert [file.name for file in tmp_path.iterdir()] == ["p.npz"]


@pytest.mark.parametrize("method", ["temperature", "sigmoid", "beta", "isotonic", "venn-abers", "none"])
def test_labels_are_matched_by_name_and_keep_their_order(method, tmp_path):
    calibration = abstain.calibration.fit(Table(P, NAMES), Y, method=method)
    calibration.save(tmp_path / "c.json")
    order = [3, 0, 4, 1, 2]
    p = write(P[:, order], tmp_path / "p.csv", names=[NAMES[j] for j in order])
    calibrate_files(p, tmp_path / "out.csv", tmp_path / "c.json")
    found = read_table(tmp_path / "out.csv")
    assert found.label_names == tuple(NAMES[j] for j in order)
    np.testing.assert_allclose(found.values, calibration.transform(P)[:, order], rtol=1e-9)


@pytest.mark.parametrize("unnamed", ["calibration", "table"])
def test_labels_without_names_are_matched_by_their_order(unnamed, tmp_path):
    calibration = CALIBRATION if unnamed == "table" else abstain.calibration.fit(P, Y, method="beta")
    p = write(P, tmp_path / "p.npz", names=None if unnamed == "table" else NAMES)
    calibrate_files(p, tmp_path / "out.npz", calibration)
    found = read_table(tmp_path / "out.npz")
    np.testing.assert_array_equal(found.values, CALIBRATION.transform(P))
    assert found.label_names == (None if unnamed == "table" else NAMES)
    np.save(tmp_path / "some.npy", P[:, :3])
    with pytest.raises(InvalidLabels, match=r"some\.npy: has 3 labels; the calibration has 5$"):
        calibrate_files(tmp_path / "some.npy", tmp_path / "out.npy", calibration)


def test_labels_of_a_long_table_that_are_numbers(tmp_path):
    calibration = abstain.calibration.fit(P, Y, method="sigmoid")
    path = write_long(P[:, [3, 1]], tmp_path / "p.csv", ids=IDS, names=["3", "1"])
    calibrate_files(path, tmp_path / "out.csv", calibration)
    found = read_columns(tmp_path / "out.csv")
    np.testing.assert_array_equal(found["probability"], calibration.transform(P)[:, [3, 1]].ravel())


def test_missing_and_extra_labels_are_named(tmp_path):
    other = [*NAMES[:3], "sea", "sky"]
    with pytest.raises(
        InvalidLabels,
        match=r"p\.csv: its labels are not those of the calibration: it has no label 'label 3', 'label 4'; the "
        r"calibration has no label 'sea', 'sky' \(--labels chooses others\)$",
    ):
        calibrate_files(write(P, tmp_path / "p.csv", names=other), tmp_path / "out.csv", CALIBRATION)
    many = [f"x{j}" for j in range(7)]
    path = write_long(np.ones((1, 7)) / 2, tmp_path / "long.csv", ids=["a"], names=many)
    with pytest.raises(InvalidLabels, match=r"has no label 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more \("):
        calibrate_files(path, tmp_path / "out.csv", CALIBRATION)
    wider = write(np.column_stack([P, P[:, 0]]), tmp_path / "wider.csv", names=[*NAMES, "more"])
    with pytest.raises(InvalidLabels, match=r"calibration: the calibration has no label 'more' \("):
        calibrate_files(wider, tmp_path / "out.csv", CALIBRATION)
    calibrate_files(open_sources(wider, labels=NAMES), tmp_path / "out.csv", CALIBRATION)
    np.testing.assert_array_equal(read_table(tmp_path / "out.csv").values, CALIBRATION.transform(P))


def test_ids_come_once(tmp_path):
    p = write(P, tmp_path / "p.csv", ids=[*IDS[:-1], "r7"])
    with pytest.raises(InvalidDataset, match="has the id 'r7', as row 7 of"):
        calibrate_files(p, tmp_path / "out.csv", CALIBRATION)
    assert not (tmp_path / "out.csv").exists()


def test_a_calibration_that_is_none(tmp_path):
    p = write(P, tmp_path / "p.csv")
    with pytest.raises(MissingFile, match="there is no such file"):
        calibrate_files(p, tmp_path / "out.csv", tmp_path / "c.json")
    with pytest.raises(InvalidDataset, match=r"p\.csv: is no JSON file"):
        calibrate_files(p, tmp_path / "out.csv", p)


def test_no_output_over_an_input(tmp_path):
    p = write(P, tmp_path / "p.csv")
    with pytest.raises(InvalidOutput, match="is an input; choose another output"):
        calibrate_files(p, p, CALIBRATION)


# --- folders ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def parts(tmp_path):
    (tmp_path / "parts" / "sub").mkdir(parents=True)
    for k, name in enumerate(["0.csv", "1.parquet", "sub/2.npz"]):
        write(P[k::3], tmp_path / "parts" / name, ids=IDS[k::3])
    return tmp_path / "parts"


def test_a_folder_is_continued(parts, tmp_path):
    out = tmp_path / "out"
    first = calibrate_files(parts, f"{out}/", CALIBRATION, resume=True)
    assert (first.n_rows, first.n_files, first.n_kept) == (N, 3, 0)
    (out / "1.parquet").unlink()
    before = (out / "0.csv").stat().st_mtime_ns
    again = calibrate_files(parts, out, CALIBRATION, resume=True)
    assert (again.n_rows, again.n_files, again.n_kept) == (N, 3, 2)
    assert (out / "0.csv").stat().st_mtime_ns == before
    for k, name in enumerate(["0.csv", "1.parquet", "sub/2.npz"]):
        np.testing.assert_array_equal(read_table(out / name).values, CALIBRATION.transform(P[k::3]))


def test_another_calibration_is_not_continued(parts, tmp_path):
    out = tmp_path / "out"
    calibrate_files(parts, f"{out}/", CALIBRATION, resume=True)
    content = json.loads(json.dumps(CALIBRATION.to_dict()))
    content["labels"][2]["offset"] += 1e-9
    other = Calibration.from_dict(content)
    assert calibrate_files(parts, out, other, resume=True).n_kept == 0
    write(P[0::3], parts / "0.csv", ids=IDS[1::3])  # the input changes
    (parts / "1.parquet").unlink()
    assert calibrate_files(parts, out, other, resume=True).n_kept == 1


def test_another_column_of_a_long_table_is_not_continued(tmp_path):
    (tmp_path / "in").mkdir()
    text = "id,label,first,second\na,label 0,0.1,0.9\na,label 1,0.2,0.8\n"
    (tmp_path / "in" / "p.csv").write_text(text)
    found = []
    for column in ("first", "second", "second"):
        sources = open_sources(tmp_path / "in", value_column=column)
        summary = calibrate_files(sources, f"{tmp_path / 'out'}/", CALIBRATION, resume=True)
        found.append((summary.n_kept, read_columns(tmp_path / "out" / "p.csv")["probability"]))
    assert [kept for kept, _ in found] == [0, 0, 1]
    expected = CALIBRATION.transform([[0.1, 0.2, 0, 0, 0], [0.9, 0.8, 0, 0, 0]])[:, :2].tolist()
    assert [values for _, values in found] == [expected[0], expected[1], expected[1]]


def test_only_a_folder_is_continued(parts, tmp_path):
    with pytest.raises(InvalidParameter, match="resume: needs an output folder"):
        calibrate_files(parts / "0.csv", tmp_path / "out.csv", CALIBRATION, resume=True)


def test_a_folder_whose_files_have_different_precision(tmp_path):
    (tmp_path / "in").mkdir()
    write(P[:9].astype(np.float32), tmp_path / "in" / "0.parquet", ids=IDS[:9])
    write(P[9:], tmp_path / "in" / "1.parquet", ids=IDS[9:])
    calibrate_files(tmp_path / "in", tmp_path / "out.parquet", CALIBRATION)
    found = read_table(tmp_path / "out.parquet").values
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found[9:], CALIBRATION.transform(P[9:]))
    np.testing.assert_allclose(found[:9], CALIBRATION.transform(P[:9]), rtol=1e-5)
