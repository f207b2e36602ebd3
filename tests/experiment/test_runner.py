"""The runner of the experiments: killed, interrupted, fed with damaged files, on a cluster that loses its workers."""

import json
import os
import pty
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time
from contextlib import contextmanager
from uuid import uuid4

import numpy as np
import psutil
import pytest
from click.testing import CliRunner
from joblib import Parallel, delayed, parallel_config
from scipy import sparse
from tests.support.data import DATA, needs_data
from threadpoolctl import threadpool_info

from abstain._cli import main
from abstain._utils.atomic import STALE_AFTER_SECONDS
from abstain._utils.errors import FitFailed, MissingFile
from abstain.datasets import DATASETS
from abstain.experiment import Plan, _models, _plan, _problems, _runner, load, run
from abstain.experiment._runner import _impute
from abstain.experiment._store import Store

pytestmark = pytest.mark.slow

LEARNERS = "br-lr", "ecc-lr"
LOSSES = "hamming", "f1"
FOLDS = 5
N_FILES = FOLDS * len(LEARNERS)
OUTPUTS = (
    "results.csv",
    "results.parquet",
    "coverage.csv",
    "coverage.parquet",
    "summary.csv",
    "aurc.csv",
    "manifest.json",
)
SOON = 600.0  # seconds: long enough for a busy machine, and nobody waits for it on another

DIES_WHEN_WRITING = """
import os, sys
from abstain._cli import main
from abstain.datasets import DATASETS
calls, real = 0, os.fsync
def fsync(file):
    global calls
    calls += 1
    real(file)
    if calls == int(sys.argv[1]):
        os.kill(os.getpid(), 9)
os.fsync = fsync
main(sys.argv[2:])
"""

STALLS_WHEN_DECIDING = """
import sys, time
from pathlib import Path
from abstain._cli import main
from abstain.experiment import _runner
def stall(*_):
    Path(sys.argv[1]).touch()
    time.sleep(3600)
_runner._evaluate = stall
main(sys.argv[2:])
"""


def arff(n=120, d=8, m=3):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, d)).round(3)
    labels = features @ rng.normal(size=(d, m)) + rng.normal(size=(n, m)) > 0
    lines = [f"@relation 'small: -C {m}'"]
    lines += [f"@attribute label{j} {{0,1}}" for j in range(m)] + [f"@attribute x{j} numeric" for j in range(d)]
    lines += ["@data", *(",".join(map(str, row)) for row in np.hstack([labels.astype(int), features]).tolist())]
    return "\n".join(lines).replace("1.0,", "1,").replace("0.0,", "0,") + "\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "small.arff"
    path.write_text(arff())
    return path


@pytest.fixture(scope="module")
def whole(data):
    return Plan([load(str(data))], learners=LEARNERS, losses=LOSSES, n_folds=FOLDS)


@pytest.fixture(scope="module")
def brief(data):
    return Plan([load(str(data))], learners=["br-lr"], losses=["hamming"], n_folds=3)


@pytest.fixture(scope="module")
def uninterrupted(whole, tmp_path_factory):
    out = tmp_path_factory.mktemp("uninterrupted")
    run(whole, out=out, n_jobs=1)
    return out


def contents(out):
    return {name: (out / name).read_bytes() for name in OUTPUTS}


def kept(out):
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in (out / "probabilities").glob("*.parquet")
    }


def arguments(data, out, *more):
    settings = "--learners", *LEARNERS, "--losses", ",".join(LOSSES), f"--folds={FOLDS}"
    return ["experiment", "run", "--datasets", str(data), *settings, f"--out={out}", *map(str, more)]


def invoke(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


@contextmanager
def started(*arguments, **options):
    """A process in its own group, which is gone in the end."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    process = subprocess.Popen([sys.executable, *map(str, arguments)], start_new_session=True, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_until(condition, process=None):
    end = time.monotonic() + SOON
    while not condition():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def is_gone(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# Killed


@pytest.mark.parametrize("whole_group", [False, True], ids=["while it fits", "while it decides"])
def test_killed_from_outside_it_goes_on(data, uninterrupted, tmp_path, whole_group):
    decides = tmp_path / "decides"
    out = tmp_path / "out"
    how = ("-c", STALLS_WHEN_DECIDING, decides) if whole_group else ("-m", "abstain")
    with started(*how, *arguments(data, out, "--jobs=2")) as process:
        wait_until(decides.exists if whole_group else lambda: len(kept(out)) >= 2, process)
        workers = psutil.Process(process.pid).children(recursive=True)
        (os.killpg if whole_group else os.kill)(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert not (out / "manifest.json").exists()
    assert len(workers) >= 2
    wait_until(lambda: all(map(is_gone, workers)))  # nobody is left behind
    before = kept(out)
    again = invoke(*arguments(data, out, "--jobs=1"))
    assert again.exit_code == 0, again.output
    assert contents(out) == contents(uninterrupted)
    assert before.items() <= kept(out).items()
    assert len(kept(out)) == N_FILES


@pytest.mark.parametrize(("n_kept", "n_written"), [(N_FILES - 2, 2), (N_FILES, 8)])
def test_killed_while_it_writes_a_file_it_goes_on(data, uninterrupted, tmp_path, n_kept, n_written):
    """A draft is on the disk, but has not got its name yet: of a fold's probabilities, of the manifest."""
    (tmp_path / "probabilities").mkdir()
    for path in sorted((uninterrupted / "probabilities").iterdir())[:n_kept]:
        shutil.copy2(path, tmp_path / "probabilities")
    with started("-c", DIES_WHEN_WRITING, n_written, *arguments(data, tmp_path, "--jobs=1")) as process:
        assert process.wait() == -signal.SIGKILL
    (draft,) = tmp_path.rglob("*.part")
    before = kept(tmp_path)
    assert len(before) == min(N_FILES, n_kept + n_written - 1)
    os.utime(draft, (time.time() - 2 * STALE_AFTER_SECONDS,) * 2)
    assert invoke(*arguments(data, tmp_path, "--jobs=1")).exit_code == 0
    assert contents(tmp_path) == contents(uninterrupted)
    assert before.items() <= kept(tmp_path).items()
    assert not draft.exists()


def test_only_our_own_forgotten_drafts_are_removed(tmp_path):
    fresh, forgotten, foreign = (
        tmp_path / name for name in (f".a.{uuid4().hex}.part", f".b.{uuid4().hex}.part", ".mine.part")
    )
    for file in (fresh, forgotten, foreign):
        file.touch()
    for file in (forgotten, foreign):
        os.utime(file, (time.time() - 2 * STALE_AFTER_SECONDS,) * 2)
    Store(tmp_path / "probabilities").prepare()
    assert [file.exists() for file in (fresh, forgotten, foreign)] == [True, False, True]


def test_interrupted_it_says_so_and_goes_on(data, uninterrupted, tmp_path):
    with started("-m", "abstain", *arguments(data, tmp_path, "--jobs=2")) as process:
        wait_until(lambda: len(kept(tmp_path)) >= 3, process)
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
        _, complaints = process.communicate(timeout=SOON)
    assert process.returncode == 130
    assert complaints == f"\nInterrupted. What is fitted is kept in {tmp_path}; the same command goes on from there.\n"
    assert not list(tmp_path.rglob("*.part"))
    before = kept(tmp_path)
    assert invoke(*arguments(data, tmp_path, "--jobs=1")).exit_code == 0
    assert contents(tmp_path) == contents(uninterrupted)
    assert before.items() <= kept(tmp_path).items()


@pytest.fixture
def after(monkeypatch):
    """Let something happen as soon as so many folds are kept, while others are being fitted."""
    events, write = {}, Store.write

    def eventful(store, *what):
        write(store, *what)
        events.pop(len(list(store.folder.glob("*.parquet"))), lambda: None)()

    monkeypatch.setattr(Store, "write", eventful)
    return events


def test_a_local_worker_that_is_killed(data, uninterrupted, tmp_path, after):
    def kill_one():
        next(p for p in psutil.Process().children() if "LokyProcess" in " ".join(p.cmdline())).kill()

    after[2] = kill_one
    result = invoke(*arguments(data, tmp_path, "--jobs=2"))
    assert result.exit_code == 1
    assert result.output.startswith("Error: a worker has failed (TerminatedWorkerError: ")
    assert result.output.endswith("; what is fitted is kept, and the same command goes on from there\n")
    assert 2 <= len(kept(tmp_path)) < N_FILES
    assert invoke(*arguments(data, tmp_path, "--jobs=2")).exit_code == 0
    assert contents(tmp_path) == contents(uninterrupted)


# Other settings, other files


def test_what_is_there_is_not_fitted_again(brief, tmp_path, monkeypatch):
    run(brief, out=tmp_path, n_jobs=1)
    first = contents(tmp_path)
    monkeypatch.setattr(_runner, "predict", None)
    run(brief, out=tmp_path, n_jobs=1)
    assert contents(tmp_path) == first


@pytest.mark.parametrize("change", ["seed", "folds", "learner", "data", "label name", "version"])
def test_other_settings_never_use_these_files(data, brief, tmp_path, monkeypatch, change):
    run(brief, out=tmp_path, n_jobs=1)
    before = kept(tmp_path)
    text = data.read_text()
    if change == "data":
        at = text.rindex(",") + 1
        text = f"{text[:at]}0.125\n"
    elif change == "label name":
        text = text.replace("label2", "other2")
    elif change == "version":
        monkeypatch.setattr(_plan, "version", lambda name: "0.1")
    (tmp_path / "small.arff").write_text(text)
    learner = "cc-lr" if change == "learner" else "br-lr"
    n_folds, seed = 4 if change == "folds" else 3, int(change == "seed")
    problems = [load(str(tmp_path / "small.arff"))]
    other = Plan(problems, learners=[learner], losses=["hamming"], n_folds=n_folds, random_state=seed)
    run(other, out=tmp_path, n_jobs=1)
    after = kept(tmp_path)
    assert before.items() <= after.items()
    assert len(after) == len(before) + n_folds
    run(other, out=tmp_path / "fresh", n_jobs=1)
    assert contents(tmp_path) == contents(tmp_path / "fresh")


def test_a_copy_of_the_data_elsewhere_is_the_same_data(data, brief, tmp_path):
    (tmp_path / "copy").mkdir()
    shutil.copy(data, tmp_path / "copy")
    copy = Plan([load("SMALL", folder=tmp_path)], learners=["br-lr"], losses=["hamming"], n_folds=3)
    assert [fold.name for fold in copy.folds] == [fold.name for fold in brief.folds]


def truncate(path, other):
    path.write_bytes(path.read_bytes()[:-100])


def empty(path, other):
    path.write_bytes(b"")


def flip(path, other):
    content = bytearray(path.read_bytes())
    content[len(content) // 4] ^= 16
    path.write_bytes(content)


def mistake(path, other):
    shutil.copy(other, path)


def forge(path, other):
    """Numbers that are not those the checksum is of, in a file that is as it should be otherwise."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    column = np.nextafter(table.column(1).to_numpy(), 2.0)
    pq.write_table(table.set_column(1, table.column_names[1], [column]), path)


def text_inside(path, other):
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    pq.write_table(table.set_column(1, table.column_names[1], [["?"] * len(table)]), path)


@pytest.mark.parametrize("damage", [truncate, empty, flip, mistake, forge, text_inside])
def test_damaged_files_are_noticed_and_fitted_anew(brief, tmp_path, damage):
    run(brief, out=tmp_path, n_jobs=1)
    first, before = contents(tmp_path), kept(tmp_path)
    one, two, _ = (Store(tmp_path / "probabilities").path(fold) for fold in brief.folds)
    damage(one, two)
    with pytest.warns(UserWarning, match=f"{re.escape(str(one))} is damaged; its fold is fitted anew"):
        run(brief, out=tmp_path, n_jobs=1)
    assert contents(tmp_path) == first
    assert {name for name, state in kept(tmp_path).items() if before[name] != state} == {one.name}
    run(brief, out=tmp_path, n_jobs=1)


def test_no_flipped_bit_gives_other_probabilities(brief, tmp_path):
    fold, store = brief.folds[0], Store(tmp_path)
    task = _runner.FitTask(0, "", "br-lr", 0, *fold.rows)
    right = _runner.predict(task, (fold.problem.features, fold.problem.labels)).prediction
    store.write(fold, right)
    content = store.path(fold).read_bytes()
    for at in range(0, len(content), 7):
        store.path(fold).write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        found = store.read(fold)
        assert found is None or np.array_equal(found.probabilities, right.probabilities)


def test_names_of_folders_and_labels_do_not_matter(tmp_path):
    text = arff().replace("label0", "id").replace("label1", "'seed=1, Ä'")
    (tmp_path / "my data.arff").write_text(text)
    out = tmp_path / "seed=1" / "a%20b"
    odd = Plan([load(str(tmp_path / "my data.arff"))], learners=["br-lr"], losses=["hamming"], n_folds=2)
    run(odd, out=out, n_jobs=1)
    before = kept(out)
    run(odd, out=out, n_jobs=1)
    assert kept(out) == before


def test_a_file_that_vanishes_between_the_stages(brief, tmp_path, monkeypatch):
    store = Store(tmp_path)
    with (
        pytest.raises(FitFailed, match=r"parquet was there, and now it is not, or it is damaged"),
        parallel_config(n_jobs=1),
    ):
        _runner._evaluate(brief, store, True)


# On a cluster


@contextmanager
def scheduler(tmp_path, **environment):
    file = tmp_path / "scheduler.json"
    options = {"env": {**os.environ, **environment}, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = "-m", "distributed.cli.dask_scheduler", "--host=127.0.0.1", "--port=0", "--no-dashboard"
    with started(*command, f"--scheduler-file={file}", **options) as process:
        wait_until(file.exists, process)
        wait_until(lambda: file.read_text().endswith("}"))
        yield json.loads(file.read_text())["address"]


@contextmanager
def worker(address, before="pass", nanny=False):
    code = f"import sys; {before}; from distributed.cli.dask_worker import main; main(sys.argv[1:])"
    options = "--nanny" if nanny else "--no-nanny", "--nthreads=1", "--no-dashboard", "--memory-limit=0"
    with started("-c", code, address, *options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        yield process


def test_a_cluster_that_loses_its_workers_gives_the_same(data, uninterrupted, tmp_path, after):
    """One is killed for good; then the other, and with it all data, but that one has a nanny that replaces it."""
    out = tmp_path / "out"
    with scheduler(tmp_path) as address, worker(address) as first, worker(address, nanny=True) as second:

        def kill_the_other():
            for process in psutil.Process(second.pid).children():
                process.kill()

        after.update({1: first.kill, 3: kill_the_other})
        result = invoke(*arguments(data, out, "--cluster", address, "--jobs=1"))
    assert result.exit_code == 0, result.output
    assert result.output == f"400 rows: {out / 'results.parquet'}, {out / 'results.csv'}\n"
    assert not after
    assert contents(out) == contents(uninterrupted)


def test_a_cluster_that_gives_up_is_not_waited_for(data, tmp_path, after):
    out = tmp_path / "out"
    strict = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with scheduler(tmp_path, **strict) as address, worker(address) as only:
        after[1] = only.kill
        result = invoke(*arguments(data, out, "--cluster", address))
    assert result.exit_code == 1
    assert result.output.startswith("Error: a worker has failed (KilledWorker: ")
    assert kept(out)


def test_a_cluster_with_other_versions(data, tmp_path):
    other = "from abstain.experiment import _plan; known = _plan.version; _plan.version = lambda name: "
    other += "'0.0' if name == 'abstain' else known(name)"
    with scheduler(tmp_path) as address, worker(address, other):
        result = invoke(*arguments(data, tmp_path, "--cluster", address))
    assert result.exit_code == 1
    assert re.match(
        r"Error: small, .*, fold . of 5: a worker has {'abstain': '0.0', .*; make them the same", result.output
    )
    assert not kept(tmp_path)


def test_no_cluster_and_a_cluster_without_workers(data, tmp_path, monkeypatch):
    monkeypatch.setattr(_runner, "TIMEOUT", 0.5)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{nobody.getsockname()[1]}"
        result = invoke(*arguments(data, tmp_path, "--cluster", address))
        assert result.exit_code == 1
        assert result.output.startswith(f"Error: no Dask scheduler answers at {address!r} (")
    result = invoke(*arguments(data, tmp_path, "--cluster", "nonsense"))
    assert result.exit_code == 1
    assert result.output.startswith("Error: no Dask scheduler answers at 'nonsense' (")
    with scheduler(tmp_path) as address:
        monkeypatch.setattr(_runner, "TIMEOUT", 2.0)
        result = invoke(*arguments(data, tmp_path, "--cluster", address))
    assert result.exit_code == 1
    assert result.output == f"Error: the Dask cluster at {address!r} has no workers\n"


def test_a_cluster_needs_dask(data, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "abstain.integrations._dask.joblib_backend", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = invoke(*arguments(data, tmp_path, "--cluster", "tcp://127.0.0.1:1"))
    assert result.exit_code == 1
    assert result.output == "Error: a cluster needs Dask: pip install 'dask[array,dataframe]' distributed\n"


# On one core


class Probe:
    """A learner that looks around, and says how many threads there are, and how many jobs of its own it would get."""

    def fit(self, features, labels):
        self.n_labels = labels.shape[1]
        return self

    def predict_proba(self, features):
        blas = max(pool["num_threads"] for pool in threadpool_info())
        jobs = Parallel(n_jobs=-1)._effective_n_jobs()
        return np.full((len(features), self.n_labels), blas * jobs / 8)


def probed(fold):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_models, "make", lambda *_: Probe())
        task = _runner.FitTask(0, "", "", 0, *fold.rows)
        return _runner.predict(task, (fold.problem.features, fold.problem.labels)).prediction


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_fit_has_one_core(brief, jobs):
    with _runner._workers(jobs, None):
        for found in Parallel()(delayed(probed)(fold) for fold in brief.folds):
            assert np.all(found.probabilities == 1 / 8)


# What cannot be fitted, or written


def test_a_learner_that_fails_leaves_what_is_fitted(brief, tmp_path, monkeypatch):
    run(brief, out=tmp_path / "right", n_jobs=1)
    make = _models.make
    fits = []

    def fragile(*arguments):
        fits.append(arguments)
        if len(fits) == 3:
            raise ZeroDivisionError("the data are too good")
        return make(*arguments)

    brief.folds[0].settings  # noqa: B018 (makes models, too)
    [fold.name for fold in brief.folds]
    monkeypatch.setattr(_models, "make", fragile)
    message = "^small, br-lr, fold 3 of 3: ZeroDivisionError: the data are too good$"
    with pytest.raises(FitFailed, match=message):
        run(brief, out=tmp_path / "wrong", n_jobs=1)
    before = kept(tmp_path / "wrong")
    assert len(before) == 2
    monkeypatch.undo()
    run(brief, out=tmp_path / "wrong", n_jobs=1)
    assert contents(tmp_path / "wrong") == contents(tmp_path / "right")
    assert before.items() <= kept(tmp_path / "wrong").items()


@pytest.mark.parametrize("packed", [False, True], ids=["dense", "sparse"])
def test_missing_numbers_become_the_median_of_the_others(packed):
    features = np.random.default_rng(0).normal(size=(12, 3))
    features[[1, 5, 9], [0, 2, 0]] = np.nan
    known, new = np.arange(8), np.arange(8, 12)
    table = sparse.csr_array(features) if packed else features
    filled = [part.toarray() if packed else part for part in _impute(table[known], table[new])]
    medians = np.nanmedian(features[known], axis=0)
    for rows, part in zip((known, new), filled, strict=True):
        np.testing.assert_array_equal(part, np.where(np.isnan(features[rows]), medians, features[rows]))
    assert (_impute(table[:1], table[2:3])[0] != table[:1]).sum() == 0


def test_gaps_are_no_obstacle_but_the_infinite_is(tmp_path):
    lines = arff(n=20).splitlines()
    lines[-4] = re.sub(r"(.*),[^,]+,([^,]+)$", r"\1,?,\2", lines[-4])
    (tmp_path / "gaps.arff").write_text("\n".join(lines))
    given = ("experiment", "run", "--learners", "br-lr", "--folds", "2", "--losses", "hamming")
    result = invoke(*given, "--datasets", tmp_path / "gaps.arff", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    lines[-4] = lines[-4].replace("?", "1e999")
    (tmp_path / "huge.arff").write_text("\n".join(lines))
    result = invoke(*given, "--datasets", tmp_path / "huge.arff", "--out", tmp_path / "other")
    assert result.exit_code == 1
    assert "huge.arff" in result.output
    assert not (tmp_path / "other").exists()


def test_other_settings_in_the_same_folder(data, tmp_path):
    given = ("experiment", "run", "--datasets", data, "--learners", "br-lr", "--losses", "hamming", "-o", tmp_path)
    said = [invoke(*given, "--folds", folds).output for folds in ("2", "2", "3")]
    assert ["were replaced" in text for text in said] == [False, False, True]
    assert len(list((tmp_path / "probabilities").iterdir())) == 5


def test_a_folder_that_cannot_be(data, tmp_path):
    (tmp_path / "file").write_text("precious")
    result = invoke(*arguments(data, tmp_path / "file"))
    assert result.exit_code == 2
    assert "is a file" in result.output
    result = invoke(*arguments(data, tmp_path / "file" / "below"))
    assert result.exit_code == 1
    assert "Not a directory" in result.output
    assert (tmp_path / "file").read_text() == "precious"
    result = invoke(*arguments(data, "/proc/nowhere"))
    assert result.exit_code == 1
    assert result.output == "Error: /proc/nowhere: No such file or directory\n"


def test_results_that_do_not_fit_on_the_disk(data, uninterrupted, tmp_path):
    """The kernel refuses files of more than 20 kB: there is place for probabilities, but not for results."""
    shutil.copytree(uninterrupted / "probabilities", tmp_path / "probabilities")
    (tmp_path / "results.csv").write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        result = invoke(*arguments(data, tmp_path, "--jobs=1"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.exit_code == 1
    assert re.fullmatch(r"Error: .*File too large.*\n", result.output)
    assert not list(tmp_path.rglob("*.part"))
    assert (tmp_path / "results.csv").read_text() == "old"
    assert invoke(*arguments(data, tmp_path, "--jobs=1")).exit_code == 0
    assert contents(tmp_path) == contents(uninterrupted)


def test_a_disk_that_is_full(brief, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("no right to mount a file system")
    try:
        with pytest.raises(OSError, match="No space left on device"):
            run(brief, out=disk, n_jobs=1)
        assert not list(disk.rglob("*.part"))
        assert kept(disk)
        subprocess.run(["mount", "-o", "remount,size=1m", disk], check=True)
        run(brief, out=disk, n_jobs=1)
        run(brief, out=tmp_path / "elsewhere", n_jobs=1)
        assert contents(disk) == contents(tmp_path / "elsewhere")
    finally:
        subprocess.run(["umount", disk], check=True)


# Data


MIXED = """@relation mixed
@attribute size numeric
@attribute colour {red,green,blue}
@attribute weight numeric
@attribute old {no,yes}
@attribute sky {0,1}
@attribute sea {0,1}
@data
"""
DENSE = "1.5,green,2,no,1,0\n2.5,red,3,yes,0,1\n0,blue,0,no,1,1\n"
SPARSE = "{0 1.5,1 green,2 2,4 1}\n{0 2.5,2 3,3 yes,5 1}\n{1 blue,4 1,5 1}\n"
XML = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="sky"/><label name="sea"/></labels>'


@pytest.mark.parametrize("rows", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("labels", ["xml", "meka"])
def test_nominal_features_become_columns(tmp_path, rows, labels):
    (tmp_path / "mixed.arff").write_text(
        MIXED.replace("mixed", "mixed" if labels == "xml" else "'mixed: -C -2'") + rows
    )
    if labels == "xml":
        (tmp_path / "mixed.xml").write_text(XML)
    found = load(str(tmp_path / "mixed.arff"))
    features = found.features.toarray() if rows == SPARSE else found.features
    assert sparse.issparse(found.features) == (rows == SPARSE)
    size_weight_red_green_blue_no_yes = [[1.5, 2, 0, 1, 0, 1, 0], [2.5, 3, 1, 0, 0, 0, 1], [0, 0, 0, 0, 1, 1, 0]]
    assert features.tolist() == size_weight_red_green_blue_no_yes
    assert found.labels.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert (found.name, found.origin, list(found.label_names)) == ("mixed", "mixed.arff", ["sky", "sea"])


def test_sparse_and_dense_files_give_the_same(tmp_path):
    rng = np.random.default_rng(1)
    table = np.hstack([rng.integers(0, 2, (40, 3)), rng.integers(0, 3, (40, 8))])
    head = arff().split("@data")[0] + "@data\n"
    (tmp_path / "dense.arff").write_text(head + "".join(",".join(map(str, row)) + "\n" for row in table.tolist()))
    packed = ("{" + ",".join(f"{j} {value}" for j, value in enumerate(row) if value) + "}\n" for row in table.tolist())
    (tmp_path / "sparse.arff").write_text(head + "".join(packed))
    both = [load(name, folder=tmp_path) for name in ("dense", "sparse")]
    results = run(Plan(both, learners=["br-lr"], losses=["hamming"], n_folds=2), out=tmp_path / "out", n_jobs=1).results
    dense, packed = (part.drop(columns="dataset") for _, part in results.groupby("dataset"))
    np.testing.assert_allclose(dense.select_dtypes("number"), packed.select_dtypes("number"), rtol=1e-6)


def test_data_by_name(data, tmp_path):
    (tmp_path / "deeper").mkdir()
    (tmp_path / "out").mkdir()
    shutil.copy(data, tmp_path / "deeper" / "My_Music.arff")
    shutil.copy(data, tmp_path / "nus-wide-cVLADplus.arff")
    assert load("my-music", folder=tmp_path).name == load("MY_MUSIC", folder=tmp_path).name == "my-music"
    assert load("NUS_WIDE", folder=tmp_path).name == "nus-wide"
    assert load(str(tmp_path / "deeper" / "My_Music.arff")).name == "My_Music"
    with pytest.raises(
        MissingFile, match=r"there is no my-musik.arff in .*; did you mean 'My_Music'\? \(there are My_Mu"
    ):
        load("my-musik", folder=tmp_path)
    with pytest.raises(MissingFile, match=r"there is no x.arff in '.*out' or .* \(there are no ARFF files\)"):
        load("x", folder=tmp_path / "out")
    with pytest.raises(MissingFile, match="there is no folder"):
        load("x", folder=tmp_path / "nowhere")


# The command line


@pytest.fixture
def loaded(monkeypatch, data):
    """The names of the data sets that are asked for; there is but one."""
    names = []
    one = load(str(data))

    def remember(name, folder):
        names.append(name)
        return _problems.Problem(name, one.features, one.labels, one.label_names, one.origin)

    monkeypatch.setattr("abstain.experiment.load", remember)
    monkeypatch.setattr("abstain.experiment.look_up", remember)
    return names


@pytest.mark.parametrize(
    "given",
    [
        "--datasets a b",
        "--datasets a,b",
        "--datasets=a,b",
        "--datasets=a --datasets b",
        "--datasets a --folds 3 --datasets=b",
        "--datasets a, b",
        "--datasets=a b --jobs -1",
    ],
)
def test_several_values(loaded, tmp_path, given):
    result = invoke("experiment", "run", *given.split(), "--dry-run", "--losses", "f1", "rank", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert loaded == ["a", "b"]
    assert "Losses: f1, rank;" in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ("--datasets", 2, "Option '--datasets' requires an argument."),
        ("--datasets=", 2, "there is no name in ''"),
        ("--datasets , --dry-run", 2, "there is no name in ','"),
        ("--dry-run --losses", 2, "Option '--losses' requires an argument."),
        ("a --datasets b", 2, "Got unexpected extra argument (a)"),
        ("--datasets a --dry-run b", 2, "Got unexpected extra argument (b)"),
        ("--dataset a", 2, "No such option '--dataset'"),
        ("--jobs 0", 2, "0 is no number of folds to fit at once"),
        ("--jobs -2", 2, "-2 is not in the range x>=-1"),
        ("--folds 1", 2, "1 is not in the range x>=2"),
        ("--seed -1", 2, "-1 is not in the range"),
        ("--data nowhere", 2, "Directory 'nowhere' does not exist."),
        ("--learners br-lf", 1, "Error: there is no learner 'br-lf'; did you mean 'br-lr'? (there are br-lr, "),
        ("--learners br-lr br-lr", 1, "Error: the learner 'br-lr' is listed twice"),
        (
            "--losses f2",
            1,
            "Error: there is no loss 'f2' (there are hamming, rank, f1, jaccard, subset)",
        ),
        ("--losses f1 f1", 1, "Error: the loss 'f1' is listed twice"),
    ],
)
def test_mistakes_are_explained_before_data_are_loaded(loaded, given, code, message):
    result = invoke("experiment", "run", *given.split())
    assert result.exit_code == code
    assert message in result.output
    assert not loaded


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("--datasets a b a", "Error: the data set 'a' is listed twice"),
        ("--datasets a --folds 121", "Error: a has 120 instances, too few for 121 folds"),
    ],
)
def test_mistakes_about_the_data(loaded, tmp_path, given, message):
    result = invoke("experiment", "run", *given.split(), "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert message in result.output
    assert not (tmp_path / "out").exists()


def test_the_plan_says_what_is_kept(data, uninterrupted):
    before = sorted(uninterrupted.rglob("*"))
    result = invoke(*arguments(data, uninterrupted, "--dry-run"))
    assert result.exit_code == 0
    assert "765 fits; 0 of 10 folds are still to be fitted." in result.output
    assert sorted(uninterrupted.rglob("*")) == before
    result = invoke(*arguments(data, uninterrupted, "--dry-run", "--seed=1"))
    assert "10 of 10 folds are still to be fitted." in result.output
    assert "400 rows of results" in result.output


def nobody_listens(*arguments, **options):
    raise AssertionError("a plan needs no connection")


def test_the_plan_downloads_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", nobody_listens)
    monkeypatch.delenv("ABSTAIN_DATA", raising=False)
    monkeypatch.setenv("ABSTAIN_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "out"
    options = ["--datasets", "yeast", "birds", "--learners", "br-lr", "--dry-run", "--out", out]
    shown = invoke("experiment", "run", *options)
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert lines[1].split() == ["yeast", "2417", "×", "103", "×", "14", "br-lr", "140", "unknown"]
    assert lines[2].split() == ["birds", "645", "×", "260", "×", "19", "br-lr", "190", "unknown"]
    assert lines[4] == "330 fits; 20 of 20 folds are still to be fitted."
    assert lines[-1] == "To be downloaded first, 3.5 MB: yeast.arff, yeast.xml, birds.arff, birds.xml."
    assert list(tmp_path.iterdir()) == []
    told = json.loads(invoke("experiment", "run", *options, "--json").output)
    assert told["downloads"][1] == {"file": "yeast.xml", "bytes": 526, "urls": list(DATASETS["yeast"].files[1].urls)}
    assert told["plan"][0]["folds_kept"] is None
    for wrong, message in (
        ("yeast YEAST", "'yeast' is listed twice"),
        ("flags --folds 195", "flags has 194 instances"),
    ):
        refused = invoke("experiment", "run", "--dry-run", "--datasets", *wrong.split())
        assert refused.exit_code == 1
        assert message in refused.output


@needs_data
def test_the_plan_reads_what_is_here(tmp_path, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", nobody_listens)
    monkeypatch.setenv("ABSTAIN_DATA", str(DATA))
    monkeypatch.setenv("ABSTAIN_CACHE", str(tmp_path / "cache"))
    shown = invoke("experiment", "run", "--datasets", "emotions", "--learners", "br-lr", "--dry-run", "-o", tmp_path)
    assert shown.exit_code == 0, shown.output
    assert shown.output.splitlines()[1].split()[-4:] == ["60", "0", "of", "10"]
    assert "downloaded" not in shown.output
    assert list(tmp_path.iterdir()) == []


def shown_on_a_terminal(brief, out):
    """What there is to see on a terminal."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 120))
    with os.fdopen(theirs, "w") as terminal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        run(brief, out=out, n_jobs=1)
        terminal.flush()
        os.set_blocking(ours, False)
        shown = os.read(ours, 1_000_000).decode()
    os.close(ours)
    return shown


def test_progress_on_a_terminal(brief, tmp_path, capfd):
    shown = shown_on_a_terminal(brief, tmp_path)
    assert "3 folds to fit:   0%" in shown
    assert "so far, about" in shown
    assert "deciding: 100%" in shown
    percentages = [int(found) for found in re.findall(r"(-?\d+)%", shown)]
    assert all(0 <= found <= 100 for found in percentages)
    assert "-0%" not in shown
    store = Store(tmp_path / "probabilities")
    store.path(brief.folds[1]).unlink()
    assert re.search(r"1 folds to fit:  6\d%.*1 folds to fit: 100%", shown_on_a_terminal(brief, tmp_path), re.S)
    assert "to fit" not in shown_on_a_terminal(brief, tmp_path)
    run(brief, out=tmp_path, n_jobs=1)
    run(brief, out=tmp_path, n_jobs=1, progress=False)
    assert capfd.readouterr() == ("", "")
