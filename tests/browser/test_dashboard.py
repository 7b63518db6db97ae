"""The dashboard in a browser: what it says, on wide and narrow screens, with keys and without."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from support.dashboard_traffic import (
    BODY,
    HOSTILE,
    REASKED,
    REFUSED,
    REPAIRED,
    REPLY,
    make_request,
    usual_day,
)

from .served import ServedGateway, WatchedSite, serve_in_thread
from .test_keys_and_looks import REPEATED_IDS, UNNAMED

HOSTILE_ROWS = [
    make_request(100, **REPAIRED | {"model_asked": text, "upstream": text}) for text in HOSTILE
]
KEPT = make_request(9, **REASKED | {"receipts": REPAIRED["receipts"]}, request_body=BODY)
SAVED = make_request(8, **REPAIRED, request_body=BODY, reply_body=REPLY)
WICKED = make_request(
    7,
    **REFUSED,
    model_asked=HOSTILE[0],
    request_body=HOSTILE[0].encode(),
    reply_body=HOSTILE[2].encode(),
)
HIDE = """
() => {
  Object.defineProperty(document, "hidden", { get: () => true });
  document.dispatchEvent(new Event("visibilitychange"));
}
"""
HEADINGS = """
() => {
  const heads = [...document.querySelectorAll("table.turns thead th")];
  const text = document.createRange();
  const room = (head) => head.clientWidth - parseFloat(getComputedStyle(head).paddingRight);
  const width = (head) => (text.selectNodeContents(head), text.getBoundingClientRect().width);
  const wide = heads.filter((head) => width(head) > room(head) + 1);
  return { count: heads.length, wide: wide.map((head) => head.textContent) };
}
"""
PAGES = (
    "/ui",
    "/ui?range=7d",
    "/ui/requests?outcome=not-clean",
    "/ui/requests?model=nobody",
    f"/ui/requests/{KEPT.id}",
    f"/ui/requests/{WICKED.id}",
    "/ui/approvals",
    "/ui/models",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedGateway]:
    """Serve a day of requests, some with names that try to become code."""
    records = [*usual_day(), *HOSTILE_ROWS, KEPT, SAVED, WICKED]
    with serve_in_thread(tmp_path_factory.mktemp("dashboard"), records) as started:
        yield started


@pytest.fixture
def site(browser: Browser, served: ServedGateway) -> Iterator[WatchedSite]:
    """Open a page; at the end nothing may have gone wrong in it."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    watched = WatchedSite(context.new_page(), served.url)
    yield watched
    context.close()
    assert watched.troubles == []


def test_every_page_fits_every_screen_and_is_harmless(site: WatchedSite) -> None:
    """Light and dark, wide and narrow: no sideways scrolling, and no name becomes code."""
    for path in PAGES:
        page = site.visit(path)
        expect(page.locator("h1")).to_have_count(1)
        for look, ground in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(15, 19, 24)")):
            page.emulate_media(color_scheme="dark" if look == "dark" else "light")
            expect(page.locator("body")).to_have_css("background-color", ground)
        for width in (1280, 900, 641, 400, 320):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.evaluate("window.__pwned") is None
        assert page.evaluate(UNNAMED) == [], path
        assert page.evaluate(REPEATED_IDS) == [], path


def test_headings_stay_in_their_columns(site: WatchedSite) -> None:
    """No heading of the table of turns reaches into the next, wherever the table has headings."""
    page = site.visit("/ui")
    for width in (1600, 1280, 1061, 1000, 901, 861):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(HEADINGS) == {"count": 6, "wide": []}, width


def test_the_title_says_how_it_went_and_what_was_wrong(site: WatchedSite) -> None:
    """Share, number, and the model that was broken more than usual."""
    page = site.visit("/ui")
    title = page.locator("h1").inner_text().replace("\u202f", " ")
    assert re.match(r"[\d.]+ % of \d+ replies were clean in the last hour; surecall set", title)
    assert "more was broken than usual: small via stub, mostly CALL_IN_TEXT" in (
        page.locator(".sub").first.inner_text()
    )
    page.get_by_role("link", name="Show these requests").click()
    expect(page.locator("h1")).to_contain_text("requests were not clean")
    assert "since=" in page.url
    page.go_back()
    expect(page.locator("table.pairs")).to_be_visible()


def test_a_time_is_chosen_by_a_link_that_can_be_shared(site: WatchedSite) -> None:
    """The address has it, and opening the address shows it."""
    page = site.visit("/ui")
    page.get_by_role("link", name="7 days").click()
    expect(page).to_have_url(re.compile(r"/ui\?range=7d$"))
    expect(page.locator(".seg [aria-current]")).to_have_text("7 days")
    page = site.visit("/ui?range=7d")
    expect(page.locator(".seg [aria-current]")).to_have_text("7 days")


def test_filters_are_in_the_address(site: WatchedSite) -> None:
    """A choice changes the address and the list; all can be taken off."""
    page = site.visit("/ui/requests")
    page.locator("#f-outcome").select_option("refused")
    expect(page).to_have_url(re.compile(r"\?outcome=refused$"))
    expect(page.locator("h1")).to_have_text("2 requests were refused")
    page.locator("#f-model").fill(HOSTILE[0])
    page.locator("#f-model").press("Enter")
    expect(page.locator("h1")).to_contain_text(f"1 request was refused for {HOSTILE[0]}")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.get_by_role("link", name="Take all filters off").click()
    expect(page.locator("[data-row]")).to_have_count(50)
    page.locator("#older").click()
    expect(page.locator("h1")).to_be_visible()
    assert "before=" in page.url
    expect(page.get_by_role("link", name="Newest")).to_be_visible()


def test_keys_lead_everywhere(site: WatchedSite) -> None:
    """The filter, rows, a request, the next one, back up, and the list of keys."""
    page = site.visit("/ui")
    page.keyboard.press("/")
    expect(page.locator("#f-model")).to_be_focused()
    page.keyboard.type("jk")
    expect(page.locator("#f-model")).to_have_value("jk")
    page.locator("#f-model").fill("")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    first = page.locator("[data-row] a").first
    expect(first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".lane")).to_be_visible()
    address = page.url
    page.keyboard.press("j")
    expect(page).not_to_have_url(address)
    expect(page.locator(".lane")).to_be_visible()
    page.keyboard.press("u")
    expect(page.locator("table.list")).to_be_visible()
    page.keyboard.press("4")
    expect(page.locator("h1")).to_contain_text("asked what they can do")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_contain_text("next row or request")
    page.keyboard.press("Escape")
    expect(page.locator("#help")).not_to_be_visible()
    page.keyboard.press("d")
    expect(page.locator("html")).to_have_attribute("data-look", "dark")


def test_one_request_shows_what_was_changed(site: WatchedSite) -> None:
    """What came, each receipt with its difference, what was tried, and what went out."""
    page = site.visit(f"/ui/requests/{KEPT.id}")
    expect(page.locator("h1")).to_have_text(
        "Re-asked once, then repaired: the client got 1 valid call"
    )
    expect(page.locator(".stage h3").nth(1)).to_contain_text("What came back")
    expect(page.locator(".receipts li")).to_have_count(2)
    number = page.locator(".receipts li").nth(1)
    expect(number.locator("del")).to_contain_text('"3"')
    expect(number.locator("ins")).to_contain_text("3")
    expect(number).to_contain_text("lossless")
    expect(page.locator(".tried")).to_contain_text("this gave what was delivered, 1 request")
    expect(page.locator(".waterfall .sum")).to_contain_text("in all")


def test_what_a_model_wrote_is_shown_as_text(site: WatchedSite) -> None:
    """Markup in names and bodies is visible, and directions cannot be turned."""
    page = site.visit(f"/ui/requests/{WICKED.id}")
    expect(page.locator(".lane")).to_contain_text("onerror=window.__pwned=1")
    assert page.locator("main img, main script").count() == 0
    page = site.visit("/ui/requests?upstream=__proto__")
    expect(page.locator("[data-row]")).to_have_count(1)
    page = site.visit("/ui/requests?outcome=repaired")
    expect(page.locator(".unseen").first).to_have_text("U+202E")


def test_a_case_is_saved_with_the_calls_that_are_right(site: WatchedSite) -> None:
    """The delivered call is offered, and what is no JSON is not taken."""
    page = site.visit(f"/ui/requests/{SAVED.id}")
    page.keyboard.press("s")
    field = page.locator("#calls")
    assert '"city": "Oslo"' in field.input_value()
    field.fill("[{")
    page.locator("#download").click()
    expect(page.locator("#help .problem")).to_have_text("The expected calls are not JSON.")
    field.fill("[]")
    with page.expect_download() as found:
        page.locator("#download").click()
    assert found.value.suggested_filename == f"case-{SAVED.id}.json"
    assert '"calls":[]' in Path(found.value.path()).read_text().replace(" ", "")


def test_figures_are_fresh_while_somebody_looks(browser: Browser, tmp_path: Path) -> None:
    """The empty page fills by itself; one that is paused or hidden asks for nothing."""
    with serve_in_thread(tmp_path, []) as served:
        context = browser.new_context()
        watched = WatchedSite(context.new_page(), served.url)
        watched.page.clock.install()
        page = watched.visit("/ui")
        expect(page.locator("h1")).to_have_text("No request has come through yet.")
        expect(page.locator("main")).to_contain_text(f'base_url="{served.url}/v1"')
        served.add(make_request(1))
        page.clock.run_for(6000)
        expect(page.locator("h1")).to_contain_text("of 1 reply was clean")
        page.keyboard.press("Space")
        expect(page.locator("#live")).to_contain_text("Paused since")
        asked = len(watched.requests)
        page.clock.run_for(60_000)
        assert len(watched.requests) == asked
        page.keyboard.press("Space")
        expect(page.locator("#live")).to_contain_text("Live")
        page.evaluate(HIDE)
        asked = len(watched.requests)
        page.clock.run_for(60_000)
        assert len(watched.requests) == asked > 2
        context.close()
        assert watched.troubles == []


def test_a_key_is_asked_for_where_there_are_keys(browser: Browser, tmp_path: Path) -> None:
    """After signing in the page is there, and signing out takes it away again."""
    from gateway.test_security import KEYS, key_tables

    from .served import UPSTREAMS

    with serve_in_thread(tmp_path, [make_request(5)], UPSTREAMS + key_tables()) as served:
        context = browser.new_context()
        watched = WatchedSite(context.new_page(), served.url)
        page = watched.visit("/ui/requests")
        expect(page.locator("h1")).to_have_text("Sign in to look at this gateway")
        page.locator("#key").fill(KEYS["read-only"])
        page.keyboard.press("Enter")
        expect(page.locator("[data-row]")).to_have_count(1)
        assert page.evaluate("document.cookie") == ""
        page.locator("[data-row] a").click()
        expect(page.locator("#replay")).to_be_disabled()
        page.get_by_role("button", name="Sign out").click()
        expect(page.locator("h1")).to_have_text("Sign in to look at this gateway")
        context.close()
        assert [line for line in watched.troubles if "401" not in line] == []
