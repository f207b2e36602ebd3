"""Files that are there whole or not at all, and files that are never seen."""

import io
import os
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from abstain.errors import TemporaryFileFailed

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


def temporary_file(beside: Path | None = None) -> IO[bytes]:
    """A file that nobody sees and that vanishes when it is closed, for what there is no room for in memory.

    Parameters
    ----------
    beside : path, optional
        The output that it is needed for: it is in the same folder, and what goes wrong is said of that output. By
        default it is in the folder for temporary files, which errors name.
    """
    try:
        with tempfile.TemporaryFile(dir=None if beside is None else beside.parent, buffering=0) as file:
            return io.BufferedRandom(_TemporaryBytes(os.dup(file.fileno()), beside))
    except OSError as reason:
        raise _explained(reason, beside) from reason


def nameless_file(owner: object, beside: Path | None = None) -> IO[bytes]:
    """A `temporary_file` that vanishes with its owner."""
    file = temporary_file(beside)
    weakref.finalize(owner, file.close)
    return file


class _TemporaryBytes(io.FileIO):
    """A temporary file whose errors say where it is."""

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


def remove_forgotten(folder: Path) -> None:
    """Remove the drafts of processes that were killed; nothing else, and none that may still be written."""
    for draft in folder.glob(f".*.{'[0-9a-f]' * 32}.part"):
        with suppress(FileNotFoundError):  # another process may be tidying, too
            if time.time() - draft.stat().st_mtime > FORGOTTEN:
                draft.unlink()
