"""Where outputs go: standard output, a file or a folder, and never over an input or another output."""

import os
from collections.abc import Collection
from pathlib import Path

from abstain._utils.atomic import find_same, require_apart
from abstain._utils.errors import InvalidOutput
from abstain.streams._read.sources import Sources

STDOUT = "-"


def is_stdout(output: str | os.PathLike[str]) -> bool:
    """Whether an output is standard output."""
    return os.fspath(output) == STDOUT


def is_folder(output: str | os.PathLike[str]) -> bool:
    """Whether an output is a folder that exists, or a path that ends like one."""
    return not is_stdout(output) and (os.fspath(output).endswith(("/", os.sep)) or Path(output).is_dir())


def place_in_folder(sources: Sources, folder: Path) -> dict[Path, Sources]:
    """Return an output in a folder for each input."""
    outputs: dict[Path, Sources] = {}
    for source in sources.each_file():
        if source.file.path is None:
            raise InvalidOutput(f"{source.file.name}: has no name to use in a folder; give a file as output")
        output = folder / source.file.relative
        if output in outputs:
            raise InvalidOutput(f"{source.file.name}: would be written to {output}, as {outputs[output].file.name} is")
        outputs[output] = source
    return outputs


def require_separate(outputs: Collection[Path], sources: Sources, others: Collection[Path] = ()) -> None:
    """Raise `InvalidOutput` if a file would take the place of an input or of another output."""
    require_apart(outputs, map(Path, sources.files))
    if (same := find_same(outputs, others)) is not None:
        raise InvalidOutput(f"{same}: the answers go there; choose another file for the queue")
