"""A decision rule that keeps its promise."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.decision import decide_table
from abstain._core.losses import Loss
from abstain._core.penalties import Linear, PerLabel
from abstain._core.prediction import ABSTAIN, PartialPrediction
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Axes
from abstain._utils.errors import InvalidProbabilities
from abstain._utils.html import HighlightedCell, table
from abstain.guarantee._risks import RISKS

SHOWN = 20  # labels in the table of a notebook


@dataclass(frozen=True, eq=False, repr=False)
class Rule:
    """Decide for the cost of an abstention that was found on the calibration sample; made by `control`.

    With ``per="label"`` cost, satisfied, estimate, abstention and p_value are arrays, with a value for each label.
    """

    cost: Any
    """What an abstention costs: the greatest cost that is certified. nan if none is, and nothing is answered."""
    satisfied: Any
    """Whether there is such a cost."""
    estimate: Any
    """The risk (or score) of the calibration sample at this cost; nan if there is none."""
    abstention: Any
    """The share of the calibration sample's labels that are left open."""
    p_value: Any
    """How surprising the calibration sample would be if the target were missed at this cost; nan without tests."""
    risk: str
    target: float
    confidence: float | None
    loss: Loss
    per: str | None
    n_labels: int
    label_names: tuple[Hashable, ...] | None

    def decide(self, probabilities: Any) -> PartialPrediction:
        """The decisions for new probabilities, of the same labels; full abstention where nothing is certified."""
        table = Probabilities(probabilities)
        if table.n_labels != self.n_labels:
            raise InvalidProbabilities(
                f"probabilities: {table.n_labels} labels; the calibration sample had {self.n_labels}"
            )
        Axes(self.label_names).require_labels(table.axes.label_names, "probabilities")
        # What is not certified has a price of 0, at which labels that are said to have no risk are still answered.
        price = np.where(self.satisfied, self.cost, 0.0)
        prediction = decide_table(table, self.loss, PerLabel(price) if price.ndim else Linear(float(price)))
        assert isinstance(prediction, PartialPrediction)
        return _leave_open(prediction, ~np.broadcast_to(self.satisfied, self.n_labels))

    def __repr__(self) -> str:
        promise = self._promise()
        if not np.any(self.satisfied):
            side = "above" if RISKS[self.risk].is_score else "below"
            return f"{promise}\nnot satisfied: nothing can be shown to stay {side} it, and nothing is answered"
        found = f"{np.mean(self.abstention):.1%} of the calibration sample left open"
        if self.per == "label":
            count = f"{np.sum(self.satisfied)} of {self.n_labels} labels"
            others = "" if np.all(self.satisfied) else ", the others left open"
            return f"{promise}\n{count} satisfied{others}: {found}"
        return f"{promise}\ncost {self.cost:.4g}: {found}, {self.risk} {self.estimate:.4g}"

    def _promise(self) -> str:
        sign = "≥" if RISKS[self.risk].is_score else "≤"
        sure = "in expectation" if self.confidence is None else f"with {self.confidence:g} confidence"
        each = {None: "", "instance": " per instance", "label": " for each label"}[self.per]
        return f"Rule for {self.loss!r}: {self.risk}{each} {sign} {self.target:g} {sure}"

    def _repr_html_(self) -> str:
        columns = (self.satisfied, self.cost, self.estimate, self.abstention)
        values = zip(*(np.atleast_1d(column)[:SHOWN] for column in columns), strict=True)
        names = Axes(self.label_names).names(self.n_labels) if self.per == "label" else ["all labels"]
        rows: list[list[str | HighlightedCell]] = []
        for name, (satisfied, cost, estimate, abstention) in zip(names, values, strict=False):
            if satisfied:
                rows.append([str(name), f"{cost:.4g}", f"{estimate:.4g}", f"{abstention:.1%}"])
            else:
                rows.append([str(name), HighlightedCell("left open", "nothing can be shown"), "", f"{abstention:.1%}"])
        head = ["label", "cost", f"{self.risk} of the calibration sample", "left open of it"]
        more = f"… {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        return table(self._promise(), head, rows, more)


def _leave_open(prediction: PartialPrediction, closed: NDArray[np.bool_]) -> PartialPrediction:
    """The same prediction without any answer for some labels."""
    if not closed.any():
        return prediction
    codes, columns = prediction.labels, np.flatnonzero(closed)
    if sparse.issparse(codes):
        n = codes.shape[0]
        places = np.tile(columns, n), np.arange(n + 1) * len(columns)
        kept = codes @ sparse.diags_array((~closed).astype(np.int8), dtype=np.int8)
        codes = sparse.csr_array(kept) + sparse.csr_array(
            (np.full(len(places[0]), ABSTAIN, np.int8), *places), codes.shape
        )
        codes.eliminate_zeros()
    else:
        codes[:, columns] = ABSTAIN
    expected = np.zeros(len(prediction)) if closed.all() else prediction.expected_loss
    return PartialPrediction.from_codes(codes, prediction.axes, expected)
