"""A real Chromium for tests of pages, and what a page did that it should not have done.

Import both fixtures where they are used: ``from tests.support.browser import browser, open_page``. They live as long
as a module's tests and no longer, because playwright keeps an event loop running that other tests must not find.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def find_chromium() -> str | None:
    """Where Chromium is, if it is installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


@dataclass
class Watched:
    """A page in the browser, with everything it complained about or asked the world for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", self._note)

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _dismiss(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.requests.append(request.url)

    def require_quiet(self) -> None:
        """Nothing was written to the console, nothing was thrown, nothing was asked for."""
        assert self.complaints == []
        assert self.requests == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    path = find_chromium()
    if path is None:
        pytest.skip("there is no chromium, chromium-browser or google-chrome to open the page with")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Watched]]:
    """Open a file in a fresh context: ``open_page(path, fragment="…", color_scheme="dark", viewport={…})``."""
    contexts = []

    def open_it(path: Path, *, fragment: str = "", **options: Any) -> Watched:
        context = browser.new_context(**options)
        context.set_default_timeout(120_000)  # a machine that does much else is slow, not wrong
        contexts.append(context)
        watched = Watched(context.new_page())
        watched.page.goto(path.as_uri() + (f"#{fragment}" if fragment else ""))
        return watched

    yield open_it
    for context in contexts:
        context.close()
