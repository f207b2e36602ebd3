"""Helpers that know nothing of predictions: errors, data frames, threads, files, notebook tables, compilation.

This floor imports nothing of the package, and every other floor may import it. Begin with `errors`, whose classes users
meet; each other module can be read alone.
"""
