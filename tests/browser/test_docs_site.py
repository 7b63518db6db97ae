"""The documentation site builds without a warning, searches offline and loads nothing foreign."""

import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote_plus, urlsplit

import pytest
from playwright.sync_api import Browser, expect

from .accessibility import find_barriers

pytest.importorskip("zensical", reason="the generator of the site is in the group docs")

ROOT = Path(__file__).parents[2]
QUERIES = {
    "docker": ("deploy-the-gateway",),
    "kubernetes": ("deploy-the-gateway",),
    "retry": ("configure",),
    "timeout": ("configure",),
    "temperature": ("configure",),
    "api key": ("configure",),
    "streaming": ("stream-to-a-web-page",),
    "async": ("first-loop",),
    "json mode": ("get-structured-output",),
    "system prompt": ("first-loop",),
    "pydantic": ("get-structured-output",),
    "openai": ("use-openai",),
    "gemini": ("use-gemini",),
    "claude code": ("connect-a-program",),
    "codex": ("connect-a-program",),
    "ollama": ("use-ollama-vllm-and-other-servers",),
    "llama.cpp": ("use-ollama-vllm-and-other-servers",),
    "langchain": ("wrap-your-client",),
    "tool_choice": ("tool-choice-is-ignored",),
    "truncated arguments": ("arguments-are-cut-off",),
    "empty answer": ("the-final-answer-is-empty",),
    "approval": ("ask-for-approval",),
    "mcp server": ("use-mcp-tools",),
    "openapi": ("use-openapi-tools",),
    "pytest": ("test-tool-calls-in-pytest",),
    "gate": ("gate-a-build",),
    "proxy": ("proxies-and-certificates",),
    "install": ("install",),
    "costs": ("keep-costs-down",),
    "prometheus": ("metrics", "watch-the-gateway"),
}
"""What somebody types, and the page that answers it."""
RIGHT_FIRST = 26


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and says nothing about it."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base
        """Keep quiet."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Build the site and serve it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "scripts" / "build_site.py"), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_searches_find_the_right_page_first_and_load_nothing_foreign(
    browser: Browser, address: str
) -> None:
    """The first hit answers, and the index is on the same host as everything else."""
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/index.html")
    page.locator(".md-search__button").click()
    box = page.locator("input").last
    wrong: dict[str, str] = {}
    for words, topics in QUERIES.items():
        box.fill(words)
        found = page.locator(f"li a[href*='?h={quote_plus(words)}']").first
        expect(found).to_be_visible(timeout=20_000)
        if Path(urlsplit(found.get_attribute("href") or "").path).stem not in topics:
            wrong[words] = found.inner_text()
    assert len(QUERIES) - len(wrong) >= RIGHT_FIRST, wrong
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    page.close()


def test_the_navigation_has_groups_by_task(browser: Browser, address: str) -> None:
    """Every group is one click away."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{address}/how-to/install.html")
    named = page.locator("nav.md-tabs").inner_text()
    for group in ("Get started", "Guides", "Gateway", "Evals", "Reference", "Concepts"):
        assert group in named
    page.close()


def test_every_page_is_in_the_navigation() -> None:
    """No page can be reached by search alone."""
    settings = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))
    named = set(re.findall(r"'([\w./-]+\.md)'", str(settings["project"]["nav"])))
    assert named == {str(path.relative_to(ROOT / "docs")) for path in ROOT.glob("docs/**/*.md")}


def test_a_narrow_page_does_not_scroll_sideways(browser: Browser, address: str) -> None:
    """At 400 pixels wide tables scroll by themselves."""
    page = browser.new_page(viewport={"width": 400, "height": 800})
    for path in ("how-to/install.html", "reference/options.html", "reference/cli.html"):
        page.goto(f"{address}/{path}")
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 400, path
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
