"""Partial predictions and rankings of chunked tables."""

from collections.abc import Hashable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar

import dask.array as da
import numpy as np
from dask.utils import ensure_dict
from scipy import sparse

from abstain._core.losses import Loss
from abstain._core.prediction import PartialPrediction, PartialRanking, Prediction
from abstain._core.tables import Axes
from abstain._utils.extras import optional
from abstain.integrations._dask.collection import Chunked, layer
from abstain.integrations._dask.layout import ChunkLayout


class _ChunkedDecisions(Chunked):
    """What chunked predictions and rankings have in common: each chunk computes to one in memory."""

    kind: ClassVar[type[Prediction]]

    @property
    def codes(self) -> da.Array:
        """The codes of all instances and labels, −1 = abstained, in the chunks of the probabilities."""
        return self._table("codes", self.kind.code_type)

    @property
    def abstained(self) -> da.Array:
        """Whether each label is an abstention: boolean, n × m, sparse if the probabilities are."""
        return self._table("abstained", np.bool_)

    @property
    def n_abstained(self) -> da.Array:
        """Number of abstentions of each instance."""
        return self.array("n_abstained", attrgetter("n_abstained"), np.empty(0, np.intp))

    @property
    def expected_loss(self) -> da.Array:
        """The expected generalised loss of each instance, penalty included."""
        return self.array("expected_loss", attrgetter("expected_loss"), np.empty(0))

    def to_frame(self, label_names: Sequence[Hashable] | None = None) -> Any:
        """Return a Dask data frame with a column per label, ``<NA>`` where abstained.

        It has the index and the divisions of the frame of probabilities. For an array the rows are numbered, in each
        chunk from 0 where Dask does not know how many rows there are.
        """
        dd = optional("dask.dataframe", "to_frame needs Dask's data frames")
        names = self.layout.axes.names(self.layout.n_labels, label_names)
        empty = self.kind.from_codes(np.empty((0, len(names)), self.kind.code_type), self.layout.axes, np.empty(0))
        graph, _, keys = layer("to_frame", [self], partial(_frame_of, names=names))
        return dd.from_graph(
            da.optimize(ensure_dict(graph), keys), _frame_of(empty, names), self._divisions(), keys, "to_frame"
        )

    def _divisions(self) -> tuple[Any, ...]:
        """Return the index values between which the partitions lie; the last one belongs to the last partition."""
        layout = self.layout
        if layout.divisions is not None:
            return layout.divisions
        if not layout.is_known:
            return (None,) * (len(layout.sizes) + 1)
        last = int(layout.n_rows) - 1
        return tuple(max(0, min(int(row), last)) for row in np.cumsum([0, *layout.sizes]))

    def _table(self, name: str, dtype: Any) -> da.Array:
        make = sparse.csr_array if self.layout.is_sparse else np.empty
        return self.array(name, attrgetter(name), make((0, self.layout.n_labels), dtype=dtype))

    @staticmethod
    def gather(results: list[Any], layout: ChunkLayout) -> Prediction:
        """Concatenate the predictions of all chunks."""
        codes, indexes, axes = [each.codes for each in results], [each.axes.index for each in results], layout.axes
        index = None if axes.index is None else indexes[0].append(indexes[1:])
        return type(results[0]).from_codes(
            sparse.vstack(codes, format="csr") if any(map(sparse.issparse, codes)) else np.concatenate(codes),
            Axes(axes.label_names, index, axes.library, axes.nan_is_missing),
            np.concatenate([each.expected_loss for each in results]),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.layout}: compute() gives a {self.kind.__name__}"


class ChunkedPrediction(_ChunkedDecisions):
    """The `PartialPrediction` of a chunked table: nothing is decided before `compute` or `persist`.

    Examples
    --------
    >>> import abstain, dask.array as da
    >>> p = da.from_array([[0.95, 0.6, 0.2], [0.1, 0.5, 0.9]], chunks=(1, 3))
    >>> prediction = abstain.decide(p, penalty=0.25)
    >>> prediction
    ChunkedPrediction of 2 instances × 3 labels in 2 blocks: compute() gives a PartialPrediction
    >>> prediction.labels
    dask.array<labels, shape=(2, 3), dtype=int8, chunksize=(1, 3), chunktype=numpy.ndarray>
    >>> prediction.n_abstained.sum().compute()
    np.int64(2)
    >>> prediction.compute()
    PartialPrediction of 2 instances × 3 labels: 33.3% abstained, expected loss 0.475
       0  1  2
    0  1  ?  0
    1  0  ?  1
    """

    kind = PartialPrediction

    @property
    def labels(self) -> da.Array:
        """int8, n × m: 1, 0 or −1 = abstained, in the chunks of the probabilities; CSR if those are sparse."""
        return self._table("labels", self.kind.code_type)


class ChunkedRanking(_ChunkedDecisions):
    """The `PartialRanking` of a chunked table: nothing is decided before `compute` or `persist`.

    Examples
    --------
    >>> import abstain, dask.array as da
    >>> ranking = abstain.decide(da.from_array([[0.9, 0.3, 0.7, 0.8]]), "rank", penalty=0.2)
    >>> ranking.positions.compute()
    array([[ 0,  2, -1,  1]], dtype=int32)
    """

    kind = PartialRanking

    @property
    def positions(self) -> da.Array:
        """int32, n × m: 0 = first, −1 = not ranked, in the chunks of the probabilities; CSR if those are sparse."""
        return self._table("positions", self.kind.code_type)


def chunked_prediction_type(loss: Loss) -> type[_ChunkedDecisions]:
    """Return the chunked counterpart of ``loss.prediction_type``."""
    return ChunkedRanking if loss.gives_rankings else ChunkedPrediction


def _frame_of(prediction: Prediction, names: list[Hashable]) -> Any:
    import pandas as pd

    frame = prediction.to_frame(names)
    if prediction.axes.index is None:
        first = prediction.axes.first_row
        frame.index = pd.RangeIndex(first, first + len(frame))
    return frame
