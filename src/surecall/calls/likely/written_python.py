"""Calls in Python syntax among text: a tool's name, and arguments in parentheses."""

import re
from collections.abc import Iterator
from typing import Final

from surecall.base.records import Receipt, clip
from surecall.calls.formats import TextCall
from surecall.calls.names import ToolNames, parameter_names
from surecall.schema import property_schema

from .loose_python import MAX_CALL_CHARS, LooseCall, compute_number, read_loose_call
from .naming import MAX_CANDIDATES, Budget, Candidate, Name, begin_of_name

_AFTER_NAME: Final = re.compile(r"[`\"'*]{0,3}+[ \t]?+\(")
_FIRST_ARGUMENT: Final = re.compile(r"\s*+(?:[\"'{\[)]|-?+\d++\s*+[,)]|\w++\s*+[=:])")


def find_python_calls(
    text: str, tools: ToolNames, names: list[Name], budget: Budget
) -> Iterator[Candidate]:
    """Yield names of tools with arguments in parentheses behind them."""
    done = tried = 0
    for start, end, name in names:
        opened = _AFTER_NAME.match(text, end)
        if start < done or opened is None:
            continue
        if text[opened.end() - 2] in " \t" and not _FIRST_ARGUMENT.match(text, opened.end()):
            continue  # an aside, as in `email (or call) us`
        begun = begin_of_name(text, start)
        if begun < start and tools.resolve(text[begun:end]) != name:
            continue
        tried += 1
        if tried > MAX_CANDIDATES or budget.is_spent:
            return
        call = read_loose_call(text, opened.end() - 1)
        if call is None:
            budget.spend(min(len(text) - opened.end(), MAX_CALL_CHARS))
            continue
        made = bind_arguments(name, call, tools)
        if made is not None:
            done = call.end
            yield Candidate(
                start=begun, end=call.end, calls=(made,), format="pythonic", names=call.names
            )


def bind_arguments(name: str, call: LooseCall, tools: ToolNames) -> TextCall | None:
    """Return a call with its arguments by name; values without one go by the tool's signature."""
    declared = parameter_names(tools.parameters(name))
    if call.names and call.names <= set(declared):  # a signature, as in `search(query, limit)`
        return None
    arguments = dict(call.keywords)
    receipts = call.receipts
    for key in call.bare:
        schema = property_schema(tools.parameters(name) or {}, key) or {}
        wants_number = schema.get("type") in ("number", "integer")
        number = compute_number(arguments[key]) if wants_number else None
        if number is not None:
            why = "the value was written as a sum"
            before, arguments[key] = arguments[key], number
            receipts = (*receipts, Receipt("compute_value", "text", before, number, why=why))
    if call.positional:
        first = call.positional[0]
        if isinstance(first, dict) and len(call.positional) == 1 and not arguments:
            return TextCall(name=name, arguments=first, receipts=receipts)
        placed = dict(zip(declared, call.positional, strict=False))
        if len(declared) < len(call.positional) or placed.keys() & arguments.keys():
            return None
        why = "values without a keyword, in the order of the schema"
        before = clip(", ".join(map(repr, call.positional)))
        moved = Receipt("name_positional_arguments", "text", before, ", ".join(placed), why=why)
        arguments, receipts = {**placed, **arguments}, (*receipts, moved)
    return TextCall(name=name, arguments=arguments, receipts=receipts)
