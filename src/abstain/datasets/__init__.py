"""Multi-label data sets: MULAN's and MEKA's files, published data sets that are downloaded once, and a generated one.

All loaders give a `Bunch` with ``data`` and ``target``. The floor imports `_utils` only. Begin reading at `_mulan.py`,
which reads ARFF files (`_arff.py`, `_columns.py`) with their lists of labels; `_download.py` fetches those in
`_registry.py`.
"""

from abstain.datasets._digits import load_digit_pairs
from abstain.datasets._download import fetch
from abstain.datasets._mulan import load_mulan
from abstain.datasets._registry import DATASETS

__all__ = ["DATASETS", "fetch", "load_digit_pairs", "load_mulan"]


def __dir__() -> list[str]:
    return __all__
