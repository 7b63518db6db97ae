"""Scenarios on a workspace: what a model is asked, what is right, and how it is judged."""

from .base import Scenario
from .catalogue import DEFAULT_PRESET, PRESETS, SCENARIOS, find_scenario, select_scenarios
from .reasons import REASON_MEANINGS, ReasonCode

__all__ = [
    "DEFAULT_PRESET",
    "PRESETS",
    "REASON_MEANINGS",
    "SCENARIOS",
    "ReasonCode",
    "Scenario",
    "find_scenario",
    "select_scenarios",
]
