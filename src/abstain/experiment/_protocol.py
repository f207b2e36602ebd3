"""What is compared: losses, penalties, costs and units, as in the papers.

Every penalty has ten costs, evenly spaced from a tenth of its greatest one. For the losses that are at most 1 they are
divided by the number of labels m, so that leaving every label open is priced alike on all data sets.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from abstain._core.penalties import Concave, Linear

DATASETS = "cal500", "emotions", "scene", "yeast"
"""What is run unless told otherwise: the data sets of the papers that are small. mediamill and nus-wide are not."""
LEARNERS = "br-lr", "cc-lr", "ecc-lr"
PENALTIES: dict[str, type[Linear] | type[Concave]] = {"SEP": Linear, "PAR": Concave}
"""f(a) = a c, and f(a) = a m c / (m + a)."""
STEPS = 10


@dataclass(frozen=True)
class Scale:
    """How a loss is priced and shown: its greatest cost by penalty, whether that is over m, and its unit."""

    name: str
    title: str
    greatest: dict[str, float]
    per_label: bool
    percent: bool = False

    def unit(self, n_labels: int) -> float:
        """What one unit of the loss counts in the results: Hamming in per cent of the labels, rank per label."""
        if self.per_label:
            return 1.0
        return (100.0 if self.percent else 1.0) / n_labels

    def costs(self, penalty: str, n_labels: int) -> list[float]:
        """The ten costs of a penalty."""
        whole = STEPS * n_labels if self.per_label else STEPS
        return [self.greatest[penalty] * step / whole for step in range(1, STEPS + 1)]


SCALES = {
    "hamming": Scale(
        "Hamming", "Hamming loss, % of the labels", {"SEP": 0.5, "PAR": 1.0}, per_label=False, percent=True
    ),
    "rank": Scale("rank", "rank loss / m", {"SEP": 1.0, "PAR": 2.0}, per_label=False),
    "f1": Scale("F1", "1 − F1", {"SEP": 1.0, "PAR": 2.0}, per_label=True),
    "jaccard": Scale("Jaccard", "1 − Jaccard", {"SEP": 1.0, "PAR": 2.0}, per_label=True),
    "subset": Scale("subset 0/1", "subset 0/1 loss", {"SEP": 2.5, "PAR": 5.0}, per_label=True),
}
LOSSES = tuple(SCALES)


def priced(loss: str, n_labels: int) -> Iterator[tuple[str, float, Linear | Concave]]:
    """Every penalty of a loss: its name, its cost, and the penalty itself."""
    for name, penalty in PENALTIES.items():
        for cost in SCALES[loss].costs(name, n_labels):
            yield name, cost, penalty(cost)
