"""Dispatch to the package that computes with tables that are not in memory.

A Dask collection is handled by `abstain.integrations._dask`, which imports the floors that call it. They therefore do
not import it: they ask here, and it is imported by name when the first Dask collection is given.
"""

from importlib import import_module
from typing import Any

from abstain._utils.extras import missing

BACKENDS = {
    "dask": "abstain.integrations._dask.backend",
    "dask_expr": "abstain.integrations._dask.backend",
}
"""The top-level package of a collection's class → the module with the lazy counterparts of the public functions."""


def is_lazy(*tables: Any) -> bool:
    """Whether any of the tables is a Dask collection, or was made from one; Dask is not imported to find out."""
    return any(_package_of(table) is not None for table in tables)


def lazy_backend(*tables: Any) -> Any:
    """Return the module that computes with these tables, or None if all of them are in memory."""
    found = next(filter(None, map(_package_of, tables)), None)
    return None if found is None else named_backend(found)


def named_backend(name: str) -> Any:
    """Import the module that computes with the collections of a package, for example ``"dask"``."""
    try:
        return import_module(BACKENDS[name])
    except ModuleNotFoundError as reason:
        if reason.name != name:
            raise
        raise missing("a cluster needs Dask", "dask", "distributed") from reason


def _package_of(table: Any) -> str | None:
    packages = (kind.__module__.partition(".")[0] for kind in type(table).__mro__)
    return next((package for package in packages if package in BACKENDS), None)
