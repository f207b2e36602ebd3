"""The report in a real browser: how long it takes to open, and how long it takes to answer a slider."""

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.browser import ARGUMENTS, find_chromium

from abstain._cli import demo_example
from abstain._report import report
from benchmarks.measure import Row

SHAPE = (20_000, 50)
LOSSES = ("hamming", "f1")
MOVES = 25

# Notes when the page first answers, when its charts are awake, and when its curves are drawn.
WATCH = """
window.moments = {};
new MutationObserver(() => {
  const {ready, curves} = document.documentElement.dataset;
  if (ready) moments.ready ??= performance.now();
  if (window.Plotly) moments.charts ??= performance.now();
  if (curves) moments.curves ??= performance.now();
}).observe(document, {attributes: true, childList: true, subtree: true});
"""

# Prepares the Hamming loss at prices it has not seen.
PRICE = """
async (falseNegative) => {
  const dataset = await Abstain.open(document);
  const start = performance.now();
  await dataset.problem("hamming", {falseNegative, falsePositive: 1});
  return performance.now() - start;
}
"""

# Moves a slider or fills a field, and waits until all that is in sight shows it, and the browser has painted that.
MOVE = """
async ([id, position]) => {
  const slider = document.getElementById(id);
  const start = performance.now();
  slider.value = slider.type === "range" ? position * slider.max : position;
  slider.dispatchEvent(new Event("input", {bubbles: true}));
  while (document.documentElement.dataset.busy) await new Promise(requestAnimationFrame);
  await new Promise((painted) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = painted;
    channel.port2.postMessage(0);
  }));
  return performance.now() - start;
}
"""


def speed() -> Iterator[Row]:
    """Opening and sliding, 20 000 × 50 with truth."""
    chromium = find_chromium()
    if chromium is None:
        yield Row("A report in Chromium", "there is no Chromium")
        return
    from playwright.sync_api import sync_playwright

    random = np.random.default_rng(0)
    p = random.beta(0.3, 0.6, SHAPE)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        report(p, random.random(SHAPE) < p, path=path, losses=LOSSES)
        yield Row("Size of the page", f"{path.stat().st_size / 2**20:.1f} MiB")
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        openings = [_open(browser, path) for _ in range(3)]
        moments = [page.evaluate("moments") for page in openings]
        ready, charts, curves = (min(m[key] for m in moments) / 1000 for key in ("ready", "charts", "curves"))
        yield Row("Open: summary, sliders, table and instances answer", f"{ready:.2f} s", "< 3 s", ready < 3)
        yield Row("Open: the charting library is awake", f"{charts:.2f} s", "< 3 s", charts < 3)
        yield Row("Open: curves of the first loss drawn", f"{curves:.2f} s")
        for loss in LOSSES:
            for penalty in ("linear", "concave"):
                yield from _slide(openings[-1], loss, penalty)
        yield from _price(openings[-1])
        openings[-1].evaluate("document.getElementById('browser').scrollIntoView()")
        yield _move(openings[-1], "cost", "f1, concave, with the instances in sight")
        browser.close()


def picture(target: Path) -> None:
    """What the report of the demo looks like, at a tenth of the labels reviewed."""
    chromium = find_chromium()
    if chromium is None:
        return
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        demo_example.write_report(demo_example.run(), path)
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(f"{path.as_uri()}#share=0.1")
        page.wait_for_selector("html[data-curves]:not([data-busy])", state="attached", timeout=120_000)
        page.wait_for_timeout(1000)
        page.screenshot(path=target)
        browser.close()


def _open(browser: Any, path: Path) -> Any:
    page = browser.new_page()
    page.add_init_script(WATCH)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-curves]", state="attached", timeout=120_000)
    return page


def _slide(page: Any, loss: str, penalty: str) -> Iterator[Row]:
    page.bring_to_front()
    page.select_option("#loss", loss)
    page.select_option("#penalty", penalty)
    page.wait_for_timeout(500)
    page.wait_for_selector("html[data-curves]:not([data-busy])", state="attached", timeout=120_000)
    for knob in ("cost", "share", "error"):
        yield _move(page, knob, f"{loss}, {penalty}")


def _price(page: Any) -> Iterator[Row]:
    prepared = [page.evaluate(PRICE, cost) for cost in np.arange(2.0, 12.0)]
    median, worst = statistics.median(prepared), max(prepared)
    found = f"{median:.0f} ms, at worst {worst:.0f} ms"
    yield Row("Prepare the Hamming loss at other prices", found, "median ≤ 300 ms", median <= 300)
    page.select_option("#loss", "hamming")
    page.wait_for_timeout(500)
    page.wait_for_selector("html[data-curves]:not([data-busy])", state="attached", timeout=120_000)
    shown = [page.evaluate(MOVE, ["price-false-negative", cost]) for cost in np.arange(12.0, 22.0)]
    yield Row("Type another price: all shown", f"{statistics.median(shown):.0f} ms, at worst {max(shown):.0f} ms")
    page.select_option("#loss", LOSSES[-1])
    page.wait_for_timeout(500)
    page.wait_for_selector("html[data-curves]:not([data-busy])", state="attached", timeout=120_000)


def _move(page: Any, knob: str, circumstances: str) -> Row:
    times = [page.evaluate(MOVE, [f"{knob}-slider", position]) for position in np.linspace(0.15, 0.9, MOVES)]
    median, worst = statistics.median(times), max(times)
    found = f"{median:.0f} ms, at worst {worst:.0f} ms"
    return Row(f"Slide the {knob}: {circumstances}", found, "median ≤ 100 ms", median <= 100)
