"""One request of a client made reliable, whatever endpoint answers it.

The reply is read, repaired and checked; what cannot be used is asked for again within one budget,
and refused with reasons when that does not help. Nothing here knows a server or a database.
"""

from .documents import own_error
from .echoes import EchoCache
from .history import repair_body, repair_history
from .judge import EXCHANGE_RULES
from .mediate import mediate, relay
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
