"""Stages of work that run at the same time, each in a thread of its own, and that end together."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from queue import Empty, SimpleQueue
from threading import Event, Semaphore, Thread
from typing import Any, TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.05
"""Time between two checks whether a stage that waits for something is still needed."""

_stopped: ContextVar[Event | None] = ContextVar("stopped", default=None)


class StageStopped(BaseException):
    """Ends a stage whose items nobody needs any more; never seen outside."""


def require_needed() -> None:
    """Raise `StageStopped` if this runs in a stage whose items nobody needs any more."""
    stopped = _stopped.get()
    if stopped is not None and stopped.is_set():
        raise StageStopped


@contextmanager
def prefetch(items: Iterable[T], depth: int = 2) -> Iterator[Iterator[T]]:
    """Make items in another thread while earlier ones are in use; at most `depth` of them wait.

    An error that is raised there is raised here. At the end of the context the other thread is stopped, and has closed
    the items: afterwards no file is open that the items had opened.
    """
    made: SimpleQueue[tuple[str, Any]] = SimpleQueue()
    n_free, stopped = Semaphore(depth), Event()
    source = iter(items)

    def make() -> None:
        _stopped.set(stopped)
        try:
            try:
                while True:
                    n_free.acquire()
                    require_needed()
                    made.put(("item", next(source)))
            finally:
                if hasattr(source, "close"):
                    source.close()
        except StopIteration:
            made.put(("end", None))
        except BaseException as reason:
            made.put(("error", reason))

    thread = Thread(name="abstain stage", target=copy_context().run, args=(make,), daemon=True)
    thread.start()
    try:
        yield _received(made, n_free)
    finally:
        stopped.set()
        n_free.release()
        thread.join()


def _received(made: SimpleQueue[tuple[str, Any]], n_free: Semaphore) -> Iterator[Any]:
    while True:
        kind, item = _next(made)
        if kind == "end":
            return
        if kind == "error":
            raise item
        yield item
        del item
        n_free.release()


def _next(made: SimpleQueue[tuple[str, Any]]) -> tuple[str, Any]:
    """Wait for the next item; a stage that waits notices when it is not needed any more."""
    if _stopped.get() is None:
        return made.get()
    while True:
        try:
            return made.get(timeout=POLL_SECONDS)
        except Empty:
            require_needed()
