"""A Dask cluster as joblib's backend, so that no death of a worker goes unnoticed or loses the data."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Client
from joblib._dask import DaskDistributedBackend  # what parallel_config(backend="dask") uses


class Cluster(DaskDistributedBackend):
    """Joblib's backend, which would wait forever for a task that Dask has given up."""

    def submit(self, func: Any, callback: Any = None) -> Any:
        """Let the callback know of errors, too."""
        future = super().submit(func, callback)
        future.add_done_callback(lambda done: callback(done.exception()) if done.exception() else None)
        return future

    def effective_n_jobs(self, n_jobs: int) -> int:
        """All cores there are; two for one, because joblib would do the work of one here."""
        return max(2, super().effective_n_jobs(n_jobs))


@contextmanager
def connected(address: str, patience: float) -> Iterator[tuple[Cluster, Callable[[Any], Any]]]:
    """The backend, and a function that hands data to the cluster."""
    try:
        client = Client(address, timeout=patience)
    except (OSError, ValueError) as reason:
        raise ConnectionError(f"no Dask scheduler answers at {address!r} ({reason})") from reason

    def share(data: Any) -> Any:
        """A task that returns the data, not data left with a worker: if that one dies, another does the task again."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")
            return client.submit(_same, data, pure=False)

    with client:
        try:
            client.wait_for_workers(1, timeout=patience)
        except TimeoutError as reason:
            raise ConnectionError(f"the Dask cluster at {address!r} has no workers") from reason
        yield Cluster(client=client), share


def _same(data: Any) -> Any:
    return data
