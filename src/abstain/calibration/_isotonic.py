"""Calibration by isotonic regression, and by Venn–Abers prediction, which also gives intervals."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from abstain._utils.errors import InvalidDataset
from abstain._utils.types import Floats
from abstain.calibration._groups import LIMIT, WIDTH, Groups
from abstain.calibration._kernels import isotonic, venn_abers
from abstain.calibration._logistic import Sigmoid
from abstain.calibration._method import Method

PRIOR_EXAMPLES = 200.0  # a label with so many examples of its rarer class is half pooled sigmoid, half its own curve
STRIDE = 4 * LIMIT  # between labels, when the curves of all labels are one function


@dataclass(frozen=True)
class Curves:
    """A function for each label, given by values at increasing points.

    Attributes
    ----------
    indptr : int array of shape (n_labels + 1,)
        The points of label j are indptr[j] … indptr[j + 1] − 1.
    x : float array
    values : float array of shape (n_points,) or (n_points, 2)
    """

    indptr: NDArray[np.int64]
    x: Floats
    values: Floats

    @classmethod
    def compressed(cls, labels: NDArray[np.int64], x: Floats, values: Floats, n_labels: int, *, ends: bool) -> Self:
        """Return curves without superfluous points: of equal values the first is kept, with `ends` also the last."""
        new = (np.diff(labels) != 0) | np.any(np.diff(values.reshape(len(x), -1), axis=0) != 0, axis=1)
        kept = np.concatenate([[True], new])
        if ends:
            kept |= np.concatenate([new, [True]])
        indptr = np.searchsorted(labels[kept], np.arange(n_labels + 1)).astype(np.int64)
        return cls(indptr, x[kept], values[kept])

    @classmethod
    def of(cls, each: list[tuple[Floats, Floats]]) -> Self:
        """Return the curves with the given points and values of each label."""
        indptr = np.concatenate([[0], np.cumsum([len(x) for x, _ in each])]).astype(np.int64)
        return cls(indptr, np.concatenate([x for x, _ in each]), np.concatenate([values for _, values in each]))

    def interpolate(self, x: Floats, labels: NDArray[np.intp]) -> Floats:
        """Return the values between the points."""
        shift = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr)) * STRIDE
        return np.interp(x + labels * STRIDE, self.x + shift, self.values)

    def step(self, x: Floats, labels: NDArray[np.intp]) -> Floats:
        """Return the values at the last points that are not greater."""
        shift = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr)) * STRIDE
        found = np.searchsorted(self.x + shift, x + labels * STRIDE, side="right") - 1
        return self.values[np.maximum(found, self.indptr[labels])]

    def of_label(self, j: int) -> tuple[list[float], list[Any]]:
        """Return the points and the values of one label."""
        part = slice(self.indptr[j], self.indptr[j + 1])
        return self.x[part].tolist(), self.values[part].tolist()


@dataclass(frozen=True)
class CurveMethod(Method):
    """A curve for each label, drawn towards the pooled sigmoid: the fewer examples a label has, the more.

    Attributes
    ----------
    sigmoid : Sigmoid
    share : float array of shape (n_labels,)
        The share of the label's own curve, n / (n + 200) for n examples of the rarer class; the rest is the sigmoid's.
    curves : Curves
    """

    sigmoid: Sigmoid
    share: Floats
    curves: Curves

    FIELDS: ClassVar[dict[str, int]] = {**Sigmoid.FIELDS, "share": 0, "x": 1, "values": 1}
    VALUES_PER_POINT: ClassVar[tuple[int, ...]] = ()

    @classmethod
    def fit(cls, groups: Groups, start: Self | None = None) -> Self:
        """Learn the sigmoids, and the curve of each label."""
        sigmoid = Sigmoid.fit(groups, None if start is None else start.sigmoid)
        total, relevant = groups.totals()
        examples = np.minimum(relevant, total - relevant)
        curves = cls._curves(groups.with_all_labels())
        return cls(sigmoid.low, sigmoid.high, sigmoid, examples / (examples + PRIOR_EXAMPLES), curves)

    @classmethod
    @abstractmethod
    def _curves(cls, groups: Groups) -> Curves:
        """Return the curves of all labels; each has at least one group."""

    def label_to_dict(self, j: int) -> dict[str, Any]:
        """Return the parameters of one label."""
        x, values = self.curves.of_label(j)
        return self.sigmoid.label_to_dict(j) | {"share": float(self.share[j]), "x": x, "values": values}

    @classmethod
    def from_dicts(cls, labels: list[dict[str, Any]]) -> Self:
        """Return the method with the given parameters of each label."""
        sigmoid = Sigmoid.from_dicts(labels)
        share = np.array([label["share"] for label in labels], np.float64)
        curves = Curves.of([(np.array(label["x"], float), np.array(label["values"], float)) for label in labels])
        return cls(sigmoid.low, sigmoid.high, sigmoid, share, curves)

    @classmethod
    def check_label(cls, label: dict[str, Any], where: str) -> None:
        """Raise `InvalidDataset` if the points of the curve do not increase, or its values are no probabilities."""
        Sigmoid.check_label(label, where)
        x, values = np.array(label["x"]), np.array(label["values"], dtype=object)
        if values.shape != (len(x), *cls.VALUES_PER_POINT) or np.any(np.diff(x) < 0):
            raise InvalidDataset(f"{where}: x and values must be as many, and x increase")
        if not 0 <= label["share"] <= 1 or values.min() < 0 or values.max() > 1 or np.any(np.diff(values, axis=0) < 0):
            raise InvalidDataset(f"{where}: share and values must be numbers from 0 to 1, and values increase")


class Isotonic(CurveMethod):
    """Isotonic regression of each label (Zadrozny & Elkan 2002), mixed with the pooled sigmoid."""

    name = "isotonic"

    @classmethod
    def _curves(cls, groups: Groups) -> Curves:
        """Return the ends of each level, between which a curve is interpolated, as scikit-learn does."""
        values = np.empty(len(groups.weight))
        isotonic(groups.weight, groups.relevant, groups.indptr, _blocks(len(values)), values)
        return Curves.compressed(groups.labels, groups.scores, values, groups.n_labels, ends=True)

    def _probabilities(self, x: Floats, labels: NDArray[np.intp]) -> Floats:
        share, smooth = self.share[labels], self.sigmoid.probabilities(x, labels)
        return smooth + share * (self.curves.interpolate(x, labels) - smooth)


class VennAbers(CurveMethod):
    """Inductive Venn–Abers prediction of each label (Vovk, Petej & Fedorova 2015): two probabilities for each score.

    They are isotonic regressions with the new instance added, once as irrelevant and once as relevant. The probability
    is p₁ / (1 − p₀ + p₁), mixed with the pooled sigmoid. The interval between them is each label's own, wide for rare
    labels; where the probability is outside, the interval is extended to it.
    """

    name = "venn-abers"
    FIELDS: ClassVar[dict[str, int]] = {**CurveMethod.FIELDS, "values": 2}
    VALUES_PER_POINT = (2,)

    @classmethod
    def _curves(cls, groups: Groups) -> Curves:
        """Return steps: the bin of each group, and the gap after it, each from its lower edge on."""
        n = len(groups.weight)
        values = np.empty((2 * n, 2))
        venn_abers(groups.weight, groups.relevant, groups.indptr, _blocks(n), _blocks(n), values)
        bins = np.rint((groups.scores + LIMIT) / WIDTH)
        edges = np.column_stack([bins - 0.5, bins + 0.5]).ravel() * WIDTH - LIMIT
        return Curves.compressed(np.repeat(groups.labels, 2), edges, values, groups.n_labels, ends=False)

    def intervals(self, x: Floats, labels: NDArray[np.intp]) -> Floats:
        """Return the two probabilities of each entry, along a last axis."""
        both, p = (
            self.curves.step(np.clip(x, self.low[labels], self.high[labels]), labels),
            self.probabilities(x, labels),
        )
        return np.stack([np.minimum(both[..., 0], p), np.maximum(both[..., 1], p)], axis=-1)

    def _probabilities(self, x: Floats, labels: NDArray[np.intp]) -> Floats:
        both = self.curves.step(x, labels)
        lower, upper = both[..., 0], both[..., 1]
        smooth = self.sigmoid.probabilities(x, labels)
        return smooth + self.share[labels] * (upper / (1.0 - lower + upper) - smooth)


def _blocks(n: int) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return room for the blocks that adjacent groups are pooled to."""
    return np.empty(n), np.empty(n), np.empty(n, np.int64)
