"""The review queue of a stream, whatever is spilled on the way, against the queue of the whole table."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from tests.support.files import read_columns, write_long

import abstain
from abstain import InvalidDataset, InvalidOutput, InvalidProbabilities
from abstain._core.tables import Axes
from abstain.review._queue import review_queue
from abstain.streams import Job, decide_files
from abstain.streams._sizes import SIZES
from abstain.streams._tables import Table, read_table, write_table

pytestmark = pytest.mark.usefixtures("small_sizes")
KINDS = (".csv", ".csv.gz", ".parquet", ".arrow", ".arrows")
N, M = 150, 5
NAMES = tuple(f"label, {j}" for j in range(M))
TEXTS = [f'r "{i}"' for i in range(N)]
NUMBERS = [7 * i + 3 for i in range(N)]
RANDOM = np.random.default_rng(0)
P = RANDOM.random((N, M))
TIED = RANDOM.choice([0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0], (N, M))
THIN = np.where(RANDOM.random((N, M)) < 0.4, 0.0, TIED)
THIN[:, 2] = 0.375  # long tables list every row

LOSSES = {"costs": abstain.Hamming(np.linspace(0.5, 2.0, M), np.linspace(1.5, 0.3, M))} | {
    name: kind() for name, kind in abstain._core.losses.LOSSES.items()
}
# How many entries are sorted in memory, how many of a run are read at a time, how many are written, and how many runs
# become one.
QUEUE_SIZES = {"in memory": (1 << 21, 1 << 13, 1 << 18, 64), "spilled": (40, 7, 13, 64), "one by one": (1, 1, 1, 2)}


@pytest.fixture(params=QUEUE_SIZES)
def sizes(request, monkeypatch):
    use_sizes(monkeypatch, request.param)


@pytest.fixture
def spilled(monkeypatch):
    use_sizes(monkeypatch, "spilled")


def use_sizes(monkeypatch, which):
    names = "queue_run_entries", "queue_chunk_entries", "queue_written_entries", "queue_merged_runs"
    for name, size in zip(names, QUEUE_SIZES[which], strict=True):
        monkeypatch.setattr(SIZES, name, size)


def job(loss="hamming", penalty=None, **options):
    chosen = LOSSES[loss]
    if penalty is None:
        penalty = 0.1 if chosen.is_decomposable else 0.02
    return Job(chosen, penalty, **options)


def whole_queue(p, prediction, loss, ids=None, names=NAMES):
    """The queue of the whole table, as columns."""
    queue = review_queue(p, prediction, loss=loss)
    rows = range(p.shape[0]) if ids is None else ids
    return {
        "id": [rows[i] for i in queue.row],
        "label": [names[j] for j in queue.label],
        "probability": queue.probability.tolist(),
        "saves": queue.saves.tolist(),
    }


def check_queue(found, expected, n_least=60):
    """The same reviews in the same order."""
    assert list(found) == ["id", "label", "probability", "saves"]
    assert found["id"] == expected["id"]
    assert found["label"] == expected["label"]
    assert found["probability"] == expected["probability"]
    np.testing.assert_allclose(found["saves"], expected["saves"], rtol=1e-14, atol=1e-16)
    assert len(found["id"]) >= n_least


def files_in(folder):
    return sorted(file.name for file in folder.iterdir())


def decided(path, loss):
    """The answers in an npz file."""
    table = read_table(path)
    kind = abstain.PartialRanking if loss.gives_rankings else abstain.PartialPrediction
    return kind.from_codes(table.values, Axes(), np.zeros(len(table)))


# --- the same queue as of the whole table -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("p", [P, TIED], ids=["all different", "ties"])
def test_any_loss_and_any_size_of_runs(p, loss, sizes, tmp_path):
    write_table(Table(p, NAMES, TEXTS), tmp_path / "p.parquet")
    summary = decide_files(tmp_path / "p.parquet", tmp_path / "out.npz", job(loss), queue=tmp_path / "queue.arrow")
    prediction = abstain.decide(p, LOSSES[loss], job(loss).penalty)
    expected = whole_queue(p, prediction, LOSSES[loss], TEXTS)
    check_queue(read_columns(tmp_path / "queue.arrow"), expected)
    assert summary.n_abstained == len(expected["id"])
    assert p is P or len(set(expected["saves"])) < len(expected["saves"])
    assert files_in(tmp_path) == ["out.npz", "p.parquet", "queue.arrow"]


def test_ties_come_in_the_order_of_rows_and_labels_over_many_runs(sizes, tmp_path):
    write_table(Table(TIED, NAMES), tmp_path / "p.npz")
    decide_files(tmp_path / "p.npz", tmp_path / "out.npz", job(penalty=0.01), queue=tmp_path / "queue.csv")
    saves = np.minimum(TIED, 1 - TIED)
    slow = sorted((-saves[i, j], i, j) for i, j in np.argwhere(saves > 0.01).tolist())
    found = read_columns(tmp_path / "queue.csv")
    assert found["id"] == [i for _, i, _ in slow]
    assert found["label"] == [NAMES[j] for _, _, j in slow]
    assert found["saves"] == [-saved for saved, _, _ in slow]
    assert found["probability"] == [TIED[i, j] for _, i, j in slow]


def test_all_the_same_stay_as_they_came(sizes, tmp_path):
    np.save(tmp_path / "p.npy", np.full((N, M), 0.5))
    decide_files(tmp_path / "p.npy", tmp_path / "out.npy", job(), queue=tmp_path / "queue.csv")
    found = read_columns(tmp_path / "queue.csv")
    assert found["id"] == np.repeat(np.arange(N), M).tolist()
    assert found["label"] == np.tile(np.arange(M), N).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ids", [None, TEXTS, NUMBERS], ids=["no ids", "text", "numbers"])
def test_any_kind_of_file_and_of_ids(kind, ids, spilled, tmp_path):
    write_table(Table(TIED, NAMES, ids), tmp_path / "p.parquet")
    decide_files(tmp_path / "p.parquet", tmp_path / "out.csv", job("f1"), queue=tmp_path / f"queue{kind}")
    prediction = abstain.decide(TIED, "f1", job("f1").penalty)
    check_queue(read_columns(tmp_path / f"queue{kind}"), whole_queue(TIED, prediction, LOSSES["f1"], ids))
    assert files_in(tmp_path) == sorted(["out.csv", "p.parquet", f"queue{kind}"])


def test_the_queue_keeps_numbers_and_text(spilled, tmp_path):
    kept = {pa.int32(): pa.int64(), pa.int64(): pa.int64(), pa.large_string(): pa.string(), pa.string(): pa.string()}
    for kind in kept:
        values = NUMBERS if pa.types.is_integer(kind) else TEXTS
        columns = {"id": pa.array(values, kind)} | {name: P[:, j] for j, name in enumerate(NAMES)}
        pq.write_table(pa.table(columns), tmp_path / "p.parquet")
        decide_files(tmp_path / "p.parquet", tmp_path / "out.csv", job(), queue=tmp_path / "queue.parquet")
        types = {"id": kept[kind], "label": pa.string(), "probability": pa.float64(), "saves": pa.float64()}
        schema = pq.read_schema(tmp_path / "queue.parquet")
        assert dict(zip(schema.names, schema.types, strict=True)) == types


@pytest.mark.parametrize("names", [None, NAMES], ids=["numbered labels", "named labels"])
def test_labels_without_names_are_numbered(names, spilled, tmp_path):
    write_table(Table(P, names), tmp_path / "p.parquet")
    decide_files(tmp_path / "p.parquet", tmp_path / "out.csv", job(), queue=tmp_path / "queue.parquet")
    called = [str(j) for j in range(M)] if names is None else names
    expected = whole_queue(P, abstain.decide(P, penalty=0.1), LOSSES["hamming"], names=called)
    check_queue(read_columns(tmp_path / "queue.parquet"), expected)


def write_parts(folder, p, ids=None, is_sparse=False):
    """A table in three files of different heights."""
    folder.mkdir()
    for k, rows in enumerate((slice(0, 61), slice(61, 70), slice(70, N))):
        values = sparse.csr_array(p[rows]) if is_sparse else p[rows]
        write_table(Table(values, NAMES, None if ids is None else ids[rows]), folder / f"{k}.npz")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ids", "to_folder"),
    [(None, False), (TEXTS, False), (NUMBERS, False), (TEXTS, True), (NUMBERS, True)],
    ids=["no ids", "text", "numbers", "text, to a folder", "numbers, to a folder"],
)
def test_several_files_have_one_queue(ids, to_folder, sizes, tmp_path):
    write_parts(tmp_path / "in", TIED, ids)
    output = f"{tmp_path}/out/" if to_folder else tmp_path / "out.npz"
    decide_files(tmp_path / "in", output, job(), queue=tmp_path / "queue.csv")
    expected = whole_queue(TIED, abstain.decide(TIED, penalty=0.1), LOSSES["hamming"], ids)
    check_queue(read_columns(tmp_path / "queue.csv"), expected)
    assert files_in(tmp_path) == sorted(["in", "out" if to_folder else "out.npz", "queue.csv"])


def test_rows_without_ids_are_counted_over_all_files_if_the_output_is_a_folder(spilled, tmp_path):
    write_parts(tmp_path / "in", TIED)
    decide_files(tmp_path / "in", f"{tmp_path}/out/", job(), queue=tmp_path / "queue.csv")
    expected = whole_queue(TIED, abstain.decide(TIED, penalty=0.1), LOSSES["hamming"])
    check_queue(read_columns(tmp_path / "queue.csv"), expected)


@pytest.mark.parametrize("form", ["npz", "npz without ids", "long.csv", "long.parquet"])
@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_and_long_tables(form, loss, spilled, tmp_path):
    ids = None if form == "npz without ids" else TEXTS
    if form.startswith("npz"):
        path = tmp_path / "p.npz"
        write_table(Table(sparse.csr_array(THIN), NAMES, ids), path)
    else:
        path = tmp_path / f"p{form.removeprefix('long')}"
        write_long(THIN, path, ids=ids, names=NAMES)
    decide_files(path, tmp_path / "out.npz", job(loss, labels=NAMES), queue=tmp_path / "queue.parquet")
    table = sparse.csr_array(THIN)
    prediction = abstain.decide(table, LOSSES[loss], job(loss).penalty)
    check_queue(read_columns(tmp_path / "queue.parquet"), whole_queue(table, prediction, LOSSES[loss], ids))
    assert files_in(tmp_path) == sorted(["out.npz", path.name, "queue.parquet"])


def test_rows_of_long_tables_may_list_nothing_that_was_asked_for(spilled, tmp_path):
    thin = np.where(RANDOM.random((N, M)) < 0.7, 0.0, TIED)
    thin[:, 0] = 0.25
    write_long(thin, tmp_path / "p.csv", ids=TEXTS, names=NAMES)
    some = NAMES[:0:-1]
    decide_files(tmp_path / "p.csv", tmp_path / "out.csv", job(labels=some), queue=tmp_path / "queue.csv")
    table = sparse.csr_array(thin[:, :0:-1])
    assert (np.diff(table.indptr) == 0).any()
    expected = whole_queue(table, abstain.decide(table, penalty=0.1), LOSSES["hamming"], TEXTS, some)
    check_queue(read_columns(tmp_path / "queue.csv"), expected, n_least=40)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_review(kind, tmp_path):
    write_table(Table(P, NAMES, TEXTS), tmp_path / "p.parquet")
    decide_files(tmp_path / "p.parquet", tmp_path / "out.csv", job(penalty=0.5), queue=tmp_path / f"queue{kind}")
    found = read_columns(tmp_path / f"queue{kind}")
    assert found == {"id": [], "label": [], "probability": [], "saves": []}
    write_table(Table(np.empty((0, 2)), ["a", "b"]), tmp_path / "p.parquet")
    decide_files(tmp_path / "p.parquet", tmp_path / "out.csv", job(), queue=tmp_path / f"queue{kind}")
    assert read_columns(tmp_path / f"queue{kind}") == found


@pytest.mark.parametrize("n_open", [20, 33, 60])
def test_rows_at_the_end_that_leave_nothing_open(n_open, spilled, tmp_path):
    p = np.where(np.arange(N)[:, np.newaxis] < n_open, TIED, 0.01)
    write_table(Table(p, NAMES), tmp_path / "p.npz")
    decide_files(tmp_path / "p.npz", tmp_path / "out.npz", job(), queue=tmp_path / "queue.csv")
    check_queue(
        read_columns(tmp_path / "queue.csv"), whole_queue(p, abstain.decide(p, penalty=0.1), LOSSES["hamming"]), 40
    )


# --- bad values -------------------------------------------------------------------------------------------------------


def with_bad_values(p, seed):
    """The table with values that are no probabilities, and where they are."""
    random = np.random.default_rng(seed)
    bad = (random.random(p.shape) < 0.1) & (random.random((len(p), 1)) < 0.5)
    return np.where(bad, random.choice([np.nan, -0.5, 7.0, np.inf], p.shape), p), bad


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_bad_values_are_queued_without_a_probability(is_sparse, loss, spilled, tmp_path):
    p = THIN if is_sparse else TIED
    given, bad = with_bad_values(p, 3)
    write_table(Table(sparse.csr_array(given) if is_sparse else given, NAMES, TEXTS), tmp_path / "p.npz")
    work = job(loss, on_error="abstain")
    summary = decide_files(tmp_path / "p.npz", tmp_path / "out.npz", work, queue=tmp_path / "queue.parquet")
    guessed = np.where(bad, 0.5, p)
    table = sparse.csr_array(guessed) if is_sparse else guessed
    expected = whole_queue(table, decided(tmp_path / "out.npz", LOSSES[loss]), LOSSES[loss])
    is_bad = [bad[i, NAMES.index(label)] for i, label in zip(expected["id"], expected["label"], strict=True)]
    expected["probability"] = [None if x else p for p, x in zip(expected["probability"], is_bad, strict=True)]
    expected["id"] = [TEXTS[i] for i in expected["id"]]
    check_queue(read_columns(tmp_path / "queue.parquet"), expected)
    assert summary.n_repaired == sum(is_bad) == bad.sum() > 20
    assert files_in(tmp_path) == ["out.npz", "p.npz", "queue.parquet"]


@pytest.mark.parametrize("texts", [("oops", "?"), ("oops", ""), ("", "NA"), ("7", "-0.5")], ids=" ".join)
def test_bad_text_has_an_empty_probability(texts, spilled, tmp_path):
    check_bad_text(texts, tmp_path)


@pytest.mark.parametrize("missing", ["NA", "N/A", "null"])
def test_missing_cells_beside_bad_text_have_an_empty_probability(missing, tmp_path):
    check_bad_text(("oops", missing), tmp_path)


def check_bad_text(texts, tmp_path):
    (tmp_path / "p.csv").write_text("id,a,b\nx,{},0.9\ny,0.4,0.1\nz,{},0.3\n".format(*texts))
    decide_files(tmp_path / "p.csv", tmp_path / "out.csv", job(on_error="abstain"), queue=tmp_path / "queue.csv")
    lines = (tmp_path / "queue.csv").read_text().splitlines()
    reviews = ['"x","a",,0.5', '"z","a",,0.5', '"y","a",0.4,0.4', '"z","b",0.3,0.3']
    assert lines == ['"id","label","probability","saves"', *reviews]


def test_bad_values_in_tables_of_whole_numbers_are_guessed_too(tmp_path):
    pq.write_table(pa.table({"a": [0, 1, 7], "b": [1, 0, 1]}), tmp_path / "p.parquet")
    decide_files(tmp_path / "p.parquet", tmp_path / "out.csv", job(on_error="abstain"), queue=tmp_path / "queue.csv")
    assert read_columns(tmp_path / "queue.csv") == {"id": [2], "label": ["a"], "probability": [None], "saves": [0.5]}


@pytest.mark.parametrize("ids", [None, TEXTS], ids=["no ids", "text"])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("loss", ["costs", "rank"])
def test_rows_that_are_skipped_are_not_queued(loss, is_sparse, ids, spilled, tmp_path):
    p = THIN if is_sparse else TIED
    given, bad = with_bad_values(p, 4)
    write_parts(tmp_path / "in", given, ids, is_sparse)
    work = job(loss, on_error="skip")
    summary = decide_files(tmp_path / "in", tmp_path / "out.npz", work, queue=tmp_path / "queue.csv")
    good = np.flatnonzero(~bad.any(axis=1))
    assert 0 < summary.n_skipped == N - len(good)
    table = sparse.csr_array(p[good]) if is_sparse else p[good]
    prediction = abstain.decide(table, LOSSES[loss], work.penalty)
    expected = whole_queue(table, prediction, LOSSES[loss], good.tolist() if ids is None else [ids[i] for i in good])
    check_queue(read_columns(tmp_path / "queue.csv"), expected)


# --- whole or not at all ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row", [0, 90, N - 1])
def test_a_bad_value_leaves_nothing_behind(kind, row, spilled, tmp_path):
    bad = P.copy()
    bad[row, 3] = 1.5
    write_table(Table(bad, NAMES, TEXTS), tmp_path / "p.parquet")
    with pytest.raises(InvalidProbabilities, match=rf"p\.parquet: row {row} .* is 1\.5"):
        decide_files(tmp_path / "p.parquet", tmp_path / "out.csv", job(), queue=tmp_path / f"queue{kind}")
    assert files_in(tmp_path) == ["p.parquet"]


def test_what_fails_at_the_very_end_leaves_nothing_behind(spilled, tmp_path):
    write_table(Table(P, NAMES, [*TEXTS[:-1], TEXTS[3]]), tmp_path / "p.parquet")
    with pytest.raises(InvalidDataset, match=rf"row {N - 1} has the id {re.escape(repr(TEXTS[3]))}, as row 3"):
        decide_files(tmp_path / "p.parquet", tmp_path / "out.csv", job(), queue=tmp_path / "queue.csv")
    assert files_in(tmp_path) == ["p.parquet"]


def test_an_older_queue_stays_if_the_new_one_fails(spilled, tmp_path):
    write_table(Table(P, NAMES, TEXTS), tmp_path / "p.parquet")
    decide_files(tmp_path / "p.parquet", tmp_path / "out.csv", job(), queue=tmp_path / "queue.csv")
    before = (tmp_path / "out.csv").read_bytes(), (tmp_path / "queue.csv").read_bytes()
    bad = P.copy()
    bad[N - 1, 0] = np.nan
    write_table(Table(bad, NAMES, TEXTS), tmp_path / "p.parquet")
    with pytest.raises(InvalidProbabilities, match="is empty or nan"):
        decide_files(tmp_path / "p.parquet", tmp_path / "out.csv", job(), queue=tmp_path / "queue.csv")
    assert ((tmp_path / "out.csv").read_bytes(), (tmp_path / "queue.csv").read_bytes()) == before
    decide_files(tmp_path / "p.parquet", tmp_path / "out.csv", job(on_error="skip"), queue=tmp_path / "queue.csv")
    assert (tmp_path / "queue.csv").read_bytes() != before[1]
    assert files_in(tmp_path) == ["out.csv", "p.parquet", "queue.csv"]


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("queue.npy", InvalidOutput, "holds no text; write the queue to .csv, .csv.gz, .parquet or .arrow"),
        ("queue.npz", InvalidOutput, "holds no text; write the queue to .csv, .csv.gz, .parquet or .arrow"),
        ("queue.txt", InvalidOutput, "unknown kind of file"),
        ("nowhere/queue.csv", FileNotFoundError, "there is no folder"),
    ],
)
def test_where_no_queue_can_be_written(name, error, message, tmp_path):
    write_table(Table(P, NAMES, TEXTS), tmp_path / "p.parquet")
    with pytest.raises(error, match=rf"{re.escape(str(tmp_path / name))}: {re.escape(message)}"):
        decide_files(tmp_path / "p.parquet", tmp_path / "out.csv", job(), queue=tmp_path / name)
    assert files_in(tmp_path) == ["p.parquet"]


def test_a_queue_is_made_of_all_files_at_once(tmp_path):
    write_table(Table(P, NAMES, TEXTS), tmp_path / "p.parquet")
    with pytest.raises(ValueError, match="resume: needs an output folder, and no queue"):
        decide_files(tmp_path / "p.parquet", f"{tmp_path}/out/", job(), queue=tmp_path / "q.csv", resume=True)
    assert files_in(tmp_path) == ["p.parquet"]


@pytest.mark.parametrize("name", ["p.csv", "out.csv"])
def test_the_queue_never_takes_the_place_of_an_input_or_of_the_answers(name, tmp_path):
    write_table(Table(P, NAMES, TEXTS), tmp_path / "p.csv")
    before = (tmp_path / "p.csv").read_bytes()
    with pytest.raises(ValueError, match=re.escape(name)):
        decide_files(tmp_path / "p.csv", tmp_path / "out.csv", job(), queue=tmp_path / name)
    assert (tmp_path / "p.csv").read_bytes() == before
    assert files_in(tmp_path) == ["p.csv"]
