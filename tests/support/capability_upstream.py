"""A provider on loopback whose abilities a test decides one by one.

    async with CapabilityUpstream(Truth(json_schema="ignored")) as upstream:
        transport = HttpTransport(upstream.url)
        ...
    assert upstream.calls == 1

The model behind it understands a few plain wishes and does what it is asked, as far as the truth
lets it. It sees only what a server would show it: tools that are dropped, and settings that are
ignored, change nothing for it, not even the count of tokens.
"""

import asyncio
import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from aiohttp import web

__all__ = ["CapabilityUpstream", "Truth"]

Respect = Literal["honoured", "ignored", "refused"]


@dataclass(frozen=True)
class Truth:
    """What the provider does; by default everything as it should be."""

    tools: Literal[
        "structured", "text", "refused", "dropped", "parroted", "unused", "no_endpoint"
    ] = "structured"
    """Where tools are dropped, a model may still repeat a name from the question: `parroted`."""
    choices: frozenset[str] = frozenset({"none", "required", "named"})
    """Which choices are honoured."""
    refused_choices: frozenset[str] = frozenset()
    parallel: Literal["many", "one", "refused"] = "many"
    parallel_false: Respect = "honoured"
    streaming: Literal["equal", "refused", "ignored", "less", "unfinished", "sometimes"] = "equal"
    ids: Literal["unique", "same", "same_in_reply", "none"] = "unique"
    id_style: str = r".+"
    empty_arguments: Literal["object", "blank", "null", "missing"] = "object"
    strict: Respect = "honoured"
    obeys_schema: bool = False
    """Whether the model keeps to a tool's schema by itself."""
    json_object: Respect = "honoured"
    json_schema: Respect = "honoured"
    schema_field: str = ""
    """The field besides `response_format` that holds a reply to a schema; unknown ones are
    ignored."""
    grammar: Respect = "honoured"
    midturn: Literal["followed", "dropped", "refused", "unheeded"] = "followed"
    reasons: bool = False
    needs_echo: bool = False
    broken_json: int = 0
    """How many of the JSON texts come out broken."""
    context_window: int | None = 32768
    counts_tokens: bool = True
    finish: str | None = None
    """A finish reason for every reply."""
    blank: bool = False
    """Whether every reply is empty."""
    newer_settings: bool = False
    """Whether `max_tokens` and `temperature` are refused, as by some models that reason."""
    failures: dict[int, int] = field(default_factory=dict[int, int])
    """Statuses to answer with, by the number of the request, from 1; 0 stands for all."""
    delay_s: float = 0.0


class CapabilityUpstream:
    """Serves `/v1/chat/completions` and `/v1/models` on loopback."""

    def __init__(self, truth: Truth = Truth()) -> None:  # noqa: B008 - frozen
        self.truth = truth
        self.bodies: list[dict[str, Any]] = []
        self.listings = 0
        self.port = 0
        self._json_texts = 0
        self._streams = 0
        self._ids = 0

    @property
    def url(self) -> str:
        """The base URL to point a client at."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def calls(self) -> int:
        """How many completions were asked for."""
        return len(self.bodies)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._list)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _list(self, _: web.Request) -> web.Response:
        self.listings += 1
        if self.truth.context_window is None:
            return web.json_response({"error": {"message": "no such page"}}, status=404)
        row = {"id": "m", "context_length": self.truth.context_window}
        return web.json_response({"data": [{"id": "other"}, row]})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        await asyncio.sleep(self.truth.delay_s)
        status = self.truth.failures.get(len(self.bodies)) or self.truth.failures.get(0)
        if status:
            return web.json_response({"error": {"message": "told to fail"}}, status=status)
        refusal = self._refusal(body)
        if refusal:
            code = 404 if self.truth.tools == "no_endpoint" and body.get("tools") else 400
            return web.json_response({"error": {"message": refusal}}, status=code)
        message, finish = self._answer(body)
        usage = self._usage(body)
        if body.get("stream") and self.truth.streaming != "ignored":
            return await self._stream(request, message, finish, usage)
        choice = {"index": 0, "message": message, "finish_reason": finish}
        whole = {"id": "r", "model": "m", "choices": [choice]}
        return web.json_response(whole | ({"usage": usage} if usage else {}))

    # ------------------------------------------------------------ what the server refuses

    def _refusal(self, body: dict[str, Any]) -> str | None:
        truth = self.truth
        kind = (body.get("response_format") or {}).get("type")
        checks = (
            (truth.newer_settings and "max_tokens" in body, "use max_completion_tokens instead"),
            (truth.newer_settings and "temperature" in body, "temperature is not supported"),
            (truth.tools == "refused" and "tools" in body, "tools are not supported"),
            (
                truth.tools == "no_endpoint" and "tools" in body,
                "No endpoints found that support tool use.",
            ),
            (self._choice(body) in truth.refused_choices, "this tool_choice is not supported"),
            (
                truth.parallel == "refused" and "parallel_tool_calls" in body,
                "unknown field parallel_tool_calls",
            ),
            (
                truth.parallel_false == "refused" and body.get("parallel_tool_calls") is False,
                "parallel_tool_calls must be true",
            ),
            (truth.streaming == "refused" and body.get("stream"), "streaming is not supported"),
            (truth.json_object == "refused" and kind == "json_object", "unknown response_format"),
            (truth.json_schema == "refused" and kind == "json_schema", "unknown response_format"),
            (truth.grammar == "refused" and "grammar" in body, "unknown field grammar"),
            (truth.strict == "refused" and self._is_strict(body), "unknown field strict"),
            (
                truth.midturn == "refused" and self._has_midturn(body),
                "a system message must come first",
            ),
            (self._has_foreign_id(body), "a tool call id has a wrong form"),
            (truth.needs_echo and self._lacks_reasoning(body), "reasoning_content is missing"),
        )
        return next((message for is_wrong, message in checks if is_wrong), None)

    def _choice(self, body: dict[str, Any]) -> str:
        choice = body.get("tool_choice", "auto")
        return choice if isinstance(choice, str) else "named"

    def _is_strict(self, body: dict[str, Any]) -> bool:
        return any(tool["function"].get("strict") for tool in body.get("tools", ()))

    def _has_midturn(self, body: dict[str, Any]) -> bool:
        return any(message["role"] == "system" for message in body["messages"][1:])

    def _has_foreign_id(self, body: dict[str, Any]) -> bool:
        ids = [call["id"] for m in body["messages"] for call in m.get("tool_calls") or ()]
        return not all(re.fullmatch(self.truth.id_style, item) for item in ids)

    def _lacks_reasoning(self, body: dict[str, Any]) -> bool:
        turns = [message for message in body["messages"] if message.get("tool_calls")]
        return any("reasoning_content" not in turn for turn in turns)

    # ------------------------------------------------------------ what the model sees and says

    def _shown(self, body: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the messages and tools that reach the model."""
        messages = body["messages"]
        if self.truth.midturn == "dropped":
            messages = messages[:1] + [m for m in messages[1:] if m["role"] != "system"]
        tools = [tool["function"] for tool in body.get("tools", ())]
        return messages, [] if self.truth.tools in {"dropped", "parroted"} else tools

    def _usage(self, body: dict[str, Any]) -> dict[str, int] | None:
        if not self.truth.counts_tokens:
            return None
        seen = len(json.dumps(self._shown(body))) // 4
        return {"prompt_tokens": seen, "completion_tokens": 7, "total_tokens": seen + 7}

    def _answer(self, body: dict[str, Any]) -> tuple[dict[str, Any], str]:
        truth = self.truth
        messages, tools = self._shown(body)
        wish = str(messages[-1]["content"])
        calls = self._wanted_calls(body, wish, tools)
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if truth.reasons or truth.needs_echo:
            message["reasoning_content"] = "Let me see."
        if truth.blank:
            message["content"] = ""
        elif calls and truth.tools in {"text", "parroted"}:
            texts = [json.dumps({"name": name, "arguments": args}) for name, args in calls]
            message["content"] = "\n".join(f"<tool_call>{text}</tool_call>" for text in texts)
        elif calls:
            message["tool_calls"] = [self._call(name, args) for name, args in calls]
        else:
            message["content"] = self._text(body, messages, wish)
        usual = "tool_calls" if message.get("tool_calls") else "stop"
        return message, truth.finish or usual

    def _wanted_calls(
        self, body: dict[str, Any], wish: str, tools: list[dict[str, Any]]
    ) -> list[tuple[str, dict[str, Any]]]:
        named = re.search(r"[Cc]all (?:the tool )?(\w+)", wish)
        if self.truth.tools == "parroted" and named and named[1] != "it":
            return [(named[1], {"text": "ping"})]
        names = {tool["name"]: tool for tool in tools}
        if not names or self.truth.tools == "unused":
            return []
        choice = self._choice(body)
        honoured = choice if choice in self.truth.choices else "auto"
        if honoured == "none":
            return []
        if honoured == "named":
            return [(body["tool_choice"]["function"]["name"], {"text": "ping"})]
        if "not call any tool" in wish:
            return [(next(iter(names)), {"text": "hello"})] if honoured == "required" else []
        name = named[1] if named and named[1] in names else None
        if name is None and "given one tool" in wish:
            name = next(iter(names))
        return self._arguments(body, wish, names[name]) if name else []

    def _arguments(
        self, body: dict[str, Any], wish: str, tool: dict[str, Any]
    ) -> list[tuple[str, dict[str, Any]]]:
        fields = tool["parameters"].get("properties", {})
        words = re.findall(r'"(\w+)"', wish)
        if not fields:
            return [(tool["name"], {})]
        (key,) = fields
        if "enum" in fields[key]:
            held = self.truth.obeys_schema or (
                tool.get("strict") and self.truth.strict == "honoured"
            )
            words = fields[key]["enum"] if held else words
        held_back = (
            body.get("parallel_tool_calls") is False and self.truth.parallel_false == "honoured"
        )
        if self.truth.parallel != "many" or held_back:
            words = words[:1]
        return [(tool["name"], {key: word}) for word in words]

    def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        function: dict[str, Any] = {"name": name, "arguments": json.dumps(arguments)}
        if not arguments:
            style = self.truth.empty_arguments
            function["arguments"] = {"object": "{}", "blank": ""}.get(style)
            if style == "missing":
                del function["arguments"]
        self._ids += 1
        call_id = {"same": "call_0", "same_in_reply": f"r{len(self.bodies)}"}.get(
            self.truth.ids, f"c{self._ids:08d}"
        )
        entry: dict[str, Any] = {"type": "function", "function": function}
        return entry if self.truth.ids == "none" else {"id": call_id, **entry}

    def _text(self, body: dict[str, Any], messages: list[dict[str, Any]], wish: str) -> str:
        truth = self.truth
        kind = (body.get("response_format") or {}).get("type")
        is_held = kind == "json_schema" and truth.json_schema == "honoured"
        if is_held or truth.schema_field in body:
            return '{"code": "Q7"}'
        if kind == "json_object" and truth.json_object == "honoured":
            return '{"word": "ping"}'
        if "grammar" in body and truth.grammar == "honoured":
            return re.findall(r'"([^"]+)"', body["grammar"])[0]
        if "nothing else, without a code fence" in wish:
            self._json_texts += 1
            return '{"a": ' if self._json_texts <= truth.broken_json else '{"a": 1}'
        system = next((m for m in messages[1:] if m["role"] == "system"), None)
        if system and truth.midturn == "followed":
            return system["content"].rpartition(" ")[2]
        single = re.search(r"single word: (\w+)", wish)
        if single:
            return single[1]
        return 'Here it is.\n```json\n{"word": "ping"}\n```' if "fence" in wish else "Very well."

    async def _stream(
        self, request: web.Request, message: dict[str, Any], finish: str, usage: Any
    ) -> web.StreamResponse:
        self._streams += 1
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        kind = self.truth.streaming
        if kind == "sometimes":
            kind = "less" if self._streams == 1 else "equal"
        if kind == "less":
            message = {"role": "assistant", "content": ""}
        delta = {key: value for key, value in message.items() if key != "tool_calls"}
        deltas: list[dict[str, Any]] = [delta]
        for index, call in enumerate(message.get("tool_calls", ())):
            text = call["function"].get("arguments") or ""
            head = {**call["function"], "arguments": text[:5]}
            deltas.append({"tool_calls": [{**call, "index": index, "function": head}]})
            rest = {"index": index, "function": {"arguments": text[5:]}}
            deltas.append({"tool_calls": [rest]})
        chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        if kind != "unfinished":
            chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        if usage:
            chunks.append({"choices": [], "usage": usage})
        for chunk in chunks:
            await response.write(b"data: " + json.dumps({"model": "m", **chunk}).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response
