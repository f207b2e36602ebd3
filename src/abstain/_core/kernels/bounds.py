"""What kernels decide from: the lower and the upper ends of intervals of probabilities; both are p for a known p.

Answers are judged by their worst case. The worst probability of a label that is answered 1, or ranked among the first,
is the lower end of its interval; of one that is answered 0, or ranked among the last, it is the upper end.
"""

from typing import Any, NamedTuple

from numpy.typing import NDArray


class Bounds(NamedTuple):
    """The ends of intervals of probabilities, n × m each, or one for each stored entry of sparse rows.

    Attributes
    ----------
    low : float array
        The probability that a label counts with where it is answered 1, or ranked among the first.
    high : float array
        The probability that it counts with where it is answered 0, or ranked among the last.
    """

    low: NDArray[Any]
    high: NDArray[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of labels."""
        n, m = self.low.shape
        return n, m

    @property
    def size(self) -> int:
        """The number of intervals."""
        return self.low.size

    @property
    def swapped(self) -> "Bounds":
        """The ends the other way round: what is the worst case becomes the best case."""
        return Bounds(self.high, self.low)

    def take(self, rows: Any) -> "Bounds":
        """Return some of the rows."""
        return Bounds(self.low[rows], self.high[rows])


def as_bounds(p: Any) -> Bounds:
    """Return the bounds themselves, or known probabilities as intervals of width 0."""
    return p if isinstance(p, Bounds) else Bounds(p, p)
