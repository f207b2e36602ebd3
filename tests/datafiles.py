"""The published data files that some tests read; they are not part of the project."""

import pytest
from benchmarks.data import DATA

needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"there is no folder {DATA} with published data; ABSTAIN_DATA can name another"
)
