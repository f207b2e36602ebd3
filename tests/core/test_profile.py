"""Risk profiles and cost paths."""

import numpy as np
import pytest
from tests.support import cases

import abstain
from abstain._core.losses import LOSSES


def test_paper_example():
    """p = (.9, .8, .7, .3), c = .03: the profile and Table 2 of the paper, digit by digit."""
    p = [0.9, 0.8, 0.7, 0.3]
    profile = abstain.risk_profile(p, loss="rank")
    by_ranked = profile.values[0][::-1]
    np.testing.assert_allclose(by_ranked, [0.0, np.inf, 0.03, 0.17, 0.47], rtol=0, atol=1e-15)
    np.testing.assert_allclose(by_ranked + 0.03 * np.arange(4, -1, -1), [0.12, np.inf, 0.09, 0.20, 0.47], atol=1e-15)
    ranking = profile.decide(0.03)
    assert ranking.positions.tolist() == [[0, -1, -1, 1]]
    assert ranking.expected_loss[0] == pytest.approx(0.09, abs=1e-15)
    assert [profile.decide(cost).n_abstained[0] for cost in (0.01, 0.02, 0.15, 0.3)] == [4, 2, 1, 0]
    hamming = abstain.decide(p, "hamming", 0.25)
    assert hamming.labels.tolist() == [[1, 1, -1, -1]]


@pytest.mark.parametrize("loss_case", cases.LOSS_CASES, ids=str)
def test_path_agrees_with_decisions_everywhere(loss_case):
    m = 6
    p = cases.random_probabilities(200, m)
    profile = abstain.risk_profile(p, loss=cases.make_loss(loss_case, m))
    path = profile.path()
    costs = np.concatenate([[0.0], path.break_points[:: max(1, len(path.break_points) // 40)]])
    between = (costs[1:] + costs[:-1]) / 2
    for cost in np.concatenate([costs, between, costs * 1.001, [1e3]]):
        totals = profile.values + cost * np.arange(m + 1)
        chosen = totals[np.arange(200), path.at(cost)]
        np.testing.assert_allclose(chosen, totals.min(axis=1), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(profile.decide(cost).expected_loss, totals.min(axis=1), rtol=1e-11, atol=1e-11)
    for i in range(200):
        assert path.costs(i)[0] == 0
        assert (np.diff(path.costs(i)) > 0).all()
        assert (np.diff(path.n_abstained(i)) < 0).all()
        assert path.n_abstained(i)[-1] == 0
        steps = path.costs(i)[1:]
        slopes = -np.diff(profile.values[i, path.n_abstained(i)]) / np.diff(path.n_abstained(i))
        np.testing.assert_allclose(steps, slopes, rtol=1e-9)


def test_path_of_hamming_is_the_sorted_uncertainty():
    path = abstain.risk_profile([0.9, 0.2, 0.7, 0.4], loss="hamming").path()
    np.testing.assert_allclose(path.costs(0), [0, 0.1, 0.2, 0.3, 0.4])
    assert path.n_abstained(0).tolist() == [4, 3, 2, 1, 0]
    assert path.at(0.3).tolist() == [1], "at a break point the label is answered"
    with pytest.raises(abstain.InvalidPenalty, match="cost is -1"):
        path.at(-1)
    with pytest.raises(abstain.InvalidPenalty, match="cost is 'x'"):
        path.at("x")
    assert "4 break points" in repr(path)
    np.testing.assert_array_equal(path.costs(-1), path.costs(0))
    with pytest.raises(IndexError):
        path.costs(1)


@pytest.mark.parametrize(
    ("p", "loss", "cost"),
    [
        ([0.5, 0.3], abstain.Hamming([1e12, 1], [1e12, 1]), 0.1),
        (np.random.default_rng(0).beta(0.1, 0.1, 100), abstain.Rank(), 1e-12),
        (np.random.default_rng(0).beta(0.5, 0.5, 2000), abstain.Rank(), 1e-9),
        (0.3 + 1e-12 * np.arange(1000), abstain.Hamming(), 0.3 + 5e-10),
        (np.random.default_rng(0).beta(0.3, 0.3, 1000), abstain.FMeasure(), 3e-4),
    ],
)
def test_path_is_exact_at_every_scale(p, loss, cost):
    profile = abstain.risk_profile(p, loss=loss)
    totals = profile.values[0] + cost * np.arange(len(p) + 1)
    assert totals[profile.path().at(cost)[0]] == pytest.approx(totals.min(), rel=1e-11)
    assert profile.decide(cost).expected_loss[0] == pytest.approx(totals.min(), rel=1e-11)


@pytest.mark.parametrize("loss", LOSSES)
def test_probabilities_that_change_meanwhile_do_no_harm(loss):
    p = np.random.default_rng(0).random((2000, 50))
    profile = abstain.risk_profile(p, loss=loss)
    p[:] = 0
    assert profile.decide(0.2).shape == (2000, 50)


def test_values_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        abstain.risk_profile([0.5, 0.5]).values[:] = 0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("m", [3, 100])
def test_threads_do_not_matter(loss, m, monkeypatch):
    p = cases.random_probabilities(6000, m)
    found = []
    for count in ("1", "2", "7"):
        monkeypatch.setenv("ABSTAIN_NUM_THREADS", count)
        direct = abstain.decide(p, loss, abstain.Concave(0.1))
        profile = abstain.risk_profile(p, loss=loss)
        found.append((direct.codes.tobytes(), direct.expected_loss.tobytes(), profile.values.tobytes()))
    assert found[0] == found[1] == found[2]


def test_repr():
    assert repr(abstain.risk_profile([[0.5, 0.5]], loss="f1")) == (
        "RiskProfile of 1 instance × 2 labels for FMeasure(beta=1, zero_division=1)"
    )
