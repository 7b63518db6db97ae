"""The transport of each trial: to a provider, to a model in this process, or to a simulated one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from surecall.config import Config, load_config
from surecall.faults import (
    BUILTIN_ORACLES,
    Action,
    CallTools,
    PlannedCall,
    Say,
    SimulatedTransport,
)
from surecall.loop.resolve import make_transport
from surecall.protocols import find_protocol
from surecall.records import ModelRequest
from surecall.transport import EmbeddedTransport, HttpTransport, Transport

from .cases import Case
from .contenders import Contender
from .model_names import OPENROUTER
from .original.variables import read_original_settings
from .records import Unit

__all__ = ["CaseOracle", "TransportPool", "open_transport"]


class CaseOracle:
    """Tells a simulated model what would be right in one case."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def next_action(self, request: ModelRequest) -> Action | None:
        """Return what a good model would do, if the case knows."""
        ideal = self._case.ideal(request)
        if ideal is None:
            return None
        if ideal.calls:
            return CallTools(tuple(PlannedCall(call.name, call.arguments) for call in ideal.calls))
        return Say(ideal.text)


class TransportPool:
    """Opens transports; connections to a provider are kept for all trials of an event loop."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Kept]] = (
            WeakKeyDictionary()
        )

    @asynccontextmanager
    async def __call__(
        self, contender: Contender, unit: Unit, case: Case
    ) -> AsyncGenerator[Transport, None]:
        """Open a transport to a contender for one trial."""
        if contender.kind == "simulated":
            yield SimulatedTransport(
                contender.behaviour or None,
                seed=unit.seed,
                oracles=(CaseOracle(case), *BUILTIN_ORACLES),
            )
            return
        yield await self._shared(contender)

    async def aclose(self) -> None:
        """Close what is open in the running event loop."""
        opened = self._kept.pop(asyncio.get_running_loop(), {}).values()
        for transport in await asyncio.gather(*opened, return_exceptions=True):
            if not isinstance(transport, BaseException):
                await transport.aclose()

    async def _shared(self, contender: Contender) -> Transport:
        opened = self._kept.setdefault(asyncio.get_running_loop(), {})
        if contender.label not in opened:
            opened[contender.label] = asyncio.ensure_future(_open(contender))
        try:
            return await asyncio.shield(opened[contender.label])
        except Exception:
            opened.pop(contender.label, None)  # the next trial may have more luck
            raise


_Kept = asyncio.Future[HttpTransport | EmbeddedTransport]


open_transport: Final = TransportPool()
"""What executors open transports with."""


async def _open(contender: Contender) -> HttpTransport | EmbeddedTransport:
    """Open a transport; a model in this process is loaded now, so that no trial waits for it."""
    protocol = find_protocol(contender.protocol) if contender.protocol else None
    transport = make_transport(_config_for(contender), protocol)
    if isinstance(transport, EmbeddedTransport):
        await transport.open()
    return transport


def _config_for(contender: Contender) -> Config:
    """Return the settings for a contender: what is meant for one address goes to no other."""
    if contender.kind == "embedded":
        return load_config(overrides={"model": contender.model})
    given: dict[str, Any] = {"model": contender.model, "base_url": contender.base_url}
    original = read_original_settings().settings if contender.provider == OPENROUTER else {}
    config = load_config(overrides={**original, **given})
    if contender.base_url == load_config().base_url:
        return config
    headers = {
        name: value
        for name, value in config.headers.items()
        if config.origins.get(f"headers.{name}") == "flag"
    }
    return replace(config, headers=headers, api_prefix=original.get("api_prefix"))
