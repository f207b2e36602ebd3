"""Prediction predictions in files beside the truth: scored as they pass by."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.decision import decide_table
from abstain._core.losses import Loss, LossLike, as_loss
from abstain._core.penalties import Linear, Penalty, PenaltyLike, as_penalty
from abstain._core.prediction import ABSTAIN, PartialPrediction, PartialRanking, Prediction
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Table
from abstain._utils.errors import InvalidDataset, InvalidLabels, InvalidProbabilities, quoted
from abstain.metrics import caught_errors, expected_generalized_loss, generalized_loss, wrong_answers
from abstain.streams._bad_values import bad_value_error, describe, find_entries
from abstain.streams._decide import Progress
from abstain.streams._formats.columns import arrow
from abstain.streams._prefetch import ahead
from abstain.streams._read.batches import Batch, Ids, comparable
from abstain.streams._read.long import ColumnNames
from abstain.streams._read.sources import Form, Paths, Sources, open_as


@dataclass
class Scores:
    """How good partial predictions were, over all rows."""

    n_rows: int = 0
    n_labels: int = 0
    n_abstained: int = 0
    n_wrong: int | None = 0
    """Wrong answers; None for rankings, which answer no label."""
    total_loss: float = 0.0
    """The generalised loss, summed over the rows."""
    expected_loss: float | None = None
    """What it was expected to be, given the probabilities."""
    n_errors: int | None = None
    """How many errors the complete prediction would have made, given the probabilities."""
    n_caught: int | None = None
    """How many of these are on labels left open."""

    @property
    def loss(self) -> float:
        """The average generalised loss of a row."""
        return self.total_loss / self.n_rows if self.n_rows else float("nan")

    @property
    def abstention_rate(self) -> float:
        """The share of the labels that are left open."""
        return self.n_abstained / (self.n_rows * self.n_labels) if self.n_rows else float("nan")

    @property
    def answered_error_rate(self) -> float:
        """The share of the answers that are wrong."""
        n_answered = self.n_rows * self.n_labels - self.n_abstained
        return self.n_wrong / n_answered if n_answered and self.n_wrong is not None else float("nan")

    @property
    def error_capture_rate(self) -> float:
        """The share of the errors of the complete prediction that lie on labels left open."""
        return self.n_caught / self.n_errors if self.n_errors and self.n_caught is not None else float("nan")


def open_beside(
    files: Mapping[str, Paths],
    *,
    form: Form | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    value_column: str | None = None,
    labels: Sequence[str] | None = None,
    format: str | None = None,  # noqa: A002 - as the command line calls it
    kind_of: str | None = None,
) -> dict[str, Sources]:
    """Tables about the same labels, each with its columns in the same order: that of the first one that has them all.

    Long tables list just the labels that occur; if all are long, the labels are those of any. The options are those of
    `open_sources`, and said of all tables; but `label_column` and `value_column` make only those long that have them,
    and if `kind_of` names a table, `form` and `format` are said of that one only.
    """
    columns = ColumnNames(id_column, label_column, value_column)

    def opened(name: str, labels: Sequence[str] | None) -> Sources:
        kind = (form, format) if kind_of in (None, name) else (None, None)
        return open_as(files[name], kind[0], columns, labels, kind[1])

    sides = {name: opened(name, labels) for name in files}
    if columns.are_long and not any(sources.is_long for sources in sides.values()):
        wanted = " and ".join(quoted(column) for column in (label_column, value_column) if column is not None)
        raise InvalidDataset(f"no table has the columns of a long one: there is no column {wanted}")
    whole = next((sources for sources in sides.values() if not sources.is_long), None)
    names = dict.fromkeys(label for sources in sides.values() for label in sources.label_names or ())
    wanted_labels = tuple(names) if whole is None else whole.label_names
    if whole is not None and wanted_labels is None and any(sources.is_long for sources in sides.values()):
        wanted_labels = tuple(map(str, range(whole.n_labels)))  # as unnamed labels are called in long tables
    for name, sources in sides.items():
        if wanted_labels is None or sources.label_names in (None, wanted_labels):
            continue
        unknown = next((label for label in sources.label_names or () if label not in wanted_labels), None)
        if unknown is not None and sources.is_long:
            raise InvalidLabels(
                f"{sources.files[0]}: there is no label {quoted(unknown)} in {(whole or sources).files[0]}"
            )
        if not sources.can_be_reopened:
            raise InvalidLabels(
                f"{sources.files[0]}: the labels must be the same as in the other table, in the same order"
            )
        sides[name] = opened(name, wanted_labels)
    return sides


def evaluate_files(
    prediction: Paths | Sources,
    truth: Paths | Sources,
    loss: LossLike = "hamming",
    penalty: PenaltyLike = 0.1,
    *,
    probabilities: Paths | Sources | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Score the answers in some files against the truth in others, of any size, row by row beside each other.

    Rows are matched in their order, and where both sides have ids these must agree. Long tables may leave out rows that
    have nothing to list, if any of the tables names all rows.

    Parameters
    ----------
    prediction : files, or what `open_beside` has made of them
        1, 0, and −1 or nothing for an open label; for the rank loss, positions.
    truth : files, as the prediction
        1 and 0, with the same labels in the same order.
    loss, penalty
        As for `abstain.metrics.generalized_loss`.
    probabilities : files, as the prediction, optional
        With them it is also told what was to be expected, and how many errors silence has caught.
    """
    loss, penalty = as_loss(loss), as_penalty(penalty)
    every = {"prediction": prediction, "truth": truth, "probabilities": probabilities}
    given = {name: side for name, side in every.items() if side is not None}
    sides = {name: side for name, side in given.items() if isinstance(side, Sources)}
    if len(sides) < len(given):
        sides = open_beside({name: side for name, side in given.items() if not isinstance(side, Sources)})
    answers = sides["prediction"]
    if loss.gives_rankings and answers.is_sparse:
        raise InvalidDataset(f"{answers.files[0]}: rankings in long form are not whole; write them in wide form")
    scores = Scores(n_labels=answers.n_labels, n_wrong=None if loss.gives_rankings else 0)
    if probabilities is not None:
        scores.expected_loss = 0.0
        scores.n_errors = scores.n_caught = None if loss.gives_rankings else 0
    if progress is not None:
        known = [sources.n_rows_estimated for sources in sides.values() if not sources.is_sparse]
        progress.start(known[0] if known else None)
    with ahead(side_by_side(sides)) as parts:
        for tables in parts:
            _score(scores, tables, loss, penalty)
            if progress is not None:
                progress.advance(len(tables["prediction"]))
    return scores


def _score(scores: Scores, tables: dict[str, Batch], loss: Loss, penalty: Penalty) -> None:
    truth = tables["truth"].as_part()
    answers: Prediction
    with _naming(tables["prediction"], (ABSTAIN, 0, 1), "a label is 1, 0 or −1 (left open, as an empty cell is)", loss):
        kind = PartialRanking if loss.gives_rankings else PartialPrediction
        answers = kind(_with_open_labels(tables["prediction"]).as_part())
    with _naming(tables["truth"], (0, 1), "the truth is 0 or 1"):
        scores.total_loss += float(
            np.sum(generalized_loss(truth, answers, loss=loss, penalty=penalty, per_instance=True))
        )
    scores.n_rows += len(answers)
    scores.n_abstained += int(answers.n_abstained.sum())
    if scores.n_wrong is not None:
        scores.n_wrong += int(wrong_answers(truth, answers)[0])
    if "probabilities" not in tables:
        return
    p = tables["probabilities"].table
    assert scores.expected_loss is not None
    try:
        scores.expected_loss += float(
            np.sum(expected_generalized_loss(p, answers, loss=loss, penalty=penalty, per_instance=True))
        )
    except InvalidProbabilities:
        raise bad_value_error(tables["probabilities"]) from None
    if scores.n_errors is not None and scores.n_caught is not None:
        full = decide_table(Probabilities(p), loss, Linear(np.inf))
        caught, errors = caught_errors(truth, answers, full)
        scores.n_errors += int(errors)
        scores.n_caught += int(caught)


def _with_open_labels(batch: Batch) -> Batch:
    """What is missing in a sparse table of answers is open, as it is in a dense one."""
    codes = batch.table.values
    if not sparse.issparse(codes):
        return batch
    values = np.where(np.isnan(codes.data), ABSTAIN, codes.data)
    return batch.with_values(sparse.csr_array((values, codes.indices, codes.indptr), codes.shape))


@contextmanager
def _naming(batch: Batch, codes: tuple[int, ...], expected: str, loss: Loss | None = None) -> Iterator[None]:
    """What is wrong with labels, with the place in the file and with what is written there; `loss` is of answers."""
    try:
        yield
    except InvalidLabels as reason:
        values = batch.table.values.data if sparse.issparse(batch.table.values) else batch.table.values
        known = np.isin(values, codes) | (np.isnan(values) if ABSTAIN in codes else False)
        if loss is not None and loss.gives_rankings:
            hint = "; these are answers, not positions: score them with another loss" if known.all() else ""
            raise InvalidLabels(f"{batch.file}: {reason}{hint}") from reason
        rows, columns, wrong = find_entries(batch.table.values, ~known)
        if len(rows) == 0:
            raise InvalidLabels(f"{batch.file}: {reason}") from reason
        place = describe(batch, int(rows[0]), int(columns[0]), wrong[0])
        raise InvalidLabels(f"{place}; {expected}") from reason


def side_by_side(sides: dict[str, Sources]) -> Generator[dict[str, Batch]]:
    """The same rows of all sides, batch by batch.

    One of them leads: a wide one, or else the one that lists most, the probabilities. Sparse ones may skip rows.
    """
    leaders = [name for name in ("prediction", "truth", "probabilities") if name in sides and not sides[name].is_long]
    if not leaders and "probabilities" not in sides:
        raise InvalidDataset(
            "prediction and truth are both in long form, where rows without any 1 are not listed: give a table that "
            "has all rows, in wide form or as the probabilities"
        )
    leader = leaders[0] if leaders else "probabilities"
    others = {name: sources for name, sources in sides.items() if name != leader}
    with ExitStack() as stack:
        cursors = {
            name: _Cursor(sources, stack.enter_context(ahead(sources.batches()))) for name, sources in others.items()
        }
        for batch in stack.enter_context(closing(sides[leader].batches())):
            done = 0
            while done < len(batch):
                # Wide sides come in batches of their own sizes: take what all of them have.
                room = [len(batch) - done, *(c.n_at_hand() for c in cursors.values() if not c.skips)]
                size = min(room)
                if size == 0:
                    short = next(cursor for cursor in cursors.values() if not cursor.skips and cursor.n_at_hand() == 0)
                    raise InvalidLabels(f"{short.files} has only {short.n_rows} rows; {batch.row(done)} is one more")
                part = _cut(batch, done, size)
                yield {leader: part} | {name: cursor.beside(part) for name, cursor in cursors.items()}
                done += size
        for cursor in cursors.values():
            cursor.require_end(", ".join(sides[leader].files))


def _cut(batch: Batch, first: int, size: int) -> Batch:
    return batch if size == len(batch) else batch.take(np.arange(first, first + size))


class _Cursor:
    """The rows of one side that come next; long tables skip rows in which there is nothing to list."""

    def __init__(self, sources: Sources, batches: Iterator[Batch]) -> None:
        self.sources, self.skips = sources, sources.is_long
        self.n_rows = 0
        self._batches = batches
        self._batch: Batch | None = None
        self._done = 0

    @property
    def files(self) -> str:
        return ", ".join(self.sources.files)

    def n_at_hand(self) -> int:
        """How many rows of the present batch, or of the next one, are left; 0 at the end."""
        while self._batch is None or self._done == len(self._batch):
            self._batch, self._done = next(self._batches, None), 0
            if self._batch is None:
                return 0
        return len(self._batch) - self._done

    def beside(self, leader: Batch) -> Batch:
        """The rows that belong to these rows of the leader."""
        return self._listed(leader) if self.skips else self._next(leader)

    def _next(self, leader: Batch) -> Batch:
        assert self._batch is not None
        part = _cut(self._batch, self._done, len(leader))
        self._done += len(leader)
        self.n_rows += len(leader)
        _require_same_ids(leader, part)
        return part

    def _listed(self, leader: Batch) -> Batch:
        """A row for each of the leader's, empty if it is not listed."""
        compute = arrow("pyarrow.compute")
        names = (leader.row_numbers() if leader.ids is None else leader.ids).array
        values, at, listed = [], [], []
        while self.n_at_hand():
            assert self._batch is not None
            assert self._batch.ids is not None
            coming, known = comparable(self._batch.ids.array.slice(self._done), names)
            place = compute.index_in(coming, value_set=known)
            found = int(np.argmin(np.append(place.is_valid().to_numpy(zero_copy_only=False), False)))
            values.append(self._batch.table.values[self._done : self._done + found])
            at.append(place.slice(0, found).to_numpy(zero_copy_only=False))
            listed.append((self._batch, self._done))
            self._done += found
            self.n_rows += found
            if found < len(coming):
                break
        rows = np.concatenate([np.empty(0, np.intp), *at]).astype(np.intp)
        if np.any(np.diff(rows) <= 0):
            i = int(np.argmax(np.diff(rows) <= 0)) + 1
            raise InvalidLabels(
                f"{self.files}: id {quoted(names[int(rows[i])].as_py())} comes in another order than in {leader.file}"
            )
        matrix = _spread(values, rows, (len(leader), self.sources.n_labels))

        def quote(i: int, j: int) -> tuple[int, str]:
            k = next(k for k, some in enumerate(at) if i in some)
            batch, first = listed[k]
            assert batch.quote is not None
            return batch.quote(first + int(np.flatnonzero(at[k] == i)[0]), j)

        is_text = any(batch.quote is not None for batch, _ in listed)
        table = Table(matrix, self.sources.label_names, Ids(names))
        return Batch(table, self.files, leader.first_row, quote=quote if is_text else None)

    def require_end(self, leaders: str) -> None:
        """Raise `InvalidLabels` if there are rows that the leader does not have."""
        if self.n_at_hand():
            assert self._batch is not None
            raise InvalidLabels(f"{self._batch.row(self._done)} is not in {leaders}, or comes in another order there")


def _spread(values: Sequence[Any], rows: NDArray[np.intp], shape: tuple[int, int]) -> sparse.csr_array:
    """Sparse rows at their places among empty ones."""
    stored = sparse.vstack([sparse.csr_array((0, shape[1])), *values], format="csr")
    lengths = np.zeros(shape[0], np.int64)
    lengths[rows] = np.diff(stored.indptr)
    return sparse.csr_array((stored.data, stored.indices, np.concatenate([[0], np.cumsum(lengths)])), shape)


def _require_same_ids(ours: Batch, theirs: Batch) -> None:
    if ours.ids is None or theirs.ids is None:
        return
    differ = ours.ids.differ(theirs.ids)
    if differ.any():
        i = int(np.argmax(differ))
        raise InvalidLabels(
            f"{theirs.row(i)} stands beside {ours.row(i)}: the rows must be the same, in the same order"
        )
