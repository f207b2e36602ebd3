"""File formats: how the files of each are named, recognised, read whole, read by batch and written.

It imports nothing of `streams` but the sizes and the prefetching, and raises what is wrong with a file without its
name, which the caller adds (`input_file.naming_file`). Begin with `base.Format`, then `registry`.

A new format takes one file here, one entry in `registry.REGISTERED`, and its ending in the lists of kinds in
``tests/streams``. The file defines

- a `ColumnReader` (its schema, and the columns of some rows at a time), a `ColumnWriter` (record batches, one after the
  other) and with them a `ColumnFormat`, if the format holds named columns; a whole read is then all batches
  concatenated, unless the format has a `read_whole` of its own;
- an `ArrayFile` (arrays by name), an `ArrayWriter` and with them an `ArrayFormat`, if it holds arrays of numbers.

Everything else follows from the fields of the format: recognition by ending and by first bytes, pipes, standard output,
the lists of endings in errors and in the help of the command line.
"""

from abstain.streams._formats.registry import FORMATS, list_endings, list_names

__all__ = ["FORMATS", "list_endings", "list_names"]
