"""``--kind logit``: files of logits are decided as those of their sigmoids."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import expit

from abstain import Table, write_table
from abstain._cli import main
from abstain._utils.errors import InvalidParameter
from abstain.streams import Job, decide_files, open_sources

NAMES = ["sky", "sea", "sand"]
LOGITS = np.random.default_rng(0).normal(-1, 2, (200, 3))
IDS = [f"r{i}" for i in range(200)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*args, code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy", "npz"])
@pytest.mark.parametrize(
    "command", [("decide", "--penalty", 0.2), ("decide", "--loss", "f1"), ("budget", "--rate", 0.1)], ids=str
)
def test_logits_are_decided_as_their_sigmoids(ending, command):
    write_table(Table(LOGITS, NAMES, IDS), f"x.{ending}")
    write_table(Table(expit(LOGITS), NAMES, IDS), f"p.{ending}")
    name, *options = command
    run(name, f"p.{ending}", *options, "-o", "q.csv", "--queue", "queue.csv")
    run(name, f"x.{ending}", *options, "--kind", "logit", "-o", "r.csv", "--queue", "same.csv")
    assert Path("q.csv").read_bytes() == Path("r.csv").read_bytes()
    expected, found = Path("queue.csv").read_text().split(), Path("same.csv").read_text().split()
    assert [line.split(",")[:2] for line in found] == [line.split(",")[:2] for line in expected]


def test_without_it_logits_are_refused_and_the_option_is_named():
    write_table(Table(LOGITS, NAMES, IDS), "x.csv")
    assert "or --kind logit" in run("decide", "x.csv", "-o", "q.csv", code=1)
    assert not Path("q.csv").exists()


def test_a_resumed_job_of_another_kind_begins_anew():
    Path("scores").mkdir()
    p = expit(LOGITS)  # both a probability and a logit
    write_table(Table(p, NAMES, IDS), "scores/a.npy")
    decide_files("scores", "out/", Job("hamming", 0.1))
    first = np.load("out/a.npy")
    summary = decide_files("scores", "out/", Job("hamming", 0.1, kind="logit"), resume=True)
    assert summary.n_kept == 0
    assert not np.array_equal(np.load("out/a.npy"), first)
    assert decide_files("scores", "out/", Job("hamming", 0.1, kind="logit"), resume=True).n_kept == 1


def test_what_long_tables_do_not_list_is_no_logit():
    Path("long.csv").write_text("id,label,probability\na,sky,2.0\nb,sea,-1.0\n")
    with pytest.raises(InvalidParameter, match=r"what long\.csv does not list would be a logit of 0"):
        open_sources("long.csv", kind="logit")
    with pytest.raises(InvalidParameter, match="kind is 'percent'; expected 'probability' or 'logit'"):
        open_sources("long.csv", kind="percent")
