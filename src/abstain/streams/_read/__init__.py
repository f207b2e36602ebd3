"""Inputs: which files there are, and their rows as batches, whatever their format and form.

It imports the file formats and nothing else of `streams`. Begin with `sources.open_sources`: `files` finds the files,
`wide`, `long` and `arrays` read one of them, `batches` holds what they yield, and `unique_ids` checks row names.
"""
