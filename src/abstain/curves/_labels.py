"""A table of diagnostics label by label: probabilities, abstention, calibration and errors."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.decision import decide_table
from abstain._core.losses import LossLike, as_loss
from abstain._core.penalties import PenaltyLike, as_penalty
from abstain._core.prediction import PartialPrediction
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Matrix
from abstain._core.truth import differ, read_truth, require_same_table
from abstain._utils.errors import InvalidProbabilities
from abstain._utils.extras import optional
from abstain._utils.html import table
from abstain._utils.types import Floats
from abstain._utils.wording import plural
from abstain.calibration._diagnostics import brier_score_loss, calibration_error

MAX_SHOWN_LABELS = 20
COLUMNS = (
    "mean_probability",
    "abstention_rate",
    "prevalence",
    "calibration_error",
    "brier_score",
    "error_rate",
    "answered_error_rate",
    "errors",
    "errors_caught",
)


@dataclass(frozen=True, eq=False, repr=False)
class LabelTable:
    """One number per label in each column; columns that need the truth, or answers instead of rankings, may be None.

    Attributes
    ----------
    label_names : tuple of length n_labels
        The names of the labels, or 0 … n_labels − 1.
    n_instances : int
    library : str
        The library of the data frames that the probabilities came in, and that `to_frame` gives.
    mean_probability : float array of shape (n_labels,)
    abstention_rate : float array of shape (n_labels,)
        How often the label is abstained on.
    prevalence : float array of shape (n_labels,), or None
        How often it is relevant.
    calibration_error : float array of shape (n_labels,), or None
        As `abstain.calibration.calibration_error`.
    brier_score : float array of shape (n_labels,), or None
        Mean of (y − p)².
    error_rate : float array of shape (n_labels,), or None
        How often the complete prediction is wrong.
    answered_error_rate : float array of shape (n_labels,), or None
        How often the answers are wrong; nan where there is none.
    errors : int array of shape (n_labels,), or None
        How many errors the complete prediction makes.
    errors_caught : int array of shape (n_labels,), or None
        How many of these errors are on abstained labels.
    """

    label_names: tuple[Hashable, ...]
    n_instances: int
    library: str
    mean_probability: Floats
    abstention_rate: Floats
    prevalence: Floats | None = None
    calibration_error: Floats | None = None
    brier_score: Floats | None = None
    error_rate: Floats | None = None
    answered_error_rate: Floats | None = None
    errors: NDArray[np.int64] | None = None
    errors_caught: NDArray[np.int64] | None = None

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns that are known, by name."""
        return {name: values for name in COLUMNS if (values := getattr(self, name)) is not None}

    def to_frame(self) -> Any:
        """Return a data frame with a row per label, its name in the index (polars: in the column "label")."""
        if self.library == "polars":
            import polars as pl

            return pl.DataFrame({"label": [str(name) for name in self.label_names], **self.columns})
        pd = optional("pandas", "to_frame needs pandas")
        return pd.DataFrame(self.columns, index=pd.Index(self.label_names, name="label", tupleize_cols=False))

    def __repr__(self) -> str:
        m = len(self.label_names)
        columns = [["", "label", *map(str, self.label_names[:MAX_SHOWN_LABELS])]]
        for name, values in self.columns.items():
            above, _, title = name.partition("_") if "_" in name else ("", "", name)
            columns.append([above, title.replace("_", " "), *_format_numbers(values[:MAX_SHOWN_LABELS])])
        widths = [max(len(text) for text in column) for column in columns]
        padded = [[text.rjust(width) for text in column] for column, width in zip(columns, widths, strict=True)]
        lines = ["  ".join(line) for line in zip(*padded, strict=True)]
        more = [] if m <= MAX_SHOWN_LABELS else [f"… {m - MAX_SHOWN_LABELS} more"]
        return "\n".join([self._summary(), *lines, *more])

    def _summary(self) -> str:
        return f"LabelTable of {plural(len(self.label_names), 'label')}, {plural(self.n_instances, 'instance')}"

    def _repr_html_(self) -> str:
        numbers = [_format_numbers(values[:MAX_SHOWN_LABELS]) for values in self.columns.values()]
        rows = list(zip(map(str, self.label_names[:MAX_SHOWN_LABELS]), *numbers, strict=True))
        m = len(self.label_names)
        more = f"… {m - MAX_SHOWN_LABELS} more" if m > MAX_SHOWN_LABELS else ""
        return table(self._summary(), ["label", *(name.replace("_", " ") for name in self.columns)], rows, more)


def label_table(
    probabilities: Any, *, y_true: Any = None, loss: LossLike = "hamming", penalty: PenaltyLike = 0.1
) -> LabelTable:
    """For each label j: mean p_j, share abstained, and with the truth prevalence, calibration and errors.

    Parameters
    ----------
    probabilities : array-like of shape (n_instances, n_labels)
        P(label is relevant), as for `abstain.decide`.
    y_true : array-like of shape (n_instances, n_labels), optional
        The truth, 0 or 1.
    loss : str or Loss, default="hamming"
        What wrong answers cost, as for `abstain.decide`. With the rank loss there are no errors of single labels: these
        columns are None.
    penalty : number, str or Penalty, default=0.1
        What abstaining costs, as for `abstain.decide`.

    Returns
    -------
    table : LabelTable

    Examples
    --------
    >>> import abstain
    >>> from abstain.curves import label_table
    >>> p = abstain.Table([[0.9, 0.8], [0.4, 0.1], [0.7, 0.3]], ["sky", "sea"])
    >>> table = label_table(p, y_true=[[1, 0], [1, 0], [1, 0]], penalty=0.25)
    >>> table.abstention_rate.round(2), table.answered_error_rate
    (array([0.67, 0.33]), array([0. , 0.5]))
    >>> table.errors, table.errors_caught
    (array([1, 1]), array([1, 0]))
    """
    table, chosen = Probabilities(probabilities), as_loss(loss)
    n, m = table.matrix.shape
    if n == 0:
        raise InvalidProbabilities("probabilities: there are no rows; a table of labels needs at least one instance")
    partial = decide_table(table, chosen, as_penalty(penalty))
    result = LabelTable(
        label_names=tuple(table.axes.names(m)),
        n_instances=n,
        library=table.axes.library,
        mean_probability=_per_label(table.matrix) / n,
        abstention_rate=_per_label(partial.abstained) / n,
    )
    if y_true is None:
        return result
    truth, _, axes = read_truth(
        y_true, refusal="a table of labels counts all instances: leave out the rows with unknown labels"
    )
    require_same_table(axes, truth, partial, "y_true")
    result = replace(
        result,
        prevalence=_per_label(truth) / n,
        calibration_error=calibration_error(truth, table.matrix, average=None),
        brier_score=brier_score_loss(truth, table.matrix, average=None),
    )
    complete = decide_table(table, chosen, as_penalty("none"))
    if isinstance(partial, PartialPrediction) and isinstance(complete, PartialPrediction):
        return _with_errors(result, truth, partial, complete)
    return result  # rankings answer no label


def _with_errors(
    table: LabelTable, truth: Matrix, partial: PartialPrediction, complete: PartialPrediction
) -> LabelTable:
    n_abstained, wrong = _per_label(partial.abstained), differ(truth, complete.labels)
    n_answered = len(partial) - n_abstained
    # An abstained label differs from the truth, whatever that is: these are not errors.
    n_wrong = _per_label(differ(truth, partial.labels)) - n_abstained
    caught = wrong.multiply(partial.abstained) if sparse.issparse(wrong) else wrong & partial.abstained
    undefined = np.full(len(n_abstained), np.nan)
    return replace(
        table,
        error_rate=_per_label(wrong) / len(partial),
        answered_error_rate=np.divide(n_wrong, n_answered, out=undefined, where=n_answered > 0),
        errors=_per_label(wrong),
        errors_caught=_per_label(caught),
    )


def _format_numbers(values: NDArray[Any]) -> list[str]:
    """Return counts as they are, other numbers with three digits."""
    return [str(value) if values.dtype.kind in "iu" else f"{value:.3f}" for value in values]


def _per_label(matrix: Matrix) -> NDArray[Any]:
    """Return the sum of each column; sums of counts are integers."""
    wide = np.float64 if matrix.dtype.kind == "f" else np.int64
    return np.asarray(matrix.sum(axis=0, dtype=wide)).ravel()
