"""One request of a client made reliable, whatever endpoint answers it.

The reply is read, repaired and checked; what cannot be used is asked for again within one budget,
and refused with reasons when that does not help. Nothing here knows a server or a database.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .documents import own_error
    from .echoes import EchoCache
    from .history import repair_body, repair_history
    from .judge import EXCHANGE_RULES
    from .mediation import mediate, relay
    from .policy import (
        STEPS,
        Delivered,
        LikelyCalls,
        Outcome,
        ParseError,
        Policy,
        Route,
        Send,
        Sent,
        Step,
        StepName,
        describe_outcome,
    )
    from .request import ClientRequest, CompiledTools

__all__ = [
    "EXCHANGE_RULES",
    "STEPS",
    "ClientRequest",
    "CompiledTools",
    "Delivered",
    "EchoCache",
    "LikelyCalls",
    "Outcome",
    "ParseError",
    "Policy",
    "Route",
    "Send",
    "Sent",
    "Step",
    "StepName",
    "describe_outcome",
    "mediate",
    "own_error",
    "relay",
    "repair_body",
    "repair_history",
]

# Names are loaded when first used: a run needs no more than the ladder.
_HOMES = {
    "documents": "own_error",
    "echoes": "EchoCache",
    "history": "repair_body repair_history",
    "judge": "EXCHANGE_RULES",
    "mediation": "mediate relay",
    "policy": "STEPS Delivered LikelyCalls Outcome ParseError Policy Route Send Sent Step StepName"
    " describe_outcome",
    "request": "ClientRequest CompiledTools",
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names.split():
            value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
