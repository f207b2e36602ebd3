"""Dask arrays and data frames, computed chunk by chunk (a chunk is a block of rows), and the workers of Dask clusters.

It may import every floor except the report, the experiments and the command line; they reach it by name, through
`abstain._utils.backends`. Begin with `backend`, which has the public functions: `layout` (what is known of a table
before it is computed) → `collection` (its chunks, and the tasks made from them) → `predictions`, `profiles`, `rates`
and `budget` (the chunked counterparts of what the library computes in memory). `client` connects to a cluster, and
`files` and `joblib_backend` have work done by its workers.
"""
