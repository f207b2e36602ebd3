"""The published data that benchmarks read."""

import os
from pathlib import Path

DATA = Path(os.environ.get("ABSTAIN_DATA", Path(__file__).parents[2] / "shared" / "data"))
