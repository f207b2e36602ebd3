"""Two stages: probabilities, which take long and are kept fold by fold; and decisions, which do not."""

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from numpy.typing import NDArray
from scipy import sparse
from sklearn.impute import SimpleImputer
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from abstain._utils.errors import FitFailed
from abstain.experiment import _models
from abstain.experiment._decisions import OutOfFold, Row, tables
from abstain.experiment._plan import Fold, Plan, versions
from abstain.experiment._results import Results
from abstain.experiment._store import Kept, Store
from abstain.integrations._dask.client import TIMEOUT

Data = tuple[Any, NDArray[np.uint8]]


def run(
    plan: Plan,
    out: str | os.PathLike[str],
    *,
    jobs: int = -1,
    cluster: str | None = None,
    progress: bool | None = None,
) -> Results:
    """Fit what is not there yet, decide everything, and write the results.

    Killed at any moment, it goes on where it was when it is run again, and the results are the same to the byte. They
    do not depend on `jobs`.

    Parameters
    ----------
    plan : Plan
        What to do.
    out : path
        The folder for the results; the probabilities are kept in it, too.
    jobs : int, default=-1
        Folds fitted at once, each on one core; −1 for all cores (or all of the cluster's).
    cluster : str, optional
        The address of a Dask scheduler whose workers do the fitting. They need the same versions of the libraries,
        but not the data, and no common disk.
    progress : bool, optional
        Show how far it is; by default on a terminal.
    """
    folder = Path(out)
    store = Store(folder / "probabilities")
    store.prepare()
    hidden = None if progress is None else not progress
    with _workers(jobs, cluster) as share:
        _fit_missing(plan, store, hidden, share)
    with _workers(jobs, None):
        results = _decide(plan, store, hidden)
    results.write(folder)
    return results


@contextmanager
def _workers(jobs: int, cluster: str | None) -> Iterator[Callable[[Data], Any]]:
    """What joblib's `Parallel` uses: processes of this machine, or the workers of a cluster; and how they get data."""
    if cluster is None:
        with parallel_config(backend="loky", n_jobs=jobs, initializer=_end_with, initargs=(os.getpid(),)):
            yield lambda data: data
        return
    from abstain.integrations._dask.joblib_backend import joblib_backend

    with joblib_backend(cluster, TIMEOUT) as (backend, share), parallel_config(backend=backend, n_jobs=jobs):
        yield share


def _end_with(parent: int) -> None:
    """Let this process end soon after its parent, which may be killed at any moment; interrupts are for the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def predict(name: str, learner: str, seed: int, data: Data, rows: tuple[Any, Any]) -> tuple[dict[str, str], Kept]:
    """Learn from some instances, and give the probabilities of others; on one core, wherever it runs."""
    start = time.perf_counter()
    (features, labels), (train, test) = data, rows
    with threadpool_limits(1), parallel_config(backend="sequential"):
        try:
            model = _models.make(learner, (len(train), features.shape[1], labels.shape[1]), seed)
            known, new = _filled(features[train], features[test])
            probabilities = model.fit(known, labels[train]).predict_proba(new)
        except Exception as reason:
            raise FitFailed(f"{name}: {type(reason).__name__}: {reason}") from reason
    return versions(), Kept(probabilities, time.perf_counter() - start)


def _filled(known: Any, new: Any) -> tuple[Any, Any]:
    """Missing numbers are taken to be the median of those known."""
    if not any(np.isnan(table.data if sparse.issparse(table) else table).any() for table in (known, new)):
        return known, new
    imputer = SimpleImputer(strategy="median", keep_empty_features=True).fit(known)
    return imputer.transform(known), imputer.transform(new)


def _fit_missing(plan: Plan, store: Store, hidden: bool | None, share: Callable[[Data], Any]) -> None:
    missing = [fold for fold in plan.folds if not _is_there(fold, store)]
    if not missing:
        return
    missing.sort(key=lambda fold: -fold.work)  # the longest first, so that no core idles at the end
    total = sum(map(_steps, plan.folds))
    bar = _bar(f"{len(missing)} folds to fit", total, total - sum(map(_steps, missing)), hidden)
    with bar as advance, closing(_fitted(missing, share)) as fitted:
        for fold, kept in fitted:
            store.write(fold, kept)
            advance(_steps(fold))


@contextmanager
def _bar(what: str, total: int, initial: int, hidden: bool | None) -> Iterator[Callable[[int], Any]]:
    """A progress bar whose clock ticks while nothing gets ready."""
    shape = "{desc}: {percentage:3.0f}%|{bar}| {elapsed} so far, about {remaining} to go"
    done = threading.Event()
    with tqdm(total=total, initial=initial, desc=what, bar_format=shape, disable=hidden, dynamic_ncols=True) as bar:

        def tick() -> None:
            while not done.wait(1.0):
                bar.refresh()

        if not bar.disable:
            threading.Thread(target=tick, daemon=True).start()
        try:
            yield bar.update
        finally:
            done.set()


def _steps(fold: Fold) -> int:
    """Its share of the progress, in whole milliseconds, which add up exactly."""
    return 1 + round(1000 * fold.work)


def _is_there(fold: Fold, store: Store) -> bool:
    if store.read(fold) is not None:
        return True
    if store.path(fold).exists():
        warnings.warn(f"{store.path(fold)} is damaged; its fold is fitted anew", stacklevel=2)
    return False


def _fitted(folds: list[Fold], share: Callable[[Data], Any]) -> Generator[tuple[Fold, Kept]]:
    """The folds as they get ready, in any order."""
    data = {problem: share((problem.features, problem.labels)) for problem in {fold.problem for fold in folds}}
    answers = _answers(
        "a worker",
        (
            delayed(_numbered)(i, str(fold), fold.learner, fold.seed, data[fold.problem], fold.rows)
            for i, fold in enumerate(folds)
        ),
    )
    with closing(answers):
        for i, (made_with, kept) in answers:
            if made_with != versions():
                raise FitFailed(
                    f"{folds[i]}: a worker has {made_with}, but here there is {versions()}; make them the same"
                )
            yield folds[i], kept


def _numbered(i: int, *arguments: Any) -> tuple[int, tuple[dict[str, str], Kept]]:
    return i, predict(*arguments)


def _answers(what: str, tasks: Iterable[Any], order: str = "generator_unordered") -> Generator[Any]:
    """What the workers answer. What goes wrong, besides the fits themselves, goes wrong with the workers."""
    try:
        with warnings.catch_warnings(), closing(Parallel(return_as=order)(tasks)) as answers:
            warnings.filterwarnings("ignore", r"\d+ tasks ", UserWarning)  # were cancelled: on purpose
            yield from answers
    except FitFailed:
        raise
    except Exception as reason:
        raise FitFailed(
            f"{what} has failed ({type(reason).__name__}: {reason}); "
            "what is fitted is kept, and the same command goes on from there"
        ) from reason


def _decide(plan: Plan, store: Store, hidden: bool | None) -> Results:
    pairs = list(plan.pairs)
    timings: list[Row] = []
    tasks = (delayed(tables)(_collect(pair, store, timings), list(plan.losses)) for pair in pairs)
    results: list[Row] = []
    curves: list[Row] = []
    bar = _bar("deciding", len(pairs), 0, hidden)
    with bar as advance, closing(_answers("deciding", tasks, "generator")) as found:
        for pair, (first, second) in zip(pairs, found, strict=True):
            results += ({**_keys(pair), **row} for row in first)
            curves += ({**_keys(pair), **row} for row in second)
            advance(1)
    return Results.of(plan, results, curves, timings)


def _keys(pair: list[Fold]) -> Row:
    return {"dataset": pair[0].problem.name, "learner": pair[0].learner}


def _collect(pair: list[Fold], store: Store, timings: list[Row]) -> OutOfFold:
    """The probabilities of all instances, each from the fold it was held out in."""
    labels = pair[0].problem.labels
    probabilities = np.empty(labels.shape)
    seconds = 0.0
    for fold in pair:
        kept = store.read(fold)
        if kept is None:
            raise FitFailed(f"{store.path(fold)} was there, and now it is not, or it is damaged")
        probabilities[fold.rows[1]] = kept.probabilities
        seconds += kept.seconds
    timings.append({**_keys(pair), "folds": len(pair), "seconds": seconds})
    return OutOfFold(probabilities, labels, [fold.rows[1] for fold in pair], pair[0].seed)
