"""Files that are there whole or not at all, files that are never seen, and whether a file may be written at all."""

import errno
import os
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from abstain.errors import InvalidDataset

FORGOTTEN = 3600.0  # seconds after which a draft belongs to nobody


@contextmanager
def replacing(file: Path) -> Iterator[IO[bytes]]:
    """A new file beside the old one, which takes its place only if all went well and is on the disk."""
    place = Path(os.path.realpath(file))  # a link stays one
    remove_forgotten(place.parent)
    draft = place.with_name(f".{place.name}.{uuid4().hex}.part")
    try:
        with draft.open("xb") as target:
            yield target
            target.flush()
            os.fsync(target.fileno())
        draft.replace(place)
    except OSError as reason:
        if reason.errno is not None and reason.filename in (None, str(draft)):
            reason.filename, reason.filename2 = str(file), None
        raise
    finally:
        with suppress(OSError):  # the file system may have become read-only
            draft.unlink(missing_ok=True)


def require_writable(file: Path, *, new_folders: bool = False) -> None:
    """Raise an `OSError` that names this file if it could not be written, before any work is done for it.

    With `new_folders`, folders of it that are missing are going to be made.
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
    """The first of some files that is also among others, by whatever path or link, whether or not it is there yet."""
    known = {identity for other in others for identity in _identities(other)}
    return next((file for file in files if not known.isdisjoint(_identities(file))), None)


def require_apart(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise `InvalidDataset` if an output would take the place of something that is read."""
    if (same := find_same(outputs, inputs)) is not None:
        raise InvalidDataset(f"{same}: is an input; choose another output")


def _identities(file: Path) -> set[object]:
    """What tells a file from others: where its path leads, and what the disk knows it by, if it is there."""
    found: set[object] = {os.path.realpath(file)}
    with suppress(OSError):
        known = file.stat()
        found.add((known.st_dev, known.st_ino))
    return found


def nameless_file(owner: object, folder: Path | None = None) -> IO[bytes]:
    """A file that nobody sees, for what its owner has no room for in memory; it vanishes with the owner."""
    try:
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed with its owner
    except OSError as reason:
        reason.filename = str(folder or tempfile.gettempdir())
        raise
    weakref.finalize(owner, file.close)
    return file


def remove_forgotten(folder: Path) -> None:
    """Remove the drafts of processes that were killed; nothing else, and none that may still be written."""
    for draft in folder.glob(f".*.{'[0-9a-f]' * 32}.part"):
        with suppress(FileNotFoundError):  # another process may be tidying, too
            if time.time() - draft.stat().st_mtime > FORGOTTEN:
                draft.unlink()
