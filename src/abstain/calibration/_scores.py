"""Scores of any kind as log-odds: probabilities, logits, and scores of an unknown scale."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logit

from abstain._core.probabilities import Probabilities
from abstain._core.tables import Axes, Matrix, read_matrix
from abstain._utils.errors import InvalidParameter, InvalidProbabilities
from abstain._utils.types import Floats
from abstain.calibration._groups import LIMIT

Kind: TypeAlias = Literal["probability", "logit", "score"]
KINDS = ("probability", "logit", "score")
TYPICAL_LOGIT = 3.0  # the root mean square that scores of an unknown scale get


@dataclass(frozen=True)
class Scores:
    """A table of scores, validated.

    Attributes
    ----------
    matrix : array or CSR array of shape (n_rows, n_labels)
    axes : Axes
        The names of its rows and labels.
    kind : {"probability", "logit", "score"}
    """

    matrix: Matrix
    axes: Axes
    kind: Kind

    @classmethod
    def read(cls, table: Any, kind: Kind) -> "Scores":
        """Read a table; raise `InvalidProbabilities` where something in it is no score of this kind."""
        require_kind(kind)
        if kind == "probability":
            probabilities = Probabilities(table)
            return cls(probabilities.values(), probabilities.axes, kind)
        matrix, axes = read_matrix(table, "scores", InvalidProbabilities, records=True)
        if sparse.issparse(matrix):
            raise InvalidProbabilities(
                f"scores: what a sparse table does not store would be a {kind} of 0, which is no small score; pass "
                "probabilities, or a dense table"
            )
        if np.isnan(matrix).any():
            i, j = np.argwhere(np.isnan(matrix))[0].tolist()
            raise InvalidProbabilities(f"scores: {axes.row(i)}, {axes.label(j)} is nan; every score must be a number")
        return cls(matrix, axes, kind)

    def scale(self) -> float:
        """Return the factor that makes log-odds of scores: 1 unless their scale is unknown."""
        if self.kind != "score":
            return 1.0
        finite = self.matrix[np.isfinite(self.matrix)].astype(np.float64)
        size = float(np.sqrt(np.mean(finite**2))) if len(finite) else 0.0
        return TYPICAL_LOGIT / size if size > 0 else 1.0


def require_kind(kind: str) -> None:
    """Raise `InvalidParameter` if there is no such kind of scores."""
    if kind not in KINDS:
        raise InvalidParameter(f"kind is {kind!r}; expected {', '.join(map(repr, KINDS[:-1]))} or {KINDS[-1]!r}")


def log_odds(values: NDArray[Any], kind: Kind, scale: float) -> Floats:
    """Return scores of some kind as log-odds, clipped to ±16 (a probability of 1e-7)."""
    values = values.astype(np.float64)
    with np.errstate(divide="ignore"):
        return np.clip(logit(values) if kind == "probability" else values * scale, -LIMIT, LIMIT)
