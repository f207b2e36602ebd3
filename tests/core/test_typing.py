"""The types of the core, as a user's script sees them."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("typed_script.py")


def test_a_typed_script_runs():
    subprocess.run([sys.executable, SCRIPT], check=True)


@pytest.mark.slow
def test_a_typed_script_passes_strict_mypy(tmp_path):
    pytest.importorskip("mypy")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", SCRIPT],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert found.returncode == 0, found.stdout
