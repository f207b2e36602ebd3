"""Connections to Dask clusters, and errors that say why there is none."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from abstain._utils.extras import missing

TIMEOUT = 10.0
"""Seconds to wait for a scheduler, and for its first worker."""


@contextmanager
def connected(address: str, timeout: float = TIMEOUT) -> Iterator[Any]:
    """Connect to the scheduler at an address; yield a client that has at least one worker."""
    try:
        from distributed import Client
    except ImportError as reason:
        raise missing("a cluster needs Dask", "dask", "distributed") from reason
    try:
        client = Client(address, timeout=timeout)
    except (OSError, ValueError) as reason:
        raise ConnectionError(f"no Dask scheduler answers at {address!r} ({reason})") from reason
    with client:
        try:
            client.wait_for_workers(1, timeout=timeout)
        except TimeoutError as reason:
            raise ConnectionError(f"the Dask cluster at {address!r} has no workers") from reason
        yield client
