"""The published data files that tests and benchmarks read; they are not part of the project."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from abstain.datasets import load_mulan

DATA = Path(os.environ.get("ABSTAIN_DATA", Path(__file__).parents[3] / "shared" / "data"))
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"there is no folder {DATA} with published data; ABSTAIN_DATA can name another"
)


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "langlog":
        bunch = load_mulan(DATA / name / "llog.arff.gz", xml=DATA / name / "langlog.xml.gz")
        return bunch.data, bunch.target
    if name != "mediamill-sample":
        bunch = load_mulan(DATA / name / f"{name.lower()}.arff.gz")
        return bunch.data, bunch.target
    files = ("mediamill_small", "mediamill_reduced-train", "mediamill_reduced-test")
    parts = [load_mulan(DATA / name / f"{file}.arff.gz", xml=DATA / name / "mediamill.xml.gz") for file in files]
    rows = np.vstack([np.hstack([part.data, part.target]) for part in parts])
    unique = np.unique(rows, axis=0)
    n_features = parts[0].data.shape[1]
    return unique[:, :n_features], unique[:, n_features:].astype(np.uint8)


def nus_wide_labels() -> tuple[np.ndarray, list[str]]:
    """269 648 × 81, and their names, without features: these could not be had. Images without labels are not listed."""
    table = np.zeros((269_648, 81), np.uint8)
    with gzip.open(DATA / "nus-wide-labels" / "mul_label_ids.txt.gz", "rt") as lines:
        for line in lines:
            image, *labels = map(int, line.split())
            table[image, labels] = 1
    with gzip.open(DATA / "nus-wide-labels" / "label_ids.txt.gz", "rt") as lines:
        return table, [line.split("\t")[1].strip() for line in lines]


def simulated_features(labels: np.ndarray) -> np.ndarray:
    """128 features: a random linear map of the labels, and noise."""
    random = np.random.default_rng(0)
    noise = random.normal(scale=3.0, size=(len(labels), 128))
    return labels @ random.normal(size=(labels.shape[1], 128)) + noise
