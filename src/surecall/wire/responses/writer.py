"""Replies and errors as a server of the format answers them, whole or as events."""

from collections.abc import Callable, Mapping
from time import time
from typing import Any, Final, Literal, TypeAlias

from surecall.base.errors import SurecallError
from surecall.base.json_values import as_fields, as_list, pick_fields
from surecall.base.records import RawCall, Reply, Usage
from surecall.text import encode_text, render_event
from surecall.wire.call_ids import CallIds
from surecall.wire.chat_completions import render_error
from surecall.wire.server import arguments_text, finish_of, name_text, new_id

from .content import OWN_REASONING_ID, insert_reasoning, render_reasoning
from .replies import COMPLETE_FINISHES, INCOMPLETE_REASONS, REASONING_BREAK
from .tools import Origin, list_origins, restore_call


class _ItemIds:
    """Gives the items of one reply ids, which follow from the id of the reply.

    Args:
        reply_id: The id of the reply.
        seed: What ids of calls depend on that came without one: its own id, if it has one.
    """

    def __init__(self, reply_id: str, seed: str | None) -> None:
        self._stem = reply_id.removeprefix("resp_")
        self._count = 0
        self.calls = CallIds(seed=seed or "")

    def next(self, prefix: str) -> str:
        """Return the next id; the prefix says what kind of item it is for."""
        self._count += 1
        return f"{prefix}{self._stem}_{self._count}"


def render_reply(reply: Reply, request: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Render a reply as a whole response, which repeats the settings of its request."""
    reply_id = reply.id or new_id("resp_")
    ids = _ItemIds(reply_id, reply.id)
    origins = list_origins((request or {}).get("tools"))
    calls = [(_render_call(call, ids, origins), call.id) for call in reply.calls]
    said: list[tuple[dict[str, Any], Any]] = []
    if reply.reasoning and not reply.extra.get("reasoning_items"):
        said.append((_render_thought(reply.reasoning, ids.next(OWN_REASONING_ID)), None))
    if reply.content or (reply.content is not None and not calls):
        render = _render_refusal if reply.is_refusal else _render_text
        text = render(reply.content, ids.next("msg_"))
        said.append(({**text, **_phase_of(reply)}, None))
    output = insert_reasoning(reply.extra.get("reasoning_items"), [*said, *calls])
    head = _render_head(reply_id, reply.model or "", int(time()), request or {})
    return _render_response(reply, output, head)


def _render_response(
    reply: Reply, output: list[dict[str, Any]], head: dict[str, Any]
) -> dict[str, Any]:
    """Render the response object that ends a reply; the last item of a cut one is not complete."""
    response = dict(head)
    reason = finish_of(reply)
    if reason in COMPLETE_FINISHES:
        response |= {"status": "completed", "completed_at": int(time())}
    else:
        details = {"reason": INCOMPLETE_REASONS.get(reason, reason)}
        response |= {"status": "incomplete", "incomplete_details": details}
        if output and "status" in output[-1]:
            output = [*output[:-1], {**output[-1], "status": "incomplete"}]
    response["output"] = output
    response["usage"] = None if reply.usage is None else _render_usage(reply.usage)
    return response


_DEFAULTS: Final[Mapping[str, Any]] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "temperature": None,
    "tool_choice": "auto",
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
"""Settings that every response has, and what they are where the request does not say it."""
_REPEATED: Final = ("max_tool_calls", "prompt_cache_key", "safety_identifier", "top_logprobs")
"""Settings that a response has where its request has them."""


def _render_head(
    reply_id: str, model: str, created_at: int, request: Mapping[str, Any]
) -> dict[str, Any]:
    """Render a response that has just begun; every field that clients count on is there."""
    stated = {key: value for key, value in request.items() if value is not None}
    return {
        "id": reply_id,
        "object": "response",
        "created_at": created_at,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None, **as_fields(stated.get("reasoning"))},
        "store": False,
        "text": {"format": {"type": "text"}, **as_fields(stated.get("text"))},
        "tools": [_repeat_tool(as_fields(tool)) for tool in as_list(stated.get("tools"))],
        "usage": None,
        **_DEFAULTS,
        **pick_fields(stated, (*_DEFAULTS, *_REPEATED)),
    }


def _repeat_tool(tool: dict[str, Any]) -> dict[str, Any]:
    """Return a tool as its provider would repeat it, which says more than it has to be told."""
    if tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": False, **tool}


def _render_text(text: str, item_id: str) -> dict[str, Any]:
    """Render a message item."""
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return _render_message(part, item_id)


def _render_refusal(text: str, item_id: str) -> dict[str, Any]:
    """Render a message item that says no."""
    return _render_message({"type": "refusal", "refusal": text}, item_id)


def _render_message(part: dict[str, Any], item_id: str) -> dict[str, Any]:
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def _phase_of(reply: Reply) -> dict[str, Any]:
    return {"phase": reply.extra["phase"]} if reply.extra.get("phase") else {}


def _render_thought(text: str, item_id: str) -> dict[str, Any]:
    """Render a reasoning item from plain text."""
    content = [{"type": "reasoning_text", "text": text}]
    return {"type": "reasoning", "id": item_id, "summary": [], "content": content}


def _render_call(call: RawCall, ids: _ItemIds, origins: Mapping[str, Origin]) -> dict[str, Any]:
    """Render a call; a client needs an id and text, also where the model gave neither."""
    item: dict[str, Any] = {
        "type": "function_call",
        "id": ids.next("fc_"),
        "call_id": ids.calls.assign_to(call),
        "name": name_text(call),
        "arguments": arguments_text(call),
        "status": "completed",
    }
    return restore_call(item | call.extra | item, origins)


def _render_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }


_Kind: TypeAlias = Literal["output_text", "reasoning_text", "refusal"]

_ID_PREFIXES: Final[dict[_Kind, str]] = {
    "output_text": "msg_",
    "reasoning_text": OWN_REASONING_ID,
    "refusal": "msg_",
}
_RENDERERS: Final[dict[_Kind, Callable[[str, str], dict[str, Any]]]] = {
    "output_text": _render_text,
    "reasoning_text": _render_thought,
    "refusal": _render_refusal,
}
_CALL_TEXTS: Final = {
    "custom_tool_call": ("input", "response.custom_tool_call_input"),
    "function_call": ("arguments", "response.function_call_arguments"),
}
"""By the type of a call, the member with what is passed, and the events that bring it."""
_FAILURES: Final = {400: "invalid_prompt", 429: "rate_limit_exceeded"}
"""The codes of a failed response are a short list; the error event has the code itself."""


class ResponsesStreamWriter:
    """Writes one reply as the numbered events of a response.

    Reasoning is shown under an id of our own. The items that a client has to send back stand for
    it in the response that ends the reply, each before what it led to.
    """

    def __init__(
        self,
        *,
        model: str,
        reply_id: str | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> None:
        self._id = reply_id or new_id("resp_")
        self._head = _render_head(self._id, model, int(time()), request or {})
        self._ids = _ItemIds(self._id, reply_id)
        self._origins = list_origins((request or {}).get("tools"))
        self._sequence = 0
        self._output: list[dict[str, Any]] = []
        self._call_ids: dict[str, Any] = {}
        """By the ids of call items, what the model called the calls."""
        self._thoughts: list[dict[str, Any]] = []
        """Items to send back that were written or are known."""
        self._kind: _Kind | None = None
        self._item_id = ""
        self._pieces: list[str] = []

    def begin(self) -> bytes:
        """Open the reply."""
        created = self._event("response.created", response=self._head)
        return created + self._event("response.in_progress", response=self._head)

    def text(self, text: str) -> bytes:
        """Write a piece of the text."""
        return self._piece("output_text", text)

    def refusal(self, text: str) -> bytes:
        """Write a piece of a refusal."""
        return self._piece("refusal", text)

    def reasoning(self, text: str, extra: Mapping[str, Any] | None = None) -> bytes:
        """Write a piece of the reasoning, and end the thoughts that `extra` holds."""
        if self._kind != "reasoning_text" and self._thoughts:
            text = text.removeprefix(REASONING_BREAK)  # two items are apart already
        return self._piece("reasoning_text", text) + self._end_thoughts(extra or {})

    def call(self, call: RawCall) -> bytes:
        """Write one whole call."""
        written = self._close_item()
        item = _render_call(call, self._ids, self._origins)
        self._call_ids[item["id"]] = call.id
        place = {"item_id": item["id"], "output_index": len(self._output)}
        key, kind = _CALL_TEXTS[item["type"]]
        text = item[key]
        written += self._item("added", {**item, key: "", "status": "in_progress"})
        if text:
            written += self._event(f"{kind}.delta", **place, delta=text)
        written += self._event(f"{kind}.done", **place, **{key: text})
        return written + self._end_item(item)

    def pulse(self) -> bytes:
        """Write an empty piece of the open item, or else the response as it is now."""
        if self._kind is not None:
            more: dict[str, Any] = {"logprobs": []} if self._kind == "output_text" else {}
            return self._event(f"response.{self._kind}.delta", **self._place(), delta="", **more)
        response = {**self._head, "output": self._output}
        return self._event("response.in_progress", response=response)

    def end(self, reply: Reply) -> bytes:
        """Close the reply with its finish reason and usage; its text is not written again."""
        written = self._close_item() + self._end_thoughts(reply.extra)
        output = self._final_output(reply)
        response = _render_response(reply, output, self._head)
        return written + self._event(f"response.{response['status']}", response=response)

    def fail(self, error: SurecallError) -> bytes:
        """Break the reply off with an error event and a failed response; nothing follows."""
        answer = render_error(error)
        stated = as_fields(answer.body["error"])
        code, message = stated["code"], stated["message"]
        failure = {"code": _FAILURES.get(answer.status, "server_error"), "message": message}
        response = {**self._head, "status": "failed", "error": failure, "output": self._output}
        # Clients look for the error in different places: beside the type, or one level down.
        written = self._event("error", code=code, message=message, param=None, error=stated)
        return written + self._event("response.failed", response=response)

    def _piece(self, kind: _Kind, text: str) -> bytes:
        if not text:
            return b""
        written = b"" if kind == self._kind else self._close_item() + self._open_item(kind)
        self._pieces.append(text)
        fields: dict[str, Any] = {**self._place(), "delta": text}
        if kind == "output_text":
            fields["logprobs"] = []
        return written + self._event(f"response.{kind}.delta", **fields)

    def _open_item(self, kind: _Kind) -> bytes:
        self._kind = kind
        self._item_id = self._ids.next(_ID_PREFIXES[kind])
        item = self._render_open("")
        part = item["content"][0]
        begun: dict[str, Any] = {**item, "content": []}
        if "status" in item:
            begun["status"] = "in_progress"
        added = self._item("added", begun)
        return added + self._event("response.content_part.added", **self._place(), part=part)

    def _close_item(self) -> bytes:
        kind = self._kind
        if kind is None:
            return b""
        text = "".join(self._pieces)
        item = self._render_open(text)
        fields: dict[str, Any] = {**self._place(), "refusal" if kind == "refusal" else "text": text}
        if kind == "output_text":
            fields["logprobs"] = []
        written = self._event(f"response.{kind}.done", **fields)
        part = item["content"][0]
        written += self._event("response.content_part.done", **self._place(), part=part)
        self._kind = None
        self._pieces = []
        return written + self._end_item(item)

    def _end_thoughts(self, extra: Mapping[str, Any]) -> bytes:
        """End the thought that was shown; items without words that were shown are written now."""
        stated = [
            render_reasoning(as_fields(item)) for item in as_list(extra.get("reasoning_items"))
        ]
        known = [item.get("id") for item in self._thoughts]
        items = [item for item in stated if item.get("id") not in known]
        if not items:
            return b""
        written = self._close_item() if self._kind == "reasoning_text" else b""
        if written or (not self._thoughts and any(map(_is_own_thought, self._output))):
            items, self._thoughts = [], [*self._thoughts, *items]
        for item in items:
            written += self._close_item() + self._item("added", item) + self._end_item(item)
            self._thoughts.append(item)
        return written

    def _final_output(self, reply: Reply) -> list[dict[str, Any]]:
        """Return the items as the same reply in one piece has them."""
        if reply.extra.get("phase"):
            for item in self._output:
                if item["type"] == "message":
                    item["phase"] = reply.extra["phase"]
        if not self._thoughts:
            return self._output
        rest = [item for item in self._output if item["type"] != "reasoning"]
        output = [(item, self._call_ids.get(item["id"])) for item in rest]
        return insert_reasoning(reply.extra.get("reasoning_items") or self._thoughts, output)

    def _render_open(self, text: str) -> dict[str, Any]:
        assert self._kind is not None
        return _RENDERERS[self._kind](text, self._item_id)

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._item_id, "output_index": len(self._output), "content_index": 0}

    def _item(self, what: str, item: dict[str, Any]) -> bytes:
        return self._event(
            f"response.output_item.{what}", output_index=len(self._output), item=item
        )

    def _end_item(self, item: dict[str, Any]) -> bytes:
        written = self._item("done", item)
        self._output.append(item)
        return written

    def _event(self, kind: str, **fields: Any) -> bytes:
        data = {"type": kind, "sequence_number": self._sequence, **fields}
        self._sequence += 1
        return render_event(encode_text(data), event=kind)


def _is_own_thought(item: dict[str, Any]) -> bool:
    return item["type"] == "reasoning" and item["id"].startswith(OWN_REASONING_ID)
