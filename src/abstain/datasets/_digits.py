"""Pairs of handwritten digits: a multi-label data set that needs no download, with adjustable noise."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.utils import Bunch, check_random_state

from abstain._utils.errors import InvalidParameter
from abstain._utils.extras import optional
from abstain.datasets._bunch import MultiLabelBunch

DIGIT_SIZE = 8  # pixels
MAX_BRIGHTNESS = 16
TRAIN_SHARE = 0.6
"""The share of scikit-learn's digits, the first ones, that is for training; the others are for testing."""
SUBSETS = "train", "test", "all"


def load_digit_pairs(
    *,
    n_samples: int = 3000,
    subset: str = "train",
    noise: float = 4.0,
    overlap: int = 2,
    random_state: Any = 0,
    as_frame: bool = False,
) -> Bunch:
    """Return pictures of two handwritten digits side by side, with noise; the labels are the digits that are present.

    The digits are scikit-learn's (8 × 8 pixels from 0 to 16). Where two of them overlap, the brighter pixel is seen.
    Two different digits are two labels, the same digit twice is one.

    Parameters
    ----------
    n_samples : int, default=3000
        Number of pictures.
    subset : {"train", "test", "all"}, default="train"
        From which digits the pictures are made. Those of "train" and "test" have no digit in common, so that an
        evaluation on the latter is honest.
    noise : float, default=4.0
        Standard deviation of the Gaussian noise that is added to each pixel; 0 for none.
    overlap : int, default=2
        Number of columns of pixels that the two digits share, 0 to 8.
    random_state : int, RandomState or None, default=0
        Draws the digits and the noise.
    as_frame : bool, default=False
        Give pandas frames instead of arrays.

    Returns
    -------
    bunch : Bunch
        ``data`` (n, 8 · (16 − overlap)), ``target`` (n, 10), uint8, ``feature_names``, ``target_names``, ``images``
        (n, 8, 16 − overlap) and ``DESCR``.

    Examples
    --------
    >>> from abstain.datasets import load_digit_pairs
    >>> pairs = load_digit_pairs(n_samples=500)
    >>> pairs.data.shape, pairs.images.shape, pairs.target.shape
    ((500, 112), (500, 8, 14), (500, 10))
    >>> pairs.target[0]
    array([1, 0, 0, 0, 0, 0, 0, 0, 1, 0], dtype=uint8)
    >>> sorted({int(n) for n in pairs.target.sum(axis=1)})
    [1, 2]
    """
    _require(_is(Integral, n_samples) and n_samples > 0, "n_samples", n_samples, "a whole number > 0")
    _require(subset in SUBSETS, "subset", subset, f"one of {', '.join(map(repr, SUBSETS))}")
    _require(_is(Real, noise) and 0 <= noise < np.inf, "noise", noise, "a finite number ≥ 0")
    _require(
        _is(Integral, overlap) and 0 <= overlap <= DIGIT_SIZE, "overlap", overlap, f"a whole number, 0 to {DIGIT_SIZE}"
    )
    random = check_random_state(random_state)

    digits = load_digits()
    chosen = _digits_of(subset, len(digits.target))
    left, right = random.choice(chosen, size=(2, n_samples))
    images = _side_by_side(digits.images[left], digits.images[right], overlap)
    images += random.normal(scale=noise, size=images.shape)
    target = np.zeros((n_samples, 10), np.uint8)
    target[np.arange(n_samples), digits.target[left]] = 1
    target[np.arange(n_samples), digits.target[right]] = 1
    bunch = MultiLabelBunch(
        data=images.reshape(n_samples, -1),
        target=target,
        feature_names=[f"pixel_{r}_{c}" for r in range(DIGIT_SIZE) for c in range(images.shape[2])],
        target_names=[str(digit) for digit in range(10)],
        images=images,
        DESCR=(
            f"Pairs of scikit-learn's handwritten digits ({subset}), {overlap} columns of pixels shared, with Gaussian "
            f"noise of standard deviation {noise:g} on pixels from 0 to {MAX_BRIGHTNESS}. The labels are the digits "
            "present."
        ),
    )
    return _as_frames(bunch) if as_frame else bunch


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _require(is_valid: bool, name: str, value: Any, expected: str) -> None:
    if not is_valid:
        raise InvalidParameter(f"{name} is {value!r}; expected {expected}")


def _digits_of(subset: str, n_digits: int) -> NDArray[np.intp]:
    cut = int(TRAIN_SHARE * n_digits)
    first, last = {"train": (0, cut), "test": (cut, n_digits), "all": (0, n_digits)}[subset]
    return np.arange(first, last)


def _side_by_side(left: NDArray[Any], right: NDArray[Any], overlap: int) -> NDArray[np.float64]:
    images = np.zeros((len(left), DIGIT_SIZE, 2 * DIGIT_SIZE - overlap))
    images[:, :, :DIGIT_SIZE] = left
    images[:, :, DIGIT_SIZE - overlap :] = np.maximum(images[:, :, DIGIT_SIZE - overlap :], right)
    return images


def _as_frames(bunch: Bunch) -> Bunch:
    pd = optional("pandas", "as_frame needs pandas")
    bunch.data = pd.DataFrame(bunch.data, columns=bunch.feature_names)
    bunch.target = pd.DataFrame(bunch.target, columns=bunch.target_names)
    return bunch
