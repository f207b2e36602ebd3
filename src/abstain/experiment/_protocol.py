"""What the papers compare: losses, penalties, their costs, and the units of the results.

Every penalty has ten costs, evenly spaced from a tenth of its highest one. For the losses that are at most 1 they are
divided by the number of labels m, so that abstaining on every label is priced alike on all data sets.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from abstain._core.losses import Loss, as_loss
from abstain._core.penalties import Concave, Linear

DATASETS = "cal500", "emotions", "scene", "yeast"
"""The default: the data sets of the papers that are small. mediamill and nus-wide are not."""
LEARNERS = "br-lr", "cc-lr", "ecc-lr"
PENALTIES: dict[str, type[Linear] | type[Concave]] = {"SEP": Linear, "PAR": Concave}
"""f(a) = a c, and f(a) = a m c / (m + a)."""
N_COSTS = 10


class Unit(NamedTuple):
    """In which unit results are given: a factor, perhaps per label, and its words on an axis."""

    title: str
    factor: float
    per_label: bool


AS_IT_IS = Unit("", 1.0, per_label=False)
PER_LABEL = Unit(" / m", 1.0, per_label=True)
PERCENT_OF_LABELS = Unit(", % of the labels", 100.0, per_label=True)


@dataclass(frozen=True)
class Scale:
    """How a loss is priced and shown: its highest cost by penalty, whether that is divided by m, and its unit."""

    loss: Loss
    highest_cost: dict[str, float]
    cost_over_m: bool
    unit: Unit = AS_IT_IS

    @property
    def axis_title(self) -> str:
        """The title of an axis with values of the loss in this unit."""
        return f"{self.loss.axis_title}{self.unit.title}"

    def factor(self, n_labels: int) -> float:
        """Return what one unit of the loss counts in the results: Hamming in per cent of the labels, rank per label."""
        return self.unit.factor / n_labels if self.unit.per_label else self.unit.factor

    def costs(self, penalty: str, n_labels: int) -> list[float]:
        """Return the ten costs of a penalty."""
        divisor = N_COSTS * n_labels if self.cost_over_m else N_COSTS
        return [self.highest_cost[penalty] * step / divisor for step in range(1, N_COSTS + 1)]


SCALES = {
    "hamming": Scale(as_loss("hamming"), {"SEP": 0.5, "PAR": 1.0}, cost_over_m=False, unit=PERCENT_OF_LABELS),
    "rank": Scale(as_loss("rank"), {"SEP": 1.0, "PAR": 2.0}, cost_over_m=False, unit=PER_LABEL),
    "f1": Scale(as_loss("f1"), {"SEP": 1.0, "PAR": 2.0}, cost_over_m=True),
    "jaccard": Scale(as_loss("jaccard"), {"SEP": 1.0, "PAR": 2.0}, cost_over_m=True),
    "subset": Scale(as_loss("subset"), {"SEP": 2.5, "PAR": 5.0}, cost_over_m=True),
}
LOSSES = tuple(SCALES)


def penalties_of(loss: str, n_labels: int) -> Iterator[tuple[str, float, Linear | Concave]]:
    """Iterate over the penalties of a loss: the name, the cost, and the penalty itself."""
    for name, penalty in PENALTIES.items():
        for cost in SCALES[loss].costs(name, n_labels):
            yield name, cost, penalty(cost)
