"""How much is read, kept in memory and written at a time: one object, which tests make small."""

from dataclasses import dataclass


@dataclass
class Sizes:
    """Limits on what streams hold in memory; they are read whenever they are used, so a change takes effect at once."""

    batch_bytes: int = 1 << 24
    """A batch of rows, about. What is read or written at once is a small multiple of it."""
    text_chunk_bytes: int = 1 << 23
    """Text of a CSV file that is read at a time."""
    longest_record_bytes: int = 1 << 25
    """One record of a CSV file: what is longer is a quote that was not meant as one."""
    row_groups_read_bytes: int = 1 << 27
    """Row groups of a Parquet file that are read as a whole; larger ones are read page by page."""
    columns_read_together: int = 64
    """Columns of a Parquet file that are read side by side: their pages take about `row_groups_read_bytes`."""
    row_group_rows: int = 1 << 20
    """Rows of a row group that is written to a Parquet file."""
    row_group_bytes: int = 1 << 24
    """A row group that is written to a Parquet file, in memory."""
    id_run_rows: int = 1 << 21
    """Rows whose hashed names are sorted in memory."""
    queue_run_entries: int = 1 << 20
    """Entries of a review queue that are sorted in memory."""
    queue_chunk_entries: int = 1 << 13
    """Entries of each sorted run that are in memory while runs are merged."""
    queue_merged_runs: int = 64
    """Sorted runs of about the same length that are merged into one."""
    queue_written_entries: int = 1 << 18
    """Entries of a review queue that are written at a time."""
    cluster_task_bytes: int = 1 << 28
    """Unpacked bytes of a Parquet file that make a task of a cluster: a worker that dies loses no more than that."""


SIZES = Sizes()
"""The sizes in use."""
