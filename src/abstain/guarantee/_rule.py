"""The decision rule that `control` returns."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

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
from abstain._utils.types import Floats
from abstain.guarantee._request import Confidence
from abstain.guarantee._risks import RISKS

SHOWN_LABELS = 20  # in the table of a notebook

if TYPE_CHECKING:  # type checkers know defaults: an annotation without a kind means one rule for all labels
    from typing_extensions import TypeVar as TypeVarWithDefault

    NumberT = TypeVarWithDefault("NumberT", float, Floats, default=float)
else:
    NumberT = TypeVar("NumberT", float, Floats)
"""A number, or one for each label."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Rule(Generic[NumberT]):
    """Decisions at the cost of an abstention that was certified on a calibration sample. Made by `control`.

    With ``per="label"`` cost, satisfied, estimate, abstention and p_value are arrays of shape (n_labels,).

    Attributes
    ----------
    cost : float or ndarray
        The cost of an abstention: the greatest one that is certified. nan if none is, and nothing is answered.
    satisfied : bool or ndarray
        Whether there is such a cost.
    estimate : float or ndarray
        The risk (or score) of the calibration sample at this cost; nan if there is none.
    abstention : float or ndarray
        The share of the calibration sample's labels that are abstained on.
    p_value : float or ndarray
        How surprising the calibration sample would be if the target were missed at this cost; nan without tests.
    risk, target, confidence, loss, per
        As given to `control`.
    n_labels : int
    label_names : tuple or None
        The names of the labels, if they are known: new data must have the same ones in the same order.
    """

    cost: NumberT
    satisfied: bool | NDArray[np.bool_]
    estimate: NumberT
    abstention: NumberT
    p_value: NumberT
    risk: str
    target: float
    confidence: Confidence
    loss: Loss
    per: str
    n_labels: int
    label_names: tuple[Hashable, ...] | None

    def decide(self, probabilities: Any) -> PartialPrediction:
        """Decide new instances; labels for which nothing is certified are abstained on.

        Parameters
        ----------
        probabilities : array-like of shape (n_instances, n_labels)
            As for `abstain.decide`, of the labels that the rule was made for.

        Returns
        -------
        PartialPrediction
        """
        table = Probabilities(probabilities)
        if table.n_labels != self.n_labels:
            raise InvalidProbabilities(
                f"probabilities: {table.n_labels} labels; the calibration sample had {self.n_labels}"
            )
        Axes(self.label_names).require_labels(table.axes.label_names, "probabilities")
        # At a cost of 0, labels whose probability is 0 or 1 are still answered: what is not certified is removed after.
        cost = np.where(self.satisfied, self.cost, 0.0)
        prediction = decide_table(table, self.loss, PerLabel(cost) if cost.ndim else Linear(float(cost)))
        assert isinstance(prediction, PartialPrediction)
        return _abstain_on_labels(prediction, ~np.broadcast_to(self.satisfied, self.n_labels))

    def __repr__(self) -> str:
        guarantee = self._guarantee()
        if not np.any(self.satisfied):
            side = "above" if RISKS[self.risk].is_score else "below"
            return f"{guarantee}\nnot satisfied: nothing can be shown to stay {side} it, and nothing is answered"
        found = f"{np.mean(self.abstention):.1%} of the calibration sample left open"
        if self.per == "label":
            count = f"{np.sum(self.satisfied)} of {self.n_labels} labels"
            others = "" if np.all(self.satisfied) else ", the others left open"
            return f"{guarantee}\n{count} satisfied{others}: {found}"
        return f"{guarantee}\ncost {self.cost:.4g}: {found}, {self.risk} {self.estimate:.4g}"

    def _guarantee(self) -> str:
        sign = "≥" if RISKS[self.risk].is_score else "≤"
        how_sure = "in expectation" if self.confidence == "expectation" else f"with {self.confidence:g} confidence"
        each = {"table": "", "instance": " per instance", "label": " for each label"}[self.per]
        return f"Rule for {self.loss!r}: {self.risk}{each} {sign} {self.target:g} {how_sure}"

    def _repr_html_(self) -> str:
        columns = (self.satisfied, self.cost, self.estimate, self.abstention)
        values = zip(*(np.atleast_1d(column)[:SHOWN_LABELS] for column in columns), strict=True)
        names = Axes(self.label_names).names(self.n_labels) if self.per == "label" else ["all labels"]
        rows: list[list[str | HighlightedCell]] = []
        for name, (satisfied, cost, estimate, abstention) in zip(names, values, strict=False):
            if satisfied:
                rows.append([str(name), f"{cost:.4g}", f"{estimate:.4g}", f"{abstention:.1%}"])
            else:
                rows.append([str(name), HighlightedCell("left open", "nothing can be shown"), "", f"{abstention:.1%}"])
        head = ["label", "cost", f"{self.risk} of the calibration sample", "left open of it"]
        more = f"… {len(names) - SHOWN_LABELS} more" if len(names) > SHOWN_LABELS else ""
        return table(self._guarantee(), head, rows, more)


def _abstain_on_labels(prediction: PartialPrediction, is_abstained: NDArray[np.bool_]) -> PartialPrediction:
    """Return the prediction without any answer for some labels."""
    if not is_abstained.any():
        return prediction
    codes, columns = prediction.labels, np.flatnonzero(is_abstained)
    if sparse.issparse(codes):
        n = codes.shape[0]
        indices, indptr = np.tile(columns, n), np.arange(n + 1) * len(columns)
        kept = codes @ sparse.diags_array((~is_abstained).astype(np.int8), dtype=np.int8)
        abstentions = sparse.csr_array((np.full(len(indices), ABSTAIN, np.int8), indices, indptr), codes.shape)
        codes = sparse.csr_array(kept) + abstentions
        codes.eliminate_zeros()
    else:
        codes[:, columns] = ABSTAIN
    expected_loss = np.zeros(len(prediction)) if is_abstained.all() else prediction.expected_loss
    return PartialPrediction.from_codes(codes, prediction.axes, expected_loss)
