"""Label by label: how sure the probabilities are, how right, and how often a label is left open."""

from collections.abc import Hashable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.decision import decide
from abstain._core.losses import LossLike, as_loss
from abstain._core.penalties import PenaltyLike
from abstain._core.prediction import PartialPrediction, PartialRanking
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Matrix
from abstain._core.truth import differ, read_truth, require_same_table
from abstain._utils.errors import InvalidProbabilities
from abstain._utils.extras import optional
from abstain._utils.html import table
from abstain._utils.types import Floats
from abstain._utils.wording import plural
from abstain.calibration._diagnostics import brier_score_loss, calibration_error

SHOWN = 20


@dataclass(frozen=True, eq=False, repr=False)
class LabelTable:
    """One number per label in each column; what needs the truth, or answers instead of rankings, may be None."""

    label_names: tuple[Hashable, ...]
    """What the labels are called, or 0 … m − 1."""
    n_instances: int
    library: str
    """Whose frames the probabilities came in, and `to_frame` gives."""
    mean_probability: Floats
    abstention_rate: Floats
    """How often the label is left open."""
    prevalence: Floats | None = None
    """How often it is relevant."""
    calibration_error: Floats | None = None
    """As `abstain.calibration.calibration_error`."""
    brier_score: Floats | None = None
    """Mean of (y − p)²."""
    error_rate: Floats | None = None
    """How often the complete prediction is wrong."""
    answered_error_rate: Floats | None = None
    """How often the answers are; nan where there is none."""
    errors: NDArray[np.int64] | None = None
    """How many errors the complete prediction makes."""
    errors_caught: NDArray[np.int64] | None = None
    """How many of them are on labels left open."""

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns that are known, by name."""
        named = {each.name: getattr(self, each.name) for each in fields(self)[3:]}
        return {name: values for name, values in named.items() if values is not None}

    def to_frame(self) -> Any:
        """A data frame with a row per label, its name in the index (polars: in the column "label")."""
        if self.library == "polars":
            import polars as pl

            return pl.DataFrame({"label": [str(name) for name in self.label_names], **self.columns})
        pd = optional("pandas", "to_frame needs pandas")
        return pd.DataFrame(self.columns, index=pd.Index(self.label_names, name="label", tupleize_cols=False))

    def __repr__(self) -> str:
        m = len(self.label_names)
        columns = [["", "label", *map(str, self.label_names[:SHOWN])]]
        for name, values in self.columns.items():
            above, _, title = name.partition("_") if "_" in name else ("", "", name)
            columns.append([above, title.replace("_", " "), *_written(values[:SHOWN])])
        widths = [max(len(text) for text in column) for column in columns]
        padded = [[text.rjust(width) for text in column] for column, width in zip(columns, widths, strict=True)]
        lines = ["  ".join(line) for line in zip(*padded, strict=True)]
        more = [] if m <= SHOWN else [f"… {m - SHOWN} more"]
        return "\n".join([self._summary(), *lines, *more])

    def _summary(self) -> str:
        return f"LabelTable of {plural(len(self.label_names), 'label')}, {plural(self.n_instances, 'instance')}"

    def _repr_html_(self) -> str:
        numbers = [_written(values[:SHOWN]) for values in self.columns.values()]
        rows = list(zip(map(str, self.label_names[:SHOWN]), *numbers, strict=True))
        m = len(self.label_names)
        more = f"… {m - SHOWN} more" if m > SHOWN else ""
        return table(self._summary(), ["label", *(name.replace("_", " ") for name in self.columns)], rows, more)


def label_table(
    probabilities: Any, *, y_true: Any = None, loss: LossLike = "hamming", penalty: PenaltyLike = 0.1
) -> LabelTable:
    """For each label j: mean p_j, share abstained, and with the truth prevalence, calibration and errors.

    Parameters
    ----------
    probabilities, loss, penalty
        As for `abstain.decide`. For the rank loss there are no errors of single labels: these columns are None.
    y_true : n × m table of 0 and 1, optional

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
    partial = decide(probabilities, chosen, penalty)
    known: dict[str, Any] = {}
    if y_true is not None:
        truth, axes = read_truth(y_true)
        require_same_table(axes, truth, partial, "y_true")
        known = {
            "prevalence": _per_label(truth) / n,
            "calibration_error": calibration_error(truth, table.matrix, average=None),
            "brier_score": brier_score_loss(truth, table.matrix, average=None),
        }
        full = decide(probabilities, chosen, penalty="none")
        if not isinstance(partial, PartialRanking) and not isinstance(full, PartialRanking):
            known |= _errors(truth, partial, full)
    names = tuple(table.axes.names(m))
    mean, open_rate = _per_label(table.matrix) / n, _per_label(partial.abstained) / n
    return LabelTable(names, n, table.axes.library, mean, open_rate, **known)


def _errors(truth: Matrix, partial: PartialPrediction, full: PartialPrediction) -> dict[str, NDArray[Any]]:
    n_open, wrong = _per_label(partial.abstained), differ(truth, full.labels)
    n_answered = len(partial) - n_open
    # An abstained label differs from the truth, whatever that is: these are not errors.
    n_wrong = _per_label(differ(truth, partial.labels)) - n_open
    caught = wrong.multiply(partial.abstained) if sparse.issparse(wrong) else wrong & partial.abstained
    return {
        "error_rate": _per_label(wrong) / len(partial),
        "answered_error_rate": np.divide(n_wrong, n_answered, out=np.full(len(n_open), np.nan), where=n_answered > 0),
        "errors": _per_label(wrong),
        "errors_caught": _per_label(caught),
    }


def _written(values: NDArray[Any]) -> list[str]:
    """Counts as they are, other numbers with three digits."""
    return [str(value) if values.dtype.kind in "iu" else f"{value:.3f}" for value in values]


def _per_label(matrix: Matrix) -> NDArray[Any]:
    """The sum of each column; counts are whole numbers."""
    wide = np.float64 if matrix.dtype.kind == "f" else np.int64
    return np.asarray(matrix.sum(axis=0, dtype=wide)).ravel()
