"""``make scale``: measure streams, many labels and clusters, and write docs/scale.md.

``python -m benchmarks.scale streams dask`` measures only the sections whose titles begin so, and keeps the others.
"""

import sys
from pathlib import Path

from benchmarks import cluster, extreme, growth, spark, streams
from benchmarks.page import DOCS, Section, machine, write

SECTIONS = [
    Section(
        "Streams beside pyarrow",
        "`abstain decide` from Parquet to Parquet, start-up included, against pyarrow alone, which reads the same file "
        "and writes it again, a row group at a time; best of three each, in turn. Answers take less room than "
        "probabilities, so a second, harder reference reads the probabilities, and reads and writes answers that are "
        "there already.",
        streams.throughput(),
    ),
    Section(
        "Streams: memory",
        "The most that a whole process had resident at any time, Python and its libraries included (some 280 MiB).",
        streams.memory(),
    ),
    Section(
        "Streams: large row groups",
        "The same for files that do not suit: large row groups of float64, not compressed, and answers in long form.",
        streams.large_row_groups(),
    ),
    Section(
        "Growth with the rows",
        "Parquet to Parquet, all cores, start-up included: time grows with the rows, memory does not.",
        growth.with_rows(),
    ),
    Section(
        "Growth with the labels",
        "As many probabilities in ever more columns, Parquet to Parquet, all cores.",
        growth.with_labels(),
    ),
    Section(
        "Growth with the density",
        "Sparse tables of 10 000 labels in memory, one core, five million stored entries each: what is not stored "
        "costs nothing.",
        growth.with_density(),
    ),
    Section(
        "Many labels",
        "1 000 000 rows × 670 000 labels with 100 stored entries each, float32, in memory. xcolumns 0.0.2 is beside us "
        "on its own ground, weighted prediction per instance, which is the complete answer for errors priced by label.",
        extreme.speed(),
    ),
    Section("Many labels, from file to file", "The same table in an npz file of scipy's.", extreme.command_line()),
    Section(
        "Dask workers",
        "Workers are processes with one thread on this machine, the scheduler and the client beside them on the same "
        "two cores; the cluster stands before the clock starts.",
        cluster.scaling(),
    ),
    Section(
        "Spark",
        "A local session with two cores, all rows made and thrown away; best of three.",
        spark.speed(),
    ),
    Section(
        "What that predicts for 10^9 × 10^4",
        "From what as wide a file takes here on one core: seconds of the processor for 18 000 rows more. Rows are "
        "independent, so that workers add up until disks or the network do not keep pace.",
        growth.prediction(),
    ),
]

if __name__ == "__main__":
    intro = Path(__file__).with_name("scale.md").read_text().format(machine=machine())
    write(DOCS / "scale.md", intro, SECTIONS, sys.argv[1:])
