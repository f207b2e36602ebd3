"""What is to be decided in files, and how they are to be read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Protocol

from abstain._core.belief import read_belief
from abstain._core.decision import decide_table
from abstain._core.intervals import IntervalRule, Intervals
from abstain._core.losses import Loss, LossLike, as_loss
from abstain._core.penalties import Penalty, PenaltyLike, as_penalty
from abstain._core.prediction import Prediction
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Table
from abstain._utils.errors import InvalidOutput, InvalidParameter, InvalidProbabilities
from abstain.streams._bad_values import OnError, bad_value_error, decide_despite_bad_values, without_bad_rows
from abstain.streams._formats.base import ArrayFormat, Format
from abstain.streams._intervals import IntervalBatch, open_intervals
from abstain.streams._read.batches import Batch
from abstain.streams._read.sources import Form, Kind, Paths, Sources, open_sources
from abstain.streams._resume import fingerprint
from abstain.streams._summary import Summary
from abstain.streams._write.output_layout import ANSWERS, POSITIONS, OutputLayout

Decider = Callable[[Any], Prediction]
"""Decides on a block of rows: a `Table`, or `Intervals`."""


class Progress(Protocol):
    """Is told how far the work on files is."""

    def start(self, n_rows: int | None) -> None:
        """Begin with about so many rows; None if the number is not known."""

    def advance(self, n_rows: int) -> None:
        """Count so many more rows as done."""


@dataclass(frozen=True, init=False)
class Job:
    """What is to be decided, and how files are to be read: the same for every file, and easily sent elsewhere.

    Parameters
    ----------
    loss : str or Loss
        As for `abstain.decide`.
    penalty : float, str, Penalty or callable
        As for `abstain.decide`.
    form, id_column, label_column, value_column, labels, kind
        As for `open_sources`.
    on_error : {"fail", "skip", "abstain"}, default="fail"
        What to do where something is no probability: raise an error that names the place, leave the row out (rows
        without ids are then numbered in the output), or abstain from the label and decide the others as is best given
        that.
    rule : {"minimax", "skeptical", "hurwicz"}, optional
        If it is given, the files hold intervals, as for `open_intervals`; then `on_error` is "fail".
    optimism : float, optional
        For the rule "hurwicz".

    Examples
    --------
    >>> from abstain.streams import Job
    >>> Job("f1", 0.05, on_error="skip").loss
    FMeasure(beta=1, zero_division=1)
    """

    loss: Loss
    penalty: Penalty
    form: Form | None
    id_column: str | None
    label_column: str | None
    value_column: str | None
    labels: tuple[str, ...] | None
    kind: Kind
    on_error: OnError
    rule: IntervalRule | None
    optimism: float | None

    def __init__(
        self,
        loss: LossLike,
        penalty: PenaltyLike,
        *,
        form: Form | None = None,
        id_column: str | None = None,
        label_column: str | None = None,
        value_column: str | None = None,
        labels: Sequence[str] | None = None,
        kind: Kind = "probability",
        on_error: OnError = "fail",
        rule: IntervalRule | None = None,
        optimism: float | None = None,
    ) -> None:
        if rule is not None and on_error != "fail":
            raise InvalidParameter("on_error: intervals with bad values cannot be left out or open; expected 'fail'")
        given = {
            "loss": as_loss(loss),
            "penalty": as_penalty(penalty),
            "form": form,
            "id_column": id_column,
            "label_column": label_column,
            "value_column": value_column,
            "labels": None if labels is None else tuple(labels),
            "kind": kind,
            "on_error": on_error,
            "rule": rule,
            "optimism": optimism,
        }
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def open(
        self,
        inputs: Paths,
        *,
        format: str | None = None,  # noqa: A002 - as the command line calls it
        row_groups: Sequence[int] | None = None,
    ) -> Sources:
        """Open files, to be read as the job says.

        Parameters
        ----------
        inputs, format, row_groups
            As for `open_sources`.

        Returns
        -------
        Sources
        """
        read_as: dict[str, Any] = {
            "form": self.form,
            "id_column": self.id_column,
            "label_column": self.label_column,
            "value_column": self.value_column,
            "labels": self.labels,
            "kind": self.kind,
            "format": format,
            "row_groups": row_groups,
        }
        if self.rule is None:
            return open_sources(inputs, **read_as)
        return open_intervals(inputs, rule=self.rule, optimism=self.optimism, **read_as)

    def output_layout(self, sources: Sources) -> OutputLayout:
        """Return the columns of the output for some files."""
        values = POSITIONS if self.loss.gives_rankings else ANSWERS
        return OutputLayout.of(sources, values, numbered=self.on_error == "skip")

    def require_output_format(self, output_format: Format, sources: Sources) -> None:
        """Raise `InvalidOutput` if rows that are skipped would not be missed in an output of this format."""
        is_long = sources.is_sparse and not isinstance(output_format, ArrayFormat)
        if self.on_error == "skip" and (is_long or not output_format.names_rows):
            why = "what a long table does not list is 0"
            if not output_format.names_rows:
                why = f"an {output_format.name} file does not name its rows"
            raise InvalidOutput(f"bad rows cannot be skipped: {why}; write npz, or leave bad labels open")

    def decide(self, table: Table | Intervals) -> Prediction:
        """Decide on a block of rows.

        Parameters
        ----------
        table : Table or Intervals of shape (n_instances, n_labels)
            Probabilities.

        Returns
        -------
        PartialPrediction or PartialRanking
        """
        return decide_table(read_belief(table), self.loss, self.penalty)

    def decide_batch(self, batch: Batch, decider: Decider | None = None) -> tuple[Batch, Prediction, Summary]:
        """Return the rows of a batch that are decided, the decisions, and their summary."""
        decide = self.decide if decider is None else decider
        if isinstance(batch, IntervalBatch):
            prediction = decide(batch.probabilities)
            return batch, prediction, Summary.of(prediction)
        if batch.first_row == batch.rows_before == 0:
            Probabilities(batch.table).warn_if_softmax()
        try:
            prediction = decide(batch.table)
            return batch, prediction, Summary.of(prediction)
        except InvalidProbabilities:
            if self.on_error == "fail":
                raise bad_value_error(batch) from None
        if self.on_error == "abstain":
            prediction, n_repaired = decide_despite_bad_values(batch, self.loss, self.penalty)
            return batch, prediction, replace(Summary.of(prediction), n_repaired=n_repaired)
        good = without_bad_rows(batch)
        prediction = decide(good.table)
        return good, prediction, replace(Summary.of(prediction), n_skipped=len(batch) - len(good))

    def fingerprint(self, sources: Sources) -> str:
        """Return a text that identifies this job on some files."""
        columns = self.id_column, self.label_column, self.value_column
        read_as = (
            self.form,
            columns,
            sources.label_names,
            self.kind,
            self.on_error,
            self.rule,
            self.optimism,
            version("abstain"),
        )
        return fingerprint(self.loss, self.penalty, sources.n_labels, *read_as)
