"""What is accepted as a loss, and the errors for everything else."""

import numpy as np
import pandas as pd
import pytest
from tests.support.cases import random_probabilities

import abstain
from abstain.metrics import expected_generalized_loss

P = random_probabilities(50, 7)


def test_costs_given_by_name_are_held_to_them():
    frame = pd.DataFrame([[0.9, 0.5], [0.3, 0.8]], columns=["sky", "sea"])
    costs = pd.Series({"sea": 0.3, "sky": 0.1})
    for call in (
        lambda: abstain.decide(frame, penalty=abstain.PerLabel(costs)),
        lambda: abstain.decide(frame, penalty=abstain.PerLabel(costs) + 0.1),
        lambda: abstain.decide(frame, abstain.Hamming(false_positive=costs)),
        lambda: abstain.risk_profile(frame, loss=abstain.Hamming(false_positive=costs)),
        lambda: expected_generalized_loss(frame, abstain.decide(frame), loss=abstain.Hamming(costs), penalty=0.1),
        lambda: expected_generalized_loss(
            frame, abstain.decide(frame), loss="hamming", penalty=abstain.PerLabel(costs)
        ),
    ):
        with pytest.raises(abstain.InvalidLabels, match="the same labels in another order: column 0 is 'sea'"):
            call()
    with pytest.raises(abstain.InvalidLoss, match="name different labels"):
        abstain.Hamming(costs, costs[["sky", "sea"]])
    named, plain = abstain.PerLabel(costs[["sky", "sea"]]), abstain.PerLabel([0.1, 0.3])
    np.testing.assert_array_equal(
        abstain.decide(frame, penalty=named).labels, abstain.decide(frame, penalty=plain).labels
    )


def test_unknown_loss():
    with pytest.raises(abstain.InvalidLoss, match="'hammming'; expected one of 'f1', 'hamming', 'jaccard'"):
        abstain.decide(P, "hammming")
    with pytest.raises(abstain.InvalidLoss, match="expected one of"):
        abstain.decide(P, abstain.Hamming)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: abstain.Hamming(false_negative=-1), "false_negative is -1"),
        (lambda: abstain.Hamming(false_positive=[1, np.nan]), "false_positive of label 1 is nan"),
        (lambda: abstain.Hamming(false_positive=[[1]]), "shape"),
        (lambda: abstain.Hamming(false_positive="x"), "must be numbers"),
        (lambda: abstain.decide(P, abstain.Hamming([1, 2, 3])), "false_negative has 3 costs for 7 labels"),
        (lambda: abstain.FMeasure(beta=0), "beta is 0; expected a finite number > 0"),
        (lambda: abstain.FMeasure(beta=np.inf), "beta is inf"),
        (lambda: abstain.FMeasure(beta="1"), "beta is '1'"),
        (lambda: abstain.FMeasure(zero_division=0.5), "zero_division is 0.5; expected 0 or 1"),
        (lambda: abstain.Jaccard(zero_division="warn"), "zero_division is 'warn'"),
    ],
)
def test_bad_loss(make, message):
    with pytest.raises(abstain.InvalidLoss, match=message):
        make()
