"""Pairs of digits: what is in the picture is what the labels say."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_digits

from abstain import InvalidParameter
from abstain.datasets import load_digit_pairs

DIGITS = load_digits()


def source_of(picture, candidates):
    """Which digit a noiseless half shows."""
    return np.flatnonzero((DIGITS.images[candidates] == picture).all(axis=(1, 2)))


@pytest.mark.parametrize("overlap", [0, 2, 5, 8])
def test_shapes(overlap):
    pairs = load_digit_pairs(n_samples=50, overlap=overlap)
    assert pairs.images.shape == (50, 8, 16 - overlap)
    assert pairs.data.shape == (50, 8 * (16 - overlap))
    np.testing.assert_array_equal(pairs.data, pairs.images.reshape(50, -1))
    assert len(pairs.feature_names) == pairs.data.shape[1]
    assert pairs.feature_names[16 - overlap] == "pixel_1_0"
    assert pairs.target.dtype == np.uint8
    assert pairs.target_names == list("0123456789")
    assert f"{overlap} columns" in pairs.DESCR


@pytest.mark.parametrize("subset", ["train", "test", "all"])
def test_labels_are_the_digits_in_the_picture(subset):
    pairs = load_digit_pairs(n_samples=200, subset=subset, noise=0, overlap=0)
    for image, target in zip(pairs.images, pairs.target, strict=True):
        shown = set()
        for half in (image[:, :8], image[:, 8:]):
            (digit,) = {int(DIGITS.target[i]) for i in source_of(half, slice(None))}
            shown.add(digit)
        assert shown == set(np.flatnonzero(target))


def test_train_and_test_share_no_digit():
    cut = int(0.6 * len(DIGITS.target))
    for subset, allowed in (("train", slice(None, cut)), ("test", slice(cut, None))):
        pairs = load_digit_pairs(n_samples=300, subset=subset, noise=0, overlap=0)
        for image in pairs.images:
            assert len(source_of(image[:, :8], allowed))
            assert len(source_of(image[:, 8:], allowed))


def test_the_brighter_pixel_is_seen():
    apart, close = (load_digit_pairs(n_samples=30, noise=0, overlap=overlap).images for overlap in (0, 3))
    np.testing.assert_array_equal(close[:, :, :5], apart[:, :, :5])
    np.testing.assert_array_equal(close[:, :, 5:8], np.maximum(apart[:, :, 5:8], apart[:, :, 8:11]))


def test_noise_is_as_asked():
    clean, noisy = (load_digit_pairs(n_samples=2000, noise=noise).data for noise in (0, 3))
    assert np.std(noisy - clean) == pytest.approx(3, rel=0.01)
    assert np.mean(noisy - clean) == pytest.approx(0, abs=0.05)


def test_repeatable():
    np.testing.assert_array_equal(
        load_digit_pairs(n_samples=20).data, load_digit_pairs(n_samples=20, random_state=0).data
    )
    assert (load_digit_pairs(n_samples=20).data != load_digit_pairs(n_samples=20, random_state=1).data).any()
    generator = np.random.RandomState(0)
    np.testing.assert_array_equal(
        load_digit_pairs(n_samples=20, random_state=generator).data, load_digit_pairs(n_samples=20).data
    )


def test_frames():
    pairs, plain = load_digit_pairs(n_samples=20, as_frame=True), load_digit_pairs(n_samples=20)
    assert list(pairs.data.columns) == pairs.feature_names
    np.testing.assert_array_equal(pairs.target[list("0123456789")].to_numpy(), plain.target)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples is 0; expected a whole number > 0"),
        ({"n_samples": 2.5}, "n_samples is 2.5"),
        ({"n_samples": True}, "n_samples is True"),
        ({"subset": "validation"}, "subset is 'validation'; expected one of 'train', 'test', 'all'"),
        ({"noise": -1}, "noise is -1; expected a finite number ≥ 0"),
        ({"noise": np.nan}, "noise is nan"),
        ({"noise": "loud"}, "noise is 'loud'"),
        ({"overlap": 9}, "overlap is 9; expected a whole number, 0 to 8"),
        ({"overlap": 1.5}, "overlap is 1.5"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InvalidParameter, match=re.escape(message)):
        load_digit_pairs(**arguments)
    with pytest.raises(ValueError, match="seed"):  # scikit-learn's
        load_digit_pairs(random_state="x")
