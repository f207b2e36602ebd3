"""What goes wrong on real machines: killed, no room, cut off, nobody listens. Nothing is half-written, nothing lost."""

import gzip
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc as pa_ipc
import pyarrow.parquet as pq
import pytest

import abstain
from abstain.streams._tables import Table, read_table, write_table

pytestmark = pytest.mark.slow

ABSTAIN = [sys.executable, "-m", "abstain"]
HINT = " (--on-error skip or abstain goes on without it)\n"
KINDS = (".parquet", ".csv", ".csv.gz", ".arrow", ".arrows", ".npy", ".npz")
P = np.random.default_rng(0).random((200_000, 20), np.float32)


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    """A table, one that takes so long that it can be disturbed on any machine, and three parts of it."""
    folder = tmp_path_factory.mktemp("scores")
    np.save(folder / "p.npy", P)
    np.save(folder / "long.npy", np.tile(P, (8, 1)))
    (folder / "parts").mkdir()
    for k in range(3):
        np.save(folder / "parts" / f"{k}.npy", np.tile(P[k::3], (6, 1)))
    return folder


def slowly(*arguments):
    """A command that takes a second or more."""
    return [*ABSTAIN, "decide", *map(str, arguments), "--loss", "f1", "--penalty", "0.01"]


def seen(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("[!.]*") if file.is_file())


def unfinished_files(folder):
    return list(folder.rglob(".*.part"))


def wait_until(condition, process):
    end = time.monotonic() + 600  # a machine that does much else is slow, not wrong
    while not condition():
        assert process.poll() is None, "it was done before it could be disturbed"
        assert time.monotonic() < end
        time.sleep(0.002)


def begun(folder):
    return any(draft.stat().st_size > 0 for draft in unfinished_files(folder))


@pytest.mark.parametrize("kind", [".parquet", ".csv", ".arrow", ".npy"])
def test_killed_while_writing(kind, scores, tmp_path):
    before = b"what was there before"
    target = tmp_path / f"q{kind}"
    target.write_bytes(before)
    with subprocess.Popen(slowly(scores / "long.npy", "-o", target)) as process:
        wait_until(lambda: begun(tmp_path), process)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert seen(tmp_path) == [target.name]
    assert target.read_bytes() == before
    subprocess.run(slowly(scores / "p.npy", "-o", target, "--quiet"), check=True)
    found = abstain.PartialPrediction(read_table(target)).labels if kind != ".npy" else np.load(target)
    np.testing.assert_array_equal(found, abstain.decide(P, "f1", 0.01).labels)


def test_killed_in_a_folder_and_resumed(scores, tmp_path):
    command = slowly(scores / "parts", "-o", f"{tmp_path / 'out'}/", "--resume")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        wait_until((tmp_path / "out" / ".0.npy.done").exists, process)
        process.kill()
    assert seen(tmp_path) in (["out/0.npy"], ["out/0.npy", "out/1.npy"])
    state = (tmp_path / "out" / "0.npy").stat()
    for draft in unfinished_files(tmp_path):
        os.utime(draft, (0, 0))  # as if it had been killed long ago
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "there already" in done.stdout
    assert (tmp_path / "out" / "0.npy").stat().st_mtime_ns == state.st_mtime_ns
    assert seen(tmp_path) == [f"out/{k}.npy" for k in range(3)]
    assert unfinished_files(tmp_path) == []
    for k in range(3):
        found = np.load(tmp_path / "out" / f"{k}.npy")
        np.testing.assert_array_equal(found, np.tile(abstain.decide(P[k::3], "f1", 0.01).labels, (6, 1)))


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "\nInterrupted.\n"), (signal.SIGTERM, 143, ""), (signal.SIGHUP, 129, "")],
)
@pytest.mark.parametrize("arguments", [["decide", "--queue", "r.parquet"], ["budget", "--rate", "0.1"]])
def test_interrupted(arguments, number, code, said, scores, tmp_path):
    command = [*ABSTAIN, arguments[0], str(scores / "long.npy"), *arguments[1:], "-o", "q.npy", "--loss", "f1"]
    # Who runs the tests under nohup ignores SIGHUP, and so would the process.
    as_usual = partial(signal.signal, number, signal.SIG_DFL)
    options = {"cwd": tmp_path, "stderr": subprocess.PIPE, "text": True, "preexec_fn": as_usual}
    with subprocess.Popen(command, **options) as process:
        wait_until(lambda: begun(tmp_path), process)
        process.send_signal(number)
        found = process.communicate()[1]
    assert (process.returncode, found) == (code, said)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def calibration(tmp_path_factory):
    file = tmp_path_factory.mktemp("calibration") / "c.json"
    abstain.calibration.fit(P[:2000], P[:2000] > 0.6, method="isotonic").save(file)
    return file


def calibrating(*arguments):
    return [*ABSTAIN, "calibrate", *map(str, arguments)]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_calibration_interrupted(number, code, scores, calibration, tmp_path):
    command = calibrating(scores / "long.npy", "--with", calibration, "-o", "q.parquet")
    (tmp_path / "q.parquet").write_bytes(b"before")
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        wait_until(lambda: begun(tmp_path), process)
        process.send_signal(number)
        assert b"Traceback" not in process.communicate()[1]
    assert process.returncode == code
    assert seen(tmp_path) == ["q.parquet"]
    assert (tmp_path / "q.parquet").read_bytes() == b"before"
    assert number == signal.SIGKILL or unfinished_files(tmp_path) == []


def test_learning_interrupted(tmp_path):
    rows = b"0.1,0.2,0.9\n" * 800_000
    (tmp_path / "y.csv").write_bytes(b"a,b,c\n" + b"0,0,1\n" * 1_600_000)
    command = calibrating("-", "y.csv", "-o", "c.json")
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(b"a,b,c\n" + rows)
        process.stdin.flush()  # all but a pipe's worth of it has been read
        process.send_signal(signal.SIGINT)
        assert process.wait(600) == 130
        assert process.stderr.read() == b"\nInterrupted.\n"
    assert [file.name for file in tmp_path.iterdir()] == ["y.csv"]


def test_calibration_killed_in_a_folder_and_resumed(scores, calibration, tmp_path):
    command = calibrating(scores / "parts", "--with", calibration, "-o", f"{tmp_path / 'out'}/", "--resume")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        wait_until((tmp_path / "out" / ".0.npy.done").exists, process)
        process.kill()
    assert seen(tmp_path) in (["out/0.npy"], ["out/0.npy", "out/1.npy"])
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "there already" in done.stdout
    fitted = abstain.calibration.Calibration.load(calibration)
    for k in range(3):
        found = np.load(tmp_path / "out" / f"{k}.npy")
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, np.tile(fitted.transform(P[k::3]), (6, 1)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGPIPE])
def test_nobody_waits_for_input_that_does_not_come(number, tmp_path):
    rows = b"a,b,c\n" + b"0.1,0.2,0.9\n" * 800_000
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*ABSTAIN, "decide", "-"], **pipes) as process:
        process.stdin.write(rows)
        process.stdin.flush()  # and then nothing more, for whatever reason
        assert process.stdout.readline() == b'"a","b","c"\n'
        if number == signal.SIGPIPE:
            process.stdout.close()  # which is noticed when more is written
            with suppress(BrokenPipeError):
                process.stdin.write(rows)
                process.stdin.flush()
        else:
            process.send_signal(number)
        assert process.wait(600) == {signal.SIGINT: 130, signal.SIGPIPE: 141}[number]
        assert b"Traceback" not in process.stderr.read()


def limited(size):
    """No file may grow beyond so many bytes: the disk says no, as one does that is full."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize("kind", KINDS)
def test_a_disk_that_takes_no_more(kind, scores, tmp_path):
    command = [*ABSTAIN, "decide", str(scores / "p.npy"), "-o", f"q{kind}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, preexec_fn=limited(100_000))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []


@contextmanager
def small_disk(folder, size):
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small disk can be mounted by root only")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("kind", [".parquet", ".npz"])
def test_a_full_disk(kind, scores, tmp_path):
    with small_disk(tmp_path / "disk", "200k") as disk:
        (disk / "precious").write_text("x")
        command = [*ABSTAIN, "decide", str(scores / "p.npy"), "-o", str(disk / f"q{kind}")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stderr == f"Error: {disk / f'q{kind}'}: No space left on device; nothing was written\n"
        assert seen(disk) == ["precious"]
        assert unfinished_files(disk) == []


# What needs the folder for temporary files: packed arrays, row groups too large to be read as a whole, ids too many to
# be sorted in memory, and standard input of a kind that cannot be read from a pipe.
def write_packed(path):
    np.savez_compressed(path, values=P)


def write_large_row_group(path):
    pq.write_table(pa.table({f"l{j}": np.zeros(300_000) for j in range(70)}), path, row_group_size=300_000)


def write_many_ids(path):
    n = 1 << 21
    pq.write_table(pa.table({"id": np.arange(n), "a": np.zeros(n, np.float32)}), path)


def write_standard_input(path):
    np.save(path, P)


@pytest.mark.parametrize(
    ("write", "kind"),
    [
        (write_packed, ".npz"),
        (write_large_row_group, ".parquet"),
        (write_many_ids, ".parquet"),
        (write_standard_input, ".npy"),
    ],
)
def test_a_full_folder_for_temporary_files(write, kind, tmp_path):
    source, target = tmp_path / f"p{kind}", tmp_path / "q.parquet"
    write(source)
    given = "-" if write is write_standard_input else str(source)
    with small_disk(tmp_path / "disk", "200k") as disk, source.open("rb") as stdin:
        command = [*ABSTAIN, "decide", given, "-o", str(target), "--quiet"]
        environment = os.environ | {"TMPDIR": str(disk)}
        done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, env=environment)
    expected = "cannot be written to (No space left on device); set TMPDIR to a folder with enough room\n"
    assert done.stderr == f"Error: {disk}: the folder for temporary files {expected}"
    assert done.returncode == 1
    assert not target.exists()


def test_standard_output_that_takes_no_more(scores):
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run([*ABSTAIN, "decide", str(scores / "p.npy")], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("format_", [".npy", ".csv"])
def test_a_pipe_closed_by_its_reader(format_, scores, tmp_path):
    source = scores / "p.npy"
    if format_ == ".csv":
        source = write_table(P[:20_000], tmp_path / "p.csv") or tmp_path / "p.csv"
    with subprocess.Popen([*ABSTAIN, "decide", str(source)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        first = process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        code = process.wait()
    assert first.count(b",") == 19
    assert (code, said) == (141, b"")


def damaged(table, kind, path):
    """A whole file of this kind, without its last third."""
    if kind in (".npy", ".npz"):
        np.savez(path, values=table) if kind == ".npz" else np.save(path, table)
    elif kind == ".arrows":
        columns = pa.table({f"l{j}": column for j, column in enumerate(table.T)})
        with pa.OSFile(str(path), "wb") as target, pa_ipc.new_stream(target, columns.schema) as writer:
            writer.write_table(columns, 100)
    else:
        write_table(table, path)
    data = path.read_bytes()
    path.write_bytes(data[: 2 * len(data) // 3])


@pytest.mark.parametrize("kind", [".parquet", ".csv.gz", ".arrow", ".arrows", ".npy", ".npz"])
def test_a_truncated_input(kind, tmp_path):
    damaged(P[:5000], kind, tmp_path / f"p{kind}")
    command = [*ABSTAIN, "decide", f"p{kind}", "-o", "q.parquet", "--queue", "r.parquet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: p{kind}: ")
    assert done.stderr.count("\n") == 1
    assert seen(tmp_path) == [f"p{kind}"]


def test_a_record_cut_off_in_csv(tmp_path):
    (tmp_path / "p.csv").write_text("id,sky,sea\na,0.1,0.2\nb,0.3")
    done = subprocess.run([*ABSTAIN, "decide", "p.csv"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "Error: p.csv: line 3 has 2 cells, expected 3\n")
    packed = gzip.compress(b"id,sky,sea\n" + b"a,0.1,0.2\n" * 10_000)
    done = subprocess.run(
        [*ABSTAIN, "decide", "-", "-o", "q.csv"], cwd=tmp_path, capture_output=True, input=packed[:-20]
    )
    assert done.returncode == 1
    assert done.stderr.startswith(b"Error: <stdin>: ")
    assert seen(tmp_path) == ["p.csv"]


def test_a_bad_value_far_down(tmp_path):
    n, row = 17_400_000, 17_345_678
    values = np.lib.format.open_memmap(tmp_path / "p.npy", "w+", np.int8, (n, 2))
    values[row, 1] = 7
    values.flush()
    done = subprocess.run([*ABSTAIN, "decide", "p.npy", "-o", "q.npy"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == f"Error: p.npy: row {row}, column 1 is 7; a probability is a number from 0 to 1" + HINT
    assert seen(tmp_path) == ["p.npy"]
    command = [*ABSTAIN, "decide", "p.npy", "-o", "q.npy", "--on-error", "abstain"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == "1 label left open because what was there is no probability\n"
    answers = np.load(tmp_path / "q.npy", mmap_mode="r")
    assert answers.shape == (n, 2)
    assert np.argwhere(answers).tolist() == [[row, 1]]
    assert answers[row, 1] == -1


def test_the_third_file_is_not_like_the_others(tmp_path):
    for k, names in enumerate([("sky", "sea"), ("sea", "sky"), ("sky", "see")]):
        write_table(Table(P[:9, :2], names), tmp_path / f"{k}.parquet")
    command = [*ABSTAIN, "decide", "0.parquet", "1.parquet", "2.parquet", "-o", "out/"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("Error: 2.parquet: there is no column 'sea'")
    assert seen(tmp_path) == ["0.parquet", "1.parquet", "2.parquet"]


def test_an_id_that_comes_twice_in_another_file(tmp_path):
    for k in range(3):
        ids = [f"r{i}" for i in range(9 * k, 9 * k + 9)]
        ids[4] = "r4"
        write_table(Table(P[:9, :2], ("sky", "sea"), ids), tmp_path / f"{k}.parquet")
    command = [*ABSTAIN, "decide", "0.parquet", "1.parquet", "2.parquet", "-o", "q.parquet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "Error: 1.parquet: row 4 has the id 'r4', as row 4 of 0.parquet has\n"
    assert seen(tmp_path) == ["0.parquet", "1.parquet", "2.parquet"]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads peaks of memory as Linux tells them")
def test_memory_stays_bounded(tmp_path):
    """Four hundred megabytes in a process that may have little more than what importing takes."""
    n, m = 1_000_000, 100
    names = [f"l{j}" for j in range(m)]
    schema = pa.schema([(name, pa.float32()) for name in names])
    with pq.ParquetWriter(tmp_path / "p.parquet", schema) as writer:
        for k in range(4):
            rng = np.random.default_rng(k)
            writer.write_table(pa.Table.from_arrays([rng.random(n // 4, np.float32) for _ in names], schema=schema))
    # What `resource` tells would count the process that starts this one, too.
    code = (
        "import sys; from pathlib import Path; from abstain._cli import main; main(sys.argv[1:], standalone_mode=False)"
    )
    code += "; print(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])"
    command = [sys.executable, "-c", code, "decide", "p.parquet", "-o", "q.parquet", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert pq.ParquetFile(tmp_path / "q.parquet").metadata.num_rows == n
    assert int(done.stdout) < 1024 * 1024  # KiB
