"""F-measure and Jaccard index against the cubic algorithms, one thread each, sorting included in both."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from tests.oracles import overlap as oracle

import abstain
from benchmarks.measure import Row, at_least, at_most, seconds, threads

DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "uniform": lambda rng, shape: rng.random(shape),
    "mostly certain": lambda rng, shape: rng.beta(0.3, 0.3, shape),
    "few relevant": lambda rng, shape: rng.beta(0.1, 2.0, shape),
}
COSTS = (0.1, 0.3, 0.5, 1.0)  # divided by m, as in the paper
TARGETS = {100: (15, 12), 1000: (300, 120)}
SIZES = {100: (2000, 200), 1000: (100, 2)}  # rows for us, rows for the reference


def speed() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    losses = [
        ("F1", abstain.FMeasure(zero_division=0), None),
        ("F_½", abstain.FMeasure(beta=0.5, zero_division=0), 0.25),
        ("F_1.37", abstain.FMeasure(beta=1.37, zero_division=0), 1.37**2),
        ("Jaccard", abstain.Jaccard(zero_division=0), None),
    ]
    with threads(1):
        for m, (n, n_slow) in SIZES.items():
            for name, loss, beta_squared in losses:
                for distribution, draw in DISTRIBUTIONS.items():
                    yield from _compare(name, loss, beta_squared, distribution, draw(rng, (n, m)), n_slow)
        yield from _many_labels(rng)


def _compare(name, loss, beta_squared, distribution, p, n_slow) -> Iterator[Row]:
    n, m = p.shape
    slow_profile = np.empty((n_slow, m + 1))

    def slow() -> None:
        ranked = -np.sort(-p[:n_slow], axis=1)
        if name == "F1":
            oracle.paper_algorithm_2(ranked, np.arange(m + 1) / m, np.empty(n_slow), slow_profile)
        elif name == "Jaccard":
            oracle.jaccard_profiles(ranked, slow_profile)
        else:
            oracle.f_profiles(ranked, beta_squared, slow_profile)

    slow_time = seconds(slow, 2) / n_slow
    profile = abstain.risk_profile(p, loss=loss)
    difference = np.abs(profile.values[:n_slow] - (1 - slow_profile)).max()
    profile_time = seconds(lambda: abstain.risk_profile(p, loss=loss)) / n
    ratios = []
    for cost in COSTS:
        for penalty in (abstain.Linear(cost / m), abstain.Concave(2 * cost / m)):
            decision = abstain.decide(p, loss, penalty)
            best = (1 - slow_profile + penalty.bind(m).counts).min(axis=1)
            difference = max(difference, np.abs(decision.expected_loss[:n_slow] - best).max())
            ratios.append(slow_time / (seconds(lambda penalty=penalty: abstain.decide(p, loss, penalty)) / n))
    assert difference <= 1e-10, f"{name}, m = {m}: differs by {difference}"
    decide_target, profile_target = TARGETS[m]
    found = f" (median of {len(ratios)} penalties; slowest {min(ratios):,.0f} ×)"
    row = at_least(f"{name}, m = {m}, {distribution}: one decision", float(np.median(ratios)), decide_target, found)
    yield replace(row, target=f"{row.target} (median)")
    yield at_least(f"{name}, m = {m}, {distribution}: whole profile", slow_time / profile_time, profile_target)


def _many_labels(rng: np.random.Generator) -> Iterator[Row]:
    for name, loss in (("F1", abstain.FMeasure()), ("Jaccard", abstain.Jaccard())):
        for distribution, draw in DISTRIBUTIONS.items():
            taken = {}
            for m, n in ((1000, 100), (10_000, 10)):
                p = draw(rng, (n, m))
                taken[m] = np.median(
                    [seconds(lambda p=p, loss=loss, f=c / m: abstain.decide(p, loss, f)) / n for c in COSTS]
                )
            ratio = float(taken[10_000] / taken[1000])
            reference_name = f"m = 1 000 ({1e3 * taken[1000]:.2f} ms)"
            yield at_most(f"{name}, m = 10 000, {distribution}: one decision", ratio, reference_name, 30)
