"""Risk profiles and cost paths of chunked tables."""

from operator import attrgetter, methodcaller
from typing import Any

import dask.array as da
import numpy as np
from scipy import sparse

from abstain._core.losses import Loss
from abstain._core.penalties import PenaltyLike, as_penalty
from abstain.integrations._dask.collection import Chunked
from abstain.integrations._dask.layout import ChunkLayout
from abstain.integrations._dask.predictions import chunked_prediction_type


class ChunkedProfile(Chunked):
    """The `RiskProfile` of a chunked table.

    To decide for many penalties, `persist` it: the profiles then stay where the chunks of the data are.

    Examples
    --------
    >>> import abstain, dask.array as da
    >>> profile = abstain.risk_profile(da.from_array([[0.9, 0.8, 0.7, 0.3]]), loss="rank").persist()
    >>> profile.values.compute()
    array([[0.47, 0.17, 0.03,  inf, 0.  ]])
    >>> profile.decide(0.2).n_abstained.compute(), profile.path().at(0.2).compute()
    (array([1]), array([1]))
    """

    def __init__(self, *parts: Any, loss: Loss) -> None:
        super().__init__(*parts)
        self.loss = loss

    @property
    def values(self) -> da.Array:
        """(n, m + 1): the least expected loss of each instance with a abstentions; CSR if the probabilities are."""
        make = sparse.csr_array if self.layout.is_sparse else np.empty
        return self.array("values", attrgetter("values"), make((0, self.layout.n_labels + 1), dtype=np.float64))

    def decide(self, penalty: PenaltyLike = 0.1) -> Any:
        """Return the optimal chunked prediction for a further counting penalty."""
        priced = as_penalty(penalty)
        bound = priced.bind(self.layout.n_labels)
        bound.require_counting()
        if self.layout.is_sparse:
            bound.require_nondecreasing()
        return self.blockwise("decide", chunked_prediction_type(self.loss), methodcaller("decide", priced))

    def path(self, *, max_abstained: int | None = None) -> "ChunkedPath":
        """Return the best numbers of abstentions for all linear costs, at most `max_abstained` of an instance."""
        path: ChunkedPath = self.blockwise("path", ChunkedPath, methodcaller("path", max_abstained=max_abstained))
        return path

    def __repr__(self) -> str:
        return f"ChunkedProfile of {self.layout} for {self.loss!r}"


class ChunkedPath(Chunked):
    """The `CostPath` of a chunked table: `compute` gives one for all instances."""

    def at(self, cost: float) -> da.Array:
        """Return the number of abstentions of each instance at this cost."""
        return self.array("at", methodcaller("at", cost), np.empty(0, np.int64))

    @staticmethod
    def gather(results: list[Any], layout: ChunkLayout) -> Any:
        """Concatenate the paths of all chunks."""
        sizes = np.concatenate([np.diff(path.indptr) for path in results])
        costs = np.concatenate([path.flat_costs for path in results])
        counts = np.concatenate([path.flat_counts for path in results])
        return type(results[0])(np.concatenate([[0], np.cumsum(sizes)]), costs, counts, results[0].tie_scale)

    def __repr__(self) -> str:
        return f"ChunkedPath of {self.layout}"
