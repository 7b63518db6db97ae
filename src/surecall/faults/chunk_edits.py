"""Edits of the chunks of a streamed chat completion, before they are written."""

from collections.abc import Callable
from typing import Any, cast

from .drafts import Occasion

__all__ = [
    "add_late_piece",
    "add_nulls",
    "done_without_finish",
    "drop_index",
    "edit_call_deltas",
    "finish_with_delta",
    "repeat_name",
    "without_finish",
]

Chunks = list[Any]
ChunkEdit = Callable[[Chunks, Occasion], Chunks]
DeltaEdit = Callable[[dict[str, Any], dict[int, str]], dict[str, Any]]


def without_finish(chunks: Chunks, _: Occasion) -> Chunks:
    """Leave out the finish reason and everything after it."""
    kept: Chunks = []
    for chunk in chunks:
        if chunk == "[DONE]":
            continue
        if isinstance(chunk, dict) and _finish_of(cast("dict[str, Any]", chunk)) is not None:
            break
        kept.append(chunk)
    return kept


def _finish_of(chunk: dict[str, Any]) -> Any:
    choices = chunk.get("choices")
    return choices[0].get("finish_reason") if choices else None


def done_without_finish(chunks: Chunks, occasion: Occasion) -> Chunks:
    """Say that the stream is done without a finish reason."""
    return [*without_finish(chunks, occasion), "[DONE]"]


def edit_call_deltas(edit: DeltaEdit) -> ChunkEdit:
    """Return an edit of every piece of a call; it gets the names seen so far, by index."""

    def apply(chunks: Chunks, _: Occasion) -> Chunks:
        names: dict[int, str] = {}
        edited: Chunks = []
        for chunk in chunks:
            calls = _call_deltas(chunk)
            if not calls:
                edited.append(chunk)
                continue
            for call in calls:
                name = call.get("function", {}).get("name")
                if name:
                    names[call.get("index", 0)] = name
            choice = chunk["choices"][0]
            delta = {**choice["delta"], "tool_calls": [edit(call, names) for call in calls]}
            edited.append({**chunk, "choices": [{**choice, "delta": delta}]})
        return edited

    return apply


def _call_deltas(chunk: Any) -> list[dict[str, Any]]:
    fields = cast("dict[str, Any]", chunk) if isinstance(chunk, dict) else {}
    if not fields.get("choices"):
        return []
    calls = fields["choices"][0].get("delta", {}).get("tool_calls")
    return cast("list[dict[str, Any]]", calls) if isinstance(calls, list) else []


def repeat_name(call: dict[str, Any], names: dict[int, str]) -> dict[str, Any]:
    """Say the name of the tool again."""
    name = names.get(call.get("index", 0), "")
    return {**call, "function": {**call.get("function", {}), "name": name}}


def drop_index(call: dict[str, Any], _: dict[int, str]) -> dict[str, Any]:
    """Leave the index out."""
    return {key: value for key, value in call.items() if key != "index"}


def add_nulls(call: dict[str, Any], _: dict[int, str]) -> dict[str, Any]:
    """Fill what is not there with nulls."""
    function = {"name": None, **call.get("function", {})}
    return {"id": None, "type": None, **call, "function": function}


def finish_with_delta(chunks: Chunks, _: Occasion) -> Chunks:
    """Say the finish in the last chunk that carries something."""
    finishes = [index for index, chunk in enumerate(chunks) if _is_finish(chunk)]
    if not finishes or finishes[0] == 0 or not chunks[finishes[0] - 1].get("choices"):
        return chunks
    at = finishes[0]
    before, finish = chunks[at - 1], chunks[at]
    choice = {**before["choices"][0], "finish_reason": _finish_of(finish)}
    return [*chunks[: at - 1], {**before, "choices": [choice]}, *chunks[at + 1 :]]


def _is_finish(chunk: Any) -> bool:
    return isinstance(chunk, dict) and _finish_of(cast("dict[str, Any]", chunk)) is not None


def add_late_piece(chunks: Chunks, _: Occasion) -> Chunks:
    """Send a delta without anything in it after the finish."""
    at = next((index for index, chunk in enumerate(chunks) if _is_finish(chunk)), -1)
    if at < 0:
        return chunks
    empty = {"index": 0, "delta": {"content": ""}, "finish_reason": None}
    return [*chunks[: at + 1], {**chunks[at], "choices": [empty]}, *chunks[at + 1 :]]
