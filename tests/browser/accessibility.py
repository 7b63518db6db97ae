"""What axe-core finds on a page: in light and dark, on a wide and on a narrow screen."""

from typing import Any, Final, Literal, cast

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

__all__ = ["find_barriers"]

_LOOKS: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
_WIDTHS: Final = (1280, 400)
_OPTIONS: Final = {"resultTypes": ["violations"], "iframes": False}


def find_barriers(page: Page) -> list[str]:
    """Return every serious or critical finding, with where it is and how it was looked at."""
    found: list[str] = []
    for width in _WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for look in _LOOKS:
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
