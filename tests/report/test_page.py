"""The report in a real browser: it opens, it answers to mouse and keyboard, and its numbers are the library's."""

# ruff: noqa: F811 – fixtures are imported, and arguments

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.browser import Watched, browser, open_page  # noqa: F401

import abstain
from abstain._core.kernels.choice import SLACK, TIE
from abstain._core.losses import LOSSES
from abstain._report import Report, report
from abstain._report.loss_facts import SMALLEST_COST
from abstain._utils.numbers import LARGEST_PRICE
from abstain.calibration import reliability_curve
from abstain.metrics import (
    abstention_rate,
    answered_error_rate,
    error_capture_rate,
    expected_generalized_loss,
    generalized_loss,
)

Open = Callable[..., Watched]
N, M = 240, 7
LABELS = [f"label {j}" for j in range(M)]
PHONE = {"width": 360, "height": 740}
# The page hears of a new address later than the script that sets it: it is settled only after that.
GO_TO = """fragment => new Promise((done) => {
    addEventListener("hashchange", () => done(), {once: true});
    location.hash = `${fragment}&fresh=${Math.random()}`;
})"""
PATIENCE = 120  # seconds: nobody waits for it but on a machine that does much else


def example(n: int = N, m: int = M, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, most of them sure, and a truth they are honest about."""
    random = np.random.default_rng(seed)
    p = random.beta(0.4, 0.8, (n, m)).round(6).clip(0.001, 0.999)
    return p, (random.random((n, m)) < p).astype(int)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write a report of the example, once for each kind."""
    folder = tmp_path_factory.mktemp("reports")
    kinds: dict[str, dict[str, Any]] = {
        "plain": {"losses": ("hamming", "f1", "rank")},
        "blind": {"losses": ("hamming",), "truth": False},
        "priced": {"losses": ("hamming", "f1"), "review": 0.4, "false_negative": 12, "false_positive": 1},
        "overconfident": {"losses": ("hamming",), "change": lambda p: np.where(p > 0.5, 1.0, p)},
        "texts": {"losses": ("hamming",), "texts": [f"text number {i} <b>of many</b>" for i in range(N)]},
        "one label": {"losses": ("hamming", "rank"), "shape": (30, 1)},
        "one instance": {"losses": ("hamming", "f1"), "shape": (1, 5)},
        "sampled": {"losses": ("hamming",), "max_entries": 700},
    }

    def write(kind: str) -> Path:
        path = folder / f"{kind.replace(' ', '-')}.html"
        if not path.exists():
            options = dict(kinds[kind])
            p, truth = example(*options.pop("shape", (N, M)))
            p = options.pop("change", lambda same: same)(p)
            y_true = truth if options.pop("truth", True) else None
            report(named(p), y_true, path=path, title=f"A {kind} report", **options)
        return path

    return write


def named(p: np.ndarray) -> Any:
    """A frame, so that the labels have names."""
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(p, columns=[f"label {j}" for j in range(p.shape[1])])


def ready(watched: Watched, curves: bool = False) -> Any:
    """The page, once it can be used."""
    watched.page.wait_for_selector("html[data-ready]", state="attached")
    if curves:
        watched.page.wait_for_selector("html[data-curves]", state="attached")
    settle(watched.page)
    return watched.page


# Playwright waits for a selector by animation frames, of which a frame inside a page may get none.
CURVES_ARE_DRAWN = "document.documentElement.dataset.curves !== undefined"


def wait_for(page: Any, expression: str) -> None:
    """Wait until an expression holds. (Playwright's own way of waiting is eval, which the page's policy forbids.)"""
    end = time.monotonic() + PATIENCE
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"never happened: {expression}"
        page.wait_for_timeout(20)


def settle(page: Any) -> None:
    """Wait until what was asked for is on the screen."""
    wait_for(page, "!document.documentElement.dataset.busy && LazyDrawing.isDone()")


@pytest.fixture(scope="module")
def shared(browser: Any, reports: Any) -> Iterator[Callable[..., Any]]:
    """One page for each kind of report, shared by the tests: opening takes long, and an address resets it."""
    opened: dict[str, Watched] = {}
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, permissions=["clipboard-read", "clipboard-write"]
    )

    def visit(kind: str, fragment: str = "") -> Any:
        if kind not in opened:
            opened[kind] = Watched(context.new_page())
            opened[kind].page.goto(reports(kind).as_uri())
            ready(opened[kind], curves=True)
        page = opened[kind].page
        page.bring_to_front()
        page.evaluate(GO_TO, fragment or "cost=0.1")
        settle(page)
        page.wait_for_selector("html[data-curves]", state="attached")
        opened[kind].require_quiet()
        return page

    yield visit
    context.close()
    for watched in opened.values():
        watched.require_quiet()


def set_field(page: Any, field: str, value: float) -> None:
    page.fill(f"#{field}", f"{value:.6g}")
    settle(page)


def number(text: str) -> float:
    """The first number in a text, without its thin spaces."""
    found = re.search(r"-?\d+(\.\d+)?(e-?\d+)?", text.replace("\u202f", ""))
    assert found, text
    return float(found.group())


def figure(page: Any, name: str) -> float:
    return number(page.text_content(f"[data-figure={name}] .value"))


def value(page: Any, field: str) -> float:
    return float(page.input_value(f"#{field}"))


def test_numbers_as_people_read_them(shared: Any) -> None:
    page = shared("plain")

    def written(call: str) -> str:
        return page.evaluate(f"Format.{call}").replace("\u202f", "_")

    counts = {0: "0", 999: "999", 1680: "1680", 20_000: "20_000", 1_234_567: "1_234_567"}
    assert {n: written(f"count({n})") for n in counts} == counts
    shares = {0: "0_%", 1e-5: "<_0.01_%", 4e-4: "0.04_%", 0.069: "6.9_%", 0.9996: "99.96_%", 1: "100_%"}
    assert {x: written(f"percent({x})") for x in shares} == shares
    quantities = {"0": "0", "0.12345": "0.123", "1234.5": "1235", "12345": "12_345", "null": "–"}
    assert {x: written(f"quantity({x})") for x in quantities} == quantities
    assert [written(f"python({x})") for x in ("0.1", "3", "1e-7")] == ["0.1", "3.0", "1e-7"]


KINDS = ("plain", "blind", "priced", "texts", "one label", "one instance", "sampled")


@pytest.mark.parametrize("kind", KINDS)
def test_opens_without_a_complaint_and_without_a_request(kind: str, shared: Any) -> None:
    page = shared(kind)
    assert page.title() == f"A {kind} report"
    assert page.text_content("h1") == f"A {kind} report"
    assert "label decision" in page.text_content("#headline")
    for nothing in ("NaN", "undefined", "null", "Infinity"):
        assert nothing not in page.inner_text("body")


@pytest.mark.parametrize("penalty", ["linear", "concave"])
@pytest.mark.parametrize("loss", ["hamming", "f1"])
def test_figures_are_the_librarys(loss: str, penalty: str, shared: Any) -> None:
    p, truth = example()
    cost = {"hamming": 0.2, "f1": 0.05}[loss]
    page = shared("plain", f"loss={loss}&penalty={penalty}")
    set_field(page, "cost-field", cost)
    chosen = abstain.decide(p, loss, {"linear": abstain.Linear, "concave": abstain.Concave}[penalty](cost))
    full = abstain.decide(p, loss, "none")
    wrong = int(((chosen.labels != truth) & ~chosen.abstained).sum())
    assert 0 < abstention_rate(chosen) < 1
    assert figure(page, "share") == pytest.approx(100 * abstention_rate(chosen), abs=0.051)
    assert value(page, "share-field") == pytest.approx(100 * abstention_rate(chosen), rel=1e-3)
    assert figure(page, "expected") == pytest.approx(
        expected_generalized_loss(p, chosen, loss=loss, penalty=0.0), rel=6e-3
    )
    assert figure(page, "realised") == pytest.approx(generalized_loss(truth, chosen, loss=loss, penalty=0.0), rel=6e-3)
    assert figure(page, "errors") == wrong
    assert value(page, "error-field") == pytest.approx(100 * answered_error_rate(truth, chosen), rel=1e-3)
    assert figure(page, "caught") == pytest.approx(100 * error_capture_rate(truth, chosen, full), abs=0.051)
    details = page.text_content("#details")
    assert f"({wrong}) are wrong" in details
    assert f"({int((full.labels != truth).sum())})" in details


def test_sliders_move_together_by_keyboard(shared: Any) -> None:
    page = shared("plain", "loss=hamming&penalty=linear&cost=0.1")
    fields = ("cost-field", "share-field", "error-field")
    sliders = ("cost-slider", "share-slider", "error-slider")
    seen = [[value(page, name) for name in fields + sliders]]
    summary = page.text_content("#summary")
    for slider, key in (("cost-slider", "ArrowRight"), ("share-slider", "ArrowLeft"), ("error-slider", "ArrowLeft")):
        page.focus(f"#{slider}")
        for _ in range(12):
            page.keyboard.press(key)
        settle(page)
        seen.append([value(page, name) for name in fields + sliders])
        assert all(before != after for before, after in zip(seen[-2], seen[-1], strict=True)), slider
        assert page.text_content("#summary") != summary
        summary = page.text_content("#summary")
        # The cost is short where the slider was moved, and in full in the code otherwise.
        cost = float(re.search(r"Linear\((.*?)\)", page.text_content("#code")).group(1))  # type: ignore[union-attr]
        chosen = abstain.decide(example()[0], "hamming", cost)
        assert figure(page, "share") == pytest.approx(100 * abstention_rate(chosen), abs=0.051)
    assert seen[1][0] > seen[0][0]
    assert seen[1][1] < seen[0][1]


def test_a_budget_is_kept_and_an_error_target_is_met(shared: Any) -> None:
    p, truth = example()
    page = shared("plain")

    def decided() -> Any:
        cost = float(re.search(r"Linear\((.*?)\)", page.text_content("#code")).group(1))  # type: ignore[union-attr]
        return abstain.decide(p, "hamming", cost)

    set_field(page, "share-field", 15)
    assert 0.14 < abstention_rate(decided()) <= 0.15
    set_field(page, "error-field", 5)
    assert 0.04 < answered_error_rate(truth, decided()) <= 0.05
    assert value(page, "error-field") == 5  # what was asked for stays


def test_code_gives_the_same_decisions(shared: Any, capsys: pytest.CaptureFixture[str]) -> None:
    p, truth = example()
    for kind, fragment in (
        ("plain", "loss=f1&penalty=concave&share=0.2"),
        ("plain", "loss=rank&cost=0.3"),
        ("priced", "share=0.1"),
        ("priced", "cost=0.4&falseNegative=0.3"),
    ):
        page = shared(kind, fragment)
        code = page.text_content("#code")
        assert code.isascii() or "×" in code
        exec(code, {"probabilities": p, "truth": truth})
        printed = [float(line) for line in capsys.readouterr().out.split()]
        said = [float(words) for words in re.findall(r"  # [a-z ]+: (.*)", code)]
        assert said == pytest.approx(printed, rel=1e-5)
        assert figure(page, "share") == pytest.approx(100 * printed[0], abs=0.051)
        assert figure(page, "expected") == pytest.approx(printed[1], rel=6e-3)
        assert figure(page, "realised") == pytest.approx(printed[2], rel=6e-3)
        if "rank" not in fragment:
            assert value(page, "error-field") == pytest.approx(100 * printed[3], rel=1e-3)
    assert "loss = abstain.Hamming(false_negative=0.3, false_positive=1.0)\n" in code
    assert 'loss = "hamming"\n' in shared("plain").text_content("#code")


def test_code_reads_tables_and_runs_on_its_own(shared: Any, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    page = shared("priced", "share=0.07")
    p, truth = example()
    named(p).to_parquet(tmp_path / "probabilities.parquet")
    named(truth).to_parquet(tmp_path / "labels.parquet")
    monkeypatch.chdir(tmp_path)
    exec(re.sub(r"^# (probabilities|truth) =", r"\1 =", page.text_content("#code"), flags=re.MULTILINE), {})
    printed = [float(line) for line in capsys.readouterr().out.split()]
    assert figure(page, "share") == pytest.approx(100 * printed[0], abs=0.051)


def test_numbers_in_code_and_address_are_short(shared: Any) -> None:
    page = shared("plain")
    set_field(page, "error-field", 5.1)
    wait_for(page, "location.hash.includes('error=0.051')")
    assert re.search(r"error=0\.051(&|$)", page.url)
    cost = re.search(r"Linear\((.*?)\)", page.text_content("#code"))
    assert len(cost.group(1)) <= 12
    page.locator("#cost-curve").scroll_into_view_if_needed()
    box = page.locator("#cost-curve .nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + 0.37 * box["width"], box["y"] + 0.5 * box["height"])
    wait_for(page, "document.querySelector('#cost-curve')._hoverdata?.length")
    page.mouse.click(box["x"] + 0.37 * box["width"], box["y"] + 0.5 * box["height"])
    settle(page)
    wait_for(page, "location.hash.includes('cost=')")
    assert len(re.search(r"cost=([^&]*)", page.url).group(1)) <= 9


def test_headline_adds_up(shared: Any) -> None:
    page = shared("plain")
    shares = [0.0004, 0.0097, 0.0645, 0.1995, 0.3335, 0.5, 0.74995, 0.9994, 0.9996]
    for first, second in page.evaluate("(shares) => shares.map((share) => Format.parts(share))", shares):
        assert number(first) + number(second) == pytest.approx(100, abs=1e-9), (first, second)
    for share in (0.25, 6.45, 33.35):
        set_field(page, "share-field", share)
        words = page.text_content("#headline").replace("\u202f", "")
        assert sum(float(found) for found in re.findall(r"([\d.]+)%", words)) == pytest.approx(100, abs=1e-9)


def test_nothing_and_everything_reviewed_read_well(shared: Any) -> None:
    for kind in ("plain", "blind"):
        page = shared(kind)
        set_field(page, "cost-field", 5)
        assert "Nobody reviews anything" in page.text_content("#headline")
        set_field(page, "cost-field", 0)
        assert "All 1680 label decisions go to a person" in page.text_content("#headline").replace("\xa0", " ")
        assert "would be wrong" in page.text_content("#details")


def test_without_truth_errors_are_expected_ones(shared: Any) -> None:
    p, _ = example()
    page = shared("blind")
    set_field(page, "cost-field", 0.2)
    chosen = abstain.decide(p, "hamming", 0.2)
    expected = N * float(expected_generalized_loss(p, chosen, loss="hamming", penalty=0.0))
    assert figure(page, "errors") == round(expected)
    assert value(page, "error-field") == pytest.approx(100 * expected / (~chosen.abstained).sum(), rel=1e-3)
    assert page.locator("[data-figure=realised], [data-figure=caught]").count() == 0
    assert "expected to be wrong" in page.text_content("#details")
    assert page.locator("#reliability-chart").is_hidden()
    assert page.locator("#filter-show option[value=wrong]").count() == 0


def test_rankings(shared: Any) -> None:
    p, truth = example()
    page = shared("plain")
    set_field(page, "share-field", 20)
    page.select_option("#loss", "rank")
    settle(page)
    assert figure(page, "share") <= 20  # the effort stays, whatever the loss
    assert page.locator("#error-target").is_hidden()
    assert page.locator("#prices").is_hidden()
    set_field(page, "cost-field", 0.3)
    chosen = abstain.decide(p, "rank", 0.3)
    assert figure(page, "share") == pytest.approx(100 * abstention_rate(chosen), abs=0.051)
    assert figure(page, "realised") == pytest.approx(
        generalized_loss(truth, chosen, loss="rank", penalty=0.0), rel=6e-3
    )
    assert "in the wrong order" in page.text_content("#details")
    order = page.locator(".instance").first.locator(".chip.ranked .name").all_text_contents()
    positions = chosen.positions[0]
    assert order == [LABELS[j] for j in np.argsort(positions) if positions[j] >= 0]


def test_table_of_labels_sorts_and_searches(shared: Any) -> None:
    page = shared("plain")

    def names() -> list[str]:
        return page.locator("#label-rows .name").all_text_contents()

    assert names() == LABELS
    page.focus("[data-column=prevalence] button")
    page.keyboard.press("Enter")
    assert page.get_attribute("[data-column=prevalence]", "aria-sort") == "descending"
    prevalence = example()[1].mean(axis=0)
    shown = [prevalence[LABELS.index(name)] for name in names()]
    assert shown == sorted(shown, reverse=True)
    page.keyboard.press("Enter")
    assert page.get_attribute("[data-column=prevalence]", "aria-sort") == "ascending"
    shown = [prevalence[LABELS.index(name)] for name in names()]
    assert shown == sorted(shown)
    page.keyboard.press("Enter")
    assert names() == LABELS
    page.fill("#label-search", "L 3")
    assert names() == ["label 3"]
    assert page.text_content("#label-count") == "1 of 7 labels"
    page.fill("#label-search", "")
    assert names() == LABELS


def test_asked_and_wrong_of_each_label_are_the_librarys(shared: Any) -> None:
    p, truth = example()
    page = shared("plain", "cost=0.2")
    chosen = abstain.decide(p, "hamming", 0.2)
    asked = page.locator("#label-rows td[data-title=Asked]").all_text_contents()
    assert [number(cell) for cell in asked] == pytest.approx(100 * chosen.abstained.mean(axis=0), abs=0.051)
    wrong = page.locator("#label-rows td[data-title='Answered wrong']").all_text_contents()
    errors = ((chosen.labels != truth) & ~chosen.abstained).sum(axis=0) / (~chosen.abstained).sum(axis=0)
    assert [number(cell) for cell in wrong] == pytest.approx(100 * errors, abs=0.051)


def total(page: Any) -> int:
    """How many instances the filters let through."""
    text = page.text_content("#page-where")
    found = re.search(r"of (\d+)", text)
    return int(found.group(1)) if found else 0


def test_filters_of_the_browser(shared: Any) -> None:
    p, truth = example()
    page = shared("texts", "cost=0.2")
    chosen = abstain.decide(p, "hamming", 0.2)
    wrong = (chosen.labels != truth) & ~chosen.abstained
    assert total(page) == N
    assert page.locator(".instance").count() == 20
    for show, rows in (("abstained", chosen.abstained), ("wrong", wrong), ("answered", ~chosen.abstained)):
        page.select_option("#filter-show", show)
        settle(page)
        assert total(page) == (rows.all(axis=1) if show == "answered" else rows.any(axis=1)).sum(), show
    page.select_option("#filter-label", "3")
    for show, rows in (
        ("abstained", chosen.abstained),
        ("yes", chosen.labels == 1),
        ("no", chosen.labels == 0),
        ("wrong", wrong),
    ):
        page.select_option("#filter-show", show)
        settle(page)
        assert total(page) == rows[:, 3].sum(), show
    assert page.locator(".instance").first.locator(".chip.wrong").count() > 0
    page.select_option("#filter-label", "")
    page.select_option("#filter-show", "all")
    page.fill("#filter-find", "NUMBER 23 <b>")
    wait_for(page, "document.querySelectorAll('.instance').length === 1")
    assert page.text_content(".instance .text") == "text number 23 <b>of many</b>"
    page.fill("#filter-find", "nobody")
    wait_for(page, "document.querySelectorAll('.instance').length === 0")
    assert page.text_content("#page-where") == "No instance is like this."


def test_chips_say_what_was_decided(shared: Any) -> None:
    p, truth = example()
    page = shared("plain", "cost=0.2&no=all")
    codes = abstain.decide(p, "hamming", 0.2).labels[:20]
    for kind, code in (("yes", 1), ("no", 0), ("ask", -1)):
        assert page.locator(f".instance .chip.{kind}").count() == (codes == code).sum()
    assert page.locator(".instance .chip.wrong").count() == ((codes != truth[:20]) & (codes != -1)).sum()
    page.uncheck("#show-no")
    settle(page)
    shown = page.locator(".instance .chip.no").count()
    assert shown == ((codes == 0) & (truth[:20] == 1)).sum()  # only the wrong ones
    page.locator(".instance .toggle").first.click()
    assert page.locator(".instance .chip.no").count() > shown


def test_instances_by_keyboard(shared: Any) -> None:
    page = shared("plain")
    page.focus(".instance[tabindex='0']")

    def row() -> str:
        return page.evaluate("document.activeElement.dataset.row")

    page.keyboard.press("ArrowDown")
    page.keyboard.press("j")
    assert row() == "2"
    page.keyboard.press("k")
    assert row() == "1"
    page.keyboard.press("Enter")
    assert page.get_attribute(".instance[data-row='1'] .toggle", "aria-expanded") == "true"
    page.keyboard.press("End")
    assert row() == "19"
    page.keyboard.press("ArrowDown")  # on the next page
    settle(page)
    assert row() == "20"
    page.keyboard.press("ArrowUp")
    settle(page)
    assert row() == "19"
    page.click("#page-last")
    settle(page)
    assert total(page) == N
    assert page.locator("#page-on").is_disabled()


def test_a_label_in_the_table_is_chosen_everywhere(shared: Any) -> None:
    page = shared("plain")
    before = page.locator("#reliability-chart .scatterlayer").inner_html()
    page.click("#label-rows .name >> nth=4")
    settle(page)
    assert page.input_value("#filter-label") == page.input_value("#reliability-label") == "4"
    assert page.get_attribute("#label-rows .name >> nth=4", "aria-pressed") == "true"
    assert page.locator("#reliability-chart .scatterlayer").inner_html() != before
    page.click("#label-rows .name >> nth=4")
    settle(page)
    assert page.input_value("#filter-label") == page.input_value("#reliability-label") == ""


def test_the_reliability_diagram_is_drawn_in_log_odds(shared: Any) -> None:
    page = shared("plain")
    p, truth = example(N, M)
    pooled = reliability_curve(truth, p, n_bins=20, strategy="log-odds", min_count=10)
    drawn, (low, high) = page.evaluate(
        """() => {
            const { data, layout } = document.getElementById("reliability-chart");
            return [data[1], layout.yaxis.range];
        }"""
    )

    def placed(shares: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.clip(np.log(shares / (1 - shares)), low, high)

    np.testing.assert_allclose(drawn["x"], placed(pooled.predicted), atol=1e-4)
    np.testing.assert_allclose(drawn["y"], placed(pooled.observed), atol=1e-4)
    bottom, top = pooled.interval()
    np.testing.assert_allclose(drawn["error_y"]["array"], placed(top) - placed(pooled.observed), atol=1e-4)
    np.testing.assert_allclose(drawn["error_y"]["arrayminus"], placed(pooled.observed) - placed(bottom), atol=1e-4)
    assert [cases for _, _, cases in drawn["customdata"]] == pooled.count.tolist()
    assert (np.diff(drawn["marker"]["size"]) > 0).tolist() == (np.diff(pooled.count) > 0).tolist()


def test_a_click_on_a_curve_chooses_its_setting(shared: Any) -> None:
    page = shared("plain")
    for chart in ("#cost-curve", "#coverage-curve"):
        before = page.text_content("#headline")
        page.locator(chart).scroll_into_view_if_needed()
        box = page.locator(f"{chart} .nsewdrag").first.bounding_box()
        page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.5 * box["height"])
        wait_for(page, f"document.querySelector('{chart}')._hoverdata?.length")
        page.mouse.click(box["x"] + 0.7 * box["width"], box["y"] + 0.5 * box["height"])
        settle(page)
        assert page.text_content("#headline") != before, chart


PARTS = ("#headline", "#details", "#figures", "#label-rows", "#instances", "#code")


def test_address_restores_the_setting(shared: Any, reports: Any, open_page: Open) -> None:
    page = shared("plain")
    page.select_option("#loss", "f1")
    page.select_option("#penalty", "concave")
    set_field(page, "share-field", 12.5)
    page.click("#label-rows .name >> nth=2")
    settle(page)
    page.select_option("#filter-show", "abstained")
    settle(page)
    wait_for(page, "location.hash.includes('show=abstained')")
    shown = [page.text_content(part) for part in PARTS]
    again = ready(open_page(reports("plain"), fragment=page.url.partition("#")[2]), curves=True)
    assert [again.text_content(part) for part in PARTS] == shown
    assert value(again, "share-field") == 12.5


def test_a_mistyped_address_is_no_harm(shared: Any) -> None:
    page = shared("plain", "loss=none&cost=much&label=99&show=<b>&page=-3&review=-1&share=")
    assert page.input_value("#loss") == "hamming"
    assert value(page, "share-field") == 10
    assert total(page) == N


def test_prices_make_the_bill(shared: Any) -> None:
    p, truth = example()
    page = shared("priced", "cost=0.2")

    def decided(penalty: Any, false_negative: float, false_positive: float) -> Any:
        return abstain.decide(p, abstain.Hamming(false_negative, false_positive), penalty)

    def bill(prediction: Any, review: float, false_negative: float, false_positive: float) -> float:
        labels = prediction.labels
        false_negatives, false_positives = ((labels == 0) & (truth == 1)).sum(), ((labels == 1) & (truth == 0)).sum()
        errors = false_negative * false_negatives + false_positive * false_positives
        return float(review * (labels == -1).sum() + errors)

    assert figure(page, "bill") == pytest.approx(bill(decided(0.2, 12, 1), 0.4, 12, 1), rel=6e-3)
    assert "where a false negative costs 12 and a false positive 1" in page.text_content("#cost-hint")
    set_field(page, "price-review", 2)
    set_field(page, "price-false-negative", 3)
    set_field(page, "price-false-positive", 5)
    assert "where a false negative costs 3 and a false positive 5" in page.text_content("#cost-hint")
    chosen, full = decided(0.2, 3, 5), decided("none", 3, 5)
    assert figure(page, "share") == pytest.approx(100 * abstention_rate(chosen), abs=0.051)
    assert figure(page, "realised") == pytest.approx(
        generalized_loss(truth, chosen, loss=abstain.Hamming(3, 5), penalty=0.0), rel=6e-3
    )
    assert figure(page, "caught") == pytest.approx(100 * error_capture_rate(truth, chosen, full), abs=0.051)
    assert figure(page, "bill") == pytest.approx(bill(chosen, 2, 3, 5), rel=6e-3)
    expected, without, everything = (number(part) for part in remarks(page))
    assert expected == pytest.approx(
        2 * chosen.n_abstained.sum()
        + N * expected_generalized_loss(p, chosen, loss=abstain.Hamming(3, 5), penalty=0.0),
        rel=6e-3,
    )
    assert without == pytest.approx(bill(full, 2, 3, 5), rel=6e-3)
    assert everything == 2 * N * M
    largest = float(page.evaluate("Number(document.querySelector('#cost-slider').max)"))
    page.fill("#cost-slider", str(largest))
    settle(page)
    assert figure(page, "share") == 0  # the slider ends where all is answered at these prices
    wait_for(page, "location.hash.includes('falseNegative=3') && location.hash.includes('falsePositive=5')")


def remarks(page: Any) -> list[str]:
    """What is said below the bill: expected, without review, reviewing all."""
    return re.split(r"[;,]", page.text_content("[data-figure=bill] .quiet"))


def test_the_address_keeps_prices_only_if_they_are_not_the_reports(shared: Any, reports: Any, open_page: Open) -> None:
    page = shared("priced", "cost=0.25")
    set_field(page, "price-false-negative", 12)
    set_field(page, "price-false-positive", 2.5)
    wait_for(page, "location.hash.includes('falsePositive=2.5')")
    assert "falseNegative" not in page.url
    page.fill("#price-review", "")
    wait_for(page, "location.hash.includes('review=&') || location.hash.endsWith('review=')")
    shown = [page.text_content(part) for part in PARTS]
    again = ready(open_page(reports("priced"), fragment=page.url.partition("#")[2]))
    assert [again.text_content(part) for part in PARTS] == shown


@pytest.mark.parametrize(("false_negative", "false_positive"), [(0, 1), (1, 0), (0, 0)])
def test_errors_may_cost_nothing(false_negative: int, false_positive: int, shared: Any) -> None:
    page = shared("priced", f"share=0.1&falseNegative={false_negative}&falsePositive={false_positive}")
    assert "Nobody reviews anything" in page.text_content("#headline")
    page.click("#lowest-bill")
    settle(page)
    assert figure(page, "expected") == 0
    assert "NaN" not in page.inner_text("body")


def test_the_cheapest_setting_of_the_hamming_loss_is_the_price_of_a_review(shared: Any) -> None:
    p, _ = example()
    page = shared("priced", "cost=1.5&penalty=concave")
    note = page.text_content("#lowest-bill-note")
    page.click("#lowest-bill")
    settle(page)
    assert (page.input_value("#penalty"), value(page, "cost-field")) == ("linear", 0.4)
    assert page.text_content("#lowest-bill-note").startswith("This is the cheapest setting")
    chosen = abstain.decide(p, abstain.Hamming(12, 1), 0.4)
    assert figure(page, "share") == pytest.approx(100 * abstention_rate(chosen), abs=0.051)
    expected = 0.4 * chosen.n_abstained.sum() + N * expected_generalized_loss(
        p, chosen, loss=abstain.Hamming(12, 1), penalty=0.0
    )
    assert number(note.partition("less than its")[2]) == pytest.approx(expected, rel=6e-3)
    assert number(note.partition("it comes to")[2]) == figure(page, "bill")
    assert number(remarks(page)[0]) == number(note.partition("less than its")[2])


def test_a_setting_that_happens_to_cost_less_is_not_denied(shared: Any) -> None:
    page = shared("priced", "cost=0.4")
    best = figure(page, "bill")
    for k in range(1, 60, 5):
        set_field(page, "cost-field", 0.2 + 0.01 * k)
        here, note = figure(page, "bill"), page.text_content("#lowest-bill-note")
        assert ("the current one comes to" in note) == (here < best) or here == best
        assert number(remarks(page)[0]) >= number(note.partition("less than its")[2])


def test_the_cheapest_setting_of_other_losses_is_looked_for(shared: Any) -> None:
    page = shared("priced", "loss=f1&share=0.3")
    assert "F1 decides by its own measure" in page.text_content("#price-meaning")
    assert "do not depend on the prices" in page.text_content("[data-figure=bill] .quiet")
    for fragment in ("cost=0.3", "cost=0.02", "share=0.3", "error=0.05"):
        page = shared("priced", f"loss=f1&{fragment}")
        wait_for(page, "!document.querySelector('#lowest-bill').disabled")
        before = figure(page, "bill")
        note = page.text_content("#lowest-bill-note")
        page.click("#lowest-bill")
        settle(page)
        assert figure(page, "bill") <= before
        assert "on these 240 instances; expect a little more on new ones" in note.replace("\xa0", " ")
        assert number(re.split("least found|than this one", note)[1]) == figure(page, "bill")
        assert "No setting of this penalty" in page.text_content("#lowest-bill-note")
    decided = page.text_content("#code")
    set_field(page, "price-false-negative", 2)
    assert page.text_content("#code") == decided


def test_what_the_reader_finds_cheaper_is_the_cheapest(shared: Any) -> None:
    page = shared("priced", "loss=f1&penalty=concave&cost=0.3")
    wait_for(page, "!document.querySelector('#lowest-bill').disabled")
    looked_for = number(page.text_content("#lowest-bill-note").partition("least found")[2])
    cost, bill = page.evaluate(
        """async () => {
            const problem = await (await Abstain.open(document)).problem("f1");
            const prices = {review: 0.4, falseNegative: 12, falsePositive: 1};
            const bills = Array.from({length: 3000}, (_, k) => [k / 20000,
                Bill.of(prices, problem.point("concave", k / 20000)).realized]);
            return bills.reduce((best, other) => (other[1] < best[1] ? other : best));
        }"""
    )
    assert bill < looked_for  # the search is no proof
    set_field(page, "cost-field", cost)
    assert "No setting of this penalty" in page.text_content("#lowest-bill-note")
    set_field(page, "cost-field", 0.3)
    page.click("#lowest-bill")
    settle(page)
    assert figure(page, "bill") == pytest.approx(bill, rel=6e-3)
    assert value(page, "cost-field") == pytest.approx(cost)


@pytest.mark.parametrize("loss", ["hamming", "f1"])
def test_without_a_price_of_a_review_there_is_no_bill(loss: str, shared: Any) -> None:
    page = shared("plain", f"loss={loss}&cost=0.1")
    for cost in (0.1, 0.2):
        set_field(page, "cost-field", cost)
        assert page.text_content("[data-figure=bill] .value") == "–"
        assert page.text_content("[data-figure=bill] .quiet") == "say what a review costs"
        assert "prices" not in page.text_content("#summary")
        assert page.locator("#lowest-bill").is_disabled()
    set_field(page, "price-review", 0.2)
    assert figure(page, "bill") > 0
    assert "At these prices" in page.text_content("#summary")
    page.fill("#price-review", "")
    settle(page)
    assert page.text_content("[data-figure=bill] .value") == "–"


@pytest.mark.parametrize(
    ("field", "entry", "message"),
    [
        ("share-field", "150", "Share reviewed: expected a number from 0 to 100"),
        ("error-field", "-3", "Errors in answers: expected a number from 0 to 100"),
        ("cost-field", "-0.5", "Cost of asking: expected a number from 0 to"),
        ("price-false-negative", "1e300", "A false negative: expected a number from 0 to"),
        ("price-review", "-1", "One review: expected a number from 0 to"),
    ],
)
def test_entries_that_are_refused_say_why(field: str, entry: str, message: str, shared: Any) -> None:
    page = shared("priced", "cost=0.25")
    before = page.text_content("#headline"), value(page, field)
    near = "#price-mistake" if field.startswith("price") else f"#{field.replace('field', 'mistake')}"
    page.focus(f"#{field}")
    page.keyboard.press("Control+A")
    page.keyboard.type(entry)
    settle(page)
    assert page.text_content(near).startswith(message)
    assert page.get_attribute(near, "aria-live") == "polite"
    assert page.get_attribute(f"#{field}", "aria-invalid") == "true"
    page.keyboard.press("Tab")
    settle(page)
    assert page.text_content(near).endswith("it stays as it was.")
    assert page.locator(near).is_visible()
    assert (page.text_content("#headline"), value(page, field)) == before  # "1" was a share, on the way to "150"
    page.focus("#cost-slider")
    page.keyboard.press("ArrowRight")
    settle(page)
    assert page.text_content(near) == ""


def test_what_is_no_number_is_replaced_and_said(shared: Any) -> None:
    page = shared("priced", "cost=0.25")
    for keys in ("-", "Backspace"):
        page.focus("#price-false-negative")
        page.keyboard.press("Control+A")
        page.keyboard.press(keys)
        assert page.text_content("#price-mistake") == ""  # it may become a number
        page.keyboard.press("Enter")
        settle(page)
        assert "it stays as it was" in page.text_content("#price-mistake")
        assert value(page, "price-false-negative") == 12


def test_an_error_out_of_reach_says_what_is_reached(shared: Any) -> None:
    p, truth = example()
    page = shared("overconfident", "error=0.01")
    left = answered_error_rate(truth, abstain.decide(np.where(p > 0.5, 1.0, p), "hamming", 0.0))
    assert left > 0.01
    hint = page.text_content("#error-hint")
    assert hint.startswith("not within reach")
    assert number(hint.partition("comes to")[2]) == pytest.approx(100 * left, abs=0.051)
    assert value(page, "error-field") == 1


def test_expected_and_realised_are_told_apart(shared: Any) -> None:
    page = shared("plain")
    assert "as the probabilities promise" in page.text_content("[data-figure=expected]")
    assert "as the truth says" in page.text_content("[data-figure=realised]")
    assert page.evaluate("getComputedStyle(document.querySelector('.chip .remark')).whiteSpace") == "nowrap"


def luminance(rgb: str) -> float:
    channels = [int(part) / 255 for part in re.findall(r"\d+", rgb)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(page: Any, text: str, background: str) -> float:
    pair = [luminance(page.evaluate(f"Theme.colour('{name}')")) for name in (text, background)]
    return (max(pair) + 0.05) / (min(pair) + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_can_be_read(scheme: Any, reports: Any, open_page: Open) -> None:
    page = ready(open_page(reports("plain"), color_scheme=scheme), curves=True)
    for text in ("text", "quiet", "blue", "red", "green"):
        assert contrast(page, text, "raised") >= 4.5, text
    for background in ("page", "yes", "ask", "no", "hover", "bar"):
        assert contrast(page, "text", background) >= 4.5, background
        assert contrast(page, "quiet", background) >= 4.5, background
    assert contrast(page, "red", "yes") >= 4.5
    assert contrast(page, "red", "no") >= 4.5
    page_is_dark = luminance(page.evaluate("getComputedStyle(document.body).backgroundColor")) < 0.2
    assert page_is_dark == (scheme == "dark")
    drawn = page.evaluate("document.querySelector('#cost-curve .xtick text').style.fill")
    page.click("#theme")
    settle(page)
    assert (luminance(page.evaluate("getComputedStyle(document.body).backgroundColor")) < 0.2) != page_is_dark
    assert page.evaluate("document.querySelector('#cost-curve .xtick text').style.fill") != drawn


@pytest.mark.parametrize("kind", ["plain", "texts"])
def test_nothing_is_wider_than_a_phone(kind: str, reports: Any, open_page: Open) -> None:
    watched = open_page(reports(kind), viewport=PHONE, has_touch=True, is_mobile=True, fragment="no=all")
    page = ready(watched, curves=True)
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    page.locator("#label-rows .name").first.tap()
    page.locator("#page-on").scroll_into_view_if_needed()
    settle(page)
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    watched.require_quiet()


def test_every_control_has_a_name(shared: Any) -> None:
    page = shared("texts")
    nameless = page.evaluate(
        "[...document.querySelectorAll('input, select, button')].filter(e => !(e.labels?.length || e.ariaLabel"
        " || e.textContent.trim())).map(e => e.outerHTML)"
    )
    assert nameless == []


def test_the_first_tab_leads_past_the_header(reports: Any, open_page: Open) -> None:
    page = ready(open_page(reports("one label")))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") in ("cost-field", "cost-slider")
    assert page.evaluate("document.querySelectorAll(':focus-visible').length") == 1


def test_the_summary_is_announced_once_it_has_come_to_rest(shared: Any) -> None:
    page = shared("plain")
    page.focus("#cost-slider")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    settle(page)
    wait_for(
        page,
        "document.querySelector('#announcement').textContent.startsWith(document.querySelector('#headline').textContent)",
    )


# It says so for two seconds only, which a busy machine may take to look.
KEEP_WHAT_THE_BUTTON_SAYS = """() => {
  const button = document.querySelector("#copy-code");
  window.said = [];
  const changes = { childList: true, subtree: true, characterData: true };
  new MutationObserver(() => window.said.push(button.textContent)).observe(button, changes);
}"""


def test_copies_the_code(shared: Any) -> None:
    page = shared("plain")
    page.evaluate(KEEP_WHAT_THE_BUTTON_SAYS)
    page.click("#copy-code")
    wait_for(page, "window.said.length > 0")
    assert page.evaluate("window.said[0]") == "Copied"
    assert page.evaluate("navigator.clipboard.readText()") == page.text_content("#code")


def test_a_sample_is_called_one(shared: Any) -> None:
    page = shared("sampled")
    assert (
        page.text_content("#size").replace("\xa0", " ").startswith("100 instances × 7 labels, drawn at random from 240")
    )


@pytest.mark.parametrize(
    ("entry", "cost"), [("0,2", 0.2), ("0.2", 0.2), (",2", 0.2), (" 0,125 ", 0.125), ("1,5", 1.5), ("2e-1", 0.2)]
)
def test_a_comma_is_a_decimal_point(entry: str, cost: float, shared: Any) -> None:
    page = shared("priced", "cost=0.25")
    for field in ("cost-field", "price-false-negative"):
        page.focus(f"#{field}")
        page.keyboard.press("Control+A")
        page.keyboard.type(entry)
        page.keyboard.press("Tab")
        settle(page)
        assert value(page, field) == cost
    assert page.evaluate("document.querySelectorAll('[aria-invalid=true]').length") == 0


@pytest.mark.parametrize("entry", ["1,000", "1 000", "abc", "0,2,3", "0x10", "Infinity"])
def test_what_may_mean_two_numbers_or_none_is_refused(entry: str, shared: Any) -> None:
    page = shared("priced", "cost=0.25")
    page.focus("#cost-field")
    page.keyboard.press("Control+A")
    page.keyboard.type(entry)
    settle(page)
    assert page.text_content("#cost-mistake").startswith("Cost of asking: expected a number from 0 to")
    page.keyboard.press("Tab")
    settle(page)
    assert page.text_content("#cost-mistake").endswith("such as 0.2; it stays as it was.")
    assert value(page, "cost-field") == 0.25


def test_a_search_that_finds_no_label_says_so_in_the_table(shared: Any) -> None:
    page = shared("plain")
    assert page.locator("#label-none").is_hidden()
    page.fill("#label-search", " Zebra<b> ")
    assert page.inner_text("#label-scroll").endswith("No label contains “Zebra<b>”.")
    assert page.locator("#label-rows tr").count() == 0
    page.fill("#label-search", "")
    assert page.locator("#label-none").is_hidden()


def test_a_page_that_is_printed_at_once_is_whole(browser: Any, reports: Any) -> None:
    """What waits for a timer is drawn when it is printed: here no timer ever ends."""
    page = browser.new_page(viewport={"width": 1000, "height": 400}, color_scheme="dark")
    page.add_init_script("window.setTimeout = () => 0;")
    page.goto(reports("plain").as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    wait_for(page, "Plots.isUnpacked()")
    assert page.locator(".chart .main-svg").count() == 0
    assert page.locator("#label-rows tr").count() == 0
    page.evaluate("addEventListener('beforeprint', () => { window.printed = true; })")
    page.pdf()
    assert page.evaluate("window.printed")
    for chart in ("cost-curve", "coverage-curve", "reliability-chart"):
        assert page.locator(f"#{chart} .main-svg").count() > 0, chart
        assert page.locator(f"#{chart} path.js-line").count() > 0, chart
    assert page.locator("#label-rows tr").count() == M
    assert page.locator("#instances .instance").count() == 20
    page.close()


def test_charts_are_printed_in_light_colours(browser: Any, reports: Any) -> None:
    page = browser.new_page(color_scheme="dark")
    page.goto(reports("plain").as_uri())
    page.wait_for_selector("html[data-curves]", state="attached")
    settle(page)
    colour = "document.querySelector('#coverage-curve path.js-line').style.stroke"
    dark = page.evaluate(colour)
    page.evaluate(f"addEventListener('afterprint', () => {{ window.printed = {colour}; }})")
    page.pdf()
    assert luminance(page.evaluate("window.printed")) < 0.5 * luminance(dark)
    page.close()


class Mine(abstain.DecomposableLoss):
    """A loss of a user's own, which the page cannot know."""

    name = "mine"
    title = "My <own> loss"

    def error_costs(self, n_labels: int) -> Any:
        return 3.0, 0.5


class OddlyNamed(Mine):
    """Registered under a name that would end an attribute of HTML, if it were not escaped."""

    title = "Odd"


ODD_NAME = 'odd" onclick="'


@pytest.fixture
def own_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOSSES, "mine", Mine)
    monkeypatch.setitem(LOSSES, ODD_NAME, OddlyNamed)


@pytest.mark.usefixtures("own_losses")
def test_a_loss_that_the_page_does_not_know_cannot_be_chosen(open_page: Open, tmp_path: Path) -> None:
    p, truth = example()
    path = tmp_path / "report.html"
    report(named(p), truth, path=path, losses=["mine", "hamming", ODD_NAME, "f1"])
    watched = open_page(path, fragment="loss=mine&cost=0.2")
    page = ready(watched, curves=True)
    assert page.input_value("#loss") == "hamming"
    options = page.evaluate("[...document.querySelectorAll('#loss option')].map((o) => [o.textContent, o.disabled])")
    assert options == [
        ["My <own> loss (not in the page)", True],
        ["Hamming", False],
        ["Odd (not in the page)", True],
        ["F1", False],
    ]
    assert figure(page, "share") == pytest.approx(100 * abstention_rate(abstain.decide(p, "hamming", 0.2)), abs=0.051)
    page.select_option("#loss", "f1")
    settle(page)
    assert 'loss = "f1"' in page.text_content("#code")
    refused = page.evaluate("Abstain.open(document).then((d) => d.problem('mine')).catch((error) => error.message)")
    assert refused == '"mine" is not in this page'
    watched.require_quiet()


@pytest.mark.usefixtures("own_losses")
def test_a_page_without_a_loss_it_knows_says_so(open_page: Open, tmp_path: Path) -> None:
    p, truth = example()
    path = tmp_path / "report.html"
    report(named(p), truth, path=path, losses=["mine"])
    watched = open_page(path)
    page = ready(watched)
    assert page.text_content("#headline") == "No loss of this report is in the page: My <own> loss."
    assert "hamming, subset, f1, jaccard, rank" in page.text_content("#details")
    assert page.locator("#settings").is_hidden()
    assert page.locator("#results").is_hidden()
    page.click("#theme")
    watched.require_quiet()


def test_words_and_constants_come_from_the_library(shared: Any) -> None:
    page = shared("plain")
    losses = page.evaluate("Abstain.open(document).then(({losses}) => losses)")
    for facts in losses:
        loss = LOSSES[facts["name"]]()
        assert (facts["title"], facts["tieScale"]) == (loss.title, loss.tie_scale)
        assert facts["isInPage"]
        page.select_option("#loss", facts["name"])
        settle(page)
        assert page.text_content("#meaning").startswith(loss.description)
        assert page.text_content("#cost-hint") == f"for one label, where {loss.unit_description}"
    constants = page.evaluate("Abstain.open(document).then(({constants}) => constants)")
    assert constants == {"tie": TIE, "slack": SLACK, "largestPrice": LARGEST_PRICE, "smallestCost": SMALLEST_COST}


def test_every_loss_of_the_library_is_in_the_page(shared: Any) -> None:
    assert set(shared("plain").evaluate("[...Abstain.engines.keys()]")) == set(LOSSES)


LONG_NAMES = ["CCAT.C31.C3110", "performing_arts/theatre_and_dance", "a-b-c", "Donaudampfschifffahrtsgesellschaft" * 3]


def test_long_names_are_broken_where_they_have_a_joint(open_page: Open, tmp_path: Path) -> None:
    p, truth = example(12, len(LONG_NAMES))
    path = tmp_path / "report.html"
    report(abstain.Table(p, LONG_NAMES, [f"2024-03-{i:012d}" for i in range(12)]), truth, path=path)
    for width in (1400, 400):
        page = ready(open_page(path, viewport={"width": width, "height": 900}), curves=True)
        assert page.locator("#label-rows .name").all_text_contents() == LONG_NAMES
        broken = page.evaluate("""() => {
            const broken = [];
            for (const name of document.querySelectorAll("#label-rows .name, .chip .name, .instance h3")) {
                for (const node of name.childNodes) {
                    const range = new Range();
                    range.selectNode(node);
                    if (range.getClientRects().length > 1) broken.push(node.textContent);
                }
            }
            return broken;
        }""")
        assert set(broken) <= {LONG_NAMES[3]}  # there is no joint in it
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_commands_give_the_same_decisions(shared: Any, tmp_path: Path, monkeypatch: Any) -> None:
    from click.testing import CliRunner

    from abstain._cli import main

    p, truth = example()
    named(p).to_parquet(tmp_path / "probabilities.parquet")
    named(truth).to_parquet(tmp_path / "labels.parquet")
    monkeypatch.chdir(tmp_path)
    for kind, fragment in (
        ("plain", "loss=f1&penalty=concave&share=0.2"),
        ("plain", "loss=rank&cost=0.3"),
        ("priced", "share=0.1"),
    ):
        page = shared(kind, fragment)
        printed = []
        for line in page.text_content("#command").replace("\\\n", "").splitlines():
            program, *arguments = line.split()
            assert program == "abstain"
            result = CliRunner().invoke(main, [*arguments, "--json"])
            assert result.exit_code == 0, result.output
            printed.append(json.loads(result.output))
        decided, scored = printed
        assert figure(page, "share") == pytest.approx(100 * decided["abstention_rate"], abs=0.051)
        assert figure(page, "expected") == pytest.approx(scored["expected_loss"], rel=6e-3)
        assert figure(page, "realised") == pytest.approx(scored["generalized_loss"], rel=6e-3)
        assert len((tmp_path / "review.csv").read_text().splitlines()) == 1 + decided["abstained"]
    assert "evaluate" not in shared("blind").text_content("#command")


@pytest.mark.parametrize("width", [1400, 400])
def test_code_is_not_cut_off(width: int, reports: Any, open_page: Open) -> None:
    page = ready(open_page(reports("priced"), viewport={"width": width, "height": 900}))
    for code in ("code", "command"):
        assert page.evaluate(f"{code}.scrollWidth <= {code}.clientWidth"), code


def test_the_settings_can_be_read_to_their_end(reports: Any, open_page: Open) -> None:
    page = ready(open_page(reports("priced"), viewport={"width": 1400, "height": 700}), curves=True)
    page.click("#lowest-bill")
    settle(page)
    assert page.text_content("#lowest-bill-note").startswith("This is the cheapest setting")
    page.evaluate("scrollTo(0, 1200)")
    wait_for(page, "scrollY === 1200")
    box = page.locator("#lowest-bill-note").bounding_box()
    assert 0 < box["y"] < box["y"] + box["height"] <= 700
    assert page.evaluate("settings.scrollHeight === settings.clientHeight")  # nothing in it is cut off


def test_a_page_that_gets_no_frames_is_drawn(open_page: Open, tmp_path: Path) -> None:
    """Browsers draw no frames of what is far out of sight, as the output of a notebook's last cell may be."""
    p, truth = example()
    shown = report(named(p), truth, losses=("hamming",))
    far_down = f"<!doctype html><div style='height:20000px'></div>{shown._repr_html_()}"
    (tmp_path / "notebook.html").write_text(far_down, encoding="utf-8")
    watched = open_page(tmp_path / "notebook.html", viewport={"width": 1200, "height": 900})
    wait_for(watched.page.frames[1], CURVES_ARE_DRAWN)
    watched.require_quiet()


def test_a_notebook_shows_the_page(open_page: Open, tmp_path: Path) -> None:
    p, truth = example()
    shown = report(named(p), truth, title='"quoted" & <b>', losses=("hamming",))
    assert str(shown) == shown.html
    assert repr(shown).startswith("Report '\"quoted\" & <b>' of 240 instances × 7 labels (")
    (tmp_path / "notebook.html").write_text(f"<!doctype html><h1>before</h1>{shown._repr_html_()}", encoding="utf-8")
    watched = open_page(tmp_path / "notebook.html", viewport={"width": 1200, "height": 900})
    frame = watched.page.frames[1]
    wait_for(frame, CURVES_ARE_DRAWN)
    assert frame.text_content("h1") == '"quoted" & <b>'
    assert frame.locator("#cost-curve .main-svg").count() > 0
    before = frame.text_content("#headline")
    frame.fill("#share-field", "20")
    wait_for(frame, f"document.querySelector('#headline').textContent !== {json.dumps(before)}")
    frame.focus("#skip")
    watched.page.keyboard.press("Enter")
    watched.page.wait_for_timeout(400)  # longer than the page waits before it writes its address
    assert frame.evaluate("document.activeElement.id") == "settings"
    assert watched.page.text_content("h1") == "before"
    assert frame.url == "about:srcdoc"
    watched.require_quiet()


def test_a_notebook_shows_where_the_page_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a <b> & c.html"
    written = report([[0.9, 0.4]], path=path)
    assert repr(written).endswith(f"written to {str(path)!r}")
    shown = written._repr_html_()
    assert len(shown) < 1000
    assert "a &lt;b&gt; &amp; c.html" in shown
    assert "<b>" not in shown
    written.save(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == path.read_bytes() == written.html.encode()


def test_a_notebook_does_not_keep_a_large_page() -> None:
    shown = Report("x" * 11_000_000, "<b>", 20_000, 50)._repr_html_()
    assert shown.startswith("<p>Report “&lt;b&gt;” of 20000 instances × 50 labels (11.0 MB): too large")
    assert len(shown) < 1000


def test_a_small_page_is_small() -> None:
    assert len(report([[0.9, 0.4]]).html) < 2.5e6
