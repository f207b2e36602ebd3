"""A Dask cluster as joblib's backend: if a worker dies, its task fails or is done again, and no data is lost."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from joblib._dask import DaskDistributedBackend  # what parallel_config(backend="dask") uses

from abstain.integrations._dask.client import connected


class ClusterBackend(DaskDistributedBackend):
    """Joblib's backend, which would wait forever for a task that Dask has given up."""

    def submit(self, func: Any, callback: Any = None) -> Any:
        """Submit a task whose callback is called for errors, too."""
        future = super().submit(func, callback)
        future.add_done_callback(lambda done: callback(done.exception()) if done.exception() else None)
        return future

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return the number of cores, at least two: joblib would do the work of one in this process."""
        return max(2, super().effective_n_jobs(n_jobs))


@contextmanager
def joblib_backend(address: str, timeout: float) -> Iterator[tuple[ClusterBackend, Callable[[Any], Any]]]:
    """Connect to a cluster; yield the backend, and a function that hands data to the cluster."""
    with connected(address, timeout) as client:

        def share(data: Any) -> Any:
            """Submit a task that returns the data: unlike scattered data, it is made again if its worker dies."""
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sending large graph")
                return client.submit(_identity, data, pure=False)

        yield ClusterBackend(client=client), share


def _identity(data: Any) -> Any:
    return data
