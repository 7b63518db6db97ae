import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from support.eval_rows import make_rows
from support.reports import file_url, make_info, with_bodies
from surecall.evals.report import write_html

from .watched import WatchedPage

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_MS = 15_000

expect.set_options(timeout=PATIENCE_MS)


def find_browser() -> str:
    """Return where a browser is; a machine without one cannot pass these tests."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail(
            f"none of {', '.join(NAMES)} is installed, and the report is tested in a browser; "
            "on Debian: apt-get install chromium",
            pytrace=False,
        )
    return found


# Not for the whole session: while it runs, no test of the same process may start an event loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start a browser for the tests of a file."""
    path = find_browser()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path)
        yield started
        started.close()


@pytest.fixture(scope="session")
def report_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write one report of 720 trials with all transcripts."""
    rows = make_rows()
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_html(with_bodies(rows), make_info(rows), path, bodies="all")


@pytest.fixture
def watched(browser: Browser) -> Iterator[WatchedPage]:
    """Open a page; at the end nothing may have gone wrong in it, or been asked of a network."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    context.set_default_timeout(PATIENCE_MS)
    watched = WatchedPage(context.new_page())
    yield watched
    context.close()
    assert watched.troubles == []


@pytest.fixture
def page(watched: WatchedPage, report_path: Path) -> Page:
    """Open the report at its first page."""
    watched.open(file_url(report_path))
    return watched.page
