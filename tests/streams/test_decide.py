"""Streams: whatever passes through files in batches is what `decide` says of the whole table."""

import pickle
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from tests.support.files import read_columns, write_long

import abstain
from abstain import InvalidDataset, InvalidOutput, InvalidParameter, InvalidProbabilities
from abstain.streams import Job, Summary, decide_file, decide_files, open_sources
from abstain.streams._read.ids import Ids
from abstain.streams._read.unique_ids import UniqueIds
from abstain.streams._sizes import SIZES
from abstain.streams._tables import Table, read_table, write_table

KINDS = (".parquet", ".csv", ".csv.gz", ".arrow", ".feather", ".arrows", ".npy", ".npz")
COLUMNS = tuple(kind for kind in KINDS if not kind.startswith(".np"))
N, M = 300, 7
NAMES = tuple(f"label {j}" for j in range(M))
IDS = [f"r{i}" for i in range(N)]
P = np.random.default_rng(0).random((N, M))
pytestmark = pytest.mark.usefixtures("small_sizes")
SPARSE = sparse.csr_array(np.where(P < 0.6, 0, P))


def job(loss="hamming", penalty=0.2, **options):
    return Job(loss, penalty, **options)


def decided(path, ranking=False):
    return (abstain.PartialRanking if ranking else abstain.PartialPrediction)(read_table(path))


# --- every kind and form ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("loss", "penalty"), [("hamming", 0.2), ("f1", abstain.Concave(0.1)), ("rank", 0.1)])
def test_wide_tables(kind, dtype, loss, penalty, tmp_path):
    table = Table(P.astype(dtype), NAMES, IDS)
    write_table(table, tmp_path / f"p{kind}")
    summary = decide_files(tmp_path / f"p{kind}", tmp_path / f"out{kind}", job(loss, penalty))
    whole = abstain.decide(read_table(tmp_path / f"p{kind}"), loss, penalty)
    found = decided(tmp_path / f"out{kind}", ranking=loss == "rank")
    np.testing.assert_array_equal(found.codes, whole.codes)
    if kind != ".npy":
        assert found.label_names == NAMES
        assert list(found.axes.index) == IDS
    assert 0 < summary.n_abstained == whole.n_abstained.sum() < N * M
    assert (summary.n_rows, summary.n_labels, summary.n_files) == (N, M, 1)
    assert summary.n_ones == (0 if loss == "rank" else (whole.codes == 1).sum())
    assert summary.total_expected_loss == pytest.approx(whole.expected_loss.sum(), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("out", [".parquet", ".csv", ".arrow", ".npz"])
def test_any_kind_into_any_other_without_names(kind, out, tmp_path):
    write_table(P, tmp_path / f"p{kind}")
    sources = open_sources(tmp_path / f"p{kind}")
    assert (sources.label_names, sources.n_labels, sources.id_name) == (None, M, None)
    assert sources.n_rows == (N if kind in (".parquet", ".npy", ".npz") else None)
    assert len(list(sources.batches())) > 3
    assert sum(len(batch) for batch in sources.batches()) == N
    decide_files(sources, tmp_path / f"out{out}", job())
    np.testing.assert_array_equal(decided(tmp_path / f"out{out}").codes, abstain.decide(P, penalty=0.2).codes)


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("loss", ["hamming", "f1", "rank"])
def test_long_tables(kind, loss, tmp_path):
    ids = list(range(1000, 1000 + N)) if kind != ".csv" else IDS
    path = write_long(SPARSE, tmp_path / f"p{kind}", ids=ids, names=NAMES, shuffled=True)
    kept = np.flatnonzero(np.diff(SPARSE.indptr))  # rows without any entry are not there
    summary = decide_files(path, tmp_path / f"out{kind}", job(loss, labels=NAMES))
    whole = abstain.decide(Table(SPARSE[kept], NAMES, [ids[i] for i in kept]), loss, 0.2)
    coo = whole.codes.tocoo()
    expected = {(ids[kept[i]], NAMES[j]): None if v == -1 else v for i, j, v in zip(*coo.coords, coo.data, strict=True)}
    found = read_columns(tmp_path / f"out{kind}")
    answers = found["position" if loss == "rank" else "answer"]
    as_came = [str(i) for i in found["id"]] if ".csv" in kind else found["id"]
    expected = {(str(i) if ".csv" in kind else i, label): value for (i, label), value in expected.items()}
    assert dict(zip(zip(as_came, found["label"], strict=True), answers, strict=True)) == expected
    assert None in expected.values()
    assert summary.n_rows == len(kept)
    assert summary.total_expected_loss == pytest.approx(whole.expected_loss.sum(), rel=1e-12)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("names", [None, NAMES])
@pytest.mark.parametrize("out", [".npz", ".parquet"])
def test_sparse_npz(packed, names, out, tmp_path):
    rows = None if names is None else IDS
    if names is None:
        sparse.save_npz(tmp_path / "p.npz", SPARSE, compressed=packed)
    else:
        write_table(Table(SPARSE, names, rows), tmp_path / "p.npz")
    sources = open_sources(tmp_path / "p.npz")
    assert sources.is_sparse
    assert len(list(sources.batches())) > 2
    decide_files(sources, tmp_path / f"out{out}", job("f1", abstain.Concave(0.1)))
    whole = abstain.decide(SPARSE, "f1", abstain.Concave(0.1))
    if out == ".npz":
        found = read_table(tmp_path / "out.npz")
        assert (found.values != whole.codes).nnz == 0
        assert found.label_names == names
        assert rows is None or list(found.index) == rows
        assert sparse.load_npz(tmp_path / "out.npz").shape == SPARSE.shape
    else:
        found = read_columns(tmp_path / "out.parquet")
        coo = whole.codes.tocoo()
        assert found["id"] == [i if rows is None else rows[i] for i in coo.coords[0]]
        assert found["label"] == [str(j) if names is None else names[j] for j in coo.coords[1]]
        assert found["answer"] == [None if code == -1 else code for code in coo.data.tolist()]


def test_long_tables_tell_their_labels_and_go_on_over_pieces(tmp_path):
    path = write_long(SPARSE, tmp_path / "p.csv", ids=IDS, names=NAMES, shuffled=True)
    sources = open_sources(path)
    assert set(sources.label_names) == set(NAMES)
    order = [sources.label_names.index(name) for name in NAMES]
    found = sparse.vstack([batch.table.values for batch in sources.batches()])[:, order]
    assert abs(found - SPARSE[np.diff(SPARSE.indptr) > 0]).max() < 1e-15
    some = open_sources(path, labels=NAMES[:2])
    assert abs(sparse.vstack([batch.table.values for batch in some.batches()]) - found[:, :2]).max() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_labels_and_ids_are_chosen(kind, tmp_path):
    if kind == ".npy":
        names, numbers = [str(j) for j in range(M)], np.arange(N)
    else:
        names, numbers = list(NAMES), np.arange(N)
    write_table(Table(np.column_stack([P[:, 0], numbers, P[:, 2:]]), names), tmp_path / f"p{kind}")
    chosen = (names[3], names[0])
    decide_files(tmp_path / f"p{kind}", tmp_path / "out.parquet", job(id_column=names[1], labels=chosen))
    found = read_columns(tmp_path / "out.parquet")
    assert list(found) == [names[1], *chosen]
    assert [float(x) for x in found[names[1]]] == list(range(N))
    whole = abstain.decide(P[:, [3, 0]], penalty=0.2).codes
    assert np.array([[-1 if x is None else x for x in found[name]] for name in chosen]).T.tolist() == whole.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows(kind, tmp_path):
    write_table(Table(np.empty((0, 2)), ["a", "b"]), tmp_path / f"p{kind}")
    summary = decide_files(tmp_path / f"p{kind}", tmp_path / f"out{kind}", job())
    assert (summary.n_rows, read_table(tmp_path / f"out{kind}").shape) == (0, (0, 2))


def test_whole_numbers_booleans_and_missing_ids_of_pandas(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [0, 1, 1], "b": [True, False, True], "c": [0.5, 0.25, 1.0]}, index=["x", "y", "z"])
    for name in (None, "picture"):
        frame.rename_axis(name).to_parquet(tmp_path / "p.parquet")
        decide_files(tmp_path / "p.parquet", tmp_path / "out.parquet", job())
        found = read_columns(tmp_path / "out.parquet")
        assert found == {
            name or "__index_level_0__": ["x", "y", "z"],
            "a": [0, 1, 1],
            "b": [1, 0, 1],
            "c": [None, None, 1],
        }


def test_quoted_cells_blank_lines_and_strange_names(tmp_path):
    text = '\ufeffid,"sky, or ""sea""",b\n"a\nb",0.9,0.1\n\n"c ""quoted"" d",0.1,0.5\n007,NA,1\n'
    (tmp_path / "p.csv").write_text(text * 1, encoding="utf-8")
    sources = open_sources(tmp_path / "p.csv")
    (batch, *more) = sources.batches()
    ids = [name for each in (batch, *more) for name in each.ids]
    assert (sources.label_names, ids) == (('sky, or "sea"', "b"), ["a\nb", 'c "quoted" d', "007"])
    with pytest.raises(InvalidProbabilities, match=r"p\.csv: line 6 \(id '007'\), column 0 \(label .*\) is NA; a prob"):
        decide_files(tmp_path / "p.csv", tmp_path / "out.csv", job())


def test_records_are_never_cut(tmp_path, monkeypatch):
    ids = [f"{'x' * (i % 13)}\n{i}" + '"' * (i % 3) for i in range(200)]
    write_table(Table(P[:200], NAMES, ids), tmp_path / "p.csv")
    for size in (64, 257, 1000, 1 << 20):
        monkeypatch.setattr(SIZES, "text_chunk_bytes", size)
        found = list(open_sources(tmp_path / "p.csv").batches())
        assert [name for batch in found for name in batch.ids] == ids
        np.testing.assert_array_equal(np.concatenate([batch.table.values for batch in found]), P[:200])


# --- several files, folders, resume -----------------------------------------------------------------------------------


def write_parts(folder, kind=".parquet", n_parts=3, table=None):
    """A table cut into files, in a folder and one below it."""
    table = Table(P, NAMES, IDS) if table is None else table
    (folder / "deep").mkdir(parents=True)
    step = len(table) // n_parts
    files = []
    for k in range(n_parts):
        rows = slice(k * step, (k + 1) * step if k < n_parts - 1 else None)
        files.append(folder / ("deep" if k % 2 else "") / f"part-{k}{kind}")
        write_table(Table(table.values[rows], table.label_names, table.index[rows]), files[-1])
    (folder / "_SUCCESS").write_text("")
    (folder / ".hidden.parquet").write_text("not a table")
    (folder / "notes.txt").write_text("nor this")
    return files


@pytest.mark.parametrize("kind", [".parquet", ".csv", ".npz"])
def test_folder_into_one_file_and_into_a_folder(kind, tmp_path):
    files = write_parts(tmp_path / "in", kind)
    sources = open_sources(tmp_path / "in")
    assert sources.files == sorted(str(file) for file in files)
    assert [part.files for part in sources.each_file()] == [[file] for file in sources.files]
    assert sources.n_bytes == sum(file.stat().st_size for file in files)
    whole = abstain.decide(Table(P, NAMES, IDS), penalty=0.2)
    found = {}
    decide_files(tmp_path / "in", tmp_path / "one.parquet", job())
    one = decided(tmp_path / "one.parquet")
    by_id = dict(zip(one.axes.index, one.codes.tolist(), strict=True))
    assert by_id == dict(zip(IDS, whole.codes.tolist(), strict=True))
    summary = decide_files(tmp_path / "in", f"{tmp_path}/out/", job())
    for file in files:
        part = decided(tmp_path / "out" / file.relative_to(tmp_path / "in"))
        found |= dict(zip(part.axes.index, part.codes.tolist(), strict=True))
    assert found == by_id
    assert (summary.n_files, summary.n_kept, summary.n_rows) == (3, 0, N)
    assert open_sources(tmp_path / "out").files == sorted(
        str(tmp_path / "out" / f.relative_to(tmp_path / "in")) for f in files
    )


def test_resume_keeps_what_is_whole_and_from_the_same_job(tmp_path):
    files = write_parts(tmp_path / "in")
    out = tmp_path / "out"
    first = decide_files(tmp_path / "in", f"{out}/", job())
    stamps = {file.name: (out / file.relative_to(tmp_path / "in")).stat().st_mtime_ns for file in files}

    def rerun(job, **options):
        summary = decide_files(tmp_path / "in", out, job, resume=True, **options)
        again = {file.name: (out / file.relative_to(tmp_path / "in")).stat().st_mtime_ns for file in files}
        return summary, [name for name in again if again[name] != stamps[name]], stamps.update(again)

    def counted(summary):
        return summary.n_rows, summary.n_abstained, summary.total_expected_loss, summary.n_ones

    summary, written, _ = rerun(job())
    assert (written, summary.n_kept, counted(summary)) == ([], 3, counted(first))
    (out / "deep" / "part-1.parquet").unlink()
    assert rerun(job())[1] == ["part-1.parquet"]
    (out / "part-0.parquet").write_bytes((out / "part-0.parquet").read_bytes())  # somebody has touched it
    assert rerun(job())[1] == ["part-0.parquet"]
    write_table(read_table(files[2]), files[2])  # another input
    assert rerun(job())[1] == ["part-2.parquet"]
    assert rerun(job(penalty=0.3))[1] == [file.name for file in files]
    assert rerun(job(penalty=0.3))[1] == []
    assert rerun(job(abstain.Hamming(2.0), 0.3))[1] == [file.name for file in files]
    assert rerun(job(abstain.Hamming(2.0), lambda a: 0.3 * a))[1] == [file.name for file in files]
    assert rerun(job(abstain.Hamming(2.0), lambda a: a * 0.3))[1] == []
    with pytest.raises(ValueError, match="resume: needs an output folder"):
        decide_files(tmp_path / "in", tmp_path / "one.parquet", job(), resume=True)


def test_one_file_for_a_worker(tmp_path):
    pq.write_table(
        pa.table({name: P[:, j] for j, name in enumerate(NAMES)}), tmp_path / "p.parquet", row_group_size=100
    )
    work = pickle.loads(pickle.dumps(job("f1", abstain.Concave(0.1))))
    total = Summary()
    for k in range(3):
        total += decide_file(tmp_path / "p.parquet", tmp_path / f"out-{k}.parquet", work, row_groups=[k])
    whole = abstain.decide(P, "f1", abstain.Concave(0.1))
    found = np.concatenate([decided(tmp_path / f"out-{k}.parquet").codes for k in range(3)])
    np.testing.assert_array_equal(found, whole.codes)
    assert (total.n_rows, total.n_abstained) == (N, whole.n_abstained.sum())
    again = decide_file(tmp_path / "p.parquet", tmp_path / "out-1.parquet", work, row_groups=[1], resume=True)
    other = decide_file(tmp_path / "p.parquet", tmp_path / "out-1.parquet", work, row_groups=[2], resume=True)
    assert (again.n_kept, other.n_kept) == (1, 0)


@pytest.mark.parametrize(("whole", "few"), [(10**9, 3), (0, 100), (0, 3)], ids=["whole", "by pages", "unpacked"])
def test_parquet_is_read_in_parts_of_any_kind(whole, few, tmp_path, monkeypatch):
    monkeypatch.setattr(SIZES, "row_groups_read_bytes", whole)
    monkeypatch.setattr(SIZES, "columns_read_together", few)
    names = ["a.b", "a", "c", "b", "a.b.c", "d", "e"]
    columns = {"e": P[:, 6], "id": IDS} | {name: P[:, j] for j, name in enumerate(names[:6])}
    for k, size in enumerate((1, 30, 1000)):
        pq.write_table(pa.table(columns), tmp_path / f"{k}.parquet", row_group_size=size)
        work = job(id_column="id", labels=names)
        decide_files(tmp_path / f"{k}.parquet", tmp_path / "q.npz", work)
        found = read_table(tmp_path / "q.npz")
        np.testing.assert_array_equal(found.values, abstain.decide(P, penalty=0.2).codes)
        assert (list(found.label_names), list(found.index)) == (names, IDS)


def test_labels_in_another_order_are_put_in_order(tmp_path):
    write_table(Table(P[:100], NAMES), tmp_path / "a.parquet")
    write_table(Table(P[100:, ::-1], NAMES[::-1]), tmp_path / "b.csv")
    decide_files([tmp_path / "a.parquet", tmp_path / "b.csv"], tmp_path / "out.npz", job())
    np.testing.assert_array_equal(decided(tmp_path / "out.npz").codes, abstain.decide(P, penalty=0.2).codes)


@pytest.mark.parametrize(
    ("names", "rows", "message"),
    [
        (NAMES[:-1], IDS, r"c\.parquet: there is no column 'label 6'; did you mean 'label 5'\?"),
        ((*NAMES, "new"), IDS, r"c\.parquet: has 8 labels, among them 'new'; .*a\.parquet has 7"),
        ((*NAMES[:-1], "new"), IDS, r"c\.parquet: there is no column 'label 6'"),
        (
            NAMES,
            range(5, 105),
            r"c\.parquet: is dense with ids of type int64, but .*a\.parquet is dense with ids of type string",
        ),
        (NAMES, None, r"c\.parquet: is dense with no ids, but .*a\.parquet is dense with ids of type string"),
    ],
)
def test_third_file_that_differs_is_told_before_anything_is_written(names, rows, message, tmp_path):
    for name in "abc":
        values, called = (
            (P[:100], NAMES) if name != "c" else (np.column_stack([P, P[:, :1]])[:100, : len(names)], names)
        )
        ids = [f"{name}{i}" for i in range(100)] if name != "c" or rows is IDS else rows
        write_table(Table(values, called, ids), tmp_path / f"{name}.parquet")
    files = [tmp_path / f"{name}.parquet" for name in "abc"]
    for output in (tmp_path / "out.parquet", f"{tmp_path}/out/"):
        with pytest.raises(InvalidDataset, match=message):
            decide_files(files, output, job())
    assert sorted(tmp_path.iterdir()) == files


def test_output_never_takes_the_place_of_an_input(tmp_path):
    files = write_parts(tmp_path / "in")
    before = [file.read_bytes() for file in files]
    for output in (tmp_path / "in", files[1], tmp_path / "in" / ".." / "in" / "part-0.parquet"):
        with pytest.raises(InvalidOutput, match="is an input; choose another output"):
            decide_files(tmp_path / "in", output, job())
    with pytest.raises(InvalidParameter, match=r"part-0\.parquet: is given twice"):
        decide_files([tmp_path / "in", files[0]], tmp_path / "out.parquet", job())
    assert [file.read_bytes() for file in files] == before


# --- ids --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [50, 1 << 21])
@pytest.mark.parametrize("whole_numbers", [False, True])
@pytest.mark.parametrize("form", ["wide", "long"])
def test_no_two_rows_have_the_same_id(run, whole_numbers, form, tmp_path, monkeypatch):
    monkeypatch.setattr(SIZES, "id_run_rows", run)
    ids = [7 * i for i in range(N)] if whole_numbers else IDS
    for k, some in enumerate(([*ids[:120]], [*ids[120:250], ids[17], *ids[250:]])):
        rows = slice(0, len(some))
        if form == "wide":
            write_table(Table(P[rows], NAMES, some), tmp_path / f"{k}.parquet")
        else:
            write_long(P[rows], tmp_path / f"{k}.parquet", ids=some, names=NAMES, shuffled=True)
    form_hint = "; the rows of an instance must follow each other" if form == "long" else ""
    message = rf"1\.parquet: row 130 has the id {ids[17]!r}, as row 17 of .*0\.parquet has{form_hint}$"
    files = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    for output in (tmp_path / "out.parquet", f"{tmp_path}/out/"):
        with pytest.raises(InvalidDataset, match=message):
            decide_files(files, output, job())
    assert not (tmp_path / "out.parquet").exists()
    with pytest.raises(InvalidDataset, match=message):  # files that are kept have ids, too
        decide_files(files, f"{tmp_path}/out/", job(), resume=True)


def test_hashes_tell_ids_apart(monkeypatch):
    monkeypatch.setattr(SIZES, "id_run_rows", 1000)
    texts = [f"{i}" * (i % 4) + "\0" * (i % 7) for i in range(20_000)] + ["é", "e", "\U0001f600", "1", "01", "1 "]
    texts = list(dict.fromkeys(filter(None, texts)))
    kinds = [
        pa.array(texts),
        pa.array(texts, pa.large_string()),
        pa.array(range(-9000, 9000)),
        pa.array(np.arange(0.0, 9, 0.01)),
    ]
    for names in kinds:

        class Sources:
            files = ("a",)
            is_long = False

            def id_of(self, file, row, names=names):
                return names[row if row < len(names) else 5].as_py()

        for repeated in (None, 5):
            unique_ids = UniqueIds(Sources())
            array = names if repeated is None else pa.concat_arrays([names, names.slice(repeated, 1)])
            for first in range(0, len(array), 777):
                unique_ids.add(Ids(array.slice(first, 777)), "a", first)
            if repeated is None:
                unique_ids.finish()
            else:
                with pytest.raises(
                    InvalidDataset, match=re.escape(f"row {len(names)} has the id {names[5].as_py()!r}, as row 5")
                ):
                    unique_ids.finish()


@pytest.mark.parametrize("empty", [None, ""])
def test_row_without_an_id(empty, tmp_path):
    pq.write_table(pa.table({"id": ["a", empty], "x": [0.1, 0.2]}), tmp_path / "p.parquet")
    with pytest.raises(InvalidDataset, match=r"p\.parquet: row 1 has no id; every row needs one"):
        decide_files(tmp_path / "p.parquet", tmp_path / "out.parquet", job())


@pytest.mark.parametrize("text", ["id,x\n\na,0.1\n,0.2\n", 'id,x\r\n"a\r\nb",0.1\r\n"",0.2\r\n', ",x\na,0.1\n\n,0.2\n"])
def test_line_without_an_id(text, tmp_path):
    (tmp_path / "p.csv").write_text(text, newline="")
    with pytest.raises(InvalidDataset, match=r"p\.csv: line 4 has no id; every row needs one"):
        decide_files(tmp_path / "p.csv", tmp_path / "out.parquet", job())


@pytest.mark.parametrize(("row", "column"), [(",x,0.5", "id"), ("b,,0.5", "label")])
@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_long_row_without_an_instance_or_a_label(kind, row, column, tmp_path):
    (tmp_path / "p.csv").write_text(f"id,label,probability\na,x,0.5\na,y,0.5\n{row}\n")
    if kind == ".parquet":
        pq.write_table(pa_csv.read_csv(tmp_path / "p.csv"), tmp_path / "p.parquet")
    place = "line 4" if kind == ".csv" else "row 2"
    message = rf"p\{kind}: {place} has nothing in column '{column}'; every row needs an instance and a label"
    with pytest.raises(InvalidDataset, match=message):
        decide_files(tmp_path / f"p{kind}", tmp_path / "out.csv", job(labels=("x", "y")))


@pytest.mark.parametrize("chunk", [40, 64, 1 << 20])
def test_lines_of_long_tables_are_counted_over_many_chunks(chunk, tmp_path, monkeypatch):
    """The rows of an instance may begin in one chunk of the text, and end some chunks later."""
    monkeypatch.setattr(SIZES, "text_chunk_bytes", chunk)
    rows = [(name, f"label {j}", 0.5) for i, name in enumerate("abcdefgh") for j in range(1 + 3 * i)]
    for bad in range(0, len(rows), 7):
        lines = [f"{name},{label},{'oops' if k == bad else p}" for k, (name, label, p) in enumerate(rows)]
        (tmp_path / "p.csv").write_text("\n".join(["id,label,probability", *lines]))
        name, label, _ = rows[bad]
        message = rf"p\.csv: line {bad + 2} \(id '{name}'\), column \d+ \(label '{label}'\) is 'oops'; a probability"
        with pytest.raises(InvalidProbabilities, match=message):
            list(map(job().decide_batch, open_sources(tmp_path / "p.csv").batches()))


def test_what_is_wrong_with_a_long_table(tmp_path):
    path = tmp_path / "p.csv"
    for text, message in [
        ("id,label,probability\na,x,0.5\na,x,0.25\n", "id 'a' lists label 'x' twice"),
        ("id,label,probability\na,x,oops\n", r"line 2 \(id 'a'\), column 0 \(label 'x'\) is 'oops'"),
        ("id,label,probability\n", "there is no label"),
        ("label,probability\nx,0.5\n", "there is no column beside 'label' and 'probability'"),
    ]:
        path.write_text(text)
        with pytest.raises(ValueError, match=rf"p\.csv: {message}"):
            decide_files(path, tmp_path / "out.csv", job(form="long"))
    assert list(tmp_path.iterdir()) == [path]


# --- bad values -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_bad_value_far_into_the_second_file(kind, tmp_path):
    bad = P.copy()
    bad[217, 4] = 1.5
    named = kind != ".npy"
    write_table(Table(P[:100], NAMES, IDS[:100]), tmp_path / f"a{kind}")
    write_table(Table(bad[100:], NAMES, IDS[100:]), tmp_path / f"b{kind}")
    place = "line 119" if "csv" in kind else "row 117"
    where = rf"{place} \(id 'r217'\), column 4 \(label 'label 4'\)" if named else rf"{place}, column 4"
    files = [tmp_path / f"a{kind}", tmp_path / f"b{kind}"]
    with pytest.raises(
        InvalidProbabilities, match=rf"b\{kind}: {where} is 1\.5; a probability is a number from 0 to 1"
    ):
        decide_files(files, tmp_path / f"out{kind}", job())
    assert sorted(tmp_path.iterdir()) == files
    for output, rows in ((".npz", 299), (".csv", 299)):
        summary = decide_files(files, tmp_path / f"out{output}", job(on_error="skip"))
        assert (summary.n_rows, summary.n_skipped) == (rows, 1)
        found = decided(tmp_path / f"out{output}")
        good = np.delete(np.arange(N), 217)
        np.testing.assert_array_equal(found.codes, abstain.decide(P, penalty=0.2).codes[good])
        assert list(found.axes.index) == ([IDS[i] for i in good] if named else good.tolist())


def test_bad_text_in_csv(tmp_path):
    (tmp_path / "p.csv").write_text(
        "id,a,b\n" + "".join(f"r{i},0.9,{'oops' if i == 70 else 0.2}\n" for i in range(100))
    )
    with pytest.raises(
        InvalidProbabilities, match=r"p\.csv: line 72 \(id 'r70'\), column 1 \(label 'b'\) is 'oops'; a prob"
    ):
        decide_files(tmp_path / "p.csv", tmp_path / "out.csv", job())
    summary = decide_files(tmp_path / "p.csv", tmp_path / "out.csv", job(on_error="abstain"))
    assert (summary.n_rows, summary.n_repaired, summary.n_abstained) == (100, 1, 1)
    assert (tmp_path / "out.csv").read_text().splitlines()[70:73] == ['"r69",1,0', '"r70",1,', '"r71",1,0']
    (tmp_path / "p.csv").write_text("id,a,b\n" + "r,0.9,0.2\n" * 200 + "s,0.9\n")
    with pytest.raises(InvalidDataset, match=r"p\.csv: line 202 has 2 cells, expected 3"):
        decide_files(tmp_path / "p.csv", tmp_path / "out2.csv", job(on_error="skip"))
    assert not (tmp_path / "out2.csv").exists()


def best_with_open(p, bad, loss, penalty):
    """Brute force over all answers that leave the bad labels open; the least expected loss of each row."""
    m = p.shape[1]
    codes = (
        abstain.exhaustive.partial_predictions(m) if not loss.gives_rankings else abstain.exhaustive.partial_rankings(m)
    )
    bound = penalty.bind(m)
    n_open = (codes == -1).sum(axis=1)
    charged = bound.counts[n_open] + (0 if bound.label_costs is None else (codes == -1) @ bound.label_costs)
    best = []
    for row, is_bad in zip(p, bad, strict=True):
        totals = abstain.exhaustive.expected_losses(np.where(is_bad, 0.0, row)[np.newaxis], loss, codes)[0] + charged
        best.append(totals[(codes[:, is_bad] == -1).all(axis=1)].min())
    return np.array(best)


PENALTIES = [
    abstain.Linear(0.07),
    abstain.Concave(0.2),
    abstain.Capped(0.05, 2),
    abstain.PerLabel([0.01, 0.2, 0.1, 0.05]),
    abstain.PerLabel([0.01, 0.2, 0.1, 0.05]) + abstain.Concave(0.1),
    abstain._core.penalties.Counting([0, 0.3, 0.1, 0.15, 0.12]),
]


CASES = [
    (loss, penalty, is_sparse)
    for loss in [
        abstain.Hamming([1, 2, 0.5, 1], [1, 1, 3, 0.2]),
        *(kind() for kind in abstain._core.losses.LOSSES.values()),
    ]
    for penalty in PENALTIES
    for is_sparse in (False, True)
    if (loss.is_decomposable or penalty.bind(4).label_costs is None)  # other losses cannot honour it
    and not (is_sparse and isinstance(penalty, abstain._core.penalties.Counting))  # it falls: refused for sparse tables
]


@pytest.mark.parametrize(("loss", "penalty", "is_sparse"), CASES, ids=repr)
def test_bad_labels_are_left_open_and_the_others_decided_best(loss, penalty, is_sparse, tmp_path):
    rng = np.random.default_rng(3)
    p = rng.random((60, 4)).round(2)
    bad = rng.random(p.shape) < 0.2
    bad[0], bad[1] = True, False
    bad &= (bad.sum(axis=1, keepdims=True) <= 2) | (not isinstance(penalty, abstain.Capped))
    if is_sparse:
        p[rng.random(p.shape) < 0.3] = 0.0
        p[bad] = 0.5
    given = np.where(bad, rng.choice([np.nan, -0.5, 7, np.inf], p.shape), p)
    table = sparse.csr_array(given) if is_sparse else given
    write_table(Table(table, list("abcd")), tmp_path / "p.npz")
    summary = decide_files(tmp_path / "p.npz", tmp_path / "out.npz", job(loss, penalty, on_error="abstain"))
    codes = read_table(tmp_path / "out.npz").values
    if is_sparse and loss.gives_rankings:
        codes = abstain.PartialRanking.from_codes(codes, abstain._core.tables.Axes(), np.empty(60)).to_dense()
    codes = codes.toarray() if sparse.issparse(codes) else codes
    assert (codes[bad] == -1).all()
    assert summary.n_repaired == bad.sum() > 0
    best = best_with_open(p, bad, loss, penalty)
    bound = penalty.bind(4)
    n_open = (codes == -1).sum(axis=1)
    charged = bound.counts[n_open] + (0 if bound.label_costs is None else (codes == -1) @ bound.label_costs)
    attained = [
        abstain.exhaustive.expected_losses(np.where(is_bad, 0.0, row)[np.newaxis], loss, code[np.newaxis])[0, 0]
        for row, is_bad, code in zip(p, bad, codes, strict=True)
    ]
    np.testing.assert_allclose(attained + charged, best, atol=1e-9)
    assert summary.total_expected_loss == pytest.approx(best.sum(), abs=1e-8)


def test_open_labels_where_none_may_be(tmp_path):
    write_table(Table([[0.9, np.nan], [np.nan, np.nan], [0.2, 0.4]]), tmp_path / "p.parquet")
    summary = decide_files(tmp_path / "p.parquet", tmp_path / "out.npy", job(penalty="none", on_error="abstain"))
    assert np.load(tmp_path / "out.npy").tolist() == [[1, -1], [-1, -1], [0, 0]]
    assert summary.total_expected_loss == pytest.approx(0.1 + 0.6)
