"""Files that are replaced atomically, temporary files, and checks whether an output can be written."""

import errno
import io
import os
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from abstain._utils.errors import InvalidOutput, TemporaryFileFailed

STALE_AFTER_SECONDS = 3600.0  # a partial file that was not written to for so long was left by a killed process


@contextmanager
def atomic_write(file: Path) -> Iterator[IO[bytes]]:
    """Open a new file beside an old one, which it replaces only if no error occurred and all data is on the disk."""
    place = Path(os.path.realpath(file))  # a link is kept
    remove_stale_files(place.parent)
    partial = place.with_name(f".{place.name}.{uuid4().hex}.part")
    try:
        with partial.open("xb") as target:
            yield target
            target.flush()
            os.fsync(target.fileno())
        partial.replace(place)
    except OSError as reason:
        if reason.errno is not None and reason.filename in (None, str(partial)):
            reason.filename, reason.filename2 = str(file), None
        raise
    finally:
        with suppress(OSError):  # the file system may have become read-only
            partial.unlink(missing_ok=True)


def require_writable(file: Path, *, new_folders: bool = False) -> None:
    """Raise an `OSError` that names this file if it could not be written, before any work is done for it.

    With `new_folders`, missing folders are no error: they are going to be made.
    """
    place = Path(os.path.realpath(file))
    folder = place.parent
    while new_folders and not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        missing = folder if Path(file).parent.is_dir() else Path(file).parent  # a link leads elsewhere
        raise FileNotFoundError(f"{file}: there is no folder {str(missing)!r}")
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder; name a file in it", str(file))
    try:
        tempfile.TemporaryFile(dir=folder).close()  # only the file system knows whether it can be done
    except OSError as reason:
        raise type(reason)(reason.errno, f"cannot be written ({reason.strerror})", str(file)) from reason


def find_same(files: Iterable[Path], others: Iterable[Path]) -> Path | None:
    """Return the first of some files that is also among others, by any path or link, whether or not it exists."""
    known = {identity for other in others for identity in _identities(other)}
    return next((file for file in files if not known.isdisjoint(_identities(file))), None)


def require_apart(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise `InvalidOutput` if an output would replace an input."""
    if (same := find_same(outputs, inputs)) is not None:
        raise InvalidOutput(f"{same}: is an input; choose another output")


def _identities(file: Path) -> set[object]:
    """Return what identifies a file: its real path, and its device and inode if it exists."""
    found: set[object] = {os.path.realpath(file)}
    with suppress(OSError):
        known = file.stat()
        found.add((known.st_dev, known.st_ino))
    return found


def temporary_file(beside: Path | None = None) -> IO[bytes]:
    """Open a file without a name, which is deleted when it is closed, for data that does not fit into memory.

    Parameters
    ----------
    beside : path, optional
        The output that it is needed for: it is made in the same folder, and errors name that output. By default it is
        made in the folder for temporary files, which errors name.
    """
    try:
        with tempfile.TemporaryFile(dir=None if beside is None else beside.parent, buffering=0) as file:
            return io.BufferedRandom(_TemporaryBytes(os.dup(file.fileno()), beside))
    except OSError as reason:
        raise _explained(reason, beside) from reason


def spill_file(owner: object, beside: Path | None = None) -> IO[bytes]:
    """Open a `temporary_file` that is closed when its owner is garbage-collected."""
    file = temporary_file(beside)
    weakref.finalize(owner, file.close)
    return file


class _TemporaryBytes(io.FileIO):
    """A temporary file whose errors name its folder, or the output it is needed for."""

    def __init__(self, descriptor: int, beside: Path | None) -> None:
        super().__init__(descriptor, "r+")
        self._beside = beside

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as reason:
            raise _explained(reason, self._beside) from reason


def _explained(reason: OSError, beside: Path | None) -> OSError:
    if beside is not None:
        return OSError(reason.errno, reason.strerror, str(beside))
    try:
        folder = f"{tempfile.gettempdir()}: the folder for temporary files cannot be written to"
    except FileNotFoundError:
        folder = "there is no folder for temporary files"
    return TemporaryFileFailed(f"{folder} ({reason.strerror}); set TMPDIR to a folder with enough room")


def remove_stale_files(folder: Path) -> None:
    """Remove the partial files of processes that were killed; nothing else, and none that may still be written."""
    for partial in folder.glob(f".*.{'[0-9a-f]' * 32}.part"):
        with suppress(FileNotFoundError):  # another process may be removing it, too
            if time.time() - partial.stat().st_mtime > STALE_AFTER_SECONDS:
                partial.unlink()
