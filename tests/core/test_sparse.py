"""Sparse probabilities: the same answers as the dense ones, and only what is stored is stored."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from tests.support import cases

import abstain
from abstain._core.blocks import packed_blocks
from abstain._core.losses import LOSSES
from abstain.metrics import expected_generalized_loss, generalized_loss

NONDECREASING = [
    lambda m: 0.0,
    lambda m: 0.1,
    lambda m: abstain.Concave(0.3),
    lambda m: lambda a: 0.01 * a**2,
    lambda m: [0.0] + [0.2] * m,
    lambda m: "none",
]


def random_sparse(n=300, m=40, density=0.15, seed=0):
    """Rows from empty to full, explicit zeros, ½ and 1 among the entries."""
    rng = np.random.default_rng(seed)
    dense = cases.random_probabilities(n, m, seed).copy()
    stored = rng.random((n, m)) < np.linspace(0, 2 * density, n)[:, None]
    stored[-1], stored[0], stored[1] = True, False, False
    stored[1, m // 2] = True
    dense[~stored] = 0.0
    rows, columns = stored.nonzero()
    return sparse.csr_array((dense[rows, columns], (rows, columns)), shape=(n, m)), dense


@pytest.mark.parametrize("loss_case", cases.LOSS_CASES, ids=str)
@pytest.mark.parametrize("penalty", NONDECREASING)
@pytest.mark.parametrize("m", [1, 2, 3, 40])
def test_sparse_equals_dense(loss_case, penalty, m):
    matrix, dense = random_sparse(m=m)
    loss, cost = cases.make_loss(loss_case, m), penalty(m)
    here, there = abstain.decide(matrix, loss, cost), abstain.decide(dense, loss, cost)
    assert sparse.issparse(here.codes)
    np.testing.assert_allclose(here.expected_loss, there.expected_loss, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(here.n_abstained, there.n_abstained)
    again = expected_generalized_loss(matrix, here, loss=loss, penalty=cost, per_instance=True)
    np.testing.assert_allclose(again, here.expected_loss, rtol=0, atol=1e-11)
    if not loss.gives_rankings:
        np.testing.assert_array_equal(here.labels.toarray(), there.labels)
        assert set(np.unique(here.labels.data)) <= {-1, 1}
        assert here.labels.nnz == np.count_nonzero(there.labels)


@pytest.mark.parametrize(
    "costs", [abstain.PerLabel(np.linspace(0, 0.4, 40)), abstain.PerLabel([0.1] * 40) + abstain.Concave(0.2)]
)
def test_label_costs(costs):
    matrix, dense = random_sparse()
    loss = abstain.Hamming(np.linspace(0.5, 2, 40), 1.0)
    here, there = abstain.decide(matrix, loss, costs), abstain.decide(dense, loss, costs)
    np.testing.assert_array_equal(here.labels.toarray(), there.labels)
    np.testing.assert_allclose(here.expected_loss, there.expected_loss, rtol=0, atol=1e-12)
    truth = np.random.default_rng(0).random(dense.shape) < 0.1
    for y in (truth, sparse.csr_array(truth)):
        assert generalized_loss(y, here, loss=loss, penalty=costs) == pytest.approx(
            generalized_loss(truth, there, loss=loss, penalty=costs)
        )


@pytest.mark.parametrize("loss_case", cases.LOSS_CASES, ids=str)
def test_profile_path_and_decisions(loss_case):
    matrix, dense = random_sparse()
    loss = cases.make_loss(loss_case, 40)
    if getattr(loss, "zero_division", 1) == 0:
        with pytest.raises(abstain.InvalidLoss, match="zero_division"):
            abstain.risk_profile(matrix, loss=loss)
        return
    here, there = abstain.risk_profile(matrix, loss=loss), abstain.risk_profile(dense, loss=loss)
    assert here.values.nnz <= matrix.nnz
    allowed = np.isfinite(there.values)
    np.testing.assert_allclose(here.values.toarray()[allowed], there.values[allowed], rtol=0, atol=1e-11)
    np.testing.assert_array_equal(here.decide(0.1).n_abstained, there.decide(0.1).n_abstained)
    for cost in (0.0, 0.01, 0.07, 0.2, 0.6):
        np.testing.assert_array_equal(here.path().at(cost), there.path().at(cost))


def test_full_abstention_covers_what_is_not_stored():
    """With 0/0 = 0 an answer of zeros is worth nothing, so the best answer may be none at all, on every label."""
    matrix = sparse.csr_array(([0.2], ([0], [3])), shape=(2, 1000))
    prediction = abstain.decide(matrix, abstain.FMeasure(zero_division=0), 1e-4)
    assert prediction.n_abstained.tolist() == [1000, 1000]
    assert prediction.expected_loss == pytest.approx([0.1, 0.1])
    assert abstain.decide(matrix, "f1", 1e-4).n_abstained.tolist() == [1, 0]


def test_falling_penalty_is_refused():
    matrix, _ = random_sparse()
    falling = [0.0] + [0.5] * 39 + [0.1]
    for call in (lambda: abstain.decide(matrix, "f1", falling), lambda: abstain.risk_profile(matrix).decide(falling)):
        with pytest.raises(abstain.InvalidPenalty, match=r"falls at f\(40\)"):
            call()


@pytest.mark.parametrize("convert", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix, sparse.lil_array])
def test_any_format(convert):
    matrix, dense = random_sparse()
    np.testing.assert_array_equal(
        abstain.decide(convert(matrix), "f1").labels.toarray(), abstain.decide(dense, "f1").labels
    )


def test_unsorted_and_repeated_entries_are_added_up_and_left_alone():
    matrix = sparse.csr_array((np.array([0.5, 0.9, 0.4]), np.array([3, 0, 3]), np.array([0, 3])), shape=(1, 5))
    assert abstain.decide(matrix, penalty=0.2).labels.toarray().tolist() == [[1, 0, 0, 1, 0]]
    assert matrix.indices.tolist() == [3, 0, 3]


def test_work_and_memory_are_those_of_the_entries():
    rng = np.random.default_rng(0)
    n, m, stored = 300, 5_000_000, 20
    matrix = sparse.csr_array(
        (rng.random(n * stored), rng.integers(0, m, n * stored), np.arange(n + 1) * stored), shape=(n, m)
    )
    for loss in LOSSES:
        prediction = abstain.decide(matrix, loss, 0.05)
        assert prediction.codes.nnz <= matrix.nnz
        repr(prediction)  # compiled beforehand
        tracemalloc.start()
        assert "5000000 labels" in repr(prediction)
        assert tracemalloc.get_traced_memory()[1] < 1e6
        tracemalloc.stop()


def test_rows_of_very_different_lengths_are_packed_apart():
    n, longest = 8000, 300_000
    lengths = np.zeros(n + 2, np.int32)
    lengths[-1] = longest
    entries = np.full(longest, 0.5), np.arange(longest, dtype=np.int32)
    matrix = sparse.csr_array((*entries, lengths), shape=(n + 1, longest + 10))
    shapes = [block.shape for block in packed_blocks(matrix, 1 << 14)]
    assert sum(rows for rows, _ in shapes) == n + 1
    assert max(rows * width for rows, width in shapes) <= longest + 2
    assert abstain.decide(matrix, penalty=0.1).n_abstained.tolist() == [0] * n + [longest]


def test_ranking():
    matrix, dense = random_sparse()
    here, there = abstain.decide(matrix, "rank", 0.2), abstain.decide(dense, "rank", 0.2)
    truth = sparse.csr_array(np.random.default_rng(0).random(dense.shape) < 0.2)
    for y in (truth, truth.toarray()):
        np.testing.assert_allclose(
            generalized_loss(y, here, loss="rank", penalty=0.2, per_instance=True),
            generalized_loss(y, there, loss="rank", penalty=0.2, per_instance=True),
        )
    np.testing.assert_allclose(
        expected_generalized_loss(matrix, there, loss="rank", penalty=0.2),
        expected_generalized_loss(dense, there, loss="rank", penalty=0.2),
    )
    for i in (0, 7, 299):
        stored = there.order(i)[dense[i, there.order(i)] > 0]
        assert here.order(i).tolist() == stored.tolist()


def test_a_sparse_ranking_is_shown_whole():
    dense = np.array([[0, 0, 0.9, 0, 0.6, 0.0]])
    here, there = abstain.decide(sparse.csr_array(dense), "rank", 0.01), abstain.decide(dense, "rank", 0.01)
    assert repr(here) == repr(there)
    assert here.to_frame().equals(there.to_frame())
    assert here.fill(dense > 0.7).positions.tolist() == there.fill(dense > 0.7).positions.tolist()
    assert abstain.is_uncertainty_aligned(dense, abstain.decide(sparse.csr_array(dense), "rank", "none"))
    assert here.order(-1).tolist() == here.order(0).tolist()


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - {"rank"}))
def test_realized_loss(loss):
    matrix, dense = random_sparse()
    here, there = abstain.decide(matrix, loss, 0.05), abstain.decide(dense, loss, 0.05)
    truth = np.random.default_rng(0).random(dense.shape) < 0.2
    expected = generalized_loss(truth, there, loss=loss, penalty=0.05, per_instance=True)
    for y in (truth, sparse.csr_array(truth)):
        for prediction in (here, there, here.labels, there.labels):
            np.testing.assert_allclose(
                generalized_loss(y, prediction, loss=loss, penalty=0.05, per_instance=True), expected
            )


@pytest.mark.parametrize("m", [13, 14, 20, 26, 60])
def test_profiles_of_rows_that_hide_labels_are_minimal(m):
    row = np.zeros(m)
    row[:11] = [0.9, 0.9, 0.9, 0.9, 0.9, 0.5, 0.3, 0.3, 0.1, 0.1, 0.1]
    for loss in ("f1", "jaccard", "hamming", "subset", "rank"):
        thin = abstain.risk_profile(sparse.csr_array(row[np.newaxis]), loss=loss).values.toarray()
        np.testing.assert_allclose(thin[0, :11], abstain.risk_profile(row, loss=loss).values[0, :11], rtol=1e-11)


def test_a_row_does_not_depend_on_its_neighbours():
    matrix = sparse.csr_array(
        np.where(np.random.default_rng(7).random((60, 90)) < 0.2, np.random.default_rng(8).random((60, 90)), 0)
    )
    for loss in ("f1", "jaccard"):
        together = abstain.decide(matrix, loss, 0.03)
        alone = [abstain.decide(matrix[[i]], loss, 0.03) for i in range(60)]
        assert [float(one.expected_loss[0]) for one in alone] == together.expected_loss.tolist()
