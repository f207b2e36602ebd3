"""What an installation needs is declared, and what one without extras lacks is said in a line that helps."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from abstain import extras

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
    assert imported <= {module_of(requirement) for requirement in declared}


def test_hints_name_what_the_extras_install():
    packages = {without_version(each) for needed in OPTIONAL.values() for each in needed}
    assert set(extras.PACKAGES.values()) == {each for each in packages if not each.startswith("abstain[")}
    assert all(module_of(package) == module for module, package in extras.PACKAGES.items())


@pytest.mark.parametrize(
    "file", [*(ROOT / "src").rglob("*.py"), ROOT / "README.md", *(ROOT / "docs").glob("*.md")], ids=str
)
def test_nobody_is_sent_to_an_index_for_abstain(file):
    assert not re.search(r"pip install ['\"]?abstain", file.read_text())
