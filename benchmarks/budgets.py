"""Budgets on large tables: against one decision at the price they find, in the same run."""

from collections.abc import Iterator

import numpy as np

import abstain
from benchmarks.measure import Row, at_most, seconds

SHAPE = (1_000_000, 100)
RATES = (0.01, 0.05, 0.2)


def speed() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    for name, p in (("uniform", rng.random(SHAPE)), ("few relevant", rng.beta(0.3, 1.0, SHAPE))):
        for loss, repeats in (("hamming", 5), ("f1", 1)):
            abstain.budget.solve(p[:100_000], loss=loss, rate=0.05)  # compiled beforehand
            for rate in RATES:
                found = abstain.budget.solve(p, loss=loss, rate=rate)
                budget = seconds(
                    lambda p=p, loss=loss, rate=rate: abstain.budget.solve(p, loss=loss, rate=rate), repeats
                )
                one = seconds(lambda p=p, loss=loss, c=found.price: abstain.decide(p, loss, c), repeats)
                what = f"{loss}, {name}, {rate:.0%} of the labels reviewed"
                yield at_most(what, budget / one, f"one decision ({one:.2f} s), gap {found.gap:.1g}", 3.0)


def crossing_caps() -> Iterator[Row]:
    """Caps per instance and per label at once are a linear programme: what that takes."""
    p = np.random.default_rng(0).beta(0.3, 1.0, (20_000, 50))
    taken = seconds(lambda: abstain.budget.solve(p, rate=0.05, per_instance=3, per_label=2000), 1)
    yield Row("20 000 × 50, 5 % reviewed, at most 3 an instance and 2 000 a label", f"{taken:.1f} s")
