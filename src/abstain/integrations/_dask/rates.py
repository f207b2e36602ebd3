"""Scores of chunked tables: counts of each chunk, added up, and one division in the end."""

from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from abstain.integrations._dask.collection import Chunked, together


def reduced(
    name: str, count: Callable[..., tuple[float, ...]], finish: Callable[..., float], **tables: Any
) -> da.Array:
    """finish(Σ count(**blocks of the tables)): a Dask array without dimensions."""
    total = together(name, Chunked, partial(_call_by_name, count, tuple(tables)), **tables).folded(_added)
    name = f"{name}-{tokenize(total.key, finish)}"
    graph = HighLevelGraph.from_collections(name, {(name,): (np.float64, (finish, total.key))}, [total])
    return da.Array(graph, name, (), dtype=np.float64)


def by_row(name: str, work: Callable[..., Any], **tables: Any) -> da.Array:
    """A number for each row: work(**blocks of the tables)."""
    by_name = partial(_call_by_name, work, tuple(tables))
    rows: da.Array = together(name, Chunked, by_name, **tables).as_array(np.empty(0))
    return rows


def _call_by_name(work: Callable[..., Any], names: tuple[str, ...], *blocks: Any) -> Any:
    return work(**dict(zip(names, blocks, strict=True)))


def _added(counts: list[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(map(sum, zip(*counts, strict=True)))
