"""A provider that misbehaves on purpose, the same way for the same seed."""

from .actions import Action, CallTools, Oracle, PlannedCall, Say
from .answers import Answer
from .behaviours import Behaviour, Lapse
from .catalogue import CLEAN, FAULTS, find_fault, find_faults
from .directives import DirectiveOracle, StepsOracle
from .http import ServerLimits
from .models import find_behaviour, load_behaviour, zoo
from .obliging import ObligingOracle
from .plan import CLEAN_PLAN, FaultPlan
from .provider import BUILTIN_ORACLES, FaultyProvider
from .records import GROUPS, Fault, FaultGroup
from .script import load_script
from .server import FaultServer, model_names
from .simulated import SimulatedTransport
from .workspace import SCENARIOS, WorkspaceOracle

__all__ = [
    "BUILTIN_ORACLES",
    "CLEAN",
    "CLEAN_PLAN",
    "FAULTS",
    "GROUPS",
    "SCENARIOS",
    "Action",
    "Answer",
    "Behaviour",
    "CallTools",
    "DirectiveOracle",
    "Fault",
    "FaultGroup",
    "FaultPlan",
    "FaultServer",
    "FaultyProvider",
    "Lapse",
    "ObligingOracle",
    "Oracle",
    "PlannedCall",
    "Say",
    "ServerLimits",
    "SimulatedTransport",
    "StepsOracle",
    "WorkspaceOracle",
    "find_behaviour",
    "find_fault",
    "find_faults",
    "load_behaviour",
    "load_script",
    "model_names",
    "zoo",
]
