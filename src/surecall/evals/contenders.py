"""Who is compared: a model, where it is asked, and what it costs."""

import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import force_setattr

from surecall.base.errors import Code, ConfigError
from surecall.base.records import Usage
from surecall.models.transport import Transport

from .cases import Case
from .records import Unit

_PER: float = 1_000_000
_HINT = "Write it like 0.25/2.00 or 0.25/2.00/0.025: input, output, and cached input."


class Price(Struct, frozen=True, kw_only=True):
    """Dollars for a million tokens."""

    input_usd: float
    output_usd: float
    cached_usd: float | None = None
    """For input that the provider had in its cache; unset means like any input."""


def parse_price(text: str) -> Price:
    """Read `INPUT/OUTPUT` or `INPUT/OUTPUT/CACHED`, in dollars for a million tokens."""
    try:
        numbers = [float(part) for part in text.split("/")]
    except ValueError:
        numbers = []
    usable = all(math.isfinite(number) and number >= 0 for number in numbers)
    if len(numbers) not in {2, 3} or not usable:
        raise ConfigError(Code.INVALID_OPTION, f"{text!r} is not a price.", hint=_HINT)
    return Price(
        input_usd=numbers[0],
        output_usd=numbers[1],
        cached_usd=numbers[2] if len(numbers) == 3 else None,
    )


def cost_of(usage: Usage, price: Price) -> float:
    """Return the dollars that these tokens cost; reasoning is part of the output."""
    cached = min(usage.cached_tokens, usage.input_tokens)
    cached_usd = price.input_usd if price.cached_usd is None else price.cached_usd
    fresh_usd = (usage.input_tokens - cached) * price.input_usd
    return (fresh_usd + cached * cached_usd + usage.output_tokens * price.output_usd) / _PER


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


def endpoint_of(contender: Contender) -> str:
    """Return what contenders share that draw on the same provider."""
    host = urlsplit(contender.base_url or "").netloc
    return host or contender.provider or contender.label


OpenTransport = Callable[[Contender, Unit, Case], AbstractAsyncContextManager[Transport]]
"""Opens a transport for one trial; leaving the context gives it back."""


async def close_transports(open_transport: OpenTransport) -> None:
    """Close what an opener kept open between trials, if it keeps anything."""
    close = getattr(open_transport, "aclose", None)
    if close is not None:
        await close()
