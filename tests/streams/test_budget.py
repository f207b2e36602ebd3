"""Budgets of files, spent in two passes, against the allocation that sees the whole table."""

import re

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from tests.support.files import ProgressLog, write_long

import abstain
from abstain import InvalidBudget, InvalidProbabilities
from abstain._core.tables import Axes
from abstain.metrics import expected_generalized_loss
from abstain.review._queue import review_queue
from abstain.streams import open_sources
from abstain.streams._budget import budget_files
from abstain.streams._tables import Table, read_table, write_table

N, M = 240, 6
NAMES = tuple(f"label {j}" for j in range(M))
IDS = [f"r{i}" for i in range(N)]
P = np.random.default_rng(0).beta(0.6, 0.9, (N, M)) * 0.98 + 0.01
NEW = Table(np.random.default_rng(1).beta(0.6, 0.9, (100, M)), NAMES)
THIN = np.where(np.random.default_rng(2).random((N, M)) < 0.4, 0.0, P)
THIN[:, 0] = P[:, 0]  # long tables list every row

COSTS = abstain.Hamming(np.linspace(0.5, 6.0, M), np.linspace(1.5, 0.3, M))
LOSSES = {"costs": COSTS} | {name: kind() for name, kind in abstain._core.losses.LOSSES.items()}
SUMS = [name for name, loss in LOSSES.items() if loss.is_decomposable]
BUNDLES = [name for name, loss in LOSSES.items() if not loss.is_decomposable]
BY_LABEL = np.linspace(0.0, 0.25, M)

LIMITS = [
    {"count": 0},
    {"count": 150},
    {"count": 10**6},
    {"rate": 0.0},
    {"rate": 0.123},
    {"rate": 1.0, "review": 0.02},
    {"count": 100, "per_instance": 1},
    {"rate": 0.1, "per_instance": 2, "review": 0.01},
    {"count": 100, "per_instance": 0},
    {"per_instance": 1},
    {"review": 0.03, "per_instance": 2},
    {"review": 0.03},
]
OF_LABELS = [
    {"count": 90, "review": BY_LABEL},
    {"rate": 1.0, "review": BY_LABEL},
    {"review": BY_LABEL},
    {"count": 90, "per_instance": 1, "review": BY_LABEL},
    {"per_label": 15},
    {"per_label": 15, "rate": 0.03},
    {"per_label": [0, 5, 10, 40, 10**6, 3], "review": 0.05},
    {"per_label": {NAMES[4]: 7, NAMES[1]: 2}, "count": 120},
    {"per_label": 20, "per_instance": 1, "count": 60},
    {"per_label": 12, "review": BY_LABEL},
]


pytestmark = pytest.mark.usefixtures("small_sizes")


def name_limits(limits):
    return ", ".join(f"{name}={'by label' if np.size(value) > 1 else value}" for name, value in limits.items())


def write_files(p, folder, form):
    """A table in three files of different heights; how it is read from them."""
    folder.mkdir()
    for k, rows in enumerate((slice(0, 37), slice(37, 190), slice(190, len(p)))):
        if form.startswith("long"):
            path = folder / f"{k}{form.removeprefix('long')}"
            write_long(p[rows], path, ids=IDS[rows], names=NAMES)
        else:
            values = sparse.csr_array(p[rows]) if form == "sparse.npz" else p[rows]
            write_table(Table(values, NAMES, IDS[rows]), folder / f"{k}.{form.split('.')[-1]}")
    return open_sources(folder, labels=NAMES if form.startswith("long") else None, passes=2)


def table_of(form):
    if form == "float32.parquet":
        return P.astype(np.float32)
    return THIN if form.startswith(("sparse", "long")) else P


FORMS = [".parquet", "float32.parquet", ".csv", ".npz", "sparse.npz", "long.parquet", "long.csv"]


def codes_in(path, is_ranking):
    """All answers in a file, as a dense table."""
    table = read_table(path)
    kind = abstain.PartialRanking if is_ranking else abstain.PartialPrediction
    if not sparse.issparse(table.values):
        return kind(table).codes
    return kind.from_codes(table.values, Axes(), np.zeros(len(table))).to_dense()


def spend(sources, loss, folder, **options):
    """What is found, and the answers that are written."""
    output = folder / ("out.npz" if sources.is_sparse else "out.csv")
    found = budget_files(sources, loss=loss, output=output, **options)
    return found, codes_in(output, loss.gives_rankings)


def check_bill(found, codes, p, loss, review=0.0):
    """What is written is what was counted and billed."""
    kind = abstain.PartialRanking if loss.gives_rankings else abstain.PartialPrediction
    penalty = abstain.PerLabel(review) if np.ndim(review) else review
    paid = len(p) * expected_generalized_loss(p, kind(codes), loss=loss, penalty=penalty)
    reviewed = codes == -1
    assert found.count == reviewed.sum()
    assert found.bill.reviews == pytest.approx((reviewed * review).sum(), abs=1e-9)
    assert found.bill.total == pytest.approx(paid, abs=1e-8)
    assert found.bill.errors == pytest.approx(found.bill.total - found.bill.reviews, abs=1e-8)


def check_allocation(found, codes, p, loss, limits):
    """As good as the best one, as far as the gap says; the gap is small, and the price decides alike."""
    best = abstain.budget.solve(Table(p, NAMES), loss=loss, **limits)
    assert best.gap == 0.0
    check_bill(found, codes, p, loss, limits.get("review", 0.0))
    assert (found.n_rows, found.n_labels, found.budget) == (len(p), M, best.budget)
    assert best.bill.total - 1e-8 <= found.bill.total <= best.bill.total + found.gap + 1e-8
    assert (codes == -1).sum(axis=1).max() <= limits.get("per_instance", M)
    assert found.count == best.count
    if loss.is_decomposable:
        assert found.gap <= 1e-5 * best.price.cost * found.count
        np.testing.assert_array_equal(codes, best.prediction.codes)
    else:
        assert found.gap <= M * best.price.cost
    assert found.price.cost == pytest.approx(best.price.cost, rel=1e-5)
    assert (found.price.max_abstained, found.price.loss) == (best.price.max_abstained, loss)
    if best.price.label_costs is None:
        assert found.price.label_costs is None
    else:
        np.testing.assert_allclose(found.price.label_costs, best.price.label_costs, rtol=1e-5)
    decided = found.price.decide(NEW).codes
    assert (decided != best.price.decide(NEW).codes).sum() <= 1  # it may lie just between the two prices
    np.testing.assert_array_equal(decided, abstain.decide(NEW, loss, found.price.penalty).codes)
    return best


# --- as good as the whole table ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", LIMITS, ids=name_limits)
@pytest.mark.parametrize("name", LOSSES)
def test_two_passes_are_as_good_as_the_whole_table(name, limits, tmp_path):
    found, codes = spend(write_files(P, tmp_path / "in", ".parquet"), LOSSES[name], tmp_path, **limits)
    check_allocation(found, codes, P, LOSSES[name], limits)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["costs", "f1", "rank", "subset"])
def test_any_form_of_files(form, name, tmp_path):
    loss, p, limits = LOSSES[name], table_of(form), {"rate": 0.11, "review": 0.01}
    found, codes = spend(write_files(p, tmp_path / "in", form), loss, tmp_path, **limits)
    best = check_allocation(found, codes, p, loss, limits)
    assert best.count == found.budget == int(0.11 * N * M)


@pytest.mark.parametrize("limits", OF_LABELS, ids=name_limits)
@pytest.mark.parametrize(("form", "name"), [(".parquet", "hamming"), ("long.csv", "costs")])
def test_labels_with_costs_and_caps_of_their_own(form, name, limits, tmp_path):
    loss, p = LOSSES[name], table_of(form)
    found, codes = spend(write_files(p, tmp_path / "in", form), loss, tmp_path, **limits)
    check_allocation(found, codes, p, loss, limits)
    caps = limits.get("per_label", N)
    if isinstance(caps, dict):
        caps = [caps.get(label, N) for label in NAMES]
    assert ((codes == -1).sum(axis=0) <= caps).all()


@pytest.mark.parametrize("limits", [{"count": 50, "review": BY_LABEL}, {"count": 50, "per_label": 3}], ids=name_limits)
@pytest.mark.parametrize("name", BUNDLES)
def test_labels_that_depend_on_each_other_have_no_prices_of_their_own(name, limits, tmp_path):
    with pytest.raises(InvalidBudget, match="needs a loss that is a sum over labels"):
        budget_files(write_files(P, tmp_path / "in", ".csv"), loss=LOSSES[name], output=tmp_path / "out.csv", **limits)
    assert [file.name for file in tmp_path.iterdir()] == ["in"]


def by_sorting(saves, count, per_instance=None, per_label=None):
    """Reviews that save most: of each row or of each label, and of these over all."""
    n, m = saves.shape
    allowed = saves > 0
    if per_instance is not None:
        allowed &= np.argsort(np.argsort(-saves, axis=1), axis=1) < per_instance
    if per_label is not None:
        allowed &= np.argsort(np.argsort(-saves, axis=0), axis=0) < per_label
    best = sorted(np.argwhere(allowed).tolist(), key=lambda place: -saves[tuple(place)])
    reviewed = np.zeros((n, m), bool)
    for i, j in best[:count]:
        reviewed[i, j] = True
    return reviewed


@pytest.mark.parametrize("count", [40, 333, N * M])
@pytest.mark.parametrize("caps", [{}, {"per_instance": 2}, {"per_label": 45}], ids=name_limits)
@pytest.mark.parametrize("review", [0.0, 0.04, BY_LABEL], ids=["free", "uniform", "by label"])
def test_reviews_of_single_labels_are_those_that_save_most(count, caps, review, tmp_path):
    missed, wrong = COSTS.false_negative * P, COSTS.false_positive * (1 - P)
    sources = write_files(P, tmp_path / "in", ".parquet")
    found, codes = spend(sources, COSTS, tmp_path, count=count, review=review, **caps)
    expected = by_sorting(np.minimum(missed, wrong) - review, count, **caps)
    np.testing.assert_array_equal(codes == -1, expected)
    np.testing.assert_array_equal(codes[~expected], (missed > wrong)[~expected])
    assert 0 < found.count == expected.sum() <= count


# --- ties -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [{"count": 300}, {"rate": 0.4}, {"count": 200, "per_instance": 2}], ids=name_limits)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_of_exact_ties_the_first_ones_are_reviewed(limits, is_sparse, tmp_path):
    p = np.random.default_rng(3).choice([0.0625, 0.25, 0.375, 0.75, 1.0], (N, M))
    sources = write_files(p, tmp_path / "in", "sparse.npz" if is_sparse else ".csv")
    found, codes = spend(sources, abstain.Hamming(), tmp_path, **limits)
    best = abstain.budget.solve(p, **limits)
    assert found.count == best.count == found.budget
    assert found.gap == 0.0
    assert found.bill.total == pytest.approx(best.bill.total, abs=1e-9)
    np.testing.assert_array_equal(codes, best.prediction.codes)
    at_price = np.isclose(np.minimum(p, 1 - p), best.price.cost, rtol=1e-9)
    assert 0 < (at_price & (codes == -1)).sum() < at_price.sum()
    check_bill(found, codes, p, abstain.Hamming())


@pytest.mark.parametrize(("decimals", "review"), [(1, 0.0), (2, 0.01)])
@pytest.mark.parametrize("name", LOSSES)
def test_ties_use_up_the_budget(decimals, name, review, tmp_path):
    loss, p = LOSSES[name], P.round(decimals)
    best = abstain.budget.solve(p, loss=loss, count=200, review=review)
    found, codes = spend(write_files(p, tmp_path / "in", ".npz"), loss, tmp_path, count=200, review=review)
    assert best.gap == 0.0
    assert best.bill.total - 1e-8 <= found.bill.total <= best.bill.total + found.gap + 1e-8
    assert found.gap <= (1e-9 if loss.is_decomposable else M * best.price.cost)
    assert found.count == best.count == 200
    check_bill(found, codes, p, loss, review)


@pytest.mark.parametrize("name", BUNDLES)
@pytest.mark.parametrize("seed", range(2))
def test_bundles_and_ties_in_any_order_stay_within_the_gap(name, seed, tmp_path):
    random, loss = np.random.default_rng(seed), LOSSES[name]
    p = random.permutation(np.repeat(random.beta(0.6, 0.9, (30, M)), 8, axis=0).round(random.integers(1, 4)))
    sources = write_files(p, tmp_path / "in", ".npz")
    for count in random.integers(1, N * M // 3, 3).tolist():
        found, codes = spend(sources, loss, tmp_path, count=count)
        best = abstain.budget.solve(p, loss=loss, count=count)
        assert best.gap == 0.0
        assert best.bill.total - 1e-8 <= found.bill.total <= best.bill.total + found.gap + 1e-8
        assert found.count == best.count == count
        check_bill(found, codes, p, loss)


def test_what_ties_with_the_price_is_answered_on_new_data(tmp_path):
    p = np.random.default_rng(4).choice([0.05, 0.25, 0.35, 0.45], (N, M))
    found, _ = spend(write_files(p, tmp_path / "in", ".npz"), abstain.Hamming(), tmp_path, count=500)
    best = abstain.budget.solve(p, count=500)
    assert found.count == best.count == 500
    assert best.price.decide(p).n_abstained.sum() <= 500
    np.testing.assert_array_equal(found.price.decide(p).codes, best.price.decide(p).codes)


# --- what is told, what is written ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "limits"),
    [("costs", limits) for limits in [*LIMITS[::2], *OF_LABELS]] + [("f1", limits) for limits in LIMITS[1:]],
    ids=lambda value: value if isinstance(value, str) else name_limits(value),
)
def test_without_an_output_the_price_and_the_bill_are_the_same(name, limits, tmp_path):
    loss, sources = LOSSES[name], write_files(P, tmp_path / "in", ".parquet")
    written, _ = spend(sources, loss, tmp_path, **limits)
    (tmp_path / "out.csv").unlink()
    priced = budget_files(sources, loss=loss, **limits)
    assert [file.name for file in tmp_path.iterdir()] == ["in"]
    assert priced.price.cost == written.price.cost
    np.testing.assert_array_equal(priced.price.decide(NEW).codes, written.price.decide(NEW).codes)
    assert (priced.n_rows, priced.n_labels, priced.budget) == (written.n_rows, written.n_labels, written.budget)
    slack = 1e-5 * float(abstain.decide(P, loss, "none").expected_loss.sum())  # that is how exactly savings are counted
    assert priced.count == written.count
    assert priced.bill.total == pytest.approx(written.bill.total, abs=slack)
    assert priced.bill.reviews == pytest.approx(written.bill.reviews, abs=slack)
    is_simple = "per_label" not in limits and np.ndim(limits.get("review", 0)) == 0 and loss.is_decomposable
    assert priced.gap == (None if is_simple and written.budget is not None else written.gap)


@pytest.mark.parametrize(
    ("limits", "n_passes", "n_without_output"),
    [
        ({"count": 50}, 2, 1),
        ({"rate": 0.05, "review": BY_LABEL}, 2, 2),
        ({"per_label": 4}, 2, 2),
        ({"review": 0.1}, 1, 1),
        ({"per_instance": 1}, 1, 1),
    ],
    ids=lambda value: name_limits(value) if isinstance(value, dict) else str(value),
)
@pytest.mark.parametrize("form", [".parquet", "sparse.npz", "long.csv"])
def test_progress_is_told_of_every_pass(form, limits, n_passes, n_without_output, tmp_path):
    sources = write_files(table_of(form), tmp_path / "in", form)
    n_known = None if form.startswith("long") else N
    for output, passes in ((tmp_path / "out.parquet", n_passes), (None, n_without_output)):
        told = ProgressLog()
        budget_files(sources, loss=abstain.Hamming(), output=output, progress=told, **limits)
        assert told.expected == [n_known] * passes
        assert told.done == [N] * passes


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_long_answers_list_what_was_reviewed(kind, tmp_path):
    sources = write_files(THIN, tmp_path / "in", "long.csv")
    output = tmp_path / f"out{kind}"
    found = budget_files(sources, loss=COSTS, count=200, review=0.03, output=output)
    table = (pq.read_table if kind == ".parquet" else pa_csv.read_csv)(output)
    codes = np.zeros((N, M), int)
    for row, label, answer in zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True):
        codes[IDS.index(row), NAMES.index(label)] = -1 if answer is None else answer
    assert found.count == 200
    check_bill(found, codes, THIN, COSTS, 0.03)


@pytest.mark.parametrize("form", [".csv", "sparse.npz"])
@pytest.mark.parametrize("name", ["costs", "f1", "rank"])
@pytest.mark.parametrize("limits", [{"count": 90}, {"review": 0.05}], ids=name_limits)
def test_the_queue_lists_the_reviews_that_are_bought(form, name, limits, tmp_path):
    loss, p = LOSSES[name], table_of(form)
    sources = write_files(p, tmp_path / "in", form)
    found, codes = spend(sources, loss, tmp_path, queue=tmp_path / "queue.csv", **limits)
    kind = abstain.PartialRanking if loss.gives_rankings else abstain.PartialPrediction
    whole = review_queue(Table(p, NAMES, IDS), kind(codes), loss=loss).to_frame().to_dict("list")
    written = pa_csv.read_csv(tmp_path / "queue.csv").to_pydict()
    assert (written["id"], written["label"]) == (whole["id"], whole["label"])
    np.testing.assert_allclose(written["probability"], whole["probability"], rtol=1e-15)
    np.testing.assert_allclose(written["saves"], whole["saves"], rtol=1e-9)
    assert found.count == len(whole["id"]) > 20


@pytest.mark.parametrize("limits", [{"rate": 0.5}, {"count": 3}, {"review": 0.1}, {"per_label": 2}], ids=name_limits)
def test_no_rows(limits, tmp_path):
    write_table(Table(np.empty((0, 2)), ["a", "b"]), tmp_path / "p.parquet")
    sources = open_sources(tmp_path / "p.parquet", passes=2)
    for output in (None, tmp_path / "out.csv"):
        found = budget_files(sources, loss=abstain.Hamming(), output=output, **limits)
        assert (found.n_rows, found.count, found.bill.total) == (0, 0, 0.0)
    assert read_table(tmp_path / "out.csv").shape == (0, 2)


# --- mistakes ---------------------------------------------------------------------------------------------------------


def with_a_bad_value(folder, form):
    """A value of 1.5 for the last label of row 203, which is row 13 of the third file; and how errors name it."""
    bad = table_of(form).copy()
    bad[203, M - 1] = 1.5
    place = "line 15" if form == ".csv" else "row 13"
    if form == "long.csv":  # a line for each stored probability
        place = f"line {1 + np.count_nonzero(bad[190:204])}"
    file = folder / f"2.{form.split('.')[-1]}"
    label = rf"column {M - 1} \(label 'label {M - 1}'\)"
    name = rf"{re.escape(str(file))}: {place} \(id 'r203'\), {label} is 1\.5; a probability is a number from 0 to 1"
    return write_files(bad, folder, form), f"^{name}$"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("limits", [{"count": 50}, {"count": 50, "review": BY_LABEL}, {"review": 0.2}], ids=name_limits)
def test_a_bad_value_is_named_and_nothing_is_written(form, limits, tmp_path):
    sources, message = with_a_bad_value(tmp_path / "in", form)
    for files in ({}, {"output": tmp_path / "out.parquet", "queue": tmp_path / "queue.csv"}):
        with pytest.raises(InvalidProbabilities, match=message):
            budget_files(sources, loss=COSTS, **files, **limits)
    assert [file.name for file in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("form", FORMS)
def test_a_bad_value_is_named_where_labels_have_caps(form, tmp_path):
    sources, message = with_a_bad_value(tmp_path / "in", form)
    with pytest.raises(InvalidProbabilities, match=message):
        budget_files(sources, loss=COSTS, per_label=5, output=tmp_path / "out.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("limits", [{"count": 50}, {"per_label": 5}], ids=name_limits)
def test_probabilities_that_were_rounded_to_float32_stay_probabilities(limits, tmp_path):
    p = P.astype(np.float32)
    p[100, 3] = np.nextafter(np.float32(1), np.float32(2))
    found, codes = spend(write_files(p, tmp_path / "in", "float32.parquet"), COSTS, tmp_path, **limits)
    np.testing.assert_array_equal(codes, abstain.budget.solve(p, loss=COSTS, **limits).prediction.codes)
    assert found.count > 20


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({}, "nothing limits the reviews"),
        ({"rate": 0.1, "count": 5}, "give a rate or a count of reviews, not both"),
        ({"rate": 1.1}, "rate is 1.1; expected a share"),
        ({"count": -1}, "count is -1; expected a whole number"),
        ({"per_label": {"label 9": 3}}, "per_label names 'label 9', which is none of the labels"),
        ({"count": 1, "review": [0.1, 0.2]}, "review has shape (2,)"),
    ],
    ids=lambda value: name_limits(value) if isinstance(value, dict) else "",
)
def test_limits_that_make_no_sense_are_refused_before_anything_is_read(limits, message, tmp_path):
    sources, told = with_a_bad_value(tmp_path / "in", ".csv")[0], ProgressLog()
    with pytest.raises(InvalidBudget, match=re.escape(message)):
        budget_files(sources, loss=COSTS, output=tmp_path / "out.csv", progress=told, **limits)
    assert told.expected == []
    assert [file.name for file in tmp_path.iterdir()] == ["in"]
