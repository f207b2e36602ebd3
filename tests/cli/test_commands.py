"""The command line, as a user types it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import abstain
from abstain._cli import demo_example, main


@pytest.fixture(scope="module")
def small():
    return demo_example.run(n_train=300, n_test=200, random_state=3)


@pytest.mark.slow
def test_the_demo_prints_a_table_and_writes_a_figure_and_a_report(tmp_path):
    figure = tmp_path / "silence.png"
    result = CliRunner().invoke(main, ["demo", "--train", "300", "--test", "200", "-o", str(figure)])
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.output.splitlines() if line[:5].strip().startswith("0.")]
    assert [float(row[0]) for row in rows] == list(demo_example.COSTS)
    assert figure.read_bytes()[:4] == b"\x89PNG"
    page = figure.with_suffix(".html")
    assert result.output.splitlines()[-2:] == [f"Figure: {figure.resolve()}", f"Report: {page.resolve()}"]
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.slow
def test_silence_pays(small):
    outcomes = [small.outcome(cost) for cost in demo_example.COSTS]
    assert all(o.abstain_optimally <= min(o.answer_all, o.abstain_all) * 1.05 for o in outcomes)
    assert outcomes[-1].abstain_optimally == pytest.approx(outcomes[-1].answer_all)
    assert [o.abstain_all for o in outcomes] == pytest.approx([10 * cost for cost in demo_example.COSTS])
    assert np.all(np.diff([o.abstention_rate for o in outcomes]) <= 0)


def test_the_pictures_shown_are_described_right(small):
    labels = small.decide(demo_example.SHOWN_COST).labels
    shown = small.examples(demo_example.SHOWN_COST, 6)
    assert len(set(shown)) == 6
    wrong = small.has_wrong_answer(demo_example.SHOWN_COST)
    assert wrong[shown].tolist() == [False] * 5 + [True]
    for i in shown:
        yes, ask, there = demo_example.describe(labels[i], small.truth[i])
        assert there == " ".join(str(d) for d in range(10) if small.truth[i, d])
        assert yes == (" ".join(str(d) for d in range(10) if labels[i, d] == 1) or "–")
        assert ask == (" ".join(str(d) for d in range(10) if labels[i, d] == -1) or "–")
        assert bool(demo_example.mistakes(labels[i], small.truth[i])) == wrong[i]


@pytest.mark.parametrize(
    ("labels", "truth", "said"),
    [
        ([1, 0, -1, -1], [1, 0, 1, 0], ""),
        ([0, 0, 1, 0], [1, 1, 1, 0], "0 1 missed"),
        ([0, 1, 1, 0], [1, 0, 1, 0], "0 missed, 1 wrongly seen"),
    ],
)
def test_mistakes_in_words(labels, truth, said):
    assert demo_example.mistakes(np.array(labels, np.int8), np.array(truth, np.uint8)) == said


@pytest.mark.parametrize("format_", ["pdf", "svg"])
def test_other_formats(small, tmp_path, format_):
    demo_example.draw(small, [small.outcome(cost) for cost in demo_example.COSTS], tmp_path / f"figure.{format_}")
    assert (tmp_path / f"figure.{format_}").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dmo"], "No such command 'dmo'."),
        (["demo", "--output", "figure.docx"], "'figure.docx' does not end in .png, .pdf or .svg"),
        (["demo", "--train", "5"], "5 is not in the range x>=100"),
        (["demo", "--seed", "4294967295"], "4294967295 is not in the range"),
    ],
)
def test_mistakes_are_explained(arguments, message):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["demo", "--help"],
        ["-h"],
        ["report", "--help"],
        ["calibrate", "--help"],
        ["experiment", "--help"],
        ["experiment", "run", "--help"],
        ["experiment", "figures", "--help"],
        ["experiment", "verdict", "--help"],
    ],
)
def test_help_comes_at_once(arguments):
    """It imports nothing heavy."""
    code = f"import sys; from abstain._cli import main; main({arguments}, standalone_mode=False)"
    code += "; assert 'sklearn' not in sys.modules"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "Usage: " in shown
    assert "\\b" not in shown
    assert max(map(len, shown.splitlines())) <= 100


@pytest.mark.slow
def test_the_smallest_demo_allowed(tmp_path):
    figure = tmp_path / "small.pdf"
    result = CliRunner().invoke(main, ["demo", "--train", "100", "--test", "50", "-o", str(figure)])
    assert result.exit_code == 0, result.output
    assert figure.read_bytes()[:4] == b"%PDF"


@pytest.mark.slow
def test_without_matplotlib_there_is_a_table_but_no_figure(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = CliRunner().invoke(main, ["demo", "--train", "100", "--test", "50", "-o", str(tmp_path / "figure.png")])
    assert result.exit_code == 0
    assert "average loss per picture" in result.output
    assert result.output.splitlines()[-2] == "No figure: the figure needs matplotlib: pip install matplotlib"


def linked_to_nowhere(folder):
    (folder / "demo.png").symlink_to(folder / "nowhere" / "demo.png")
    return "demo.png"


def a_folder_instead_of_the_report(folder):
    (folder / "demo.html").mkdir()
    return "demo.html"


@pytest.mark.parametrize("obstacle", [linked_to_nowhere, a_folder_instead_of_the_report])
def test_what_cannot_be_written_is_said_before_the_work(obstacle, tmp_path):
    named = tmp_path / obstacle(tmp_path)
    result = CliRunner().invoke(main, ["demo", "-o", str(tmp_path / "demo.png")])
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: {named}: ")
    assert len(result.output.splitlines()) == 1


def test_a_figure_in_no_folder():
    result = CliRunner().invoke(main, ["demo", "-o", "nowhere/figure.png"])
    assert result.exit_code == 1
    assert result.output == "Error: nowhere/figure.png: there is no folder 'nowhere'\n"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    from abstain.experiment import Plan, Problem, run

    random = np.random.default_rng(0)
    features = random.normal(size=(30, 2))
    labels = (features @ random.normal(size=(2, 3)) > random.normal(size=(30, 3))).astype(np.uint8)
    folder = tmp_path_factory.mktemp("results")
    run(
        Plan([Problem("small", features, labels, "abc", "random")], learners=["br-lr"], losses=["f1"], n_folds=2),
        out=folder,
        n_jobs=1,
    )
    return folder


@pytest.mark.slow
def test_figures_of_an_experiment(results):
    result = CliRunner().invoke(main, ["experiment", "figures", str(results)])
    assert result.exit_code == 0, result.output
    written = [Path(line) for line in result.output.splitlines()]
    assert {path.name for path in written} == {
        f"{name}.{ending}" for name in ("f1-br-lr", "related-work-br-lr") for ending in ("pdf", "png")
    }
    assert all(path.parent == results / "figures" and path.stat().st_size > 5000 for path in written)


def test_the_verdict_on_an_experiment(results):
    shown = CliRunner().invoke(main, ["experiment", "verdict", str(results)])
    assert shown.exit_code == 0, shown.output
    assert "1 − F1\nholds   claim\n" in shown.output
    assert "the abstention of PAR falls with c" in shown.output
    table = CliRunner().invoke(main, ["experiment", "verdict", "--markdown", str(results)])
    assert table.output.startswith("| loss | claim | holds | found |")


@pytest.mark.parametrize("command", ["figures", "verdict"])
def test_a_folder_without_results(tmp_path, command):
    result = CliRunner().invoke(main, ["experiment", command, str(tmp_path)])
    assert result.exit_code == 1
    assert f"Error: there are no results in '{tmp_path}' (results.parquet is missing)" in result.output


def test_the_command_is_installed():
    command = Path(sys.executable).with_name("abstain")
    shown = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    assert abstain.__version__ in shown
    module = subprocess.run([sys.executable, "-m", "abstain", "-h"], capture_output=True, text=True, check=True).stdout
    assert module.startswith("Usage: abstain [OPTIONS]")


ENTRIES = {"module": ["-m", "abstain"], "script": ["-c", "from abstain.__main__ import program; program()"]}


@pytest.mark.parametrize(("name", "said"), [("SIGINT", "\nInterrupted.\n"), ("SIGTERM", "")])
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_signal_during_the_imports_shows_no_traceback(entry, name, said, tmp_path):
    (tmp_path / "click.py").write_text(f"import os, signal\nos.kill(os.getpid(), signal.{name})\nraise AssertionError")
    path = os.pathsep.join([str(tmp_path), str(Path(abstain.__file__).parents[1])])
    command = [sys.executable, *ENTRIES[entry], "--version"]
    ended = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + getattr(signal, name), "", said)


def test_nothing_slow_is_imported_before_signals_are_handled():
    code = "import sys, abstain.__main__; print({'click', 'numpy', 'numba', 'scipy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


PROGRAM = """
import ctypes, os, signal
import click
from abstain._cli.commands import CommandGroup
from abstain._cli.progress import Progress

@click.group(cls=CommandGroup)
def main(): pass

@main.command()
def work():
    ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.{}))()
    Progress("work", hidden=True).advance(1)
    click.echo("done")

signal.signal(signal.SIGHUP, signal.{})
main(["work"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "hangup", "expected"),
    [
        ("SIGTERM", "SIG_DFL", (143, "", "")),
        ("SIGINT", "SIG_DFL", (130, "", "\nInterrupted.\n")),
        ("SIGHUP", "SIG_DFL", (129, "", "")),
        ("SIGHUP", "SIG_IGN", (0, "done\n", "")),  # as nohup has it
    ],
)
def test_a_signal_where_python_loses_exceptions_ends_the_command_without_complaint(name, hangup, expected):
    ended = subprocess.run([sys.executable, "-c", PROGRAM.format(name, hangup)], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == expected
