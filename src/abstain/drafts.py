"""Files that are there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from uuid import uuid4


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
