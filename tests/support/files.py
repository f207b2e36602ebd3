"""Files that tests of streams write and read, whatever their format, and a progress that remembers what it was told."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.ipc as pa_ipc
import pyarrow.parquet as pq
from scipy import sparse


def write_columns(columns, path):
    """Write columns by name, without the library."""
    table = pa.table(columns)
    if path.name.endswith(".parquet"):
        pq.write_table(table, path)
    elif path.name.endswith(".csv"):
        pa_csv.write_csv(table, path)
    elif path.name.endswith(".csv.gz"):
        with gzip.open(path, "wb") as target:
            pa_csv.write_csv(table, target)
    else:
        make = pa_ipc.new_stream if path.name.endswith(".arrows") else pa_ipc.new_file
        with pa.OSFile(str(path), "wb") as target, make(target, table.schema) as writer:
            writer.write_table(table)
    return path


def read_columns(path):
    """Read the columns of any file as lists by name, without the library."""
    name = path.name
    if name.endswith(".parquet"):
        table = pq.read_table(path)
    elif ".csv" in name:
        with gzip.open(path) if name.endswith(".gz") else path.open("rb") as source:
            table = pa_csv.read_csv(source)
    else:
        with path.open("rb") as source:
            table = (pa_ipc.open_stream if name.endswith(".arrows") else pa_ipc.open_file)(source).read_all()
    return table.to_pydict()


def write_long(matrix, path, *, ids, names, value="probability", shuffled=False):
    """Write a long table of what is not 0, row by row; −1 becomes an empty cell. Labels may be in any order."""
    csr = sparse.csr_array(matrix)
    rows = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
    order = np.lexsort((np.random.default_rng(1).random(len(rows)), rows)) if shuffled else np.arange(len(rows))
    columns = {
        "id": [ids[i] for i in rows[order]],
        "label": [str(names[j]) for j in csr.indices[order]],
        value: [None if number == -1 else number for number in csr.data[order].tolist()],
    }
    return write_columns(columns, path)


class ProgressLog:
    """Remembers how many rows were announced in each pass, and how many were done."""

    def __init__(self):
        self.expected, self.done = [], []

    def start(self, n_rows):
        self.expected.append(n_rows)
        self.done.append(0)

    def advance(self, n_rows):
        self.done[-1] += n_rows
