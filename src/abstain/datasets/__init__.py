"""Multi-label data: the files it is published in, the published sets themselves, and one that needs no download."""

from abstain.datasets._digits import load_digit_pairs
from abstain.datasets._download import fetch
from abstain.datasets._mulan import load_mulan
from abstain.datasets._registry import DATASETS

__all__ = ["DATASETS", "fetch", "load_digit_pairs", "load_mulan"]


def __dir__() -> list[str]:
    return __all__
