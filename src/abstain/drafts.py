"""Files that are there whole or not at all."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

FORGOTTEN = 3600.0  # seconds after which a draft belongs to nobody


@contextmanager
def replacing(file: Path) -> Iterator[IO[bytes]]:
    """A new file beside the old one, which takes its place only if all went well and is on the disk."""
    draft = file.with_name(f".{file.name}.{uuid4().hex}.part")
    try:
        with draft.open("xb") as target:
            yield target
            target.flush()
            os.fsync(target.fileno())
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def remove_forgotten(folder: Path) -> None:
    """Remove the drafts of processes that were killed; nothing else, and none that may still be written."""
    for draft in folder.glob(f".*.{'[0-9a-f]' * 32}.part"):
        with suppress(FileNotFoundError):  # another process may be tidying, too
            if time.time() - draft.stat().st_mtime > FORGOTTEN:
                draft.unlink()
