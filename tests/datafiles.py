"""The published data files that some tests read; they are not part of the project."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("ABSTAIN_DATA", Path(__file__).parents[2] / "shared" / "data"))

needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"there is no folder {DATA} with published data; ABSTAIN_DATA can name another"
)
