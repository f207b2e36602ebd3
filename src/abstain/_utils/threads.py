"""Threads that work on blocks of rows.

The kernels release the GIL, so threads share the arrays and no row is copied. The environment variable
``ABSTAIN_NUM_THREADS`` limits their number; results do not depend on it.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeVar

from abstain._utils.errors import InvalidParameter

T = TypeVar("T")

_one_core: ContextVar[bool] = ContextVar("one_core", default=False)


def thread_count() -> int:
    """Return ``ABSTAIN_NUM_THREADS`` if it is set, else the number of this process's cores, or 1 within `one_core`."""
    chosen = os.environ.get("ABSTAIN_NUM_THREADS")
    if chosen:
        if not chosen.isdecimal() or int(chosen) < 1:
            raise InvalidParameter(
                f"the environment variable ABSTAIN_NUM_THREADS is {chosen!r}; expected a whole number ≥ 1"
            )
        return int(chosen)
    if _one_core.get():
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def one_core() -> Iterator[None]:
    """Work on one core, unless ``ABSTAIN_NUM_THREADS`` is set: for callers that already run a task on each core."""
    before = _one_core.set(True)
    try:
        yield
    finally:
        _one_core.reset(before)


def for_each(task: Callable[[T], None], items: Iterable[T]) -> None:
    """Run the task on every item. If some fail, the error of the first one, in the order of the items, is raised."""
    pending = list(items)
    workers = min(thread_count(), len(pending))
    if workers < 2:
        for item in pending:
            task(item)
        return
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(task, item) for item in pending]
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread: for many small problems, in which threads would mostly wait for each other."""
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
