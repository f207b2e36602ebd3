"""The data of an experiment: features, labels, and a fingerprint of both."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._utils.errors import InvalidDataset
from abstain.datasets import DATASETS, fetch, load_mulan
from abstain.datasets._download import to_download
from abstain.datasets._registry import File

PACKED = "", ".gz", ".bz2"


@dataclass(frozen=True, eq=False)
class Problem:
    """A multi-label data set with a name; `origin` says where it is from."""

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
        """Instances, features, labels."""
        return (*self.features.shape, self.labels.shape[1])

    @cached_property
    def sha256(self) -> str:
        """A fingerprint of the numbers and the names: where they were read from does not matter."""
        found = hashlib.sha256(repr((self.shape, list(self.label_names))).encode())
        parts = [self.features]
        if sparse.issparse(self.features):
            matrix = sparse.csr_array(self.features, copy=True)
            matrix.sum_duplicates()
            parts = [matrix.indptr, matrix.indices, matrix.data]
        for part in (*parts, self.labels):
            found.update(np.ascontiguousarray(part).data)
        return found.hexdigest()


@dataclass(frozen=True)
class Unfetched:
    """A published data set that is not on this machine yet: its size, and the files to be downloaded."""

    name: str
    shape: tuple[int, int, int]
    files: tuple[File, ...]


def look_up(name: str, folder: Path | None = None) -> Problem | Unfetched:
    """A data set as `load` gives it, or, if that would download it, what is known of it without."""
    if folder is None and not _is_path(name):
        dataset, files = to_download(name)
        if files:
            return Unfetched(_plain(name), dataset.shape, tuple(files))
    return load(name, folder)


def load(name: str, folder: Path | None = None) -> Problem:
    """A data set by the path of its ARFF file, by its name in a folder, or, without a folder, from its public home."""
    if _is_path(name):
        path = Path(name)
        if path.is_dir():
            raise InvalidDataset(f"{name!r} is a folder; give the ARFF file, or a name and the folder as --data")
    elif folder is not None:
        path = _find(name, folder)
    else:
        bunch = fetch(name)
        return _problem(_plain(name), bunch, f"published as {bunch.relation}")
    return _problem(_stem(path) if _is_path(name) else _plain(name), load_mulan(path), path.name)


def _is_path(name: str) -> bool:
    return _stem(Path(name)) != Path(name).name or len(Path(name).parts) > 1


def _stem(path: Path) -> str:
    """The name of an ARFF file without its endings."""
    for suffix in PACKED:
        if path.name.lower().endswith(f".arff{suffix}"):
            return path.name[: -len(f".arff{suffix}")]
    return path.name


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _find(name: str, folder: Path) -> Path:
    """The ARFF file of a data set, in the folder or in one of its folders, whatever the case of its name."""
    if not folder.is_dir():
        raise InvalidDataset(f"there is no folder {str(folder)!r}")
    published = next((known for known in DATASETS.values() if _plain(known.name) == _plain(name)), None)
    wanted = [_plain(name), *([_plain(_stem(Path(published.files[0].name)))] if published else [])]
    files = [path for pattern in ("*", "*/*") for path in sorted(folder.glob(pattern)) if _stem(path) != path.name]
    for path in files:
        if _plain(_stem(path)) in wanted:
            return path
    there = {_plain(_stem(path)): _stem(path) for path in files}
    close = get_close_matches(_plain(name), there, n=1)
    hint = f"; did you mean {there[close[0]]!r}?" if close else ""
    raise InvalidDataset(
        f"there is no {wanted[-1]}.arff in {str(folder)!r} or its folders, packed or not{hint} "
        f"(there are {', '.join(sorted(there.values())) or 'no ARFF files'})"
    )


def _problem(name: str, bunch: Any, origin: str) -> Problem:
    features = _without_categories(bunch.data, bunch.feature_names, bunch.categories)
    values = features.data if sparse.issparse(features) else features.ravel()
    if np.isinf(values).any():
        at = int(np.argmax(np.isinf(values)))
        row = (
            np.searchsorted(features.indptr, at, "right") - 1 if sparse.issparse(features) else at // features.shape[1]
        )
        raise InvalidDataset(f"{origin}: instance {row + 1} has an infinite feature; no learner can use it")
    return Problem(name, features, np.asarray(bunch.target, np.uint8), tuple(bunch.target_names), origin)


def _without_categories(features: Any, names: Sequence[str], categories: dict[str, tuple[str, ...]]) -> Any:
    """Numbers as they are, then a column of 0 and 1 for each value of the nominal features; all 0 if it is missing."""
    if not categories:
        return features
    numeric = [j for j, name in enumerate(names) if name not in categories]
    shown = []
    for j, name in enumerate(names):
        if name in categories:
            codes = features[:, [j]].toarray() if sparse.issparse(features) else features[:, [j]]
            shown.append((codes == np.arange(len(categories[name]))).astype(np.float64))
    join = sparse.hstack if sparse.issparse(features) else np.hstack
    kept = join([features[:, numeric], *shown])
    return sparse.csr_array(kept) if sparse.issparse(features) else kept
