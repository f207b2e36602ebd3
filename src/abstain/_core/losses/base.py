"""What every loss provides: its risk profile, the prediction that attains it, and the loss itself.

A loss works on one block of rows at a time: `p` are its probabilities (n × m, float64 in [0, 1]), `codes` its answers
(1, 0, −1 = abstained; for rankings positions from 0, −1 = not ranked). Nothing here checks what the door has checked.

Of a sparse table a block shows the stored labels only, and a few of probability 0 that stand for the others, which are
answered 0: a block is narrower than the table, whose number of labels is `block.n_labels`, and what is known of each
label is brought beside `p` by `block.per_label`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.blocks import Block, StoredEntries
from abstain._core.kernels.choice import choose
from abstain._core.penalties import BoundPenalty
from abstain._core.prediction import PartialPrediction, PartialRanking, Prediction
from abstain._utils.errors import InvalidLoss, InvalidPenalty

Floats = NDArray[np.float64]
Codes = NDArray[Any]
Counts = NDArray[np.integer[Any]]


class BlockProfile(NamedTuple):
    """The risk profile of a block, and what is needed to attain any point of it.

    Attributes
    ----------
    values : float array of shape (n, m + 1)
        values[i, a] is the least expected loss of instance i with a abstentions.
    order_keys : array of shape (n, m)
        The order in which the loss arranges the labels of an instance, or the sorted values that determine it. Written
        by `Loss.profile` for `Loss.attain`; a loss need not use it.
    start : int array of shape (n, m + 1), or None
        The abstained labels are the a labels from place start[i, a] of that order on; None if they are always the last.
    """

    values: Floats
    order_keys: NDArray[Any]
    start: NDArray[np.int32] | None

    def of(self, rows: slice) -> "BlockProfile":
        """A view of some rows."""
        return BlockProfile(self.values[rows], self.order_keys[rows], None if self.start is None else self.start[rows])


class Loss(ABC):
    """ℓ(y_D, ŷ_D): how wrong the answered labels D are. Smaller is better; no answer, no loss.

    A loss that is a sum over labels subclasses `DecomposableLoss`, and says only what errors cost. Any other defines
    `profile`, `attain`, `realized` and `expected`, and can then be decided, profiled, scored, drawn and given budgets.
    What has to know more asks for `highest_cost`, `of_counts` or `answers_are_nested`, and raises an error if the loss
    does not have it.
    """

    name: ClassVar[str | None] = None
    """What `abstain.decide`, the command line, the experiments and the report call it; None if it is not registered."""
    description: ClassVar[str] = ""
    """One sentence for people who choose a loss: what counts."""
    unit_description: ClassVar[str] = ""
    """What costs 1, as a clause: ``"an instance with any wrong answer costs 1"``."""
    text_forms: ClassVar[tuple[str, ...]] = ()
    """Examples of how the loss is written on the command line."""
    is_decomposable: ClassVar[bool] = False
    """Whether the loss is a sum over labels, so that each label can have its own price of abstention.

    True of subclasses of `DecomposableLoss`, and only of these.
    """
    answers_are_nested: ClassVar[bool] = False
    """Whether a label that is answered at some linear cost is answered at each higher one, and the same."""
    takes_sparse: ClassVar[bool] = False
    """Whether the loss can be asked about a block that leaves out labels of probability 0, which are answered 0.

    Of sparse tables most labels are left out. Right answers of 0 must not matter then, nor how many labels there are.
    """
    zeros_cost_nothing: bool = True
    """Whether answering only labels of probability 0, all with 0, is free of risk."""
    label_names: tuple[Hashable, ...] | None = None
    """What the labels are called that the loss prices one by one, if it was given by name."""
    gives_rankings: ClassVar[bool] = False
    """Whether the answers are positions in a ranking instead of labels."""
    tie_scale: ClassVar[float] = 1.0
    """1 if the loss is 1 minus a measure, so that its rounding errors are absolute; 0 if it is a sum."""
    order_key_type: ClassVar[type[np.generic]] = np.float64
    """What the order_keys of a `BlockProfile` holds: sorted values, or an order."""
    has_gap: ClassVar[bool] = True
    """Whether the abstained labels may lie anywhere in the loss's order, so that their start must be kept."""
    entries_per_block: ClassVar[int] = 1 << 18
    """How many probabilities are worked at a time: two megabytes, fewer where each takes long."""

    @property
    def title(self) -> str:
        """A short title for menus, legends and tables, for example ``"F1"``."""
        return type(self).__name__

    @property
    def axis_title(self) -> str:
        """What an axis with values of the loss is called, for example ``"1 − F1"``."""
        return "loss"

    @property
    def prediction_type(self) -> type[Prediction]:
        """The class of the predictions that the loss scores."""
        return PartialRanking if self.gives_rankings else PartialPrediction

    @classmethod
    def from_text(cls, text: str) -> "Loss":
        """Return the loss that a text of the command line means, perhaps with parameters, as in `text_forms`."""
        if text != cls.name:
            raise InvalidLoss(f"{text!r} is not {cls.name!r}, which has no parameters")
        return cls()

    def is_same_as(self, other: "Loss") -> bool:
        """Whether both are the same loss with the same parameters."""
        ours, theirs = vars(self), vars(other)
        return type(self) is type(other) and all(np.array_equal(ours[name], theirs[name]) for name in ours)

    def check(self, n_labels: int) -> None:
        """Raise `InvalidLoss` if the loss has parameters that do not fit so many labels."""

    def restricted(self, labels: Counts, n_labels: int) -> "Loss":
        """The loss of some of the n_labels labels alone: itself, if it treats all labels alike."""
        return self

    def highest_cost(self, n_labels: int) -> float:
        """The least linear cost known to be so high that every label is answered, whatever the probabilities.

        The greatest loss of so many labels will always do.
        """
        raise InvalidLoss(
            f"{self!r} does not say from which cost of an abstention on everything is answered, which is needed here: "
            "define highest_cost(n_labels); the greatest loss there can be will do"
        )

    def read_error_costs(self, n_labels: int) -> tuple[Floats, Floats]:
        """Return the costs of a false negative and of a false positive, each one number or one per label.

        Raise `InvalidLoss` if the loss is not a sum over labels.
        """
        raise InvalidLoss(f"{self!r} is not a sum over labels: its errors have no costs of their own")

    def largest_risk(self, n_labels: int) -> Floats:
        """Return for each label the least cost of an abstention from which on it is always answered.

        Raise `InvalidLoss` if the loss is not a sum over labels.
        """
        raise InvalidLoss(f"{self!r} is not a sum over labels: labels have no risks of their own")

    def of_counts(self, hits: Counts, extra: Counts, missed: Counts, answered: Counts) -> Floats | None:
        """The loss, given how many labels are rightly 1, wrongly 1, wrongly 0, and answered at all.

        None if the loss depends on more than that.
        """
        return None

    def accept(self, penalty: BoundPenalty) -> None:
        """Raise `InvalidPenalty` if no optimum can be found for this penalty."""
        if penalty.label_costs is not None and not self.is_decomposable:
            raise InvalidPenalty(
                f"{self!r} cannot honour PerLabel costs: it is not a sum over labels, so the labels to leave open are "
                "no longer found by sorting. Use a counting penalty, or a decomposable loss (Hamming)."
            )

    def accept_sparse(self) -> None:
        """Raise `InvalidLoss` if the loss cannot be asked about sparse tables."""
        if not self.takes_sparse:
            raise InvalidLoss(
                f"{self!r} does not take sparse tables, of which it would see the stored labels only (takes_sparse is "
                "False); use a dense array"
            )

    @abstractmethod
    def profile(self, block: Block, p: Floats, out: BlockProfile) -> None:
        """Fill in the risk profile of a block."""

    @abstractmethod
    def attain(
        self, block: Block, p: Floats, profile: BlockProfile, n_abstained: NDArray[np.intp], codes: Codes
    ) -> None:
        """Write the best answers with so many abstentions."""

    def decide(self, block: Block, p: Floats, penalty: BoundPenalty, codes: Codes, expected: Floats) -> None:
        """Write the best answers and their expected generalised loss."""
        profile = self.empty_profile(p.shape)
        self.profile(block, p, profile)
        self.decide_from_profile(block, p, profile, penalty, codes, expected)

    def decides_by_entry(self, penalty: BoundPenalty) -> bool:
        """Whether each label is decided by itself, so that sparse rows need not be packed."""
        return False

    def decide_entries(
        self,
        stored: StoredEntries,
        p: NDArray[np.floating[Any]],
        penalty: BoundPenalty,
        codes: Codes,
        expected: Floats,
    ) -> None:
        """Decide, as `decide` does, rows as they are stored; for losses that decide by entry."""
        raise NotImplementedError

    def decide_and_count(
        self, block: Block, p: Floats, penalty: BoundPenalty, other: BoundPenalty, codes: Codes, expected: Floats
    ) -> NDArray[np.intp]:
        """The same, and how many labels of each row another penalty would leave open: cheaper than deciding twice."""
        profile = self.empty_profile(p.shape)
        self.profile(block, p, profile)
        self.decide_from_profile(block, p, profile, penalty, codes, expected)
        n_abstained = np.empty(len(p), np.intp)
        counted, tie = other.counted(self.tie_scale)
        choose(profile.values, other.counts, counted, tie, self.tie_scale, n_abstained, np.empty(len(p)))
        return n_abstained

    def decide_from_profile(
        self, block: Block, p: Floats, profile: BlockProfile, penalty: BoundPenalty, codes: Codes, expected: Floats
    ) -> None:
        """The same, from a profile that is already known."""
        n_abstained = np.empty(len(p), np.intp)
        counted, tie = penalty.counted(self.tie_scale)
        choose(profile.values, penalty.counts, counted, tie, self.tie_scale, n_abstained, expected)
        self.attain(block, p, profile, n_abstained, codes)

    def empty_profile(self, shape: tuple[int, int]) -> BlockProfile:
        """Room for the profile of n × m probabilities."""
        n, m = shape
        start = np.empty((n, m + 1), np.int32) if self.has_gap else None
        return BlockProfile(np.empty((n, m + 1)), np.empty((n, m), self.order_key_type), start)

    @abstractmethod
    def realized(self, block: Block, truth: NDArray[np.bool_], codes: Codes) -> Floats:
        """ℓ(y_D, ŷ_D) of each row."""

    @abstractmethod
    def expected(self, block: Block, p: Floats, codes: Codes) -> Floats:
        """E[ℓ(y_D, ŷ_D)] of each row, for independent labels with probabilities p and any answers."""

    def savings(self, block: Block, p: Floats, codes: Codes, rows: Counts, columns: Counts) -> Floats:
        """What reviews of abstained labels save: how much the best answer to just this label would add to E[ℓ].

        They are given by their places in the block, row by row. Unless it is overridden, each label is tried with both
        answers; rankings have no such answers, and must override it.
        """
        if self.gives_rankings:
            raise NotImplementedError(f"{type(self).__name__} gives rankings, and must define savings")
        saved, before = np.empty(len(rows)), self.expected(block, p, codes)
        for column in np.unique(columns):
            at = columns == column
            with_0, with_1 = codes.copy(), codes.copy()
            with_0[rows[at], column], with_1[rows[at], column] = 0, 1
            best = np.minimum(self.expected(block, p, with_0), self.expected(block, p, with_1))
            saved[at] = (best - before)[rows[at]]
        return saved


def start_at(profile: BlockProfile, n_abstained: NDArray[np.intp]) -> NDArray[np.int32]:
    """Where the gap of each row starts."""
    assert profile.start is not None
    return profile.start[np.arange(len(n_abstained)), n_abstained]


def read_parameter(value: Any, name: str, loss: Loss, accepted: str, valid: Callable[[float], bool]) -> float:
    """A number, or an error that names it and says what is accepted."""
    if isinstance(value, bool) or not isinstance(value, Real) or not valid(float(value)):
        raise InvalidLoss(f"{type(loss).__name__}: {name} is {value!r}; expected {accepted}")
    return float(value)
