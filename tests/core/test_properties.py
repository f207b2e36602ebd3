"""The paper's properties."""

import numpy as np
import pytest
from scipy import sparse
from tests.oracles.monotonicity import assert_witness, slow_is_monotone
from tests.support import cases

import abstain

LABEL_LOSSES = [case for case in cases.LOSS_CASES if case[0] != "rank"]
PENALTIES = [
    *(case for case in cases.PENALTY_CASES if case[0] != "linear"),
    ("linear", 1),
    ("linear", 3),
]


@pytest.mark.parametrize("loss_case", LABEL_LOSSES, ids=str)
@pytest.mark.parametrize("penalty_case", PENALTIES, ids=str)
def test_monotone_as_by_brute_force(loss_case, penalty_case):
    m = 3 if loss_case[1] == 0 else 2
    loss, penalty = cases.make_loss(loss_case, m), cases.make_penalty(penalty_case, m)
    if penalty_case[0] == "perlabel" and not loss.is_decomposable:
        with pytest.raises(abstain.InvalidPenalty):
            abstain.is_monotone(loss, penalty, n_labels=m)
        return
    verdict = abstain.is_monotone(loss, penalty, n_labels=m)
    assert verdict.holds == slow_is_monotone(loss, penalty, m)
    if not verdict:
        assert_witness(verdict.witness, loss, penalty)


@pytest.mark.parametrize("m", [1, 5, 30])
def test_known_verdicts(m):
    assert abstain.is_monotone("hamming", 1.0, n_labels=m)
    assert not abstain.is_monotone("hamming", 1.1, n_labels=m)
    assert abstain.is_monotone("hamming", abstain.Concave(1.0), n_labels=m)
    if m > 1:
        verdict = abstain.is_monotone("f1", 0.1, n_labels=m)
        assert not verdict
        assert_witness(verdict.witness, "f1", 0.1)
    with pytest.raises(abstain.InvalidLoss, match="not defined"):
        abstain.is_monotone("rank", 0.1, n_labels=m)


@pytest.mark.parametrize("m", [0, -3, 2.5, "3", True])
def test_number_of_labels_is_checked(m):
    with pytest.raises(abstain.InvalidParameter, match=r"n_labels is .*; expected a whole number"):
        abstain.is_monotone("f1", 0.1, n_labels=m)


def test_scale_does_not_matter():
    assert abstain.is_monotone(abstain.Hamming(1e6 + 0.1, 1e6 + 0.1), 1e6 + 0.1, n_labels=500)
    assert not abstain.is_monotone(abstain.Hamming(1e-14, 1e-14), 1e-13, n_labels=3)


def test_too_many_labels_to_count():
    with pytest.raises(abstain.InvalidLoss, match="at most 100 labels"):
        abstain.is_monotone("f1", 0.1, n_labels=101)


@pytest.mark.parametrize("penalty", [0.05, 0.3, abstain.Concave(0.3), lambda a: 0.02 * a**2])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_hamming_and_subset_are_aligned(penalty, convert):
    p = convert(cases.random_probabilities(400, 8))
    assert abstain.is_uncertainty_aligned(p, abstain.decide(p, "hamming", penalty))
    assert abstain.is_uncertainty_aligned(p, abstain.decide(p, "subset", penalty))


def test_rank_is_not_aligned():
    p = np.array([[0.99, 0.98, 0.02, 0.01], [0.9, 0.8, 0.7, 0.3]])
    verdict = abstain.is_uncertainty_aligned(p, abstain.decide(p, "rank", 0.03))
    assert not verdict.holds
    witness = verdict.witness
    assert (witness.row, witness.answered_label, witness.abstained_label) == (1, 3, 1)
    assert witness.answered_uncertainty == pytest.approx(0.6)
    assert witness.abstained_uncertainty == pytest.approx(0.4)
    cheap = abstain.Hamming(false_negative=[1, 0.1], false_positive=[1, 0.1])
    assert not abstain.is_uncertainty_aligned([0.8, 0.5], abstain.decide([0.8, 0.5], cheap, 0.1))
    assert not abstain.is_uncertainty_aligned(sparse.csr_array(p), [[1, -1, 0, 0], [1, -1, 1, 0]])
