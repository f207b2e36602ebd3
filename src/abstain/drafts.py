"""Files that are there whole or not at all, and files that are never seen."""

import os
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EISDIR
from pathlib import Path
from typing import IO
from uuid import uuid4

FORGOTTEN = 3600.0  # seconds after which a draft belongs to nobody


@contextmanager
def replacing(file: Path) -> Iterator[IO[bytes]]:
    """A new file beside the old one, which takes its place only if all went well and is on the disk."""
    file = Path(os.path.realpath(file))  # a link stays one
    remove_forgotten(file.parent)
    draft = file.with_name(f".{file.name}.{uuid4().hex}.part")
    try:
        with draft.open("xb") as target:
            yield target
            target.flush()
            os.fsync(target.fileno())
        draft.replace(file)
    except OSError as reason:
        if reason.errno is not None and reason.filename is None:
            reason.filename = str(file)
        raise
    finally:
        draft.unlink(missing_ok=True)


def require_writable(file: Path) -> None:
    """Raise `OSError`, which names the file, if it could not be written: before the work whose result it is to hold."""
    if file.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(file))
    folder = Path(os.path.realpath(file)).parent
    if not folder.is_dir():
        missing = folder if file.parent.is_dir() else file.parent  # a link may lead there
        raise FileNotFoundError(f"{file}: there is no folder {str(missing)!r}")
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as reason:
        raise OSError(reason.errno, reason.strerror, str(file)) from reason


def nameless_file(owner: object, folder: Path | None = None) -> IO[bytes]:
    """A file that nobody sees, for what its owner has no room for in memory; it vanishes with the owner."""
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed with its owner
    weakref.finalize(owner, file.close)
    return file


def remove_forgotten(folder: Path) -> None:
    """Remove the drafts of processes that were killed; nothing else, and none that may still be written."""
    for draft in folder.glob(f".*.{'[0-9a-f]' * 32}.part"):
        with suppress(FileNotFoundError):  # another process may be tidying, too
            if time.time() - draft.stat().st_mtime > FORGOTTEN:
                draft.unlink()
