"""What tokens cost: prices come from the caller, none are built in."""

import math

from msgspec import Struct

from surecall.errors import Code, ConfigError
from surecall.records import Usage

__all__ = ["Price", "cost_of", "parse_price"]

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
