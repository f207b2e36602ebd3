"""How each kind of file holds a table: values, names of labels, names of rows.

Inner rooms of `tables` and `streams`: what goes wrong is raised without the name of the file, which the door adds.
"""

import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from abstain._utils.errors import InvalidDataset, TemporaryFileFailed
from abstain.streams._formats import arrays, arrow_files, text
from abstain.streams._formats.names import counts, require_different

__all__ = ["FORMATS", "Parts", "Read", "Write", "counts", "kind_of", "require_different", "said_of"]

# How a format reads: the file, the index and the labels asked for → values, names of labels, names of rows.
Parts = tuple[Any, Sequence[str] | None, Any]
Read = Callable[[Path, str | None, list[str] | None], Parts]
# How it writes: where to, values, names of labels, names of rows, and which cells to leave empty.
Write = Callable[[IO[bytes], Any, list[str] | None, NDArray[Any] | None, Any], None]

FORMATS: dict[str, tuple[Read, Write]] = {
    ".csv": (text.read, text.write),
    ".csv.gz": (text.read, text.write_packed),
    ".parquet": (arrow_files.read_parquet, arrow_files.write_parquet),
    ".arrow": (arrow_files.read_file, arrow_files.write_file),
    ".feather": (arrow_files.read_file, arrow_files.write_file),
    ".ipc": (arrow_files.read_file, arrow_files.write_file),
    ".arrows": (arrow_files.read_stream, arrow_files.write_stream),
    ".npy": (arrays.read_npy, arrays.write_npy),
    ".npz": (arrays.read_npz, arrays.write_npz),
}


def kind_of(file: Path) -> str:
    """The ending that tells the format of a file."""
    for suffix in FORMATS:
        if file.name.lower().endswith(suffix):
            return suffix
    raise InvalidDataset(f"{file}: unknown kind of file; expected a name that ends in {', '.join(FORMATS)}")


@contextmanager
def said_of(file: Path | str) -> Iterator[None]:
    """What goes wrong in a reader is said of the file."""
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
