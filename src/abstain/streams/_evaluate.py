"""Partial predictions in files, scored against the truth in other files."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from abstain._core.decision import decide_table
from abstain._core.losses import Loss, LossLike, as_loss
from abstain._core.penalties import Linear, Penalty, PenaltyLike, as_penalty
from abstain._core.prediction import ABSTAIN
from abstain._core.probabilities import Probabilities
from abstain._utils.errors import InvalidDataset, InvalidLabels, InvalidProbabilities
from abstain.metrics import caught_errors, expected_generalized_loss, generalized_loss, wrong_answers
from abstain.streams._alignment import aligned_batches, open_aligned
from abstain.streams._bad_values import bad_value_error, describe_cell, find_entries
from abstain.streams._job import Progress
from abstain.streams._prefetch import prefetch
from abstain.streams._read.batches import Batch
from abstain.streams._read.sources import Paths, Sources


@dataclass
class Scores:
    """Scores of partial predictions, over all rows."""

    n_rows: int = 0
    n_labels: int = 0
    n_abstained: int = 0
    n_wrong: int | None = 0
    """Wrong answers; None for rankings, which answer no label."""
    total_loss: float = 0.0
    """The generalised loss, summed over the rows."""
    total_expected_loss: float | None = None
    """The expected generalised loss given the probabilities, summed over the rows; None without probabilities."""
    n_errors: int | None = None
    """Errors that the complete prediction would have made; None without probabilities."""
    n_caught: int | None = None
    """Errors of the complete prediction where the partial one abstained; None without probabilities."""

    @property
    def loss(self) -> float:
        """The average generalised loss of a row."""
        return self.total_loss / self.n_rows if self.n_rows else float("nan")

    @property
    def abstention_rate(self) -> float:
        """The number of abstentions, divided by the number of rows times the number of labels."""
        return self.n_abstained / (self.n_rows * self.n_labels) if self.n_rows else float("nan")

    @property
    def answered_error_rate(self) -> float:
        """The share of the answers that are wrong."""
        n_answered = self.n_rows * self.n_labels - self.n_abstained
        return self.n_wrong / n_answered if n_answered and self.n_wrong is not None else float("nan")

    @property
    def error_capture_rate(self) -> float:
        """The share of the errors of the complete prediction where the partial one abstained."""
        return self.n_caught / self.n_errors if self.n_errors and self.n_caught is not None else float("nan")


def evaluate_files(
    y_true: Paths | Sources,
    prediction: Paths | Sources,
    *,
    loss: LossLike = "hamming",
    penalty: PenaltyLike = 0.1,
    probabilities: Paths | Sources | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Score the answers in some files against the truth in others, of any size, row by row.

    Rows are matched in their order, and where both sides have ids these must agree. Long tables may omit rows that have
    nothing to list, if any of the tables names all rows.

    Parameters
    ----------
    y_true : path, sequence of paths, or Sources
        Files with 1 and 0, as for `open_sources`; or one of the tables that `open_aligned` returns.
    prediction : path, sequence of paths, or Sources
        Files with the same labels: 1, 0, and −1 or nothing for an abstention; for the rank loss, positions.
    loss : str or Loss, default="hamming"
        As for `abstain.metrics.generalized_loss`.
    penalty : float, str, Penalty or callable, default=0.1
        As for `abstain.metrics.generalized_loss`.
    probabilities : path, sequence of paths, or Sources, optional
        Files with the probabilities that were decided on, for the expected loss and the errors that were caught.
    progress : object with ``start`` and ``advance``, optional
        Is told how many rows there are, about, and how many more are done.

    Returns
    -------
    Scores
    """
    loss, penalty = as_loss(loss), as_penalty(penalty)
    inputs = {"prediction": prediction, "truth": y_true, "probabilities": probabilities}
    given = {name: files for name, files in inputs.items() if files is not None}
    tables = {name: files for name, files in given.items() if isinstance(files, Sources)}
    if len(tables) < len(given):
        tables = open_aligned({name: files for name, files in given.items() if not isinstance(files, Sources)})
    answers = tables["prediction"]
    if loss.gives_rankings and answers.is_sparse:
        raise InvalidDataset(f"{answers.files[0]}: rankings in long form are not whole; write them in wide form")
    scores = Scores(n_labels=answers.n_labels, n_wrong=None if loss.gives_rankings else 0)
    if probabilities is not None:
        scores.total_expected_loss = 0.0
        scores.n_errors = scores.n_caught = None if loss.gives_rankings else 0
    if progress is not None:
        known = [sources.n_rows_estimated for sources in tables.values() if not sources.is_sparse]
        progress.start(known[0] if known else None)
    with prefetch(aligned_batches(tables)) as aligned:
        for batches in aligned:
            _score(scores, batches, loss, penalty)
            if progress is not None:
                progress.advance(len(batches["prediction"]))
    return scores


def _score(scores: Scores, batches: dict[str, Batch], loss: Loss, penalty: Penalty) -> None:
    truth = batches["truth"].as_row_slice()
    with _naming_place(
        batches["prediction"], (ABSTAIN, 0, 1), "a label is 1, 0 or −1 (left open, as an empty cell is)", loss
    ):
        answers = loss.prediction_type(_with_abstentions(batches["prediction"]).as_row_slice())
    with _naming_place(batches["truth"], (0, 1), "the truth is 0 or 1"):
        scores.total_loss += float(
            np.sum(generalized_loss(truth, answers, loss=loss, penalty=penalty, per_instance=True))
        )
    scores.n_rows += len(answers)
    scores.n_abstained += int(answers.n_abstained.sum())
    if scores.n_wrong is not None:
        scores.n_wrong += int(wrong_answers(truth, answers)[0])
    if "probabilities" not in batches:
        return
    p = batches["probabilities"].table
    assert scores.total_expected_loss is not None
    try:
        scores.total_expected_loss += float(
            np.sum(expected_generalized_loss(p, answers, loss=loss, penalty=penalty, per_instance=True))
        )
    except InvalidProbabilities:
        raise bad_value_error(batches["probabilities"]) from None
    if scores.n_errors is not None and scores.n_caught is not None:
        full = decide_table(Probabilities(p), loss, Linear(np.inf))
        caught, errors = caught_errors(truth, answers, full)
        scores.n_errors += int(errors)
        scores.n_caught += int(caught)


def _with_abstentions(batch: Batch) -> Batch:
    """Return answers in which a missing value of a sparse table is an abstention, as it is in a dense one."""
    codes = batch.table.values
    if not sparse.issparse(codes):
        return batch
    values = np.where(np.isnan(codes.data), ABSTAIN, codes.data)
    return batch.with_values(sparse.csr_array((values, codes.indices, codes.indptr), codes.shape))


@contextmanager
def _naming_place(batch: Batch, codes: tuple[int, ...], expected: str, loss: Loss | None = None) -> Iterator[None]:
    """Name the place in the file, and what is written there, in errors about labels; answers come with their loss."""
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
        place = describe_cell(batch, int(rows[0]), int(columns[0]), wrong[0])
        raise InvalidLabels(f"{place}; {expected}") from reason
