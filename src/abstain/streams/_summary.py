"""What became of a stream."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy import sparse

from abstain._core.prediction import PartialRanking, Prediction
from abstain.streams._arrow_kernels import count_codes


@dataclass(frozen=True)
class Summary:
    """How much was decided and how; two of them add up.

    Examples
    --------
    >>> from abstain.streams import Summary
    >>> whole = Summary(n_rows=2, n_labels=3, n_abstained=1) + Summary(n_rows=3, n_labels=3, n_abstained=2)
    >>> whole.n_rows, whole.n_labels, whole.abstention_rate
    (5, 3, 0.2)
    """

    n_rows: int = 0
    n_labels: int = 0
    n_abstained: int = 0
    """Labels left open."""
    n_ones: int = 0
    """Labels answered 1 (of rankings: none)."""
    expected_loss: float = 0.0
    """The expected generalised loss, summed over the rows."""
    n_skipped: int = 0
    """Rows left out because of a bad value."""
    n_repaired: int = 0
    """Labels left open because of a bad value."""
    n_files: int = 0
    n_kept: int = 0
    """Files of which the output was there already."""

    def __add__(self, other: "Summary") -> "Summary":
        total = {field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)}
        return Summary(**total | {"n_labels": max(self.n_labels, other.n_labels)})

    @property
    def abstention_rate(self) -> float:
        """The share of the labels that are left open."""
        return self.n_abstained / max(1, self.n_rows * self.n_labels)

    @classmethod
    def of(cls, prediction: Prediction, **counts: Any) -> "Summary":
        """What is to be said of a batch."""
        codes = prediction.codes
        ones, left_open = count_codes((codes.data if sparse.issparse(codes) else codes).reshape(-1))
        n, m = prediction.shape
        loss = float(np.sum(prediction.expected_loss))
        return cls(n, m, left_open, 0 if isinstance(prediction, PartialRanking) else ones, loss, **counts)
