"""Dask collections: lazy, the same answers bit for bit, names and blocks kept."""

import subprocess
import sys
from typing import ClassVar

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.array.utils import assert_eq as assert_same_array
from dask.dataframe.utils import assert_eq as assert_same_frame
from scipy import sparse
from tests.support.cases import LOSSES, random_probabilities

import abstain
from abstain import metrics
from abstain._utils.threads import thread_count
from abstain.integrations._dask.predictions import ChunkedPrediction, ChunkedRanking

N, M = 240, 7
CHUNKS = (100, 0, 60, 80), (3, 4)  # one is empty, and the labels are cut, too
LABELS = list("abcdefg")
PENALTIES = [0.1, abstain.Concave(0.3), abstain.Capped(0.05, 2), "none"]
ALL_LOSSES = [make(M) for examples in LOSSES.values() for make in examples]


@pytest.fixture(scope="module")
def p():
    return random_probabilities(N, M)


@pytest.fixture(scope="module")
def y(p):
    return (np.random.default_rng(1).random(p.shape) < p).astype(np.int8)


@pytest.fixture(scope="module")
def x(p):
    return da.from_array(p, chunks=CHUNKS)


@pytest.fixture(scope="module")
def sparse_p():
    table = sparse.random_array((N, 40), density=0.15, rng=np.random.default_rng(2), format="csr")
    table.data[::3] = table.data[::3].round(1)
    return table


def in_sparse_chunks(table, make=sparse.csr_array, chunks=CHUNKS[0]):
    """The rows as they are stored: some zeros are."""
    starts = np.cumsum([0, *chunks])

    def cut(block_info):
        k = block_info[None]["chunk-location"][0]
        return make(table[starts[k] : starts[k + 1]])

    return da.map_blocks(cut, chunks=(chunks, table.shape[1:]), dtype=table.dtype, meta=make((0, 0)))


def frame_of(values, npartitions=4):
    """A Dask frame whose index is text; Dask makes it a type of its own, so compare with what it computes to."""
    index = pd.Index([f"id{i:03}" for i in range(len(values))], name="id")
    return dd.from_pandas(pd.DataFrame(values, columns=LABELS, index=index), npartitions=npartitions)


def assert_same(ours, theirs):
    assert type(ours) is type(theirs)
    if sparse.issparse(theirs.codes):
        assert ours.codes.format == "csr"
        assert (ours.codes != theirs.codes).nnz == 0
    else:
        np.testing.assert_array_equal(ours.codes, theirs.codes, strict=True)
    np.testing.assert_array_equal(ours.expected_loss, theirs.expected_loss, strict=True)
    assert ours.label_names == theirs.label_names
    assert (ours.axes.index is None) == (theirs.axes.index is None)
    assert ours.axes.index is None or ours.axes.index.equals(theirs.axes.index)


# Deciding


@pytest.mark.parametrize("loss", ALL_LOSSES, ids=repr)
def test_decisions_are_the_same_bit_for_bit(p, x, loss):
    for penalty in PENALTIES:
        lazy, local = abstain.decide(x, loss, penalty), abstain.decide(p, loss, penalty)
        assert isinstance(lazy, ChunkedRanking if loss.gives_rankings else ChunkedPrediction)
        assert lazy.shape == (N, M)
        assert lazy.chunks == (CHUNKS[0], (M,))
        assert_same(lazy.compute(), local)
        codes = lazy.positions if loss.gives_rankings else lazy.labels
        assert codes.chunks == (CHUNKS[0], (M,))
        assert_same_array(codes, local.codes)
        assert_same_array(lazy.codes, local.codes)
        assert_same_array(lazy.abstained, local.abstained)
        assert_same_array(lazy.n_abstained, local.n_abstained)
        assert_same_array(lazy.expected_loss, local.expected_loss)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("loss", ["hamming", "rank", "f1"])
def test_sparse_chunks(sparse_p, loss, make):
    lazy, local = abstain.decide(in_sparse_chunks(sparse_p, make), loss, 0.05), abstain.decide(sparse_p, loss, 0.05)
    assert_same(lazy.compute(), local)
    assert isinstance(lazy.codes._meta, sparse.csr_array)
    assert lazy.codes.dtype == local.codes.dtype
    assert (lazy.codes.compute() != local.codes).nnz == 0
    assert (lazy.abstained.compute() != local.abstained).nnz == 0
    np.testing.assert_array_equal(lazy.n_abstained.compute(), local.n_abstained)
    values = abstain.risk_profile(in_sparse_chunks(sparse_p, make), loss=loss).values
    assert values.shape == (N, 41)
    assert (values.compute() != abstain.risk_profile(sparse_p, loss=loss).values).nnz == 0


def test_frames_keep_names_index_and_divisions(p):
    frame = frame_of(p)
    lazy, local = abstain.decide(frame), abstain.decide(frame.compute())
    assert lazy.label_names == tuple(LABELS)
    assert_same(lazy.compute(), local)
    answers = lazy.to_frame()
    assert answers.divisions == frame.divisions
    assert answers.index.name == "id"
    assert_same_frame(answers, local.to_frame())
    assert_same_frame(lazy.to_frame(list("tuvwxyz")), local.to_frame(list("tuvwxyz")))
    with pytest.raises(abstain.InvalidLabels, match="label_names has 1 names for 7 labels"):
        lazy.to_frame(["a"])


def test_frames_with_empty_partitions_and_without_divisions(p):
    frame = frame_of(p).clear_divisions()
    frame = frame[frame.a > 0.3]
    empty = frame[frame.a > 2.0]
    both = dd.concat([empty, frame], interleave_partitions=True)
    lazy = abstain.decide(both, "f1", 0.02)
    assert_same(lazy.compute(), abstain.decide(both.compute(), "f1", 0.02))
    assert lazy.to_frame().divisions == (None,) * (both.npartitions + 1)
    assert_same_frame(lazy.to_frame(), abstain.decide(both.compute(), "f1", 0.02).to_frame())


def test_arrays_become_frames_with_numbered_rows(p, x):
    answers = abstain.decide(x).to_frame()
    assert answers.divisions == (0, 100, 100, 160, 239)
    assert_same_frame(answers, abstain.decide(p).to_frame())
    assert abstain.decide(frame_of(p).to_dask_array()).to_frame().divisions == (None,) * 5


def test_nothing_is_computed_before_it_must_be_and_then_once(p, y):
    computed = []

    def note(block):
        computed.append(len(block))
        return block

    x = da.from_array(p, chunks=(100, M)).map_blocks(note, dtype=p.dtype, meta=np.empty((0, 0)))
    prediction = abstain.decide(x, "f1", 0.05)
    profile = abstain.risk_profile(x, loss="f1")
    truth = da.from_array(y, chunks=(60, M))
    everything = [
        prediction.labels, prediction.expected_loss, prediction.to_frame(), profile.values, profile.decide(0.1).labels,
        metrics.generalized_loss(truth, prediction, loss="f1", penalty=0.05), metrics.abstention_rate(prediction),
    ]  # fmt: skip
    assert all(map(repr, [prediction, profile, *everything]))
    assert computed == []
    dask.compute(prediction, prediction.labels, prediction.expected_loss, metrics.abstention_rate(prediction))
    assert sorted(computed) == [40, 100, 100]
    kept = prediction.persist()
    computed.clear()
    assert_same(kept.compute(), abstain.decide(p, "f1", 0.05))
    assert computed == []


def test_the_same_question_has_the_same_name(x):
    assert abstain.decide(x, "f1", 0.1).__dask_keys__() == abstain.decide(x, "f1", 0.1).__dask_keys__()
    assert abstain.decide(x, "f1", 0.1).__dask_keys__() != abstain.decide(x, "f1", 0.2).__dask_keys__()
    assert abstain.decide(x).labels.name == abstain.decide(x).labels.name


def test_a_vector_is_one_row(p, x):
    assert_same(abstain.decide(x[0]).compute(), abstain.decide(p[0]))


class Noting(abstain.Hamming):
    """Notes how many threads it may use."""

    seen: ClassVar[list[int]] = []

    def decide(self, *arguments):
        Noting.seen.append(thread_count())
        super().decide(*arguments)


def test_a_task_uses_one_core(p, monkeypatch):
    x = da.from_array(p, chunks=(100, M))
    monkeypatch.delenv("ABSTAIN_NUM_THREADS", raising=False)
    abstain.decide(x, Noting()).compute()
    assert Noting.seen == [1, 1, 1]
    monkeypatch.setenv("ABSTAIN_NUM_THREADS", "3")
    abstain.decide(x, Noting()).compute()
    assert Noting.seen == [1, 1, 1, 3, 3, 3]


def test_who_does_not_use_dask_does_not_import_it():
    calls = "abstain.decide([0.5]); abstain.metrics.abstention_rate([1])"
    code = f"import sys, abstain; {calls}; print('dask' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


# Profiles


@pytest.mark.parametrize("loss", ["hamming", "rank", "f1"])
def test_profiles_and_paths(p, x, loss):
    lazy, local = abstain.risk_profile(x, loss=loss).persist(), abstain.risk_profile(p, loss=loss)
    assert_same_array(lazy.values, local.values)
    for penalty in (0.05, abstain.Concave(0.2)):
        assert_same(lazy.decide(penalty).compute(), local.decide(penalty))
    path = lazy.path(max_abstained=3).compute()
    for name in ("indptr", "flat_costs", "flat_counts"):
        np.testing.assert_array_equal(getattr(path, name), getattr(local.path(max_abstained=3), name), strict=True)
    assert_same_array(lazy.path().at(0.1), local.path().at(0.1))


# Scores


@pytest.mark.parametrize("loss", ["hamming", "rank", "jaccard"])
def test_losses(p, y, x, loss):
    lazy, local = abstain.decide(x, loss, 0.1), abstain.decide(p, loss, 0.1)
    truth = da.from_array(y, chunks=(50, 2))
    for score, table, values in (
        (metrics.generalized_loss, truth, y),
        (metrics.expected_generalized_loss, x, p),
        (metrics.expected_generalized_loss, x.rechunk(33), p),
        (metrics.generalized_loss, y, y),
    ):
        each = score(table, lazy, loss=loss, penalty=0.1, per_instance=True)
        assert_same_array(each, score(values, local, loss=loss, penalty=0.1, per_instance=True))
        assert each.chunks == CHUNKS[:1]
        mean = score(table, lazy, loss=loss, penalty=0.1)
        assert mean.shape == ()
        assert mean.compute() == pytest.approx(score(values, local, loss=loss, penalty=0.1), rel=1e-15)


def test_rates(p, y, x):
    lazy, full = abstain.decide(x), abstain.decide(x, penalty="none")
    local, local_full = abstain.decide(p), abstain.decide(p, penalty="none")
    truth = da.from_array(y, chunks=(50, M))
    for table in (lazy, lazy.labels, lazy.to_frame()):
        assert metrics.abstention_rate(table).compute() == metrics.abstention_rate(local)
    assert float(metrics.answered_error_rate(truth, lazy)) == metrics.answered_error_rate(y, local)
    assert metrics.answered_error_rate(truth, lazy.labels).compute() == metrics.answered_error_rate(y, local)
    caught = metrics.error_capture_rate(truth, lazy, full)
    assert caught.compute() == metrics.error_capture_rate(y, local, local_full)
    assert np.isnan(metrics.answered_error_rate(truth, abstain.decide(x * 0 + 0.5, penalty=0.0)).compute())


def test_scores_of_known_labels(p, y, x):
    partial_truth = np.where(np.random.default_rng(0).random(y.shape) < 0.3, np.nan, y)
    lazy, full = abstain.decide(x), abstain.decide(x, penalty="none")
    local, local_full = abstain.decide(p), abstain.decide(p, penalty="none")
    truth = da.from_array(partial_truth, chunks=(50, M))
    known = {"missing_values": np.nan}
    expected = metrics.answered_error_rate(partial_truth, local, **known)
    assert metrics.answered_error_rate(truth, lazy, **known).compute() == expected
    framed = metrics.answered_error_rate(frame_of(partial_truth), abstain.decide(frame_of(p)), **known)
    assert framed.compute() == expected
    caught = metrics.error_capture_rate(truth, lazy, full, **known)
    assert caught.compute() == metrics.error_capture_rate(partial_truth, local, local_full, **known)
    score = metrics.generalized_loss(truth, lazy, loss="hamming", penalty=0.1, **known)
    expected = metrics.generalized_loss(partial_truth, local, loss="hamming", penalty=0.1, **known)
    assert score.compute() == pytest.approx(expected, rel=1e-15)
    with pytest.raises(abstain.InvalidLabels, match="is unknown; the F1 loss of a row needs all its labels"):
        metrics.generalized_loss(truth, abstain.decide(x, "f1"), loss="f1", penalty=0.1, **known).compute()


def test_rates_of_frames(p, y):
    frame, truth = frame_of(p), frame_of(y)
    lazy, local = abstain.decide(frame), abstain.decide(p)
    for prediction in (lazy, lazy.to_frame()):
        assert metrics.answered_error_rate(truth, prediction).compute() == metrics.answered_error_rate(y, local)
    with pytest.raises(abstain.InvalidLabels, match=r"y_true has other labels: column 0 is 'A', expected 'a'"):
        metrics.answered_error_rate(truth.rename(columns={"a": "A"}), lazy)
    with pytest.raises(abstain.InvalidLabels, match=r"y_true has 2 blocks of rows, what it is beside 4, or of other"):
        metrics.answered_error_rate(frame_of(y, 2), lazy)
    with pytest.raises(abstain.InvalidLabels, match=r"y_true has other rows: row 0 is"):
        metrics.answered_error_rate(frame_of(y).partitions[[3, 2, 1, 0]], lazy).compute()


# Budgets


@pytest.fixture(params=["uniform", "tied", "sparse"])
def table(request, p, sparse_p):
    """Probabilities, and the same in chunks."""
    if request.param == "sparse":
        return sparse_p, in_sparse_chunks(sparse_p)
    values = p if request.param == "uniform" else p.round(1)
    return values, da.from_array(values, chunks=CHUNKS)


def assert_same_allocation(lazy, local):
    assert lazy.price.cost == local.price.cost
    np.testing.assert_array_equal(lazy.price.label_costs, local.price.label_costs)
    assert (lazy.price.max_abstained, lazy.budget, lazy.gap) == (local.price.max_abstained, local.budget, local.gap)
    answers = lazy.prediction.compute()
    different = answers.codes != local.prediction.codes
    assert different.sum() == 0
    np.testing.assert_allclose(answers.expected_loss, local.prediction.expected_loss, rtol=0, atol=1e-14)
    assert lazy.count.compute() == local.count
    assert lazy.bill.compute().reviews == pytest.approx(local.bill.reviews, rel=1e-14)
    assert lazy.bill.compute().errors == pytest.approx(local.bill.errors, rel=1e-13)


LIMITS = [
    {"rate": 0.05},
    {"count": 0},
    {"count": 10**6},
    {"count": 333, "review": 0.07},
    {"count": 150, "per_instance": 2},
    {"per_instance": 1},
    {"review": 0.2},
]


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hamming", "f1", "rank"])
def test_budgets(table, loss):
    for limits in LIMITS:
        local, lazy = (abstain.budget.solve(source, loss=loss, **limits) for source in table)
        assert_same_allocation(lazy, local)


@pytest.mark.parametrize(
    "limits",
    [
        {"per_label": 6},
        {"per_label": {0: 3, 2: 0}, "rate": 0.1},
        {"per_label": 9, "count": 20, "review": 0.05},
        {"rate": 0.1, "review": "by label"},
        {"per_label": 9, "count": 31, "review": "by label"},
    ],
    ids=str,
)
def test_budgets_by_label(table, limits):
    m = table[0].shape[1]
    if limits.get("review") == "by label":
        limits = {**limits, "review": np.random.default_rng(3).random(m) / 4}
    money = abstain.Hamming(np.linspace(0.5, 2.0, m), np.linspace(1.5, 0.2, m))
    for loss in ("hamming", money):
        local, lazy = (abstain.budget.solve(source, loss=loss, **limits) for source in table)
        assert_same_allocation(lazy, local)


def test_labels_without_a_cap_are_not_collected(monkeypatch):
    monkeypatch.setattr("abstain.integrations._dask.budget_per_entry.MAX_COMPARED_ENTRIES", 200)
    p = np.random.default_rng(5).random((3000, 8))
    x = da.from_array(p, chunks=(500, 8))
    for limits in ({"per_label": {0: 9}}, {"per_label": {0: 9, 3: 4}, "count": 100}):
        assert_same_allocation(abstain.budget.solve(x, **limits), abstain.budget.solve(p, **limits))


@pytest.mark.parametrize("loss", ["f1", "subset", "jaccard"])
def test_budgets_of_thin_tables_are_the_same(loss):
    table = sparse.random_array((100, 3000), density=8 / 3000, rng=np.random.default_rng(0), format="csr")
    table.data[::2] = table.data[::2].round(1)
    for count in (3, 37, 120):
        local = abstain.budget.solve(table, loss=loss, count=count)
        assert_same_allocation(
            abstain.budget.solve(in_sparse_chunks(table, chunks=(40, 60)), loss=loss, count=count), local
        )


@pytest.mark.parametrize("loss", ["f1", "rank", "subset"])
@pytest.mark.parametrize("moved", [6, 30, 70])
def test_ties_are_counted_where_there_are_many(loss, moved, monkeypatch):
    module = "abstain.integrations._dask.budget_per_instance"
    p = np.random.default_rng(6).choice([0.1, 0.3, 0.45], (400, 3))
    x = da.from_array(p, chunks=((150, 0, 1, 249), 3))
    monkeypatch.setattr("abstain.budget._per_instance.MAX_OPERATIONS", (2 * moved) ** 2)
    for limits in ({"count": 77}, {"count": 300, "per_instance": 2}, {"count": 500, "review": 0.01}):
        found = []
        for collected in (10**9, 0):
            monkeypatch.setattr(f"{module}.MAX_COLLECTED_REVIEWS", collected)
            found.append(abstain.budget.solve(x, loss=loss, **limits))
        first, second = found
        assert (first.price.cost, first.gap) == (second.price.cost, second.gap)
        np.testing.assert_array_equal(first.prediction.codes.compute(), second.prediction.codes.compute())
        local = abstain.budget.solve(p, loss=loss, **limits)
        assert second.count.compute() <= limits["count"]
        assert second.bill.compute().total <= local.bill.total + second.gap + 1e-9


def test_budgets_that_end_far_from_the_beginning():
    """Only what lies around the margin is collected."""
    p = np.random.default_rng(4).beta(0.3, 1.0, (3000, 10))
    x = da.from_array(p, chunks=(1000, 10))
    for loss in ("f1", "subset", "hamming"):
        asked = {"loss": loss, "rate": 0.25, "review": 1e-3}
        local, lazy = abstain.budget.solve(p, **asked), abstain.budget.solve(x, **asked)
        assert local.budget > 5000
        assert_same_allocation(lazy, local)


def test_budgets_of_frames_whose_length_nobody_knows(p):
    frame = frame_of(p)
    for limits in ({"rate": 0.1}, {"rate": 0.1, "per_label": {"b": 4}}, {"per_label": 5}):
        lazy, local = abstain.budget.solve(frame, **limits), abstain.budget.solve(frame.compute(), **limits)
        assert_same_allocation(lazy, local)
        assert_same_frame(lazy.prediction.to_frame(), local.prediction.to_frame())


def test_budgets_that_cannot_be_solved(x):
    with pytest.raises(abstain.InvalidBudget, match="caps per instance and per label at once are a matching"):
        abstain.budget.solve(x, per_instance=1, per_label=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("abstain.integrations._dask.budget_per_entry.MAX_COMPARED_ENTRIES", 100)
        with pytest.raises(abstain.InvalidBudget, match="allow more reviews than the 100 that can be compared"):
            abstain.budget.solve(x, per_label=20)
    with pytest.raises(abstain.InvalidBudget, match="rate is 2"):
        abstain.budget.solve(x, rate=2)


# What is wrong with an input


def test_errors_name_the_row_of_the_whole(p):
    bad = p.copy()
    bad[130, 4] = 1.5
    with pytest.raises(abstain.InvalidProbabilities, match=r"^probabilities: row 130, column 4 is 1.5; a probability"):
        abstain.decide(da.from_array(bad, chunks=CHUNKS)).compute()
    message = r"^probabilities: row 10 of partition 2 \(index 'id130'\), column 4 \(label 'e'\) is 1.5; a probability"
    with pytest.raises(abstain.InvalidProbabilities, match=message):
        abstain.decide(frame_of(bad)).labels.compute()
    wrong = da.from_array(np.where(bad > 1, 2, 0), chunks=(50, M))
    with pytest.raises(abstain.InvalidLabels, match=r"^y_true: row 130, column 4 is 2; the truth is 0 or 1"):
        metrics.answered_error_rate(wrong, abstain.decide(da.from_array(p, chunks=CHUNKS))).compute()
    stored = sparse.csr_array(np.where(bad > 0.8, bad, 0.0))
    with pytest.raises(abstain.InvalidProbabilities, match=r"^probabilities: row 130, column 4 is 1.5; a probability"):
        abstain.decide(in_sparse_chunks(stored)).compute()


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda x: abstain.decide(x[None]), abstain.InvalidProbabilities, "expected an n × m Dask array, got 3 dim"),
        (lambda x: abstain.decide(x.astype(object)), abstain.InvalidProbabilities, "table of numbers, got .* object"),
        (lambda x: abstain.decide(x[:, x[0] > 0.5]), abstain.InvalidProbabilities, "does not know how many labels"),
        (lambda x: abstain.decide(x[:, :0]), abstain.InvalidProbabilities, "there is no label"),
        (lambda x: abstain.decide(dask.delayed(3)), abstain.InvalidProbabilities, "data frame .*, got Delayed"),
        (lambda x: abstain.decide(frame_of(x.compute()).a), abstain.InvalidProbabilities, "data frame .*, got Series"),
        (lambda x: abstain.decide(abstain.decide(x)), abstain.InvalidProbabilities, "got ChunkedPrediction"),
        (lambda x: abstain.decide(x, "F1"), abstain.InvalidLoss, "loss is 'F1'"),
        (lambda x: abstain.decide(x, "f1", abstain.PerLabel([1] * M)), abstain.InvalidPenalty, "PerLabel"),
        (lambda x: abstain.decide(x, abstain.Hamming([1, 2])), abstain.InvalidLoss, "2 costs for 7 labels"),
        (lambda x: abstain.risk_profile(x).decide(abstain.PerLabel([1] * M)), abstain.InvalidPenalty, "counts"),
        (lambda x: metrics.abstention_rate(x[None]), abstain.InvalidLabels, "expected an n × m Dask array"),
        (lambda x: metrics.answered_error_rate([[1]], abstain.decide(x)), abstain.InvalidLabels, "is a list beside"),
        (lambda x: metrics.answered_error_rate(x[:9], abstain.decide(x)), abstain.InvalidLabels, r"shape \(9, 7\)"),
        (
            lambda x: metrics.generalized_loss(abstain.decide(x), abstain.decide(x[::-1]), loss="hamming", penalty=1),
            abstain.InvalidLabels,
            "rechunk or repartition one of them",
        ),
    ],
)
def test_what_cannot_be_decided_is_said_at_once(x, ask, error, message):
    with pytest.raises(error, match=message):
        ask(x)
