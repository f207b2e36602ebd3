"""The documentation is true of the code: what it names exists, and calls pass through the files that it lists."""

import ast
import re
import sys
import threading
import tomllib
from pathlib import Path

import numpy as np
import pytest

import abstain
from abstain._cli import main

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "abstain"
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + sorted((ROOT / "docs").glob("*.md"))
LAYERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]


def section(title):
    """The text of a section, up to the next one of its level."""
    return ARCHITECTURE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def paths_in(text):
    """The paths in code font: of files and folders in the repository, or in the package."""
    return {path for path in re.findall(r"`([\w.-]+/[\w./-]*)`", text) if path.split("/")[0] not in ("..", "build")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page):
    missing = {path for path in paths_in(page.read_text(encoding="utf-8")) if not (ROOT / path).exists()}
    assert {path for path in missing if not (SOURCE / path).exists()} == set()


def anchor(title):
    """How GitHub links to a heading."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        path, _, heading = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in map(anchor, titles), target


def floors(layer):
    return [floor.strip() for floor in layer.split("|")]


def test_the_picture_shows_the_floors():
    drawn = [re.findall(r"\b\w+\b", line[: line.rindex("│")]) for line in ARCHITECTURE.splitlines() if "│" in line]
    assert [sorted(row) for row in drawn] == [sorted(floors(layer)) for layer in LAYERS]


def test_the_table_says_what_each_floor_uses():
    rows = [line.split("|") for line in section("The floors").splitlines() if line.startswith("| `")]
    said = {cells[1].strip(" `").removesuffix(".py"): set(re.findall(r"`(\w+)`", cells[3])) for cells in rows}
    assert said == {floor: used_by(floor) for layer in LAYERS for floor in floors(layer)}


def used_by(floor):
    """The other floors that a floor imports, at its top or inside functions."""
    path = SOURCE / floor
    names = set()
    for file in path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "abstain":
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("abstain."):
                names.add(node.module.split(".")[1])
    return names - {floor, "__version__"}


def entered(call):
    """The files of the package in which a call has entered a function, in any thread."""
    found = set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_name != "<module>":
            found.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {Path(name).relative_to(SOURCE).as_posix() for name in found if Path(name).is_relative_to(SOURCE)}


P = np.random.default_rng(0).random((5, 3))
NOT_ENTERED = {"streams/_read/long.py", "streams/_bad_values.py"}  # long tables and bad values take these


def command(*arguments):
    return lambda: main(list(arguments), standalone_mode=False)


@pytest.mark.parametrize(
    ("title", "call"),
    [
        ("The way of a decision", lambda: abstain.decide(P)),
        ("The way of a file", command("decide", "p.parquet", "-o", "q.parquet")),
        ("The way of a page", command("report", "p.parquet", "--truth", "y.parquet", "-o", "report.html")),
    ],
)
def test_calls_pass_the_files_of_the_way(title, call, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    pytest.importorskip("plotly")
    monkeypatch.chdir(tmp_path)
    abstain.write_table(abstain.Table(P, ("a", "b", "c")), "p.parquet")
    abstain.write_table(abstain.Table((P > 0.5).astype(np.int8), ("a", "b", "c")), "y.parquet")
    steps = "\n".join(line for line in section(title).splitlines() if re.match(r"\s*\d+\. |\s{3,}\S", line))
    named = {path for path in paths_in(steps) if path.endswith(".py")}
    assert named
    assert named - NOT_ENTERED <= entered(call)
