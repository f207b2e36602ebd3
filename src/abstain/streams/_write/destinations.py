"""Where outputs go: standard output, a file or a folder, and never over an input or another output."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from abstain._utils.atomic import find_same, require_apart, require_writable
from abstain._utils.errors import InvalidOutput
from abstain.streams._formats.base import Format
from abstain.streams._formats.registry import format_called, format_of
from abstain.streams._read.sources import Sources

STDOUT = "-"


def is_stdout(output: str | os.PathLike[str]) -> bool:
    """Whether an output is standard output."""
    return os.fspath(output) == STDOUT


def is_folder(output: str | os.PathLike[str]) -> bool:
    """Whether an output is a folder that exists, or a path that ends like one."""
    return not is_stdout(output) and (os.fspath(output).endswith(("/", os.sep)) or Path(output).is_dir())


@dataclass(frozen=True)
class Destination:
    """Where the output for some files goes, checked: standard output, a file, or a file for each in a folder."""

    output: str | os.PathLike[str]
    is_folder: bool
    files: dict[Path, Sources]
    """The files to be written, with what they are made of; empty for standard output."""
    format: str | None
    """The name of the format, where no name of a file tells it."""

    @classmethod
    def of(cls, output: str | os.PathLike[str], sources: Sources, output_format: str | None = None) -> "Destination":
        """Return where an output goes; raise an error, before any work is done, if it cannot be written."""
        to_folder, files = is_folder(output), dict[Path, Sources]()
        if is_stdout(output):
            output_format = output_format or sources.file.format.stdout_name
        else:
            files = _place_in_folder(sources, Path(output)) if to_folder else {Path(output): sources}
        require_separate(files, sources)
        for file in files:
            require_writable(file, new_folders=to_folder)
        destination = cls(output, to_folder, files, output_format)
        destination.formats()
        return destination

    def formats(self) -> list[Format]:
        """Return the formats that are written."""
        if not self.files:
            return [format_called(self.format or "csv", InvalidOutput)]
        return [format_of(file, InvalidOutput) for file in self.files]


def _place_in_folder(sources: Sources, folder: Path) -> dict[Path, Sources]:
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
