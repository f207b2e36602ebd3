"""Dask arrays and data frames as blocks of rows: deciding a block is one task, and nothing runs before it must.

layout (what is known of a table that nobody has seen) → collection (its blocks, and the tasks that follow from them) →
predictions, profiles (the lazy counterparts of what `decide` and `risk_profile` give) and rates. Only this file can be
imported without Dask.
"""

from typing import Any

DASK = {"dask", "dask_expr"}


def is_chunked(*tables: Any) -> bool:
    """Whether any of them is a Dask collection or was made of one; told without importing Dask."""
    return any(kind.__module__.partition(".")[0] in DASK for table in tables for kind in type(table).__mro__)
