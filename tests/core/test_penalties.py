"""What is accepted as a penalty, and the errors for everything else."""

import numpy as np
import pytest
from tests.support.cases import random_probabilities

import abstain
from abstain._core.losses import LOSSES

P = random_probabilities(50, 7)


@pytest.mark.parametrize("penalty", [1e308, 10**400, abstain.Concave(1e308), abstain.PerLabel([1e308] * 7) + 1e308])
def test_huge_costs_forbid_abstention(penalty):
    assert not abstain.decide(P, penalty=penalty).n_abstained.any()


@pytest.mark.parametrize(
    ("penalty", "message"),
    [
        (-0.1, "cost is -0.1; expected a number ≥ 0"),
        (np.nan, "cost is nan"),
        ("0.1", "penalty is '0.1'; a penalty is"),
        (True, "penalty is True"),
        ([0.0, 0.1], "has 2 values; 7 labels need 8"),
        ([0.5] * 8, r"f\(0\) is 0.5"),
        ([0, 1, 2, np.nan, 4, 5, 6, 7], r"f\(3\) is nan"),
        ([0, 1, 2, -3, 4, 5, 6, 7], r"f\(3\) is -3"),
        ([0, 1, 2, 3, 4, 5, 6, np.inf], r"f\(7\) is inf"),
        (lambda a: a - 1, r"function <lambda>: f\(0\) is -1"),
        (lambda a: -a, r"f\(1\) is -1"),
        (lambda a: "x", "expected numbers"),
        (np.zeros((2, 4)), "expected one row of numbers"),
        ({"cost": 1}, r"penalty is {'cost': 1}; a penalty is a number"),
    ],
)
def test_bad_penalty(penalty, message):
    with pytest.raises(abstain.InvalidPenalty, match=message):
        abstain.decide(P, penalty=penalty)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: abstain.PerLabel([0.1, -0.2]), "cost of label 1 is -0.2"),
        (lambda: abstain.PerLabel([0.1, np.inf]), "cost of label 1 is inf"),
        (lambda: abstain.PerLabel(0.1), "one row of numbers"),
        (lambda: abstain.PerLabel([0.1]) + abstain.PerLabel([0.1]), "must count abstentions"),
        (lambda: abstain.PerLabel([0.1]) + 0.1 + 0.1, "already carries"),
        (lambda: abstain.decide(P, penalty=abstain.PerLabel([0.1])), "has 1 costs for 7 labels"),
        (lambda: abstain.risk_profile(P).decide(abstain.PerLabel([0.1] * 7)), "use abstain.decide"),
        (lambda: abstain.Linear("cheap"), "cost is 'cheap'"),
    ],
)
def test_bad_penalty_object(make, message):
    with pytest.raises(abstain.InvalidPenalty, match=message):
        make()


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - {"hamming"}))
def test_per_label_costs_are_refused_with_the_reason(loss):
    with pytest.raises(abstain.InvalidPenalty, match="not a sum over labels"):
        abstain.decide(P, loss, abstain.PerLabel([0.1] * 7))


def test_penalties_may_be_added_from_either_side():
    costs = abstain.PerLabel([0.1] * 7)
    assert repr(costs + abstain.Concave(0.3)) == repr(abstain.Concave(0.3) + costs)
    assert repr(0.5 + costs) == repr(costs + abstain.Linear(0.5))
