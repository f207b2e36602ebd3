"""``abstain calibrate``, as a user types it: what it prints and writes, and what it says to somebody who errs."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

import abstain
from abstain._cli import main
from abstain._cli.calibrate import KINDS, METHODS
from abstain.calibration import Calibration, _methods, _scores
from abstain.streams._tables import Table, read_table, write_table

N, NAMES = 400, ("sky", "sea", "sun")
IDS = [f"r{i}" for i in range(N)]
RANDOM = np.random.default_rng(0)
P = RANDOM.random((N, 3))
Y = (RANDOM.random((N, 3)) < P**2).astype(int)
Y[:, 2] = np.arange(N) < 2  # few relevant rows
ABSTAIN = [sys.executable, "-m", "abstain"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    write_table(Table(P, NAMES, IDS), tmp_path / "p.csv")
    write_table(Table(Y, NAMES, IDS), tmp_path / "y.csv")
    abstain.calibration.fit(Table(P, NAMES), Y, method="sigmoid").save(tmp_path / "c.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, code=0, **options):
    result = CliRunner().invoke(main, ["calibrate", *map(str, arguments)], **options)
    assert result.exit_code == code, result.output
    return result


def refused(*arguments, code=1):
    return " ".join(run(*arguments, code=code).stderr.split()).rpartition("Error: ")[2]


def test_the_choices_are_those_of_the_library():
    assert METHODS == _methods.NAMES
    assert KINDS == _scores.KINDS


def test_what_was_found_is_printed():
    losses = abstain.calibration.fit(Table(P, NAMES), Y, method="beta").log_losses
    change = f"log loss {losses['none']:.4g} → {losses['beta']:.4g} (cross-validated)"
    shown = run("p.csv", "y.csv", "--method", "beta", "-o", "new.json")
    assert shown.stdout == (
        f"400 rows × 3 labels, method beta, {change}: new.json\n1 label has fewer than 5 relevant rows: sun\n"
    )
    assert shown.stderr == ""
    assert Calibration.load("new.json").label_names == NAMES
    assert run("p.csv", "y.csv", "-o", "new.json", "--quiet").output == ""


def test_json():
    found = json.loads(run("p.csv", "y.csv", "-o", "new.json", "--json").stdout)
    learnt = Calibration.load("new.json")
    assert found == {
        "rows": N,
        "labels": 3,
        "method": learnt.method,
        "kind": "probability",
        "log_loss_before": learnt.log_losses["none"],
        "log_loss_after": min(learnt.log_losses.values()),
        "log_losses": learnt.log_losses,
        "gained": True,
        "rare_labels": ["sun"],
        "output": "new.json",
    }
    found = json.loads(run("p.csv", "--with", "c.json", "-o", "q.csv", "--json").stdout)
    assert found == {
        "rows": N,
        "labels": 3,
        "files": 1,
        "files_kept": 0,
        "method": "sigmoid",
        "kind": "probability",
        "calibration": "c.json",
        "output": "q.csv",
    }
    assert "error" in json.loads(run("p.csv", "y.csv", "-o", "no/c.json", "--json", code=1).stdout)


def test_a_warning_if_nothing_was_gained():
    shown = run("p.csv", "y.csv", "-o", "new.json", "--method", "none")
    assert shown.stderr == "Warning: calibration has gained nothing: the log loss is not lower than before\n"
    found = json.loads(run("p.csv", "y.csv", "-o", "new.json", "--method", "none", "--json").stdout)
    assert (found["gained"], found["log_loss_before"]) == (False, found["log_loss_after"])
    for name, values in (("one.csv", P), ("truth.csv", Y)):
        write_table(Table(values[:1], NAMES, IDS[:1]), name)
    shown = run("one.csv", "truth.csv", "-o", "new.json")
    assert shown.stderr == "Warning: calibration has gained nothing: there are too few rows to compare\n"
    assert shown.stdout.startswith("1 row × 3 labels, method none: new.json\n")


def test_scores_become_probabilities_that_are_decided():
    assert run("p.csv", "--with", "c.json", "-o", "q.parquet").stdout == (
        "400 rows × 3 labels, calibrated by sigmoid: q.parquet\n"
    )
    expected = Calibration.load("c.json").transform(P)
    np.testing.assert_array_equal(read_table("q.parquet").values, expected)
    result = CliRunner().invoke(main, ["decide", "q.parquet", "--penalty", "0.2", "-o", "d.csv"])
    assert result.exit_code == 0, result.output
    decided = abstain.PartialPrediction(read_table("d.csv"))
    np.testing.assert_array_equal(decided.codes, abstain.decide(expected, penalty=0.2).codes)


@pytest.mark.parametrize("options", [["--missing-values", "nan"], ["--missing-values", "-1"]])
def test_labels_that_nobody_has_looked_at(options):
    sign = float(options[1])
    write_table(Table(np.where(P < 0.2, sign, Y), NAMES, IDS), "partly.csv")
    run("p.csv", "partly.csv", *options, "-o", "new.json")
    np.testing.assert_allclose(Calibration.load("new.json").n_known, (P >= 0.2).sum(axis=0))


def test_weights():
    write_table(Table(np.arange(N)[:, np.newaxis] % 3, ["weight"], IDS), "w.csv")
    run("p.csv", "y.csv", "--weights", "w.csv", "-o", "new.json")
    np.testing.assert_allclose(Calibration.load("new.json").n_known, (np.arange(N) % 3).sum())
    assert refused("p.csv", "y.csv", "--weights", "p.json", "-o", "new.json", code=2).endswith("does not exist.")


def test_logits_and_folds():
    logits = np.log(P / (1 - P))
    write_table(Table(logits, NAMES, IDS), "logits.csv")
    run("logits.csv", "y.csv", "--kind", "logit", "--folds", "3", "--method", "sigmoid", "-o", "new.json")
    expected = abstain.calibration.fit(Table(logits, NAMES), Y, method="sigmoid", kind="logit", cv=3)
    found = Calibration.load("new.json")
    assert (found.kind, found.log_losses) == ("logit", pytest.approx(expected.log_losses, rel=1e-9))
    run("logits.csv", "--with", "new.json", "-o", "q.csv", "--kind", "logit")
    np.testing.assert_allclose(read_table("q.csv").values, expected.transform(logits), rtol=1e-9)


@pytest.mark.slow
def test_pipes():
    learnt = subprocess.run(
        [*ABSTAIN, "calibrate", "-", "y.csv", "-o", "new.json", "-q"], input=Path("p.csv").read_bytes(), check=True
    )
    assert learnt.returncode == 0
    shown = subprocess.run(
        [*ABSTAIN, "calibrate", "-", "--with", "new.json", "--json"],
        input=Path("p.csv").read_bytes(),
        capture_output=True,
        check=True,
    )
    assert shown.stdout.startswith(b'"id","sky","sea","sun"\n"r0",')
    assert shown.stdout.count(b"\n") == N + 1
    assert json.loads(shown.stderr)["rows"] == N


def test_a_folder_is_continued():
    Path("in").mkdir()
    for k in range(2):
        write_table(Table(P[k::2], NAMES, IDS[k::2]), f"in/{k}.parquet")
    shown = run("in", "--with", "c.json", "-o", "out/", "--resume")
    assert shown.stdout == "400 rows × 3 labels (2 files), calibrated by sigmoid: out/\n"
    shown = run("in", "--with", "c.json", "-o", "out/", "--resume")
    assert shown.stdout.endswith("\n2 files were there already\n")


def test_several_files_with_labels_and_ids_of_ones_choice():
    for k in range(2):
        columns = np.column_stack([np.arange(k, N, 2), P[k::2], np.full(N // 2, 7)])
        write_table(Table(columns, ["nr", *NAMES, "other"]), f"{k}.csv")
    run("0.csv", "1.csv", "--with", "c.json", "--labels", "sun,sky,sea", "--id-column", "nr", "-o", "q.csv")
    found = read_table("q.csv", index="nr")
    assert found.label_names == ("sun", "sky", "sea")
    order = np.array([int(float(name)) for name in found.index])
    np.testing.assert_allclose(found.values, Calibration.load("c.json").transform(P)[order][:, [2, 0, 1]], rtol=1e-9)


# Mistakes


def test_files_in_the_wrong_order():
    said = refused("y.csv", "p.csv", "-o", "new.json")
    assert said.startswith("p.csv: line 2 (id 'r0'), column 0 (label 'sky') is 0.6369616873214543; the truth is 0 or 1")
    assert said.endswith("; are the files in the wrong order? Scores come first, then the truth")
    assert not Path("new.json").exists()


def test_per_cent_and_logits():
    for values, hint in (
        (100 * P, "are these per cent? divide them by 100"),
        (
            np.log(P / (1 - P)),
            'apply the sigmoid 1/(1+exp(−x)): abstain.label_probabilities(x, kind="logit"), or --kind logit',
        ),
    ):
        write_table(Table(values, NAMES, IDS), "x.csv")
        assert refused("x.csv", "y.csv", "-o", "new.json").endswith(hint)
    write_table(Table(100 * P, NAMES, IDS), "x.csv")
    assert refused("x.csv", "--with", "c.json", "-o", "q.csv").endswith("are these per cent? divide them by 100")
    assert not Path("q.csv").exists()


def test_a_calibration_of_other_labels():
    abstain.calibration.fit(Table(P, ["sky", "sea", "son"]), Y, method="sigmoid").save("other.json")
    assert refused("p.csv", "--with", "other.json", "-o", "q.csv") == (
        "p.csv: its labels are not those of the calibration: it has no label 'son'; the calibration has no label 'sun' "
        "(--labels chooses others)"
    )


def test_an_empty_cell_in_the_truth():
    Path("gap.csv").write_text(Path("y.csv").read_text().replace('"r7",0,', '"r7",,').replace('"r7",1,', '"r7",,'))
    assert refused("p.csv", "gap.csv", "-o", "new.json") == (
        "gap.csv: line 9 (id 'r7'), column 0 (label 'sky') is empty; the truth is 0 or 1; if empty cells are labels "
        "that nobody has looked at, leave them out (--missing-values nan)"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["p.csv", "-o", "c2.json"], "learnt from SCORES and TRUTH: give the truth, too; or apply one"),
        (["p.csv", "y.csv", "p.csv", "-o", "c2.json"], "put several files into a folder; or apply one"),
        (["p.csv", "y.csv"], "where to write the calibration? Give -o FILE.json"),
        (["p.csv", "y.csv", "-o", "q.csv"], "a calibration is a .json file, not 'q.csv'"),
        (["p.csv", "y.csv", "-o", "c2.json", "--resume"], "--resume is for files of probabilities"),
        (["-", "-", "-o", "c2.json"], "standard input is one table, not two"),
        (["p.csv", "--with", "c.json", "-o", "q.csv", "--method", "beta"], "--method is for learning a calibration"),
        (["p.csv", "--with", "c.json", "-o", "q.csv", "--folds", "3"], "--folds is for learning a calibration"),
        (["p.csv", "--with", "c.json", "-o", "q.csv", "--resume"], "--resume needs a folder"),
        (["p.csv", "--with", "c.json", "-o", "q.csv", "--kind", "logit"], "of the kind probability, not logit"),
        (["p.csv", "--with", "nowhere.json"], "'nowhere.json' does not exist"),
        (["p.csv", "y.csv", "-o", "c2.json", "--folds", "1"], "1 is not in the range x>=2"),
        (["p.csv", "y.csv", "-o", "c2.json", "--method", "plat"], "'plat' is not one of 'auto'"),
    ],
)
def test_wrong_usage(arguments, message, folder):
    before = sorted(folder.iterdir())
    assert message in refused(*arguments, code=2)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["p.csv", "--with", "y.csv", "-o", "q.csv"], "y.csv: is no JSON file"),
        (["p.csv", "--with", "c.json", "-o", "c.json"], "c.json: is an input; choose another output"),
        (["p.csv", "--with", "c.json", "-o", "p.csv"], "p.csv: is an input; choose another output"),
        (["p.csv", "--with", "c.json", "-o", "q.xlsx"], "q.xlsx: unknown kind of file; expected a name that ends in"),
        (["p.csv", "y.csv", "-o", "nowhere/c.json"], "nowhere/c.json: there is no folder 'nowhere'"),
    ],
)
def test_what_is_refused(arguments, message, folder):
    before = {file: file.read_bytes() for file in folder.iterdir()}
    assert refused(*arguments).startswith(message)
    assert {file: file.read_bytes() for file in folder.iterdir()} == before


def test_an_old_calibration_stays_if_a_new_one_cannot_be_learnt():
    before = Path("c.json").read_bytes()
    refused("y.csv", "p.csv", "-o", "c.json")
    assert Path("c.json").read_bytes() == before


def completed(*arguments):
    *before, typed = arguments
    shell = ShellComplete(main, {}, "abstain", "_ABSTAIN_COMPLETE")
    return [item.value for item in shell.get_completions(before, typed)]


def test_completion():
    assert completed("cal") == ["calibrate"]
    assert completed("calibrate", "--method", "iso") == ["isotonic"]
    assert completed("calibrate", "--kind", "") == ["probability", "logit", "score"]
    assert "--with" in completed("calibrate", "--w")
