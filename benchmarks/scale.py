"""``make scale``: measure streams, many labels and clusters, and write docs/scale.md.

``python -m benchmarks.scale streams cluster`` measures only the sections whose titles begin so, and keeps the others.
"""

import sys
from pathlib import Path

from benchmarks import cluster, extreme, growth, spark, streams
from benchmarks.page import DOCS, Section, machine, write

SECTIONS = [
    Section("Streams beside pyarrow", "", streams.throughput()),
    Section("Streams: memory", "", streams.memory()),
    Section("Growth with the rows", growth.WITH_ROWS, growth.with_rows()),
    Section("Growth with the labels", growth.WITH_LABELS, growth.with_labels()),
    Section("Growth with the density", growth.WITH_DENSITY, growth.with_density()),
    Section("Many labels", "", extreme.speed()),
    Section("Dask workers", "", cluster.scaling()),
    Section("Spark", "", spark.speed()),
    Section("What that predicts", growth.PREDICTION, growth.prediction()),
]

if __name__ == "__main__":
    intro = Path(__file__).with_name("scale.md").read_text().format(machine=machine())
    write(DOCS / "scale.md", intro, SECTIONS, sys.argv[1:])
