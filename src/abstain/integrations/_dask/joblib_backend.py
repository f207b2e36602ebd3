"""A Dask cluster as joblib's backend, so that no death of a worker goes unnoticed or loses the data."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from joblib._dask import DaskDistributedBackend  # what parallel_config(backend="dask") uses

from abstain.integrations._dask.client import connected


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
def joblib_backend(address: str, timeout: float) -> Iterator[tuple[Cluster, Callable[[Any], Any]]]:
    """The backend, and a function that hands data to the cluster."""
    with connected(address, timeout) as client:

        def share(data: Any) -> Any:
            """A task that returns the data, not data left with a worker: if that one dies, another does it again."""
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sending large graph")
                return client.submit(_same, data, pure=False)

        yield Cluster(client=client), share


def _same(data: Any) -> Any:
    return data
