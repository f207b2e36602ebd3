"""Files of any size pass in the memory that the documentation states, measured on whole processes."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from tests.support.processes import usage_of

pytestmark = pytest.mark.slow

ABSTAIN = [sys.executable, "-m", "abstain"]
MOST = 700  # MiB, as README.md says
RANDOM = np.random.default_rng(0)


def rounded_scores(*shape):
    """Probabilities that take little room in a file, and as much as others in memory."""
    return np.round(RANDOM.beta(0.3, 1.2, shape), 2)


@pytest.fixture(scope="module")
def row_groups(tmp_path_factory):
    """Twelve row groups of 40 MB each."""
    file = tmp_path_factory.mktemp("memory") / "p.parquet"
    group = pa.table({f"label{j}": column for j, column in enumerate(rounded_scores(100, 50_000))})
    with pq.ParquetWriter(file, group.schema) as writer:
        for _ in range(12):
            writer.write_table(group)
    return file


@pytest.mark.parametrize(
    "command",
    [
        "decide",
        "decide --loss rank",
        "decide --penalty 0.3 --queue queue.csv",
        "budget --rate 0.05",
    ],
)
def test_many_row_groups(command, row_groups, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    used = usage_of([*ABSTAIN, *command.split(), str(row_groups), "-o", "q.parquet", "--quiet"])
    assert used.peak_mib <= MOST


def test_calibration_of_many_row_groups(row_groups, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    group = pa.table({f"label{j}": column for j, column in enumerate(RANDOM.integers(0, 2, (100, 50_000), np.int8))})
    with pq.ParquetWriter("y.parquet", group.schema) as writer:
        for _ in range(12):
            writer.write_table(group)
    used = usage_of([*ABSTAIN, "calibrate", str(row_groups), "y.parquet", "-o", "c.json", "--quiet"])
    assert used.peak_mib <= MOST
    used = usage_of([*ABSTAIN, "calibrate", str(row_groups), "--with", "c.json", "-o", "q.parquet", "--quiet"])
    assert used.peak_mib <= MOST
    assert pq.ParquetFile("q.parquet").metadata.num_rows == 600_000


@pytest.mark.parametrize(("height", "width"), [(330_000, 100), (160_000, 200)])
def test_large_row_groups(height, width, tmp_path):
    column = rounded_scores(height)
    group = pa.table({f"label{j}": column for j in range(width)})
    with pq.ParquetWriter(tmp_path / "p.parquet", group.schema) as writer:
        for _ in range(2):
            writer.write_table(group, row_group_size=height)
    paths = [str(tmp_path / "p.parquet"), "-o", str(tmp_path / "q.parquet")]
    assert usage_of([*ABSTAIN, "decide", *paths, "--quiet"]).peak_mib <= MOST


def test_sparse_answers_in_long_form(tmp_path):
    n, m, stored = 300_000, 200_000, 100
    columns = np.tile(np.arange(stored, dtype=np.int32) * (m // stored), n)
    values = np.tile(np.maximum(rounded_scores(1000).astype(np.float32), 0.01), n * stored // 1000)
    table = sparse.csr_array((values, columns, np.arange(n + 1) * stored), (n, m))
    sparse.save_npz(tmp_path / "p.npz", table, compressed=False)
    paths = [str(tmp_path / "p.npz"), "-o", str(tmp_path / "q.parquet")]
    assert usage_of([*ABSTAIN, "decide", *paths, "--quiet"]).peak_mib <= MOST
