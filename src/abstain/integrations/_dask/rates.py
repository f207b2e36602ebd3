"""Scores of chunked tables: counts of each chunk, added up, and one division in the end."""

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from abstain.integrations._dask.collection import Chunked, together


def reduced(
    name: str, count: Callable[..., tuple[float, ...]], finish: Callable[..., float], **tables: Any
) -> da.Array:
    """finish(Σ count(chunk of the first table, chunk of the second, …)), as a Dask array without dimensions."""
    total = together(name, Chunked, count, **tables).folded(_sum_counts)
    name = f"{name}-{tokenize(total.key, finish)}"
    graph = HighLevelGraph.from_collections(name, {(name,): (np.float64, (finish, total.key))}, [total])
    return da.Array(graph, name, (), dtype=np.float64)


def by_row(name: str, work: Callable[..., Any], **tables: Any) -> da.Array:
    """Return a number for each row: ``work(chunk, chunk, …)`` for the chunks of the tables."""
    rows: da.Array = together(name, Chunked, work, **tables).as_array(np.empty(0))
    return rows


def _sum_counts(counts: list[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(map(sum, zip(*counts, strict=True)))
