"""Calls as a model made them: run or refused, in their place or written into the text."""

from .calls import MadeCall, MadeTurn, list_turns
from .names import (
    is_same_name,
    means_tool,
    names_passed_on,
    plain_name,
    sounds_acting,
    split_name,
)
from .written import find_text_calls

__all__ = [
    "MadeCall",
    "MadeTurn",
    "find_text_calls",
    "is_same_name",
    "list_turns",
    "means_tool",
    "names_passed_on",
    "plain_name",
    "sounds_acting",
    "split_name",
]
