"""Stages that run at the same time: nothing is lost, and whoever leaves takes everything down with them."""

import io
import os
import threading
import time

import numpy as np
import pytest
from click.testing import CliRunner

import abstain
from abstain._cli import main
from abstain.streams._formats.input_file import PeekedStream
from abstain.streams._formats.parquet_files import ParquetReader
from abstain.streams._prefetch import prefetch
from abstain.streams._sizes import SIZES


def stage_threads():
    return [thread for thread in threading.enumerate() if thread.name == "abstain stage"]


class Slow:
    """Items that take their time to be closed, as a file on a slow disk does."""

    def __init__(self, items):
        self.items, self.is_closed = items, False

    def __iter__(self):
        try:
            yield from self.items
        finally:
            time.sleep(0.3)
            self.is_closed = True


def test_the_same_items_in_the_same_order():
    with prefetch(range(100)) as items:
        assert list(items) == list(range(100))


def test_items_are_made_ahead_but_not_far():
    made = []
    with prefetch((made.append(k) or k for k in range(100)), depth=3) as items:
        assert next(items) == 0
        end = time.monotonic() + 60
        while len(made) < 3 and time.monotonic() < end:
            time.sleep(0.001)
        assert 3 <= len(made) <= 4


@pytest.mark.parametrize("stop", ["at the end", "early", "by an error"])
def test_the_items_are_closed_when_the_context_ends(stop):
    slow = Slow(range(5))
    try:
        with prefetch(slow) as items:
            for _ in items:
                if stop == "early":
                    break
                if stop == "by an error":
                    raise KeyError("here")
    except KeyError:
        assert stop == "by an error"
    assert slow.is_closed
    assert stage_threads() == []


def test_an_error_of_the_items_is_raised_where_they_are_used():
    def items():
        yield 1
        raise KeyError("there")

    found = []
    with pytest.raises(KeyError, match="there"), prefetch(items()) as made:
        found.extend(made)
    assert found == [1]
    assert stage_threads() == []


def test_a_stage_that_fails_closes_the_stage_before_it():
    slow = Slow(range(100))

    def second():
        with prefetch(slow) as items:
            for k in items:
                if k == 3:
                    raise KeyError("between")
                yield k

    with pytest.raises(KeyError, match="between"), prefetch(second()) as items:
        list(items)
    assert slow.is_closed
    assert stage_threads() == []


def test_stages_that_wait_for_input_in_vain_are_stopped():
    """Nobody writes to the pipe, and nobody closes it: the error must come out nevertheless."""
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as source, open(writing, "wb"):  # noqa: PTH123

        def first():
            yield PeekedStream(b"", source).read(1)

        def second():
            with prefetch(first()) as items:
                yield from items

        with pytest.raises(KeyError, match="meanwhile"), prefetch(second()):
            raise KeyError("meanwhile")
        assert stage_threads() == []


@pytest.fixture
def scores(tmp_path):
    table = np.full((4000, 3), 0.2)
    table[1, 1] = 7.0
    abstain.write_table(abstain.Table(table, ["a", "b", "c"]), tmp_path / "p.parquet")
    truth = np.zeros((3999, 3), np.int8)
    abstain.write_table(abstain.Table(truth, ["a", "b", "c"]), tmp_path / "y.parquet")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ["decide", "p.parquet", "-o", "q.parquet"],
        ["budget", "p.parquet", "--rate", "0.1", "-o", "q.parquet"],
        ["evaluate", "y.parquet", "p.parquet"],
    ],
    ids=lambda command: command[0],
)
def test_a_command_that_fails_leaves_the_process_as_it_was(command, scores, monkeypatch):
    """Called in a test, a notebook or a server, where the reading of a file takes long to end."""
    column_batches, closed = ParquetReader.column_batches, []

    def slow_batches(*args):
        try:
            yield from column_batches(*args)
        finally:
            time.sleep(0.2)
            closed.append(True)

    monkeypatch.setattr(ParquetReader, "column_batches", slow_batches)
    monkeypatch.setattr(SIZES, "batch_bytes", 8 * 3 * 50)
    monkeypatch.setattr(os, "_exit", lambda code: pytest.fail(f"the process would have ended with {code}"))
    monkeypatch.chdir(scores)
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert closed
    assert stage_threads() == []


def test_who_closes_standard_output_does_not_close_that_of_the_process(scores, monkeypatch):
    """A server whose caller hangs up goes on to write."""
    monkeypatch.chdir(scores)
    with open("log", "wb", buffering=0) as log:  # noqa: PTH123

        class HungUp(io.RawIOBase):
            def writable(self):
                return True

            def write(self, data):
                raise BrokenPipeError

            def fileno(self):
                return log.fileno()

        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(HungUp()))
        with pytest.raises(SystemExit) as end:
            main(["decide", "p.parquet", "--on-error", "abstain", "-o", "-"])
        assert end.value.code == 141
        log.write(b"still here")
    assert (scores / "log").read_bytes() == b"still here"
    assert stage_threads() == []
