"""Dask: arrays and data frames as blocks of rows, budgets over them, and the workers of a cluster.

layout (what is known of a table before it is computed) → collection (its blocks, and the tasks made from them) →
predictions, profiles, rates and budget (the lazy counterparts of what the library computes in memory) → backend (the
public functions); client (how a cluster is reached), files and joblib_backend (work done by its workers).
"""
