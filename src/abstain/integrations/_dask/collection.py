"""Chunked tables, and the tasks made from their chunks: one layer of a Dask graph for each step."""

from collections.abc import Callable, Hashable, Sequence
from copy import copy
from dataclasses import replace
from itertools import compress
from typing import Any, Self

import dask.array as da
import numpy as np
from dask import threaded
from dask.base import DaskMethodsMixin, tokenize
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from abstain._core.tables import RowSlice
from abstain._utils.backends import is_lazy
from abstain._utils.errors import InvalidLabels, InvalidProbabilities
from abstain._utils.threads import one_core
from abstain.integrations._dask.layout import ChunkLayout, layout_of

FAN_IN = 8
"""Number of results that are combined in one task."""


class Chunked(DaskMethodsMixin):
    """A Dask collection with one result for each chunk; subclasses say what these results are."""

    __dask_scheduler__ = staticmethod(threaded.get)
    __dask_optimize__ = staticmethod(da.optimize)

    def __init__(self, layout: ChunkLayout, graph: Any, name: str, keys: Sequence[tuple[Any, ...]]) -> None:
        self.layout = layout
        self._graph, self._name, self._keys = graph, name, tuple(keys)

    def __dask_graph__(self) -> Any:
        return self._graph

    def __dask_layers__(self) -> tuple[str, ...]:
        return (self._name,)

    def __dask_keys__(self) -> list[Hashable]:
        return list(self._keys)

    def __dask_tokenize__(self) -> Any:
        return type(self).__name__, self._name

    def __dask_postcompute__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.gather, (self.layout,)

    def __dask_postpersist__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._rebuild, ()

    def _rebuild(self, graph: Any, *, rename: dict[str, str] | None = None) -> Self:
        again, name = copy(self), (rename or {}).get(self._name, self._name)
        again._graph = graph if isinstance(graph, HighLevelGraph) else HighLevelGraph.from_collections(name, graph)
        again._name, again._keys = name, tuple((name, *key[1:]) for key in self._keys)
        return again

    @staticmethod
    def gather(results: list[Any], layout: ChunkLayout) -> Any:
        """Combine the results of all chunks to what `compute` returns."""
        return results

    def task_arguments(self) -> list[Any]:
        """Return how a task refers to each chunk."""
        return list(self._keys)

    @property
    def label_names(self) -> tuple[Hashable, ...] | None:
        """The names of the labels, if they are known."""
        return self.layout.axes.label_names

    @property
    def shape(self) -> tuple[float, int]:
        """Number of instances (nan where Dask does not know it) and of labels."""
        return self.layout.n_rows, self.layout.n_labels

    @property
    def chunks(self) -> tuple[tuple[float, ...], tuple[int]]:
        """The sizes of the chunks, as of a Dask array."""
        return self.layout.sizes, (self.layout.n_labels,)

    def blockwise(
        self, name: str, kind: Callable[..., Any], work: Callable[..., Any], each: Sequence[Any] | None = None
    ) -> Any:
        """Return a collection of ``work(chunk)``, or of ``work(chunk, each[k])`` for chunk k, by tasks named `name`."""
        return kind(self.layout, *layer(name, [self], work, each))

    def array(self, name: str, work: Callable[..., Any], like: Any) -> da.Array:
        """Return the Dask array of ``work(chunk)``; `like` is an array of its type and width, without rows."""
        graph, name, _ = layer(name, [self], work, None, (0,) * (like.ndim - 1))
        return da.Array(graph, name, (self.layout.sizes, *((width,) for width in like.shape[1:])), meta=like)

    def some(self, wanted: Sequence[bool]) -> "Chunked":
        """Return only the wanted chunks; nothing of the others is computed."""
        kept = replace(self.layout, sizes=tuple(compress(self.layout.sizes, wanted)))
        return Chunked(kept, self._graph, self._name, list(compress(self._keys, wanted)))

    def as_array(self, like: Any) -> da.Array:
        """Return the results as a one-dimensional Dask array; `like` is one of its type, without entries."""
        return da.Array(self._graph, self._name, (self.layout.sizes,), meta=like)

    def folded(self, combine: Callable[[list[Any]], Any]) -> Delayed:
        """Combine all results in a tree; `combine` takes results, or what it has returned before."""
        token, level = tokenize(self, combine), 0
        keys, tasks = list(self._keys), {}
        while level == 0 or len(keys) > 1:
            parts = [keys[k : k + FAN_IN] for k in range(0, len(keys), FAN_IN)]
            keys = [(f"fold-{token}", level, k) for k in range(len(parts))]
            tasks.update({key: (combine, part) for key, part in zip(keys, parts, strict=True)})
            level += 1
        return Delayed(keys[0], HighLevelGraph.from_collections(f"fold-{token}", tasks, [self]), layer=f"fold-{token}")


class ChunkedTable(Chunked):
    """A Dask array or data frame."""

    def task_arguments(self) -> list[Any]:
        """Return each chunk as a part of the whole table, so that errors name the row."""
        return [(RowSlice, key, *offset) for key, offset in zip(self._keys, self.layout.offsets(), strict=True)]


def read_chunks(table: Any, what: str) -> ChunkedTable:
    """Return a Dask array or data frame in chunks of whole rows; a vector is one row."""
    error = InvalidProbabilities if what == "probabilities" else InvalidLabels
    if isinstance(table, da.Array):
        table = table[np.newaxis] if table.ndim == 1 else table
        layout = layout_of(table, what, error)
        table = table.rechunk({1: -1}) if table.numblocks[1] > 1 else table
        return ChunkedTable(layout, table.__dask_graph__(), table.name, [row[0] for row in table.__dask_keys__()])
    layout, blocks = layout_of(table, what, error), table.to_delayed()
    (name,) = blocks[0].__dask_layers__()
    return ChunkedTable(layout, blocks[0].__dask_graph__(), name, [block.key for block in blocks])


def together(name: str, kind: type[Chunked], work: Callable[..., Any], **tables: Any) -> Any:
    """Return a collection with ``work(chunk, chunk, …)`` for the chunks of several tables about the same rows."""
    decided = [table.layout for table in tables.values() if isinstance(table, Chunked)]
    # Predictions cannot be rechunked, so the others follow them; without any, the others follow the first table.
    lead = decided[0] if decided else next(read_chunks(t, what).layout for what, t in tables.items() if is_lazy(t))
    return kind(lead, *layer(name, [_rechunked_like(table, what, lead) for what, table in tables.items()], work))


def _rechunked_like(table: Any, what: str, lead: ChunkLayout) -> Chunked:
    """Return a table in the same chunks as the leading one, as far as that can be known before they are computed."""
    if not is_lazy(table):
        if not isinstance(table, np.ndarray):
            raise InvalidLabels(
                f"{what} is a {type(table).__name__} beside Dask collections; convert it to a Dask array or data frame"
            )
        table = da.from_array(np.atleast_2d(table), chunks=-1)
    chunked = table if isinstance(table, Chunked) else read_chunks(table, what)
    ours = chunked.layout
    lead.axes.require_labels(ours.axes.label_names, what)
    if ours.n_labels != lead.n_labels or not _may_equal(ours.n_rows, lead.n_rows):
        raise InvalidLabels(f"{what} has shape {chunked.shape}; expected {(lead.n_rows, lead.n_labels)}")
    if len(ours.sizes) == len(lead.sizes) and all(map(_may_equal, ours.sizes, lead.sizes)):
        return chunked
    if isinstance(table, da.Array) and ours.is_known and lead.is_known:
        return read_chunks(table.rechunk({0: lead.sizes}), what)
    raise InvalidLabels(
        f"{what} has {len(ours.sizes)} blocks of rows, what it is beside {len(lead.sizes)}, or of other sizes: "
        "rechunk or repartition one of them"
    )


def _may_equal(size: float, other: float) -> bool:
    return size == other or bool(np.isnan(size + other))


def layer(
    name: str,
    tables: Sequence[Chunked],
    work: Callable[..., Any],
    each: Sequence[Any] | None = None,
    ends: tuple[int, ...] = (),
) -> tuple[HighLevelGraph, str, list[tuple[Any, ...]]]:
    """Return the graph with one more task for each chunk, the name of that layer, and its keys."""
    name = f"{name}-{tokenize(tables, work, each, ends)}"
    keys = [(name, k, *ends) for k in range(len(tables[0].layout.sizes))]
    arguments = zip(*(table.task_arguments() for table in tables), *([] if each is None else [each]), strict=True)
    tasks: dict[Hashable, Any] = {
        key: (_run, f"work-{name}", list(given)) for key, given in zip(keys, arguments, strict=True)
    }
    tasks[f"work-{name}"] = work  # once, not in each task: it may hold a price for each label
    return HighLevelGraph.from_collections(name, tasks, tables), name, keys


def _run(work: Callable[..., Any], arguments: list[Any]) -> Any:
    """Run a task on a worker, with the one core that Dask counts for it."""
    with one_core():
        return work(*arguments)
