"""Inner loops on plain, trusted arrays. Nothing here checks its input; everything here releases the GIL."""

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any] | None = None, *, fastmath: Any = False) -> Any:
    """Compile at the first call, without the GIL, and keep the result for later processes where that is possible."""
    if function is None:
        return lambda decorated: kernel(decorated, fastmath=fastmath)
    try:
        return njit(nogil=True, cache=True, fastmath=fastmath)(function)
    except RuntimeError:  # nowhere to write: compile anew in each process
        return njit(nogil=True, fastmath=fastmath)(function)
