"""Pictures of the instances, small enough to travel with a page."""

import io
import os
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._utils.errors import InvalidDataset
from abstain._utils.extras import optional

LARGEST_SIDE = 192  # pixels; larger pictures are shrunk, and kept as JPEG
QUALITY = 80  # of JPEG


def draw_pictures(images: Any, n_rows: int, rows: NDArray[np.intp]) -> list[str]:
    """The pictures of some rows: "image/png;base64,…" each, empty where there is none.

    Parameters
    ----------
    images : array of shape (n, h, w) or (n, h, w, 3), or n paths
        Bytes are taken as they are; other numbers so that 1, or else the largest of them all, is white. A path may be
        None: then there is no picture.
    n_rows : int
        How many there must be.
    rows : array of int
        Which of them are wanted; no others are opened.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain._report.images import draw_pictures
    >>> draw_pictures(np.eye(4).reshape(1, 4, 4), 1, np.array([0]))[0][:30]
    'image/png;base64,iVBORw0KGgoAA'
    """
    is_array = hasattr(images, "ndim") and images.ndim > 1
    if not is_array and (isinstance(images, str | bytes | os.PathLike) or not isinstance(images, Iterable)):
        raise InvalidDataset(
            f"images is {type(images).__name__}; expected an array of pictures, or a path for each row"
        )
    found = np.asarray(images) if is_array else list(images)
    if len(found) != n_rows:
        raise InvalidDataset(f"images: there are {len(found)} for {n_rows} rows")
    optional("PIL", "a report with pictures needs pillow and plotly", "plotly")
    if isinstance(found, list):
        return [_from_path(found[i], int(i)) for i in rows]
    return [_from_pixels(pixels) for pixels in _as_bytes(found, rows)]


def _as_bytes(pixels: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[np.uint8]:
    if pixels.dtype.kind not in "fiub" or not (pixels.ndim == 3 or (pixels.ndim == 4 and pixels.shape[3] == 3)):
        raise InvalidDataset(
            f"images: expected numbers of shape (n, height, width) or (n, height, width, 3), got {pixels.dtype} of "
            f"shape {pixels.shape}"
        )
    if 0 in pixels.shape[1:]:
        raise InvalidDataset(f"images: pictures of shape {pixels.shape[1:]} have nothing to show")
    if pixels.dtype == np.uint8:
        return pixels[rows]
    values = np.nan_to_num(pixels[rows].astype(np.float64), posinf=0.0, neginf=0.0)
    white = 1.0 if values.max() <= 1.0 else values.max()
    return np.clip(np.round(values / white * 255), 0, 255).astype(np.uint8)


def _from_pixels(pixels: NDArray[np.uint8]) -> str:
    from PIL import Image

    return _encode(Image.fromarray(np.ascontiguousarray(pixels)))


def _from_path(path: Any, i: int) -> str:
    from PIL import Image

    if path is None:
        return ""
    try:
        with Image.open(Path(path)) as picture:
            return _encode(picture.convert("RGB"))
    except (OSError, ValueError, TypeError, Image.DecompressionBombError) as reason:
        raise InvalidDataset(f"images: row {i}: {path} cannot be read as a picture ({reason})") from reason


def _encode(picture: Any) -> str:
    target = io.BytesIO()
    if max(picture.size) > LARGEST_SIDE:
        picture.thumbnail((LARGEST_SIDE, LARGEST_SIDE))
        picture.save(target, "JPEG", quality=QUALITY)
        kind = "jpeg"
    else:
        picture.save(target, "PNG", optimize=True)
        kind = "png"
    return f"image/{kind};base64,{b64encode(target.getvalue()).decode('ascii')}"
