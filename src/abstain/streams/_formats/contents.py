"""What a file is by its first bytes, which may not be what it is called."""

from abstain._utils.errors import InvalidDataset

N_BYTES = 8  # that tell

# How files begin, the endings that are right for them, and what to say to those who call them something else.
SIGNATURES: dict[bytes, tuple[tuple[str, ...], str]] = {
    b"\xff\xff\xff\xff": ((".arrows",), "an Arrow stream; call it .arrows"),
    b"ARROW1": ((".arrow", ".feather", ".ipc"), "an Arrow file; call it .arrow"),
    b"PAR1": ((".parquet",), "a Parquet file; call it .parquet"),
    b"\x1f\x8b": ((".csv.gz",), "packed with gzip; call packed CSV .csv.gz, or unpack it"),
    b"\x93NUMPY": ((".npy",), "a NumPy array; call it .npy"),
    b"PK\x03\x04": ((".npz",), "a zip file, as Excel writes (.xlsx): save the table as CSV; call NumPy's arrays .npz"),
    b"\xd0\xcf\x11\xe0": ((), "an Excel file (.xls); save the table as CSV"),
    b"\x89HDF": ((), "an HDF5 file; write the table as CSV or Parquet"),
    b"\xff\xfe": ((), "text in UTF-16; save it in UTF-8"),
    b"\xfe\xff": ((), "text in UTF-16; save it in UTF-8"),
}


def kind_by_content(head: bytes) -> str:
    """The kind of a file that begins so and has no name: CSV if nothing tells."""
    return next(
        (endings[0] for magic, (endings, _) in SIGNATURES.items() if endings and head.startswith(magic)), ".csv"
    )


def require_content(head: bytes, kind: str) -> None:
    """Raise `InvalidDataset` if a file that begins so is of another kind than it is called.

    Examples
    --------
    >>> from abstain.streams._formats.contents import require_content
    >>> require_content(b"PAR1....", ".csv")
    Traceback (most recent call last):
    abstain.InvalidDataset: is not csv, but a Parquet file; call it .parquet
    """
    for magic, (endings, what) in SIGNATURES.items():
        if head.startswith(magic) and kind not in endings:
            raise InvalidDataset(f"is not {kind[1:]}, but {what}")
