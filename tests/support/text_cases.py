"""Texts with calls of families that have no tags of their own, and what is to be read in them."""

import json
from dataclasses import dataclass
from typing import Any

from surecall.calls.families.gemma import BARE_GEMMA, GEMMA
from surecall.calls.families.harmony import HARMONY, STRIPPED_HARMONY, STRIPPED_HARMONY_START
from surecall.calls.families.marked_json import COMMAND_R
from surecall.calls.families.named_json import CHATGLM, FLORETTE, FUNCTIONARY, FUNCTIONARY_START
from surecall.calls.families.pythonic import (
    CODE_TAGS,
    GORILLA,
    LLAMA_PYTHON_TAG,
    NEXUS_RAVEN,
    PYTHON_TAGS,
    PYTHON_TOKENS,
    PYTHONIC,
)
from surecall.calls.families.react import REACT
from surecall.calls.families.unmarked import BARE_JSON, CODE_FENCE
from surecall.calls.formats import TextCall
from surecall.text import repair_json

from .read_text import check_splits

__all__ = ["EVERY", "TextCase", "arguments_of", "check_case", "check_no_call"]

EVERY = (
    HARMONY,
    GEMMA,
    LLAMA_PYTHON_TAG,
    PYTHON_TOKENS,
    FUNCTIONARY,
    PYTHON_TAGS,
    STRIPPED_HARMONY,
    STRIPPED_HARMONY_START,
    BARE_GEMMA,
    CODE_TAGS,
    FLORETTE,
    GORILLA,
    NEXUS_RAVEN,
    COMMAND_R,
    REACT,
    FUNCTIONARY_START,
    CHATGLM,
    CODE_FENCE,
    BARE_JSON,
    PYTHONIC,
)
"""All of these families, strongest first."""


@dataclass(frozen=True)
class TextCase:
    """A text and what is to be read in it."""

    id: str
    text: str
    calls: tuple[tuple[str, Any], ...] = ()
    content: str = ""
    reasoning: str = ""
    rules: tuple[str, ...] = ()
    """The rules of the receipts of all calls, each once."""
    states: tuple[str, ...] = ()
    """The states of the calls, where not all are whole."""


def arguments_of(call: TextCall) -> Any:
    """Return the arguments of a whole call as a value, and others as they are."""
    if call.state != "whole":
        return call.arguments
    if isinstance(call.arguments, str):
        return repair_json(call.arguments).value
    return call.arguments


def check_case(case: TextCase, **options: Any) -> list[TextCall]:
    """Read a text in every split and compare it with what is expected."""
    found = check_splits(case.text, EVERY, **options)
    states = tuple(call.state for call in found.calls)
    assert tuple((call.name, arguments_of(call)) for call in found.calls) == case.calls
    assert states == (case.states or ("whole",) * len(case.calls))
    assert found.content == case.content
    assert found.reasoning == case.reasoning
    rules = dict.fromkeys(receipt.rule for call in found.calls for receipt in call.receipts)
    assert tuple(rules) == case.rules
    for call in found.calls:
        for receipt in call.receipts:
            assert json.dumps([receipt.before, receipt.after])
    return found.calls


def check_no_call(text: str) -> None:
    """Check that a text is shown as it is."""
    found = check_splits(text, EVERY)
    assert found.calls == []
    assert found.content == text
    assert found.reasoning == ""
