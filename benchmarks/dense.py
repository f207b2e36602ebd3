"""Large dense tables: against copying and sorting them with NumPy, in the same run; and the memory they take."""

from collections.abc import Iterator

import numpy as np
from tests.support.processes import in_fresh_process

import abstain
from benchmarks.measure import Row, at_most, seconds

SHAPE = (1_000_000, 100)
LOSSES = ("hamming", "subset", "rank", "f1", "jaccard")


def speed() -> Iterator[Row]:
    p = np.random.default_rng(0).random(SHAPE)
    for loss in LOSSES:  # compiled beforehand
        abstain.decide(p[:100], loss, abstain.Concave(0.1))
        abstain.decide(p[:100], loss, 0.1)
    copy = seconds(p.copy, 7)
    linear = seconds(lambda: abstain.decide(p, "hamming", 0.1), 7)
    yield at_most("Hamming, linear", linear / copy, f"`P.copy()` ({copy:.2f} s)", 1.0)
    sort = seconds(lambda: np.sort(p, axis=1))
    for loss, penalty in (("hamming", abstain.Concave(0.1)), ("subset", 0.1), ("subset", abstain.Concave(0.1))):
        taken = seconds(lambda loss=loss, penalty=penalty: abstain.decide(p, loss, penalty))
        name = f"{loss}, {'concave' if penalty != 0.1 else 'linear'}".capitalize()
        yield at_most(name, taken / sort, f"`np.sort(P, axis=1)` ({sort:.2f} s)", 1.5)
    argsort = seconds(lambda: np.argsort(p, axis=1), 2)
    taken = seconds(lambda: abstain.decide(p, "rank", 0.1), 2)
    yield at_most("Rank, linear", taken / argsort, f"`np.argsort(P, axis=1)` ({argsort:.2f} s)", 1.5)


def memory() -> Iterator[Row]:
    for loss in LOSSES:
        rows = SHAPE[0] if loss not in ("f1", "jaccard") else SHAPE[0] // 5
        for penalty in ("0.1", "abstain.Concave(0.1)"):
            code = f"""
import numpy as np, abstain
from benchmarks.measure import peak_mib, reset_peak, resident_mib
p = np.random.default_rng(0).random(({rows}, {SHAPE[1]}))
abstain.decide(p[:5000], {loss!r}, {penalty})
reset_peak()
before = resident_mib()
prediction = abstain.decide(p, {loss!r}, {penalty})
output = (prediction.codes.nbytes + prediction.expected_loss.nbytes) / 2**20
print(peak_mib() - before - output)
"""
            extra = float(in_fresh_process(code))
            name = f"{loss}, {'linear' if penalty == '0.1' else 'concave'}, {rows:,} rows"
            yield Row(name, f"{extra:.0f} MiB", "≤ 64 MiB", extra <= 64)


def twenty_penalties() -> Iterator[Row]:
    p = np.random.default_rng(0).random((100_000, 100))
    for loss in LOSSES:
        costs = np.linspace(0.1, 1.0, 20) * ({"f1": 0.01, "jaccard": 0.01, "subset": 0.02}.get(loss, 0.5))
        penalties = [abstain.Concave(cost) for cost in costs]
        profile = abstain.risk_profile(p, loss=loss)
        profile.decide(penalties[0])
        one = max(seconds(lambda loss=loss, f=f: abstain.decide(p, loss, f)) for f in (penalties[3], penalties[10]))
        twenty = seconds(lambda profile=profile, penalties=penalties: [profile.decide(f) for f in penalties])
        build = seconds(lambda loss=loss: abstain.risk_profile(p, loss=loss))
        found = f"{twenty / one:.2f} × one decision; {(twenty + build) / one:.2f} × with building the profile"
        yield Row(loss, found, "≤ 1.5 ×", twenty <= 1.5 * one)
