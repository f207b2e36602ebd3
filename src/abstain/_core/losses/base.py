"""The base class of all losses: risk profile, the prediction that attains it, and the loss itself.

A loss works on one block of rows at a time: `p` are its probabilities (n × m, float64 in [0, 1]), `codes` its answers
(1, 0, or ABSTAIN; for rankings positions from 0, or ABSTAIN). Both have been validated before. Where the probabilities
are intervals, `p` is `Bounds`, and risks are those of the worst case; only losses that say `takes_intervals` get them.

For a sparse table, a block holds the stored labels only, and a few of probability 0 that stand for the others, which
are answered 0. Such a block is narrower than the table: the table has `block.n_labels` labels, and `block.per_label`
arranges numbers per label in the order of `p`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from abstain._core.blocks import Block, StoredEntries
from abstain._core.joint import SearchLimits
from abstain._core.kernels import labelwise
from abstain._core.kernels.bounds import as_bounds
from abstain._core.kernels.choice import choose
from abstain._core.kernels.components import Components, RowPenalties
from abstain._core.kernels.labelwise import ErrorCosts
from abstain._core.penalties import BoundPenalty
from abstain._core.prediction import ABSTAIN, PartialPrediction, PartialRanking, Prediction
from abstain._utils.errors import InvalidLoss, InvalidPenalty
from abstain._utils.types import Floats

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
        The abstained labels are the a labels from position start[i, a] of that order on; None if they are always the
        last ones.
    gap : float array of shape (n, m + 1), or None
        How much less than values[i, a] the least loss can be; None for known probabilities, where it is 0.
    answers : array of shape (n, m + 1, m), or None
        The answers that attain each value, where they come from a joint distribution.
    """

    values: Floats
    order_keys: NDArray[Any]
    start: NDArray[np.int32] | None
    gap: Floats | None = None
    answers: Codes | None = None

    def rows(self, rows: slice) -> "BlockProfile":
        """Return a view of some rows."""
        start = None if self.start is None else self.start[rows]
        gap = None if self.gap is None else self.gap[rows]
        answers = None if self.answers is None else self.answers[rows]
        return BlockProfile(self.values[rows], self.order_keys[rows], start, gap, answers)


class BlockAnswers(NamedTuple):
    """The arrays into which the decision for a block is written.

    Attributes
    ----------
    codes : int array of shape (n, m), or one code for each stored entry of sparse rows
        The answers.
    expected : float array of shape (n,)
        The expected generalised loss of each row.
    gap : float array of shape (n,), or None
        How much better than `expected` another decision can be, filled with 0 before; None if it is always 0.
    """

    codes: Codes
    expected: Floats
    gap: Floats | None = None


class Loss(ABC):
    """ℓ(y_D, ŷ_D): how wrong the answered labels D are. Smaller is better; without any answer it is 0.

    A loss that is a sum over labels subclasses `DecomposableLoss` and defines the costs of errors only. Any other loss
    defines `profile`, `attain`, `realized` and `expected`: these are enough for decisions, risk profiles, scores,
    curves and budgets. Functions that need more ask for `highest_cost`, `of_counts` or `answers_are_nested`, and raise
    `InvalidLoss` if the loss does not provide it.
    """

    name: ClassVar[str | None] = None
    """The name under which the loss is registered, as in ``decide(p, "f1")``; None for a loss that is not."""
    description: ClassVar[str] = ""
    """One sentence for users who choose a loss: what counts."""
    unit_description: ClassVar[str] = ""
    """What costs 1, as a clause: ``"an instance with any wrong answer costs 1"``."""
    text_forms: ClassVar[tuple[str, ...]] = ()
    """Examples of how the loss is written on the command line."""
    is_decomposable: ClassVar[bool] = False
    """Whether the loss is a sum over labels, so that each label can have its own price of abstention.

    True of subclasses of `DecomposableLoss`, and only of these.
    """
    answers_are_nested: ClassVar[bool] = False
    """Whether a label that is answered at some linear cost has the same answer at each higher cost."""
    is_labelwise: ClassVar[bool] = False
    """Whether the best prediction answers the labels with the least `label_risks`. True of `LabelwiseLoss` only."""
    takes_sparse: ClassVar[bool] = False
    """Whether the loss accepts blocks that leave out labels of probability 0, which are answered 0.

    This requires that neither right answers of 0 nor the number of labels matter.
    """
    takes_intervals: ClassVar[bool] = False
    """Whether the loss accepts `Bounds` in place of probabilities, and then minimises the worst case."""
    takes_joint: ClassVar[bool] = False
    """Whether the loss defines `decide_joint` and `profile_joint`, for labels that depend on each other."""
    joint_profile_is_hull: ClassVar[bool] = True
    """Whether the profile of a joint distribution holds only the corners of its lower convex hull."""
    zeros_cost_nothing: bool = True
    """Whether the expected loss is 0 if only labels of probability 0 are answered, all with 0."""
    label_names: tuple[Hashable, ...] | None = None
    """Names of the labels, if the loss has parameters per label that were given by name."""
    gives_rankings: ClassVar[bool] = False
    """Whether the answers are positions in a ranking instead of labels."""
    tie_scale: ClassVar[float] = 1.0
    """1 if the loss is 1 minus a measure, so that its rounding errors are absolute; 0 if it is a sum."""
    order_key_type: ClassVar[type[np.generic]] = np.float64
    """The dtype of the order_keys of a `BlockProfile`: float for sorted values, int for an order."""
    profile_has_start: ClassVar[bool] = True
    """Whether a `BlockProfile` has `start`; False if the abstained labels are always the last in the loss's order."""
    entries_per_block: ClassVar[int] = 1 << 18
    """Probabilities per block: two megabytes, fewer where each takes long."""

    @property
    def title(self) -> str:
        """A short title for menus, legends and tables, for example ``"F1"``."""
        return type(self).__name__

    @property
    def axis_title(self) -> str:
        """The title of an axis with values of the loss, for example ``"1 − F1"``."""
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
        """Raise `InvalidLoss` if the parameters of the loss do not fit the number of labels."""

    def restricted(self, labels: Counts, n_labels: int) -> "Loss":
        """Return the loss of some of the labels alone: itself, if it treats all labels alike."""
        return self

    def read_error_costs(self, n_labels: int) -> ErrorCosts:
        """Return the validated costs of a false negative and a false positive, each one number or one per label.

        Raises `InvalidLoss` if the loss is not a sum over labels (`is_decomposable`).
        """
        raise InvalidLoss(f"{self!r} is not a sum over labels, so its errors have no cost of their own")

    def block_error_costs(self, block: Block) -> ErrorCosts:
        """Return the error costs as tables for kernels: one row for all instances, or a row for each packed one."""
        false_negative, false_positive = self.read_error_costs(block.n_labels)
        return ErrorCosts(block.per_label(false_negative), block.per_label(false_positive))

    def label_risks(self, block: Block, p: Any) -> Floats:
        """min(fn·p, fp·(1 − p)): the expected cost of the best answer to each label of a block, (n, m)."""
        risks = np.empty(p.shape)
        labelwise.score(as_bounds(p), self.block_error_costs(block), np.zeros((1, p.shape[1])), risks)
        return risks

    def accumulate(self, sorted_costs: Floats, values: Floats) -> None:
        """values[i, a] = the loss of m − a answers that cost sorted_costs[i, : m − a]; for labelwise losses."""
        raise NotImplementedError

    def largest_risk(self, n_labels: int, *, of_intervals: bool = False) -> Floats:
        """max_p min(fn·p, fp·(1 − p)) = 1 / (1/fn + 1/fp): from this cost on, each label is always answered.

        Of intervals, the largest risk in the worst case is min(fn, fp).
        """
        fn, fp = (np.broadcast_to(cost, n_labels) for cost in self.read_error_costs(n_labels))
        if of_intervals:
            return np.minimum(fn, fp)
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(1.0 / (1.0 / fn + 1.0 / fp))

    def highest_cost(self, n_labels: int) -> float:
        """Return a linear cost from which on every label is answered, whatever the probabilities; the least one known.

        The greatest possible loss is always such a cost.
        """
        raise InvalidLoss(
            f"{self!r} does not say from which cost of an abstention on everything is answered, which is needed here: "
            "define highest_cost(n_labels); the greatest loss there can be will do"
        )

    def of_counts(
        self, true_positives: Counts, false_positives: Counts, false_negatives: Counts, answered: Counts
    ) -> Floats | None:
        """Return the loss, given how many labels are rightly 1, wrongly 1, wrongly 0, and answered at all.

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
        """Raise `InvalidLoss` if the loss does not accept sparse tables."""
        if not self.takes_sparse:
            raise InvalidLoss(
                f"{self!r} does not take sparse tables, of which it would see the stored labels only (takes_sparse is "
                "False); use a dense array"
            )

    def accept_intervals(self) -> None:
        """Raise `InvalidLoss` if the loss does not accept intervals of probabilities."""
        if not self.takes_intervals:
            raise InvalidLoss(
                f"{self!r} does not take intervals of probabilities: it does not know its worst case (takes_intervals "
                "is False); use a built-in loss, a DecomposableLoss, or the probabilities in Intervals.midpoint"
            )

    def accept_joint(self) -> None:
        """Raise `InvalidLoss` if the loss does not accept joint distributions."""
        if not self.takes_joint:
            raise InvalidLoss(
                f"{self!r} does not take joint distributions: it has no search for labels that depend on each other "
                "(takes_joint is False); use a built-in loss or a DecomposableLoss, decide from the joint "
                "distribution's marginals, or abstain.exhaustive.decide for few labels"
            )

    @abstractmethod
    def profile(self, block: Block, p: Any, out: BlockProfile) -> None:
        """Write the risk profile of a block into `out`."""

    @abstractmethod
    def attain(self, block: Block, p: Any, profile: BlockProfile, n_abstained: NDArray[np.intp], codes: Codes) -> None:
        """Write into `codes` the best answers with n_abstained[i] abstentions in row i."""

    def decide(self, block: Block, p: Any, penalty: BoundPenalty, out: BlockAnswers) -> None:
        """Write the best answers of a block and their expected generalised loss."""
        profile = self.empty_profile(p.shape)
        self.profile(block, p, profile)
        self.decide_from_profile(block, p, profile, penalty, out)

    def decide_skeptically(self, block: Block, p: Any, penalty: BoundPenalty, out: BlockAnswers) -> None:
        """Answer what is best for every probability in the intervals of a block; for sums over labels."""
        raise NotImplementedError

    def decide_joint(
        self, block: Block, joint: Components, penalty: BoundPenalty, limits: SearchLimits, out: BlockAnswers
    ) -> None:
        """Write the best answers that are found for a block of joint distributions, their expected loss and gap."""
        assert out.gap is not None
        self._start_from_marginals(block, joint.marginals(), penalty, out)
        self.search_joint(joint, self._row_penalties(penalty, joint.shape), limits, out.codes, out.gap)
        abstained = out.codes == ABSTAIN
        charged = penalty.charge(abstained.sum(axis=1), abstained)
        out.expected[:] = self.expected_of_joint(joint, out.codes) + charged

    def _start_from_marginals(self, block: Block, marginals: Floats, penalty: BoundPenalty, out: BlockAnswers) -> None:
        """Write the decision from the marginals; labels with prices count with the average price."""
        if penalty.label_costs is not None:
            average = penalty.label_costs.mean() * np.arange(len(penalty.counts))
            penalty = BoundPenalty(penalty.counts + average)
        self.decide(block, marginals, penalty, BlockAnswers(out.codes, out.expected))

    def _row_penalties(self, penalty: BoundPenalty, shape: tuple[int, int]) -> RowPenalties:
        """Return the penalty of each row as searches compare totals with it."""
        n, m = shape
        counts, tie = penalty.counted(self.tie_scale)
        is_finite = bool(np.isfinite(counts).all())
        own = np.zeros(m) if penalty.label_costs is None else penalty.label_costs
        return RowPenalties(
            np.ascontiguousarray(np.broadcast_to(counts, (n, m + 1))),
            tie,
            penalty.is_linear and is_finite,
            penalty.is_concave and is_finite,
            own,
        )

    def search_joint(
        self, joint: Components, penalties: RowPenalties, limits: SearchLimits, codes: Codes, gap: Floats
    ) -> None:
        """Replace answers by better ones, and write how much better others could be; for losses that take joints."""
        raise NotImplementedError

    def profile_joint(self, joint: Components, limits: SearchLimits, out: BlockProfile) -> None:
        """Write the risk profile of a block of joint distributions, with its answers and gaps."""
        raise NotImplementedError

    def expected_of_joint(self, joint: Components, codes: Codes) -> Floats:
        """E[ℓ(y_D, ŷ_D)] of each row: the weighted mean over components in which the labels are independent."""
        values, repeated = joint.values[joint.index], codes[joint.row]
        block = Block(slice(0, len(values)), values.shape, values)
        if joint.are_samples:
            return joint.of_rows(self.realized(block, values.astype(np.bool_), repeated))
        return joint.of_rows(self.expected(block, values, repeated))

    def decides_by_entry(self, penalty: BoundPenalty) -> bool:
        """Whether labels are decided independently of each other, so that sparse rows need not be packed."""
        return False

    def decide_entries(self, stored: StoredEntries, p: Any, penalty: BoundPenalty, out: BlockAnswers) -> None:
        """Write the best answers of sparse rows as they are stored; for losses that decide by entry."""
        raise NotImplementedError

    def decide_and_count(
        self, block: Block, p: Any, penalty: BoundPenalty, other: BoundPenalty, out: BlockAnswers
    ) -> NDArray[np.intp]:
        """Decide for one penalty, and return how many labels of each row are abstained for another one.

        Cheaper than two decisions.
        """
        profile = self.empty_profile(p.shape)
        self.profile(block, p, profile)
        self.decide_from_profile(block, p, profile, penalty, out)
        n_abstained = np.empty(p.shape[0], np.intp)
        counted, tie = other.counted(self.tie_scale)
        choose(profile.values, other.counts, counted, tie, self.tie_scale, n_abstained, np.empty(p.shape[0]))
        return n_abstained

    def decide_from_profile(
        self, block: Block, p: Any, profile: BlockProfile, penalty: BoundPenalty, out: BlockAnswers
    ) -> None:
        """Write the best answers of a block whose profile is known, and their expected generalised loss."""
        n_abstained = np.empty(p.shape[0], np.intp)
        counted, tie = penalty.counted(self.tie_scale)
        choose(profile.values, penalty.counts, counted, tie, self.tie_scale, n_abstained, out.expected)
        self.attain(block, p, profile, n_abstained, out.codes)

    def decide_from_answers(self, profile: BlockProfile, penalty: BoundPenalty, out: BlockAnswers) -> None:
        """Write the best of the answers that a profile of joint distributions holds, their expected loss and gap."""
        assert profile.answers is not None
        assert profile.gap is not None
        assert out.gap is not None
        n = len(profile.values)
        n_abstained = np.empty(n, np.intp)
        counted, tie = penalty.counted(self.tie_scale)
        choose(profile.values, penalty.counts, counted, tie, self.tie_scale, n_abstained, out.expected)
        out.codes[:] = profile.answers[np.arange(n), n_abstained]
        least = (profile.values - profile.gap + penalty.counts).min(axis=1)
        out.gap[:] = np.where(profile.gap.any(axis=1), np.maximum(out.expected - least, 0.0), 0.0)

    def empty_profile(
        self, shape: tuple[int, int], *, with_gap: bool = False, with_answers: bool = False
    ) -> BlockProfile:
        """Return the arrays for the profile of n × m probabilities, not filled in; the gap, if any, is 0."""
        n, m = shape
        answers = np.empty((n, m + 1, m), self.prediction_type.code_type) if with_answers else None
        start = np.empty((n, m + 1), np.int32) if self.profile_has_start else None
        gap = np.zeros((n, m + 1)) if with_gap else None
        return BlockProfile(np.empty((n, m + 1)), np.empty((n, m), self.order_key_type), start, gap, answers)

    @abstractmethod
    def realized(self, block: Block, truth: NDArray[np.bool_], codes: Codes) -> Floats:
        """ℓ(y_D, ŷ_D) of each row, given the truth."""

    @abstractmethod
    def expected(self, block: Block, p: Any, codes: Codes) -> Floats:
        """E[ℓ(y_D, ŷ_D)] of each row, for independent labels with probabilities p and any answers."""

    def with_answer(self, codes: Codes, label: int) -> Codes:
        """Return the answers of an instance with each possible answer to an abstained label, a row each."""
        both = np.repeat(codes[np.newaxis], 2, axis=0)
        both[:, label] = 0, 1
        return both

    def savings(self, block: Block, p: Any, codes: Codes, rows: Counts, columns: Counts) -> Floats:
        """Return what reviews of abstained labels save: how much the best answer to one label alone would add to E[ℓ].

        The labels are given by rows and columns of the block, row by row. By default each label is tried with both
        answers; rankings have no such answers, and must override this method.
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
    """Return, for each row, the position in the loss's order at which its abstained labels start."""
    assert profile.start is not None
    return profile.start[np.arange(len(n_abstained)), n_abstained]


def read_parameter(value: Any, name: str, loss: Loss, accepted: str, valid: Callable[[float], bool]) -> float:
    """Return a parameter as a float; raise `InvalidLoss` that names it and says what is accepted."""
    if isinstance(value, bool) or not isinstance(value, Real) or not valid(float(value)):
        raise InvalidLoss(f"{type(loss).__name__}: {name} is {value!r}; expected {accepted}")
    return float(value)
