"""Where files may be written: never over an input or another output, and told before any work is done."""

import errno
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tests.support.files import ProgressLog

from abstain._cli import main
from abstain._utils.atomic import atomic_write, find_same, require_writable
from abstain._utils.errors import InvalidOutput
from abstain.streams import Job, budget_files, decide_files
from abstain.streams._tables import Table, read_table, write_table

P = np.random.default_rng(0).random((20, 3)).round(3)
FORBIDDEN = Path("/sys")  # not even root can make a file there
needs_forbidden = pytest.mark.skipif(not FORBIDDEN.is_dir(), reason="there is no folder /sys")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    write_table(Table(P, list("abc"), [f"r{i}" for i in range(len(P))]), tmp_path / "p.csv")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(*arguments, code=1):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.stderr.strip()


def by_detour(_):
    return Path("sub/../q.csv")


def by_link(file):
    Path("link.csv").symlink_to(file)
    return Path("link.csv")


def by_link_in_a_folder(file):
    Path("other").symlink_to(Path.cwd(), target_is_directory=True)
    return Path("other") / file


def by_hard_link(file):
    Path(file).write_text("was here before")
    Path("hard.csv").hardlink_to(file)
    return Path("hard.csv")


@pytest.mark.parametrize("other_name", [by_detour, by_link, by_link_in_a_folder, by_hard_link])
@pytest.mark.parametrize("command", [["decide"], ["budget", "--rate", "0.1"]], ids=["decide", "budget"])
def test_queue_and_answers_are_two_files(command, other_name, folder):
    queue = other_name("q.csv")
    before = sorted(folder.rglob("*"))
    said = refused(*command, "p.csv", "-o", "q.csv", "--queue", queue)
    assert said == f"Error: {queue}: the answers go there; choose another file for the queue"
    assert sorted(folder.rglob("*")) == before


def test_a_queue_within_the_output_folder_is_no_answer(folder):
    said = refused("decide", "p.csv", "-o", "sub/", "--queue", "sub/../sub/p.csv")
    assert said == "Error: sub/../sub/p.csv: the answers go there; choose another file for the queue"


@pytest.mark.parametrize("kind", ["symlink_to", "hardlink_to"])
@pytest.mark.parametrize("option", ["-o", "--queue"])
@pytest.mark.parametrize("command", [["decide"], ["budget", "--rate", "0.1"]], ids=["decide", "budget"])
def test_a_link_to_an_input_is_no_output(command, option, kind, folder):
    getattr(Path("link.csv"), kind)("p.csv")
    before = Path("p.csv").read_bytes()
    others = [] if option == "-o" else ["-o", "q.csv"]
    said = refused(*command, "p.csv", option, "link.csv", *others)
    assert said == "Error: link.csv: is an input; choose another output"
    assert Path("p.csv").read_bytes() == before


def test_the_input_folder_is_no_output_folder_by_another_name(folder):
    Path("in").mkdir()
    Path("p.csv").rename("in/p.csv")
    Path("out").symlink_to("in", target_is_directory=True)
    assert refused("decide", "in", "-o", "out/") == "Error: out/p.csv: is an input; choose another output"


@pytest.mark.parametrize(
    ("command", "option"),
    [(["decide"], "--penalty"), (["budget", "--rate", "0.1"], "--review"), (["budget"], "--per-label")],
)
def test_a_file_of_prices_is_an_input_too(command, option, folder):
    Path("prices.csv").write_text("label,cost\na,1\nb,1\nc,1\n")
    Path("link.csv").symlink_to("prices.csv")
    said = refused(*command, "p.csv", option, "prices.csv", "-o", "link.csv")
    assert said == "Error: link.csv: is an input; choose another output"


def test_places_that_are_not_there_yet(folder):
    files = [Path("p.csv"), Path("q.csv"), Path("r.csv")]
    assert find_same(files, [folder / "sub" / ".." / "q.csv"]) == Path("q.csv")
    assert find_same(files, [Path("sub/q.csv"), Path("sub/p.csv")]) is None


# Folders in which nothing can be written


def unwritable(arguments, name):
    said = refused(*arguments)
    assert said.startswith(f"Error: {FORBIDDEN / name}: cannot be written (")
    assert ".part" not in said
    assert "tmp" not in said


@needs_forbidden
@pytest.mark.parametrize("name", ["q.csv", "q.parquet", "q.npy", "q.npz"])
def test_answers_that_cannot_be_written_are_named_as_the_user_named_them(name):
    unwritable(["decide", "p.csv", "-o", FORBIDDEN / name], name)
    unwritable(["decide", "p.csv", "-o", "q.csv", "--queue", FORBIDDEN / "q.csv"], "q.csv")
    unwritable(["budget", "p.csv", "--rate", "0.1", "-o", FORBIDDEN / name], name)


@needs_forbidden
def test_a_folder_of_answers_that_cannot_be_written():
    unwritable(["decide", "p.csv", "-o", f"{FORBIDDEN}/new/deep/"], "new/deep/p.csv")


@needs_forbidden
def test_no_row_is_read_for_what_cannot_be_written():
    progress = ProgressLog()
    with pytest.raises(OSError, match="cannot be written"):
        decide_files("p.csv", FORBIDDEN / "q.csv", Job("hamming", 0.1), progress=progress)
    for files in ({"output": FORBIDDEN / "q.csv"}, {"output": "q.csv", "queue": FORBIDDEN / "q.csv"}):
        with pytest.raises(OSError, match="cannot be written"):
            budget_files("p.csv", rate=0.1, progress=progress, **files)
    with pytest.raises(InvalidOutput, match="the answers go there"):
        budget_files("p.csv", rate=0.1, progress=progress, output="q.csv", queue="sub/../q.csv")
    assert sum(progress.done) == 0


@needs_forbidden
def test_tables_that_cannot_be_written_are_named_as_the_user_named_them():
    with pytest.raises(OSError, match="cannot be written") as reason:
        write_table(P, FORBIDDEN / "x.csv")
    assert reason.value.filename == str(FORBIDDEN / "x.csv")


@needs_forbidden
def test_a_draft_is_not_what_the_user_named():
    with pytest.raises(OSError, match=r"^\[Errno \d+\]") as reason, atomic_write(FORBIDDEN / "x.csv"):
        pass
    assert reason.value.filename == str(FORBIDDEN / "x.csv")


def test_what_is_writable_and_what_is_not(folder):
    require_writable(folder / "new.csv")
    require_writable(folder / "not" / "yet" / "new.csv", new_folders=True)
    assert sorted(folder.iterdir()) == [folder / "p.csv", folder / "sub"]
    with pytest.raises(FileNotFoundError, match="there is no folder 'nowhere'"):
        require_writable(Path("nowhere/x.csv"))
    with pytest.raises(IsADirectoryError) as reason:
        require_writable(Path("sub"))
    assert reason.value.errno == errno.EISDIR
    with pytest.raises(FileNotFoundError, match=r"there is no folder 'p\.csv'"):
        require_writable(Path("p.csv/x.csv"), new_folders=True)
    Path("link.csv").symlink_to("nowhere/x.csv")
    with pytest.raises(FileNotFoundError, match=r"link\.csv: there is no folder '.*nowhere'"):
        require_writable(Path("link.csv"))


def test_a_link_stays_a_link(folder):
    Path("link.csv").symlink_to("sub/q.csv")
    write_table(P, "link.csv")
    assert Path("link.csv").is_symlink()
    assert np.array_equal(read_table("sub/q.csv").values, P)


@pytest.mark.parametrize("path", ["x.csv", Path("x.csv")])
def test_the_table_comes_before_the_path(path):
    with pytest.raises(TypeError, match=r"write_table\(table, path\): the table comes first.*'x\.csv'"):
        write_table(path, P)


@pytest.mark.parametrize("kind", ["symlink_to", "hardlink_to"])
def test_a_report_or_a_table_takes_the_place_of_no_input(kind, folder):
    before = Path("p.csv").read_bytes()
    getattr(Path("report.html"), kind)(folder / "p.csv")
    assert refused("report", "p.csv", "-o", "report.html") == "Error: report.html: is an input; choose another output"
    assert Path("p.csv").read_bytes() == before
    Path("x.arff").write_text("@relation 'x: -C 1'\n@attribute y {0,1}\n@attribute x numeric\n@data\n1,2\n0,3\n")
    before = Path("x.arff").read_bytes()
    getattr(Path("x-labels.csv"), kind)(folder / "x.arff")
    said = refused("datasets", "convert", "x.arff", "--as", "csv")
    assert said.splitlines()[-1] == "Error: x-labels.csv: is an input; choose another output"
    assert Path("x.arff").read_bytes() == before
