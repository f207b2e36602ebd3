"""What an installation needs is declared, and what one without extras lacks is said in a line that helps."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import numpy as np
import pytest

from abstain._cli import main
from abstain._utils import extras

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OPTIONAL = {name: needed for name, needed in PROJECT["optional-dependencies"].items() if name not in ("dev", "rules")}
MODULES = {"scikit-learn": "sklearn", "pillow": "PIL"}


def without_version(requirement):
    return re.match(r"[^<>=!~; ]+", requirement)[0]


def module_of(requirement):
    name = re.match(r"[\w.-]+", requirement)[0]
    return MODULES.get(name, name)


def third_party(file):
    """The top-level modules that a file imports by statement or by name."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Import(names=names):
                found |= {name.name for name in names}
            case ast.ImportFrom(module=str(module), level=0):
                found.add(module)
            case ast.Call(func=ast.Name(id="optional" | "arrow"), args=[ast.Constant(value=module), *_]):
                found.add(module)
    return {name.partition(".")[0] for name in found} - {*sys.stdlib_module_names, "abstain"}


def test_every_import_is_declared():
    imported = set().union(*map(third_party, (ROOT / "src").rglob("*.py")))
    declared = {*PROJECT["dependencies"], *(each for needed in OPTIONAL.values() for each in needed)}
    assert {"numpy", "pandas", "threadpoolctl", "pooch", "plotly"} <= imported
    for_type_checkers = {"typing_extensions"}  # which bring it along
    assert imported <= {module_of(requirement) for requirement in declared} | for_type_checkers


def test_hints_name_what_the_extras_install():
    packages = {without_version(each) for needed in OPTIONAL.values() for each in needed}
    assert set(extras.PACKAGES.values()) == {each for each in packages if not each.startswith("abstain[")}
    assert all(module_of(package) == module for module, package in extras.PACKAGES.items())


@pytest.mark.parametrize(
    "file", [*(ROOT / "src").rglob("*.py"), ROOT / "README.md", *(ROOT / "docs").glob("*.md")], ids=str
)
def test_nobody_is_sent_to_an_index_for_abstain(file):
    assert not re.search(r"pip install ['\"]?abstain", file.read_text())


CORE_ONLY = """
import json, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())

from click.testing import CliRunner
from abstain._cli import main

found = {}
for line in sys.stdin.read().splitlines():
    result = CliRunner().invoke(main, line.split())
    found[line] = result.exit_code, result.output, repr(result.exception), result.exc_info[0] is SystemExit
print(json.dumps(found))
"""
FILES, FRAMES = (
    "CSV, Parquet and Arrow files need pyarrow: pip install pyarrow",
    "experiments need pandas and pyarrow: pip install pandas pyarrow",
)
WITHOUT_EXTRAS = {
    "decide p.npy -o q.npy": None,
    "decide p.csv -o q.csv": FILES,
    "decide p.npy -o q.parquet": FILES,
    "decide p.npy --queue queue.csv": FILES,
    "decide folder -o out/ --cluster tcp://localhost:1": (
        "a cluster needs Dask: pip install 'dask[array,dataframe]' distributed"
    ),
    "budget p.npy --rate 0.1": None,
    "budget p.csv --rate 0.1": FILES,
    "calibrate p.npy truth.npy -o c.json": None,
    "calibrate p.npy --with c.json -o calibrated.npy": None,
    "calibrate p.npy --with c.json -o calibrated.csv": FILES,
    "calibrate p.csv truth.npy -o c.json": FILES,
    "evaluate q.npy truth.npy": None,
    "evaluate p.csv truth.npy": FILES,
    "report p.npy": "a report needs plotly: pip install plotly",
    "report p.csv": FILES,
    "demo --train 100 --test 50": None,
    "completion bash": None,
    "datasets list": None,
    "datasets fetch yeast": "fetching data sets needs pooch: pip install pooch",
    "datasets convert m.arff --as npz": None,
    "datasets convert m.arff": FILES,
    "experiment run --dry-run": FRAMES,
    "experiment run --datasets ./m.arff": FRAMES,
    "experiment figures folder": FRAMES,
    "experiment verdict folder": FRAMES,
}


@pytest.fixture(scope="module")
def core_only(tmp_path_factory):
    """What all these commands do, one after the other, where nothing is installed but the core."""
    folder = tmp_path_factory.mktemp("core")
    p = np.random.default_rng(0).random((20, 3))
    np.save(folder / "p.npy", p)
    np.save(folder / "truth.npy", (p > 0.5).astype(np.int8))
    (folder / "p.csv").write_text("id,a\n1,0.5\n")
    (folder / "m.arff").write_text("@relation 'm: -C 1'\n@attribute y {0,1}\n@attribute a numeric\n@data\n1,5\n0,6\n")
    (folder / "folder").mkdir()
    (folder / "folder" / "p.npy").write_bytes((folder / "p.npy").read_bytes())
    absent = {*extras.PACKAGES} - {"joblib"}  # which comes with scikit-learn
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ABSTAIN_")}
    done = subprocess.run(
        [sys.executable, "-c", CORE_ONLY, ",".join(absent)],
        input="\n".join(WITHOUT_EXTRAS),
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", WITHOUT_EXTRAS)
def test_commands_without_extras_work_or_say_what_they_need(command, core_only):
    code, output, exception, is_exit = core_only[command]
    expected = WITHOUT_EXTRAS[command]
    assert is_exit, exception
    assert code == (0 if expected is None else 1), output
    assert expected is None or output.splitlines()[-1] == f"Error: {expected}"


def test_the_demo_without_extras_says_what_is_left_out(core_only):
    assert core_only["demo --train 100 --test 50"][1].splitlines()[-2:] == [
        "No figure: the figure needs matplotlib: pip install matplotlib",
        "No report: a report with pictures needs pillow and plotly: pip install pillow plotly",
    ]


def leaves(group, *path):
    for name, command in group.commands.items():
        yield from leaves(command, *path, name) if isinstance(command, click.Group) else [" ".join([*path, name])]


def test_every_command_is_tried_without_extras():
    tried = [f"{case} " for case in WITHOUT_EXTRAS]
    assert [name for name in leaves(main) if not any(case.startswith(f"{name} ") for case in tried)] == []
