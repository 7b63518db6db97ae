"""A provider that misbehaves on purpose, the same way for the same seed."""

from surecall.serving import ServerLimits

from .answers import Answer
from .behaviours import Behaviour, Lapse, find_behaviour, load_behaviour, zoo
from .catalog import CLEAN, FAULTS, GROUPS, Fault, FaultGroup, find_fault, find_faults
from .conversation import Action, CallTools, Oracle, PlannedCall, Say
from .oracles import DirectiveOracle, ObligingOracle, StepsOracle, load_script
from .provider import BUILTIN_ORACLES, FaultyProvider
from .schedule import CLEAN_PLAN, FaultPlan
from .server import FaultServer, model_names
from .simulated import SimulatedTransport
from .workspace_oracle import SCENARIOS, WorkspaceOracle

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
