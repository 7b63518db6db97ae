"""Keys, light and dark, paper, and what assistive technology reads."""

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from support.reports import file_url

from .watched import WatchedPage, show

UNNAMED = """
() => [...document.querySelectorAll("a, button, input, select, [role=img], table, nav, figure")]
  .filter((node) => node.checkVisibility())
  .filter((node) => {
    const label = node.getAttribute("aria-label")
      ?? document.getElementById(node.getAttribute("aria-labelledby"))?.textContent
      ?? node.labels?.[0]?.textContent
      ?? node.caption?.textContent
      ?? node.textContent;
    return !label.trim();
  })
  .map((node) => node.outerHTML.slice(0, 120))
"""
REPEATED_IDS = """
() => {
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  return ids.filter((id, i) => ids.indexOf(id) !== i);
}
"""
WHITE, NIGHT = "rgb(255, 255, 255)", "rgb(18, 22, 28)"


def expect_background(page: Page, colour: str) -> None:
    """Wait until the page has a colour behind its text."""
    expect(page.locator("body")).to_have_css("background-color", colour)


# Keys


def test_a_slash_goes_to_the_search_and_escape_leaves_it(page: Page) -> None:
    """What is typed after it is looked for, letters that are keys included."""
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("jk?")
    expect(page.locator("#search")).to_have_value("jk?")
    page.keyboard.press("Escape")
    expect(page.locator("#search")).not_to_be_focused()


def test_a_question_mark_lists_the_keys(page: Page) -> None:
    """Escape closes the list."""
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    expect(page.locator("#help")).to_contain_text("next and previous")
    page.keyboard.press("Escape")
    expect(page.locator("#help")).not_to_be_visible()


def test_j_and_k_walk_through_trials_and_enter_opens(page: Page) -> None:
    """Also with the keyboard alone a trial is found, opened and left."""
    page.keyboard.press("t")
    expect(page.locator("h1")).to_contain_text("Trials")
    for key in "jjjk":
        page.keyboard.press(key)
    expect(page.locator("[data-key='trial-1']")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("Trial 1")
    expect(page.locator("#transcript:not([aria-busy])")).to_be_attached()
    page.keyboard.press("j")
    expect(page.locator("#turn-0")).to_be_focused()
    expect(page).to_have_url(re.compile(r"#/trial/1/turn/0$"))
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile(r"#/trial/1/turn/0/call/0$"))
    page.keyboard.press("u")
    expect(page.locator("h1")).to_contain_text("partial_success_failure")
    page.keyboard.press("u")
    expect(page.locator("#heat")).to_be_visible()


def test_j_walks_through_charts(page: Page) -> None:
    """On the overview the stops are the charts."""
    page.keyboard.press("j")
    expect(page.locator("#chart-heat")).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator("#chart-failures")).to_be_focused()
    page.keyboard.press("k")
    expect(page.locator("#chart-heat")).to_be_focused()


def test_arrows_walk_through_the_heat_map(page: Page) -> None:
    """One field is a stop of the tab key; arrows move it."""
    fields = page.locator("#heat a.rate")
    assert page.locator("#heat a.rate[tabindex='0']").count() == 1
    fields.first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowRight"):
        page.keyboard.press(key)
    focused = page.locator("#heat a.rate:focus")
    assert (focused.get_attribute("data-x"), focused.get_attribute("data-y")) == ("1", "2")
    assert page.locator("#heat a.rate[tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("partial_success_failure")


def test_arrows_go_to_the_trials_before_and_after(watched: WatchedPage, report_path: Path) -> None:
    """On the page of a trial."""
    watched.open(file_url(report_path, "#/trial/5"))
    page = watched.page
    page.keyboard.press("ArrowRight")
    expect(page.locator("h1")).to_contain_text("Trial 6")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("h1")).to_contain_text("Trial 4")


def test_keys_with_control_belong_to_the_browser(page: Page) -> None:
    """Nothing happens, so that the browser's own meaning holds."""
    page.keyboard.press("Control+j")
    page.keyboard.press("Alt+t")
    expect(page.locator("#heat")).to_be_visible()
    assert page.evaluate("document.activeElement === document.body")


def test_the_focus_can_be_seen(page: Page) -> None:
    """Every stop of the tab key has a ring around it."""
    for _ in range(12):
        page.keyboard.press("Tab")
        style = page.evaluate("getComputedStyle(document.activeElement).outline")
        assert "solid 3px" in style, page.evaluate("document.activeElement.outerHTML")


def test_the_first_stop_skips_to_the_content(page: Page) -> None:
    """Without leaving the page."""
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    expect(page.locator("#heat")).to_be_visible()


def test_a_filter_keeps_the_focus(page: Page) -> None:
    """After a choice the same box is the one that the keyboard is at."""
    box = page.locator("input[data-key='verdict=fail']")
    box.focus()
    page.keyboard.press("Space")
    expect(page.locator(".chip")).to_have_count(1)
    expect(box).to_be_focused()
    expect(box).to_be_checked()


# Looks


def test_the_page_follows_the_system_and_can_be_switched(
    browser: Browser, report_path: Path
) -> None:
    """Light and dark by what the system prefers, or by the button, which is remembered."""
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(file_url(report_path))
    expect_background(page, NIGHT)
    expect(page.locator("#theme")).to_have_text("Light")
    page.locator("#theme").click()
    expect_background(page, WHITE)
    page.reload()
    expect_background(page, WHITE)
    page.emulate_media(color_scheme="light")
    page.keyboard.press("d")
    expect_background(page, NIGHT)
    context.close()


def test_a_change_of_the_system_is_followed(page: Page) -> None:
    """While nothing was chosen by hand."""
    page.emulate_media(color_scheme="dark")
    expect_background(page, NIGHT)
    expect(page.locator("#theme")).to_have_text("Light")
    page.emulate_media(color_scheme="light")
    expect_background(page, WHITE)


def test_paper_has_no_controls_and_is_white(page: Page) -> None:
    """Filters, buttons and navigation are left out, charts and their colours stay."""
    page.locator("#theme").click()
    expect_background(page, NIGHT)
    page.emulate_media(media="print")
    expect_background(page, WHITE)
    for gone in (".facets", "#search", "#theme", "#pages", ".controls", ".copy"):
        expect(page.locator(gone).first).not_to_be_visible()
    for kept in (".ran", ".command code", "#heat", "#chart-latency svg[role=img]", ".tile"):
        expect(page.locator(kept).first).to_be_visible()
    exact = "getComputedStyle(document.querySelector('#heat a.rate')).printColorAdjust"
    assert page.evaluate(exact) == "exact"
    wide = page.evaluate("document.querySelector('.content').getBoundingClientRect().left")
    assert wide < 20


def test_it_prints_on_several_pages(page: Page) -> None:
    """The browser makes a document of it."""
    document = page.pdf(format="A4", print_background=True)
    assert document.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", document)) <= 12


def test_a_narrow_screen_scrolls_in_one_direction(page: Page) -> None:
    """Wide parts scroll by themselves, the page does not."""
    for address in ("#/", "#/trials", "#/trial/93"):
        show(page, address)
        page.set_viewport_size({"width": 420, "height": 800})
        expect(page.locator("#main")).not_to_be_empty()
        expect(page.locator("[aria-busy]")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= 420


# What is read aloud


def test_everything_has_a_name(page: Page) -> None:
    """Links, buttons, fields, charts and tables, on every kind of page."""
    assert page.locator("html").get_attribute("lang") == "en"
    for address in ("#/", "#/trials?verdict=fail", "#/trial/93"):
        show(page, address)
        expect(page.locator("[aria-busy]")).to_have_count(0)
        expect(page.locator("h1")).to_have_count(1)
        assert page.evaluate(UNNAMED) == []
        assert page.evaluate(REPEATED_IDS) == []


def test_charts_say_what_they_show(page: Page) -> None:
    """Each drawing is one image with a label; its marks are no stops of the tab key."""
    drawings = page.locator("svg[role=img]")
    assert drawings.count() == 7
    for drawing in drawings.all():
        assert len(drawing.get_attribute("aria-label") or "") > 10
    assert page.locator("svg a:not([tabindex='-1'])").count() == 0


def test_verdicts_are_words_and_not_only_colours(page: Page) -> None:
    """A cross and a word, a tick and a word."""
    show(page, "#/trials")
    words = set(
        page.locator("table.trials .badge.pass, table.trials .badge.fail").all_inner_texts()
    )
    assert words == {"✓ pass", "✗ fail"}
