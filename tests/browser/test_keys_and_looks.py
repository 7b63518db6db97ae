"""Keys, light and dark, paper, and what assistive technology reads."""

import re
from pathlib import Path

import pytest
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
WHITE, NIGHT = "rgb(255, 255, 255)", "rgb(15, 19, 24)"


def expect_background(page: Page, colour: str) -> None:
    """Wait until the page has a colour behind its text."""
    expect(page.locator("body")).to_have_css("background-color", colour)


# Keys


def test_a_slash_goes_to_the_search_and_escape_leaves_it(page: Page) -> None:
    """What is typed after it is looked for, letters that are keys included."""
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("j")
    expect(page.locator("h1:visible")).to_contain_text("Trials")
    page.keyboard.type("k?")
    expect(page.locator("#search")).to_have_value("jk?")
    page.keyboard.press("Escape")
    expect(page.locator("#search")).not_to_be_focused()


def test_a_question_mark_lists_the_keys(page: Page) -> None:
    """Escape closes the list."""
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    expect(page.locator("#help")).to_contain_text("next part, row or trial")
    page.keyboard.press("Escape")
    expect(page.locator("#help")).not_to_be_visible()


def test_j_and_k_walk_through_trials_and_enter_opens(page: Page) -> None:
    """Also with the keyboard alone a trial is found, opened and left."""
    page.keyboard.press("t")
    expect(page.locator("h1:visible")).to_contain_text("Trials")
    for key in "jjjk":
        page.keyboard.press(key)
    expect(page.locator("[data-key='trial-1']")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1:visible")).to_contain_text("Trial 1")
    expect(page.locator("#transcript:not([aria-busy])")).to_be_attached()
    page.keyboard.press("n")
    expect(page.locator("#turn-0")).to_be_focused()
    expect(page).to_have_url(re.compile(r"#/trial/1/turn/0$"))
    page.keyboard.press("n")
    expect(page).to_have_url(re.compile(r"#/trial/1/turn/0/call/0$"))
    page.keyboard.press("u")
    expect(page.locator("h1:visible")).to_contain_text("partial_success_failure")
    page.keyboard.press("u")
    expect(page.locator(".heat:visible")).to_have_count(1)


def test_j_walks_through_the_parts(page: Page) -> None:
    """On the answer the stops are its parts, from the sentence on."""
    page.keyboard.press("j")
    expect(page.locator(".view:visible .answer")).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator("section[aria-label='Models, best first']:visible")).to_be_focused()
    page.keyboard.press("k")
    expect(page.locator(".view:visible .answer")).to_be_focused()


def test_arrows_walk_through_the_heat_map(page: Page) -> None:
    """One field is a stop of the tab key; arrows move it."""
    fields = page.locator(".heat:visible a.cell")
    assert page.locator(".heat:visible a.cell[tabindex='0']").count() == 1
    fields.first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowRight"):
        page.keyboard.press(key)
    focused = page.locator(".heat:visible a.cell:focus")
    assert (focused.get_attribute("data-x"), focused.get_attribute("data-y")) == ("1", "2")
    assert page.locator(".heat:visible a.cell[tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    expect(page.locator("h1:visible")).to_contain_text("missing_workspace_id")


def test_j_and_k_go_to_the_trials_before_and_after(watched: WatchedPage, report_path: Path) -> None:
    """On the page of a trial."""
    watched.open(file_url(report_path, "#/trial/5"))
    page = watched.page
    page.keyboard.press("j")
    expect(page.locator("h1:visible")).to_contain_text("Trial 6")
    page.keyboard.press("k")
    page.keyboard.press("k")
    expect(page.locator("h1:visible")).to_contain_text("Trial 4")


def test_keys_with_control_belong_to_the_browser(page: Page) -> None:
    """Nothing happens, so that the browser's own meaning holds."""
    page.keyboard.press("Control+j")
    page.keyboard.press("Alt+t")
    expect(page.locator(".heat:visible")).to_have_count(1)
    assert page.evaluate("document.activeElement === document.body")


def test_the_focus_can_be_seen(page: Page) -> None:
    """Every stop of the tab key has a ring around it."""
    for _ in range(12):
        page.keyboard.press("Tab")
        style = page.evaluate("getComputedStyle(document.activeElement).outline")
        assert "solid 2px" in style or "solid 3px" in style, page.evaluate(
            "document.activeElement.outerHTML"
        )


def test_the_first_stop_skips_to_the_content(page: Page) -> None:
    """Without leaving the page."""
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    expect(page.locator(".heat:visible")).to_have_count(1)


def test_a_filter_keeps_the_focus(page: Page) -> None:
    """After a choice the same box is the one that the keyboard is at."""
    show(page, "#/trials")
    box = page.locator("input[data-key='verdict=wrong']")
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
    page.locator("#look").click()
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
    page.emulate_media(color_scheme="light")
    expect_background(page, WHITE)


def test_paper_has_no_controls_and_is_white(page: Page) -> None:
    """Filters, buttons and navigation are left out, charts and their colours stay."""
    page.locator("#look").click()
    expect_background(page, NIGHT)
    page.emulate_media(media="print")
    expect_background(page, WHITE)
    for gone in ("#search", "#look", "#pages", ".choices"):
        expect(page.locator(gone).first).not_to_be_visible()
    for kept in (".kicker", ".answer h1", ".board", ".heat", "#how code"):
        expect(page.locator(kept).first).to_be_visible()
    exact = "field => getComputedStyle(field).printColorAdjust"
    assert page.locator(".heat:visible a.cell").first.evaluate(exact) == "exact"
    wide = page.evaluate("document.querySelector('.board').getBoundingClientRect().left")
    assert wide < 20


def test_it_prints_on_several_pages(page: Page) -> None:
    """The browser makes a document of it."""
    document = page.pdf(format="A4", print_background=True)
    assert document.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", document)) <= 12


@pytest.mark.parametrize("width", [320, 400, 641, 900, 1024])
def test_a_narrow_screen_scrolls_in_one_direction(page: Page, width: int) -> None:
    """Wide parts scroll by themselves, the page does not."""
    page.set_viewport_size({"width": width, "height": 800})
    for address in ("#/", "#/trials", "#/trial/93"):
        show(page, address)
        expect(page.locator("#main")).not_to_be_empty()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_map_that_does_not_fit_says_so(page: Page) -> None:
    """Between the narrow and the wide form there is a hint above it."""
    expect(page.locator(".swipe:visible")).to_have_count(0)
    page.set_viewport_size({"width": 1000, "height": 800})
    expect(page.locator(".view:visible .swipe")).to_be_visible()
    page.set_viewport_size({"width": 400, "height": 800})
    expect(page.locator(".heat:visible")).to_have_count(0)
    expect(page.locator(".cards:visible details[open]")).to_have_count(1)


# What is read aloud


def test_everything_has_a_name(page: Page) -> None:
    """Links, buttons, fields, charts and tables, on every kind of page."""
    assert page.locator("html").get_attribute("lang") == "en"
    for address in ("#/", "#/trials?verdict=fail", "#/trial/93"):
        show(page, address)
        expect(page.locator("[aria-busy]")).to_have_count(0)
        expect(page.locator("h1:visible")).to_have_count(1)
        assert page.evaluate(UNNAMED) == []
        assert page.evaluate(REPEATED_IDS) == []


def test_drawings_say_what_they_show(page: Page) -> None:
    """Each drawing is one image with a label that says its figures."""
    drawings = page.locator(".view:visible svg[role=img]")
    assert drawings.count() == 12  # six models on the board, six from raw to production
    for drawing in drawings.all():
        assert re.search(r"\d+ (percent|to \d+ percent)", drawing.get_attribute("aria-label") or "")


def test_verdicts_are_words_and_not_only_colours(page: Page) -> None:
    """A cross and a word, a tick and a word."""
    show(page, "#/trials")
    words = set(page.locator("table.trials td .mark").all_inner_texts())
    assert words == {"right", "wrong"}
    assert page.locator("table.trials td .mark svg").count() == 200
