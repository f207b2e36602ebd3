"""The report: what is in it, that it decides as the library does, and that no data in it ever become code."""

import json
import re
import subprocess
import sys
from html import unescape
from importlib.metadata import version
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse
from tests.support.browser import browser, open_page  # noqa: F401
from tests.support.cases import random_probabilities, random_truth

import abstain
from abstain import metrics
from abstain._cli import main
from abstain._core.tables import Table
from abstain._report import report
from abstain._report.loss_facts import largest_cost
from abstain._report.page import ENGINE, fill
from abstain._report.payload import build_payload, sample_rows
from abstain._report.prices import Prices
from abstain._utils.errors import (
    InvalidDataset,
    InvalidLabels,
    InvalidLoss,
    InvalidParameter,
    InvalidProbabilities,
    MissingFile,
)
from abstain.calibration import ReliabilityDisplay, calibration_error

mpl.use("agg")

ALL = "f1", "hamming", "jaccard", "rank", "subset"
"""The losses that the page has an engine for."""
PENALTIES = {"linear": abstain.Linear, "concave": abstain.Concave}


def costs_to_try(p: np.ndarray, loss: str | abstain.Hamming, penalty: str) -> list[float]:
    """Round ones, none, more than enough, and some at which something changes, exactly or within the tolerance."""
    profile = abstain.risk_profile(p, loss=loss)
    points = profile.path().break_points
    if penalty == "concave":
        # Where leaving all open and leaving a open are equally good, for some instance and a.
        values, unit = profile.values[:, :-1], abstain.Concave(1.0).bind(p.shape[1]).counts
        points = np.unique((values / (unit[-1] - unit[:-1]))[np.isfinite(values) & (values > 0)])
    some = points[np.unique(np.linspace(0, len(points) - 1, 8).astype(int))] if len(points) else []
    return [
        0.0,
        0.01,
        0.05,
        0.1,
        0.25,
        0.3,
        0.5,
        1.0,
        1e9,
        *map(float, some),
        *(max(0.0, float(cost) - 6e-13) for cost in some),
    ]


# --- the decisions of the page, in a real browser ---------------------------------------------------------------------

SETTINGS = """async ([loss, cases, prices]) => {
    const dataset = await Abstain.open(document);
    const problem = await dataset.problem(loss, prices);
    return cases.map(([penalty, cost]) => {
        const setting = problem.setting(penalty, cost);
        const {abstained, answered, wrong} = setting.perLabel;
        const perLabel = {abstained: [...abstained], answered: [...answered], wrong: wrong && [...wrong]};
        return {...setting, codes: [...setting.codes].join(), nAbstained: [...setting.nAbstained], perLabel};
    });
}"""


def without_view(page: str) -> str:
    """A report that only decides: the scripts of the engine, which come first, and neither plotly nor the view."""
    head, *scripts = page.split("<script>")
    quick = re.sub(r'<script type="text/plain" id="data-plotly">.*?</script>', "", head, flags=re.DOTALL)
    return "<script>".join([quick, *scripts[: len(ENGINE)]])


@pytest.fixture(scope="module", params=[1, 2, 3, 50, 100], ids=lambda m: f"{m}-labels")
def opened(request, browser, tmp_path_factory):  # noqa: F811
    """Probabilities, truth, and the page about them."""
    m = request.param
    p = random_probabilities(160 if m < 50 else 60, m, seed=7).copy()
    p[::3] = np.round(p[::3] * 20) / 20  # many ties, between labels and between answers
    y = random_truth(p)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(without_view(str(report(p, y, losses=ALL))), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    yield p, y, page
    page.close()


@pytest.mark.parametrize("loss", ALL)
def test_the_page_decides_as_the_library(opened, loss):
    p, y, page = opened
    cases = [(penalty, cost) for penalty in PENALTIES for cost in costs_to_try(p, loss, penalty)]
    complete = abstain.decide(p, loss, "none")
    for (penalty, cost), setting in zip(cases, page.evaluate(SETTINGS, [loss, cases]), strict=True):
        codes = np.array(setting["codes"].split(","), dtype=np.int64).reshape(p.shape)
        decided = abstain.decide(p, loss, PENALTIES[penalty](cost))
        np.testing.assert_array_equal(codes, decided.codes)
        _require_totals(setting, decided, complete, p, y, loss)


PRICES = [(12.0, 1.0), (1.0, 3.0), (0.1, 0.3), (7.0, 7.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (1e-3, 1e6)]


@pytest.mark.parametrize("prices", PRICES, ids=str)
def test_prices_are_the_costs_of_the_hamming_loss(opened, prices):
    p, y, page = opened
    loss = abstain.Hamming(*prices)
    given = {"falseNegative": prices[0], "falsePositive": prices[1]}
    cases = [(penalty, cost) for penalty in PENALTIES for cost in costs_to_try(p, loss, penalty)]
    complete = abstain.decide(p, loss, "none")
    for (penalty, cost), setting in zip(cases, page.evaluate(SETTINGS, ["hamming", cases, given]), strict=True):
        codes = np.array(setting["codes"].split(","), dtype=np.int64).reshape(p.shape)
        decided = abstain.decide(p, loss, PENALTIES[penalty](cost))
        np.testing.assert_array_equal(codes, decided.codes)
        _require_totals(setting, decided, complete, p, y, loss)
    largest = page.evaluate(LARGEST, given)
    assert largest == largest_cost(abstain.risk_profile(p, loss=loss).values)
    facts = build_payload(p, losses=["hamming"], prices=Prices(None, *prices)).facts
    assert largest == facts["losses"][0]["largestCost"]


LARGEST = """async (prices) =>
    (await (await Abstain.open(document)).problem("hamming", prices)).largestCost"""


def test_prices_that_come_and_go_are_prepared_again(opened):
    """Only a few are remembered; what is forgotten is made anew, and is the same."""
    p, _, page = opened
    for fn in (2.0, 3.0, 4.0, 5.0, 6.0, 2.0):
        given = {"falseNegative": fn, "falsePositive": 1.0}
        (setting,) = page.evaluate(SETTINGS, ["hamming", [["linear", 0.25]], given])
        decided = abstain.decide(p, abstain.Hamming(fn), 0.25)
        np.testing.assert_array_equal(setting["nAbstained"], decided.n_abstained)


def _require_totals(setting, decided, complete, p, y, loss):
    n, m = p.shape
    np.testing.assert_array_equal(setting["nAbstained"], decided.n_abstained)
    assert setting["reviewed"] == decided.n_abstained.sum()
    assert setting["answered"] == n * m - setting["reviewed"]
    assert setting["share"] == metrics.abstention_rate(decided)
    expected = metrics.expected_generalized_loss(p, decided, loss=loss, penalty=0.0)
    assert setting["expectedLoss"] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert setting["realizedLoss"] == pytest.approx(
        metrics.generalized_loss(y, decided, loss=loss, penalty=0.0), abs=1e-12
    )
    abstained = decided.codes == -1
    assert setting["perLabel"]["abstained"] == abstained.sum(axis=0).tolist()
    assert setting["perLabel"]["answered"] == (~abstained).sum(axis=0).tolist()
    if loss == "rank":
        names = "wrong", "falseNegatives", "falsePositives", "caught", "wrongWithoutReview", "expectedWrong"
        assert {setting[name] for name in names} == {None}
        assert setting["perLabel"]["wrong"] is None
        return
    false_negative, false_positive = (decided.codes == 0) & (y == 1), (decided.codes == 1) & (y == 0)
    assert (setting["falseNegatives"], setting["falsePositives"]) == (false_negative.sum(), false_positive.sum())
    assert setting["wrong"] == setting["falseNegatives"] + setting["falsePositives"]
    assert setting["perLabel"]["wrong"] == (false_negative | false_positive).sum(axis=0).tolist()
    if setting["answered"]:
        assert setting["wrong"] / setting["answered"] == metrics.answered_error_rate(y, decided)
    assert setting["expectedFalseNegatives"] == pytest.approx(p[decided.codes == 0].sum(), abs=1e-9)
    assert setting["expectedFalsePositives"] == pytest.approx((1 - p[decided.codes == 1]).sum(), abs=1e-9)
    assert setting["expectedWrong"] == setting["expectedFalseNegatives"] + setting["expectedFalsePositives"]
    assert setting["wrongWithoutReview"] == (complete.codes != y).sum()
    if setting["wrongWithoutReview"]:
        share = setting["caught"] / setting["wrongWithoutReview"]
        assert share == metrics.error_capture_rate(y, decided, complete)


@pytest.fixture(scope="module")
def problems(browser, tmp_path_factory):  # noqa: F811
    """A page without the truth, and one with it, that only decide."""
    p = random_probabilities(300, 12, seed=3)
    pages = []
    for y in (None, random_truth(p)):
        path = tmp_path_factory.mktemp("report") / "report.html"
        path.write_text(without_view(str(report(p, y, losses=ALL))), encoding="utf-8")
        pages.append(browser.new_page())
        pages[-1].goto(path.as_uri())
    yield p, *pages
    for page in pages:
        page.close()


def test_the_bins_of_the_page_are_those_of_the_display():
    random = np.random.default_rng(0)
    p = 1 / (1 + np.exp(-random.normal(-3, 3, (2000, 5))))
    y = random.random(p.shape) < p
    drawn = build_payload(p, y, losses=["hamming"]).facts["reliability"]
    display = ReliabilityDisplay.from_predictions(y, p)
    mpl.pyplot.close("all")
    for shown, curve in zip([drawn["pooled"], *drawn["labels"]], [display.pooled, *display.labels], strict=True):
        assert shown["count"] == curve.count.tolist()
        np.testing.assert_allclose(shown["predicted"], curve.predicted, rtol=1e-5)
        np.testing.assert_allclose(shown["observed"], curve.observed, rtol=1e-5)
        np.testing.assert_allclose((shown["low"], shown["high"]), curve.interval(), rtol=1e-5)


def test_without_the_truth_errors_are_expected_not_seen(problems):
    p, page, _ = problems
    setting = page.evaluate(SETTINGS, ["f1", [["linear", 0.05]]])[0]
    decided = abstain.decide(p, "f1", 0.05)
    names = "wrong", "falseNegatives", "falsePositives", "caught", "wrongWithoutReview", "realizedLoss"
    assert {setting[name] for name in names} == {None}
    assert setting["perLabel"]["wrong"] is None
    assert setting["expectedFalseNegatives"] == pytest.approx(p[decided.codes == 0].sum())
    assert setting["expectedFalsePositives"] == pytest.approx((1 - p[decided.codes == 1]).sum())
    facts = page.evaluate("Abstain.open(document).then(({hasTruth, reliability}) => [hasTruth, reliability])")
    assert facts == [False, None]


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ALL)
def test_the_largest_cost_is_where_all_is_answered(problems, loss, penalty):
    p, page, _ = problems
    largest = page.evaluate(
        "(name) => Abstain.open(document).then(({losses}) => losses.find((loss) => loss.name === name).largestCost)",
        loss,
    )
    assert abstain.decide(p, loss, PENALTIES[penalty](largest)).n_abstained.sum() == 0
    assert abstain.decide(p, loss, abstain.Concave(largest * 0.89)).n_abstained.sum() > 0


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ALL)
def test_the_least_cost_for_a_share(problems, loss, penalty):
    p, _, page = problems
    shares = [0.0, 0.03, 0.1, 0.25, 0.5, 0.9, 1.0]
    costs = page.evaluate(
        """async ([loss, penalty, shares]) => {
            const problem = await (await Abstain.open(document)).problem(loss);
            return shares.map((share) => problem.costForShare(penalty, share));
        }""",
        [loss, penalty, shares],
    )
    for share, cost in zip(shares, costs, strict=True):
        found = [
            metrics.abstention_rate(abstain.decide(p, loss, PENALTIES[penalty](c))) for c in (cost, 0.9999999 * cost)
        ]
        assert found[0] <= share + 1e-12
        assert cost == 0 or found[1] > share


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ALL)
def test_a_cost_is_shortened_as_far_as_nothing_changes(problems, loss, penalty):
    p, _, page = problems
    costs = [
        0.0,
        0.1,
        1 / 3,
        0.123456789012345,
        *abstain.risk_profile(p, loss=loss).path().break_points[1:40:9].tolist(),
    ]
    found = page.evaluate(
        """async ([loss, penalty, costs]) => {
            const problem = await (await Abstain.open(document)).problem(loss);
            return costs.map((cost) => problem.shorten(penalty, cost));
        }""",
        [loss, penalty, costs],
    )
    assert found[:2] == [0.0, 0.1]
    assert any(len(repr(short)) < len(repr(cost)) for short, cost in zip(found, costs, strict=True))
    for short, cost in zip(found, costs, strict=True):
        assert len(repr(short)) <= len(repr(cost))
        before, after = (abstain.decide(p, loss, PENALTIES[penalty](c)) for c in (cost, short))
        np.testing.assert_array_equal(before.codes, after.codes)


def test_at_the_price_of_a_review_the_expected_bill_is_least(problems):
    _, _, page = problems
    bills = page.evaluate(
        """async () => {
            const dataset = await Abstain.open(document);
            const problem = await dataset.problem("hamming", {falseNegative: 12, falsePositive: 1});
            const bill = (of) => 0.4 * of.reviewed + 12 * of.expectedFalseNegatives + of.expectedFalsePositives;
            const curves = await Promise.all(["linear", "concave"].map((penalty) => problem.curve(penalty)));
            return [bill(problem.point("linear", 0.4)), ...curves.flat().map(bill)];
        }"""
    )
    assert bills[0] <= min(bills) + 1e-9
    assert max(bills) > 1.4 * bills[0]  # it matters


def test_curves_that_nobody_wants_any_more_end(problems):
    _, _, page = problems
    curves = page.evaluate(
        """async () => {
            const problem = await (await Abstain.open(document)).problem("subset");
            const now = performance.now.bind(performance);
            let time = 0;
            performance.now = () => (time += 100); // each point takes longer than a slice
            const ended = await problem.curve("linear", () => false);
            performance.now = now;
            return [ended, (await problem.curve("linear")).length];
        }"""
    )
    assert curves == [None, 101]


@pytest.mark.parametrize(("loss", "false_negative"), [("hamming", 1), ("hamming", 12), ("f1", 1)])
@pytest.mark.parametrize("which", [1, 2], ids=["expected", "seen"])
def test_a_cost_for_an_error_rate(problems, loss, false_negative, which):
    page = problems[which]
    rates = [0.0, 0.01, 0.05, 0.1, 0.2, 1.0]
    found = page.evaluate(
        """async ([loss, falseNegative, rates]) => {
            const dataset = await Abstain.open(document);
            const problem = await dataset.problem(loss, {falseNegative, falsePositive: 1});
            const rateAt = (cost) => {
                const {wrong, expectedWrong, answered} = problem.setting("linear", cost);
                return answered === 0 ? 0 : (wrong ?? expectedWrong) / answered;
            };
            const find = () => rates.map((rate) => problem.costForError("linear", rate));
            const before = find();
            const curve = await problem.curve("linear");
            const costs = find();
            const {largestCost} = problem;
            const beyond = costs.map((cost) => rateAt(cost * 1.00001));
            const atCosts = curve.map(({cost}) => rateAt(cost));
            return {before: before.map(rateAt), after: costs.map(rateAt), costs, largestCost, beyond, atCosts};
        }""",
        [loss, false_negative, rates],
    )
    reachable = min(found["atCosts"])
    for k, rate in enumerate(rates):
        if rate >= reachable:
            assert found["before"][k] <= rate
            assert found["after"][k] <= rate
            assert found["costs"][k] in (0, found["largestCost"]) or found["beyond"][k] > rate
        else:
            assert found["costs"][k] == 0
    assert found["costs"][-1] == found["largestCost"]


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["hamming", "jaccard", "rank"])
def test_the_curve_is_made_of_settings(problems, loss, penalty):
    _, _, page = problems
    points, settings, same = page.evaluate(
        """async ([loss, penalty]) => {
            const problem = await (await Abstain.open(document)).problem(loss);
            const points = await problem.curve(penalty);
            const settings = points.map(({cost}) => {
                const {codes, nAbstained, perLabel, ...rest} = problem.setting(penalty, cost);
                return rest;
            });
            return [points, settings, points === await problem.curve(penalty)];
        }""",
        [loss, penalty],
    )
    assert same
    costs = [point["cost"] for point in points]
    assert costs[0] == 0
    assert len(costs) >= 80
    assert np.all(np.diff(costs) > 0)
    assert points[-1]["share"] == 0
    for point, setting in zip(points, settings, strict=True):
        assert all(point[name] == setting[name] for name in ("share", "expectedLoss", "realizedLoss", "reviewed"))
        if loss == "rank":
            assert point["errorRate"] is point["caughtShare"] is None
        else:
            rate = setting["wrong"] / setting["answered"] if setting["answered"] else None
            assert point["errorRate"] == rate
            assert point["caughtShare"] == setting["caught"] / setting["wrongWithoutReview"]


# --- the data of the page are the data --------------------------------------------------------------------------------

DATASET = """async () => {
    const d = await Abstain.open(document);
    const rows = [...Array(d.nInstances).keys()];
    const labels = [...Array(d.nLabels).keys()];
    const table = (get) => rows.map((i) => labels.map((j) => get(i, j)));
    return {...d, problem: null, id: rows.map(d.id), text: rows.map(d.text), image: rows.map(d.image),
            truth: table(d.truth), probability: table(d.probability)};
}"""


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).random((700, 3)),
        np.random.default_rng(0).random((700, 3)).astype(np.float32),
        np.random.default_rng(0).random((700, 3)).astype(np.float16),
        np.random.default_rng(0).integers(0, 300, (700, 3)) / 300,
        np.array([[0.0, 1.0], [5e-324, 1.0 - 2**-53], [0.5, 0.1]]),
        sparse.random_array((40, 9), density=0.2, rng=0),
        np.array([[True, False]]),
    ],
    ids=["float64", "float32", "float16", "few", "edges", "sparse", "certain"],
)
def test_probabilities_travel_exactly(open_page, tmp_path, values):  # noqa: F811
    (tmp_path / "report.html").write_text(without_view(str(report(values, losses=["hamming"]))), encoding="utf-8")
    data = open_page(tmp_path / "report.html").page.evaluate(DATASET)
    dense = values.toarray() if sparse.issparse(values) else values
    np.testing.assert_array_equal(data["probability"], dense.astype(np.float64))


def test_what_the_page_knows(open_page, tmp_path):  # noqa: F811
    p = random_probabilities(90, 4, seed=1)
    y = random_truth(p)
    names, ids = ["sky", "sea", "3", "ß"], [f"photo {i}" for i in range(90)]
    said = [None if i % 2 else f"text {i}" for i in range(90)]
    grey = np.zeros((90, 5, 4))
    grey[7, 2, 1] = 1.0
    page = report(
        Table(p, names, ids), Table(y, names, ids), title="Beaches & more", texts=said, images=grey, review=0.4,
        false_negative=12, losses=["f1", "hamming", "f1"], max_entries=200,
    )  # fmt: skip
    (tmp_path / "report.html").write_text(without_view(page.html), encoding="utf-8")
    watched = open_page(tmp_path / "report.html")
    data = watched.page.evaluate(DATASET)
    rows = sample_rows(90, 4, 200, 0)
    assert (data["nInstances"], data["nLabels"], data["nTotal"], len(rows)) == (50, 4, 90, 50)
    np.testing.assert_array_equal(data["probability"], p[rows])
    np.testing.assert_array_equal(data["truth"], y[rows])
    assert data["labels"] == names
    assert data["id"] == [ids[i] for i in rows]
    assert data["text"] == [said[i] for i in rows]
    assert (data["title"], data["abstainVersion"]) == ("Beaches & more", version("abstain"))
    assert data["prices"] == {"review": 0.4, "falseNegative": 12, "falsePositive": 1}
    assert [loss["name"] for loss in data["losses"]] == ["f1", "hamming"]
    assert [penalty["name"] for penalty in data["penalties"]] == ["linear", "concave"]
    errors = calibration_error(y[rows], p[rows], average=None)
    for j, facts in enumerate(data["labelFacts"]):
        assert facts["prevalence"] == pytest.approx(y[rows, j].mean())
        assert facts["meanProbability"] == pytest.approx(p[rows, j].mean())
        assert facts["calibrationError"] == pytest.approx(errors[j])
    assert sum(data["reliability"]["pooled"]["count"]) == 200
    assert len(data["reliability"]["labels"]) == 4
    assert {sum(curve["count"]) for curve in data["reliability"]["labels"]} == {50}
    shapes = watched.page.evaluate(
        """(urls) => Promise.all(urls.map(async (url) => {
            const picture = new Image();
            picture.src = url;
            await picture.decode();
            return [picture.width, picture.height];
        }))""",
        data["image"][:3],
    )
    assert shapes == [[4, 5]] * 3
    watched.require_quiet()


# --- nothing in the data becomes code ---------------------------------------------------------------------------------

HOSTILE = [
    "</script><script>window.hacked = 1; alert(1)</script>",
    "<img src=x onerror='window.hacked = 1; alert(1)'>",
    "<!--<script>",
    "-->",
    "{{scripts}} {{data}} {{title}}",
    "\\u003cscript\\u003e \\0 \\g<0> ${window.hacked = 1}",
    "a\u2028b\u2029c",
    "half a character: \ud83d",
    "nothing: \0 and \x08",
    "right to left: \u202egnp.exe",
    "javascript:window.hacked = 1",
    "'\"&<>`=",
    "__proto__",
    "<svg/onload=fetch('https://example.com/')>" * 200,
    " \t\n ",
    "",
]


def test_hostile_words_stay_words(open_page, tmp_path):  # noqa: F811
    n = len(HOSTILE)
    p = random_probabilities(n, n, seed=2)
    table = Table(p, HOSTILE, HOSTILE)
    path = tmp_path / "report.html"
    report(table, random_truth(p), path=path, title=HOSTILE[0], texts=HOSTILE, losses=ALL)
    watched = open_page(path)
    page = watched.page
    data = page.evaluate(DATASET.replace("return {", "return {hacked: window.hacked,"))
    page.wait_for_timeout(300)
    assert page.evaluate("window.hacked") is None
    kept = [name.replace("\ud83d", "\ufffd") for name in HOSTILE]  # half a character does not come back by this way
    for name in ("labels", "id", "text"):
        assert [word.replace("\ud83d", "\ufffd") for word in data[name]] == kept
    lengths = page.evaluate("Abstain.open(document).then((d) => d.labels.map((name) => name.length))")
    assert lengths == [len(name) for name in HOSTILE]
    assert page.evaluate("document.title") == HOSTILE[0]
    watched.require_quiet()


@pytest.mark.slow
@pytest.mark.parametrize("title", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_titles(title):
    page = report([[0.5]], losses=["hamming"], title=title).html
    written = re.search(r"<title>(.*?)</title>", page, flags=re.DOTALL)[1]
    assert not {"<", ">", '"'} & set(written)
    assert unescape(written) == title.replace("\ud83d", "?")
    assert facts_of(page)["title"] == title


def test_a_script_that_is_not_ours_is_refused(open_page, tmp_path):  # noqa: F811
    path = tmp_path / "report.html"
    page = without_view(str(report([[0.9, 0.4]], losses=["hamming"])))
    path.write_text(
        page + "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>", encoding="utf-8"
    )
    watched = open_page(path)
    assert watched.page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in complaint for complaint in watched.complaints)


def test_nothing_is_fetched_from_anywhere():
    page = report([[0.9, 0.4]], losses=["hamming"]).html
    # Plotly's own code names places that it is never asked to go to.
    markup = re.sub(r'id="data-plotly">.*?</script>', "", page, flags=re.DOTALL)
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//|@import|url\(""", markup)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.split("style-src")[0]
    assert "unsafe-eval" not in policy


def test_placeholders_are_filled_once():
    whole = "{{title}}|{{policy}}|{{style}}|{{data}}|{{scripts}}"
    parts = {"title": "{{data}}", "policy": "\\1", "style": "{{style}}", "data": "d", "scripts": "s"}
    assert fill(whole, parts) == "{{data}}|\\1|{{style}}|d|s"
    for broken in (whole.replace("{{data}}", ""), whole + "{{data}}", whole + "{{more}}"):
        with pytest.raises(ValueError, match="placeholders"):
            fill(broken, parts)


# --- what is read, and what is refused --------------------------------------------------------------------------------


def test_samples_are_drawn_without_replacement_and_again_the_same():
    rows = sample_rows(1000, 10, 990, random_state=4)
    assert len(np.unique(rows)) == len(rows) == 99
    assert np.all(np.diff(rows) > 0)
    np.testing.assert_array_equal(rows, sample_rows(1000, 10, 990, random_state=4))
    assert not np.array_equal(rows, sample_rows(1000, 10, 990, random_state=5))
    assert len(sample_rows(5, 100, 1, random_state=0)) == 1


def test_the_same_data_the_same_page():
    p = random_probabilities(30, 5)
    assert report(p, random_truth(p)) == report(p, random_truth(p))


def test_a_page_grows_with_what_it_holds():
    """Single precision takes half the space, few distinct values an eighth, and the truth a bit each."""
    p = np.random.default_rng(0).random((2000, 20))
    kinds = p, p.astype(np.float32), (p * 200).round() / 200
    sizes = [sum(map(len, build_payload(values, losses=["hamming"]).texts.values())) / p.size for values in kinds]
    assert 8 < sizes[0] < 10.7
    assert 3 < sizes[1] < 5.4
    assert sizes[2] < 1.5
    assert sum(map(len, build_payload(p, p > 0.5, losses=["hamming"]).texts.values())) / p.size < sizes[0] + 0.2


@pytest.mark.parametrize("p", [[[0.0, 1.0]], [[5e-324, 1.0]], [[1e-13, 0.0]]])
def test_where_nothing_is_ever_left_open_there_is_still_a_slider(p):
    assert largest_cost(abstain.risk_profile(p, loss="f1").values) == 0.01


@pytest.mark.parametrize(
    ("value", "cost"), [(0.46, 0.46), (0.4600000001, 0.47), (0.5, 0.5), (0.1 + 0.2, 0.3), (1e-9, 1e-9)]
)
def test_the_largest_cost_is_round_but_not_too_small(value, cost):
    unit = abstain.Concave(1.0).bind(1).counts[1]
    assert largest_cost(np.array([[value * unit, 0.0]])) == cost


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"losses": ["f2"]}, InvalidLoss, "'f2' is not the name of a loss; expected names among 'f1', 'hamming'"),
        ({"losses": []}, InvalidLoss, "there is none"),
        ({"losses": [abstain.Hamming()]}, InvalidLoss, "is not the name of a loss"),
        ({"y_true": [[1, 0]]}, InvalidLabels, r"y_true has shape \(1, 2\); the probabilities have \(2, 2\)"),
        ({"y_true": [[1, 0], [2, 0]]}, InvalidLabels, "row 1, column 0 is 2"),
        ({"y_true": [[1, 0], [None, 0]]}, InvalidLabels, "row 1, column 0 is nan; .* rows with unknown labels, or the"),
        ({"y_true": Table([[1, 0], [1, 0]], ["sea", "sky"])}, InvalidLabels, "the same labels in another order"),
        ({"y_true": Table([[1, 0], [1, 0]], index=["a", "c"])}, InvalidLabels, "row 1 is 'c', expected 'b'"),
        ({"texts": ["one"]}, InvalidParameter, "texts has 1 texts for 2 rows"),
        ({"texts": "ab"}, InvalidParameter, "expected one text for each of 2 rows"),
        ({"images": np.zeros((3, 4, 4))}, InvalidParameter, "there are 3 for 2 rows"),
        ({"images": np.zeros((2, 4, 4, 2))}, InvalidParameter, r"shape \(2, 4, 4, 2\)"),
        ({"images": "folder"}, InvalidParameter, "a path for each row"),
        ({"images": [None, "nowhere.png"]}, MissingFile, "images: row 1: there is no file 'nowhere.png'"),
        ({"review": -1.0}, InvalidParameter, "review is -1.0"),
        ({"false_negative": float("nan")}, InvalidParameter, "false_negative is nan"),
        ({"false_positive": "1"}, InvalidParameter, "false_positive is '1'"),
        ({"false_positive": 1e13}, InvalidParameter, "a price is a number from 0 to 1e"),
        ({"max_entries": 0}, InvalidParameter, "max_entries is 0"),
        ({"path": "nowhere/report.html"}, FileNotFoundError, "there is no folder 'nowhere'"),
    ],
)
def test_mistakes(options, error, message):
    table = Table([[0.9, 0.4], [0.1, 0.7]], ["sky", "sea"], ["a", "b"])
    with pytest.raises(error, match=message):
        report(table, **options)


def test_no_rows_and_no_probabilities():
    with pytest.raises(InvalidProbabilities, match="there are no rows"):
        report(np.empty((0, 3)))
    with pytest.raises(InvalidProbabilities, match=r"row 1, column 0 is 1\.5"):
        report([[0.5], [1.5]], max_entries=1)


def test_pictures_of_files_are_shrunk(tmp_path):
    from PIL import Image

    Image.new("RGB", (800, 400), "red").save(tmp_path / "large.png")
    Image.new("L", (8, 4)).save(tmp_path / "small.gif")
    paths = [tmp_path / "large.png", None, tmp_path / "small.gif"]
    lines = build_payload([[0.1]] * 3, images=paths).texts["images"].split("\n")
    assert [line.partition(";")[0] for line in lines] == ["image/jpeg", "", "image/png"]
    assert len(lines[0]) < 4000
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with pytest.raises(InvalidDataset, match=r"row 0: .*broken.png cannot be read as a picture"):
        build_payload([[0.1]], images=[tmp_path / "broken.png"])


def test_without_plotly(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(ImportError, match=r"pip install plotly"):
        report([[0.5]])


def test_what_was_there_stays_if_writing_fails(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("before")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        report([[0.5]], path=path)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "before"


# --- the command line -------------------------------------------------------------------------------------------------


LONG = "id,label,probability\na,sky,0.97\na,sea,0.55\nb,sky,0.3\nb,sea,0.04\nc,sky,0.5\nc,sea,0.9\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text("id,sky,sea\na,0.97,0.55\nb,0.3,0.04\nc,0.5,0.9\n")
    (tmp_path / "y.csv").write_text("id,sky,sea\na,1,0\nb,0,0\nc,0,1\n")
    (tmp_path / "swapped.csv").write_text("id,sea,sky\na,1,0\nb,0,0\nc,0,1\n")
    (tmp_path / "short.csv").write_text("id,sky,sea\na,1,0\nb,0,0\n")
    (tmp_path / "two.csv").write_text("id,sky,sea\na,1,0\nb,0,2\nc,0,1\n")
    (tmp_path / "rows.csv").write_text("id,sky,sea\na,1,0\nb,0,0\nd,0,1\n")
    (tmp_path / "yes.csv").write_text("id,sky,sea\na,yes,no\nb,no,no\nc,no,yes\n")
    (tmp_path / "river.csv").write_text("id,sky,river\na,1,0\nb,0,0\nc,0,1\n")
    (tmp_path / "empty.csv").write_text("id,sky,sea\n")
    (tmp_path / "long.csv").write_text(LONG)
    (tmp_path / "above.csv").write_text("id,sky,sea\na,1.97,0.55\n")
    (tmp_path / "word.csv").write_text("id,sky,sea\na,0.97,maybe\n")
    (tmp_path / "notes.csv").write_text('id,text,more\na,"a beach, at noon",1\nb,a street,2\nc,,3\n')
    (tmp_path / "other.csv").write_text("id,text\na,1\nb,2\nd,3\n")
    (tmp_path / "lines.txt").write_text("one\ntwo\nthree\n")
    return tmp_path


def facts_of(page: str) -> dict:
    return json.loads(re.search(r'id="data-facts">(.*?)</script>', page)[1])


def test_the_command_writes_a_page(files):
    from PIL import Image

    (files / "pictures").mkdir()
    Image.new("L", (8, 4)).save(files / "pictures" / "b.png")
    arguments = ["p.csv", "--truth", "y.csv", "-o", "report.html", "--losses", "f1,rank", "--losses", "subset"]
    arguments += ["--title", "Beaches", "--texts", "notes.csv", "--images", "pictures"]
    arguments += ["--review", "0.4", "--false-negative", "12", "--false-positive", "2"]
    result = CliRunner().invoke(main, ["report", *arguments])
    assert result.exit_code == 0, result.output
    page = (files / "report.html").read_text(encoding="utf-8")
    size = (files / "report.html").stat().st_size / 1e6
    assert result.stdout == f"3 instances × 2 labels, {size:.1f} MB: {(files / 'report.html').resolve()}\n"
    assert result.stderr == "2 of 3 rows have no picture in pictures\n"
    facts = facts_of(page)
    assert (facts["title"], facts["labels"]) == ("Beaches", ["sky", "sea"])
    assert [loss["name"] for loss in facts["losses"]] == ["f1", "rank", "subset"]
    assert facts["prices"] == {"review": 0.4, "falseNegative": 12, "falsePositive": 2}
    assert facts["hasTruth"]
    pictures = re.search(r'id="data-images">(.*?)</script>', page, re.DOTALL)[1].split("\n")
    assert [line[:9] for line in pictures] == ["", "image/png", ""]


def test_the_command_draws_a_sample(files):
    result = CliRunner().invoke(
        main, ["report", "p.csv", "-o", "report.html", "--max-entries", "4", "--texts", "lines.txt"]
    )
    assert result.exit_code == 0, result.output
    assert "3 instances × 2 labels (2 rows drawn at random), " in result.output
    facts = facts_of((files / "report.html").read_text(encoding="utf-8"))
    assert (facts["nInstances"], facts["nTotal"], facts["hasTruth"]) == (2, 3, False)
    one = CliRunner().invoke(main, ["report", "p.csv", "-o", "report.html", "--max-entries", "2"])
    assert "3 instances × 2 labels (1 row drawn at random), " in one.output


def page_of(*arguments: str, **options: object) -> str:
    """What the command writes."""
    result = CliRunner().invoke(main, ["report", *arguments, "-o", "report.html"], **options)
    assert result.exit_code == 0, result.output
    return Path("report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_command_reads_whatever_decide_reads(files):
    p, y = abstain.read_table("p.csv"), abstain.read_table("y.csv")
    expected = page_of("p.csv", "--truth", "y.csv")
    assert expected == str(report(p, y))
    for name in ("p.parquet", "p.arrow", "p.npz", "p.csv.gz"):
        abstain.write_table(p, name)
        assert page_of(name, "--truth", "y.csv") == expected, name
    (files / "parts").mkdir()
    for i in range(3):
        abstain.write_table(abstain.Table(p.values[[i]], p.label_names, p.index[[i]]), f"parts/{i}.csv")
    assert page_of("parts", "--truth", "y.csv") == expected
    assert page_of("parts/0.csv", "parts/1.csv", "parts/2.csv", "--truth", "y.csv") == expected
    assert page_of("-", "--truth", "y.csv", input=(files / "p.csv").read_text()) == expected
    (files / "p.tab").write_bytes((files / "p.csv").read_bytes())
    assert page_of("p.tab", "--format", "csv", "--truth", "y.csv") == expected


def test_the_command_reads_long_tables(files):
    expected = page_of("p.csv", "--truth", "y.csv")
    assert page_of("long.csv", "--truth", "y.csv") == expected
    assert page_of("-", "--form", "long", "--truth", "y.csv", input=LONG) == expected
    (files / "truth.csv").write_text("id,label,relevant\na,sky,1\nc,sea,1\n")  # nothing is relevant in row b
    assert page_of("p.csv", "--truth", "truth.csv") == expected
    assert page_of("long.csv", "--truth", "truth.csv") == expected


def test_the_command_matches_labels_by_name(files):
    (files / "y2.csv").write_text("id,sea,sky\na,0,1\nb,0,0\nc,1,0\n")
    assert page_of("p.csv", "--truth", "y2.csv") == page_of("p.csv", "--truth", "y.csv")


def test_the_command_takes_the_labels_and_the_names_of_rows_it_is_told(files):
    (files / "t.csv").write_text("nr,sky,sea,wood\n7,0.97,0.55,0.1\n8,0.3,0.04,0.2\n")
    (files / "ty.csv").write_text("nr,sky,sea,wood\n7,1,0,0\n8,0,0,1\n")
    (files / "words.csv").write_text("nr,text\n7,one\n9,two\n")
    page = page_of("t.csv", "--truth", "ty.csv", "--id-column", "nr", "--labels", "wood,sky")
    table = abstain.Table([[0.1, 0.97], [0.2, 0.3]], ["wood", "sky"], [7, 8])
    assert page == str(report(table, [[0, 1], [1, 0]]))
    result = CliRunner().invoke(main, ["report", "t.csv", "--id-column", "nr", "--texts", "words.csv"])
    assert result.output == "Error: words.csv: has other rows: row 1 is '9', expected '8'\n"


def test_standard_input_is_one_table(files):
    result = CliRunner().invoke(main, ["report", "-", "--truth", "-"])
    assert result.exit_code == 2
    assert "standard input is one table, not two" in result.output


@pytest.mark.skipif(not Path("/sys/kernel").exists(), reason="/sys is where even root cannot write")
def test_a_place_that_cannot_be_written_is_found_out_before_the_work(files):
    result = CliRunner().invoke(main, ["report", "word.csv", "-o", "/sys/report.html"])
    assert result.exit_code == 1
    assert re.fullmatch(r"Error: /sys/report\.html: [^/]+\n", result.output)
    with pytest.raises(OSError, match=r"'/sys/report\.html'"):
        report([[2.0]], path="/sys/report.html")
    demo = CliRunner().invoke(main, ["demo", "-o", "/sys/figure.png"])
    assert re.fullmatch(r"Error: /sys/figure\.png: [^/]+\n", demo.output)


def test_texts_of_a_parquet_column(files):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"plot": ["x", None, "z"], "text": ["1", "2", "3"]}), files / "notes.parquet")
    from abstain._report.row_files import read_texts

    table = abstain.read_table("p.csv")
    assert read_texts("notes.parquet", table) == ["1", "2", "3"]
    assert read_texts("notes.parquet", table, "plot") == ["x", None, "z"]
    assert read_texts("notes.csv", table) == ["a beach, at noon", "a street", ""]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["p.csv", "--truth", "short.csv"], "p.csv: line 4 (id 'c') is not in short.csv, or comes in another order"),
        (["short.csv", "--truth", "y.csv"], "short.csv has only 2 rows; y.csv: line 4 (id 'c') is one more"),
        (["p.csv", "--truth", "two.csv"], "two.csv: line 3 (id 'b'), column 1 (label 'sea') is 2; the truth is 0 or 1"),
        (["p.csv", "--truth", "yes.csv"], "yes.csv: line 2 (id 'a'), column 0 (label 'sky') is 'yes'; the truth"),
        (["p.csv", "--truth", "long.csv"], "long.csv: line 2 (id 'a'), column 0 (label 'sky') is 0.97; the truth"),
        (["p.csv", "--truth", "rows.csv"], "p.csv: line 4 (id 'c') stands beside rows.csv: line 4 (id 'd'): the rows"),
        (["p.csv", "--truth", "river.csv"], "river.csv: there is no column 'sea'"),
        (["above.csv"], "above.csv: line 2 (id 'a'), column 0 (label 'sky') is 1.97; a probability"),
        (["word.csv"], "word.csv: line 2 (id 'a'), column 1 (label 'sea') is 'maybe'; a probability"),
        (["empty.csv"], "empty.csv: there are no rows, so there is nothing to report"),
        (["p.csv", "--losses", "hamming,f2"], "losses: 'f2' is not the name of a loss; expected names among 'f1'"),
        (["p.csv", "--texts", "other.csv"], "other.csv: has other rows: row 2 is 'd', expected 'c'"),
        (["p.csv", "--texts", "short.csv", "--text-column", "sky"], "short.csv: there are 2 texts for 3 rows"),
        (["p.csv", "--texts", "y.csv"], "y.csv: there is no column 'text'; there are 'id', 'sky', 'sea'"),
        (["p.csv", "--images", "."], ".: there is no picture called as a row is, such as 'a.png'"),
    ],
)
def test_mistakes_are_explained_in_a_line(files, arguments, message):
    before = set(files.iterdir())
    result = CliRunner().invoke(main, ["report", *arguments, "-o", "report.html"])
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: {message}")
    assert result.output.count("\n") == 1
    assert set(files.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv"], "Path 'nowhere.csv' does not exist."),
        (["p.csv", "-o", "report.docx"], "'report.docx' does not end in .html"),
        (["p.csv", "-o", "nowhere/report.html"], "there is no folder 'nowhere'"),
        (["p.csv", "--review", "-1"], "'--review': -1.0 is not in the range x>=0"),
        (["p.csv", "--false-negative", "nan"], "nan is not a price; expected a number from 0 to 1e+12"),
        (["p.csv", "--false-positive", "inf"], "'--false-positive': inf is not a price"),
        (["p.csv", "--text-column", "plot"], "there is no file of texts to look it up in"),
    ],
)
def test_wrong_usage_is_explained(files, arguments, message):
    result = CliRunner().invoke(main, ["report", *arguments])
    assert result.exit_code == 2
    assert message in result.output


def test_help_comes_at_once():
    code = "import sys; from abstain._cli.report import report; "
    code += "report(['--help'], standalone_mode=False, max_content_width=100)"
    code += "; assert not {'sklearn', 'plotly', 'PIL', 'pyarrow'} & set(sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "abstain report probabilities.parquet --truth labels.parquet -o report.html" in shown
    assert "\b" not in shown
    assert max(map(len, shown.splitlines())) <= 100
