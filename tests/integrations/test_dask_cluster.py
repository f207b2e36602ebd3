"""A real Dask cluster of processes: the same answers bit for bit, whoever dies on the way, in little memory."""

import os
import re
import signal
import socket
import tracemalloc

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from distributed import Client, LocalCluster
from tests.support.cases import random_probabilities

import abstain
from abstain import metrics
from abstain._cli import main
from abstain.streams import Job, decide_files
from abstain.streams._sizes import SIZES

pytestmark = pytest.mark.slow

JOB = Job(abstain.FMeasure(), abstain.Concave(0.1))
LABELS = list("abcdef")


@pytest.fixture(scope="module")
def cluster():
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0", "memory_limit": "1GiB"}
    with LocalCluster(n_workers=2, host="127.0.0.1", **options) as workers:
        yield workers


@pytest.fixture
def client(cluster):
    with Client(cluster.scheduler_address) as client:
        client.wait_for_workers(2)
        yield client


def dies_once(block, mark):
    """The same block; but the first worker that asks for it dies."""
    try:
        mark.touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)
    except FileExistsError:
        pass
    return block


def peak():
    """The most memory that Python and NumPy have allocated in this process since they are traced, in MiB."""
    return tracemalloc.get_traced_memory()[1] / 2**20


def noise(block_info=None):
    """A block of random numbers, each its own."""
    where = block_info[None]
    return np.random.default_rng(where["chunk-location"][0]).random(where["chunk-shape"])


# Arrays


@pytest.mark.parametrize("loss", ["hamming", "f1", "rank"])
def test_the_same_on_other_processes(client, loss):
    p = random_probabilities(500, 6)
    y = (np.random.default_rng(1).random(p.shape) < p).astype(np.int8)
    x = da.from_array(p, chunks=(120, 4))
    lazy, local = abstain.decide(x, loss, 0.1).persist(), abstain.decide(p, loss, 0.1)
    answers = lazy.compute()
    np.testing.assert_array_equal(answers.codes, local.codes, strict=True)
    np.testing.assert_array_equal(answers.expected_loss, local.expected_loss, strict=True)
    each = metrics.generalized_loss(y, lazy, loss=loss, penalty=0.1, per_instance=True)
    np.testing.assert_array_equal(
        each.compute(), metrics.generalized_loss(y, local, loss=loss, penalty=0.1, per_instance=True)
    )
    lazy, local = (abstain.budget.solve(table, loss=loss, count=301) for table in (x, p))
    np.testing.assert_array_equal(lazy.prediction.codes.compute(), local.prediction.codes)
    assert (lazy.price.cost, lazy.gap) == (local.price.cost, local.gap)


def test_errors_arrive_from_workers(client):
    p = random_probabilities(500, 6).copy()
    p[444, 2] = np.nan
    with pytest.raises(abstain.InvalidProbabilities, match=r"^probabilities: row 444, column 2 is nan; a probability"):
        abstain.decide(da.from_array(p, chunks=(120, 6))).labels.compute()


def test_a_worker_dies(client, tmp_path):
    p = random_probabilities(600, 6)
    for ask in (lambda x: abstain.decide(x, "f1", 0.05), lambda x: abstain.budget.solve(x, rate=0.1).prediction):
        mark = tmp_path / str(len(list(tmp_path.iterdir())))
        x = da.from_array(p, chunks=(50, 6)).map_blocks(dies_once, mark, dtype=p.dtype, meta=np.empty((0, 0)))
        answers = ask(x).compute()
        np.testing.assert_array_equal(answers.codes, ask(p).codes, strict=True)
        assert mark.exists()
        client.wait_for_workers(2)


# Compiling allocates, too: it is done on both workers before.
QUESTIONS = {
    "decide": (lambda x: abstain.decide(x).n_abstained.sum(), 64e6 * 0.8, 100),
    "score": (lambda x: metrics.expected_generalized_loss(x, abstain.decide(x), loss="hamming", penalty=0.1), 9.0, 100),
    "budget": (lambda x: abstain.budget.solve(x, rate=0.01).count, 640_000, 256),  # its counts take ten blocks' room
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_memory_of_workers_is_that_of_a_few_blocks(client, name):
    """Half a gigabyte in blocks of 8 MB, without any of it in one place; a worker that kept its half would have 256 MB.

    What is allocated is counted, not what is resident, which depends on what else the machine is doing.
    """
    question, expected, most = QUESTIONS[name]
    x = da.map_blocks(noise, chunks=((10_000,) * 64, (100,)), dtype=np.float64, meta=np.empty((0, 0)))
    client.run(lambda: question(random_probabilities(100, 6)))
    for worker in client.scheduler_info()["workers"]:
        question(x[:10_000]).compute(workers=[worker])
    client.run(tracemalloc.start)
    found = float(question(x).compute())
    allocated = client.run(peak)
    client.run(tracemalloc.stop)
    assert max(allocated.values()) < most
    assert found == pytest.approx(expected, rel=1e-3)


# Files


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    """Two files of probabilities, one of them with several row groups, the other with its columns in another order."""
    folder = tmp_path_factory.mktemp("scores")
    p = random_probabilities(3000, 6)
    frame = pd.DataFrame(p, columns=LABELS)
    frame.insert(0, "id", [f"row {i}" for i in range(len(p))])
    pq.write_table(pa.Table.from_pandas(frame[:2500], preserve_index=False), folder / "a.parquet", row_group_size=400)
    (folder / "more").mkdir()
    last = frame[2500:][["id", *LABELS[::-1]]]
    pq.write_table(pa.Table.from_pandas(last, preserve_index=False), folder / "more" / "b.parquet")
    return folder


@pytest.fixture(scope="module")
def decided(scores, tmp_path_factory):
    folder = tmp_path_factory.mktemp("decided")
    return folder, decide_files(scores, folder, JOB)


class Watching:
    """Progress that is told; after the first step it may do something."""

    def __init__(self, then=lambda: None):
        self.n_rows, self.steps, self.then = None, [], then

    def start(self, n_rows):
        self.n_rows = n_rows

    def advance(self, n_rows):
        self.steps.append(n_rows)
        if len(self.steps) == 1:
            self.then()


def parts(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*.parquet"))


def test_files_are_decided_as_without_a_cluster(cluster, scores, decided, tmp_path):
    watching = Watching()
    summary = decide_files(scores, tmp_path / "out/", JOB, cluster=cluster.scheduler_address, progress=watching)
    assert summary == decided[1]
    assert watching.n_rows == sum(watching.steps) == 3000
    assert parts(tmp_path / "out") == parts(decided[0]) == ["a.parquet", "more/b.parquet"]
    for name in parts(decided[0]):
        assert pq.read_table(tmp_path / "out" / name) == pq.read_table(decided[0] / name)


def test_large_files_become_parts_and_a_killed_worker_costs_one(
    cluster, client, scores, decided, tmp_path, monkeypatch
):
    monkeypatch.setattr(SIZES, "cluster_task_bytes", 30_000)
    pids = list(client.run(os.getpid).values())
    watching = Watching(lambda: os.kill(pids[0], signal.SIGKILL))
    ask = scores, tmp_path, JOB
    summary = decide_files(*ask, cluster=cluster.scheduler_address, progress=watching)
    assert (summary.n_rows, summary.n_abstained) == (decided[1].n_rows, decided[1].n_abstained)
    names = parts(tmp_path)
    assert names[0] == "a-00000.parquet"
    assert len(names) == summary.n_files >= 4
    whole = pa.concat_tables([pq.read_table(tmp_path / name) for name in names])
    assert whole == pa.concat_tables([pq.read_table(decided[0] / name) for name in parts(decided[0])])
    states = {name: (tmp_path / name).stat().st_mtime_ns for name in names}
    (tmp_path / names[1]).unlink()
    again = decide_files(*ask, cluster=cluster.scheduler_address, resume=True)
    assert (again.n_kept, again.n_rows) == (len(names) - 1, summary.n_rows)
    changed = [name for name in names if (tmp_path / name).stat().st_mtime_ns != states[name]]
    assert changed == [names[1]]
    assert whole == pa.concat_tables([pq.read_table(tmp_path / name) for name in names])


def test_what_is_wrong_is_named_and_nothing_half_is_left(cluster, scores, tmp_path):
    table = pq.read_table(scores / "a.parquet").to_pandas()
    table.loc[1234, "c"] = 1.5
    table.to_parquet(tmp_path / "bad.parquet", row_group_size=400)
    address = cluster.scheduler_address
    with pytest.raises(abstain.InvalidProbabilities, match=r"bad.parquet: row 1234 \(id 'row 1234'\), .*'c'.* is 1.5"):
        decide_files(tmp_path / "bad.parquet", tmp_path / "out", JOB, cluster=address)
    assert parts(tmp_path / "out") == []
    twice = [scores / "a.parquet", tmp_path / "bad.parquet"]
    with pytest.raises(abstain.InvalidDataset, match="has the id 'row 0', as row 0 of"):
        decide_files(twice, tmp_path / "out", JOB, cluster=address)


def test_the_command_line(cluster, scores, decided, tmp_path):
    ask = ["decide", str(scores), "-o", f"{tmp_path}/", "--loss", "f1", "--penalty", "concave:0.1", "--cluster"]
    result = CliRunner().invoke(main, [*ask, cluster.scheduler_address])
    assert result.exit_code == 0, result.output
    for name in parts(decided[0]):
        assert pq.read_table(tmp_path / name) == pq.read_table(decided[0] / name)


def test_all_workers_die(scores, tmp_path):
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=1, host="127.0.0.1", **options) as one, Client(one) as client:
        (worker,) = client.scheduler_info()["workers"]
        watching = Watching()
        watching.start = lambda n_rows: client.retire_workers([worker])
        with pytest.raises(ConnectionError, match=r"all workers of the Dask cluster at .* have died; with new"):
            decide_files(scores, tmp_path, JOB, cluster=one.scheduler_address, progress=watching, timeout=2)


def test_no_cluster(scores, tmp_path):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(ConnectionError, match=f"^no Dask scheduler answers at '{re.escape(address)}' "):
            decide_files(scores, f"{tmp_path}/new/", JOB, cluster=address, timeout=0.5)
    assert not (tmp_path / "new").exists()
