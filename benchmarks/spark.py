"""Spark on this machine: what deciding adds to a pass of the same columns through Arrow."""

import os
import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

import abstain.integrations.spark
from benchmarks.measure import Row, scratch, seconds
from benchmarks.streams import write_scores


def speed() -> Iterator[Row]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "4g")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    try:
        with scratch() as folder:
            write_scores(folder / "scores.parquet", 500_000, 100, n_groups=8)
            frame = session.read.parquet(str(folder / "scores.parquet"))
            passed = frame.mapInArrow(_unchanged, frame.schema)
            reference = _seconds(passed)
            for loss, penalty in {"hamming": 0.1, "f1": 0.003}.items():
                taken = _seconds(abstain.integrations.spark.decide(frame, loss, penalty))
                found = f"{taken:.1f} s, {taken / reference:.2f} × mapInArrow that changes nothing ({reference:.1f} s)"
                yield Row(f"500000 × 100, {loss}", found)
    finally:
        session.stop()


def _unchanged(batches: Iterator[Any]) -> Iterator[Any]:
    return batches


def _seconds(frame: Any) -> float:
    """All rows are made and thrown away."""
    return seconds(lambda: frame.write.format("noop").mode("overwrite").save())
