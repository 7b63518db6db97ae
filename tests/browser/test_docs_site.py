"""The documentation site builds without a warning, searches offline and loads nothing foreign."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from .accessibility import find_barriers

pytest.importorskip("properdocs", reason="the generator of the site is in the group docs")

ROOT = Path(__file__).parents[2]


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and says nothing about it."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base
        """Keep quiet."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Build the site and serve it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "properdocs", "build", "--strict", "--quiet"]
    done = subprocess.run(
        [*command, "--site-dir", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_search_finds_a_page_and_nothing_foreign_is_loaded(
    browser: Browser, address: str
) -> None:
    """The index is on the same host, and so is everything else."""
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/index.html?q=ignores")
    found = page.locator("#properdocs-search-results article").first
    expect(found).to_contain_text("The provider ignores tool_choice")
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    page.close()


def test_a_search_typed_before_the_index_is_there_is_answered(
    browser: Browser, address: str
) -> None:
    """What was typed is not lost: the page says what it waits for, and then has the results."""
    page = browser.new_page()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/search_index.json", hold)
    page.goto(f"{address}/index.html")
    page.get_by_text("Search", exact=True).first.click()
    page.locator("#properdocs-search-query").press_sequentially("ignores")
    results = page.locator("#properdocs-search-results")
    expect(results).to_contain_text("The index is being read")
    held[0].continue_()
    expect(results).to_contain_text("The provider ignores tool_choice")
    page.close()


def test_the_navigation_has_every_kind_of_page(browser: Browser, address: str) -> None:
    """Tutorial, how-to, reference, explanation and case studies are one click away."""
    page = browser.new_page()
    page.goto(f"{address}/how-to/install.html")
    named = page.locator(".navbar").inner_text()
    for kind in ("Tutorial", "How-to", "Reference", "Explanation", "Case studies"):
        assert kind in named
    page.close()


def test_the_site_has_no_barrier(browser: Browser, address: str) -> None:
    """The index, a page with code and a page with wide tables."""
    page = browser.new_page()
    found: list[str] = []
    for path in (
        "index.html",
        "tutorial/first-loop.html",
        "explanation/clients-with-and-without.html",
    ):
        page.goto(f"{address}/{path}")
        found += find_barriers(page)
    page.close()
    assert found == []
