"""The review queue: abstained labels, the most valuable review first."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from abstain._core.belief import read_belief
from abstain._core.intervals import Intervals
from abstain._core.joint import Joint
from abstain._core.kernels.bounds import as_bounds
from abstain._core.losses import LossLike, as_loss
from abstain._core.prediction import ABSTAIN, Prediction
from abstain._core.review_answers import Answers, AnswerSource, read_answer
from abstain._core.tables import Axes
from abstain._core.truth import aligned_blocks, aligned_intervals, require_same_table
from abstain._utils.backends import is_lazy
from abstain._utils.errors import InvalidLabels, InvalidLoss, InvalidProbabilities
from abstain._utils.frames import make_frame
from abstain._utils.html import table
from abstain._utils.wording import plural
from abstain.review._joint_savings import savings_of_joint

SHOWN_ENTRIES = 8  # in the text and the table of a notebook


@dataclass(frozen=True, eq=False, repr=False)
class ReviewQueue(AnswerSource):
    """The labels that a prediction abstains on, in the order in which they should be reviewed. Made by `review_queue`.

    Each array has one entry for each of them. What saves most comes first; entries that save the same are in the order
    of their rows, and then of their labels. Answers come back by way of `with_answers`, or in the frame that `to_frame`
    returns, with a column ``answer``.

    Attributes
    ----------
    row, label : int array of shape (n_abstained,)
        The number of the row and of the label.
    probability : float array of shape (n_abstained,)
        The probability that the label is relevant.
    saves : float array of shape (n_abstained,)
        How much expected loss the review saves: what the best answer without it would cost.
    axes : Axes
        The names of rows and labels.
    answer : float array of shape (n_abstained,) or None
        1, 0 or NaN (not answered yet); None before `with_answers`.
    bounds : float array of shape (n_abstained, 2) or None
        The interval of the probability, of which `probability` is the midpoint; None where it is known.

    Examples
    --------
    >>> import abstain
    >>> p = [[0.97, 0.55, 0.08], [0.30, 0.04, 0.88]]
    >>> prediction = abstain.decide(p, penalty=0.2)
    >>> queue = abstain.review_queue(p, prediction)
    >>> answered = queue.with_answers([1, 0])  # in the order of the queue
    >>> prediction.fill(answered).labels
    array([[1, 1, 0],
           [0, 0, 1]], dtype=int8)
    """

    row: NDArray[np.int64]
    label: NDArray[np.int64]
    probability: NDArray[np.float64]
    saves: NDArray[np.float64]
    axes: Axes
    answer: NDArray[np.float64] | None = None
    bounds: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.row)

    @property
    def label_names(self) -> tuple[Hashable, ...] | None:
        """The names of the labels, if they are known."""
        return self.axes.label_names

    def with_answers(self, answers: Any) -> "ReviewQueue":
        """Return the queue with the answers of humans, one for each entry, in its order.

        Parameters
        ----------
        answers : sequence of 0, 1, or None or NaN for what is not answered yet

        Returns
        -------
        ReviewQueue
            `PartialPrediction.fill` takes it.
        """
        given = list(answers)
        if len(given) != len(self):
            raise InvalidLabels(f"answers: has {len(given)} for {len(self)} labels in the queue; None is no answer yet")
        read = [read_answer(value, f"answer {k}") for k, value in enumerate(given)]
        return replace(self, answer=np.array([np.nan if value is None else value for value in read], np.float64))

    def answers_for(self, axes: Axes) -> Answers:
        """Return the answers with the numbers of their rows and labels, for a prediction with these names."""
        if self.answer is None:
            raise InvalidLabels("answers: the queue has none yet; give them with queue.with_answers(answers)")
        axes.require_same(self.axes, "the queue")
        given = ~np.isnan(self.answer)
        return Answers(self.row[given], self.label[given], self.answer[given].astype(np.int8))

    def to_frame(self) -> Any:
        """Return a data frame with the columns id (the row's name, or its number), label, probability and saves.

        If the probabilities are intervals it has columns lower and upper, if there are answers a column answer too. It
        is of the library that the probabilities came in, pandas by default.
        """
        rows, labels = self._names()
        columns = {"id": rows.tolist(), "label": labels.tolist(), "probability": self.probability, "saves": self.saves}
        if self.bounds is not None:
            columns["lower"], columns["upper"] = self.bounds.T
        if self.answer is not None:
            columns["answer"] = self.answer
        return make_frame(columns, self.axes.library)

    def _names(self, first: int | None = None) -> tuple[Any, Any]:
        """Return the names of the rows and the labels of the first entries, or their numbers if they have no names."""
        row, label = self.row[:first], self.label[:first]
        names = self.label_names
        return (
            row if self.axes.index is None else np.asarray(self.axes.index)[row],
            label if names is None else np.array([names[j] for j in label], dtype=object),
        )

    def _summary(self) -> str:
        return f"ReviewQueue of {plural(len(self), 'label')}, saving {self.saves.sum():.4g} in all"

    def _repr_html_(self) -> str:
        names = zip(*self._names(SHOWN_ENTRIES), strict=True)
        numbers = zip(self.probability[:SHOWN_ENTRIES], self.saves[:SHOWN_ENTRIES], strict=True)
        rows = [
            (str(row), str(label), f"{p:.4g}", f"{saves:.4g}")
            for (row, label), (p, saves) in zip(names, numbers, strict=True)
        ]
        more = f"… {len(self) - SHOWN_ENTRIES} more" if len(self) > SHOWN_ENTRIES else ""
        return table(self._summary(), ["id", "label", "probability", "saves"], rows, more)

    def __repr__(self) -> str:
        lines = [self._summary()]
        rows, labels = self._names(SHOWN_ENTRIES)
        for row, label, p, saves in zip(rows, labels, self.probability, self.saves, strict=False):
            lines.append(f"  row {row}, label {label}: p = {p:.4g}, saves {saves:.4g}")
        return "\n".join([*lines, "  …"] if len(self) > SHOWN_ENTRIES else lines)


def review_queue(probabilities: Any, prediction: Any, *, loss: LossLike = "hamming") -> ReviewQueue:
    """Min_v E[ℓ(ŷ with label j := v)] − E[ℓ(ŷ)], what a review saves, for each abstained label j, the largest first.

    Without the review the machine would give its best guess: v is 1 or 0, whichever costs less, and for a ranking the
    place where the label does least harm. For Hamming it is min(fn·p, fp·(1 − p)); for the other losses it depends on
    the other answers of the instance, so that the savings of two reviews do not simply add up.

    Of a joint distribution (`Samples`, `Mixture`), an answer also informs about the other labels: what that saves, if
    the machine answered all of them, is added.

    Parameters
    ----------
    probabilities : array-like, frame, sparse matrix, Intervals, Samples or Mixture of shape (n_instances, n_labels)
        As for `abstain.decide`. With intervals, reviews save expected loss of the worst case.
    prediction : PartialPrediction, PartialRanking (for the rank loss), or array-like of shape (n_instances, n_labels)
        The answers: 1, 0, or −1 for an abstention.
    loss : str or Loss, default="hamming"
        As for `abstain.decide`.

    Returns
    -------
    ReviewQueue

    Examples
    --------
    >>> import abstain
    >>> p = [[0.97, 0.55, 0.08], [0.30, 0.04, 0.88]]
    >>> queue = review_queue(p, abstain.decide(p, penalty=0.2))
    >>> queue
    ReviewQueue of 2 labels, saving 0.75 in all
      row 0, label 1: p = 0.55, saves 0.45
      row 1, label 0: p = 0.3, saves 0.3
    """
    if is_lazy(probabilities, prediction):
        raise InvalidProbabilities(
            "review_queue needs data in memory: call compute() on the probabilities and the prediction first"
        )
    chosen, table = as_loss(loss), read_belief(probabilities)
    kind = chosen.prediction_type
    if isinstance(prediction, Prediction) and not isinstance(prediction, kind):
        raise InvalidLoss(f"{chosen!r} needs a {kind.__name__}; the prediction is a {type(prediction).__name__}")
    partial = prediction if isinstance(prediction, kind) else kind(prediction)
    require_same_table(table.axes, table.matrix, partial, "probabilities")
    chosen.check(table.n_labels)
    is_sparse = table.is_sparse or sparse.issparse(partial.codes)
    if is_sparse:
        chosen.accept_sparse()
    table.axes.require_labels(chosen.label_names, repr(chosen))
    if isinstance(table, Joint):
        chosen.accept_joint()
        row, label, saves = savings_of_joint(table, chosen, partial.to_dense())
        order = np.argsort(-saves, kind="stable")
        row, label = row[order], label[order]
        return ReviewQueue(row, label, table.matrix[row, label], saves[order], table.axes)
    if isinstance(table, Intervals):
        chosen.accept_intervals()
        blocks: Any = aligned_intervals(table.ends(), partial, chosen.entries_per_block)
    else:
        values = aligned_blocks(table.values(), partial, chosen.entries_per_block)
        blocks = ((block, part.astype(np.float64), codes) for block, part, codes in values)
    found = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((2, 0)), np.empty(0))]
    for block, p, codes in blocks:
        at, column = np.nonzero(codes == ABSTAIN)
        saves = chosen.savings(block, p, codes, at, column)
        found.append((*block.places(at, column), np.stack([end[at, column] for end in as_bounds(p)]), saves))
    row, label, bounds, saves = (np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True))
    # Blocks of a sparse table hold rows of similar length, so that their entries are not in the order of the table.
    order = np.lexsort((label, row, -saves)) if is_sparse else np.argsort(-saves, kind="stable")
    low, high = bounds[:, order]
    if isinstance(table, Intervals):
        ends = np.stack([low, high], axis=1)
        return ReviewQueue(row[order], label[order], (low + high) / 2, saves[order], table.axes, bounds=ends)
    return ReviewQueue(row[order], label[order], low, saves[order], table.axes)
