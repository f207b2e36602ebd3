"""Run an experiment in two stages: fitting, whose probabilities are stored fold by fold, and evaluation."""

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, parallel_config
from numpy.typing import NDArray
from scipy import sparse
from sklearn.impute import SimpleImputer
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from abstain._utils.errors import FitFailed
from abstain.experiment import _models
from abstain.experiment._evaluation import OutOfFold, Row, evaluate
from abstain.experiment._plan import Fold, Plan, versions
from abstain.experiment._results import Results
from abstain.experiment._store import FoldPrediction, Store
from abstain.integrations._dask.client import TIMEOUT

Data = tuple[Any, NDArray[np.uint8]]
"""The features and the labels of a data set."""
SendData = Callable[[Data], Any]
"""Makes data available to the workers, and returns what stands for them in a task."""


class FitTask(NamedTuple):
    """A fold to fit, as a worker needs it, without the data."""

    number: int
    """Which of the folds to be fitted it is."""
    title: str
    learner: str
    random_state: int
    train: NDArray[np.intp]
    test: NDArray[np.intp]


class FitResult(NamedTuple):
    """The fold that was fitted, the versions of the worker's libraries, and the probabilities."""

    number: int
    versions: dict[str, str]
    prediction: FoldPrediction


def run(
    plan: Plan,
    *,
    out: str | os.PathLike[str],
    n_jobs: int = -1,
    cluster: str | None = None,
    progress: bool | None = None,
) -> Results:
    """Fit the folds that are not stored yet, evaluate all of them, and write the results.

    Killed at any moment, it resumes when it is run again, and the results are the same to the byte. They do not depend
    on `n_jobs`.

    Parameters
    ----------
    plan : Plan
        What to do.
    out : path
        The folder for the results; the probabilities are stored in it, too.
    n_jobs : int, default=-1
        Folds fitted at once, each on one core; −1 for all cores (or all of the cluster's).
    cluster : str, optional
        The address of a Dask scheduler whose workers do the fitting. They need the same versions of the libraries,
        but not the data, and no common disk.
    progress : bool, optional
        Whether to show the progress; by default on a terminal.

    Returns
    -------
    results : Results
    """
    folder = Path(out)
    store = Store(folder / "probabilities")
    store.prepare()
    hidden = None if progress is None else not progress
    with _workers(n_jobs, cluster) as send_data:
        _fit_missing(plan, store, hidden, send_data)
    with _workers(n_jobs, None):
        results = _evaluate(plan, store, hidden)
    results.write(folder)
    return results


@contextmanager
def _workers(n_jobs: int, cluster: str | None) -> Iterator[SendData]:
    """Let joblib's `Parallel` use processes of this machine, or the workers of a cluster."""
    if cluster is None:
        options: dict[str, Any] = {"initializer": _exit_with_parent, "initargs": (os.getpid(),)}
        with parallel_config(backend="loky", n_jobs=n_jobs, **options):
            yield lambda data: data
        return
    from abstain.integrations._dask.joblib_backend import joblib_backend

    with joblib_backend(cluster, TIMEOUT) as (backend, send_data), parallel_config(backend=backend, n_jobs=n_jobs):
        yield send_data


def _exit_with_parent(parent: int) -> None:
    """Exit soon after the parent process, which may be killed at any moment; ignore interrupts, as it handles them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def predict(task: FitTask, data: Data) -> FitResult:
    """Fit to the training rows of a fold, and predict its test rows; on one core, wherever it runs."""
    start = time.perf_counter()
    features, labels = data
    with threadpool_limits(1), parallel_config(backend="sequential"):
        try:
            shape = (len(task.train), features.shape[1], labels.shape[1])
            model = _models.make(task.learner, shape, task.random_state)
            train, test = _impute(features[task.train], features[task.test])
            probabilities = model.fit(train, labels[task.train]).predict_proba(test)
        except Exception as reason:
            raise FitFailed(f"{task.title}: {type(reason).__name__}: {reason}") from reason
    return FitResult(task.number, versions(), FoldPrediction(probabilities, time.perf_counter() - start))


def _impute(train: Any, test: Any) -> tuple[Any, Any]:
    """Replace missing numbers by the medians of the training data."""
    if not any(np.isnan(table.data if sparse.issparse(table) else table).any() for table in (train, test)):
        return train, test
    imputer = SimpleImputer(strategy="median", keep_empty_features=True).fit(train)
    return imputer.transform(train), imputer.transform(test)


def _fit_missing(plan: Plan, store: Store, hidden: bool | None, send_data: SendData) -> None:
    missing = [fold for fold in plan.folds if not _is_stored(fold, store)]
    if not missing:
        return
    missing.sort(key=lambda fold: -fold.seconds)  # the longest first, so that no core idles at the end
    total = sum(map(_milliseconds, plan.folds))
    done = total - sum(map(_milliseconds, missing))
    bar = _progress_bar(f"{len(missing)} folds to fit", total, done, hidden)
    with bar as advance, closing(_fit(missing, send_data)) as fitted:
        for fold, prediction in fitted:
            store.write(fold, prediction)
            advance(_milliseconds(fold))


@contextmanager
def _progress_bar(title: str, total: int, initial: int, hidden: bool | None) -> Iterator[Callable[[int], Any]]:
    """Show a progress bar whose clock runs on between two updates; give the function that advances it."""
    bar_format = "{desc}: {percentage:3.0f}%|{bar}| {elapsed} so far, about {remaining} to go"
    done = threading.Event()
    options: dict[str, Any] = {"bar_format": bar_format, "disable": hidden, "dynamic_ncols": True}
    with tqdm(total=total, initial=initial, desc=title, **options) as bar:

        def refresh() -> None:
            while not done.wait(1.0):
                bar.refresh()

        if not bar.disable:
            threading.Thread(target=refresh, daemon=True).start()
        try:
            yield bar.update
        finally:
            done.set()


def _milliseconds(fold: Fold) -> int:
    """Return the fold's share of the progress, in whole milliseconds, which add up exactly."""
    return 1 + round(1000 * fold.seconds)


def _is_stored(fold: Fold, store: Store) -> bool:
    if store.read(fold) is not None:
        return True
    if store.path(fold).exists():
        warnings.warn(f"{store.path(fold)} is damaged; its fold is fitted anew", stacklevel=2)
    return False


def _fit(folds: list[Fold], send_data: SendData) -> Generator[tuple[Fold, FoldPrediction]]:
    """Fit the folds, and iterate over them as they get ready, in any order."""
    data = {problem: send_data((problem.features, problem.labels)) for problem in {fold.problem for fold in folds}}
    tasks = (
        delayed(predict)(FitTask(i, str(fold), fold.learner, fold.random_state, *fold.rows), data[fold.problem])
        for i, fold in enumerate(folds)
    )
    with closing(_run_tasks("a worker", tasks)) as results:
        for result in results:
            fold = folds[result.number]
            if result.versions != versions():
                raise FitFailed(
                    f"{fold}: a worker has {result.versions}, but here there is {versions()}; make them the same"
                )
            yield fold, result.prediction


def _run_tasks(title: str, tasks: Iterable[Any], order: str = "generator_unordered") -> Generator[Any]:
    """Iterate over the results of the workers; errors other than failed fits are errors of the workers."""
    try:
        with warnings.catch_warnings(), closing(Parallel(return_as=order)(tasks)) as results:
            warnings.filterwarnings("ignore", r"\d+ tasks ", UserWarning)  # were cancelled: on purpose
            yield from results
    except FitFailed:
        raise
    except Exception as reason:
        raise FitFailed(
            f"{title} has failed ({type(reason).__name__}: {reason}); "
            "what is fitted is kept, and the same command goes on from there"
        ) from reason


def _evaluate(plan: Plan, store: Store, hidden: bool | None) -> Results:
    pairs = list(plan.pairs)
    timings: list[Row] = []
    tasks = (delayed(evaluate)(_collect(pair, store, timings), list(plan.losses)) for pair in pairs)
    results: list[Row] = []
    coverage: list[Row] = []
    bar = _progress_bar("deciding", len(pairs), 0, hidden)
    with bar as advance, closing(_run_tasks("deciding", tasks, "generator")) as evaluated:
        for pair, (result_rows, coverage_rows) in zip(pairs, evaluated, strict=True):
            results += ({**_keys(pair), **row} for row in result_rows)
            coverage += ({**_keys(pair), **row} for row in coverage_rows)
            advance(1)
    return Results.from_rows(plan, results=results, coverage=coverage, timings=timings)


def _keys(pair: list[Fold]) -> Row:
    return {"dataset": pair[0].problem.name, "learner": pair[0].learner}


def _collect(pair: list[Fold], store: Store, timings: list[Row]) -> OutOfFold:
    """Return the probabilities of all instances, each from its own fold, and add how long these took to fit."""
    labels = pair[0].problem.labels
    probabilities = np.empty(labels.shape)
    seconds = 0.0
    for fold in pair:
        prediction = store.read(fold)
        if prediction is None:
            raise FitFailed(f"{store.path(fold)} was there, and now it is not, or it is damaged")
        probabilities[fold.rows[1]] = prediction.probabilities
        seconds += prediction.seconds
    timings.append({**_keys(pair), "folds": len(pair), "seconds": seconds})
    return OutOfFold(probabilities, labels, [fold.rows[1] for fold in pair], pair[0].random_state)
