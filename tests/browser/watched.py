"""A page that remembers everything that should not happen in it."""

from playwright.sync_api import ConsoleMessage, Dialog, Page, Request, expect

__all__ = ["WatchedPage", "settle", "show"]

FOLLOW = """
address => new Promise((shown) => {
  const before = location.hash;
  addEventListener("hashchange", () => shown(), { once: true });
  location.hash = address;
  if (location.hash === before) shown();
})
"""


def settle(page: Page) -> None:
    """Wait until the page shows what its address names; transcripts are unpacked later."""
    expect(page.locator("[aria-busy]")).to_have_count(0)


def show(page: Page, address: str) -> None:
    """Go to another address of the page and wait until it is shown."""
    page.evaluate(FOLLOW, address)
    settle(page)


class WatchedPage:
    """A page whose requests, dialogs and errors are kept."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.troubles: list[str] = []
        self._own = ""
        page.on("request", self._note_request)
        page.on("dialog", self._note_dialog)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("console", self._note_console)

    def open(self, url: str) -> None:
        """Open a file; it is the only thing that may ever be asked for."""
        self._own = url.partition("#")[0]
        self.page.goto(url)
        settle(self.page)

    def _note_request(self, request: Request) -> None:
        self.requests.append(request.url)
        if request.url.partition("#")[0] not in {self._own, "data:,"}:
            self.troubles.append(f"request: {request.url}")

    def _note_dialog(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.troubles.append(f"console: {message.text}")
