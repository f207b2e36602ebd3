"""Images of the instances, small enough to be stored in a page."""

import io
import os
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._utils.errors import InvalidDataset, InvalidParameter, MissingFile
from abstain._utils.extras import optional

MAX_SIDE = 192  # pixels; larger images are shrunk, and stored as JPEG
JPEG_QUALITY = 80


def encode_images(images: Any, n_rows: int, rows: NDArray[np.intp]) -> list[str]:
    """Return the images of some rows as ``"image/png;base64,…"``, or ``""`` where there is none.

    Parameters
    ----------
    images : array of shape (n_instances, height, width) or (n_instances, height, width, 3), or n_instances paths
        Numbers of type uint8 are taken as they are; others are scaled so that 1, or else the largest, is white. A path
        may be None: then there is no image.
    n_rows : int
        How many images there must be.
    rows : int array of shape (n_shown,)
        Which of them to encode; no other files are opened.

    Examples
    --------
    >>> import numpy as np
    >>> from abstain._report.images import encode_images
    >>> encode_images(np.eye(4).reshape(1, 4, 4), 1, np.array([0]))[0][:30]
    'image/png;base64,iVBORw0KGgoAA'
    """
    is_array = hasattr(images, "ndim") and images.ndim > 1
    if not is_array and (isinstance(images, str | bytes | os.PathLike) or not isinstance(images, Iterable)):
        raise InvalidParameter(
            f"images is {type(images).__name__}; expected an array of pictures, or a path for each row"
        )
    given = np.asarray(images) if is_array else list(images)
    if len(given) != n_rows:
        raise InvalidParameter(f"images: there are {len(given)} for {n_rows} rows")
    optional("PIL", "a report with pictures needs pillow and plotly", "plotly")
    if isinstance(given, list):
        return [_from_path(given[i], int(i)) for i in rows]
    return [_from_pixels(pixels) for pixels in _as_bytes(given, rows)]


def _as_bytes(pixels: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[np.uint8]:
    if pixels.dtype.kind not in "fiub" or not (pixels.ndim == 3 or (pixels.ndim == 4 and pixels.shape[3] == 3)):
        raise InvalidParameter(
            f"images: expected numbers of shape (n, height, width) or (n, height, width, 3), got {pixels.dtype} of "
            f"shape {pixels.shape}"
        )
    if 0 in pixels.shape[1:]:
        raise InvalidParameter(f"images: pictures of shape {pixels.shape[1:]} have nothing to show")
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
        with Image.open(Path(path)) as image:
            return _encode(image.convert("RGB"))
    except FileNotFoundError as reason:
        raise MissingFile(f"images: row {i}: there is no file {str(path)!r}") from reason
    except (OSError, ValueError, TypeError, Image.DecompressionBombError) as reason:
        raise InvalidDataset(f"images: row {i}: {path} cannot be read as a picture ({reason})") from reason


def _encode(image: Any) -> str:
    target = io.BytesIO()
    if max(image.size) > MAX_SIDE:
        image.thumbnail((MAX_SIDE, MAX_SIDE))
        image.save(target, "JPEG", quality=JPEG_QUALITY)
        kind = "jpeg"
    else:
        image.save(target, "PNG", optimize=True)
        kind = "png"
    return f"image/{kind};base64,{b64encode(target.getvalue()).decode('ascii')}"
