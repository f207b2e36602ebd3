"""Multi-label data: the files it is published in, the published sets themselves, and one that needs no download."""

from abstain.datasets.digits import load_digit_pairs
from abstain.datasets.homes import DATASETS
from abstain.datasets.mulan import load_mulan
from abstain.datasets.remote import fetch

__all__ = ["DATASETS", "fetch", "load_digit_pairs", "load_mulan"]
