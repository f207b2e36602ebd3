"""Decisions inside other systems: Spark data frames, and Dask collections and clusters.

Everything here is thin: it hands blocks of rows to the library, and may import every floor except the report, the
experiments and the command line. Begin with `abstain.integrations.spark`; Dask needs no import, since `abstain.decide`
and the other public functions take Dask arrays and data frames as they are.
"""

__all__ = ["spark"]  # imported by its own name: it needs pyspark


def __dir__() -> list[str]:
    return __all__
