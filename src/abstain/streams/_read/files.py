"""Which files an input means, and how each of them is opened, standard input included."""

import io
import select
import shutil
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike, dup, fspath
from pathlib import Path, PurePath
from typing import IO, Any

from abstain._utils.atomic import spill_file
from abstain._utils.errors import InvalidDataset
from abstain.streams._formats import FORMATS, kind_of, said_of
from abstain.streams._formats.contents import N_BYTES, kind_by_content, require_content
from abstain.streams._prefetch import POLL, require_needed

STDIN = "<stdin>"
STREAMABLE = ".csv", ".csv.gz", ".arrows"


@dataclass(eq=False)
class File:
    """One file: where it is, what kind of file it is, and its name within the folder it was found in.

    Standard input and pipes are nowhere: they are read as they come, and once.
    """

    path: Path | None
    kind: str
    relative: PurePath
    _stream: Any = field(default=None, repr=False)
    _called: str = STDIN

    @property
    def name(self) -> str:
        """What errors call it."""
        return self._called if self.path is None else str(self.path)

    @property
    def n_bytes(self) -> int | None:
        """Its size, if that is known."""
        return None if self.path is None else self.path.stat().st_size

    @property
    def is_repeatable(self) -> bool:
        """Whether it can be opened again."""
        return self.path is not None or not isinstance(self._stream, _Resumed | None)

    def open(self) -> IO[bytes]:
        """The file from its beginning."""
        if self.path is not None:
            return self.path.open("rb")
        if self._stream is None:
            raise InvalidDataset("can be read only once")
        if self.is_repeatable:  # by its copy on the disk
            copy = open(dup(self._stream.fileno()), "rb")  # noqa: SIM115, PTH123 - a descriptor, closed by the caller
            copy.seek(0)
            return copy
        stream, self._stream = self._stream, None
        return stream

    def require_content(self) -> None:
        """Raise `InvalidDataset` if it is of another kind than it is called."""
        head = self._stream.head if self.path is None and isinstance(self._stream, _Resumed) else b""
        if self.path is not None:
            with self.path.open("rb") as source:
                head = source.read(N_BYTES)
        require_content(head, self.kind)

    def keep(self) -> None:
        """Copy what can be read only once to the disk, so that it can be read again."""
        if isinstance(self._stream, _Resumed):
            copy = spill_file(self)
            shutil.copyfileobj(self._stream, copy, 1 << 20)
            copy.flush()
            self._stream = copy


class _Resumed:
    """A stream whose first bytes have been looked at; reads give as much as is asked for, except at the end."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self.head, self.rest = head, rest
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        parts = [self.head if size < 0 else self.head[:size]]
        self.head = self.head[len(parts[0]) :]
        missing = size - len(parts[0])
        while missing != 0 and (more := _read_available(self.rest, missing if size >= 0 else 1 << 20)):
            parts.append(more)
            missing -= len(more) if size >= 0 else 0
        return b"".join(parts)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> "_Resumed":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _read_available(source: IO[bytes], size: int) -> bytes:
    """At most `size` bytes as soon as there are any; a stage that waits for them in vain can be stopped."""
    if hasattr(select, "poll") and isinstance(source, io.FileIO):
        poll = select.poll()
        poll.register(source.fileno(), select.POLLIN)
        while not poll.poll(1000 * POLL):
            require_needed()
    return source.read(size)


def find_files(inputs: Sequence[str | PathLike[str]], kind: str | None = None) -> list[File]:
    """All files that are meant by paths, folders and "-"; each once, those of a folder in the order of their names."""
    files: list[File] = []
    for given in inputs:
        if fspath(given) == "-":
            # nobody holds a lock while it waits
            files.append(_stream(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer), kind, STDIN))
            continue
        path = Path(given)
        if path.is_dir():
            found = [file for file in sorted(path.rglob("*")) if _is_data(file.relative_to(path)) and file.is_file()]
            if not found:
                raise InvalidDataset(f"{path}: there is no file in this folder that ends in {', '.join(FORMATS)}")
            files += [File(file, kind_of(file), file.relative_to(path)) for file in found]
        elif path.is_file():
            files.append(File(path, known_kind(kind) if kind else kind_of(path), PurePath(path.name)))
        elif path.exists():  # a pipe
            named = kind or next((ending for ending in FORMATS if path.name.lower().endswith(ending)), None)
            pipe = path.open("rb", buffering=0)
            files.append(_stream(pipe, named, str(path)))
            weakref.finalize(files[-1], pipe.close)
        else:
            raise InvalidDataset(f"{path}: there is no such file")
    if not files:
        raise InvalidDataset("there is no input")
    seen: set[str | Path] = set()
    for file in files:
        place = file.name if file.path is None else file.path.resolve()
        if place in seen:
            raise InvalidDataset(f"{file.name}: is given twice")
        seen.add(place)
    return files


def _is_data(path: PurePath) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.parts)
    return not hidden and path.name.lower().endswith(tuple(FORMATS))


def known_kind(kind: str) -> str:
    """The ending that a format has, given its name."""
    suffix = kind if kind.startswith(".") else f".{kind}"
    if suffix not in FORMATS:
        raise InvalidDataset(f"there is no format {kind!r}; expected one of {', '.join(name[1:] for name in FORMATS)}")
    return suffix


def _stream(source: IO[bytes], kind: str | None, called: str) -> File:
    """What can be read only once, of a kind that is known or told by its first bytes."""
    head = b""
    while len(head) < N_BYTES and (more := source.read(N_BYTES - len(head))):
        head += more
    found = known_kind(kind) if kind else kind_by_content(head)
    file = File(None, found, PurePath(f"stdin{found}"), _Resumed(head, source), called)
    if found not in STREAMABLE:
        with said_of(called):
            file.require_content()
        file.keep()
    return file
