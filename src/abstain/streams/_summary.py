"""Counts of what was decided in files."""

from dataclasses import dataclass, fields

import numpy as np
from scipy import sparse

from abstain._core.prediction import PartialRanking, Prediction
from abstain.streams._arrow_kernels import count_codes


@dataclass(frozen=True)
class Summary:
    """Counts of what was decided; summaries of parts add up.

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
    """Abstentions, over all rows and labels."""
    n_ones: int = 0
    """Labels answered 1; 0 for rankings."""
    total_expected_loss: float = 0.0
    """The expected generalised loss, summed over the rows."""
    n_skipped: int = 0
    """Rows left out because of a bad value."""
    n_repaired: int = 0
    """Abstentions because of a bad value."""
    n_files: int = 0
    n_kept: int = 0
    """Files whose output was there already."""

    def __add__(self, other: "Summary") -> "Summary":
        total = {field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)}
        return Summary(**total | {"n_labels": max(self.n_labels, other.n_labels)})

    @property
    def abstention_rate(self) -> float:
        """The number of abstentions, divided by the number of rows times the number of labels."""
        return self.n_abstained / max(1, self.n_rows * self.n_labels)

    @classmethod
    def of(cls, prediction: Prediction, **counts: int) -> "Summary":
        """Return the summary of the decisions on a batch."""
        codes = prediction.codes
        n_ones, n_abstained = count_codes((codes.data if sparse.issparse(codes) else codes).reshape(-1))
        n, m = prediction.shape
        return cls(
            n_rows=n,
            n_labels=m,
            n_abstained=n_abstained,
            n_ones=0 if isinstance(prediction, PartialRanking) else n_ones,
            total_expected_loss=float(np.sum(prediction.expected_loss)),
            **counts,
        )
