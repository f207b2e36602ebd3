"""Arrays as text that a page can hold: exact, compressed, in base64; `assets/engine/arrays.js` reads them back."""

import gzip
from base64 import b64encode
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Packed: TypeAlias = tuple[dict[str, Any], str]  # how an array is encoded, and its text

GZIP_LEVEL = 6  # higher levels take twice the time to save one per cent


def pack(data: bytes) -> str:
    """Return base64 of gzip; equal data give equal texts.

    Examples
    --------
    >>> import base64, gzip
    >>> from abstain._report.encoding import pack
    >>> gzip.decompress(base64.b64decode(pack(b"silence")))
    b'silence'
    """
    return b64encode(gzip.compress(data, GZIP_LEVEL, mtime=0)).decode("ascii")


def pack_numbers(values: NDArray[np.float64]) -> Packed:
    """Pack numbers exactly, in as few bytes as they need.

    Few distinct numbers become a dictionary with indices into it; those that are single precision stay so. Bytes are
    stored in planes, all first ones, then all second ones, …, which compresses better: first bytes of probabilities are
    much alike.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain._report.encoding import pack_numbers
    >>> pack_numbers(np.array([[0.1, 0.5], [0.5, 0.1]]))[0]
    {'kind': 'dictionary', 'length': 4, 'width': 1, 'distinct': 2}
    """
    flat = np.ascontiguousarray(values, dtype="<f8").ravel()
    distinct, indices = np.unique(flat, return_inverse=True)
    single = flat.astype("<f4")
    is_single = bool((single == flat).all())
    width = 1 if len(distinct) <= 1 << 8 else 2
    if len(distinct) <= 1 << 16 and 8 * len(distinct) + width * len(flat) < (4 if is_single else 8) * len(flat):
        short_indices = indices.ravel().astype(f"<u{width}")
        facts = {"kind": "dictionary", "length": len(flat), "width": width, "distinct": len(distinct)}
        return facts, pack(distinct.tobytes() + _byte_planes(short_indices))
    facts = {"kind": "float32" if is_single else "float64", "length": len(flat)}
    return facts, pack(_byte_planes(single if is_single else flat))


def pack_counts(counts: NDArray[np.integer[Any]]) -> Packed:
    """Pack whole numbers ≥ 0, each in as many bytes as the largest of them needs.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain._report.encoding import pack_counts
    >>> pack_counts(np.array([0, 300]))[0]
    {'kind': 'uint16', 'length': 2}
    """
    largest = int(counts.max(initial=0))
    width = 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 4
    return {"kind": f"uint{8 * width}", "length": counts.size}, pack(_byte_planes(counts.ravel().astype(f"<u{width}")))


def pack_bits(flags: NDArray[np.bool_]) -> Packed:
    """Pack truth values, eight to a byte.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain._report.encoding import pack_bits
    >>> pack_bits(np.array([True, False, True]))[0]
    {'kind': 'bits', 'length': 3}
    """
    return {"kind": "bits", "length": flags.size}, pack(np.packbits(flags.ravel(), bitorder="little").tobytes())


def _byte_planes(values: NDArray[Any]) -> bytes:
    """Return all first bytes, then all second bytes, …"""
    return np.ascontiguousarray(values.view(np.uint8).reshape(-1, values.itemsize).T).tobytes()
