"""Report and dashboard have no barrier that axe-core calls serious or critical."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from support.dashboard_traffic import BODY, REASKED, REPAIRED, REPLY, make_request, usual_day

from .accessibility import find_barriers
from .served import WatchedSite, serve_in_thread
from .watched import show

REQUEST = make_request(
    9,
    **REASKED | {"receipts": REPAIRED["receipts"]},
    request_body=BODY,
    reply_body=REPLY,
)
DASHBOARD = ("/ui", "/ui/requests", f"/ui/requests/{REQUEST.id}", "/ui/approvals", "/ui/models")


@pytest.mark.parametrize("address", ["#/", "#/trials", "#/trial/1"])
def test_the_report_has_no_barrier(page: Page, address: str) -> None:
    """The answer, the list of trials and one trial, each with whatever is drawn on it."""
    show(page, address)
    assert find_barriers(page) == []


def test_the_dashboard_has_no_barrier(browser: Browser, tmp_path: Path) -> None:
    """Every page, with a usual day of requests; it asks nobody but the gateway it came from."""
    context = browser.new_context()
    with serve_in_thread(tmp_path, [*usual_day(), REQUEST]) as served:
        site = WatchedSite(context.new_page(), served.url)
        found = [barrier for path in DASHBOARD for barrier in find_barriers(site.visit(path))]
        context.close()
    assert found == []
    assert site.troubles == []
