"""Download published data sets: once, checked by their sha256, and cached in a folder."""

import bz2
import gzip
import hashlib
import logging
import os
import sys
import time
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import numpy as np
from sklearn.utils import Bunch

from abstain._utils.errors import DownloadFailed, InvalidDataset, InvalidParameter
from abstain._utils.extras import optional
from abstain._utils.suggestions import did_you_mean
from abstain.datasets._bunch import MultiLabelBunch
from abstain.datasets._mulan import load_mulan
from abstain.datasets._registry import DATASETS, OPENML, Dataset, File

TIMEOUT = 30.0
"""Seconds to wait for a connection, and then for each next piece of a file."""
N_RETRIES = 2
"""How often a URL is tried again if the connection breaks, before the next one is."""
RETRY_DELAY = 1.0
"""Seconds before a URL is tried again."""

_OPENERS: dict[str, Any] = {"": open, ".gz": gzip.open, ".bz2": bz2.open}


def fetch(
    name: str, *, folder: str | os.PathLike[str] | None = None, as_frame: bool = False, progress: bool | None = None
) -> Bunch:
    """Return a published data set, from the cache folder, or else from the first of its URLs that has it.

    Downloading needs pooch. A file that was put into the folder by hand, packed or not, is used like a downloaded one;
    so is ``<name>/<file>`` in the folder that the environment variable ``ABSTAIN_DATA`` names. All must have the
    published checksum.

    Parameters
    ----------
    name : str
        One of `DATASETS`, whatever its case; "-" and "_" are the same.
    folder : path, optional
        The cache folder. By default the environment variable ``ABSTAIN_CACHE`` names it, or else it is the user's.
    as_frame : bool, default=False
        Give pandas frames instead of arrays.
    progress : bool, optional
        Whether to show the progress of the download and of the reading; by default on a terminal.

    Returns
    -------
    bunch : Bunch
        As `load_mulan` gives it.

    Raises
    ------
    DownloadFailed
        If no URL could be reached; the message says where to put the file by hand.
    InvalidDataset
        If a file is not the one that was published.
    InvalidParameter
        If there is no such data set.

    Examples
    --------
    >>> from abstain.datasets import DATASETS, fetch
    >>> DATASETS["yeast"].n_instances, DATASETS["yeast"].n_labels
    (2417, 14)
    >>> fetch("yeats")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    abstain.InvalidParameter: there is no data set 'yeats'; did you mean 'yeast'? (there are ...
    """
    dataset = _find_dataset(name)
    cache = _cache_folder(folder)
    try:
        paths = [_local_path(dataset, file, cache, progress) for file in dataset.files]
    except DownloadFailed as failed:
        if dataset.openml is None:
            raise
        return _from_openml(dataset, cache, as_frame, failed)
    bunch = load_mulan(paths[0], xml=paths[1], as_frame=as_frame, progress=progress)
    _require_shape(bunch, dataset, str(paths[1]))
    return bunch


def to_download(name: str, *, folder: str | os.PathLike[str] | None = None) -> tuple[Dataset, list[File]]:
    """Return a published data set, and which of its files `fetch` would have to download; download nothing."""
    dataset = _find_dataset(name)
    cache = _cache_folder(folder)
    return dataset, [file for file in dataset.files if _find_file(dataset, file, cache) is None]


def _find_dataset(name: str) -> Dataset:
    known = {normalize_name(key): dataset for key, dataset in DATASETS.items()}
    if not isinstance(name, str) or normalize_name(name) not in known:
        hint = did_you_mean(name, DATASETS, normalize=normalize_name) if isinstance(name, str) else ""
        raise InvalidParameter(f"there is no data set {name!r}{hint} (there are {', '.join(DATASETS)})")
    return known[normalize_name(name)]


def normalize_name(name: str) -> str:
    """Return the name of a data set or file in lower case, with hyphens."""
    return name.lower().replace("_", "-")


def _cache_folder(folder: str | os.PathLike[str] | None) -> Path:
    chosen = folder or os.environ.get("ABSTAIN_CACHE") or _import_pooch().os_cache("abstain")
    return Path(chosen).expanduser().absolute()


def _import_pooch() -> Any:
    return optional("pooch", "fetching data sets needs pooch")


def _local_path(dataset: Dataset, file: File, cache: Path, progress: bool | None) -> Path:
    """Return the path of the file, which is downloaded if it is not on this machine."""
    path = _find_file(dataset, file, cache)
    if path is None:
        return _download(dataset, file, cache / normalize_name(dataset.name), progress)
    _require_checksum(path, file)
    return path


def _find_file(dataset: Dataset, file: File, cache: Path) -> Path | None:
    """Return the path of the file on this machine, or None."""
    given = os.environ.get("ABSTAIN_DATA")
    folders = [cache] if given is None else [cache, Path(given).expanduser()]
    return next((path for folder in folders for path in _matching_files(folder, dataset, file)), None)


def _matching_files(folder: Path, dataset: Dataset, file: File) -> list[Path]:
    """Return the files of this name in the folder of a data set, whatever their case; unpacked ones first."""
    wanted = [normalize_name(file.name) + suffix for suffix in _OPENERS]
    subfolders = [path for path in _entries(folder) if normalize_name(path.name) == normalize_name(dataset.name)]
    files = [path for subfolder in subfolders for path in _entries(subfolder) if path.is_file()]
    matching = [path for path in files if normalize_name(path.name) in wanted]
    return sorted(matching, key=lambda path: wanted.index(normalize_name(path.name)))


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _require_checksum(path: Path, file: File) -> None:
    """Raise `InvalidDataset` if the unpacked file is not the published one."""
    if file.sha256 is None:
        return
    suffix = path.suffix.lower()
    try:
        with _OPENERS[suffix if suffix in _OPENERS else ""](path, "rb") as source:
            found = hashlib.file_digest(source, "sha256").hexdigest()
    except (EOFError, OSError, zlib.error) as reason:
        if getattr(reason, "errno", None) is not None:  # an error of the disk, not of the file
            raise
        raise InvalidDataset(f"{path}: cannot be unpacked ({reason}); delete it to have it fetched anew") from reason
    if found != file.sha256:
        raise InvalidDataset(
            f"{path}: is not the published file: its sha256 is {found}, expected {file.sha256}; "
            "delete it to have it fetched anew"
        )


def _download(dataset: Dataset, file: File, folder: Path, progress: bool | None) -> Path:
    """Download the file from the first URL that has it; it appears in the folder once it is complete and checked."""
    pooch = _import_pooch()
    shown = sys.stderr.isatty() if progress is None else progress
    reasons = []
    for url in file.urls:
        for attempt in range(1 + N_RETRIES):
            if attempt:
                time.sleep(RETRY_DELAY)
            downloader = pooch.HTTPDownloader(progressbar=shown, timeout=TIMEOUT)
            try:
                with _quiet(pooch.get_logger()):
                    return Path(pooch.retrieve(url, file.sha256, file.name, folder, downloader=downloader))
            except (OSError, ValueError) as reason:
                explanation, is_temporary = _explain(reason, file)
                if explanation is None:
                    raise
                if not is_temporary or attempt == N_RETRIES:
                    reasons.append(f"{url}: {explanation}")
                    break
    raise DownloadFailed(
        f"{dataset.name}: {file.name} could not be fetched:\n  "
        + "\n  ".join(reasons)
        + f"\nOnce you have it from elsewhere, put it here (it may be packed with gzip): {folder / file.name}"
    )


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Log nothing for each attempt: there is a progress bar, and an error says what was tried."""
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


def _explain(reason: Exception, file: File) -> tuple[str | None, bool]:
    """Return why a download failed, None if not because of the server, and whether it is worth trying again."""
    import requests

    if isinstance(reason, requests.HTTPError) and reason.response is not None:
        response = reason.response
        too_busy = response.status_code == 429 or response.status_code >= 500
        return f"answered {response.status_code} {response.reason}", too_busy
    if isinstance(reason, requests.RequestException):
        if "timed out" in str(reason):
            return f"no answer within {TIMEOUT:g} s", True
        cause: Any = reason  # requests wraps what urllib3 has wrapped
        while cause.args and isinstance(cause.args[0], Exception):
            cause = cause.args[0]
        return f"the connection failed ({getattr(cause, 'reason', cause)})", True
    if isinstance(reason, ValueError):
        return f"has another file: its sha256 is not {file.sha256}", False
    return None, False


def _from_openml(dataset: Dataset, cache: Path, as_frame: bool, failed: DownloadFailed) -> Bunch:
    """Return the data set from OpenML, in the form that `load_mulan` gives."""
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A network error occurred")  # the error says so if all attempts fail
            found = fetch_openml(
                data_id=dataset.openml,
                data_home=str(cache / "openml"),
                as_frame=as_frame,
                parser="liac-arff",
                n_retries=1,
                delay=RETRY_DELAY,
            )
    except (OSError, ValueError) as reason:
        if isinstance(reason, HTTPError):
            reason.close()  # it holds the connection
        tried, by_hand = str(failed).rsplit("\n", 1)
        raise DownloadFailed(f"{tried}\n  {OPENML}/{dataset.openml}: {reason}\n{by_hand}") from reason
    positive = np.isin(np.char.lower(np.asarray(found.target).astype(np.str_)), ("true", "1", "1.0", "yes"))
    target: Any = positive.astype(np.uint8)
    if as_frame:
        target = type(found.target)(target, index=found.target.index, columns=found.target.columns)
    bunch = MultiLabelBunch(
        data=found.data,
        target=target,
        feature_names=list(found.feature_names),
        target_names=list(found.target_names),
        relation=dataset.name,
        categories={},
        strings={},
    )
    _require_shape(bunch, dataset, f"{OPENML}/{dataset.openml}")
    return bunch


def _require_shape(bunch: Bunch, dataset: Dataset, where: str) -> None:
    """Raise `InvalidDataset` if the shape is wrong: a wrong list of labels need not be found by a checksum."""
    expected = dataset.n_instances, dataset.n_labels
    if bunch.target.shape != expected:
        raise InvalidDataset(
            f"{where}: gives {dataset.name} {bunch.target.shape} instances × labels, expected {expected}"
        )
