"""A gateway in a thread, with requests to look at, and a page that may ask nobody else."""

import asyncio
import threading
from collections.abc import Coroutine, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from playwright.sync_api import Page, Request, expect

from support.dashboard_traffic import fill, open_store
from surecall.gateway.app import Gateway
from surecall.gateway.server import GatewayServer, bind_socket
from surecall.gateway.settings.load import load_settings

from .watched import WatchedPage

__all__ = ["UPSTREAMS", "ServedGateway", "WatchedSite", "serve_in_thread"]

T = TypeVar("T")

UPSTREAMS = (
    '[upstreams.stub]\nurl = "http://127.0.0.1:1/v1"\nprobe = "off"\n'
    '[upstreams.other]\nurl = "http://127.0.0.1:2/v1"\nkey = "none"\nmodels = ["big"]\n'
)


class ServedGateway:
    """A gateway that is being served."""

    def __init__(self, url: str, gateway: Gateway, loop: asyncio.AbstractEventLoop) -> None:
        self.url = url
        self.gateway = gateway
        self._loop = loop

    def add(self, *records: Any) -> None:
        """Keep more requests."""
        self.run(fill(self.gateway.store, *records))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the loop of the gateway, and return what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)


@contextmanager
def serve_in_thread(
    folder: Path, records: Sequence[Any], text: str = UPSTREAMS
) -> Generator[ServedGateway]:
    """Serve a gateway whose store has these requests, until the test is over."""
    file = folder / "gateway.toml"
    file.write_text(text)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(20)

    async def open_gateway() -> tuple[Gateway, Any, Any]:
        store = open_store(folder)
        await fill(store, *records)
        settings = load_settings(file, server={"port": 0})
        gateway = Gateway(settings, store=store, facts=folder / "facts.db")
        await gateway.open()
        server = GatewayServer(gateway)
        sock = bind_socket("127.0.0.1", 0)
        await server.startup(sock)
        return gateway, server, sock

    async def close_gateway(gateway: Gateway, server: Any, sock: Any) -> None:
        server.http.cut()
        sock.close()
        await gateway.close()

    opened = run(open_gateway())
    try:
        port = opened[2].getsockname()[1]
        yield ServedGateway(f"http://127.0.0.1:{port}", opened[0], loop)
    finally:
        run(close_gateway(*opened))
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


class WatchedSite(WatchedPage):
    """A page that may ask only the gateway it came from."""

    def __init__(self, page: Page, url: str) -> None:
        super().__init__(page)
        self._url = url

    def visit(self, path: str) -> Page:
        """Open a page of the gateway and wait until it is drawn."""
        self.page.goto(self._url + path)
        expect(self.page.locator("main[aria-busy]")).to_have_count(0)
        return self.page

    def _note_request(self, request: Request) -> None:
        self.requests.append(request.url)
        if not request.url.startswith((f"{self._url}/ui", "data:,")):
            self.troubles.append(f"request: {request.url}")
