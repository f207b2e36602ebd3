"""What a learner says while it works."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


@contextmanager
def reported(verbose: int, what: str) -> Iterator[None]:
    """Print what is being done, and when it is done how long it took; nothing unless verbose."""
    if not verbose:
        yield
        return
    print(f"[AbstainingClassifier] {what} ...", end="", flush=True)
    start = perf_counter()
    yield
    print(f" {perf_counter() - start:.1f} s", flush=True)
