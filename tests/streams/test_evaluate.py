"""Answers in files beside the truth, batch by batch, against the metrics of the whole tables."""

import itertools
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from tests.support import files as support

import abstain
from abstain import InvalidDataset, InvalidLabels, InvalidProbabilities, metrics
from abstain.streams import Job, decide_files
from abstain.streams._alignment import open_aligned
from abstain.streams._evaluate import Scores, evaluate_files
from abstain.streams._sizes import SIZES
from abstain.streams._tables import Table, write_table

N, M = 170, 5
NAMES = tuple(f"label {j}" for j in range(M))
IDS = [f"r{i}" for i in range(N)]
RANDOM = np.random.default_rng(0)
P = RANDOM.beta(0.5, 0.9, (N, M))
Y = (RANDOM.random((N, M)) < P).astype(int)
# Rows that say nothing: long tables do not list them.
P_THIN = np.where((RANDOM.random((N, M)) < 0.5) | (RANDOM.random((N, 1)) < 0.2), 0.0, P)
Y_THIN = np.where(RANDOM.random((N, 1)) < 0.3, 0, Y) * (P_THIN.sum(axis=1, keepdims=True) > 0)

LOSSES = {"costs": abstain.Hamming(np.linspace(0.5, 6.0, M), np.linspace(1.5, 0.3, M))} | {
    name: kind() for name, kind in abstain._core.losses.LOSSES.items()
}
PENALTY = abstain.Concave(0.15)
pytestmark = pytest.mark.usefixtures("small_sizes")
KINDS = (".parquet", ".csv", ".csv.gz", ".arrow", ".arrows", ".npy", ".npz")


def write_long(matrix, path, value, ids=IDS, names=NAMES):
    return support.write_long(matrix, path, ids=ids, names=names, value=value)


def score(files, loss="hamming", penalty=PENALTY, **options):
    """The files of each side, scored as the command line does it."""
    sides = open_aligned(files, **options)
    loss = LOSSES[loss] if isinstance(loss, str) else loss
    return evaluate_files(
        sides["truth"], sides["prediction"], loss=loss, penalty=penalty, probabilities=sides.get("probabilities")
    )


def check(found, truth, prediction, loss, penalty=PENALTY, p=None):
    """All that is found is what the metrics say of the whole tables."""
    codes = prediction.to_dense()
    left_open = codes == -1
    assert (found.n_rows, found.n_labels) == codes.shape
    assert 0 < found.n_abstained == left_open.sum() < codes.size
    assert found.abstention_rate == metrics.abstention_rate(prediction)
    assert found.loss == pytest.approx(
        metrics.generalized_loss(truth, prediction, loss=loss, penalty=penalty), rel=1e-12
    )
    assert found.total_loss == pytest.approx(found.n_rows * found.loss, rel=1e-12)
    if loss.gives_rankings:
        assert found.n_wrong is None
        assert np.isnan(found.answered_error_rate)
    else:
        assert 0 < found.n_wrong == ((codes != truth) & ~left_open).sum()
        assert found.answered_error_rate == metrics.answered_error_rate(truth, prediction)
    if p is None:
        assert (found.total_expected_loss, found.n_errors, found.n_caught) == (None, None, None)
        return
    expected = metrics.expected_generalized_loss(p, prediction, loss=loss, penalty=penalty)
    assert found.total_expected_loss == pytest.approx(len(p) * expected, rel=1e-12)
    if loss.gives_rankings:
        assert (found.n_errors, found.n_caught) == (None, None)
        assert np.isnan(found.error_capture_rate)
        return
    full = abstain.decide(p, loss, penalty="none")
    wrong = full.codes != truth
    assert (found.n_caught, found.n_errors) == ((wrong & left_open).sum(), wrong.sum())
    assert 0 < found.n_caught < found.n_errors
    assert found.error_capture_rate == metrics.error_capture_rate(truth, prediction, full)


# --- the same numbers as of whole tables ------------------------------------------------------------------------------


@pytest.mark.parametrize("with_probabilities", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kinds", [(".parquet", ".csv", ".npz"), (".csv", ".npz", ".parquet"), (".npz",) * 3])
def test_wide_tables_of_different_batches(kinds, loss, with_probabilities, tmp_path):
    prediction = abstain.decide(P, LOSSES[loss], PENALTY)
    sides = {"prediction": prediction.codes, "truth": Y, "probabilities": P}
    files = {}
    for (name, values), kind in zip(sides.items(), kinds, strict=True):
        files[name] = tmp_path / f"{name}{kind}"
        gaps = np.where(values == -1, np.nan, values) if name == "prediction" and kind != ".npz" else values
        write_table(Table(gaps, NAMES, IDS if kind != ".npz" else None), files[name])
    if not with_probabilities:
        del files["probabilities"]
    check(score(files, loss), Y, prediction, LOSSES[loss], p=P if with_probabilities else None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["f1", "rank"])
def test_what_decide_writes_is_scored(kind, loss, tmp_path):
    rows = None if kind == ".npy" else IDS
    write_table(Table(P, NAMES, rows), tmp_path / f"p{kind}")
    write_table(Table(Y, NAMES, rows), tmp_path / f"y{kind}")
    decide_files(tmp_path / f"p{kind}", tmp_path / f"q{kind}", Job(LOSSES[loss], PENALTY))
    files = {name: tmp_path / f"{letter}{kind}" for name, letter in zip(("prediction", "truth"), "qy", strict=True)}
    found = score(files | {"probabilities": tmp_path / f"p{kind}"}, loss)
    prediction = abstain.decide(P, LOSSES[loss], PENALTY)
    check(found, Y, prediction, LOSSES[loss], p=P)
    assert found.total_expected_loss == pytest.approx(prediction.expected_loss.sum(), rel=1e-12)


FORMS = [
    forms
    for forms in itertools.product(["wide", "long"], ["wide", "long"], ["wide", "long", None])
    if "wide" in forms or forms[2] is not None
]


@pytest.mark.slow
@pytest.mark.parametrize("forms", FORMS, ids=lambda forms: " ".join(str(form) for form in forms))
@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if not loss.gives_rankings])
def test_long_tables_may_leave_rows_out(loss, forms, tmp_path):
    kind = ".parquet" if loss == "f1" else ".csv"
    prediction = abstain.decide(P_THIN, LOSSES[loss], PENALTY)
    sides = {"prediction": prediction.codes, "truth": Y_THIN, "probabilities": P_THIN}
    files, n_listed = {}, []
    for (name, values), form in zip(sides.items(), forms, strict=True):
        if form == "wide":
            write_table(Table(values, NAMES, IDS), tmp_path / f"{name}{kind}")
        elif form == "long":
            column = {"prediction": "answer", "truth": "relevant"}.get(name, "probability")
            write_long(values, tmp_path / f"{name}{kind}", column)
            n_listed.append((values != 0).any(axis=1).sum())
        if form is not None:
            files[name] = tmp_path / f"{name}{kind}"
    assert all(n < N for n in n_listed)
    kept = np.ones(N, bool) if "wide" in forms else (P_THIN > 0).any(axis=1)
    whole = abstain.PartialPrediction(prediction.codes[kept])
    p = None if forms[2] is None else P_THIN[kept]
    found = score(files, loss, labels=None if "wide" in forms else NAMES)
    check(found, Y_THIN[kept], whole, LOSSES[loss], p=p)


@pytest.mark.parametrize("forms", [("wide", "long", "wide"), ("wide", "long", "long"), ("wide", "wide", "long")])
def test_rankings_beside_long_tables(forms, tmp_path):
    loss = LOSSES["rank"]
    prediction = abstain.decide(P_THIN, loss, PENALTY)
    files = {name: tmp_path / f"{name}.csv" for name in ("prediction", "truth", "probabilities")}
    write_table(Table(np.where(prediction.codes == -1, np.nan, prediction.codes), NAMES, IDS), files["prediction"])
    for name, values, form in (("truth", Y_THIN, forms[1]), ("probabilities", P_THIN, forms[2])):
        if form == "wide":
            write_table(Table(values, NAMES, IDS), files[name])
        else:
            write_long(values, files[name], "relevant" if name == "truth" else "probability")
    check(score(files, loss), Y_THIN, prediction, loss, p=P_THIN)


@pytest.mark.parametrize("loss", ["costs", "f1"])
@pytest.mark.parametrize("is_long", [False, True])
def test_sparse_answers_of_decide(loss, is_long, tmp_path):
    thin, rows = sparse.csr_array(P_THIN), (P_THIN > 0).any(axis=1)
    prediction = abstain.decide(thin, LOSSES[loss], PENALTY)
    if is_long:
        write_long(P_THIN, tmp_path / "p.csv", "probability")
        decide_files(tmp_path / "p.csv", tmp_path / "q.parquet", Job(LOSSES[loss], PENALTY, labels=NAMES))
        files = {"prediction": tmp_path / "q.parquet", "probabilities": tmp_path / "p.csv"}
    else:
        sparse.save_npz(tmp_path / "p.npz", thin)
        decide_files(tmp_path / "p.npz", tmp_path / "q.npz", Job(LOSSES[loss], PENALTY))
        files = {"prediction": tmp_path / "q.npz", "probabilities": tmp_path / "p.npz"}
    write_table(Table(Y_THIN, NAMES, IDS if is_long else None), tmp_path / "y.parquet")
    found = score(files | {"truth": tmp_path / "y.parquet"}, loss)
    check(found, Y_THIN, abstain.PartialPrediction(prediction.to_dense()), LOSSES[loss], p=P_THIN)
    assert rows.sum() < N


@pytest.mark.parametrize(
    "penalty",
    [abstain.Linear(0.07), abstain.PerLabel(np.linspace(0.0, 0.4, M)) + abstain.Concave(0.1), abstain.Capped(0.1, 2)],
    ids=repr,
)
@pytest.mark.parametrize("form", ["wide", "long"])
def test_any_penalty(form, penalty, tmp_path):
    prediction = abstain.decide(P_THIN, "hamming", penalty)
    files = {"prediction": tmp_path / "q.csv", "truth": tmp_path / "y.csv"}
    if form == "wide":
        write_table(Table(prediction.codes, NAMES, IDS), files["prediction"])
    else:
        write_long(prediction.codes, files["prediction"], "answer")
    write_table(Table(Y_THIN, NAMES, IDS), files["truth"])
    check(score(files, penalty=penalty), Y_THIN, prediction, LOSSES["hamming"], penalty)


@pytest.mark.parametrize("sizes", [(7, 50), (50, 7), (N, 1), (1, N)])
@pytest.mark.parametrize("small", [1, 13 * M, 1 << 20])
def test_row_groups_and_batches_of_any_size(sizes, small, tmp_path, monkeypatch):
    monkeypatch.setattr(SIZES, "batch_bytes", small * P.itemsize)
    prediction, files = abstain.decide(P, "f1", PENALTY), {}
    for name, values, size in (("prediction", prediction.codes, sizes[0]), ("truth", Y, sizes[1])):
        files[name] = tmp_path / f"{name}.parquet"
        columns = {"id": IDS} | {label: values[:, j] for j, label in enumerate(NAMES)}
        pq.write_table(pa.table(columns), files[name], row_group_size=size)
    np.save(tmp_path / "p.npy", P)
    check(score(files | {"probabilities": tmp_path / "p.npy"}, "f1"), Y, prediction, LOSSES["f1"], p=P)


@pytest.mark.parametrize("truth_form", ["wide", "long"])
def test_several_files_on_each_side(truth_form, tmp_path):
    prediction = abstain.decide(P, "f1", PENALTY)
    for name in ("prediction", "truth"):
        (tmp_path / name).mkdir()
    for k, rows in enumerate((slice(0, 60), slice(60, 61), slice(61, N))):
        write_table(Table(prediction.codes[rows], NAMES, IDS[rows]), tmp_path / "prediction" / f"{k}.csv")
    for k, rows in enumerate((slice(0, 100), slice(100, N))):
        path = tmp_path / "truth" / f"{k}.parquet"
        if truth_form == "wide":
            write_table(Table(Y[rows], NAMES, IDS[rows]), path)
        else:
            write_long(Y[rows], path, "relevant", IDS[rows])
    check(score({name: tmp_path / name for name in ("prediction", "truth")}, "f1"), Y, prediction, LOSSES["f1"])


def test_rows_without_ids_are_counted_over_all_files_beside_a_long_table(tmp_path):
    prediction = abstain.decide(P_THIN, "f1", PENALTY)
    (tmp_path / "prediction").mkdir()
    for k, rows in enumerate((slice(0, 60), slice(60, N))):
        write_table(Table(prediction.codes[rows], NAMES), tmp_path / "prediction" / f"{k}.npz")
    for kind in (".csv", ".parquet"):
        truth = write_long(Y_THIN, tmp_path / f"y{kind}", "relevant", ids=range(N))
        found = score({"prediction": tmp_path / "prediction", "truth": truth}, "f1")
        check(found, Y_THIN, prediction, LOSSES["f1"])


@pytest.mark.parametrize("truth_form", ["wide", "long"])
@pytest.mark.parametrize("loss", ["costs", "rank"])
def test_labels_are_matched_by_name(loss, truth_form, tmp_path):
    prediction, order = abstain.decide(P, LOSSES[loss], PENALTY), [3, 0, 4, 1, 2]
    mixed = [NAMES[j] for j in order]
    files = {name: tmp_path / f"{name}.parquet" for name in ("prediction", "truth", "probabilities")}
    write_table(Table(prediction.codes, NAMES, IDS), files["prediction"])
    write_table(Table(np.column_stack([P[:, order], P[:, 0]]), [*mixed, "another one"], IDS), files["probabilities"])
    if truth_form == "wide":
        write_table(Table(Y[:, order], mixed, IDS), files["truth"])
    else:
        write_long(Y[:, order], files["truth"], "relevant", names=mixed)
    sides = open_aligned(files)
    assert [sources.label_names for sources in sides.values()] == [NAMES] * 3
    check(score(files, loss), Y, prediction, LOSSES[loss], p=P)


def test_some_labels_and_an_id_column_are_chosen(tmp_path):
    some, numbers = [NAMES[4], NAMES[1]], np.arange(N)[:, np.newaxis]
    prediction = abstain.decide(P[:, [4, 1]], "hamming", 0.2)
    codes = np.zeros((N, M))
    codes[:, [4, 1]] = np.where(prediction.codes == -1, np.nan, prediction.codes)
    for name, values in (("prediction", codes), ("truth", Y.astype(float))):
        write_table(Table(np.hstack([values, 3 * numbers]), [*NAMES, "key"]), tmp_path / f"{name}.parquet")
    files = {name: tmp_path / f"{name}.parquet" for name in ("prediction", "truth")}
    found = score(files, penalty=abstain.Linear(0.2), id_column="key", labels=some)
    check(found, Y[:, [4, 1]], prediction, LOSSES["hamming"], abstain.Linear(0.2))


def test_long_tables_have_the_labels_of_any_of_them(tmp_path):
    (tmp_path / "q.csv").write_text("id,label,answer\nx,a,1\nz,c,\n")
    (tmp_path / "y.csv").write_text("id,label,relevant\nx,a,1\ny,b,1\nz,c,0\n")
    (tmp_path / "p.csv").write_text("id,label,probability\nx,a,0.9\ny,a,0.3\nz,c,0.6\n")
    files = {"prediction": tmp_path / "q.csv", "truth": tmp_path / "y.csv", "probabilities": tmp_path / "p.csv"}
    assert [sources.label_names for sources in open_aligned(files).values()] == [("a", "c", "b")] * 3
    found = score(files, penalty=abstain.Linear(0.1))
    counts = found.n_rows, found.n_labels, found.n_abstained, found.n_wrong, found.n_errors, found.n_caught
    assert counts == (3, 3, 1, 1, 2, 1)
    assert (found.total_loss, found.total_expected_loss) == (pytest.approx(1.1), pytest.approx(0.1 + 0.3 + 0.1))


def test_error_capture_by_hand(tmp_path):
    write_table(Table([[1, np.nan, 0], [np.nan, 0, np.nan]], NAMES[:3]), tmp_path / "q.csv")
    write_table(Table([[1, 0, 1], [0, 0, 1]], NAMES[:3]), tmp_path / "y.csv")
    write_table(Table([[0.9, 0.6, 0.2], [0.4, 0.1, 0.3]], NAMES[:3]), tmp_path / "p.csv")
    files = {"prediction": tmp_path / "q.csv", "truth": tmp_path / "y.csv", "probabilities": tmp_path / "p.csv"}
    found = score(files, penalty=abstain.Linear(0.25))
    # The complete prediction 110 / 000 is wrong three times; two of these labels are open.
    assert (found.n_errors, found.n_caught, found.error_capture_rate) == (3, 2, pytest.approx(2 / 3))
    assert (found.n_wrong, found.answered_error_rate, found.abstention_rate) == (1, pytest.approx(1 / 3), 0.5)
    assert found.loss == pytest.approx((1 + 0.25 + 0.5) / 2)
    assert found.total_expected_loss == pytest.approx(0.1 + 0.2 + 0.1 + 3 * 0.25)


def test_rates_of_nothing_are_no_numbers(tmp_path):
    write_table(Table(np.empty((0, 2)), ["a", "b"]), tmp_path / "none.csv")
    found = score(dict.fromkeys(("prediction", "truth", "probabilities"), tmp_path / "none.csv"))
    assert found == Scores(0, 2, 0, 0, 0.0, 0.0, 0, 0)
    rates = found.loss, found.abstention_rate, found.answered_error_rate, found.error_capture_rate
    assert np.isnan(rates).all()
    write_table(Table([[np.nan, np.nan]], ["a", "b"]), tmp_path / "open.csv")
    write_table(Table([[1, 0]], ["a", "b"]), tmp_path / "y.csv")
    found = score({"prediction": tmp_path / "open.csv", "truth": tmp_path / "y.csv"}, penalty=abstain.Linear(0.1))
    assert (found.abstention_rate, found.loss) == (1.0, pytest.approx(0.2))
    assert np.isnan(found.answered_error_rate)


@pytest.mark.parametrize("forms", ["wide wide", "long wide", "wide long"])
def test_progress_counts_the_rows(forms, tmp_path):
    files = {"prediction": tmp_path / "q.parquet", "truth": tmp_path / "y.parquet"}
    for (name, file), form in zip(files.items(), forms.split(), strict=True):
        if form == "wide":
            write_table(Table(Y_THIN, NAMES, IDS), file)
        else:
            write_long(Y_THIN, file, "answer" if name == "prediction" else "relevant")
    progress, sides = support.ProgressLog(), open_aligned(files)
    found = evaluate_files(sides["truth"], sides["prediction"], penalty=PENALTY, progress=progress)
    assert (progress.expected, progress.done) == ([N], [N])
    assert (found.n_rows, found.n_wrong, found.total_loss) == (N, 0, 0.0)


# --- what does not fit ------------------------------------------------------------------------------------------------


def two_files(folder, truth=Y, truth_ids=IDS, names=NAMES, kind=".parquet"):
    """A wide prediction, and a truth that may not fit it."""
    write_table(Table(np.where(P > 0.5, 1, 0), NAMES, IDS), folder / f"q{kind}")
    write_table(Table(truth, names, truth_ids), folder / f"y{kind}")
    return {"prediction": folder / f"q{kind}", "truth": folder / f"y{kind}"}


@pytest.mark.parametrize("kind", [".parquet", ".csv"])
def test_rows_of_other_names_or_in_another_order(kind, tmp_path):
    place = "line 119" if kind == ".csv" else "row 117"
    for ids in ([*IDS[:117], "new", *IDS[118:]], [*IDS[:117], *IDS[118:], IDS[117]]):
        files = two_files(tmp_path, truth_ids=ids, kind=kind)
        named = (
            rf"y\{kind}: {place} \(id '{ids[117]}'\) stands beside .*q\{kind}: {place} \(id 'r117'\): the rows must be"
        )
        with pytest.raises(InvalidLabels, match=named):
            score(files)


@pytest.mark.parametrize("kind", [".parquet", ".csv"])
@pytest.mark.parametrize("with_ids", [False, True])
def test_too_few_and_too_many_rows(kind, with_ids, tmp_path):
    ids = IDS if with_ids else None
    named = r" \(id 'r160'\)" if with_ids else ""
    place = "line 162" if kind == ".csv" else "row 160"
    short, whole = tmp_path / f"short{kind}", tmp_path / f"whole{kind}"
    write_table(Table(Y[:160], NAMES, ids if ids is None else ids[:160]), short)
    write_table(Table(Y, NAMES, ids), whole)
    few = rf"short\{kind} has only 160 rows; .*whole\{kind}: {place}{named} is one more$"
    many = rf"whole\{kind}: {place}{named} is not in .*short\{kind}, or comes in another order there$"
    for prediction, truth, message in ((whole, short, few), (short, whole, many)):
        with pytest.raises(InvalidLabels, match=message):
            score({"prediction": prediction, "truth": truth})
    for files in ({"prediction": whole, "truth": whole, "probabilities": short}, {"prediction": whole, "truth": short}):
        with pytest.raises(InvalidLabels, match=few):
            score(files)


@pytest.mark.parametrize(
    ("swapped", "message"),
    [
        ((3, 4), r"y\.csv: id 'r3' comes in another order than in .*q\.parquet"),
        ((3, 150), rf"y\.csv: line {2 + 4 * M} \(id 'r4'\) is not in .*q\.parquet, or comes in another order there"),
    ],
)
def test_long_tables_in_another_order(swapped, message, tmp_path):
    ids = list(IDS)
    ids[swapped[0]], ids[swapped[1]] = ids[swapped[1]], ids[swapped[0]]
    write_table(Table(Y, NAMES, IDS), tmp_path / "q.parquet")
    write_long(np.ones((N, M), int), tmp_path / "y.csv", "relevant", ids)
    with pytest.raises(InvalidLabels, match=message):
        score({"prediction": tmp_path / "q.parquet", "truth": tmp_path / "y.csv"})


@pytest.mark.parametrize("at", [0, 80, N - 1])
def test_long_tables_with_rows_that_nobody_knows(at, tmp_path):
    write_table(Table(Y, NAMES, IDS), tmp_path / "q.parquet")
    write_long(np.ones((N, M), int), tmp_path / "y.csv", "relevant", [*IDS[:at], "new", *IDS[at + 1 :]])
    message = rf"y\.csv: line {2 + at * M} \(id 'new'\) is not in .*q\.parquet, or comes in another order there"
    with pytest.raises(InvalidLabels, match=message):
        score({"prediction": tmp_path / "q.parquet", "truth": tmp_path / "y.csv"})


def test_labels_that_nobody_knows(tmp_path):
    files = two_files(tmp_path, names=[*NAMES[:-1], "new"])
    with pytest.raises(InvalidDataset, match=r"y\.parquet: there is no column 'label 4'"):
        score(files)
    write_long(Y, tmp_path / "y.csv", "relevant", names=[*NAMES[:-1], "new"])
    with pytest.raises(InvalidLabels, match=r"y\.csv: there is no label 'new' in .*q\.parquet"):
        score(files | {"truth": tmp_path / "y.csv"})
    np.save(tmp_path / "y.npy", Y[:, :-1])
    with pytest.raises(InvalidLabels, match=re.escape("y.npy: y_true has shape")):
        score(files | {"truth": tmp_path / "y.npy"})


@pytest.mark.parametrize("value", [2, -1, 0.5, np.nan])
@pytest.mark.parametrize("form", ["wide", "long"])
def test_truth_that_is_not_0_or_1(form, value, tmp_path):
    wrong = Y.astype(float)
    wrong[123, 2] = value
    files = two_files(tmp_path, truth=wrong)
    if form == "long":
        rows, labels = np.nonzero(wrong)
        columns = {"id": [IDS[i] for i in rows], "label": [NAMES[j] for j in labels], "relevant": wrong[rows, labels]}
        files["truth"] = tmp_path / "y.csv"
        pa_csv.write_csv(pa.table(columns), files["truth"])
    place, shown = "row 123", "empty or nan" if np.isnan(value) else float(value)
    if form == "long":
        at = np.flatnonzero((rows == 123) & (labels == 2))[0]
        place, shown = f"line {2 + at}", f"{value:g}"
    where = rf"{place} \(id 'r123'\), column 2 \(label 'label 2'\)"
    with pytest.raises(InvalidLabels, match=rf"^{files['truth']}: {where} is {shown}; the truth is 0 or 1$"):
        score(files)


@pytest.mark.parametrize("value", [2, 0.5, -3])
def test_answers_that_are_none(value, tmp_path):
    answers = Y.astype(float)
    answers[123, 2] = value
    write_table(Table(answers, NAMES, IDS), tmp_path / "q.parquet")
    write_table(Table(Y, NAMES, IDS), tmp_path / "y.parquet")
    where = rf"row 123 \(id 'r123'\), column 2 \(label 'label 2'\) is {float(value)}; a label is 1, 0 or −1"
    with pytest.raises(InvalidLabels, match=rf"q\.parquet: {where}"):
        score({"prediction": tmp_path / "q.parquet", "truth": tmp_path / "y.parquet"})
    with pytest.raises(InvalidLabels, match=r"q\.parquet.* expected 0, 1, 2 … once each, and −1 for the others"):
        score({"prediction": tmp_path / "q.parquet", "truth": tmp_path / "y.parquet"}, "rank")


def test_some_table_must_name_all_rows(tmp_path):
    files = {
        "prediction": write_long(Y, tmp_path / "q.csv", "answer"),
        "truth": write_long(Y, tmp_path / "y.csv", "relevant"),
    }
    with pytest.raises(InvalidDataset, match="prediction and truth are both in long form"):
        score(files)
    sparse.save_npz(tmp_path / "ranking.npz", sparse.csr_array(Y))
    write_table(Y, tmp_path / "y.npy")
    with pytest.raises(InvalidDataset, match=r"ranking\.npz: rankings in long form are not whole"):
        score({"prediction": tmp_path / "ranking.npz", "truth": tmp_path / "y.npy"}, "rank")


# --- places in files, kinds of ids, values that are none --------------------------------------------------------------


@pytest.mark.parametrize("row", [5, 35, 95, 160])
@pytest.mark.parametrize("side", ["prediction", "truth", "probabilities"])
def test_a_bad_value_is_named_by_its_row_in_the_file(side, row, tmp_path):
    sides = {"prediction": Y.astype(float), "truth": Y.astype(float), "probabilities": P.copy()}
    sides[side][row, 1] = 7.0
    files = {name: tmp_path / f"{name}{'.npy' if name == 'truth' else '.parquet'}" for name in sides}
    for name, values in sides.items():
        write_table(Table(values, NAMES), files[name])
    error = InvalidProbabilities if side == "probabilities" else InvalidLabels
    with pytest.raises(error, match=rf"{files[side]}\D*\brow {row}, column 1\b.* is 7\.0"):
        score(files)


@pytest.mark.parametrize("kinds", [(".csv", ".parquet"), (".parquet", ".csv"), (".npz", ".csv")], ids="".join)
def test_whole_numbers_are_the_same_ids_in_text(kinds, tmp_path):
    prediction = abstain.decide(P, "f1", PENALTY)
    files = {"prediction": tmp_path / f"q{kinds[0]}", "truth": tmp_path / f"y{kinds[1]}"}
    for file, values in zip(files.values(), (prediction.codes, Y), strict=True):
        write_table(Table(values, NAMES, range(1000, 1000 + N)), file)
    check(score(files, "f1"), Y, prediction, LOSSES["f1"])


@pytest.mark.parametrize(
    ("values", "types"),
    [(IDS, (pa.large_string(), pa.string())), (range(7, 7 + N), (pa.int32(), pa.int64()))],
    ids=["text", "whole numbers"],
)
def test_ids_of_similar_types_are_the_same(values, types, tmp_path):
    prediction = abstain.decide(P, "f1", PENALTY)
    files = {"prediction": tmp_path / "q.parquet", "truth": tmp_path / "y.parquet"}
    for file, codes, kind in zip(files.values(), (prediction.codes, Y), types, strict=True):
        columns = {"id": pa.array(list(values), kind)} | {name: codes[:, j] for j, name in enumerate(NAMES)}
        pq.write_table(pa.table(columns), file)
    check(score(files, "f1"), Y, prediction, LOSSES["f1"])


def test_sparse_npz_files_with_ids_name_all_rows(tmp_path):
    prediction = abstain.decide(P_THIN, "f1", PENALTY)
    write_table(Table(sparse.csr_array(prediction.codes), NAMES, IDS), tmp_path / "q.npz")
    write_table(Table(sparse.csr_array(Y_THIN), NAMES, IDS), tmp_path / "y.npz")
    found = score({"prediction": tmp_path / "q.npz", "truth": tmp_path / "y.npz"}, "f1")
    check(found, Y_THIN, prediction, LOSSES["f1"])


@pytest.mark.parametrize("kind", [".npy", ".csv"])
def test_labels_without_names_are_numbers_in_long_tables(kind, tmp_path):
    prediction = abstain.decide(P_THIN, "f1", PENALTY)
    write_table(Y_THIN, tmp_path / f"y{kind}")
    write_long(prediction.codes, tmp_path / "q.csv", "answer", ids=range(N), names=range(M))
    found = score({"prediction": tmp_path / "q.csv", "truth": tmp_path / f"y{kind}"}, "f1")
    check(found, Y_THIN, prediction, LOSSES["f1"])


def test_long_text_ids_beside_rows_without_ids_are_refused(tmp_path):
    write_table(Table(Y, NAMES), tmp_path / "q.parquet")
    write_long(Y, tmp_path / "y.csv", "relevant")
    with pytest.raises(InvalidLabels, match=r"y\.csv.*'r0'"):
        score({"prediction": tmp_path / "q.parquet", "truth": tmp_path / "y.csv"})


@pytest.mark.parametrize("value", ["0.7", "2", "257"])
def test_answers_in_long_form_that_are_none(value, tmp_path):
    (tmp_path / "q.csv").write_text(f"id,label,answer\nr1,label 0,1\nr2,label 1,{value}\n")
    write_table(Table(Y, NAMES, IDS), tmp_path / "y.parquet")
    with pytest.raises(InvalidLabels, match=r"q\.csv.*'r2'.*a label is 1, 0 or −1"):
        score({"prediction": tmp_path / "q.csv", "truth": tmp_path / "y.parquet"})


@pytest.mark.parametrize("form", ["wide", "long"])
def test_text_is_no_answer(form, tmp_path):
    wide = "id,label 0,label 1\nr0,1,0\nr1,oops,1\n"
    long = "id,label,answer\nr0,label 0,1\nr1,label 0,oops\n"
    (tmp_path / "q.csv").write_text(wide if form == "wide" else long)
    write_table(Table(Y[:2, :2], NAMES[:2], IDS[:2]), tmp_path / "y.parquet")
    where = r"q\.csv: line 3 \(id 'r1'\), column 0 \(label 'label 0'\)"
    with pytest.raises(InvalidLabels, match=rf"{where} is 'oops'; a label is 1, 0 or −1"):
        score({"prediction": tmp_path / "q.csv", "truth": tmp_path / "y.parquet"})


@pytest.mark.parametrize("cell", ["yes", "", "0_1", "٣", " ", "1 0"])
@pytest.mark.parametrize("form", ["wide", "long"])
def test_truth_is_quoted_as_the_file_writes_it(form, cell, tmp_path):
    wide = f"id,label 0,label 1\nr0,1,0\nr1,{cell},1\n"
    long = f"id,label,relevant\nr0,label 0,1\nr1,label 1,1\nr1,label 0,{cell}\n"
    (tmp_path / "y.csv").write_text(wide if form == "wide" else long)
    write_table(Table(Y[:2, :2], NAMES[:2], IDS[:2]), tmp_path / "q.parquet")
    where = rf"y\.csv: line {3 if form == 'wide' else 4} \(id 'r1'\), column 0 \(label 'label 0'\)"
    shown = f"'{cell}'" if cell.strip() else "empty"
    with pytest.raises(InvalidLabels, match=rf"{where} is {shown}; the truth is 0 or 1"):
        score({"prediction": tmp_path / "q.parquet", "truth": tmp_path / "y.csv"})


def test_answers_are_no_rankings(tmp_path):
    many = np.zeros((3, 103), np.int8)
    for name in ("q", "y"):
        write_table(Table(many), tmp_path / f"{name}.csv")
    with pytest.raises(
        InvalidLabels, match=r"q\.csv: positions: row 0 is \[0.*….*; these are answers, not pos"
    ) as reason:
        score({"prediction": tmp_path / "q.csv", "truth": tmp_path / "y.csv"}, "rank")
    assert len(str(reason.value)) < 300 + len(str(tmp_path))
