"""Data sets from their public homes: fetched once, checked by their sha256, kept in a folder."""

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
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import numpy as np
from sklearn.utils import Bunch

from abstain._utils.errors import DownloadFailed, InvalidDataset
from abstain._utils.extras import optional
from abstain.datasets._bunch import MultiLabelBunch
from abstain.datasets._mulan import load_mulan
from abstain.datasets._registry import DATASETS, OPENML, Dataset, File

TIMEOUT = 30.0
"""Seconds to wait for a connection, and then for each next piece of a file."""
RETRIES = 2
"""How often a home is asked again if the connection breaks, before the next one is."""
PAUSE = 1.0
"""Seconds before it is asked again."""

_OPENERS: dict[str, Any] = {"": open, ".gz": gzip.open, ".bz2": bz2.open}


def fetch(
    name: str, *, folder: str | os.PathLike[str] | None = None, as_frame: bool = False, progress: bool | None = None
) -> Bunch:
    """A published data set: from the folder it is kept in, or else from the first of its homes that has it.

    Downloading needs pooch. A file that was put into the folder by hand, packed or not, is
    used like a downloaded one; so is ``<name>/<file>`` in the folder that the environment variable ``ABSTAIN_DATA``
    names. All are held to the published checksum.

    Parameters
    ----------
    name : str
        One of `DATASETS`, whatever its case; "-" and "_" are the same.
    folder : path, optional
        Where the files are kept. By default the environment variable ``ABSTAIN_CACHE`` names it, or else it is the
        user's cache folder.
    as_frame : bool
        Give pandas frames instead of arrays.
    progress : bool, optional
        Show how far the download and the reading are; by default on a terminal.

    Returns
    -------
    Bunch
        As `load_mulan` gives it.

    Raises
    ------
    DownloadFailed
        If no home could be reached; the message says where to put the file by hand.
    InvalidDataset
        If a file is not the one that was published.

    Examples
    --------
    >>> from abstain.datasets._download import DATASETS, fetch
    >>> DATASETS["yeast"].n_instances, DATASETS["yeast"].n_labels
    (2417, 14)
    >>> fetch("yeats")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: there is no data set 'yeats'; did you mean 'yeast'? (there are ...
    """
    dataset = _called(name)
    kept = _kept_in(folder)
    try:
        paths = [_path_of(dataset, file, kept, progress) for file in dataset.files]
    except DownloadFailed as failed:
        if dataset.openml is None:
            raise
        return _from_openml(dataset, kept, as_frame, failed)
    bunch = load_mulan(paths[0], paths[1], as_frame=as_frame, progress=progress)
    _require_shape(bunch, dataset, str(paths[1]))
    return bunch


def to_download(name: str, *, folder: str | os.PathLike[str] | None = None) -> tuple[Dataset, list[File]]:
    """A published data set, and which of its files `fetch` would have to download. Nothing is."""
    dataset = _called(name)
    kept = _kept_in(folder)
    return dataset, [file for file in dataset.files if _here(dataset, file, kept) is None]


def _called(name: str) -> Dataset:
    known = {_plain(key): dataset for key, dataset in DATASETS.items()}
    if not isinstance(name, str) or _plain(name) not in known:
        close = get_close_matches(_plain(name), known, n=1) if isinstance(name, str) else []
        hint = f"; did you mean {known[close[0]].name!r}?" if close else ""
        raise ValueError(f"there is no data set {name!r}{hint} (there are {', '.join(DATASETS)})")
    return known[_plain(name)]


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _kept_in(folder: str | os.PathLike[str] | None) -> Path:
    chosen = folder or os.environ.get("ABSTAIN_CACHE") or _import_pooch().os_cache("abstain")
    return Path(chosen).expanduser().absolute()


def _import_pooch() -> Any:
    return optional("pooch", "fetching data sets needs pooch")


def _path_of(dataset: Dataset, file: File, kept: Path, progress: bool | None) -> Path:
    """Where the file is; it is downloaded if it is nowhere yet."""
    path = _here(dataset, file, kept)
    if path is None:
        return _download(dataset, file, kept / _plain(dataset.name), progress)
    _require_checksum(path, file)
    return path


def _here(dataset: Dataset, file: File, kept: Path) -> Path | None:
    """Where the file is on this machine, if it is."""
    given = os.environ.get("ABSTAIN_DATA")
    folders = [kept] if given is None else [kept, Path(given).expanduser()]
    return next((path for folder in folders for path in _found(folder, dataset, file)), None)


def _found(folder: Path, dataset: Dataset, file: File) -> Iterator[Path]:
    """The file in a data set's folder, whatever the case of their names; unpacked ones first."""
    wanted = [_plain(file.name) + suffix for suffix in _OPENERS]
    inside = [path for path in _entries(folder) if _plain(path.name) == _plain(dataset.name)]
    files = [path for place in inside for path in _entries(place) if _plain(path.name) in wanted and path.is_file()]
    yield from sorted(files, key=lambda path: wanted.index(_plain(path.name)))


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _require_checksum(path: Path, file: File) -> None:
    """Raise `InvalidDataset` if what the file holds, unpacked, is not what was published."""
    if file.sha256 is None:
        return
    suffix = path.suffix.lower()
    try:
        with _OPENERS[suffix if suffix in _OPENERS else ""](path, "rb") as source:
            found = hashlib.file_digest(source, "sha256").hexdigest()
    except (EOFError, OSError, zlib.error) as reason:
        if getattr(reason, "errno", None) is not None:  # the disk's fault, not the file's
            raise
        raise InvalidDataset(f"{path}: cannot be unpacked ({reason}); delete it to have it fetched anew") from reason
    if found != file.sha256:
        raise InvalidDataset(
            f"{path}: is not the published file: its sha256 is {found}, expected {file.sha256}; "
            "delete it to have it fetched anew"
        )


def _download(dataset: Dataset, file: File, folder: Path, progress: bool | None) -> Path:
    """The file from the first home that has it. It appears in the folder once it is whole and checked."""
    pooch = _import_pooch()
    shown = sys.stderr.isatty() if progress is None else progress
    reasons = []
    for url in file.homes:
        for attempt in range(1 + RETRIES):
            if attempt:
                time.sleep(PAUSE)
            downloader = pooch.HTTPDownloader(progressbar=shown, timeout=TIMEOUT)
            try:
                with _quiet(pooch.get_logger()):
                    return Path(pooch.retrieve(url, file.sha256, file.name, folder, downloader=downloader))
            except (OSError, ValueError) as reason:
                explained, may_pass = _explain(reason, file)
                if explained is None:
                    raise
                if not may_pass or attempt == RETRIES:
                    reasons.append(f"{url}: {explained}")
                    break
    raise DownloadFailed(
        f"{dataset.name}: {file.name} could not be fetched:\n  "
        + "\n  ".join(reasons)
        + f"\nOnce you have it from elsewhere, put it here (it may be packed with gzip): {folder / file.name}"
    )


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """No line for each attempt: there is a progress bar, and an error says what was tried."""
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


def _explain(reason: Exception, file: File) -> tuple[str | None, bool]:
    """What to say of a failed download, and whether it may pass; None if it is not the home's fault."""
    import requests

    if isinstance(reason, requests.HTTPError) and reason.response is not None:
        answer = reason.response
        too_busy = answer.status_code == 429 or answer.status_code >= 500
        return f"answered {answer.status_code} {answer.reason}", too_busy
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


def _from_openml(dataset: Dataset, kept: Path, as_frame: bool, failed: DownloadFailed) -> Bunch:
    """The same data set as OpenML has it, in the form that `load_mulan` gives."""
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():  # of each further attempt, which the error will tell
            warnings.filterwarnings("ignore", "A network error occurred")
            home = str(kept / "openml")
            found = fetch_openml(
                data_id=dataset.openml, data_home=home, as_frame=as_frame, parser="liac-arff", n_retries=1, delay=PAUSE
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
    """Not every list of labels has a known checksum; but with a wrong one the shape would be another."""
    expected = dataset.n_instances, dataset.n_labels
    if bunch.target.shape != expected:
        raise InvalidDataset(
            f"{where}: gives {dataset.name} {bunch.target.shape} instances × labels, expected {expected}"
        )
