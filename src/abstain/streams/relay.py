"""Stages of work that run at the same time, each in a thread of its own."""

from collections.abc import Generator, Iterable
from contextvars import copy_context
from queue import SimpleQueue
from threading import Event, Semaphore, Thread
from typing import Any, TypeVar

from abstain.threads import STAGE

T = TypeVar("T")

PATIENCE = 1.0
"""Seconds to wait for a stage that is not needed any more."""


def ahead(items: Iterable[T], depth: int = 2) -> Generator[T, None, None]:
    """The same items, made in another thread while earlier ones are in use; at most so many wait.

    What is raised there is raised here. Whoever stops early stops the making, too.
    """
    made: SimpleQueue[tuple[str, Any]] = SimpleQueue()
    room, stopped = Semaphore(depth), Event()
    source = iter(items)

    def make() -> None:
        try:
            while True:
                room.acquire()
                if stopped.is_set():
                    return
                made.put(("item", next(source)))
        except StopIteration:
            made.put(("end", None))
        except BaseException as reason:
            made.put(("error", reason))
        finally:
            if hasattr(source, "close"):
                source.close()

    # As many cores there as here.
    thread = Thread(name=STAGE, target=copy_context().run, args=(make,), daemon=True)
    thread.start()
    try:
        while True:
            kind, item = made.get()
            if kind == "end":
                return
            if kind == "error":
                raise item
            yield item
            del item
            room.release()
    finally:
        stopped.set()
        room.release()
        thread.join(PATIENCE)  # it may wait for input that does not come
