"""The claims of the papers about their results, and whether given results support them.

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
from abstain.experiment._results import BASELINES, KEYS, Results

ROUNDING_TOLERANCE = 1e-9
MUCH_LOWER = 0.1  # "much less" is a tenth less, or more
OFTEN_SHARE = 0.5  # "often": at half of the points
MOSTLY_SHARE = 0.95  # "mostly": at 95 % of the points
MAX_STANDARD_ERRORS = 2  # a difference of no more may be noise
BASELINE_TITLES = {
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
    """A sentence about a loss, whether it holds ("yes", "mostly" or "no"), and the numbers, learner by learner."""

    loss: str
    sentence: str
    holds: str
    found: tuple[str, ...]


class Tally(NamedTuple):
    """How many of a learner's points support a claim, details in words, and whether all others may be noise."""

    n_supporting: int
    n_points: int
    details: str
    may_be_noise: bool = False


CountPoints = Callable[[pd.DataFrame], Tally]


def check(results: Results) -> list[Claim]:
    """Return all claims that the results allow to check, loss by loss."""
    points = _points(results)
    claims: list[Claim] = []
    for loss in LOSSES:
        of_loss = points[points.loss == loss]
        if len(of_loss):
            claims += _paper_claims(of_loss)
            if loss == "rank":
                claims += _rank_and_hamming_claims(of_loss, points[points.loss == "hamming"])
            claims += _further_claims(of_loss)
    return claims


def _points(results: Results) -> pd.DataFrame:
    """Return the means over the folds, the better of MLC and ABS, and how far losses exceed it in standard errors."""
    points = results.summary()
    points["better"] = points[["mlc", "abs"]].min(axis=1)
    folds = results.results.merge(points[[*KEYS, "better", "mlc"]], on=KEYS, suffixes=("", "_mean"))
    folds["excess"] = folds.generalized_loss - np.where(folds.mlc_mean == folds.better, folds.mlc, folds["abs"])
    standard_error = np.maximum(folds.groupby(KEYS, sort=False).excess.sem().to_numpy(), ROUNDING_TOLERANCE)
    points["standard_errors"] = (points.generalized_loss - points.better) / standard_error
    return points


def _paper_claims(points: pd.DataFrame) -> Iterator[Claim]:
    loss = points.loss.iloc[0]
    scale = SCALES[loss]
    ending = "meets MLC exactly" if loss == "hamming" else "has come to MLC"
    for penalty, of_penalty in points.groupby("penalty", sort=False):
        last = f"c = {scale.highest_cost[penalty]:g}{'/m' if scale.cost_over_m else ''}"
        yield _claim(of_penalty, f"{penalty} costs no more than the better of MLC and ABS", _never_worse)
        yield _claim(
            of_penalty, f"{penalty} often costs much less than both (a tenth or more)", _much_lower, enough=OFTEN_SHARE
        )
        yield _claim(of_penalty, f"the loss of {penalty} grows with c", _loss_grows)
        yield _claim(of_penalty, f"the abstention of {penalty} falls with c", _abstention_falls)
        yield _claim(of_penalty, f"{penalty} {ending} at {last}", _meets_full_prediction)


def _claim(points: pd.DataFrame, sentence: str, count: CountPoints, enough: float = 1.0) -> Claim:
    tallies = {learner: count(of_learner) for learner, of_learner in points.groupby("learner", sort=False)}
    n_supporting = sum(tally.n_supporting for tally in tallies.values())
    share = n_supporting / sum(tally.n_points for tally in tallies.values())
    holds = _verdict(share, enough, all(tally.may_be_noise for tally in tallies.values()))
    found = (
        f"{learner}: {_verdict(tally.n_supporting / tally.n_points, enough, tally.may_be_noise)}, "
        f"{tally.n_supporting} of {tally.n_points}{tally.details}"
        for learner, tally in tallies.items()
    )
    return Claim(points.loss.iloc[0], sentence, holds, tuple(found))


def _verdict(share: float, enough: float = 1.0, may_be_noise: bool = False) -> str:
    return "yes" if share >= enough else "mostly" if share >= MOSTLY_SHARE or may_be_noise else "no"


def _describe(point: pd.Series) -> str:
    scale = SCALES[point.loss]
    cost = f"{point.cost * point.n_labels:.3g}/m" if scale.cost_over_m else f"{point.cost:.3g}"
    return f"{point.dataset}, c = {cost}"


def _change(new: pd.Series, old: pd.Series) -> pd.Series:
    """Return the relative change; from 0 to 0 it is 0."""
    return (new - old) / old.where(old != 0, np.where(new == old, 1.0, 0.0))


def _never_worse(points: pd.DataFrame) -> Tally:
    change = _change(points.generalized_loss, points.better)
    supports = points.generalized_loss <= points.better + ROUNDING_TOLERANCE
    details = ""
    if not supports.all():
        worst = points.loc[change.idxmax()]
        details = (
            f", at most {change.max():+.2%} ({worst.generalized_loss:.4g} > {worst.better:.4g}: {_describe(worst)}); "
            f"{(points.standard_errors > MAX_STANDARD_ERRORS).sum()} beyond two standard errors"
        )
    return Tally(int(supports.sum()), len(points), details, not (points.standard_errors > MAX_STANDARD_ERRORS).any())


def _much_lower(points: pd.DataFrame) -> Tally:
    change = _change(points.generalized_loss, points.better)
    details = (
        f", {change.mean():+.1%} on average, {change.min():+.1%} at best ({_describe(points.loc[change.idxmin()])})"
    )
    return Tally(int((change <= -MUCH_LOWER).sum()), len(points), details)


def _steps(points: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the points after each step to the next cost, with the change of a column."""
    ordered = points.sort_values(["dataset", "cost"])
    return ordered.assign(change=ordered.groupby("dataset")[column].diff()).dropna(subset="change")


def _loss_grows(points: pd.DataFrame) -> Tally:
    steps = _steps(points, "generalized_loss")
    supports = steps.change >= -ROUNDING_TOLERANCE
    details = " steps"
    if not supports.all():
        falls = -_change(steps.generalized_loss, steps.generalized_loss - steps.change)
        details += f", it falls by {falls.max():.2%} at most ({_describe(steps.loc[falls.idxmax()])})"
    return Tally(int(supports.sum()), len(steps), details)


def _abstention_falls(points: pd.DataFrame) -> Tally:
    steps = _steps(points, "abstention")
    supports = steps.change <= ROUNDING_TOLERANCE
    costs = points.groupby("dataset").cost
    first, last = (points[points.cost == costs.transform(end)].abstention.mean() for end in ("min", "max"))
    details = f" steps, from {first:.1f} % to {last:.1f} % on average"
    if not supports.all():
        details += f", it rises by {steps.change.max():.2g} at most ({_describe(steps.loc[steps.change.idxmax()])})"
    return Tally(int(supports.sum()), len(steps), details)


def _meets_full_prediction(points: pd.DataFrame) -> Tally:
    last = points[points.cost == points.groupby("dataset").cost.transform("max")]
    gap = last.generalized_loss - last.mlc
    supports = (gap.abs() <= ROUNDING_TOLERANCE) & (last.abstention <= ROUNDING_TOLERANCE)
    details = " data sets"
    if not supports.all():
        change = _change(last.generalized_loss, last.mlc)
        worst = last.loc[change.abs().idxmax()]
        details += f", {worst.abstention:.3g} % left open and {change[worst.name]:+.1%} from MLC on {worst.dataset}"
    return Tally(int(supports.sum()), len(last), details)


def _rank_and_hamming_claims(rank: pd.DataFrame, hamming: pd.DataFrame) -> Iterator[Claim]:
    """Compare at costs that both have: at the one where all is answered for Hamming by necessity, and below it."""
    keys = ["dataset", "learner", "penalty", "millis"]
    tables = [
        points.assign(millis=(1000 * points.cost).round()).set_index(keys).abstention for points in (rank, hamming)
    ]
    both = pd.concat(tables, axis=1, keys=["rank", "hamming"], join="inner").reset_index()
    for penalty, of_penalty in both.groupby("penalty", sort=False):
        end = SCALES["hamming"].highest_cost[str(penalty)]
        last = of_penalty[of_penalty.millis == 1000 * end]["rank"]
        below = of_penalty[of_penalty.millis < 1000 * end]
        sentence = f"{penalty} comes to MLC later than for Hamming: at c = {end:g} labels are still left open"
        found = (
            f"{(last > 0).sum()} of {len(last)} data sets and learners: {last.mean():.1f} % of the labels on average"
        )
        yield Claim("rank", sentence, _verdict((last > 0).mean()), (found,))
        slower = (below["rank"] > below["hamming"]).groupby(below.dataset, sort=False)
        abstention = below.groupby("dataset", sort=False)[["rank", "hamming"]].mean()
        by_data = tuple(
            f"{name}: {_verdict(part.mean())}, more is left open at {part.sum()} of {len(part)} costs, "
            f"{abstention.loc[name, 'rank']:.1f} % against {abstention.loc[name, 'hamming']:.1f} % on average"
            for name, part in slower
        )
        sentence = f"{penalty} comes to MLC more slowly than for Hamming, at lower costs, too"
        yield Claim("rank", sentence, _verdict((below["rank"] > below["hamming"]).mean()), by_data)
        gap = (abstention["rank"] - abstention["hamming"]).sort_values(ascending=False)
        if "cal500" in gap and len(gap) > 1:
            most = "yes" if gap.index[0] == "cal500" else "no"
            shown = ", ".join(f"{name} {points:+.1f}" for name, points in gap.items())
            yield Claim("rank", f"above all on CAL500 ({penalty})", most, (f"percentage points more: {shown}",))


def _further_claims(points: pd.DataFrame) -> Iterator[Claim]:
    abstaining = points[points.abstention > 0]
    for rule in BASELINES if len(abstaining) else ():
        yield _claim(
            abstaining,
            f"at equal abstention, SEP and PAR cost no more than {BASELINE_TITLES[rule]}",
            partial(_costs_no_more, other=rule),
        )
    learners = list(points.learner.unique())
    pairs = [(name, name.partition("+")[0]) for name in learners if "+" in name]
    pairs += [(name, "br-lr") for name in learners if name.startswith("trees")]
    keys = ["dataset", "penalty", "cost"]
    for ours, other in pairs:
        both = points[points.learner == ours].merge(points[points.learner == other], on=keys, suffixes=("", "_other"))
        if len(both):
            yield _claim(
                both, f"{ours} costs no more than {other}", partial(_costs_no_more, other="generalized_loss_other")
            )


def _costs_no_more(points: pd.DataFrame, other: str) -> Tally:
    """Count the points that cost no more than the other column."""
    change = _change(points.generalized_loss, points[other])
    details = f", {change.mean():+.1%} on average ({change.min():+.1%} to {change.max():+.1%})"
    return Tally(int((change <= ROUNDING_TOLERANCE).sum()), len(points), details)


def as_text(claims: list[Claim]) -> str:
    """Return the claims as a table for a terminal."""
    lines = [LEGEND]
    for loss in dict.fromkeys(claim.loss for claim in claims):
        lines += ["", SCALES[loss].axis_title, f"{'holds':8}claim"]
        for claim in claims:
            if claim.loss == loss:
                lines += [f"{claim.holds:8}{claim.sentence}", *(f"{'':10}{part}" for part in claim.found)]
    count = Counter(claim.holds for claim in claims)
    return "\n".join([*lines, "", ", ".join(f"{count[word]} {word}" for word in ("yes", "mostly", "no"))])


def as_markdown(claims: list[Claim]) -> str:
    """Return the claims as a Markdown table."""
    lines = ["| loss | claim | holds | found |", "|---|---|---|---|"]
    for claim in claims:
        cells = claim.loss, claim.sentence, claim.holds, "<br>".join(claim.found)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)
