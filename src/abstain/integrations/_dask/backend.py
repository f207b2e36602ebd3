"""The public functions for Dask collections: `abstain._utils.backends` hands calls with such tables to this module."""

from functools import partial
from typing import Any

from abstain._core.decision import bind_penalty, decide as decide_in_memory, risk_profile as profile_in_memory
from abstain._core.losses import Loss
from abstain._core.penalties import Penalty
from abstain._core.profile import require_profile
from abstain.integrations._dask.budget import solve
from abstain.integrations._dask.collection import read_chunks
from abstain.integrations._dask.files import decide_files
from abstain.integrations._dask.predictions import chunked_prediction_type
from abstain.integrations._dask.profiles import ChunkedProfile
from abstain.integrations._dask.rates import by_row, reduced

__all__ = ["by_row", "decide", "decide_files", "reduced", "risk_profile", "solve"]


def decide(probabilities: Any, loss: Loss, penalty: Penalty) -> Any:
    """Decide each chunk of a Dask collection when it is computed; see `abstain.decide`."""
    table = read_chunks(probabilities, "probabilities")
    bind_penalty(loss, penalty, table.layout.n_labels, table.layout.axes, is_sparse=table.layout.is_sparse)
    return table.blockwise(
        "decide", chunked_prediction_type(loss), partial(decide_in_memory, loss=loss, penalty=penalty)
    )


def risk_profile(probabilities: Any, loss: Loss) -> ChunkedProfile:
    """Return the risk profile of a Dask collection, computed chunk by chunk; see `abstain.risk_profile`."""
    table = read_chunks(probabilities, "probabilities")
    if table.layout.is_sparse:
        loss.accept_sparse()
    require_profile(loss, table.layout.n_labels, table.layout.axes, table.layout.is_sparse)
    profile: ChunkedProfile = table.blockwise(
        "risk_profile", partial(ChunkedProfile, loss=loss), partial(profile_in_memory, loss=loss)
    )
    return profile
