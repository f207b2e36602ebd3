"""Probabilities, truth, texts and pictures → what a report holds: facts for its display, arrays for its decisions."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from math import ceil, floor, log10
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.kernels.choice import SLACK, TIE
from abstain._core.losses import LOSSES, Hamming, Loss
from abstain._core.penalties import Concave
from abstain._core.probabilities import Probabilities
from abstain._core.profile import RiskProfile
from abstain._core.tables import Axes, dense
from abstain._core.truth import read_truth_for
from abstain._report.encoding import Packed, pack, pack_bits, pack_counts, pack_numbers
from abstain._report.images import draw_pictures
from abstain._utils.errors import InvalidDataset, InvalidLoss, InvalidPenalty, InvalidProbabilities
from abstain.calibration._diagnostics import ReliabilityCurve, calibration_error, reliability_curve

TITLES = {"hamming": "Hamming", "rank": "Rank", "f1": "F1", "jaccard": "Jaccard", "subset": "Subset 0/1"}
PENALTIES = {"linear": "Linear", "concave": "Concave"}
EMBEDDED = "f1", "jaccard"  # profiles that take long; the page computes the others itself
LARGEST_PRICE = 1e12
FEWEST = 10  # entries of a bin of a reliability curve
SMALLEST_COST = 0.01  # a slider needs a right end, even where nothing is ever left open


@dataclass(frozen=True)
class Contents:
    """What a page holds: facts, which become JSON, and named texts: packed arrays, names of rows, pictures."""

    facts: dict[str, Any]
    texts: dict[str, str]


@dataclass(frozen=True)
class Prices:
    """What things cost, unless the reader says otherwise. Without a price of a review there is no bill.

    What errors cost is the Hamming loss; other losses only have a bill of it.
    """

    review: float | None = None
    false_negative: float = 1.0
    false_positive: float = 1.0

    def __post_init__(self) -> None:
        for name, price in vars(self).items():
            if price is None and name == "review":
                continue
            if isinstance(price, bool) or not isinstance(price, Real) or not 0 <= float(price) <= LARGEST_PRICE:
                raise InvalidPenalty(f"{name} is {price!r}; a price is a number from 0 to {LARGEST_PRICE:g}")

    @property
    def hamming(self) -> Hamming:
        """The Hamming loss at these prices."""
        return Hamming(float(self.false_negative), float(self.false_positive))

    @property
    def facts(self) -> dict[str, float | None]:
        """As the page calls them."""
        return {
            "review": None if self.review is None else float(self.review),
            "falseNegative": float(self.false_negative),
            "falsePositive": float(self.false_positive),
        }


def gather(
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
) -> Contents:
    """Read and check what `abstain.report` is given, draw a sample if it is too much, and pack it.

    Examples
    --------
    >>> from abstain._report.payload import gather
    >>> contents = gather([[0.9, 0.4], [0.1, 0.7]], [[1, 0], [0, 1]], losses=["hamming"])
    >>> contents.facts["losses"]
    [{'name': 'hamming', 'title': 'Hamming', 'unit': 0.0, 'largestCost': 0.6}]
    >>> list(contents.texts)
    ['probabilities', 'truth', 'rows']
    """
    names = _read_losses(losses)
    table = Probabilities(probabilities)
    n, m = table.n_rows, table.n_labels
    if n == 0:
        raise InvalidProbabilities("probabilities: there are no rows, so there is nothing to report")
    values = table.values()
    truth = None if y_true is None else read_truth_for(table, y_true)
    said = None if texts is None else _read_texts(texts, n)
    rows = sample_rows(n, m, max_entries, random_state)
    p = dense(values[rows]).astype(np.float64)
    y = None if truth is None else dense(truth[rows]).astype(np.bool_)
    pictures = None if images is None else draw_pictures(images, n, rows)

    prices = prices or Prices()
    described, profiles = _describe_losses(p, {name: _loss(name, prices) for name in names})
    arrays = {"probabilities": pack_numbers(p)} | ({} if y is None else {"truth": pack_bits(y)}) | profiles
    curves = None if y is None else _curves(p, y)
    facts = {
        "abstainVersion": version("abstain"),
        "title": title,
        "nInstances": len(rows),
        "nLabels": m,
        "nTotal": n,
        "labels": [str(name) for name in table.axes.names(m)],
        "hasTruth": y is not None,
        "losses": described,
        "penalties": [{"name": name, "title": words} for name, words in PENALTIES.items()],
        "prices": prices.facts,
        "labelFacts": _label_facts(p, y),
        "reliability": curves and {"pooled": _points(curves[0]), "labels": [_points(curve) for curve in curves[1:]]},
        "arrays": {name: kind for name, (kind, _) in arrays.items()},
    }
    packed = {name: text for name, (_, text) in arrays.items()}
    packed["rows"] = _pack_rows(table.axes, rows, said)
    if pictures is not None:
        packed["images"] = "\n".join(pictures)
    return Contents(facts, packed)


def sample_rows(n_rows: int, n_labels: int, max_entries: int, random_state: int) -> NDArray[np.intp]:
    """The rows that a page shows, increasing: all, or as many drawn without replacement as give `max_entries` entries.

    Examples
    --------
    >>> from abstain._report.payload import sample_rows
    >>> sample_rows(3, 10, max_entries=1000, random_state=0)
    array([0, 1, 2])
    >>> len(sample_rows(1000, 10, max_entries=500, random_state=0))
    50
    """
    if isinstance(max_entries, bool) or not isinstance(max_entries, int | np.integer) or max_entries < 1:
        raise ValueError(f"max_entries is {max_entries!r}; expected a whole number ≥ 1")
    kept = max(1, int(max_entries) // n_labels)
    if kept >= n_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(random_state).choice(n_rows, kept, replace=False)).astype(np.intp)


def largest_cost(values: NDArray[np.float64]) -> float:
    """Max over instances and a of (r(0) − r(a)) / (a·m / (m + a)), rounded up: from there on, all is answered.

    r is the risk profile. Of the penalties offered, the concave one with cost 1 is nowhere above the linear one, so
    this holds for both.

    Examples
    --------
    >>> import abstain
    >>> from abstain._report.payload import largest_cost
    >>> cost = largest_cost(abstain.risk_profile([0.9, 0.8, 0.7, 0.3], loss="hamming").values)
    >>> cost, abstain.decide([0.9, 0.8, 0.7, 0.3], "hamming", abstain.Concave(cost)).n_abstained
    (0.47, array([0]))
    """
    unit = Concave(1.0).bind(values.shape[1] - 1).counts[1:]
    saved = float(((values[:, :1] - values[:, 1:]) / unit).max())
    if saved <= TIE:
        return SMALLEST_COST
    step = 10.0 ** (floor(log10(saved)) - 1)
    return float(f"{ceil(saved / step * (1.0 - SLACK)) * step:.3g}")


def _read_losses(losses: Iterable[str]) -> list[str]:
    names = [losses] if isinstance(losses, str) else list(losses)
    accepted = ", ".join(repr(name) for name in TITLES)
    for name in names:
        if not isinstance(name, str) or name not in TITLES:
            raise InvalidLoss(f"losses: {name!r} is none that a report knows; expected names among {accepted}")
    if not names:
        raise InvalidLoss(f"losses: there is none; expected names among {accepted}")
    return list(dict.fromkeys(names))


def _read_texts(texts: Any, n_rows: int) -> list[str | None]:
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InvalidDataset(f"texts is {type(texts).__name__}; expected one text for each of {n_rows} rows")
    read = [None if text is None or text != text else str(text) for text in texts]  # NaN is a missing cell
    if len(read) != n_rows:
        raise InvalidDataset(f"texts has {len(read)} texts for {n_rows} rows")
    return read


def _loss(name: str, prices: Prices) -> Loss:
    return prices.hamming if name == "hamming" else LOSSES[name]()


def _describe_losses(p: NDArray[np.float64], losses: dict[str, Loss]) -> tuple[list[dict[str, Any]], dict[str, Packed]]:
    """What the page must know of each loss, and the profiles that it does not compute itself."""
    described, arrays = [], {}
    for name, loss in losses.items():
        profile = RiskProfile(Probabilities(p), loss).dense_profile
        cost = largest_cost(profile.values)
        described.append({"name": name, "title": TITLES[name], "unit": loss.tie_scale, "largestCost": cost})
        if name in EMBEDDED and profile.start is not None:
            arrays[f"{name}-values"] = pack_numbers(profile.values)
            arrays[f"{name}-start"] = pack_counts(profile.start)
    return described, arrays


def _pack_rows(axes: Axes, rows: NDArray[np.intp], texts: list[str | None] | None) -> str:
    """What the rows are called and what is said of them. ASCII throughout: half a character has no bytes."""
    ids = [str(i if axes.index is None else axes.index[i]) for i in rows]
    said = None if texts is None else [texts[i] for i in rows]
    return pack(json.dumps({"ids": ids, "texts": said}).encode("ascii"))


def _curves(p: NDArray[np.float64], y: NDArray[np.bool_]) -> list[ReliabilityCurve]:
    """Of all entries together, then of each label: in bins of equal width, or else rare labels show none near ½."""
    pooled = reliability_curve(y, p, strategy="uniform", min_count=FEWEST)
    labels = reliability_curve(y, p, strategy="uniform", min_count=FEWEST, average=None)
    assert isinstance(pooled, ReliabilityCurve)
    assert isinstance(labels, list)
    return [pooled, *labels]


def _points(curve: ReliabilityCurve) -> dict[str, list[float]]:
    low, high = curve.interval()
    lines = {"predicted": curve.predicted, "observed": curve.observed, "low": low, "high": high}
    # Six digits are more than a chart shows, and half the room for thousands of labels.
    shown = {name: [float(f"{value:.6g}") for value in line] for name, line in lines.items()}
    return shown | {"count": curve.count.tolist()}


def _label_facts(p: NDArray[np.float64], y: NDArray[np.bool_] | None) -> list[dict[str, float | None]]:
    m = p.shape[1]
    prevalence = [None] * m if y is None else y.mean(axis=0).tolist()
    errors = [None] * m if y is None else np.asarray(calibration_error(y, p, average=None)).tolist()
    return [
        {"prevalence": share, "meanProbability": mean, "calibrationError": error}
        for share, mean, error in zip(prevalence, p.mean(axis=0).tolist(), errors, strict=True)
    ]
