"""Which files an input stands for: paths, folders, pipes and standard input."""

import sys
import weakref
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path, PurePath
from typing import IO

from abstain._utils.errors import InvalidDataset, InvalidParameter, MissingFile
from abstain.streams._formats.base import Format
from abstain.streams._formats.input_file import STDIN, InputFile, PeekedStream, naming_file
from abstain.streams._formats.registry import (
    FORMATS,
    N_SIGNATURE_BYTES,
    find_format,
    format_by_content,
    format_called,
    format_of,
    list_endings,
    require_content,
)


def find_files(inputs: Sequence[str | PathLike[str]], format: str | None = None) -> list[InputFile]:  # noqa: A002
    """Return all files that paths, folders and "-" stand for; those of a folder in the order of their names."""
    files: list[InputFile] = []
    for given in inputs:
        if fspath(given) == "-":
            # unbuffered, so that no lock is held while it waits
            known = format_called(format) if format else None
            files.append(_open_stream(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer), known, STDIN))
            continue
        path = Path(given)
        if path.is_dir():
            found = [file for file in sorted(path.rglob("*")) if _is_data(file.relative_to(path)) and file.is_file()]
            if not found:
                raise InvalidDataset(f"{path}: there is no file in this folder that ends in {list_endings()}")
            files += [InputFile(file, format_of(file), file.relative_to(path)) for file in found]
        elif path.is_file():
            files.append(InputFile(path, format_called(format) if format else format_of(path), PurePath(path.name)))
        elif path.exists():  # a pipe
            known = format_called(format) if format else find_format(path.name)
            pipe = path.open("rb", buffering=0)
            files.append(_open_stream(pipe, known, str(path)))
            weakref.finalize(files[-1], pipe.close)
        else:
            raise MissingFile(f"{path}: there is no such file")
    if not files:
        raise InvalidParameter("there is no input")
    seen: set[str | Path] = set()
    for file in files:
        place = file.name if file.path is None else file.path.resolve()
        if place in seen:
            raise InvalidParameter(f"{file.name}: is given twice")
        seen.add(place)
    return files


def _is_data(path: PurePath) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.parts)
    return not hidden and path.name.lower().endswith(tuple(FORMATS))


def _open_stream(source: IO[bytes], known: Format | None, display_name: str) -> InputFile:
    """Return what can be read only once, in a format that is known or told by the first bytes."""
    head = b""
    while len(head) < N_SIGNATURE_BYTES and (more := source.read(N_SIGNATURE_BYTES - len(head))):
        head += more
    found = format_by_content(head) if known is None else known
    stream = PeekedStream(head, source)
    file = InputFile(None, found, PurePath(f"stdin.{found.name}"), stream, display_name)
    if not found.is_streamable:
        with naming_file(display_name):
            require_content(head, found)
        file.copy_to_disk()
    return file
