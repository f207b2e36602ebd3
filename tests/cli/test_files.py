"""The commands for files: they write what the library decides, and print it in one manner."""

import io
import json
import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc as pa_ipc
import pytest
from click.testing import CliRunner

import abstain
from abstain._cli import main
from abstain.metrics import answered_error_rate, error_capture_rate, generalized_loss
from abstain.streams._tables import Table, read_table, write_table

RNG = np.random.default_rng(0)
NAMES = ("sky", "sea", "sun", "sand")
P = RNG.random((50, 4)).round(3)
TRUTH = (RNG.random(P.shape) < P).astype(np.int8)
IDS = [f"r{i}" for i in range(50)]
COMMANDS = [
    ["decide"], ["budget"], ["evaluate"], ["report"], ["demo"], ["completion"],
    ["datasets"], ["datasets", "list"], ["datasets", "fetch"], ["datasets", "convert"],
    ["experiment"], ["experiment", "run"], ["experiment", "figures"], ["experiment", "verdict"],
]  # fmt: skip
WITH_OUTPUT = [command for command in COMMANDS if command[-1] not in ("completion", "datasets", "experiment")]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    write_table(Table(P, NAMES, IDS), tmp_path / "p.csv")
    write_table(Table(P, NAMES, IDS), tmp_path / "p.parquet")
    write_table(Table(TRUTH, NAMES, IDS), tmp_path / "truth.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, code=0, **options):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], **options)
    assert result.exit_code == code, result.output
    return result


def answers(file):
    return abstain.PartialPrediction(read_table(file))


def piped(*arguments, data=b"", code=0):
    """A real process between two pipes."""
    done = subprocess.run([sys.executable, "-m", "abstain", *arguments], input=data, capture_output=True)
    assert done.returncode == code, done.stderr.decode()
    return done


# decide


@pytest.mark.parametrize(
    ("options", "loss", "penalty", "words"),
    [
        ([], "hamming", 0.1, "Hamming, a label left open costs 0.1"),
        (["--penalty", "0.3"], "hamming", 0.3, "Hamming, a label left open costs 0.3"),
        (
            ["--loss", "f1", "--penalty", "concave:0.3"],
            "f1",
            abstain.Concave(0.3),
            "FMeasure(beta=1, zero_division=1), penalty Concave(0.3)",
        ),
        (
            ["--loss", "fbeta:2", "--penalty", "linear:0.05"],
            abstain.FMeasure(2),
            0.05,
            "FMeasure(beta=2, zero_division=1), a label left open costs 0.05",
        ),
        (
            ["--loss", "hamming:false_negative=5,false_positive=0.5"],
            abstain.Hamming(5, 0.5),
            0.1,
            "Hamming(false_negative=5, false_positive=0.5), a label left open costs 0.1",
        ),
        (
            ["--loss", "hamming:false_positive=2"],
            abstain.Hamming(1, 2),
            0.1,
            "Hamming(false_positive=2), a label left open costs 0.1",
        ),
        (
            ["--loss", "jaccard", "--penalty", "capped:0.02,1"],
            "jaccard",
            abstain.Capped(0.02, 1),
            "Jaccard(zero_division=1), a label left open costs 0.02, at most 1 in a row",
        ),
        (
            ["--penalty", "capped:concave:0.2,2"],
            "hamming",
            abstain.Capped(abstain.Concave(0.2), 2),
            "Hamming, penalty Concave(0.2), at most 2 in a row",
        ),
        (["--loss", "SUBSET", "--penalty", "none"], "subset", "none", "SubsetZeroOne, no label may be left open"),
    ],
)
def test_losses_and_penalties_by_name(options, loss, penalty, words):
    result = run("decide", "p.parquet", "-o", "q.parquet", *options)
    expected = abstain.decide(Table(P, NAMES, IDS), loss, penalty)
    found = answers("q.parquet")
    np.testing.assert_array_equal(found.labels, expected.labels)
    assert (found.label_names, list(found.axes.index)) == (NAMES, IDS)
    share, mean = expected.abstained.mean(), expected.expected_loss.mean()
    told = f"50 rows × 4 labels, {share:.2%} left open, expected loss {mean:.4g} per row ({words}): q.parquet\n"
    assert result.output == told


def test_a_price_for_each_label_from_a_file():
    pd.DataFrame({"label": NAMES[::-1], "cost": [0.4, 0.3, 0.2, 0.1]}).to_csv("prices.csv", index=False)
    run("decide", "p.csv", "-o", "q.csv", "--penalty", "prices.csv")
    expected = abstain.decide(P, "hamming", abstain.PerLabel([0.1, 0.2, 0.3, 0.4]))
    np.testing.assert_array_equal(answers("q.csv").labels, expected.labels)


def test_labels_ids_and_a_queue():
    (found,) = json.loads(
        f"[{run('decide', 'p.csv', '-o', 'q.csv', '--labels', 'sun,sky', '--queue', 'r.csv', '--json').output}]"
    )
    expected = abstain.decide(P[:, [2, 0]])
    np.testing.assert_array_equal(answers("q.csv").labels, expected.labels)
    queue = pd.read_csv("r.csv")
    assert list(queue) == ["id", "label", "probability", "saves"]
    assert queue["saves"].is_monotonic_decreasing
    assert len(queue) == found["abstained"] == expected.n_abstained.sum()
    assert set(queue["label"]) == {"sun", "sky"}
    assert (found["rows"], found["labels"], found["output"], found["queue"]) == (50, 2, "q.csv", "r.csv")
    assert found["answered_1"] == (expected.labels == 1).sum()
    Path("names.txt").write_text("sun\nsky\n")
    run("decide", "p.csv", "-o", "q2.csv", "--labels", "@names.txt")
    assert read_table("q2.csv").label_names == ("sun", "sky")
    pd.DataFrame({"sky": P[:, 0], "who": IDS, "sea": P[:, 1]}).to_csv("ids.csv", index=False)
    run("decide", "ids.csv", "-o", "q3.csv", "--id-column", "who")
    assert pd.read_csv("q3.csv", index_col=0).index.tolist() == IDS


def test_long_tables_and_several_files():
    frame = pd.DataFrame(P.round(1), index=IDS, columns=NAMES).rename_axis("id").reset_index()
    long = frame.melt("id", var_name="label", value_name="probability")
    long = long[long["probability"] > 0].sort_values("id", key=lambda ids: ids.str[1:].astype(int))
    long.to_csv("long.csv", index=False)
    run("decide", "long.csv", "-o", "q.csv", "--labels", ",".join(NAMES))
    found = pd.read_csv("q.csv")
    expected = pd.DataFrame(abstain.decide(P.round(1)).labels, index=IDS, columns=NAMES).stack()
    listed = found.set_index(["id", "label"])["answer"].fillna(-1).astype(int)
    assert listed.to_dict() == expected[expected != 0].to_dict()
    run("decide", "p.csv", "p.parquet", "-o", "both.csv", code=1)  # the same ids twice
    write_table(Table(P, NAMES, [f"s{i}" for i in range(50)]), "s.parquet")
    run("decide", "p.csv", "s.parquet", "-o", "both.csv")
    np.testing.assert_array_equal(answers("both.csv").labels, np.vstack([abstain.decide(P).labels] * 2))


def test_quiet_says_nothing_and_folders_resume():
    Path("scores").mkdir()
    for k in range(3):
        write_table(Table(P[k::3], NAMES, IDS[k::3]), f"scores/{k}.parquet")
    assert run("decide", "scores", "-o", "out/", "--quiet").output == ""
    np.testing.assert_array_equal(answers("out/1.parquet").labels, abstain.decide(P[1::3]).labels)
    Path("out/1.parquet").unlink()
    result = run("decide", "scores", "-o", "out/", "--resume")
    assert result.output.splitlines()[0].startswith("50 rows × 4 labels (3 files), ")
    assert result.output.splitlines()[1] == "2 files were there already"
    assert sorted(file.name for file in Path("out").glob("[!.]*")) == ["0.parquet", "1.parquet", "2.parquet"]


@pytest.mark.parametrize(("how", "message"), [("skip", "1 row left out"), ("abstain", "1 label left open because")])
def test_bad_values_are_counted(how, message):
    bad = P.copy()
    bad[7, 1] = np.nan
    write_table(Table(bad, NAMES, IDS), "bad.parquet")
    result = run("decide", "bad.parquet", "-o", "q.parquet", "--on-error", how, "--json")
    assert message in result.stderr
    found = json.loads(result.stdout)
    assert (found["rows_skipped"], found["labels_repaired"]) == ((1, 0) if how == "skip" else (0, 1))
    assert found["rows"] == 50 - found["rows_skipped"]
    kept = read_table("q.parquet")
    assert ("r7" in list(kept.index)) == (how == "abstain")
    result = run("decide", "bad.parquet", "-o", "none.parquet", code=1)
    bad = "bad.parquet: row 7 (id 'r7'), column 1 (label 'sea') is empty or nan; a probability is a number from 0 to 1"
    assert result.output == f"Error: {bad} (--on-error skip or abstain goes on without it)\n"
    assert not Path("none.parquet").exists()


def test_rows_are_not_skipped_where_nobody_would_miss_them():
    np.save("p.npy", P)
    pd.DataFrame({"id": IDS, "label": "sky", "probability": P[:, 0]}).to_csv("long.csv", index=False)
    for arguments in (["p.npy", "-o", "q.npy"], ["long.csv", "-o", "q.csv"], ["long.csv"], ["long.csv", "-o", "out/"]):
        result = run("decide", *arguments, "--on-error", "skip", code=1)
        assert result.output.startswith("Error: bad rows cannot be skipped: ")
    run("decide", "long.csv", "-o", "q.npz", "--on-error", "skip")


def test_an_index_that_pandas_only_describes():
    frame = pd.DataFrame(P, columns=NAMES, index=pd.RangeIndex(500, 600, 2, name="doc"))
    frame.to_parquet("p.parquet", row_group_size=20)
    for chosen in ([], ["--id-column", "doc"]):
        run("decide", "p.parquet", "-o", "q.csv", "--queue", "r.csv", *chosen)
        assert pd.read_csv("q.csv", index_col="doc").index.tolist() == list(range(500, 600, 2))
        assert set(pd.read_csv("r.csv")["id"]) <= set(range(500, 600, 2))
    assert list(read_table("p.parquet").index) == list(range(500, 600, 2))


# Pipes and terminals


@pytest.mark.slow
def test_csv_through_pipes():
    done = piped("decide", "-", "--penalty", "0.3", data=Path("p.csv").read_bytes())
    frame = pd.read_csv(io.BytesIO(done.stdout), index_col=0)
    np.testing.assert_array_equal(frame.fillna(-1).to_numpy(), abstain.decide(P, penalty=0.3).labels)
    assert done.stderr.decode().startswith("50 rows × 4 labels, ")
    assert piped("decide", "p.csv", "--quiet").stderr == b""


def test_arrow_streams_through_pipes():
    buffer = io.BytesIO()
    table = pa.Table.from_pandas(pd.DataFrame(P, columns=NAMES))
    with pa_ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table, 9)
    done = piped("decide", "-", data=buffer.getvalue())
    found = pa_ipc.open_stream(done.stdout).read_all().to_pandas()
    np.testing.assert_array_equal(found.fillna(-1).to_numpy(), abstain.decide(P).labels)


def test_budget_from_a_pipe_reads_it_twice():
    done = piped("budget", "-", "--rate", "0.1", "-o", "-", "--json", data=Path("p.csv").read_bytes())
    frame = pd.read_csv(io.BytesIO(done.stdout), index_col=0)
    assert frame.isna().to_numpy().sum() == 20 == json.loads(done.stderr)["reviews"]


def in_terminal(*arguments):
    """What a process shows on a terminal."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    process = subprocess.Popen(
        [sys.executable, "-m", "abstain", *arguments], stdout=theirs, stderr=theirs, stdin=theirs
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # as Linux says that nobody writes any more
            break
        if not more:
            break
        shown += more
    os.close(ours)
    return process.wait(), shown.decode()


@pytest.mark.slow
def test_a_bar_on_a_terminal_and_none_in_a_pipe():
    np.save("many.npy", np.random.default_rng(0).random((400_000, 50), np.float32))
    code, shown = in_terminal("decide", "many.npy", "-o", "q.npy", "--loss", "f1", "--penalty", "0.01")
    assert code == 0
    assert re.search(r"decide: +\d+%\|.*\| [\d.]+k?/400k \[\d\d:\d\d<\d\d:\d\d, *[\d.]+[kM]? rows/s\]", shown)
    code, shown = in_terminal("decide", "many.npy", "-o", "q.npy", "--quiet")
    assert (code, shown) == (0, "")
    assert piped("decide", "many.npy", "-o", "q.npy").stderr == b""
    code, shown = in_terminal("decide", "p.csv")
    assert code == 2
    assert "where to write the answers? Give -o FILE, or -o - to see them here" in shown
    code, shown = in_terminal("decide", "p.csv", "-o", "-", "--labels", "sky")
    assert code == 0
    assert '"r0",' in shown


# budget and evaluate


def test_budget_prints_the_price_and_spends_it():
    expected = abstain.budget.solve(P, count=30)
    found = json.loads(run("budget", "p.csv", "--count", "30", "--json").output)
    assert (found["reviews"], found["budget"], found["output"]) == (30, 30, None)
    assert found["price"] == pytest.approx(expected.price.cost, rel=1e-5)
    assert found["bill"]["total"] == pytest.approx(expected.bill.total, rel=1e-5)
    result = run("budget", "p.csv", "--count", "30", "-o", "q.csv", "--queue", "r.csv")
    assert result.output.splitlines()[0] == "30 of 30 reviews of 50 rows × 4 labels"
    assert result.output.splitlines()[-2:] == ["answers: q.csv", "queue: r.csv"]
    assert answers("q.csv").n_abstained.sum() == len(pd.read_csv("r.csv")) == 30
    pd.DataFrame({"label": ["sea"], "limit": [3]}).to_csv("experts.csv", index=False)
    run("budget", "p.csv", "--count", "40", "--per-label", "experts.csv", "-o", "q.csv")
    by_label = answers("q.csv").abstained.sum(axis=0)
    assert (by_label[1], by_label.sum()) == (3, 40)
    pd.DataFrame({"label": NAMES, "cost": [0.1, 0.4, 0.2, 0.3]}).to_csv("costs.csv", index=False)
    found = json.loads(run("budget", "p.csv", "--review", "costs.csv", "--rate", "0.2", "--json").output)
    expected = abstain.budget.solve(P, rate=0.2, review=[0.1, 0.4, 0.2, 0.3])
    assert found["bill"]["reviews"] == pytest.approx(expected.bill.reviews, rel=1e-5)
    assert set(found["price_by_label"]) == set(NAMES)


def test_the_price_of_a_budget_with_a_cap_says_so():
    printed = run("budget", "p.csv", "--count", "30", "--per-instance", "1").output.splitlines()[1]
    cost = abstain.budget.solve(P, count=30, per_instance=1).price.cost
    assert float(printed.removeprefix("price of a review: ").partition(",")[0]) == pytest.approx(cost, rel=1e-5)
    assert printed.endswith(", with at most 1 review of a row")


def test_evaluate_scores_as_the_metrics_do():
    run("decide", "p.parquet", "-o", "q.parquet", "--penalty", "0.3")
    prediction = abstain.decide(P, penalty=0.3)
    asked = ["evaluate", "q.parquet", "truth.csv", "--penalty", "0.3", "--probabilities", "p.csv"]
    found = json.loads(run(*asked, "--json").output)
    assert found["generalized_loss"] == pytest.approx(generalized_loss(TRUTH, prediction, loss="hamming", penalty=0.3))
    assert found["expected_loss"] == pytest.approx(prediction.expected_loss.mean())
    assert found["answered_error_rate"] == pytest.approx(answered_error_rate(TRUTH, prediction))
    full = abstain.decide(P, penalty="none")
    assert found["error_capture_rate"] == pytest.approx(error_capture_rate(TRUTH, prediction, full))
    said = run(*asked).output.splitlines()
    assert len(said) == 4
    assert said[2].startswith("generalised loss (Hamming, a label left open costs 0.3): ")
    run("decide", "p.parquet", "-o", "ranks.parquet", "--loss", "rank", "--penalty", "0.2")
    found = json.loads(
        run("evaluate", "ranks.parquet", "truth.csv", "--loss", "rank", "--penalty", "0.2", "--json").output
    )
    ranking = abstain.decide(P, "rank", 0.2)
    assert found["generalized_loss"] == pytest.approx(generalized_loss(TRUTH, ranking, loss="rank", penalty=0.2))
    assert found["answered_error_rate"] is None


# datasets and completion


def test_data_sets_are_listed_and_converted(folder):
    listed = json.loads(run("datasets", "list", "--json").output)["datasets"]
    assert {"name": "yeast", "instances": 2417, "features": 103, "labels": 14}.items() <= {
        dataset["name"]: dataset for dataset in listed
    }["yeast"].items()
    arff = (
        "@relation 'tiny: -C 2'\n@attribute a {0,1}\n@attribute b {0,1}\n@attribute x numeric\n@data\n1,0,3.5\n0,1,4\n"
    )
    (folder / "tiny.arff").write_text(arff)
    result = run("datasets", "convert", "tiny.arff", "-o", "tables", "--as", "csv")
    assert result.output == (
        "tiny: 2 instances × 1 feature × 2 labels\n  tables/tiny-features.csv\n  tables/tiny-labels.csv\n"
    )
    assert read_table("tables/tiny-labels.csv").values.tolist() == [[1, 0], [0, 1]]
    assert read_table("tables/tiny-features.csv").values.tolist() == [[3.5], [4]]
    assert "nosuch" in run("datasets", "fetch", "nosuch", code=1).output


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["datasets", "convert", "moved.arff", "-o", "tables", "--as", "npz"],
        ["experiment", "run", "--datasets", "./moved.arff", "--folds", "2", "--dry-run"],
    ],
)
def test_warnings_are_a_line_each(arguments, folder):
    arff = "@relation 'm: -C 1'\n@attribute a {0,1}\n@attribute y {0,1}\n@data\n1,0\n0,1\n"
    (folder / "moved.arff").write_text(arff)
    (folder / "moved.xml").write_text("<labels><label name='y'/></labels>")
    warning = (
        "Warning: moved.arff: the labels are 'y', as moved.xml lists them; -C 1 in the relation, which stands for 'a', "
        "is ignored. Pass xml= or labels= to choose\n"
    )
    assert piped(*arguments).stderr.decode() == warning
    assert run(*arguments).stderr == warning
    assert run(*arguments, "--quiet").stderr == ""
    chosen = [*arguments, "--labels", "-1"] if "convert" in arguments else []
    assert not chosen or piped(*chosen).stderr == b""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes(shell):
    script = run("completion", shell).output
    assert "_ABSTAIN_COMPLETE" in script


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("abstain ", ["budget", "decide", "evaluate"]),
        ("abstain decide --loss ", ["hamming", "jaccard"]),
        ("abstain decide --penalty co", ["concave:0.3"]),
        ("abstain decide --on", ["--on-error"]),
    ],
)
def test_what_the_shell_offers(words, offered):
    environment = os.environ | {
        "_ABSTAIN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)
    }  # fmt: skip
    code = "from abstain._cli import main; main(prog_name='abstain')"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert {f"plain,{word}" for word in offered} <= set(done.stdout.splitlines())


# What all commands share


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_helps_with_examples(command):
    shown = run(*command, "--help").output
    assert "Examples" in shown
    assert f"abstain {' '.join(command[:1])}" in shown


@pytest.mark.parametrize("command", WITH_OUTPUT, ids=" ".join)
def test_every_command_can_be_quiet_or_print_json(command):
    shown = run(*command, "--help").output
    assert "--quiet" in shown
    assert "--json" in shown


def test_exit_codes_are_documented():
    shown = run("--help").output
    assert all(re.search(rf"^ +{code} ", shown, re.M) for code in (0, 1, 2, 130, 141))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["decide", "nothing.csv"], 2, "'nothing.csv' does not exist"),
        (["decide", "p.csv", "--loss", "hammin"], 2, "there is no loss 'hammin'; did you mean 'hamming'? expected"),
        (["decide", "p.csv", "--loss", "fbeta:-1"], 2, "beta is -1"),
        (["decide", "p.csv", "--loss", "hamming:mist=2"], 2, "'mist=2' is not false_negative=… or false_positive=…"),
        (["decide", "p.csv", "--penalty", "-1"], 2, "-1"),
        (["decide", "p.csv", "--penalty", "cheap"], 2, "'cheap' is not a penalty; expected 0.1, linear:0.1"),
        (["decide", "p.csv", "--penalty", "nan"], 2, "nan"),
        (["decide", "p.csv", "-o", "q.xlsx"], 1, "q.xlsx: unknown kind of file"),
        (["decide", "p.csv", "-o", "nowhere/q.csv"], 1, "nowhere/q.csv: there is no folder 'nowhere'"),
        (["decide", "p.csv", "-o", "p.csv"], 1, "p.csv: is an input; choose another output"),
        (["decide", "p.csv", "-o", "q.csv", "--labels", "sky,see"], 1, "no column 'see'; did you mean 'sea'?"),
        (["decide", "p.csv", "-o", "q.csv", "--id-column", "name"], 1, "p.csv: there is no column 'name'"),
        (["decide", "p.csv", "-o", "q.csv", "--resume"], 2, "--resume needs a folder"),
        (["decide", "p.csv", "-o", "q.csv", "--cluster", "tcp://x:1"], 2, "--cluster needs a folder"),
        (["decide", "p.csv", "-o", "out/", "--cluster", "x", "--queue", "r.csv"], 2, "a cluster writes no queue"),
        (["decide", "truth.csv", "p.csv", "-o", "q.csv"], 1, "has the id 'r0', as row 0 of truth.csv has"),
        (["budget", "p.csv"], 2, "what limits the reviews?"),
        (["budget", "p.csv", "--rate", "0.1", "--count", "3"], 2, "give --rate or --count, not both"),
        (["budget", "p.csv", "--rate", "1.5"], 2, "1.5 is not a share, a number from 0 to 1; 1.5 % is 0.015"),
        (["budget", "p.csv", "--rate", "0.1", "--queue", "r.csv"], 2, "a queue belongs to answers"),
        (["budget", "p.csv", "--rate", "0.1", "-o", "out/"], 2, "a budget is spent over all inputs, into one file"),
        (["budget", "p.csv", "--rate", "0.1", "--loss", "f1", "--per-label", "3"], 1, "per_label"),
        (["evaluate", "p.csv", "truth.csv"], 1, "p.csv: line 2 (id 'r0'), column 0 (label 'sky') is 0.637; a label"),
        (["evaluate", "-", "-"], 2, "standard input is one table, not two"),
        (["datasets", "convert", "p.csv"], 1, "p.csv"),
        (["completion", "tcsh"], 2, "'tcsh' is not one of"),
    ],
)  # fmt: skip
def test_mistakes_are_explained_in_a_line(arguments, code, message, folder):
    before = sorted(folder.rglob("*"))
    result = run(*arguments, code=code)
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert code == 2 or result.output.count("\n") == 1
    assert sorted(folder.rglob("*")) == before
