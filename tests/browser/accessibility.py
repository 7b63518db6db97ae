"""What axe-core finds on a page: in light on a wide screen, and in dark on a narrow one."""

from typing import Any, Final, Literal, cast

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

__all__ = ["find_barriers"]

_VIEWS: Final[tuple[tuple[int, Literal["light", "dark"]], ...]] = ((1280, "light"), (400, "dark"))
"""Colours do not depend on the width, nor the layout on colours."""
_OPTIONS: Final = {"resultTypes": ["violations"], "iframes": False}
_THIN_OUT: Final = """
() => {
  for (const body of document.querySelectorAll("tbody")) {
    const step = Math.ceil(body.rows.length / 20);
    [...body.rows].forEach((row, at) => at % step && row.remove());
  }
}
"""
"""Rows are alike, and each takes its time: twenty of a table are left, from its whole length."""


def find_barriers(page: Page) -> list[str]:
    """Return every serious or critical finding, with where it is and how it was looked at."""
    found: list[str] = []
    page.evaluate(_THIN_OUT)
    for width, look in _VIEWS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=look, reduced_motion="reduce")
        response: dict[str, Any] = cast("Any", Axe)().run(page, options=_OPTIONS).response
        found += (
            f"{page.url} {width} px {look}: {_describe(violation)}"
            for violation in response["violations"]
            if violation["impact"] in {"serious", "critical"}
        )
    return found


def _describe(violation: dict[str, Any]) -> str:
    places = [f"{node['target']} {node['html'][:100]}" for node in violation["nodes"][:3]]
    return f"{violation['id']} at {len(violation['nodes'])} places, such as {'; '.join(places)}"
