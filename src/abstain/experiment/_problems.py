"""The data of an experiment: features, labels, and a fingerprint of both."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._utils.errors import InvalidDataset, MissingFile
from abstain._utils.suggestions import did_you_mean
from abstain.datasets import DATASETS, fetch, load_mulan
from abstain.datasets._download import normalize_name, to_download
from abstain.datasets._registry import File

COMPRESSED_ENDINGS = "", ".gz", ".bz2"


@dataclass(frozen=True, eq=False)
class Problem:
    """A multi-label data set of an experiment.

    Parameters
    ----------
    name : str
        Part of the names of files.
    features : array or CSR array of shape (n_instances, n_features)
    labels : uint8 array of shape (n_instances, n_labels)
    label_names : sequence of str
    origin : str
        Where the data are from, for the record.
    """

    name: str
    features: Any
    labels: NDArray[np.uint8]
    label_names: Sequence[str]
    origin: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[^/\\\0]{1,80}", self.name) or self.name.startswith("."):
            raise InvalidDataset(f"a data set cannot be called {self.name!r}: its name is part of the names of files")
        n, m = self.labels.shape
        if self.features.shape[0] != n or len(self.label_names) != m:
            raise InvalidDataset(
                f"{self.name}: {self.features.shape[0]} rows of features and {len(self.label_names)} label names "
                f"do not fit {n} × {m} labels"
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """The numbers of instances, features and labels."""
        return (*self.features.shape, self.labels.shape[1])

    @cached_property
    def sha256(self) -> str:
        """A fingerprint of the numbers and the names, wherever they were read from."""
        digest = hashlib.sha256(repr((self.shape, list(self.label_names))).encode())
        arrays = [self.features]
        if sparse.issparse(self.features):
            matrix = sparse.csr_array(self.features, copy=True)
            matrix.sum_duplicates()
            arrays = [matrix.indptr, matrix.indices, matrix.data]
        for array in (*arrays, self.labels):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


@dataclass(frozen=True)
class Unfetched:
    """A published data set that is not on this machine yet: its name, its shape, and the files to be downloaded."""

    name: str
    shape: tuple[int, int, int]
    files: tuple[File, ...]


def look_up(name: str, *, folder: Path | None = None) -> Problem | Unfetched:
    """Return a data set as `load` does, or, if that would download it, what is known of it without.

    Parameters
    ----------
    name : str
        The path of an ARFF file, or the name of a data set.
    folder : Path, optional
        Where to look for a named data set.

    Returns
    -------
    problem : Problem or Unfetched
    """
    if folder is None and not _is_path(name):
        dataset, files = to_download(name)
        if files:
            return Unfetched(normalize_name(name), dataset.shape, tuple(files))
    return load(name, folder=folder)


def load(name: str, *, folder: Path | None = None) -> Problem:
    """Return a data set by the path of its ARFF file, by its name in a folder, or, without a folder, as published.

    Parameters
    ----------
    name : str
        The path of an ARFF file, or the name of a data set.
    folder : Path, optional
        Where to look for a named data set; without it, published data sets are downloaded once.

    Returns
    -------
    problem : Problem
    """
    if _is_path(name):
        path = Path(name)
        if path.is_dir():
            raise InvalidDataset(f"{name!r} is a folder; give the ARFF file, or a name and the folder as --data")
    elif folder is not None:
        path = _find(name, folder)
    else:
        bunch = fetch(name)
        return _problem(normalize_name(name), bunch, f"published as {bunch.relation}")
    return _problem(_stem(path) if _is_path(name) else normalize_name(name), load_mulan(path), path.name)


def _is_path(name: str) -> bool:
    return _stem(Path(name)) != Path(name).name or len(Path(name).parts) > 1


def _stem(path: Path) -> str:
    """Return the name of an ARFF file without its endings; any other name as it is."""
    for suffix in COMPRESSED_ENDINGS:
        if path.name.lower().endswith(f".arff{suffix}"):
            return path.name[: -len(f".arff{suffix}")]
    return path.name


def _find(name: str, folder: Path) -> Path:
    """Return the ARFF file of a data set, in the folder or in one of its folders, whatever the case of its name."""
    if not folder.is_dir():
        raise MissingFile(f"there is no folder {str(folder)!r}")
    published = next((known for known in DATASETS.values() if normalize_name(known.name) == normalize_name(name)), None)
    wanted = [normalize_name(name), *([normalize_name(_stem(Path(published.files[0].name)))] if published else [])]
    files = [path for pattern in ("*", "*/*") for path in sorted(folder.glob(pattern)) if _stem(path) != path.name]
    for path in files:
        if normalize_name(_stem(path)) in wanted:
            return path
    present = sorted({_stem(path) for path in files})
    hint = did_you_mean(name, present, normalize=normalize_name)
    raise MissingFile(
        f"there is no {wanted[-1]}.arff in {str(folder)!r} or its folders, packed or not{hint} "
        f"(there are {', '.join(present) or 'no ARFF files'})"
    )


def _problem(name: str, bunch: Any, origin: str) -> Problem:
    features = _one_hot(bunch.data, bunch.feature_names, bunch.categories)
    values = features.data if sparse.issparse(features) else features.ravel()
    if np.isinf(values).any():
        at = int(np.argmax(np.isinf(values)))
        row = (
            np.searchsorted(features.indptr, at, "right") - 1 if sparse.issparse(features) else at // features.shape[1]
        )
        raise InvalidDataset(f"{origin}: instance {row + 1} has an infinite feature; no learner can use it")
    return Problem(name, features, np.asarray(bunch.target, np.uint8), tuple(bunch.target_names), origin)


def _one_hot(features: Any, names: Sequence[str], categories: dict[str, tuple[str, ...]]) -> Any:
    """Return the numeric features, then a column of 0 and 1 for each value of the nominal ones; all 0 if missing."""
    if not categories:
        return features
    numeric = [j for j, name in enumerate(names) if name not in categories]
    indicators = []
    for j, name in enumerate(names):
        if name in categories:
            codes = features[:, [j]].toarray() if sparse.issparse(features) else features[:, [j]]
            indicators.append((codes == np.arange(len(categories[name]))).astype(np.float64))
    stack = sparse.hstack if sparse.issparse(features) else np.hstack
    columns = stack([features[:, numeric], *indicators])
    return sparse.csr_array(columns) if sparse.issparse(features) else columns
