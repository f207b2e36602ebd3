"""The demonstration on real data: which digits are in a noisy picture of two, and what abstaining saves."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abstain._core.decision import risk_profile
from abstain._core.prediction import ABSTAIN, PartialPrediction
from abstain._core.profile import RiskProfile
from abstain._report import report
from abstain._utils.atomic import atomic_write
from abstain._utils.extras import optional
from abstain._utils.plotting import BLUE, GREEN, GREY, ORANGE
from abstain.datasets import load_digit_pairs
from abstain.learners._classifier import AbstainingClassifier
from abstain.metrics import abstention_rate, answered_error_rate, error_capture_rate, generalized_loss

COSTS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
SHOWN_COST = 0.1
NO_DIGITS = "–"


@dataclass(frozen=True)
class Outcome:
    """The results at one cost: average losses per picture, and rates."""

    cost: float
    answer_all: float
    abstain_all: float
    abstain_optimally: float
    abstention_rate: float
    answered_error_rate: float
    error_capture_rate: float


@dataclass(frozen=True)
class Demo:
    """New pictures, the digits in them, and the risk profile of what a model predicts for them."""

    images: NDArray[np.float64]
    truth: NDArray[np.uint8]
    profile: RiskProfile[Any]
    complete: PartialPrediction

    def decide(self, cost: float) -> PartialPrediction:
        """Return the optimal partial prediction of the new pictures."""
        prediction = self.profile.decide(cost)
        assert isinstance(prediction, PartialPrediction)
        return prediction

    def outcome(self, cost: float) -> Outcome:
        """Return the losses of the optimal answers, of answering everything and of abstaining on everything."""
        partial, all_abstained = self.decide(cost), np.full_like(self.truth, ABSTAIN, dtype=np.int8)
        losses = [
            float(generalized_loss(self.truth, p, loss="hamming", penalty=cost))
            for p in (self.complete, all_abstained, partial)
        ]
        return Outcome(
            cost,
            answer_all=losses[0],
            abstain_all=losses[1],
            abstain_optimally=losses[2],
            abstention_rate=abstention_rate(partial),
            answered_error_rate=answered_error_rate(self.truth, partial),
            error_capture_rate=error_capture_rate(self.truth, partial, self.complete),
        )

    def has_wrong_answer(self, cost: float) -> NDArray[np.bool_]:
        """Return which pictures have a wrong answer."""
        labels = self.decide(cost).labels
        wrong: NDArray[np.bool_] = ((labels != self.truth) & (labels != ABSTAIN)).any(axis=1)
        return wrong

    def examples(self, cost: float, count: int) -> list[int]:
        """Return some pictures: an easy one, ones whose errors abstaining has caught, and one where it has not."""
        n_abstained, wrong = self.decide(cost).n_abstained, self.has_wrong_answer(cost)
        would_err = (self.complete.labels != self.truth).any(axis=1)
        easy = np.flatnonzero((n_abstained == 0) & ~would_err)[:1].tolist()
        missed = np.flatnonzero(wrong & (n_abstained > 0))[:1].tolist()
        caught = np.flatnonzero(would_err & ~wrong & (n_abstained <= 4))
        return [*easy, *caught[: count - len(easy) - len(missed)].tolist(), *missed]


def run(*, n_train: int = 3000, n_test: int = 2000, random_state: int = 0) -> Demo:
    """Learn from some digit pairs, and predict others, made of other digits."""
    train = load_digit_pairs(n_samples=n_train, random_state=random_state)
    test = load_digit_pairs(n_samples=n_test, subset="test", random_state=random_state + 1)
    model = AbstainingClassifier(n_jobs=-1).fit(train.data, train.target)
    profile = risk_profile(model.predict_proba(test.data), loss="hamming")
    complete = profile.decide("none")
    assert isinstance(complete, PartialPrediction)
    return Demo(test.images, test.target, profile, complete)


def write_report(demo: Demo, path: Path) -> None:
    """Write a page in which the reader tries costs, budgets and error rates, and sees every picture."""
    report(
        demo.profile.probabilities.matrix,
        demo.truth,
        path=path,
        title="Which digits are in the picture?",
        images=demo.images,
    )


def describe(labels: NDArray[np.int8], truth: NDArray[np.uint8]) -> tuple[str, str, str]:
    """Return the digits that are answered with yes, that are abstained on, and that are in the picture."""
    return _digits(labels == 1), _digits(labels == ABSTAIN), _digits(truth == 1)


def mistakes(labels: NDArray[np.int8], truth: NDArray[np.uint8]) -> str:
    """Return in words which of the answers are wrong; "" if none is."""
    false_negative, false_positive = (labels == 0) & (truth == 1), (labels == 1) & (truth == 0)
    found = ((false_negative, "missed"), (false_positive, "wrongly seen"))
    return ", ".join(f"{_digits(which)} {what}" for which, what in found if which.any())


def _digits(which: NDArray[np.bool_]) -> str:
    return " ".join(map(str, np.flatnonzero(which))) or NO_DIGITS


def draw(demo: Demo, outcomes: Sequence[Outcome], path: Path) -> None:
    """Draw the losses as curves, and some pictures with their answers."""
    figure = optional("matplotlib.figure", "the figure needs matplotlib").Figure(
        figsize=(11, 5.4), layout="constrained"
    )
    sides: Any = figure.subfigures(1, 2, width_ratios=(1.15, 1))
    loss, rate = sides[0].subplots(2, 1, sharex=True, height_ratios=(2, 1))
    costs = [o.cost for o in outcomes]
    loss.plot(costs, [o.answer_all for o in outcomes], color=ORANGE, linestyle="--", label="answer everything")
    loss.plot(costs, [o.abstain_all for o in outcomes], color=GREY, linestyle=":", label="ask about everything")
    loss.plot(costs, [o.abstain_optimally for o in outcomes], color=BLUE, marker="o", label="abstain where it pays")
    loss.set(ylim=(0, 2.2 * outcomes[-1].answer_all), ylabel="average loss per picture")
    loss.set_title("What silence buys", loc="left")
    loss.legend(frameon=False)
    rate.plot(costs, [100 * o.abstention_rate for o in outcomes], color=BLUE, marker="o")
    rate.set(
        ylim=(0, None), xlabel="cost c of leaving a label to a human (a wrong label costs 1)", ylabel="left open, %"
    )
    for axes in (loss, rate):
        axes.spines[["top", "right"]].set_visible(False)
        axes.axvline(SHOWN_COST, color=GREY, linewidth=0.5)
    _draw_pictures(sides[1], demo)
    with atomic_write(path) as target:
        figure.savefig(target, dpi=150, format=path.suffix[1:])


def _draw_pictures(figure: Any, demo: Demo) -> None:
    labels = demo.decide(SHOWN_COST).labels
    figure.suptitle(f"At c = {SHOWN_COST:g}: yes, ask a human (?), and the truth", fontsize="medium")
    places = figure.subplots(3, 2).ravel()
    for axes in places:
        axes.set_axis_off()
    for axes, i in zip(places, demo.examples(SHOWN_COST, len(places)), strict=False):
        yes, ask, there = describe(labels[i], demo.truth[i])
        axes.imshow(demo.images[i], cmap="gray_r", vmin=0, vmax=16)
        axes.set_title(f"yes {yes}", loc="left", color=GREEN, fontsize="small")
        axes.set_title("sure" if ask == NO_DIGITS else f"? {ask}", color=ORANGE, fontsize="small")
        axes.set_title(f"truth {there}", loc="right", color=GREY, fontsize="small")
        if wrong := mistakes(labels[i], demo.truth[i]):
            below = {"transform": axes.transAxes, "ha": "center", "va": "top"}
            axes.text(0.5, -0.02, f"a wrong answer: {wrong}", **below, color=ORANGE, fontsize="small")
