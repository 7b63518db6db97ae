"""Small edits that several faults share."""

from collections.abc import Callable
from typing import Any, cast

from msgspec.structs import replace

from surecall.errors import JSONTextError
from surecall.jsontext import decode, encode, encode_text

from .answers import Answer
from .drafts import Draft, Occasion

__all__ = ["DraftEdit", "edit_arguments", "edit_json_body", "edit_values", "for_finals"]

ArgumentsEdit = Callable[[str, Occasion], Any]
ValuesEdit = Callable[[dict[str, Any]], Any]
DraftEdit = Callable[[Draft, Occasion], Draft]


def edit_json_body(answer: Answer, edit: Callable[[dict[str, Any]], Any]) -> Answer:
    """Return a whole reply with its body edited; any other answer as it is."""
    if answer.framing == "chunked" or answer.status >= 300:
        return answer
    try:
        body = decode(answer.body)
    except JSONTextError:
        return answer
    fields = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    return replace(answer, pieces=(encode(edit(fields)),)) if fields else answer


def edit_arguments(edit: ArgumentsEdit) -> DraftEdit:
    """Return an edit of the arguments of every call, given as their text."""

    def apply(draft: Draft, occasion: Occasion) -> Draft:
        calls = [
            {
                **call,
                "function": {
                    **call["function"],
                    "arguments": edit(call["function"]["arguments"], occasion),
                },
            }
            for call in draft.calls
        ]
        return draft.with_message(tool_calls=calls) if calls else draft

    return apply


def edit_values(edit: ValuesEdit) -> DraftEdit:
    """Return an edit of the arguments of every call, given as an object."""
    return edit_arguments(lambda text, _: encode_text(edit(decode(text))))


def for_finals(edit: DraftEdit) -> DraftEdit:
    """Return an edit of replies that have no calls."""
    return lambda draft, occasion: draft if draft.calls else edit(draft, occasion)
