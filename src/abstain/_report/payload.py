"""Reads what `abstain.report` is given, and packs it into what a page holds: facts as JSON, and named texts."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.penalties import Concave, Linear
from abstain._core.probabilities import Probabilities
from abstain._core.tables import Axes, dense
from abstain._core.truth import read_truth_for
from abstain._report.encoding import pack, pack_bits, pack_numbers
from abstain._report.images import encode_images
from abstain._report.label_facts import label_facts, reliability_facts
from abstain._report.loss_facts import CONSTANTS, describe_losses, read_losses
from abstain._report.prices import Prices
from abstain._utils.errors import InvalidParameter, InvalidProbabilities

REFUSAL = "a report shows the errors of every row: leave out the rows with unknown labels, or the truth"
PENALTIES = [
    {
        "name": "linear",
        "title": "Linear",
        "className": Linear.__name__,
        "description": "Asking costs the same for each label.",
    },
    {
        "name": "concave",
        "title": "Concave",
        "className": Concave.__name__,
        "description": "Further questions about one instance get cheaper, down to half.",
    },
]


@dataclass(frozen=True)
class Payload:
    """The data of a page: facts, which become JSON, and texts by name (packed arrays, names of rows, images)."""

    facts: dict[str, Any]
    texts: dict[str, str]


def build_payload(
    probabilities: Any,
    y_true: Any = None,
    *,
    losses: Iterable[str] = ("hamming", "f1"),
    title: str = "",
    texts: Any = None,
    images: Any = None,
    prices: Prices | None = None,
    max_entries: int = 1_000_000,
    random_state: int = 0,
) -> Payload:
    """Check the arguments of `abstain.report`, draw a sample of the rows if there are too many, and pack everything.

    Examples
    --------
    >>> from abstain._report.payload import build_payload
    >>> payload = build_payload([[0.9, 0.4], [0.1, 0.7]], [[1, 0], [0, 1]], losses=["hamming"])
    >>> payload.facts["losses"][0]["title"], payload.facts["losses"][0]["largestCost"]
    ('Hamming', 0.6)
    >>> list(payload.texts)
    ['probabilities', 'truth', 'rows']
    """
    prices = prices or Prices()
    chosen_losses = read_losses(losses, prices)
    table = Probabilities(probabilities)
    table.warn_if_softmax(stacklevel=4)
    n, m = table.n_rows, table.n_labels
    if n == 0:
        raise InvalidProbabilities("probabilities: there are no rows, so there is nothing to report")
    values = table.values()
    truth = None if y_true is None else read_truth_for(table, y_true, refusal=REFUSAL)
    row_texts = None if texts is None else _read_texts(texts, n)
    rows = sample_rows(n, m, max_entries, random_state)
    p = dense(values[rows]).astype(np.float64)
    y = None if truth is None else dense(truth[rows]).astype(np.bool_)
    encoded_images = None if images is None else encode_images(images, n, rows)

    loss_facts, profiles = describe_losses(p, chosen_losses)
    arrays = {"probabilities": pack_numbers(p)} | ({} if y is None else {"truth": pack_bits(y)}) | profiles
    facts = {
        "abstainVersion": version("abstain"),
        "title": title,
        "nInstances": len(rows),
        "nLabels": m,
        "nTotal": n,
        "labels": [str(name) for name in table.axes.names(m)],
        "hasTruth": y is not None,
        "losses": loss_facts,
        "penalties": PENALTIES,
        "prices": prices.facts,
        "constants": CONSTANTS,
        "labelFacts": label_facts(p, y),
        "reliability": None if y is None else reliability_facts(p, y),
        "arrays": {name: kind for name, (kind, _) in arrays.items()},
    }
    packed = {name: text for name, (_, text) in arrays.items()}
    packed["rows"] = _pack_rows(table.axes, rows, row_texts)
    if encoded_images is not None:
        packed["images"] = "\n".join(encoded_images)
    return Payload(facts, packed)


def sample_rows(n_rows: int, n_labels: int, max_entries: int, random_state: int) -> NDArray[np.intp]:
    """Return the rows that a page shows, increasing: all, or as many drawn at random as give `max_entries` entries.

    Examples
    --------
    >>> from abstain._report.payload import sample_rows
    >>> sample_rows(3, 10, max_entries=1000, random_state=0)
    array([0, 1, 2])
    >>> len(sample_rows(1000, 10, max_entries=500, random_state=0))
    50
    """
    if isinstance(max_entries, bool) or not isinstance(max_entries, int | np.integer) or max_entries < 1:
        raise InvalidParameter(f"max_entries is {max_entries!r}; expected a whole number ≥ 1")
    n_shown = max(1, int(max_entries) // n_labels)
    if n_shown >= n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(random_state).choice(n_rows, n_shown, replace=False)).astype(np.intp)


def _read_texts(texts: Any, n_rows: int) -> list[str | None]:
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InvalidParameter(f"texts is {type(texts).__name__}; expected one text for each of {n_rows} rows")
    read = [None if text is None or text != text else str(text) for text in texts]  # NaN is a missing cell
    if len(read) != n_rows:
        raise InvalidParameter(f"texts has {len(read)} texts for {n_rows} rows")
    return read


def _pack_rows(axes: Axes, rows: NDArray[np.intp], texts: list[str | None] | None) -> str:
    """Names and texts of the rows as packed JSON; in ASCII, as half a surrogate pair cannot be encoded in UTF-8."""
    ids = [str(i if axes.index is None else axes.index[i]) for i in rows]
    shown_texts = None if texts is None else [texts[i] for i in rows]
    return pack(json.dumps({"ids": ids, "texts": shown_texts}).encode("ascii"))
