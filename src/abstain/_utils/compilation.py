"""Compilation of inner loops with numba."""

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any] | None = None, *, fastmath: Any = False) -> Any:
    """Compile a function at its first call, to run without the GIL; later processes reuse the result where possible.

    A kernel works on plain arrays and does not check its input.
    """
    if function is None:
        return lambda decorated: kernel(decorated, fastmath=fastmath)
    try:
        return njit(nogil=True, cache=True, fastmath=fastmath)(function)
    except RuntimeError:  # nowhere to write: compile anew in each process
        return njit(nogil=True, fastmath=fastmath)(function)
