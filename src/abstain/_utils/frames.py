"""Data frames of any library: pandas, polars, pyarrow, Modin, cuDF, DuckDB and others that narwhals knows."""

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._utils.extras import missing


def is_frame(table: Any) -> bool:
    """Whether an object has named columns, as the data frames of all libraries do."""
    return hasattr(type(table), "columns")  # not of the object: a lazy frame would resolve its schema


class Frame(NamedTuple):
    """A data frame of any library, with its names and access to its columns."""

    native: Any
    """The data frame itself, in memory."""
    columns: tuple[Hashable, ...]
    index: Any
    """The names of the rows; None if the library has none."""
    library: str

    def first_without_numbers(self) -> tuple[int, Any] | None:
        """Return the number and type of the first column that holds neither numbers nor booleans, if any."""
        return next(((j, kind) for j, (is_number, kind) in enumerate(self.types()) if not is_number), None)

    def types(self) -> list[tuple[bool, Any]]:
        """Return whether each column holds numbers or booleans, and its type."""
        if self.library == "pandas":
            return [(kind.kind in "fiub", kind) for kind in self.native.dtypes]
        import narwhals as nw

        schema = nw.from_native(self.native).schema
        return [(kind.is_numeric() or kind == nw.Boolean, kind) for kind in schema.values()]

    def values(self) -> NDArray[Any]:
        """Return the numbers, missing ones as NaN."""
        if self.library == "pandas":
            kinds = self.native.dtypes
            plain = len(set(kinds)) == 1 and isinstance(kinds.iloc[0], np.dtype)
            values: NDArray[Any] = (
                self.native.to_numpy() if plain else self.native.to_numpy(dtype=np.float64, na_value=np.nan)
            )
            return values
        import narwhals as nw

        frame = nw.from_native(self.native)
        if nw.Boolean in frame.schema.values() or any(frame[name].null_count() for name in frame.columns):
            frame = frame.select(nw.all().cast(nw.Float64))
        return frame.to_numpy()

    def select(self, j: int) -> "Frame":
        """Return the frame of column j alone."""
        name = self.columns[j]
        if self.library == "pandas":
            return self._replace(native=self.native.iloc[:, [j]], columns=(name,))
        import narwhals as nw

        return self._replace(native=nw.from_native(self.native).select(name).to_native(), columns=(name,))

    def column(self, name: Any) -> list[Any]:
        """Return a column as Python objects, missing ones as None."""
        if self.library == "pandas":
            column = self.native[name]
            return list(column.astype(object).where(column.notna(), None))
        import narwhals as nw

        return nw.from_native(self.native)[name].to_list()


def open_frame(table: Any) -> Frame:
    """Open a data frame of any library; a lazy one (polars, DuckDB) is collected. Raises `TypeError` for others."""
    if type(table).__module__.partition(".")[0] == "pandas":
        return Frame(table, tuple(table.columns), table.index, "pandas")
    import narwhals as nw

    frame = nw.from_native(table, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        if frame.implementation.is_dask():
            raise TypeError("is a lazy Dask frame, and the whole table is needed here; call .compute() before")
        if frame.implementation.is_spark_like():
            raise TypeError("is a Spark frame; use abstain.integrations.spark.decide, or call .toPandas() before")
        frame = frame.collect()
    if not isinstance(frame, nw.DataFrame):
        raise TypeError(f"is a {type(table).__name__}, which cannot be read as a data frame; pass an array of numbers")
    index = nw.maybe_get_index(frame)
    return Frame(frame.to_native(), tuple(frame.columns), index, frame.implementation.value)


def make_frame(columns: Mapping[str, Any], library: Any, null: Any = None) -> Any:
    """Return a data frame of the named library; values equal to `null`, if that is given, become nulls."""
    import narwhals as nw

    try:
        frame = nw.from_dict(dict(columns), backend=library)
    except ImportError as reason:
        raise missing(f"to_frame needs {library}", library) from reason
    if null is not None:
        frame = frame.select(nw.when(nw.col(name) != null).then(nw.col(name)) for name in frame.columns)
    return frame.to_native()
