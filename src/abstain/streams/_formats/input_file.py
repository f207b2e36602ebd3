"""One file to be read: where it is, its format, and how it is opened, standard input included."""

import io
import select
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import dup
from pathlib import Path, PurePath
from typing import IO, Any

from abstain._utils.atomic import spill_file
from abstain._utils.errors import InvalidDataset, TemporaryFileFailed
from abstain.streams._formats.base import Format
from abstain.streams._prefetch import POLL_SECONDS, require_needed

STDIN = "<stdin>"


@dataclass(eq=False)
class InputFile:
    """One file: where it is, its format, and its path within the folder it was found in.

    Standard input and pipes have no path: they are read as they come, and once.
    """

    path: Path | None
    format: Format
    relative: PurePath
    _stream: Any = field(default=None, repr=False)
    _display_name: str = STDIN

    @property
    def name(self) -> str:
        """The name that errors show."""
        return self._display_name if self.path is None else str(self.path)

    @property
    def n_bytes(self) -> int | None:
        """The size, if it is known."""
        return None if self.path is None else self.path.stat().st_size

    @property
    def is_repeatable(self) -> bool:
        """Whether it can be opened again."""
        return self.path is not None or not isinstance(self._stream, PeekedStream | None)

    def open(self) -> IO[bytes]:
        """Open the file at its beginning."""
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

    def first_bytes(self, n_bytes: int) -> bytes:
        """Return the first bytes, from which the format can be told; of a stream that is copied, none."""
        if self.path is None:
            return self._stream.head if isinstance(self._stream, PeekedStream) else b""
        with self.path.open("rb") as source:
            return source.read(n_bytes)

    def copy_to_disk(self) -> None:
        """Copy what can be read only once to the disk, so that it can be read again."""
        if isinstance(self._stream, PeekedStream):
            copy = spill_file(self)
            shutil.copyfileobj(self._stream, copy, 1 << 20)
            copy.flush()
            self._stream = copy


class PeekedStream:
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

    def __enter__(self) -> "PeekedStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _read_available(source: IO[bytes], size: int) -> bytes:
    """Read at most `size` bytes as soon as there are any; a stage that waits for them in vain can be stopped."""
    if hasattr(select, "poll") and isinstance(source, io.FileIO):
        poll = select.poll()
        poll.register(source.fileno(), select.POLLIN)
        while not poll.poll(1000 * POLL_SECONDS):
            require_needed()
    return source.read(size)


@contextmanager
def naming_file(file: Path | str) -> Iterator[None]:
    """Name the file in what is raised while it is read."""
    try:
        yield
    except TemporaryFileFailed:
        raise
    except InvalidDataset as reason:
        raise InvalidDataset(f"{file}: {reason}") from reason.__cause__
    except UnicodeDecodeError as reason:
        found = f"byte {reason.object[reason.start]:#04x} at {reason.start}"
        raise InvalidDataset(f"{file}: is no text in UTF-8 ({found}); save it in that encoding") from reason
    except (OSError, EOFError, ValueError, KeyError, zlib.error, zipfile.BadZipFile, NotImplementedError) as reason:
        raise InvalidDataset(f"{file}: cannot be read ({str(reason) or type(reason).__name__})") from reason
