"""Who is compared: a model, where it is asked, and how a door to it is opened."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from surecall.transport import Transport

from .cases import Case
from .prices import Price
from .records import Unit

__all__ = ["Contender", "Kind", "OpenTransport", "close_transports"]

Kind = Literal["live", "embedded", "simulated"]
"""A provider over the network, a model in this process, or a model that is made up."""


class Contender(Struct, frozen=True, kw_only=True):
    """One model at one place."""

    label: str
    """What it is called in cells and reports."""
    model: str
    """What the provider calls it; sampling profiles and presets go by this."""
    provider: str | None = None
    """The provider's name in the catalog."""
    base_url: str | None = None
    kind: Kind = "live"
    simulated: bool = False
    """Whether its results say something about a made-up model only."""
    behaviour: str = ""
    """Which simulated model it is, when the name does not say."""
    capabilities: dict[str, Any] = {}
    """What it can do, where the catalog does not know or is wrong."""
    protocol: str | None = None
    """Wire format, when it is not the provider's own or chat completions."""
    tags: tuple[str, ...] = ()
    """Words it can be selected by."""
    price: Price | None = None

    def __post_init__(self) -> None:
        if self.kind == "simulated" and not self.simulated:
            force_setattr(self, "simulated", True)  # noqa: FBT003 - a value, not a flag

    @property
    def id(self) -> str:
        """The label, by which filters know it."""
        return self.label


OpenTransport = Callable[[Contender, Unit, Case], AbstractAsyncContextManager[Transport]]
"""Opens a transport for one trial; leaving the context gives it back."""


async def close_transports(open_transport: OpenTransport) -> None:
    """Close what an opener kept open between trials, if it keeps anything."""
    close = getattr(open_transport, "aclose", None)
    if close is not None:
        await close()
