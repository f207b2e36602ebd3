"""Users' scripts pass a type checker as strict as it can be, and run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "typing"
SCRIPTS = [FOLDER / "expected_types.py", FOLDER / "user_script.py"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_users_script_runs(script, tmp_path):
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr


def test_users_scripts_pass_strict_type_checks():
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--config-file", str(FOLDER / "mypy.ini"), *map(str, SCRIPTS)]
    # A cache of its own: `make lint` has other settings, and each would throw away what the other has stored.
    environment = os.environ | {"MYPY_CACHE_DIR": str(ROOT / ".mypy_cache" / "typing")}
    checked = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_package_says_that_it_has_types():
    assert (ROOT / "src" / "abstain" / "py.typed").exists()
