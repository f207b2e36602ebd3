"""All file formats, and how to find the format of a file: by its name, by its first bytes, or by what the user says."""

from pathlib import Path

from abstain._utils.errors import InvalidDataset
from abstain.streams._formats.arrow_files import ARROW, ARROW_STREAM
from abstain.streams._formats.base import ColumnFormat, Format
from abstain.streams._formats.csv_files import CSV, CSV_GZIP
from abstain.streams._formats.input_file import InputFile
from abstain.streams._formats.numpy_files import NPY, NPZ
from abstain.streams._formats.parquet_files import PARQUET

REGISTERED: tuple[Format, ...] = (CSV, CSV_GZIP, PARQUET, ARROW, ARROW_STREAM, NPY, NPZ)

FORMATS: dict[str, Format] = {ending: known for known in REGISTERED for ending in known.endings}
"""All formats by the endings of file names."""

N_SIGNATURE_BYTES = 8
"""First bytes of a file from which its format is told."""

UNREADABLE: dict[bytes, str] = {
    b"\xd0\xcf\x11\xe0": "an Excel file (.xls); save the table as CSV",
    b"\x89HDF": "an HDF5 file; write the table as CSV or Parquet",
    b"\xff\xfe": "text in UTF-16; save it in UTF-8",
    b"\xfe\xff": "text in UTF-16; save it in UTF-8",
}
"""How files begin that cannot be read at all, and what to do about them."""


def list_endings() -> str:
    """Return all endings as a sentence lists them: ".csv, .csv.gz, …"."""
    return ", ".join(FORMATS)


def list_names(*, only_streamable: bool = False, only_columns: bool = False) -> str:
    """Return the names of all formats, or of those with a property, as a sentence lists them: "csv, csv.gz, …"."""
    return ", ".join(
        known.name
        for known in REGISTERED
        if (known.is_streamable or not only_streamable) and (isinstance(known, ColumnFormat) or not only_columns)
    )


def find_format(file_name: str) -> Format | None:
    """Return the format that the ending of a file name tells, if there is one."""
    return next((known for ending, known in FORMATS.items() if file_name.lower().endswith(ending)), None)


def format_of(file: Path, error: type[ValueError] = InvalidDataset) -> Format:
    """Return the format of a file by its name, or raise an error."""
    found = find_format(file.name)
    if found is None:
        raise error(f"{file}: unknown kind of file; expected a name that ends in {list_endings()}")
    return found


def format_called(name: str, error: type[ValueError] = InvalidDataset) -> Format:
    """Return the format of a given name, such as "csv.gz" or ".feather", or raise an error."""
    ending = name if name.startswith(".") else f".{name}"
    if ending not in FORMATS:
        expected = ", ".join(known[1:] for known in FORMATS)
        raise error(f"there is no format {name!r}; expected one of {expected}")
    return FORMATS[ending]


def format_by_content(head: bytes) -> Format:
    """Return the format of a stream that begins so: CSV if nothing tells."""
    return next((known for known in REGISTERED if known.magic and head.startswith(known.magic)), CSV)


def require_content(head: bytes, expected: Format) -> None:
    """Raise `InvalidDataset` if a file that begins so does not have the format that its name tells.

    Examples
    --------
    >>> from abstain.streams._formats.registry import FORMATS, require_content
    >>> require_content(b"PAR1....", FORMATS[".csv"])
    Traceback (most recent call last):
    abstain.InvalidDataset: is not csv, but a Parquet file; call it .parquet
    """
    others = {known.magic: known.description for known in REGISTERED if known.magic and known is not expected}
    for magic, description in (others | UNREADABLE).items():
        if head.startswith(magic):
            raise InvalidDataset(f"is not {expected.name}, but {description}")


def require_content_of(file: InputFile) -> None:
    """Raise `InvalidDataset` if a file does not have the format that its name tells."""
    require_content(file.first_bytes(N_SIGNATURE_BYTES), file.format)
