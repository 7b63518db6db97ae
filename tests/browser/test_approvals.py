"""The page of approvals in a browser: reading, choosing, deciding, and being too late."""

import re
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import surecall
from support.dashboard_traffic import HOSTILE
from support.waiting_approvals import LARGE, expire, pause_run, propose_launch
from surecall.store import DatabaseStore, SqliteStore
from surecall.tools.approvals import Approval
from surecall.workspace import ProposedFact

from .served import UPSTREAMS, ServedGateway, WatchedSite, serve_in_thread
from .test_keys_and_looks import REPEATED_IDS, UNNAMED

Work = Callable[[DatabaseStore], Coroutine[Any, Any, Any]]


class Desk:
    """A page of approvals, and the application whose runs wait for them."""

    def __init__(self, site: WatchedSite, served: ServedGateway, place: Path) -> None:
        self.site = site
        self._served = served
        self._place = place

    def use(self, work: Work) -> Any:
        """Do something in the store, as an application does."""

        async def act() -> Any:
            async with SqliteStore(self._place) as store:
                return await work(store)

        return self._served.run(act())

    def pause(self, name: str = "delete_drafts", **arguments: Any) -> Approval:
        """Let a call wait."""
        return self.use(lambda store: pause_run(store, name, arguments or {"count": 12}))

    def get(self, approval_id: str) -> Approval:
        """Return an approval as it is stored."""
        return self.use(lambda store: store.get(approval_id))

    def visit(self, approval_id: str = "") -> Page:
        """Open the page."""
        return self.site.visit(f"/ui/approvals/{approval_id}" if approval_id else "/ui/approvals")


@pytest.fixture
def desk(browser: Browser, tmp_path: Path) -> Iterator[Desk]:
    """Serve an empty store; at the end nothing may have gone wrong in the page."""
    place = tmp_path / "approvals.db"
    settings = f'{UPSTREAMS}[approvals]\nstore = "{place}"\n'
    with serve_in_thread(tmp_path, [], settings) as served:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        site = WatchedSite(context.new_page(), served.url)
        yield Desk(site, served, place)
        context.close()
    # A refused decision is an answer that the browser notes by itself.
    noted = [each for each in site.troubles if "status of 40" not in each]
    assert noted == []


def test_every_state_fits_every_screen_and_is_harmless(desk: Desk) -> None:
    """A call, facts, a denial, one out of time; with names that try to become code."""
    approval = desk.pause("send_mail", to=HOSTILE[0], subject=HOSTILE[3], copies=LARGE)
    _, proposal = desk.use(lambda store: propose_launch(store, HOSTILE[2][:60], conflict=True))
    denied = desk.pause("send_mail", to=HOSTILE[2], subject="x")
    desk.use(lambda store: surecall.deny(store, denied.id, by=HOSTILE[0], reason=HOSTILE[3]))
    late = desk.use(lambda store: expire(store, approval))
    for one in (approval, proposal, denied, late):
        page = desk.visit(one.id)
        expect(page.locator("h1")).to_have_text("1 call and 1 proposal wait for your yes or no")
        if page.locator("#edit").count():
            page.keyboard.press("e")
        for width in (1280, 900, 641, 400, 320):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, one.id
        assert page.evaluate("window.__pwned") is None
        assert page.evaluate(UNNAMED) == []
        assert page.evaluate(REPEATED_IDS) == []
    expect(desk.visit(approval.id).locator("pre.box").first).to_contain_text("U+202E")


def test_nothing_waits_and_then_something_does(desk: Desk) -> None:
    """The page follows by itself, and counts beside its name."""
    page = desk.visit()
    expect(page.locator("h1")).to_have_text("No store of approvals is open")
    expect(page.locator("main")).to_contain_text("There is no file")
    approval = desk.pause()
    expect(page.locator("h1")).to_have_text("1 call waits for your yes or no")
    expect(page.locator("#waiting-count")).to_have_text("1")
    expect(page.locator("#chosen")).to_have_text("Run delete_drafts")
    desk.use(lambda store: surecall.deny(store, approval.id, by="lena", reason="No."))
    expect(page.locator("h1")).to_have_text("Nothing waits for you")
    expect(page.locator(".verdict")).to_contain_text("Denied by lena")
    expect(page.locator(".queue")).to_contain_text("denied")


def test_keys_approve_and_lead_to_the_next(desk: Desk) -> None:
    """`j`, Enter and `a`; what cannot be taken back is asked once more."""
    first, second = desk.pause(), desk.pause("send_mail", to="ann", subject="Hi", copies=LARGE)
    page = desk.visit()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#chosen")).to_have_text("Run send_mail")
    page.keyboard.press("a")
    expect(page.locator("#help")).to_contain_text("Run send_mail? It cannot be taken back.")
    expect(page.locator("#help")).to_contain_text(str(LARGE))
    assert desk.get(second.id).status == "pending"
    page.locator("#sure").click()
    expect(page.locator(".verdict")).to_contain_text("Approved by local user")
    assert desk.get(second.id).approved_digest == second.digest
    expect(page.locator("#next")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#chosen")).to_have_text("Run delete_drafts")
    page.keyboard.press("a")
    expect(page.locator("h1")).to_have_text("Nothing waits for you")
    assert desk.get(first.id).status == "approved"


def test_a_denial_waits_for_its_reason(desk: Desk) -> None:
    """`x` leads to the field, a ready reason fills it, and typing survives what is new."""
    approval = desk.pause()
    page = desk.visit()
    expect(page.locator("#deny")).to_be_disabled()
    page.keyboard.press("x")
    expect(page.locator("#reason")).to_be_focused()
    page.keyboard.type("ax")
    desk.pause()
    expect(page.locator("h1")).to_have_text("2 calls wait for your yes or no")
    expect(page.locator("#reason")).to_be_focused()
    expect(page.locator("#reason")).to_have_value("ax")
    page.get_by_role("button", name="Ask the user first").click()
    page.keyboard.press("Escape")
    page.keyboard.press("x")
    expect(page.locator(".verdict")).to_contain_text("Denied by local user")
    assert desk.get(approval.id).reason == "Ask the user first."


def test_edited_arguments_are_refused_until_they_fit(desk: Desk) -> None:
    """The error is shown, what was typed stays, and the second try is bound."""
    approval = desk.pause()
    page = desk.visit()
    page.keyboard.press("e")
    field = page.locator("#arguments")
    expect(field).to_be_focused()
    field.fill('{"count": "all"}')
    expect(page.locator("#approve")).to_contain_text("Approve with 1 edit")
    page.locator("#approve").click()
    expect(page.locator("#problem")).to_contain_text("do not fit delete_drafts")
    expect(field).to_have_value('{"count": "all"}')
    assert desk.get(approval.id).status == "pending"
    field.fill(f'{{"count": {LARGE}}}')
    page.locator("#approve").click()
    expect(page.locator(".verdict")).to_contain_text("Approved")
    expect(page.locator("section")).to_contain_text("Arguments as approved")
    assert desk.get(approval.id).approved_payload == {"count": LARGE}


def test_facts_are_compared_chosen_and_committed(desk: Desk) -> None:
    """A conflict is kept by default; parts and other values can be taken."""
    workspace, proposal = desk.use(lambda store: propose_launch(store, conflict=True))
    page = desk.visit(proposal.id)
    rows = page.locator(".diff tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.nth(0).locator("del")).to_contain_text("14")
    expect(rows.nth(0).locator("ins")).to_contain_text("21")
    expect(rows.nth(2)).to_have_class("conflict")
    expect(rows.nth(2)).to_contain_text("8000 when proposed; changed by lena")
    expect(rows.nth(3)).to_contain_text("not there")
    expect(page.locator("#approve")).to_contain_text("Approve with 1 edit")
    page.keyboard.press("e")
    page.locator("#keep-1").click()
    expect(page.locator("#value-2")).to_be_hidden()
    page.locator("#other-2").click()
    page.locator("#value-2").fill("9100")
    expect(page.locator("#approve")).to_contain_text("Approve with 2 edits")
    page.locator("#approve").click()
    expect(page.locator(".verdict")).to_contain_text("It holds once it is committed.")
    page.locator("#commit").click()
    expect(page.locator(".verdict")).to_contain_text("It is committed.")

    async def read(store: DatabaseStore) -> Any:
        return await store.load_state(workspace.id)

    facts = desk.use(read).facts
    assert facts["launch"] == {
        "date": "2027-03-21",
        "venue": "Harbour Hall",
        "guests": ["Ada", "Lin", "Noor"],
    }
    assert facts["budget"]["limit"] == 9100


def test_whoever_is_too_late_learns_it(desk: Desk) -> None:
    """Somebody else was quicker, and the facts changed under the choice."""
    approval = desk.pause()
    page = desk.visit(approval.id)
    page.get_by_role("button", name="Pause").click()
    desk.use(lambda store: surecall.deny(store, approval.id, by="lena", reason="No."))
    page.keyboard.press("a")
    expect(page.locator(".verdict")).to_contain_text("Denied by lena")
    expect(page.locator("#problem")).to_contain_text("was already denied")

    workspace, proposal = desk.use(propose_launch)
    page = desk.visit(proposal.id)
    page.get_by_role("button", name="Pause").click()

    async def change(store: DatabaseStore) -> None:
        mine = type(workspace)(workspace.id, store)
        other = await mine.propose([ProposedFact("/facts/budget/limit", 1)])
        await mine.accept(other.id, by="lena")
        await mine.commit(other.id)

    desk.use(change)
    page.keyboard.press("a")
    expect(page.locator("#problem")).to_contain_text("The facts have changed since you looked")
    expect(page.locator("tr.conflict")).to_have_count(1)
    expect(page.locator("#approve")).to_contain_text(re.compile("Approve with 1 edit"))
    assert desk.get(proposal.id).status == "pending"
