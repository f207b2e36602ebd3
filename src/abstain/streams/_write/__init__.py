"""Outputs: where decisions go, which columns they have, and how they and review queues are written as they come.

It imports `_read` for batches and sources, and the file formats. Begin with `sinks.open_sink`.
"""
