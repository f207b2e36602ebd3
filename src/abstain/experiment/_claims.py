"""What the papers say of their results, sentence by sentence, and whether these results bear it out.

A *point* is a data set, a learner, a loss, a penalty and a cost; its loss is the mean over the folds.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from abstain.experiment._protocol import LOSSES, SCALES
from abstain.experiment._results import KEYS, RELATED, Results

ROUNDING = 1e-9
MUCH = 0.1  # a tenth less is much less
OFTEN = 0.5  # of the points
MOSTLY = 0.95
OTHERS = {
    "two_thresholds": "two thresholds tuned for F",
    "whole_instances": "rejecting whole instances",
    "at_random": "chance",
}
LEGEND = """\
MLC answers every label, ABS leaves all open. SEP and PAR leave open what is best for the penalties a c and
a m c/(m + a), a the number of open labels, c the cost. A point is a data set and a cost; its loss is the mean over the
folds.
yes: always; mostly: in 95 % of the cases, or nowhere beyond two standard errors; no: otherwise."""


@dataclass(frozen=True)
class Claim:
    """A sentence about a loss, whether it holds ("yes", "mostly" or "no"), and what was found, learner by learner."""

    loss: str
    sentence: str
    holds: str
    found: tuple[str, ...]


class Tally(NamedTuple):
    """How many of a learner's points bear a claim out, what to say of the others, and if all of those may be noise."""

    fine: int
    whole: int
    remark: str
    may_be_noise: bool = False


Tell = Callable[[pd.DataFrame], Tally]


def check(results: Results) -> list[Claim]:
    """All claims that the results can be held against, loss by loss."""
    points = _points(results)
    claims: list[Claim] = []
    for loss in LOSSES:
        some = points[points.loss == loss]
        if len(some):
            claims += _of_the_papers(some)
            if loss == "rank":
                claims += _slower_than_hamming(some, points[points.loss == "hamming"])
            claims += _beyond_the_papers(some)
    return claims


def _points(results: Results) -> pd.DataFrame:
    """Means over the folds; the better of MLC and ABS, and by how many standard errors partial answers exceed it."""
    points = results.summary()
    points["better"] = points[["mlc", "abs"]].min(axis=1)
    folds = results.results.merge(points[[*KEYS, "better", "mlc"]], on=KEYS, suffixes=("", "_mean"))
    folds["excess"] = folds.generalized_loss - np.where(folds.mlc_mean == folds.better, folds.mlc, folds["abs"])
    spread = folds.groupby(KEYS, sort=False).excess.sem().to_numpy()
    points["errors"] = (points.generalized_loss - points.better) / np.maximum(spread, ROUNDING)
    return points


def _of_the_papers(points: pd.DataFrame) -> Iterator[Claim]:
    loss = points.loss.iloc[0]
    scale = SCALES[loss]
    ending = "meets MLC exactly" if loss == "hamming" else "has come to MLC"
    for penalty, some in points.groupby("penalty", sort=False):
        last = f"c = {scale.greatest[penalty]:g}{'/m' if scale.per_label else ''}"
        yield _claim(some, f"{penalty} costs no more than the better of MLC and ABS", _never_worse)
        yield _claim(some, f"{penalty} often costs much less than both (a tenth or more)", _much_lower, enough=OFTEN)
        yield _claim(some, f"the loss of {penalty} grows with c", _loss_grows)
        yield _claim(some, f"the abstention of {penalty} falls with c", _abstention_falls)
        yield _claim(some, f"{penalty} {ending} at {last}", _meets_full_prediction)


def _claim(points: pd.DataFrame, sentence: str, tell: Tell, enough: float = 1.0) -> Claim:
    tallies = {learner: tell(some) for learner, some in points.groupby("learner", sort=False)}
    share = sum(tally.fine for tally in tallies.values()) / sum(tally.whole for tally in tallies.values())
    holds = _judged(share, enough, all(tally.may_be_noise for tally in tallies.values()))
    found = (
        f"{learner}: {_judged(tally.fine / tally.whole, enough, tally.may_be_noise)}, "
        f"{tally.fine} of {tally.whole}{tally.remark}"
        for learner, tally in tallies.items()
    )
    return Claim(points.loss.iloc[0], sentence, holds, tuple(found))


def _judged(share: float, enough: float = 1.0, may_be_noise: bool = False) -> str:
    return "yes" if share >= enough else "mostly" if share >= MOSTLY or may_be_noise else "no"


def _where(point: pd.Series) -> str:
    scale = SCALES[point.loss]
    cost = f"{point.cost * point.n_labels:.3g}/m" if scale.per_label else f"{point.cost:.3g}"
    return f"{point.dataset}, c = {cost}"


def _change(new: pd.Series, old: pd.Series) -> pd.Series:
    """By how much it is more, relative to what it was; nothing from nothing is no change."""
    return (new - old) / old.where(old != 0, np.where(new == old, 1.0, 0.0))


def _never_worse(points: pd.DataFrame) -> Tally:
    change = _change(points.generalized_loss, points.better)
    fine = points.generalized_loss <= points.better + ROUNDING
    remark = ""
    if not fine.all():
        worst = points.loc[change.idxmax()]
        remark = (
            f", at most {change.max():+.2%} ({worst.generalized_loss:.4g} > {worst.better:.4g}: {_where(worst)}); "
            f"{(points.errors > 2).sum()} beyond two standard errors"
        )
    return Tally(int(fine.sum()), len(points), remark, not (points.errors > 2).any())


def _much_lower(points: pd.DataFrame) -> Tally:
    change = _change(points.generalized_loss, points.better)
    remark = f", {change.mean():+.1%} on average, {change.min():+.1%} at best ({_where(points.loc[change.idxmin()])})"
    return Tally(int((change <= -MUCH).sum()), len(points), remark)


def _steps(points: pd.DataFrame, column: str) -> pd.DataFrame:
    """Where each step to the next cost leads, and how the column has changed."""
    ordered = points.sort_values(["dataset", "cost"])
    return ordered.assign(change=ordered.groupby("dataset")[column].diff()).dropna(subset="change")


def _loss_grows(points: pd.DataFrame) -> Tally:
    steps = _steps(points, "generalized_loss")
    fine = steps.change >= -ROUNDING
    remark = " steps"
    if not fine.all():
        falls = -_change(steps.generalized_loss, steps.generalized_loss - steps.change)
        remark += f", it falls by {falls.max():.2%} at most ({_where(steps.loc[falls.idxmax()])})"
    return Tally(int(fine.sum()), len(steps), remark)


def _abstention_falls(points: pd.DataFrame) -> Tally:
    steps = _steps(points, "abstention")
    fine = steps.change <= ROUNDING
    costs = points.groupby("dataset").cost
    first, last = (points[points.cost == costs.transform(end)].abstention.mean() for end in ("min", "max"))
    remark = f" steps, from {first:.1f} % to {last:.1f} % on average"
    if not fine.all():
        remark += f", it rises by {steps.change.max():.2g} at most ({_where(steps.loc[steps.change.idxmax()])})"
    return Tally(int(fine.sum()), len(steps), remark)


def _meets_full_prediction(points: pd.DataFrame) -> Tally:
    last = points[points.cost == points.groupby("dataset").cost.transform("max")]
    gap = last.generalized_loss - last.mlc
    fine = (gap.abs() <= ROUNDING) & (last.abstention <= ROUNDING)
    remark = " data sets"
    if not fine.all():
        change = _change(last.generalized_loss, last.mlc)
        worst = last.loc[change.abs().idxmax()]
        remark += f", {worst.abstention:.3g} % left open and {change[worst.name]:+.1%} from MLC on {worst.dataset}"
    return Tally(int(fine.sum()), len(last), remark)


def _slower_than_hamming(rank: pd.DataFrame, hamming: pd.DataFrame) -> Iterator[Claim]:
    """At costs that both have: at the one where, for Hamming, everything is answered by necessity, and below it."""
    keys = ["dataset", "learner", "penalty", "millis"]
    tables = [some.assign(millis=(1000 * some.cost).round()).set_index(keys).abstention for some in (rank, hamming)]
    both = pd.concat(tables, axis=1, keys=["rank", "hamming"], join="inner").reset_index()
    for penalty, some in both.groupby("penalty", sort=False):
        end = SCALES["hamming"].greatest[str(penalty)]
        last, below = some[some.millis == 1000 * end]["rank"], some[some.millis < 1000 * end]
        sentence = f"{penalty} comes to MLC later than for Hamming: at c = {end:g} labels are still left open"
        found = (
            f"{(last > 0).sum()} of {len(last)} data sets and learners: {last.mean():.1f} % of the labels on average"
        )
        yield Claim("rank", sentence, _judged((last > 0).mean()), (found,))
        slower = (below["rank"] > below["hamming"]).groupby(below.dataset, sort=False)
        left = below.groupby("dataset", sort=False)[["rank", "hamming"]].mean()
        by_data = tuple(
            f"{name}: {_judged(part.mean())}, more is left open at {part.sum()} of {len(part)} costs, "
            f"{left.loc[name, 'rank']:.1f} % against {left.loc[name, 'hamming']:.1f} % on average"
            for name, part in slower
        )
        sentence = f"{penalty} comes to MLC more slowly than for Hamming, at lower costs, too"
        yield Claim("rank", sentence, _judged((below["rank"] > below["hamming"]).mean()), by_data)
        gap = (left["rank"] - left["hamming"]).sort_values(ascending=False)
        if "cal500" in gap and len(gap) > 1:
            most = "yes" if gap.index[0] == "cal500" else "no"
            shown = ", ".join(f"{name} {points:+.1f}" for name, points in gap.items())
            yield Claim("rank", f"above all on CAL500 ({penalty})", most, (f"percentage points more: {shown}",))


def _beyond_the_papers(points: pd.DataFrame) -> Iterator[Claim]:
    silent = points[points.abstention > 0]
    for rule in RELATED if len(silent) else ():
        yield _claim(
            silent, f"at equal abstention, SEP and PAR cost no more than {OTHERS[rule]}", partial(_gains, other=rule)
        )
    learners = list(points.learner.unique())
    pairs = [(name, name.partition("+")[0]) for name in learners if "+" in name]
    pairs += [(name, "br-lr") for name in learners if name.startswith("trees")]
    keys = ["dataset", "penalty", "cost"]
    for ours, other in pairs:
        both = points[points.learner == ours].merge(points[points.learner == other], on=keys, suffixes=("", "_other"))
        if len(both):
            yield _claim(both, f"{ours} costs no more than {other}", partial(_gains, other="generalized_loss_other"))


def _gains(points: pd.DataFrame, other: str) -> Tally:
    """No more than the other is fine."""
    change = _change(points.generalized_loss, points[other])
    remark = f", {change.mean():+.1%} on average ({change.min():+.1%} to {change.max():+.1%})"
    return Tally(int((change <= ROUNDING).sum()), len(points), remark)


def as_text(claims: list[Claim]) -> str:
    """A table to be read in a terminal."""
    lines = [LEGEND]
    for loss in dict.fromkeys(claim.loss for claim in claims):
        lines += ["", f"{SCALES[loss].title}", f"{'holds':8}claim"]
        for claim in claims:
            if claim.loss == loss:
                lines += [f"{claim.holds:8}{claim.sentence}", *(f"{'':10}{part}" for part in claim.found)]
    count = Counter(claim.holds for claim in claims)
    return "\n".join([*lines, "", ", ".join(f"{count[word]} {word}" for word in ("yes", "mostly", "no"))])


def as_markdown(claims: list[Claim]) -> str:
    """A table to be put into a document."""
    lines = ["| loss | claim | holds | found |", "|---|---|---|---|"]
    for claim in claims:
        cells = claim.loss, claim.sentence, claim.holds, "<br>".join(claim.found)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)
